# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about nodes that give no sign of life: since when, without interruption, and on what evidence.

A silent node is not proven to be off. The failover must prove that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._api import node_rules
from .._api.names import FAILOVER
from .._api.objects import Object
from .._api.times import to_text
from .._budget.claim_rules import claim_of
from .._capi import machine_rules
from .._failover import rules as failover_rules
from .._failover.taint_rules import taint_of
from .._shared.bounds import cut, moment, seconds_since
from .log_rules import Condition

# Status of the condition Ready: what the node controller writes for a silent node, and a kubelet for itself.
SILENT, COMPLAINS = "Unknown", "False"
# The form of Kubernetes' own reasons. A kubelet may write any other text.
_REASON = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Sign:
    """The last sign of life of a node that counts as silent.

    Attributes:
        renewed: The time in its Lease, by the clock of its machine.
        moment: That moment by the clock of the API server, or the latest that it can have been.
    """

    renewed: str
    moment: datetime


def silence(node: Object, *, reporting: bool) -> Condition | None:
    """Return the silence of a node; ``None`` if it gives signs of life, or nothing is left to do.

    Another silence begins if the node gives a sign of life in between, has booted or was recreated. The condition shows
    this even if nothing watched the node.

    Args:
        reporting: Whether nodes also count whose kubelet is live and reports that the node is not Ready.
    """
    metadata, ready = node["metadata"], node_rules.condition(node, "Ready") or {}
    status, since = ready.get("status"), ready.get("lastTransitionTime")
    counts = status == SILENT or (status == COMPLAINS and reporting)
    if not counts or metadata.get("deletionTimestamp") or is_moved(node):
        return None
    key = "/".join([metadata["uid"], node_rules.boot_id(node), str(status), str(since or "")])
    # A kubelet writes the time of its machine, which may be wrong.
    return Condition(key, moment(since) if status == SILENT else None)


def is_moved(node: Object) -> bool:
    """Return whether the node was failed over and has not come back since."""
    record = node_rules.record(node, FAILOVER)
    return record is not None and record.get("result") == failover_rules.MOVED and taint_of(node) is not None


def sign_of_life(lease: Object | None, since: datetime, now: datetime, before: Sign | None) -> Sign | None:
    """Return the latest time at which its kubelet can have renewed its Lease last; ``None`` if it has no Lease.

    A change of the Lease is a sign of life, regardless of the machine's clock, and an unchanged Lease is none. So the
    two clocks are compared only at the first look at the Lease.

    Args:
        since: Since when the node counts as silent.
        before: What the previous look at the Lease found, in the same silence.
    """
    renewed = _renewed(lease)
    if not renewed:
        return None
    if before is None:
        return Sign(renewed, min(max(moment(renewed) or since, since), now))
    return before if renewed == before.renewed else Sign(renewed, now)


def describe(node: Object) -> dict[str, Any]:
    """Return a node as events show it."""
    metadata, machine, claim = node["metadata"], machine_rules.name_of(node), claim_of(node)
    record = node_rules.record(node, FAILOVER)
    return {
        "name": metadata["name"],
        "uid": metadata["uid"],
        "labels": node_rules.labels_of(node),
        "boot_id": node_rules.boot_id(node),
        "provider_id": (node.get("spec") or {}).get("providerID"),
        "machine": "/".join(machine) if machine else None,
        "unschedulable": node_rules.unschedulable(node),
        "out_of_service": taint_of(node) is not None,
        "claim": vars(claim) if claim else None,
        "failover": record.get("phase") if record else None,
    }


def evidence(node: Object, lease: Object | None, now: datetime) -> dict[str, Any]:
    """Return why the node counts as dead."""
    ready = node_rules.condition(node, "Ready") or {}
    since, reason = ready.get("lastTransitionTime"), str(ready.get("reason") or "")
    return {
        "status": ready.get("status"),
        "reason": reason if _REASON.fullmatch(reason) else None,
        "message": cut(str(ready.get("message") or "")) or None,
        "since": since,
        "seconds": int(seconds_since(since, now)) if since else None,
        "last_heartbeat": ready.get("lastHeartbeatTime"),
        "lease_renewed": _renewed(lease) or None,
        "looked_at": to_text(now),
    }


def _renewed(lease: Object | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("renewTime") or "")
