# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request for a slot that reads the Nodes later than the ledger."""

from __future__ import annotations

import pytest
from integration.support.group import group_of

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import slots


@pytest.fixture
def group(lab):
    with group_of(lab, 2, "look") as made:
        yield made
        made.mend()


def test_a_node_that_went_down_under_its_slot_meanwhile_is_waited_for(group, monkeypatch):
    down, waiting = group.nodes
    look = slots._SlotRequest._members

    def late(taking):
        monkeypatch.setattr(slots._SlotRequest, "_members", look)
        group.taken(down)
        group.report(down, ready=False)
        return look(taking)

    monkeypatch.setattr(slots._SlotRequest, "_members", late)

    asked = group.slot(waiting)

    # An immediate refusal would mean that no run works on the node that is down.
    assert asked["error"] == "timed_out", asked["msg"]
    assert f"{down} has a slot" in asked["msg"]
