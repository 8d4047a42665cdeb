# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordon with an owner: who cordoned a node, why, and whether it was cordoned before."""

from __future__ import annotations

import json
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import Refused
from .._api.names import CORDON, OPERATION
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.times import to_text
from .._api.watch import retry_conflicts
from .._budget import claim_rules, lifecycle, lifecycle_rules
from .._budget.node_operation import marks_of
from .._budget.node_operation_rules import Phase, phase_of
from .._shared.bounds import cut
from .cordon_rules import OWNER, owner_of, shown, why_it_stays


def cordon(context: Context, params: Params) -> Result:
    """Cordon a node for an owner, or undo the cordon of that owner."""
    owner, run = params.get("owner") or OWNER, params.get("run") or ""
    phase = phase_of(params, "cordon" if params["state"] == "cordoned" else "uncordon")
    drain_ended = False
    if params["state"] == "cordoned":
        reason = params.get("reason") or (phase.operation if phase else "")
        before, after = take(
            context.cluster, params["name"], owner, reason, force=params["force"], run=run, phase=phase
        )
    else:
        before, after = give_back(
            context.cluster,
            params["name"],
            owner,
            force=params["force"],
            run=run,
            claimed=params.get("claimed", True),
            phase=phase,
        )
        if node_rules.unschedulable(after):
            context.warn(
                f"Node {params['name']} stays cordoned: {why_it_stays(before, owner)}. To uncordon it all the same, "
                "use the module cordon with force."
            )
        elif lifecycle_rules.run_of(after) == "":
            # A drain without a run reported that the node is drained. Now it gets pods again.
            work = lifecycle_rules.Work("uncordon")
            reported = lifecycle.report(context, params["name"], lifecycle_rules.ENDS, work)
            drain_ended = reported[0] is not reported[1]
    return {
        "changed": before is not after or drain_ended,
        "unschedulable": node_rules.unschedulable(after),
        "owner": owner_of(after),
        "operation": node_rules.record(after, OPERATION) if phase else None,
        "diff": {"before": shown(before), "after": shown(after)},
    }


def take(
    cluster: Cluster,
    name: str,
    owner: str,
    reason: str,
    *,
    force: bool = False,
    share: bool = False,
    run: str = "",
    phase: Phase | None = None,
) -> tuple[Object, Object]:
    """Cordon a node and record the owner; returns the Node before and after (the same object if nothing changed).

    The phase is recorded by the same write.

    Args:
        share: If another owner has cordoned the node, its cordon is enough, and stays as it is.

    Raises:
        NotFound: There is no such Node.
        ClaimLost: ``run`` no longer has a claim on it.
        Refused: The record names another owner, and neither ``force`` nor ``share`` is set.
    """

    def attempt() -> tuple[Object, Object]:
        node = claim_rules.require_claim(read_node(cluster, name), run)
        record = node_rules.record(node, CORDON)
        if record and record.get("owner") != owner and not force:
            if share and node_rules.unschedulable(node):
                return node, node
            raise Refused(
                f"Node {name} has been cordoned by {record.get('owner')} since {record.get('since')} "
                f"({record.get('reason') or 'no reason given'}), not by {owner}. Wait until that owner uncordons it, "
                "use the same owner, or set force to take over the cordon.",
                node=name,
                owner=record.get("owner"),
                since=record.get("since"),
            )
        wanted = _record(cluster, node, record, owner, reason)
        marks = marks_of(cluster, node, phase)
        if wanted == record and node_rules.unschedulable(node) and not marks:
            return node, node
        return node, _write(cluster, node, unschedulable=True, record=wanted, marks=marks)

    return retry_conflicts(attempt)


def give_back(
    cluster: Cluster,
    name: str,
    owner: str,
    *,
    force: bool = False,
    run: str = "",
    claimed: bool = True,
    phase: Phase | None = None,
) -> tuple[Object, Object]:
    """Undo the cordon of ``owner``: remove the record, and make the node schedulable unless it was cordoned before.

    The cordon of another owner stays as it is, and so does the one of a client that has cordoned the node again since.
    A node that is annotated ``holdfast.dev/keep-cordoned`` stays cordoned. ``force`` undoes any cordon. Returns the
    Node before and after (the same object if nothing changed).

    Args:
        claimed: ``run`` must have the claim. If not, it is enough that no other run has it.

    Raises:
        NotFound: There is no such Node.
        ClaimLost: ``run`` no longer has a claim on it.
    """

    def attempt() -> tuple[Object, Object]:
        node = claim_rules.require_claim(read_node(cluster, name), run, claimed=claimed)
        record = node_rules.record(node, CORDON)
        kept = None if force or (record or {}).get("owner") == owner else record
        stays = not force and bool(why_it_stays(node, owner))
        marks = marks_of(cluster, node, phase)
        if kept == record and stays == node_rules.unschedulable(node) and not marks:
            return node, node
        return node, _write(cluster, node, unschedulable=stays, record=kept, marks=marks)

    return retry_conflicts(attempt)


def _record(cluster: Cluster, node: Object, record: dict[str, Any] | None, owner: str, reason: str) -> dict[str, Any]:
    if record and record.get("owner") == owner:
        # If someone uncordoned the node meanwhile, the cordon from before the record is no longer wanted.
        before = bool(record.get("unschedulable_before")) and node_rules.unschedulable(node)
        return {**record, "reason": cut(reason) or record.get("reason", ""), "unschedulable_before": before}
    before = node_rules.unschedulable(node) and bool(record is None or record.get("unschedulable_before"))
    return {
        "owner": owner,
        "reason": cut(reason),
        "since": to_text(cluster.now()),
        "unschedulable_before": before,
    }


def _write(
    cluster: Cluster, node: Object, *, unschedulable: bool, record: dict[str, Any] | None, marks: dict[str, Any]
) -> Object:
    return cluster.merge(
        paths.node(node_rules.name(node)),
        {
            "metadata": {
                "resourceVersion": node["metadata"]["resourceVersion"],
                "annotations": {CORDON: json.dumps(record, sort_keys=True) if record else None, **marks},
            },
            "spec": {"unschedulable": True if unschedulable else None},
        },
    )
