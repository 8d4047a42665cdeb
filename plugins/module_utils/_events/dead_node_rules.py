# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about nodes that are not heard of any more: since when, without interruption, and what speaks for it.

That a node is silent is no proof that it is off. That is for the failover to prove.
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
from .._shared.bounds import moment, seconds_since
from .log_rules import Condition

# Of the condition Ready: what the node controller writes about a node that is silent, and a kubelet about itself.
SILENT, COMPLAINS = "Unknown", "False"
# What Kubernetes' own reasons look like. A kubelet may write any other text.
_REASON = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Sign:
    """The last sign of life of a node that counts as silent.

    Attributes:
        renewed: What its Lease says, by the clock of its machine.
        moment: When that was, by the clock of the API server, or the latest that it can have been.
    """

    renewed: str
    moment: datetime


def silence(node: Object, *, reporting: bool) -> Condition | None:
    """The silence of a node; ``None`` where it is heard of, or there is nothing left to do.

    A node that is heard of in between, has booted or was made anew begins another silence. The condition says so even
    where nobody watched.

    Args:
        reporting: Nodes count, too, whose kubelet lives and reports that the node is not Ready.
    """
    metadata, ready = node["metadata"], node_rules.condition(node, "Ready") or {}
    status, since = ready.get("status"), ready.get("lastTransitionTime")
    counts = status == SILENT or (status == COMPLAINS and reporting)
    if not counts or metadata.get("deletionTimestamp") or is_moved(node):
        return None
    key = "/".join([metadata["uid"], node_rules.boot_id(node), str(status), str(since or "")])
    # What a kubelet writes has the time of its machine, which may be any.
    return Condition(key, moment(since) if status == SILENT else None)


def is_moved(node: Object) -> bool:
    """Whether the node was failed over and has not come back since."""
    record = node_rules.record(node, FAILOVER)
    return record is not None and record.get("result") == failover_rules.MOVED and taint_of(node) is not None


def sign_of_life(lease: Object | None, since: datetime, now: datetime, before: Sign | None) -> Sign | None:
    """When its kubelet has renewed its Lease last, at the latest; ``None`` where it has none.

    That a Lease changes is a sign of life whatever the machine's clock says, and one that stays the same is none: the
    two clocks are compared only as long as nobody has looked at the Lease before.

    Args:
        since: Since when the node counts as silent.
        before: What was found when the Lease was looked at before, in the same silence.
    """
    renewed = _renewed(lease)
    if not renewed:
        return None
    if before is None:
        return Sign(renewed, min(max(moment(renewed) or since, since), now))
    return before if renewed == before.renewed else Sign(renewed, now)


def describe(node: Object) -> dict[str, Any]:
    """A node as events show it."""
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
    """Why the node is taken for dead."""
    ready = node_rules.condition(node, "Ready") or {}
    since, reason = ready.get("lastTransitionTime"), str(ready.get("reason") or "")
    return {
        "status": ready.get("status"),
        "reason": reason if _REASON.fullmatch(reason) else None,
        "message": ready.get("message"),
        "since": since,
        "seconds": int(seconds_since(since, now)) if since else None,
        "last_heartbeat": ready.get("lastHeartbeatTime"),
        "lease_renewed": _renewed(lease) or None,
        "looked_at": to_text(now),
    }


def _renewed(lease: Object | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("renewTime") or "")
