# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of ours stands in a cluster, whose it is, and what of it belongs to no live run.

Rules only: objects as they are go in, findings come out, in the order in which they are safe to clear.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from . import _node
from ._claim import claim_of
from ._clock import from_text, seconds_between
from ._cluster import Object
from ._ledger import FAILED, Ledger, Slot
from ._names import CORDON, OPERATION
from ._run import Run

ROLE_OWNER = "rolling_reboot"
ORDER = ("cordon", "claim", "record", "slot", "operation", "run")


@dataclass(frozen=True)
class Finding:
    """One thing of ours.

    Attributes:
        kind: cordon, claim, record (of an operation on a Node), slot, operation or run.
        node: The Node that it is about; empty for operations and runs.
        group: The group whose ledger it is in; empty for what is on a Node.
        operation: Id of the operation that it belongs to.
        run: Id of the run that it belongs to.
        since: Since when it stands.
        last_sign: The run's last sign of life; empty where it left none.
        silent_seconds: Seconds since then; ``None`` without one.
        alive: Whether the run lives.
        stale: Whether it may be cleared: it belongs to no live run, and clearing it breaks nothing.
        why: What it is and, where it is not to be cleared, why not.
    """

    kind: str
    node: str = ""
    group: str = ""
    operation: str = ""
    run: str = ""
    since: str = ""
    last_sign: str = ""
    silent_seconds: int | None = None
    alive: bool = False
    stale: bool = False
    why: str = ""

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Picture:
    """A cluster as the doctor sees it."""

    nodes: Mapping[str, Object]
    ledgers: Mapping[str, Ledger]
    runs: Mapping[str, Run]
    now: datetime

    def alive(self, run: str) -> bool:
        return run in self.runs and self.runs[run].alive(self.now)

    def signs(self, run: str) -> dict[str, Any]:
        """What is known of a run's life, as fields of a finding."""
        if run not in self.runs:
            return {"run": run}
        renewed = self.runs[run].renewed
        return {
            "run": run,
            "last_sign": renewed,
            "silent_seconds": max(0, int(seconds_between(from_text(renewed), self.now))),
            "alive": self.alive(run),
        }

    def failed(self, node: str) -> bool:
        """Whether the node has a failed slot."""
        slots = [ledger.slots[node] for ledger in self.ledgers.values() if node in ledger.slots]
        return any(slot.state == FAILED for slot in slots)

    def worked_on(self, node: str) -> bool:
        """Whether a live run has a claim or an active slot on the node."""
        claim = claim_of(self.nodes[node]) if node in self.nodes else None
        slots = [ledger.slots[node] for ledger in self.ledgers.values() if node in ledger.slots]
        return bool(claim and self.alive(claim.run)) or any(self.alive(slot.run) for slot in slots)


def examine(picture: Picture, *, release: Collection[str] = ()) -> list[Finding]:
    """Everything of ours, in the order in which it is safe to clear.

    Args:
        picture: The cluster.
        release: Nodes whose failed slots a person has decided to release.
    """
    found = [
        *(finding for name in picture.nodes for finding in _on_node(picture, name)),
        *(finding for group in picture.ledgers for finding in _in_ledger(picture, group, release)),
        *_runs(picture),
    ]
    return sorted(found, key=lambda finding: (ORDER.index(finding.kind), finding.group, finding.node, finding.run))


def _on_node(picture: Picture, name: str) -> Iterable[Finding]:
    node = picture.nodes[name]
    busy, ready = picture.worked_on(name), _node.ready(node)
    cordon = _node.record(node, CORDON)
    record = _node.record(node, OPERATION)
    claim = claim_of(node)
    if cordon:
        ours = cordon.get("owner") == ROLE_OWNER
        why = f"cordoned by {cordon.get('owner')}: {cordon.get('reason') or 'no reason given'}"
        if not ours:
            why += "; another owner's cordon is theirs to undo"
        elif not ready and not busy:
            why += f"; it stays, because {_node.not_ready_why(node)}"
        failed = picture.failed(name)
        if failed and ours and ready:
            why += "; it stays, because the node has failed"
        yield Finding(
            "cordon",
            node=name,
            since=str(cordon.get("since") or ""),
            alive=busy,
            stale=ours and not busy and ready and not failed,
            why=why,
        )
    if claim:
        yield Finding(
            "claim",
            node=name,
            operation=claim.operation,
            since=claim.since,
            stale=not picture.alive(claim.run),
            why=f"claimed for {claim.purpose}",
            **picture.signs(claim.run),
        )
    if record and not record.get("result"):
        run = str(record.get("run") or "")
        yield Finding(
            "record",
            node=name,
            operation=str(record.get("id")),
            since=str(record.get("since") or ""),
            stale=not busy and not picture.alive(run),
            why=f"in phase {record.get('phase')}",
            **picture.signs(run),
        )


def _in_ledger(picture: Picture, group: str, release: Collection[str]) -> Iterable[Finding]:
    ledger = picture.ledgers[group]
    for name, slot in ledger.slots.items():
        stale, why = _slot(picture, name, slot, release)
        yield Finding(
            "slot",
            node=name,
            group=group,
            operation=slot.operation,
            since=slot.since,
            stale=stale,
            why=why,
            **picture.signs(slot.run),
        )
    for entry in ledger.operations:
        open_runs = [run for run in entry.get("runs", []) if not picture.alive(run)]
        if open_runs or entry.get("unfinished"):
            live = [run for run in entry.get("runs", []) if picture.alive(run)]
            yield Finding(
                "operation",
                group=group,
                operation=str(entry["id"]),
                since=str(entry.get("seen") or ""),
                alive=bool(live),
                stale=not live,
                why=f"left behind by {', '.join(open_runs) or 'a run that ended with nodes left over'}; the next run "
                "over the group goes on with it",
            )


def _slot(picture: Picture, name: str, slot: Slot, release: Collection[str]) -> tuple[bool, str]:
    if slot.state == FAILED:
        why = f"failed: {slot.reason}"
        released = name in release
        return released, why if released else f"{why}; it stays until the node is Ready with a new boot ID"
    if not slot.run:
        return False, "active; it was taken without a run, so nobody can tell whether somebody works on it"
    node = picture.nodes.get(name)
    if node is not None and not _node.ready(node) and not picture.alive(slot.run):
        return False, f"active, of a dead run; it stays, because {_node.not_ready_why(node)}"
    return not picture.alive(slot.run), "active"


def _runs(picture: Picture) -> Iterable[Finding]:
    for run in picture.runs.values():
        alive = run.alive(picture.now)
        yield Finding("run", stale=not alive, why=f"run of {run.holder or 'nobody any more'}", **picture.signs(run.id))
