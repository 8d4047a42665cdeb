# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a Node that results and variables of hosts have in common."""

from __future__ import annotations

import json

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.fact_rules import facts

CLAIM = {"run": "night/1", "operation": "kernel", "purpose": "rolling_reboot"}
RECORD = {"id": "kernel", "phase": "drain", "result": ""}
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
HELD = {"type": "ShutdownInhibited", "status": "True", "reason": "shop/backup"}
DRAINING = {"type": "DrainInProgress", "status": "True", "reason": "Patch", "message": "by hand"}


def a_node(**marks):
    return {
        "metadata": {
            "name": "node-1",
            "labels": {"zone": "a", "holdfast.dev/exclude": ""},
            "annotations": {f"holdfast.dev/{kind}": json.dumps(content) for kind, content in marks.items()},
        },
        "spec": {"unschedulable": True, "taints": [{**TAINT, "timeAdded": "2026-11-23T15:00:00Z"}, {"key": "bare"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, HELD, DRAINING], "nodeInfo": {"bootID": "b-1"}},
    }


def test_each_fact_has_its_place():
    assert facts(a_node(claim=CLAIM, operation=RECORD, cordon={"owner": "drain"})) == {
        "name": "node-1",
        "ready": True,
        "boot_id": "b-1",
        "unschedulable": True,
        "cordoned_by": "drain",
        "shutdown_inhibited": True,
        "inhibited_by": ["shop/backup"],
        "maintenance": [
            {"type": "DrainInProgress", "reason": "Patch", "message": "by hand", "since": "", "ours": False},
        ],
        "claim": CLAIM,
        "operation": RECORD,
        "excluded": True,
        "labels": {"zone": "a", "holdfast.dev/exclude": ""},
        "taints": [TAINT, {"key": "bare", "value": None, "effect": None}],
    }


@pytest.mark.parametrize(("marks", "owner"), [({}, None), ({"cordon": {"unschedulable_before": False}}, "")])
def test_a_cordon_of_this_collection_counts_without_its_owner(marks, owner):
    assert facts(a_node(**marks))["cordoned_by"] == owner
