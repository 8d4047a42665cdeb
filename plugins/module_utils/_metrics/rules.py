# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of a cluster in Prometheus' text format.

Times are timestamps. What works changes until the next publication, so a query compares phases and runs with
``holdfast_written_timestamp_seconds``. Source for the format: "Exposition formats" in Prometheus'
documentation, version 0.0.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._api import node_rules
from .._api.names import OPERATION
from .._api.times import from_text
from .._budget.policy_rules import amount
from .._doctor.snapshot_rules import Finding, Snapshot

PREFIX = "holdfast_"
Sample = tuple[Mapping[str, str], float]


@dataclass(frozen=True)
class Facts:
    """What the metrics are about.

    Attributes:
        snapshot: The cluster.
        findings: What the doctor finds in it.
        holds: The holds on nodes, as ``lease_hold_info`` returns them.
        results: The entries of a report or a plan.
        operation: Id of the operation that they are of.
        run: Id of the run.
    """

    snapshot: Snapshot
    findings: Sequence[Finding] = ()
    holds: Sequence[Mapping[str, Any]] = ()
    results: Sequence[Mapping[str, Any]] = ()
    operation: str = ""
    run: str = ""


def text(facts: Facts) -> str:
    """All metrics. A metric without samples is left out."""
    parts = []
    for name, (description, samples) in FAMILIES.items():
        lines = [f"{PREFIX}{name}{_labels(labels)} {value:.15g}\n" for labels, value in samples(facts)]
        if lines:
            parts.append(f"# HELP {PREFIX}{name} {description}\n# TYPE {PREFIX}{name} gauge\n{''.join(lines)}")
    return "".join(parts)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return escaped.encode("utf-8", "replace").decode("utf-8")


def _time(moment: Any) -> float | None:
    """A time of the API in seconds; ``None`` if others wrote something else."""
    try:
        return from_text(str(moment)).timestamp()
    except ValueError:
        return None


def _timed(samples: Iterable[tuple[Mapping[str, str], Any]]) -> Iterator[Sample]:
    for labels, moment in samples:
        seconds = _time(moment)
        if seconds is not None:
            yield labels, seconds


def _required(facts: Facts) -> Iterator[Sample]:
    for entry in facts.results:
        if entry.get("required") is not None:
            yield {"node": str(entry["name"])}, float(entry["required"])


def _records(facts: Facts) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, node in sorted(facts.snapshot.nodes.items()):
        record = node_rules.record(node, OPERATION)
        if record:
            yield name, record


def _of(record: Mapping[str, Any], name: str, key: str) -> dict[str, str]:
    ids = {"operation": str(record.get("id") or ""), "run": str(record.get("run") or "")}
    return {"node": name, **ids, key: str(record.get(key) or "")}


def _phases(facts: Facts) -> Iterator[Sample]:
    unfinished = ((name, record) for name, record in _records(facts) if not record.get("result"))
    yield from _timed((_of(record, name, "phase"), record.get("since")) for name, record in unfinished)


def _results(facts: Facts) -> Iterator[Sample]:
    finished = ((name, record) for name, record in _records(facts) if record.get("result"))
    yield from _timed((_of(record, name, "result"), record.get("since")) for name, record in finished)


def _run_nodes(facts: Facts) -> Iterator[Sample]:
    ids = {"operation": facts.operation, "run": facts.run}
    for result, count in sorted(Counter(str(entry["result"]) for entry in facts.results).items()):
        yield {**ids, "result": result}, count


def _holds(facts: Facts) -> Iterator[Sample]:
    names = ("node", "namespace", "holder")
    yield from _timed(({name: str(hold[name]) for name in names}, hold["acquired"]) for hold in facts.holds)


def _slots(facts: Facts) -> Iterator[Sample]:
    for group, ledger in sorted(facts.snapshot.ledgers.items()):
        states = Counter(slot.state for slot in ledger.slots.values())
        for state in sorted({"active", "failed", *states}):
            yield {"group": group, "state": state}, states[state]


def _budgets(facts: Facts) -> Iterator[Sample]:
    for group, ledger in sorted(facts.snapshot.ledgers.items()):
        if ledger.policy:
            yield {"group": group}, amount(ledger.policy.max_unavailable, ledger.nodes)


def _failures(facts: Facts) -> Iterator[Sample]:
    for group, ledger in sorted(facts.snapshot.ledgers.items()):
        for entry in ledger.operations:
            if entry.get("unfinished") or entry.get("runs"):
                operation = str(entry["id"])
                yield {"group": group, "operation": operation}, ledger.failed(operation)


def _runs(facts: Facts) -> Iterator[Sample]:
    resumed = _resumed(facts.snapshot)
    runs = [run for run in facts.snapshot.runs.values() if not run.ended and run.id not in resumed]
    runs.sort(key=lambda run: run.id)
    yield from _timed(({"run": run.id, "holder": run.holder}, run.renewed) for run in runs)


def _resumed(snapshot: Snapshot) -> set[str]:
    """Return the dead runs whose operation a live run has resumed. Nothing is to be done about them."""
    found: set[str] = set()
    for entry in (entry for ledger in snapshot.ledgers.values() for entry in ledger.operations):
        live = {run for run in entry.get("runs", []) if snapshot.alive(run)}
        found.update(set(entry.get("runs", [])) - live if live else ())
    return found


def _stale(facts: Facts) -> Iterator[Sample]:
    for kind, count in sorted(Counter(finding.kind for finding in facts.findings if finding.stale).items()):
        yield {"kind": kind}, count


def _written(facts: Facts) -> Iterator[Sample]:
    now: datetime = facts.snapshot.now
    yield {}, now.timestamp()


FAMILIES: dict[str, tuple[str, Callable[[Facts], Iterator[Sample]]]] = {
    "reboot_required": ("Whether a node requires a reboot, as the last run or plan saw it.", _required),
    "node_phase_timestamp_seconds": ("Since when a node is in a phase of an unfinished operation.", _phases),
    "node_result_timestamp_seconds": ("When the last operation of a node ended, with its result.", _results),
    "run_nodes": ("Nodes by their result in a run, or in a plan.", _run_nodes),
    "hold_timestamp_seconds": ("Since when a hold keeps a node on.", _holds),
    "slots": ("Slots of a group that are taken.", _slots),
    "budget": ("How many nodes of a group may be unavailable.", _budgets),
    "operation_failed_nodes": ("Failed nodes of an operation that has not ended.", _failures),
    "run_last_sign_timestamp_seconds": ("The last sign of life of a run that has not ended.", _runs),
    "stale_objects": ("Objects of dead runs that the doctor would clear.", _stale),
    "written_timestamp_seconds": ("When these metrics were written.", _written),
}
