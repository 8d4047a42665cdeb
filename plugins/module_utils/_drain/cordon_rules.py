# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about a cordon with an owner: who cordoned a node, and why it stays cordoned."""

from __future__ import annotations

from typing import Any

from .._api import node_rules
from .._api.names import CORDON, KEEP_CORDONED
from .._api.objects import Object

OWNER = "holdfast"


def owner_of(node: Object) -> str | None:
    """The owner on the record of the cordon; ``None`` if there is none."""
    record = node_rules.record(node, CORDON) or {}
    return str(record["owner"]) if record.get("owner") else None


def reason_of(node: Object, owner: str) -> str | None:
    """The reason of the owner's cordon; ``None`` if the owner has not cordoned the node."""
    record = node_rules.record(node, CORDON) or {}
    cordoned = node_rules.unschedulable(node) and record.get("owner") == owner
    return str(record.get("reason") or "") if cordoned else None


def others_cordon(node: Object) -> str:
    """Who has cordoned the node again after someone uncordoned it and left our record; empty if no one is known.

    One request writes our record and our cordon, so both have the same manager, unless the node was cordoned before.
    An uncordon leaves the record, and the next cordon has the manager of its client. A client with our own manager
    can't be told apart. Source: the managed fields of server-side apply, which the API server keeps for all writers.
    """
    known = node_rules.record(node, CORDON)
    if not known or known.get("unschedulable_before"):
        return ""
    spec, record = ("f:spec", "f:unschedulable"), ("f:metadata", "f:annotations", f"f:{CORDON}")
    # The API server collects the entries of older managers in one that has no manager's name.
    cordoned, recorded = _managers(node, *spec) - {"ancient-changes"}, _managers(node, *record)
    return ", ".join(sorted(cordoned)) if recorded and not cordoned & recorded else ""


def _managers(node: Object, *path: str) -> set[str]:
    """The clients that manage a field."""
    found = set()
    for entry in node["metadata"].get("managedFields") or []:
        fields = entry.get("fieldsV1") or {}
        for name in path:
            fields = fields.get(name) if isinstance(fields, dict) else None
        if fields is not None:
            found.add(str(entry.get("manager") or "unknown"))
    return found


def why_it_stays(node: Object, owner: str) -> str:
    """Why a node stays cordoned when ``owner`` uncordons it; empty if it does not."""
    if not node_rules.unschedulable(node):
        return ""
    record = node_rules.record(node, CORDON)
    if record is None:
        return "it was cordoned without this collection's record, so the user or tool that cordoned it must uncordon it"
    if record.get("owner") != owner:
        return f"{record.get('owner')} cordoned it, not {owner}"
    if KEEP_CORDONED in node_rules.annotations_of(node):
        return f"it has the annotation {KEEP_CORDONED}"
    others = others_cordon(node)
    if others:
        return f"{others} has cordoned it again since {owner} cordoned it"
    return "it was cordoned before" if record.get("unschedulable_before") else ""


def slim(item: Object) -> Object:
    """An object without large parts that no rule needs. Managed fields that show another client's cordon stay."""
    return item if others_cordon(item) else node_rules.slim(item)


def shown(node: Object) -> dict[str, Any]:
    return {"unschedulable": node_rules.unschedulable(node), "cordon": node_rules.record(node, CORDON)}
