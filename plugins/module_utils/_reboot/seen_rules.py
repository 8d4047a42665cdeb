# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one look at a node shows about its reboot: its holds, and the progress of an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any

from .._api import node_rules
from .._api.names import CORDON, EXCLUDE, FAILOVER, OPERATION, OPT_OUTS, OUT_OF_SERVICE
from .._api.objects import Object
from .._budget.claim_rules import PURPOSE, Claim, claim_of
from .._budget.ledger_rules import ACTIVE, FAILED
from .._budget.lifecycle_rules import others_words, run_of
from .._budget.node_operation_rules import is_old, phases_of, record_of, unchecked
from .._drain.cordon_rules import others_cordon
from .plan_rules import why_blocked, why_held
from .quorum_rules import CONTROL_PLANE

# The phases in which a run works on a node, and those from the reboot on.
WORK = ("cordon", "drain", "reboot", "ready", "uncordon")
WENT = ("reboot", "ready", "uncordon")


@dataclass(frozen=True)
class Record:
    """A Node's record of an operation.

    Attributes:
        old: The record is so old that its result says nothing about the node now.
        unchecked: A run has sent the node's reboot, and the node has not passed its check since.
    """

    id: str = ""
    phase: str = ""
    result: str = ""
    boot_id_before: str = ""
    old: bool = False
    unchecked: bool = False


@dataclass(frozen=True)
class SlotSeen:
    """The slot of a node in its group."""

    run: str
    operation: str
    state: str = ACTIVE


@dataclass(frozen=True)
class Seen:
    """A node at one moment.

    Attributes:
        exists: Whether the Node exists. If not, the other attributes mean nothing.
        cordoned_by: The part of this collection that cordoned the node; empty if none did.
        failed_over: Why the node must be brought back by a recovery first, as text; empty if it need not.
        claim: The claim on the node; ``None`` if no run has one.
        held: Why holds forbid the reboot, as text; empty if none does, or if they are overridden.
        blocked: Why pods or alerts forbid the reboot, as text; empty if none does.
        maintained: Which other writer maintains the node, as text; empty if none does, or if it is overridden.
        shown: The lifecycle conditions of the node show work of this collection.
        stuck: Why a dead run of another operation keeps the node from this one, as text; empty if none does.
        failover: A failover has left its record on the node.
        uncordoned: Someone has uncordoned the node, and left the annotation of its cordon.
        cordoned_again: Someone has done so, and another client has cordoned the node since.
        opted_out: A run has set opt-outs, and they are not undone.
    """

    name: str
    exists: bool = True
    ready: bool = True
    boot_id: str = ""
    excluded: bool = False
    control_plane: bool = False
    cordoned_by: str = ""
    failed_over: str = ""
    record: Record = Record()
    phases: Mapping[str, float] | None = None
    claim: Claim | None = None
    slot: SlotSeen | None = None
    held: str = ""
    blocked: str = ""
    maintained: str = ""
    shown: bool = False
    stuck: str = ""
    failover: bool = False
    uncordoned: bool = False
    cordoned_again: bool = False
    opted_out: bool = False

    @property
    def why_later(self) -> str:
        """Why the node can only be rebooted later; empty if nothing forbids the reboot."""
        return "; ".join(filter(None, (self.held, self.blocked)))

    @property
    def others_work(self) -> bool:
        """Whether the node is failed over, or other work of this collection has cordoned it."""
        return bool(self.failed_over) or self.cordoned_by not in ("", PURPOSE)

    def new_boot(self) -> bool:
        """Whether the node has booted since its reboot was recorded, or, if it failed, since the work on it began."""
        phases = WORK if self.record.result == "failed" else WENT
        return self.record.phase in phases and self.boot_id != self.record.boot_id_before

    def midway(self, operation: str) -> bool:
        """Whether a run of the operation left the node in the middle of its reboot.

        That run was killed, or the node failed. Before the reboot, the node is midway only under our cordon: without
        it, a run has given the node back. A failed node resumes if it has its new boot or still has our cordon:
        someone repaired it, and only the remaining steps are taken. If it failed before its reboot, both are needed.
        """
        record = self.record
        if record.id != operation or record.phase not in WORK or record.result not in ("", "failed"):
            return False
        signs = (record.phase in WENT, self.new_boot(), self.cordoned_by == PURPOSE)
        return sum(signs) >= (2 if record.result else 1)

    def went(self, operation: str) -> bool:
        """Whether the reboot of a node that is midway was sent, or happened: only its remaining steps are left."""
        return self.midway(operation) and (self.record.phase in WENT or self.new_boot())

    def under_way(self, operation: str) -> bool:
        """Whether a node that is midway can't be given back before its reboot: it is down, or may go down any time.

        It can be given back if someone has uncordoned it since, or if its reboot failed.
        """
        if not self.midway(operation) or self.new_boot():
            return self.midway(operation)
        return not self.record.result and (not self.ready or (self.went(operation) and self.under_our_cordon))

    @property
    def under_our_cordon(self) -> bool:
        """Whether the node is cordoned for a rolling reboot, and nobody has uncordoned it since."""
        return self.cordoned_by == PURPOSE and not (self.uncordoned or self.cordoned_again)

    def rebooted(self, operation: str) -> bool:
        """Whether a node that is midway has its new boot."""
        return self.midway(operation) and self.new_boot()

    def sent(self, operation: str) -> bool:
        """Whether a reboot of a node that is midway was requested, without a sign that it rebooted."""
        return self.midway(operation) and self.record.phase == "reboot" and not self.new_boot()

    def past_holds(self, operation: str) -> bool:
        """Whether it is too late to uncordon a node whose reboot an earlier run began: it goes down, or is down."""
        return self.midway(operation) and (self.record.phase == "reboot" or not self.ready)

    def boot_id_before(self, operation: str) -> str:
        """ID of the boot that the reboot is to end."""
        return self.record.boot_id_before if self.went(operation) else self.boot_id

    @property
    def keeps_cordon(self) -> str:
        """Why the cordon of a rolling reboot has to stay if no run resumes it, as text; empty if it need not stay."""
        if self.uncordoned:
            return ""
        if self.failover or self.failed_over:
            return "a failover has worked on it"
        if not self.ready:
            return "it is not Ready"
        if self.failed:
            return "its reboot failed"
        if self.record.unchecked:
            return "it has not passed its check since its reboot was sent"
        return ""

    @property
    def may_opt_in(self) -> bool:
        """Whether the opt-outs of a run may be undone if no run works on the node."""
        return self.opted_out and self.ready and not (self.others_work or self.keeps_cordon)

    def left_by_another(self, run: str, operation: str, *, restart: bool) -> bool:
        """Whether another run has the claim or the slot, and this run gets them if that run is dead.

        Args:
            restart: Also those of other operations.
        """
        claim, slot = self.claim, self.slot
        claimed = claim is not None and claim.run != run and claim.purpose == PURPOSE
        operations = [claim.operation] if claim is not None and claimed else []
        # Nothing shows whether a run without a name is dead.
        operations += [slot.operation] if slot is not None and slot.run not in ("", run) else []
        return any(restart or other == operation for other in operations)

    @property
    def failed(self) -> bool:
        """Whether the node keeps its slot because it failed."""
        return self.slot is not None and self.slot.state == FAILED

    def slot_is(self, run: str, operation: str) -> bool:
        """Whether the run has the slot. The slot may pass to another run before the claim."""
        slot = self.slot
        return slot is not None and (slot.run, slot.operation, slot.state) == (run, operation, ACTIVE)


def read_seen(
    name: str,
    node: Object | None,
    operation: str,
    *,
    holds: Sequence[Mapping[str, Any]] = (),
    slot: Mapping[str, Any] | None = None,
    blockers: Sequence[Mapping[str, Any]] = (),
    override_holds: bool = False,
    override_maintenance: bool = False,
    now: datetime | None = None,
    old_after: float = inf,
    stuck: str = "",
) -> Seen:
    """Read the Node and its related objects.

    Args:
        name: Name of the Node.
        node: The Node object; ``None`` if it does not exist.
        operation: The operation whose record counts. If there is none, that of another operation does.
        holds: The holds on the node, in the format of results.
        slot: Its slot, in the ledger's format.
        blockers: Pods and alerts that forbid the reboot, in the format of results.
        override_holds: Ignore holds.
        override_maintenance: Ignore other writers that maintain the node.
        now: The time, to tell the age of the record; ``None`` if it does not matter.
        old_after: Seconds after which the record is old.
        stuck: Why a dead run of another operation keeps the node from this one.
    """
    if node is None:
        return Seen(name, exists=False)
    present = node_rules.record(node, OPERATION) or {}
    own = record_of(node, operation)
    record = own or present
    inhibited = node_rules.refuses_shutdown(node)
    return Seen(
        name=name,
        ready=node_rules.ready(node),
        boot_id=node_rules.boot_id(node),
        excluded=EXCLUDE in node_rules.labels_of(node),
        control_plane=CONTROL_PLANE in node_rules.labels_of(node),
        cordoned_by=str((node_rules.record(node, CORDON) or {}).get("owner") or ""),
        failed_over=_why_failed_over(node),
        record=Record(
            **{key: str(record.get(key) or "") for key in ("id", "phase", "result", "boot_id_before")},
            unchecked=unchecked(present),
            old=now is not None and is_old(record, now, old_after),
        ),
        phases=phases_of(own),
        claim=claim_of(node),
        slot=SlotSeen(str(slot["run"]), str(slot["operation"]), str(slot["state"])) if slot else None,
        held="" if override_holds else "; ".join(why_held(holds, node_rules.inhibited_by(node), inhibited=inhibited)),
        blocked="; ".join(why_blocked(blockers)),
        maintained="" if override_maintenance else others_words(node),
        shown=run_of(node) is not None,
        stuck=stuck,
        failover=FAILOVER in node_rules.annotations_of(node),
        uncordoned=not node_rules.unschedulable(node),
        cordoned_again=bool(others_cordon(node)),
        opted_out=bool((node_rules.record(node, OPT_OUTS) or {}).get("run")),
    )


def _why_failed_over(node: Object) -> str:
    """Return why the machine may be off for a failover, so that a reboot could switch it on."""
    if any(taint.get("key") == OUT_OF_SERVICE for taint in node_rules.taints(node)):
        return f"it has the taint {OUT_OF_SERVICE}"
    if FAILOVER in node_rules.annotations_of(node) and not node_rules.ready(node):
        return "its failover has not ended"
    return ""
