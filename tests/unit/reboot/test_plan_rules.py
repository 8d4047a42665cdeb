# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node is not rebooted now, as text."""

from __future__ import annotations

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.plan_rules import why_blocked, why_held

HOLD = {"namespace": "shop", "holder": "backup", "held_seconds": 60, "acquired": None, "reason": ""}


def test_a_lease_names_its_holder():
    (why,) = why_held([HOLD], ["shop/backup"], inhibited=True)
    assert why.startswith("held by shop/backup")


def test_without_a_lease_the_condition_of_the_node_counts():
    assert why_held([], ["shop/backup"], inhibited=True) == ["the node refuses a shutdown for shop/backup"]
    assert why_held([], [], inhibited=False) == []


def test_blockers_are_named():
    pod = {"kind": "pod", "namespace": "shop", "name": "migration", "reason": "it runs"}
    alert = {"kind": "alert", "name": "Down", "reason": "it fires"}
    assert why_blocked([pod, alert]) == [
        "blocked by pod shop/migration: it runs",
        "blocked by alert Down: it fires",
    ]
