# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster as the doctor sees it, and the findings. Plain data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from .._api import node_rules
from .._api.names import OPERATION
from .._api.objects import Object
from .._api.times import from_text, seconds_between
from .._budget import ledger_rules
from .._budget.claim_rules import claim_of
from .._budget.ledger_rules import ACTIVE, FAILED, Ledger, Slot
from .._budget.node_operation_rules import WAITING
from .._budget.run_rules import Run


@dataclass(frozen=True)
class Finding:
    """One of our objects.

    Attributes:
        kind: cordon, opt_outs, claim, record (of an operation on a Node), conditions, slot, operation, pause,
            failover, taint, key, attachment, machine or run.
        node: The Node that it is about; empty for operations and runs.
        group: The group whose ledger it is in; empty for objects on a Node.
        operation: Id of the operation that it belongs to; of a Machine, its namespace and name; of a pause, the name of
            the NodeHealthCheck.
        run: Id of the run that it belongs to.
        holder: The holder, for people; empty if it left no sign of life. For another owner's cordon, that owner.
        since: Since when it exists.
        last_sign: The run's last sign of life; empty if it left none.
        silent_seconds: Seconds since then; ``None`` without one.
        alive: Whether the run is live.
        stale: Whether it may be cleared: it belongs to no live run, and clearing it breaks nothing.
        why: What it is and, if it is not to be cleared, why not.
        todo: What a person has to do about it; empty for nothing.
    """

    kind: str
    node: str = ""
    group: str = ""
    operation: str = ""
    run: str = ""
    holder: str = ""
    since: str = ""
    last_sign: str = ""
    silent_seconds: int | None = None
    alive: bool = False
    stale: bool = False
    why: str = ""
    todo: str = ""

    @property
    def about(self) -> tuple[str, ...]:
        """What identifies it among the others. The owner of a cordon or an operation follows from other fields."""
        run = "" if self.kind in ("cordon", "operation") else self.run
        return (self.kind, self.node, self.group, self.operation, run)

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Scope:
    """What the doctor was asked to look at; by default, everything.

    Attributes:
        nodes: Objects on these nodes, and their slots.
        group: The ledger of this group; empty for all ledgers.
        operations: Whether to include operations; not for single nodes, because an operation concerns its whole group.
    """

    nodes: frozenset[str] | None = None
    group: str = ""
    operations: bool = True

    def has(self, finding: Finding) -> bool:
        if finding.kind == "operation" and not self.operations:
            return False
        if finding.kind in ("machine", "pause") and not finding.node:
            return self.nodes is None
        here = not finding.node or self.nodes is None or finding.node in self.nodes
        return here and (not finding.group or self.group in ("", finding.group))


@dataclass(frozen=True)
class Snapshot:
    """All Nodes that matter, all ledgers, all runs, and the time.

    Attributes:
        names: The names of all Nodes; ``None`` if not all were looked at.
        hosts: The BareMetalHosts of the management cluster; ``None`` if it has none, or they could not be read.
        elsewhere: The hosts whose Machine is not proven to be a Node of this cluster: namespace/name of the host, and
            Cluster of the Machine.
        attachments: The VolumeAttachments.
        failovers: The entry of the last failover of each node that is not known to be back from it.
        machines: Those of the management cluster that are being deleted and that one of our runs has worked on.
        works: The runs of the management cluster, and whether each is live.
        health_checks: The NodeHealthChecks of medik8s.
    """

    nodes: Mapping[str, Object]
    ledgers: Mapping[str, Ledger]
    runs: Mapping[str, Run]
    now: datetime
    scope: Scope = field(default_factory=Scope)
    names: Collection[str] | None = None
    hosts: Collection[Object] | None = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    attachments: Collection[Object] = ()
    failovers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    machines: Collection[Object] = ()
    works: Mapping[str, bool] = field(default_factory=dict)
    health_checks: Collection[Object] = ()

    def alive(self, run: str) -> bool:
        return run in self.runs and self.runs[run].alive(self.now)

    def signs(self, run: str) -> dict[str, Any]:
        """Return what is known of a run's life, as fields of a finding."""
        if run not in self.runs:
            return {"run": run}
        found = self.runs[run]
        return {
            "run": run,
            "holder": found.holder,
            "last_sign": found.renewed,
            "silent_seconds": max(0, int(seconds_between(from_text(found.renewed), self.now))),
            "alive": self.alive(run),
        }

    def last_of(self, runs: Collection[str]) -> str:
        """Return which of the runs gave the last sign of life; empty if none has left one."""
        known = [run for run in runs if run in self.runs]
        return max(known, key=lambda run: from_text(self.runs[run].renewed), default="")

    def slots(self, node: str) -> Iterator[Slot]:
        """Return the node's slots, of any group."""
        return (ledger.slots[node] for ledger in self.ledgers.values() if node in ledger.slots)

    def healed(self, slot: Slot) -> bool:
        """Return whether the node of a failed slot is back, by the same rule that releases it on a slot request."""
        node = self.nodes.get(slot.node)
        if node is None:
            return False
        members = {slot.node: ledger_rules.member(node, "")}
        return not ledger_rules.heal(Ledger(slots={slot.node: slot}), members).slots

    def failed(self, node: str) -> Slot | None:
        """Return the node's failed slot, as long as the node is not back."""
        return next((slot for slot in self.slots(node) if slot.state == FAILED and not self.healed(slot)), None)

    def claimed(self, node: str) -> bool:
        """Return whether a live run has a claim on the node."""
        claim = claim_of(self.nodes[node]) if node in self.nodes else None
        return claim is not None and self.alive(claim.run)

    def only_waited(self, node: str) -> bool:
        """Return whether the node's record is of a run that ended while it waited: it changed nothing on the node."""
        record = node_rules.record(self.nodes[node], OPERATION) or {}
        waited = record.get("phase") in WAITING and not record.get("result")
        return waited and str(record.get("run") or "") not in self.runs and not any(self.slots(node))

    def workers(self, node: str) -> list[str]:
        """Return the runs that may work on the node, by its claim, its active slots and its unfinished record."""
        found = self.nodes[node]
        claim, record = claim_of(found), node_rules.record(found, OPERATION)
        return [
            *([claim.run] if claim else []),
            *(slot.run for slot in self.slots(node) if slot.state == ACTIVE),
            *([str(record.get("run") or "")] if record and not record.get("result") else []),
        ]

    def worker(self, node: str) -> str:
        """Return the run that works on the node, a live one before a dead one; empty if none is known."""
        workers = [run for run in self.workers(node) if run]
        return next((run for run in workers if self.alive(run)), workers[0] if workers else "")

    def worked_on(self, node: str) -> bool:
        """Return whether a live run works on the node."""
        return any(self.alive(run) for run in self.workers(node))
