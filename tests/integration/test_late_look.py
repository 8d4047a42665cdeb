# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request for a slot, and what happens between its looks at the ledger and at the Nodes, and its write."""

from __future__ import annotations

import pytest
from integration.support.group import group_of, perform

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import slots


@pytest.fixture
def group(lab):
    with group_of(lab, 2, "look") as made:
        yield made
        made.mend()


def test_a_node_that_went_down_with_its_slot_is_waited_for(group, monkeypatch):
    down, waiting = group.nodes
    look = slots._SlotRequest._decide_by_nodes

    def late(taking, *known):
        monkeypatch.setattr(slots._SlotRequest, "_decide_by_nodes", look)
        group.taken(down)
        group.report(down, ready=False)
        return look(taking, *known)

    monkeypatch.setattr(slots._SlotRequest, "_decide_by_nodes", late)

    asked = group.slot(waiting)

    # An immediate refusal would mean that no run works on the node that is down.
    assert asked["error"] == "timed_out", asked["msg"]
    assert f"{down} has a slot" in asked["msg"]


def test_a_silent_run_that_claims_its_node_after_the_nodes_were_read_keeps_its_slot(group, monkeypatch):
    claimed, other = group.nodes
    run, look = f"{group.name}-1", slots._SlotRequest._decide_by_nodes
    group.taken(claimed, run=run)
    group.silence(run)

    def early(taking, *known):
        monkeypatch.setattr(slots._SlotRequest, "_decide_by_nodes", look)
        found = look(taking, *known)
        options = {"name": claimed, "run": run, "operation": "kernel", "group": group.name}
        assert perform(group.lab, "node_claim", **options)["changed"]
        return found

    monkeypatch.setattr(slots._SlotRequest, "_decide_by_nodes", early)

    asked = group.slot(other, run=f"{group.name}-2", operation="firmware")
    group.lab.kubectl("annotate", "node", claimed, "holdfast.dev/claim-")

    assert asked["error"] == "timed_out", "the budget is exceeded"
    assert set(group.slots()) == {claimed}
