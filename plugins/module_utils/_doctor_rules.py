# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of ours stands in a cluster, whose it is, and what of it belongs to no live run.

Rules only: objects as they are go in, findings come out, in the order in which they are safe to clear.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from . import _node, _opt_outs
from ._claim import claim_of
from ._clock import from_text, seconds_between
from ._cluster import Object
from ._ledger import FAILED, Ledger, Slot
from ._names import CORDON, OPERATION
from ._run import Run

ROLE_OWNER = "rolling_reboot"
ORDER = ("cordon", "opt_outs", "claim", "record", "slot", "operation", "run")


@dataclass(frozen=True)
class Finding:
    """One thing of ours.

    Attributes:
        kind: cordon, opt_outs, claim, record (of an operation on a Node), slot, operation or run.
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

    @property
    def about(self) -> tuple[str, ...]:
        """What tells it from the others."""
        return (self.kind, self.node, self.group, self.operation, self.run)

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Scope:
    """What the doctor was asked to look at; without anything all that there is.

    Attributes:
        nodes: What is on these nodes, and their slots.
        group: What is in the ledger of this group; all ledgers without.
        operations: Operations too. Of single nodes there are none: what becomes of one is for its whole group to say.
    """

    nodes: frozenset[str] | None = None
    group: str = ""
    operations: bool = True

    def has(self, finding: Finding) -> bool:
        if finding.kind == "operation" and not self.operations:
            return False
        here = not finding.node or self.nodes is None or finding.node in self.nodes
        return here and (not finding.group or self.group in ("", finding.group))


@dataclass(frozen=True)
class Picture:
    """A cluster as the doctor sees it."""

    nodes: Mapping[str, Object]
    ledgers: Mapping[str, Ledger]
    runs: Mapping[str, Run]
    now: datetime
    scope: Scope = field(default_factory=Scope)

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

    def claimed(self, node: str) -> bool:
        """Whether a live run has a claim on the node."""
        claim = claim_of(self.nodes[node]) if node in self.nodes else None
        return claim is not None and self.alive(claim.run)

    def worked_on(self, node: str) -> bool:
        """Whether a live run has a claim or an active slot on the node."""
        slots = [ledger.slots[node] for ledger in self.ledgers.values() if node in ledger.slots]
        return self.claimed(node) or any(self.alive(slot.run) for slot in slots if slot.state != FAILED)


def examine(picture: Picture, *, release: Collection[str] = ()) -> list[Finding]:
    """Everything of ours that the picture's scope has, in the order in which it is safe to clear.

    Args:
        picture: The cluster.
        release: Nodes that a person has decided to release although they have not come back.
    """
    found = [
        *(finding for name in picture.nodes for finding in _on_node(picture, name, release)),
        *(finding for group in picture.ledgers for finding in _in_ledger(picture, group, release)),
    ]
    within = [finding for finding in found if picture.scope.has(finding)]
    stays = [finding for finding in found if not finding.stale or not picture.scope.has(finding)]
    runs = _runs(picture, _named(picture, within), _named(picture, stays))
    return sorted([*within, *runs], key=lambda finding: (ORDER.index(finding.kind), *finding.about[1:]))


def _on_node(picture: Picture, name: str, release: Collection[str]) -> Iterable[Finding]:
    node = picture.nodes[name]
    busy, ready = picture.worked_on(name), _node.ready(node)
    cordon = _node.record(node, CORDON)
    record = _node.record(node, OPERATION)
    opt_outs = _opt_outs.record_of(node)
    claim = claim_of(node)
    if cordon:
        ours = cordon.get("owner") == ROLE_OWNER
        why = f"cordoned by {cordon.get('owner')}: {cordon.get('reason') or 'no reason given'}"
        if not ours:
            why += "; another owner's cordon is theirs to undo"
        elif not ready and not busy:
            why += f"; it stays, because {_node.not_ready_why(node)}"
        failed = picture.failed(name) and name not in release
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
    if opt_outs:
        stale, why = _told(picture, node, opt_outs, name in release)
        yield Finding(
            "opt_outs",
            node=name,
            since=opt_outs.since,
            stale=stale,
            why=why,
            **{**picture.signs(opt_outs.run), "alive": busy or picture.alive(opt_outs.run)},
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


def _told(picture: Picture, node: Object, opt_outs: _opt_outs.OptOuts, released: bool) -> tuple[bool, str]:
    """Whether opt-outs may be put back. On a node that is down they are what keeps its Machine from being replaced."""
    if not opt_outs.run:
        return False, f"{opt_outs.words()}; set without a run, so nobody can tell whether somebody works on the node"
    if picture.worked_on(_node.name(node)) or picture.alive(opt_outs.run):
        return False, opt_outs.words()
    if not _node.ready(node) and not released:
        return False, f"{opt_outs.words()}; it stays, because {_node.not_ready_why(node)}"
    return True, opt_outs.words()


def _in_ledger(picture: Picture, group: str, release: Collection[str]) -> Iterable[Finding]:
    ledger = picture.ledgers[group]
    for name, slot in ledger.slots.items():
        stale, why = _slot(picture, name, slot, name in release)
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


def _slot(picture: Picture, name: str, slot: Slot, released: bool) -> tuple[bool, str]:
    if slot.state == FAILED:
        why = f"failed: {slot.reason}"
        if released:
            return not picture.claimed(name), why
        return False, f"{why}; it stays until the node is Ready with a new boot ID"
    if not slot.run:
        return False, "active; it was taken without a run, so nobody can tell whether somebody works on it"
    if picture.alive(slot.run) or picture.claimed(name):
        return False, "active"
    node = picture.nodes.get(name)
    if node is not None and not _node.ready(node) and not released:
        return False, f"active, of a dead run; it stays, because {_node.not_ready_why(node)}"
    return True, "active"


def _named(picture: Picture, findings: Iterable[Finding]) -> set[str]:
    """The runs that findings name."""
    named: set[str] = set()
    for finding in findings:
        named.add(finding.run)
        if finding.kind == "operation":
            entries = picture.ledgers[finding.group].operations
            named.update(run for entry in entries if entry["id"] == finding.operation for run in entry.get("runs", []))
    return named


def _runs(picture: Picture, within: Collection[str], stays: Collection[str]) -> Iterable[Finding]:
    """The runs; with a scope those that something in it names. A dead one goes when nothing that stays names it."""
    for run in picture.runs.values():
        if picture.scope != Scope() and run.id not in within:
            continue
        alive = run.alive(picture.now)
        why = f"run of {run.holder or 'nobody any more'}"
        if not alive and run.id in stays:
            why += "; its last sign of life stays as long as something that it left"
        yield Finding("run", stale=not alive and run.id not in stays, why=why, **picture.signs(run.id))
