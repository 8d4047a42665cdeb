# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write down how far a failover has come, on the Node and in the record of all failovers.

What the Node says is looked at on the very version of it that is written over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, InvalidInput, NotFound, Refused, TimedOut
from .._api.names import CLAIM, FAILOVER
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline, retry_conflicts, wait_for
from .._budget import claim_rules, gate, runs
from .._fencing import still_down_rules
from . import audit, audit_rules, rules
from . import taint_rules as out_of_service
from .rules import Change


def failover_record(context: Context, params: Params) -> Result:
    """Write down a phase or a result; see the module of the same name."""
    if not params.get("phase") and not params.get("result"):
        raise InvalidInput("failover_record needs phase, result or both: what is to be written down.")
    if params["deleted"]:
        return _of_a_deleted_node(context, params)
    cluster, name, run = context.cluster, params["name"], params["run"]
    with runs.heartbeat(cluster, run):
        if params["look"]:
            _await_end_of_shutdown(cluster, name, Deadline(params["wait_timeout"]))
        # The record goes with a Node that is deleted, so how it ended is written down only when that is done.
        last = params["delete_node"]
        before, after, record = retry_conflicts(
            lambda: _attempt(context, {**params, "result": None} if last else params)
        )
        versions = {"node": after["metadata"]["resourceVersion"], **_host_version(params)}
        entry = audit.note(cluster, name, record, versions)
        if last:
            _delete(cluster, name, record)
            record = rules.advance(record, _change(params), cluster.now())
            entry = audit.note(cluster, name, record, {})
    if params.get("result") and not context.check_mode:
        runs.end(cluster, run)
    return {
        "changed": before is not after,
        "record": record,
        "entry": entry,
        "diff": {"before": _shown(before), "after": _shown(after)},
    }


def _of_a_deleted_node(context: Context, params: Params) -> Result:
    """The record went with the Node; there is the entry alone."""
    if not params.get("result"):
        raise InvalidInput("deleted is for a result alone: the Node that could have a phase is not there any more.")
    before, after = audit.close(
        context.cluster,
        params["operation"],
        run=params["run"],
        result=params["result"],
        detail=params.get("detail") or "",
        facts=params.get("facts") or {},
    )
    return {
        "changed": True,
        "record": None,
        "entry": after,
        "diff": {"before": {"entry": before}, "after": {"entry": after}},
    }


def take_over(
    context: Context, params: Params, *, step: str, waited: float, entry: Mapping[str, Any] | None = None
) -> tuple[Object, dict[str, Any]]:
    """Begin the record, or go on with one that another run left; the claim is ours already.

    Args:
        step: Which is the next.
        waited: Seconds that passed before.
        entry: What is kept of a failover whose record is not on the Node any more; that is gone on with, then.
    """
    cluster, name, run = context.cluster, params["name"], params["run"]

    def attempt() -> tuple[Object, dict[str, Any]]:
        node = _ours(context, name, run)
        record = rules.record_of(node)
        if record is None and entry is not None:
            wanted = rules.restored(entry, audit_rules.facts_of(entry), run=run, now=cluster.now())
        elif record is None:
            wanted = rules.begin(
                node,
                rules.operation_of(name, cluster.now()),
                run=run,
                holder=params.get("holder") or run,
                reason=params.get("reason") or "",
                fence=params.get("fence") or "",
                now=cluster.now(),
            )
            wanted["phases"] = {"confirm": round(waited, 1)}
        elif step == rules.FENCE and rules.down_again(node, record):
            wanted = rules.anew(node, record, run=run, now=cluster.now())
        else:
            wanted = rules.advance(record, Change(run, phase=record["phase"]), cluster.now())
        return _write(cluster, node, wanted), wanted

    node, record = retry_conflicts(attempt)
    audit.note(cluster, name, record, {"node": node["metadata"]["resourceVersion"]})
    return node, record


def _attempt(context: Context, params: Params) -> tuple[Object, Object, dict[str, Any]]:
    cluster, run = context.cluster, params["run"]
    node = _ours(context, params["name"], run)
    record = rules.record_of(node)
    if record is None or record["id"] != params["operation"]:
        raise Refused(
            f"Node {params['name']} has no record of failover {params['operation']}: somebody has removed it. Nothing "
            "was changed. Start the playbook again.",
            node=params["name"],
            why="no_record",
        )
    facts = dict(params.get("facts") or {})
    if params["look"]:
        still_down_rules.check_still_down(node, record)
        if out_of_service.shutting_down(node):
            # It was not, a moment ago: by now it may be on.
            raise ApiFailure(f"Node {params['name']} has begun to shut down.", status=409)
    if params["gate"] and not context.check_mode:
        seen = gate.look(cluster, params["name"], override_holds=params["override_holds"], run=run)
        if seen.overridden:
            facts["overridden_holds"] = [f"{hold['namespace']}/{hold['holder']}" for hold in seen.overridden]
    change = _change(params, facts)
    wanted = rules.advance(record, change, cluster.now())
    if wanted == record and not change.result:
        return node, node, wanted
    return node, _write(cluster, node, wanted), wanted


def _change(params: Params, facts: Mapping[str, Any] | None = None) -> Change:
    return Change(
        params["run"],
        phase=params.get("phase") or "",
        result=params.get("result") or "",
        detail=params.get("detail") or "",
        facts=facts or {},
    )


def _ours(context: Context, name: str, run: str) -> Object:
    # In check mode the claim was not really taken.
    return claim_rules.ours(read_node(context.cluster, name), "" if context.check_mode else run)


def _write(cluster: Cluster, node: Object, record: Mapping[str, Any]) -> Object:
    """Record and, at the end, claim in one write: of a run that dies in between, a claim would be left."""
    marks: dict[str, Any] = {FAILOVER: json.dumps(record, sort_keys=True) if rules.stays(record) else None}
    if record["result"]:
        marks[CLAIM] = None
    metadata = {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": marks}
    return cluster.merge(paths.node(node_rules.name(node)), {"metadata": metadata})


def _await_end_of_shutdown(cluster: Cluster, name: str, deadline: Deadline) -> None:
    """A host that was asked to shut down may have said so as its last: then its Node says it until it is given up.

    Raises:
        TimedOut: It says it still.
    """

    def over(item: Object | None) -> bool:
        return item is None or not out_of_service.shutting_down(item)

    if not over(wait_for(cluster, paths.NODES, name, over, deadline)):
        raise TimedOut(
            f"Node {name} says since {deadline.seconds} s that it is shutting down, so its kubelet may still be ending "
            "pods. Nothing was changed. Run it again when its condition Ready is Unknown.",
            node=name,
            why="shutting_down",
        )


def _host_version(params: Params) -> dict[str, str]:
    version = params.get("host_version")
    return {"host": version} if version else {}


def _delete(cluster: Cluster, name: str, record: Mapping[str, Any]) -> None:
    """Delete the Node, exactly as it was looked at.

    Raises:
        CameBack: It is on.
    """

    def attempt() -> None:
        node = cluster.find(paths.node(name))
        if node is None:
            return
        still_down_rules.check_still_down(node, record)
        seen = {key: node["metadata"][key] for key in ("uid", "resourceVersion")}
        with suppress(NotFound):
            cluster.delete(paths.node(name), {"preconditions": seen})

    retry_conflicts(attempt)


def _shown(node: Object) -> dict[str, Any]:
    return {"failover": rules.record_of(node)}
