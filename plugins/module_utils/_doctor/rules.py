# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our objects in a cluster, their owners, and which of them belong to no live run.

Rules only: objects go in, findings come out, in the order in which they are safe to clear.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._api import node_rules
from .._api.names import CORDON, FAILOVER, OPERATION
from .._api.objects import Object
from .._budget import lifecycle_rules
from .._budget.claim_rules import claim_of
from .._budget.ledger_rules import FAILED, Slot
from .._budget.node_operation_rules import EARLIER, earlier_of, is_midway, unchecked
from .._drain.cordon_rules import why_it_stays
from .._failover.taint_rules import taint_of
from .._nodes import health_check_rules, optout_rules
from . import advice_rules
from . import failover_rules as failovers
from . import machine_rules as machines
from .snapshot_rules import Finding, Scope, Snapshot

ROLE_OWNER = "rolling_reboot"
ORDER = (
    "cordon",
    "opt_outs",
    "claim",
    "record",
    "conditions",
    "slot",
    "operation",
    "pause",
    *failovers.KINDS,
    machines.KIND,
    "run",
)


@dataclass(frozen=True)
class _Verdict:
    """Whether an object may be cleared and, if not although no live run has it, why not and what to do."""

    stale: bool = False
    why: str = ""
    todo: str = ""

    def on(self, what: str) -> dict[str, Any]:
        """Return the fields of a finding about ``what``."""
        return {
            "stale": self.stale,
            "why": f"{what}; stays because {self.why}" if self.why else what,
            "todo": self.todo,
        }


_STALE, _LIVE = _Verdict(stale=True), _Verdict()
_NOT_READY = "its node is not Ready"
_FAILED_OVER = _Verdict(why="its node is failed over, or was declared out of service")
_ABANDONED = "abandoned in phase"


def examine(snapshot: Snapshot, *, release: Collection[str] = ()) -> list[Finding]:
    """Return all our objects in the snapshot's scope, in the order in which they are safe to clear.

    Args:
        snapshot: The cluster.
        release: Nodes that a person has decided to release although they are not back.
    """
    found = [
        *(finding for name in snapshot.nodes for finding in _on_node(snapshot, name, release)),
        *(finding for group in snapshot.ledgers for finding in _in_ledger(snapshot, group, release)),
        *_pauses(snapshot),
        *failovers.examine(snapshot),
        *machines.examine(snapshot),
    ]
    within = [finding for finding in found if snapshot.scope.has(finding)]
    stays = [finding for finding in found if not finding.stale or not snapshot.scope.has(finding)]
    runs = _runs(snapshot, _named(snapshot, within), _named(snapshot, stays))
    return sorted([*within, *runs], key=lambda finding: (ORDER.index(finding.kind), *finding.about[1:]))


def _on_node(snapshot: Snapshot, name: str, release: Collection[str]) -> Iterable[Finding]:
    node = snapshot.nodes[name]
    busy, left = snapshot.worked_on(name), _left_alone(snapshot, name, release)
    cordon, record = node_rules.record(node, CORDON), node_rules.record(node, OPERATION)
    opt_outs, claim = optout_rules.record_of(node), claim_of(node)
    if cordon:
        ours = cordon.get("owner") == ROLE_OWNER
        signs = (
            {**snapshot.signs(snapshot.worker(name)), "alive": busy} if ours else {"holder": str(cordon.get("owner"))}
        )
        verdict = _LIVE if ours and busy else _cordon(snapshot, node, left, ours=ours)
        since = str(cordon.get("since") or "")
        yield Finding("cordon", node=name, since=since, **signs, **verdict.on(_cordoned(node, cordon)))
    if opt_outs:
        alive = busy or snapshot.alive(opt_outs.run)
        verdict = left or (_STALE if opt_outs.run else _unknown(advice_rules.restore_opt_outs(name)))
        yield Finding(
            "opt_outs",
            node=name,
            since=opt_outs.since,
            **{**snapshot.signs(opt_outs.run), "alive": alive},
            **(_LIVE if alive else verdict).on(opt_outs.words()),
        )
    if claim:
        verdict = _LIVE if snapshot.alive(claim.run) else left or _STALE
        yield Finding(
            "claim",
            node=name,
            operation=claim.operation,
            since=claim.since,
            **snapshot.signs(claim.run),
            **verdict.on(f"for {claim.purpose}, operation {claim.operation}"),
        )
    if record and not record.get("result") and not _says_nothing(snapshot, name, record):
        run, operation = str(record.get("run") or ""), str(record.get("id"))
        verdict = left or (_STALE if run else _unknown(advice_rules.remove_record(name, operation)))
        yield Finding(
            "record",
            node=name,
            operation=operation,
            since=str(record.get("since") or ""),
            **snapshot.signs(run),
            **(_LIVE if busy else verdict).on(f"in phase {record.get('phase')} of operation {operation}"),
        )
    yield from _conditions(snapshot, node, busy=busy)


def _says_nothing(snapshot: Snapshot, name: str, record: Mapping[str, Any]) -> bool:
    """Return whether a record is only of a run that waited, and keeps no unfinished one of another operation."""
    return snapshot.only_waited(name) and all(item.get("result") for item in earlier_of(record))


def _conditions(snapshot: Snapshot, node: Object, *, busy: bool) -> Iterable[Finding]:
    """Find our lifecycle conditions and our taint.

    They say that someone works on the node now, or will, so they go also if it is down.
    """
    run, name = lifecycle_rules.run_of(node), node_rules.name(node)
    if run is None:
        return
    mine = [item for item in lifecycle_rules.shown(node) if item["ours"]]
    shown = [item["type"] for item in mine]
    if lifecycle_rules.tainted(node):
        shown.append(f"taint {lifecycle_rules.TAINT['key']}")
    alive = busy or snapshot.alive(run)
    verdict = _STALE if run else _unknown(advice_rules.remove_conditions(node))
    yield Finding(
        "conditions",
        node=name,
        since=min((item["since"] for item in mine), default=""),
        **{**snapshot.signs(run), "alive": alive},
        **(_LIVE if alive else verdict).on(", ".join(shown) or "changed by another writer"),
    )


def _left_alone(snapshot: Snapshot, name: str, release: Collection[str]) -> _Verdict | None:
    """Return why nothing on a node is cleared, regardless of its owner; ``None`` if it may be.

    If a node is down, its opt-outs keep its Machine from being replaced, its slot counts in the budget, and the record
    tells a run that resumes that the node was already rebooted.
    """
    if name in release:
        return None
    node, slot = snapshot.nodes.get(name), snapshot.failed(name)
    if node is None:
        gone = "its node has failed and no longer exists"
        return _Verdict(why=gone, todo=advice_rules.release_deleted_node(name, slot)) if slot else None
    if _is_failed_over(node):
        return _FAILED_OVER
    if not node_rules.ready(node):
        return _Verdict(why=_NOT_READY, todo=advice_rules.repair_node(node))
    if slot is not None:
        return _Verdict(why="its node has failed", todo=advice_rules.check_failed_node(name, slot))
    record = node_rules.record(node, OPERATION) or {}
    if _is_asked_to_reboot(node, record):
        return _Verdict(why="its reboot may still come", todo=advice_rules.resume_reboot(name))
    detail = str(record.get("detail"))
    closed = detail.startswith(_ABANDONED)
    if record.get("result") == "failed" and record.get("phase") == "ready" and not closed:
        failed = "failed its check"
        return _Verdict(why=f"its node {failed}", todo=advice_rules.check_unhealthy_node(name, failed, detail))
    # If a person has uncordoned the node, it is healthy.
    cordoned = node_rules.unschedulable(node) and node_rules.record(node, CORDON)
    if cordoned and (record.get("unchecked") or (unchecked(record) and not closed)):
        # The detail of this record says nothing about the check.
        not_yet = "has not passed its check"
        check = advice_rules.check_unhealthy_node(name, not_yet, "")
        return _Verdict(
            why=f"its node {not_yet}", todo=advice_rules.finish_reboot(name) if is_midway(record) else check
        )
    return None


def _is_failed_over(node: Object) -> bool:
    """Whether its recovery has to undo something. Its machine may still switch off, even if the node is Ready."""
    return FAILOVER in node_rules.annotations_of(node) or taint_of(node) is not None


def _is_asked_to_reboot(node: Object, record: Mapping[str, Any]) -> bool:
    """Whether a run recorded that it reboots the node, and the node is in the boot before that.

    metal3, a BMC or a cloud may act on a request long after the run that sent it died.
    """
    in_phase = (record.get("phase"), record.get("result")) == ("reboot", "")
    return in_phase and record.get("boot_id_before") == node_rules.boot_id(node)


def abandoned(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of an operation on a node, closed with those of other operations that it keeps."""
    closed = {"result": "failed", "detail": f"{_ABANDONED} {record.get('phase')}"}
    earlier = [item if item.get("result") else {**item, **closed} for item in earlier_of(record)]
    return {**record, **closed, **({EARLIER: earlier} if earlier else {})}


def _unknown(advice: str) -> _Verdict:
    return _Verdict(why="it names no run, so it is unknown whether it is in use", todo=advice)


def _cordoned(node: Object, cordon: dict[str, Any]) -> str:
    what = f"cordoned by {cordon.get('owner')} ({cordon.get('reason') or 'no reason given'})"
    if cordon.get("owner") != ROLE_OWNER:
        return what
    why = why_it_stays(node, ROLE_OWNER)
    return f"{what}; the node stays cordoned: {why}" if why else what


def _cordon(snapshot: Snapshot, node: Object, left: _Verdict | None, *, ours: bool) -> _Verdict:
    """Return whether a cordon may be undone on a node that no live run works on."""
    if not ours:
        return _Verdict(why="only its owner undoes it")
    if left:
        return left
    if _is_failed_over(node):
        return _FAILED_OVER
    if not node_rules.ready(node):
        return _Verdict(why=_NOT_READY, todo=advice_rules.run_again(node))
    if any(slot.run == "" and slot.state != FAILED for slot in snapshot.slots(node_rules.name(node))):
        return _Verdict(why="its node has a slot that names no run")
    return _STALE


def _in_ledger(snapshot: Snapshot, group: str, release: Collection[str]) -> Iterable[Finding]:
    ledger = snapshot.ledgers[group]
    staying = set()
    for name, slot in ledger.slots.items():
        verdict = _slot(snapshot, slot, group, release)
        if not verdict.stale:
            staying.add(slot.operation)
        what = f"failed ({slot.reason})" if slot.state == FAILED else slot.state
        yield Finding(
            "slot",
            node=name,
            group=group,
            operation=slot.operation,
            since=slot.since,
            **snapshot.signs(slot.run),
            **verdict.on(f"{what}, group {group}, operation {slot.operation}"),
        )
    for entry in ledger.operations:
        operation, runs = str(entry["id"]), list(entry.get("runs", []))
        dead = [run for run in runs if not snapshot.alive(run)]
        if not dead and not entry.get("unfinished"):
            continue
        live = len(dead) < len(runs)
        verdict = _LIVE if live else _STALE
        if not live and operation in staying:
            verdict = _Verdict(why="one of its slots stays")
        yield Finding(
            "operation",
            group=group,
            operation=operation,
            since=str(entry.get("seen") or ""),
            **{**snapshot.signs(snapshot.last_of(runs)), "alive": live},
            **verdict.on(
                f"{operation} of group {group}, left by {', '.join(dead) or 'a run that ended before all was done'}"
            ),
        )


def _slot(snapshot: Snapshot, slot: Slot, group: str, release: Collection[str]) -> _Verdict:
    name = slot.node
    if snapshot.claimed(name):
        return _LIVE
    if slot.state == FAILED:
        return (_left_alone(snapshot, name, release) if snapshot.failed(name) else None) or _STALE
    if snapshot.alive(slot.run):
        return _LIVE
    if not slot.run:
        return _unknown(advice_rules.release_slot(group, slot))
    return _left_alone(snapshot, name, release) or _STALE


def _pauses(snapshot: Snapshot) -> Iterable[Finding]:
    """Find the pauses of NodeHealthChecks. While one stays, no node of the check is remediated."""
    for check in snapshot.health_checks:
        name = node_rules.name(check)
        for run in health_check_rules.runs_of(check):
            verdict = _LIVE if snapshot.alive(run) else _STALE
            yield Finding("pause", operation=name, **snapshot.signs(run), **verdict.on(f"NodeHealthCheck {name}"))


def _named(snapshot: Snapshot, findings: Iterable[Finding]) -> set[str]:
    """Return the runs that findings name. The run of a cordon follows from the others."""
    named: set[str] = set()
    for finding in findings:
        if finding.kind != "cordon":
            named.add(finding.run)
        if finding.kind == "operation":
            entries = snapshot.ledgers[finding.group].operations
            named.update(run for entry in entries if entry["id"] == finding.operation for run in entry.get("runs", []))
    return named


def _runs(snapshot: Snapshot, within: Collection[str], stays: Collection[str]) -> Iterable[Finding]:
    """Find the runs; with a scope, those that it names. A dead run is cleared if nothing that stays names it."""
    for run in snapshot.runs.values():
        if snapshot.scope != Scope() and run.id not in within:
            continue
        verdict = _LIVE if run.alive(snapshot.now) else _STALE
        if verdict.stale and run.id in stays:
            verdict = _Verdict(why="an object that it left stays")
        yield Finding("run", since=run.began, **snapshot.signs(run.id), **verdict.on(run.holder or "ended"))
