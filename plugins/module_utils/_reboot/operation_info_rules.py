# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster says about a rolling reboot: the ledgers name its runs, and the record on each Node its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._budget.ledger_rules import Ledger, operation_entry
from .._budget.node_operation_rules import is_midway
from .._budget.operation_rules import only_postponed, postponed_of
from .._shared.bounds import oldest_first, some
from .end_rules import RESULTS, result_of

UNFINISHED, POSTPONED = "unfinished", "postponed"
_BAD = ("failed", "lost", "stopped", "not reported", UNFINISHED)


def latest(ledgers: Iterable[Ledger]) -> str:
    """The operation with the latest sign of life; empty if there is none."""
    entries = [entry for ledger in ledgers for entry in ledger.operations]
    return str(max(entries, key=lambda entry: oldest_first(str(entry.get("seen") or "")))["id"]) if entries else ""


def runs_of(ledgers: Iterable[Ledger], operation: str) -> list[str] | None:
    """The runs of an operation that have not ended; ``None`` if no ledger has the operation."""
    entries = [operation_entry(ledger, operation) for ledger in ledgers]
    known = [entry for entry in entries if "seen" in entry or entry["failures"]]
    return sorted({str(run) for entry in known for run in entry.get("runs") or []}) if known else None


def left_of(ledgers: Iterable[Ledger], operation: str) -> tuple[dict[str, dict[str, str]], bool]:
    """What ended runs have left of an operation.

    A node that was stopped before its work began has no record, and the artifacts of its job may be lost.

    Returns:
        An entry for each node, and whether there are nodes without names.
    """
    entries = [entry for entry in (operation_entry(ledger, operation) for ledger in ledgers) if entry.get("unfinished")]
    found = {}
    for entry in entries:
        left, postponed = entry.get("left"), postponed_of(entry)
        for name, since in left.items() if isinstance(left, dict) else ():
            result = POSTPONED if name in postponed else UNFINISHED
            detail = f"a run that ended at {since} has not done it"
            found[str(name)] = {"name": str(name), "result": result, "detail": detail}
    return found, any(not (entry.get("left") or only_postponed(entry)) for entry in entries)


def entry_of(name: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a node in the report, from the record on its Node."""
    result, detail = str(record.get("result") or ""), str(record.get("detail") or "")
    if not result:
        result = UNFINISHED
        detail = f"phase {record.get('phase') or 'unknown'} since {record.get('since')}, run {record.get('run')}"
    before, after = record.get("boot_id_before"), record.get("boot_id_after")
    found = result_of(name, result, detail, record=record, before=before, after=after)
    return {**found, "since": record.get("since")}


def newest(
    artifact: Mapping[str, Any] | None, record: Mapping[str, Any] | None, left: Mapping[str, Any] | None, name: str
) -> Mapping[str, Any] | None:
    """The entry of a node that counts; ``None`` if nothing is known of the node.

    A node that was stopped or postponed has a record without a result, or none, so that the next run tries it again. A
    plan's verdict is no result.

    Args:
        artifact: Its entry in an earlier job's artifact.
        record: The record on its Node.
        left: Its entry among those that an ended run has left.
    """
    if record and record.get("result"):
        return entry_of(name, record)
    if artifact and artifact["result"] in RESULTS:
        return artifact
    if record and not (left and left["result"] == POSTPONED and not is_midway(record)):
        return entry_of(name, record)
    return left or artifact


def why_not(
    operation: str, runs: Sequence[str] | None, nodes: Iterable[Mapping[str, Any]], *, unnamed: bool = False
) -> str:
    """Why a rolling reboot has not succeeded, as text; empty if it has.

    Args:
        unnamed: An ended run has left nodes, and the cluster does not know their names.
    """
    parts = []
    bad = [f"{node['name']} ({node['result']})" for node in nodes if node["result"] in _BAD]
    if runs is None:
        parts.append(f"No group has an operation {operation}: it has never started, or is too old.")
    elif runs:
        parts.append(
            f"These runs of operation {operation} have not ended: {some(runs)}. Launch them again if they died."
        )
    if bad:
        parts.append(f"Look at these nodes: {some(bad)}.")
    if unnamed and not runs:
        parts.append(f"A run has left nodes of operation {operation}: look at its report, and launch it again.")
    return " ".join(parts)
