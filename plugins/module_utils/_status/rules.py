# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all runs in a cluster do: budgets, nodes with their phases, holds, runs, and what the doctor would clear."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._api import node_rules
from .._api.errors import Refused
from .._api.names import CORDON, OPERATION
from .._api.objects import Object
from .._budget.ledger_rules import FAILED as FAILED_SLOT
from .._budget.ledger_rules import Member
from .._budget.node_operation_rules import earlier_of
from .._budget.policy_rules import amount
from .._doctor.rules import ROLE_OWNER, examine
from .._doctor.snapshot_rules import Finding, Snapshot
from .._failover import rules as failover_rules
from .._holds.rules import sentence
from .._progress.board_rules import DONE, FAILED, QUEUED, WAITING, WORKING, Board, Budget, Row, state_of
from .._progress.event_rules import IDLE_PHASES
from .._shared.bounds import moment, some

Hold = dict[str, Any]
_DEAD = "its run is dead; start the same playbook again, which resumes it"


@dataclass(frozen=True)
class Status:
    """The status of a cluster.

    Attributes:
        board: Budgets, and the nodes that a run works on, waits for, or has left.
        holds: All holds, oldest first.
        runs: All runs: ``id``, ``holder``, ``began``, ``last_sign``, ``silent_seconds`` and ``alive``.
        stale: What the doctor would clear.
        todo: What a person has to do.
        now: The time of the API server.
    """

    board: Board
    holds: tuple[Hold, ...]
    runs: tuple[Mapping[str, Any], ...]
    stale: tuple[Finding, ...]
    todo: tuple[str, ...]
    now: datetime


def status_of(snapshot: Snapshot, holds: Collection[Hold], members: Mapping[str, Collection[Member]]) -> Status:
    """Return the status.

    Args:
        snapshot: The cluster as the doctor sees it.
        holds: All holds.
        members: The Nodes of each group whose policy is known.
    """
    findings = examine(snapshot)
    budgets = tuple(
        _budget(snapshot, group, members.get(group)) for group in sorted(snapshot.ledgers) if _in_scope(snapshot, group)
    )
    wanted = [name for name in snapshot.nodes if snapshot.scope.nodes is None or name in snapshot.scope.nodes]
    by_node = {name: [hold for hold in holds if hold["node"] == name] for name in {hold["node"] for hold in holds}}
    rows = [row for name in wanted for row in _rows(snapshot, name, by_node.get(name, []), budgets)]
    return Status(
        board=Board("Status of all runs", (*rows, *_machines(findings)), budgets, runs=True),
        holds=tuple(hold for hold in holds if snapshot.scope.nodes is None or hold["node"] in snapshot.scope.nodes),
        runs=tuple(_run(item) for item in findings if item.kind == "run"),
        stale=tuple(item for item in findings if item.stale),
        todo=tuple(dict.fromkeys(item.todo for item in findings if item.todo)),
        now=snapshot.now,
    )


def _in_scope(snapshot: Snapshot, group: str) -> bool:
    return snapshot.scope.group in ("", group)


def _budget(snapshot: Snapshot, group: str, members: Collection[Member] | None) -> Budget:
    ledger = snapshot.ledgers[group]
    down = {item.name for item in members or () if not item.ready or item.unschedulable}
    allowed = None
    if ledger.policy is not None and members is not None:
        allowed = amount(ledger.policy.max_unavailable, len(members))
    return Budget(group, allowed, tuple(sorted({*ledger.slots, *down})))


def _rows(snapshot: Snapshot, name: str, holds: Collection[Hold], budgets: Collection[Budget]) -> Iterator[Row]:
    """Return the row of a node; none if no run has anything to do with it."""
    node, run = snapshot.nodes[name], snapshot.worker(name)
    failover = _failover(snapshot, node)
    if failover is not None:
        yield failover
        return
    record = node_rules.record(node, OPERATION) or {}
    slot = next(iter(snapshot.slots(name)), None)
    if snapshot.only_waited(name):
        # Its run has reported that it stopped.
        record = next(iter(earlier_of(record)), {})
    phase, result = str(record.get("phase") or ""), str(record.get("result") or "")
    since = _seconds(record.get("since"))
    if slot is not None and slot.state == FAILED_SLOT:
        yield Row(name, FAILED, "failed", _seconds(slot.since), slot.reason, run or slot.run)
    elif record and not result:
        state, why = _progress(snapshot, name, phase, holds, budgets)
        yield Row(name, state, phase, since, why, run)
    elif record and _is_current(snapshot, str(record.get("id"))):
        yield Row(name, state_of(result), result, since, str(record.get("detail") or ""), str(record.get("run") or ""))
    else:
        yield from _cordoned(name, node_rules.record(node, CORDON))


def _progress(
    snapshot: Snapshot, name: str, phase: str, holds: Collection[Hold], budgets: Collection[Budget]
) -> tuple[str, str]:
    """Return the state of a node that is not done, and what it waits for."""
    if not snapshot.worked_on(name):
        return FAILED, _DEAD
    if phase not in IDLE_PHASES:
        return WORKING, f"held by {sentence(list(holds))}" if holds else ""
    if phase == "hold":
        return WAITING, f"held by {sentence(list(holds))}" if holds else "its turn: the hold is released"
    # A limit that is unknown counts as 1. With a limit of 0, the group is paused.
    full = [item for item in budgets if len(item.unavailable) >= (1 if item.allowed is None else item.allowed)]
    return WAITING, "a slot of " + some([item.words() for item in full], separator="; ") if full else "its turn"


def _failover(snapshot: Snapshot, node: Object) -> Row | None:
    """Return the row of a node whose failover or recovery is not over."""
    name = node_rules.name(node)
    try:
        record = failover_rules.record_of(node)
    except Refused as error:
        return Row(name, FAILED, "failover", None, error.message)
    if not record:
        return None
    result, run = str(record.get("result") or ""), str(record.get("run") or "")
    if result:
        return Row(name, state_of(result), result, _seconds(record.get("since")), str(record.get("detail") or ""), run)
    alive = snapshot.alive(run)
    why = "" if alive else _DEAD
    return Row(name, WORKING if alive else FAILED, str(record.get("phase")), _seconds(record.get("since")), why, run)


def _is_current(snapshot: Snapshot, operation: str) -> bool:
    """Return whether an operation has a run that has not ended, or is unfinished."""
    entries = [entry for ledger in snapshot.ledgers.values() for entry in ledger.operations]
    return any(entry["id"] == operation and bool(entry.get("unfinished") or entry.get("runs")) for entry in entries)


def _cordoned(name: str, cordon: Mapping[str, Any] | None) -> Iterator[Row]:
    if cordon:
        owner, reason = cordon.get("owner"), cordon.get("reason") or "no reason given"
        state = FAILED if owner == ROLE_OWNER else QUEUED
        yield Row(name, state, "cordoned", _seconds(cordon.get("since")), f"by {owner} ({reason})")


def _machines(findings: Collection[Finding]) -> Iterator[Row]:
    for item in findings:
        if item.kind == "machine":
            state = WORKING if item.alive else FAILED
            yield Row(item.operation, state, "deletion", _seconds(item.since), item.why, item.run)


def _run(item: Finding) -> dict[str, Any]:
    return {
        "id": item.run,
        "holder": item.holder,
        "began": item.since,
        "last_sign": item.last_sign,
        "silent_seconds": item.silent_seconds,
        "alive": item.alive,
    }


def _seconds(text: object) -> float | None:
    found = moment(text)
    return found.timestamp() if found else None


def stats_of(status: Status) -> dict[str, int]:
    """Return the statistics for the next job of a workflow."""
    states = [row.state for row in status.board.rows]
    return {
        **{f"status_{state}": states.count(state) for state in (WORKING, WAITING, FAILED, DONE)},
        "status_holds": len(status.holds),
        "status_live_runs": sum(bool(run["alive"]) for run in status.runs),
        "status_stale": len(status.stale),
    }


def to_data(status: Status) -> dict[str, Any]:
    """Return the status as plain data, with times as the API writes them."""
    return {
        "groups": [
            {"group": item.group, "allowed": item.allowed, "unavailable": list(item.unavailable)}
            for item in status.board.budgets
        ],
        "nodes": [
            {
                "name": row.name,
                "state": row.state,
                "phase": row.phase,
                "seconds": None if row.since is None else max(0, int(status.now.timestamp() - row.since)),
                "why": row.why,
                "run": row.run,
            }
            for row in status.board.rows
        ],
        "holds": [dict(hold) for hold in status.holds],
        "runs": [dict(run) for run in status.runs],
        "stale": [item.to_data() for item in status.stale],
        "todo": list(status.todo),
    }
