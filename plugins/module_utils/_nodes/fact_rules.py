# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Node object says about its node."""

from __future__ import annotations

from typing import Any

from .._api import node_rules
from .._api.names import CLAIM, CORDON, EXCLUDE, OPERATION
from .._api.objects import Object
from .._budget import lifecycle_rules


def facts(node: Object) -> dict[str, Any]:
    """The facts that results and variables of hosts have in common."""
    cordoned = node_rules.record(node, CORDON)
    return {
        "name": node_rules.name(node),
        "ready": node_rules.ready(node),
        "boot_id": node_rules.boot_id(node),
        "unschedulable": node_rules.unschedulable(node),
        # A record without an owner still marks a cordon of this collection.
        "cordoned_by": str(cordoned.get("owner") or "") if cordoned else None,
        "shutdown_inhibited": node_rules.refuses_shutdown(node),
        "inhibited_by": node_rules.inhibited_by(node),
        "maintenance": lifecycle_rules.shown(node),
        "claim": node_rules.record(node, CLAIM),
        "operation": node_rules.record(node, OPERATION),
        "excluded": EXCLUDE in node_rules.labels_of(node),
        "labels": node_rules.labels_of(node),
        "taints": [{key: taint.get(key) for key in ("key", "value", "effect")} for taint in node_rules.taints(node)],
    }
