# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record how far a failover has come, on the Node and in the history of failovers.

Each check of the Node is made on the version that the write replaces.

A phase is recorded on the Node first, and nothing is sent before it is in the history, too. A result is recorded in the
history first: its write on the Node returns the claim and may remove the record. So a run that is killed in between
leaves both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, HoldfastError, InvalidInput, NotFound, Refused, TimedOut
from .._api.names import CLAIM, FAILOVER
from .._api.objects import Object, only_as_seen
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline, retry_conflicts, wait_for
from .._budget import claim_rules, gate, runs
from .._budget.lifecycle import Report, write_marks
from .._budget.lifecycle_rules import ENDS, Work
from .._fencing import still_down_rules
from .._fencing.still_down_rules import down_since
from . import audit, audit_rules, rules
from . import taint_rules as out_of_service
from .confirm import confirm
from .rules import Change


def failover_record(context: Context, params: Params) -> Result:
    """Record a phase or a result on the Node and in the history of failovers.

    The run must have the claim on the node. With ``result``, the same write returns the claim, and the run ends.

    Args:
        context: The cluster.
        params: ``name`` of the Node, ``operation``, ``run``; ``phase`` that begins, ``result``, ``detail`` and
            ``facts`` (see :class:`.rules.Change`); ``host_version``, the resource version of the BareMetalHost, for
            people; ``look``: check that the node is still down, after it has reported its shutdown for at most
            ``wait_timeout`` seconds, and before it is fenced, that it has stayed down for ``confirm_seconds`` since it
            may have been Ready; ``gate``: check that nobody holds it, unless ``override_holds``; ``delete_node``:
            delete the Node after everything is recorded; ``deleted``: the Node was deleted, so only the history is
            left.

    Returns:
        The ``record``, and the ``entry`` in the history.

    Raises:
        ClaimLost: The run does not have the claim.
        CameBack: The node is Ready, or has booted since the failover began.
        ReadyChanged: Its condition Ready has changed since it was confirmed.
        Held: Someone holds it.
        Refused: The record was removed.
        TimedOut: The node still reports that it is shutting down.
    """
    if not params.get("phase") and not params.get("result"):
        raise InvalidInput("failover_record needs phase, result or both: what to record.")
    if params["deleted"]:
        return _record_deleted_node(context, params)
    with runs.heartbeat(context.cluster, params["run"]):
        if params["look"]:
            _await_end_of_shutdown(context.cluster, params["name"], Deadline(params["wait_timeout"]))
        found = _record_result(context, params) if params.get("result") else _record_phase(context, params)
    if params.get("result") and not context.check_mode:
        # All is recorded, and a Lease that stays expires.
        with suppress(HoldfastError):
            runs.end(context.cluster, params["run"])
    return found


def _record_phase(context: Context, params: Params) -> Result:
    name, confirmed = params["name"], ""
    if params["look"] and params["phase"] == rules.FENCING:
        confirmed = _confirm(context, name, params["confirm_seconds"])
    before, after, record = retry_conflicts(lambda: _attempt(context, params, confirmed))
    entry = audit.note(
        context.cluster,
        name,
        record,
        _versions(after, params),
        params.get("facts"),
        phase=params["phase"],
        check=lambda: _checked(context, {**params, "gate": False}, confirmed),
    )
    return {"changed": before is not after, "record": record, "entry": entry}


def _record_result(context: Context, params: Params) -> Result:
    cluster, name = context.cluster, params["name"]
    node, record, facts = _checked(context, params)
    wanted = rules.advance(record, _change(params, facts), cluster.now())
    entry = audit.note(
        cluster,
        name,
        wanted,
        _versions(node, params),
        params.get("facts"),
        phase=params.get("phase") or "",
        check=lambda: _checked(context, params),
    )
    if params["delete_node"]:
        _delete(context, name, params["run"], record)
    else:
        _before, _after, wanted = retry_conflicts(lambda: _attempt(context, params))
    return {"changed": True, "record": wanted, "entry": entry}


def _record_deleted_node(context: Context, params: Params) -> Result:
    """Record the result in the entry alone: the record on the Node was deleted with it."""
    if not params.get("result"):
        raise InvalidInput("deleted needs a result: a Node that was deleted has no phase.")
    name = params["name"]

    def check() -> None:
        # The kubelet of a machine that is on again registers its Node.
        node = context.cluster.find(paths.node(name))
        if node is not None and (claim_rules.claim_of(node) or rules.record_of(node)):
            raise Refused(
                f"Node {name} exists again, and another run has claimed it or failed it over. So this run records no "
                "result for the Node that was deleted. Start the playbook again, which works on the present Node.",
                node=name,
                why="exists_again",
            )

    change = _change(params, params.get("facts") or {})
    return {
        "changed": True,
        "record": None,
        "entry": audit.close(context.cluster, name, params["operation"], change, check=check),
    }


def take_over(
    context: Context,
    params: Params,
    seen: Object,
    known: Mapping[str, Any] | None,
    *,
    step: str,
    waited: float,
) -> tuple[Object, dict[str, Any]]:
    """Begin the record, or resume one that another run left. The run must have the claim.

    Args:
        seen: The Node in the version that was checked.
        known: The record to resume; ``None`` to begin one. The Node may not have it, or no longer.
        step: The next step.
        waited: Seconds that passed before.

    Raises:
        CameBack: The Node is on, or has booted since it was checked. The run may have been paused.
        ReadyChanged: It may have been on.
        ClaimLost: The run does not have the claim.
    """
    cluster, name, run = context.cluster, params["name"], params["run"]
    before = rules.record_of(seen)
    # A recovery of a node that has only a cordon has nothing to switch on.
    sent = step != rules.POWER_ON or out_of_service.evidence_of(seen) is not None

    def attempt() -> tuple[Object, dict[str, Any]]:
        node = _claimed_node(context, name, run)
        if step == rules.FENCE:
            still_down_rules.check_still_down(node, {"boot_id": node_rules.boot_id(seen)}, down_since(seen))
        if known is None:
            wanted = rules.begin(
                node,
                rules.operation_of(name, cluster.now()),
                run=run,
                holder=params.get("holder") or run,
                reason=params.get("reason") or "",
                fence=(params.get("fence") or "") if sent else "",
                now=cluster.now(),
            )
            wanted["phases"] = {rules.CONFIRM: round(waited, 1)}
            if step == rules.POWER_ON and sent:
                # The record and the history of its failover were lost.
                wanted["phase"] = rules.POWER_ON
        elif step == rules.FENCE and rules.down_again(node, known):
            wanted = rules.restarted(node, known, run=run, now=cluster.now())
        else:
            wanted = rules.advance(known, Change(run, phase=known["phase"]), cluster.now())
        if step == rules.FENCE:
            wanted["confirmed"] = down_since(seen)
        return _write(context, node, wanted), wanted

    if known is None and before:
        _close(context, params, before["id"])
    node, record = retry_conflicts(attempt)
    audit.note(cluster, name, record, _versions(node, {}), check=lambda: _claimed_node(context, name, run))
    return node, record


def _close(context: Context, params: Params, operation: str) -> None:
    """Close the failover of a node that a person brought back. A node can write into its record that it has ended."""
    cluster, name, run = context.cluster, params["name"], params["run"]
    entry = audit_rules.entry_of(audit.read(cluster), name, operation)
    if entry is not None and entry["result"] == rules.MOVED:
        change = Change(run, result=rules.RECOVERED, detail="a person brought it back, and it is down again")
        audit.close(cluster, name, operation, change, check=lambda: _claimed_node(context, name, run))


def _confirm(context: Context, name: str, seconds: float) -> str:
    """Wait until the node has stayed down, if it may have been Ready since its record says so."""
    node = read_node(context.cluster, name)
    known = rules.record_of(node) or {}
    return down_since(confirm(context, node, seconds, str(known.get("confirmed") or "")))


def _attempt(context: Context, params: Params, confirmed: str = "") -> tuple[Object, Object, dict[str, Any]]:
    node, record, facts = _checked(context, params, confirmed)
    change = _change(params, facts)
    wanted = rules.advance(record, change, context.cluster.now())
    if confirmed:
        wanted["confirmed"] = confirmed
    if wanted == record and not change.result:
        return node, node, wanted
    return node, _write(context, node, wanted), wanted


def _checked(context: Context, params: Params, confirmed: str = "") -> tuple[Object, dict[str, Any], dict[str, Any]]:
    """Return the Node, its record, and the facts to record, after all checks."""
    cluster, run = context.cluster, params["run"]
    node = _claimed_node(context, params["name"], run)
    record = _record_of(node, params)
    facts = dict(params.get("facts") or {})
    if params["look"]:
        still_down_rules.check_still_down(node, record, confirmed)
        if out_of_service.shutting_down(node):
            # A moment ago it did not shut down: it may be on by now.
            raise ApiFailure(f"Node {params['name']} has started to shut down.", status=409)
    if params["gate"] and not context.check_mode:
        seen = gate.check(cluster, params["name"], override_holds=params["override_holds"], run=run)
        if params["look"] and seen.node is not None:
            # If the phase is recorded already, no write below shows that the Node has changed meanwhile.
            still_down_rules.check_still_down(seen.node, record, confirmed)
        if seen.overridden:
            facts["overridden_holds"] = seen.overridden_names
    return node, record, facts


def _record_of(node: Object, params: Params) -> dict[str, Any]:
    record = rules.record_of(node)
    if record is None or record["id"] != params["operation"]:
        raise Refused(
            f"Node {params['name']} has no record of failover {params['operation']}: it was removed. Nothing was "
            "changed. Start the playbook again.",
            node=params["name"],
            why="no_record",
        )
    return record


def _change(params: Params, facts: Mapping[str, Any]) -> Change:
    return Change(
        params["run"],
        phase=params.get("phase") or "",
        result=params.get("result") or "",
        detail=params.get("detail") or "",
        facts=facts,
    )


def _claimed_node(context: Context, name: str, run: str) -> Object:
    # In check mode, no run has taken the claim.
    return claim_rules.require_claim(read_node(context.cluster, name), "" if context.check_mode else run)


def _write(context: Context, node: Object, record: Mapping[str, Any]) -> Object:
    """Write the record, and at the end the claim and the lifecycle conditions, in one write.

    Otherwise a run that dies in between leaves a claim.
    """
    marks: dict[str, str | None] = {FAILOVER: json.dumps(record, sort_keys=True) if rules.stays(node, record) else None}
    if not record["result"]:
        return write_marks(context.cluster, node, marks)
    return Report(context, ENDS, Work("", record["id"], record["run"])).write(node, {**marks, CLAIM: None})


def _await_end_of_shutdown(cluster: Cluster, name: str, deadline: Deadline) -> None:
    """Wait for the end of a shutdown. If it was the Node's last report, the Node shows it until it counts as lost.

    Raises:
        TimedOut: The Node still shows it.
    """

    def over(item: Object | None) -> bool:
        return item is None or not out_of_service.shutting_down(item)

    if not over(wait_for(cluster, paths.NODES, name, over, deadline)):
        raise TimedOut(
            f"Node {name} has reported for {deadline.seconds} s that it is shutting down, so its kubelet may still be "
            "stopping pods. Nothing was changed. Run it again when its condition Ready is Unknown.",
            node=name,
            why="shutting_down",
        )


def _versions(node: Object, params: Params) -> dict[str, str]:
    """Return the resource versions of the objects, for people."""
    host = params.get("host_version")
    return {"node": node["metadata"]["resourceVersion"], **({"host": host} if host else {})}


def _delete(context: Context, name: str, run: str, record: Mapping[str, Any]) -> None:
    """Delete the Node in exactly the version that was checked.

    Raises:
        CameBack: The Node is on.
        ClaimLost: Another run has taken over, for example a recovery.
    """

    def attempt() -> None:
        with suppress(NotFound):
            node = _claimed_node(context, name, run)
            still_down_rules.check_still_down(node, record)
            context.cluster.delete(paths.node(name), only_as_seen(node))

    retry_conflicts(attempt)
