# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a world shows of the collection's state: objects as the API has them become values to compare."""

from __future__ import annotations

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import (
    CORDON,
    EXCLUDE,
    KEEP_CORDONED,
    OPERATION,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import claim_of
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger, Slot

ZONE = "zone"
_RECORD = ("id", "run", "phase", "result", "boot_id_before", "unschedulable_before")


def node_seen(node: Object) -> dict[str, Any]:
    cordon, claim, record = node_rules.record(node, CORDON), claim_of(node), node_rules.record(node, OPERATION)
    return {
        "ready": node_rules.ready(node),
        "boot_id": node_rules.boot_id(node),
        "unschedulable": node_rules.unschedulable(node),
        "cordon": {key: cordon[key] for key in ("owner", "unschedulable_before")} if cordon else None,
        "claim": {"run": claim.run, "operation": claim.operation} if claim else None,
        "record": {key: record.get(key) for key in _RECORD} if record else None,
        "kept": KEEP_CORDONED in node_rules.annotations_of(node),
        "excluded": EXCLUDE in node_rules.labels_of(node),
        "zone": node_rules.labels_of(node).get(ZONE, ""),
    }


def slot_seen(slot: Slot | None) -> dict[str, Any] | None:
    if slot is None:
        return None
    return {
        key: value
        for key, value in vars(slot).items()
        if key in ("operation", "run", "state", "boot_id", "domain", "claims")
    }


def ledger_seen(ledger: Ledger) -> dict[str, Any]:
    operations = {
        entry["id"]: {
            "failures": sorted(entry["failures"]),
            "runs": entry.get("runs", []),
            "unfinished": entry.get("unfinished", False),
        }
        for entry in ledger.operations
    }
    return {
        "policy": ledger.policy.to_data() if ledger.policy else None,
        "slots": {name: slot_seen(slot) for name, slot in ledger.slots.items()},
        "operations": operations,
    }
