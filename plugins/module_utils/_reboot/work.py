# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a reboot that its start and its end share: record, slot, cordon, opt-outs and claim."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any

from .._api.errors import HoldfastError
from .._api.read_node import read_node
from .._api.runner import Context, Result
from .._budget import claims, lifecycle, lifecycle_rules
from .._budget.claim_rules import PURPOSE
from .._budget.node_operation import node_operation
from .._budget.node_operation_rules import stays_cordoned
from .._budget.slots import reboot_slot, refuse_slot
from .._drain import cordon
from .._nodes import opt_outs
from .silences import Silences

# Options of reboot_slot that have no effect when a slot is returned or fails.
_NO_POLICY = {"max_unavailable": "1", "max_failed": 0, "unhealthy_grace": 0, "pause": 0}


def sets_marks(settings: Mapping[str, Any]) -> bool:
    """Whether the run opts nodes out, or sets labels or annotations of the user on them."""
    return bool(settings["opt_outs"] or settings.get("labels") or settings.get("annotations"))


@dataclass
class Work:
    """One run's work on one node in an operation.

    Attributes:
        silences: The silences of the node's alerts; ``None`` for none.
        conditions: The run shows its work in the lifecycle conditions of the node.
        taint: The node has a taint while it waits for its turn.
        old_after: Seconds after which an earlier reboot of the operation no longer counts.
        changed: Whether something was changed.
        cordon_ended: Our cordon is removed. If the node stays cordoned, someone else wants that.
    """

    context: Context
    node: str
    operation: str
    run: str
    silences: Silences | None = None
    conditions: bool = False
    taint: bool = False
    old_after: float = inf
    changed: bool = False
    cordon_ended: bool = False

    def record(self, phase: str = "", result: str = "", detail: str = "", *, claimed: bool = False) -> dict[str, Any]:
        """Record the phase or the result; return the record."""
        params: dict[str, Any] = {"phase": phase, "result": result, "detail": detail, "claimed": claimed}
        params.update(lifecycle_conditions=self.conditions, prefer_no_schedule=self.taint, old_after=self.old_after)
        found = node_operation(self.context, {"name": self.node, **self._ids, **params})
        self.changed |= found["changed"]
        record: dict[str, Any] = found["operation"] or {}
        return record

    def slot(self, group: str, state: str, **options: Any) -> Result:
        """Take the slot, return it, or record a failure in it."""
        found = reboot_slot(self.context, self._slot_params(group, state, options))
        self.changed |= found["changed"]
        return found

    def refuse_slot(self, group: str, *, returned: bool, **options: Any) -> None:
        """Raise an error if no wait brings the node a slot."""
        refuse_slot(self.context, self._slot_params(group, "present", options), returned=returned)

    def _slot_params(self, group: str, state: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return {**_NO_POLICY, "name": self.node, "group": group, "state": state, **self._ids, **options}

    def uncordon(self, *, phase: str = "", claimed: bool = True) -> Result:
        """Undo our cordon; return its result, and as ``freed`` whether that made the node schedulable.

        Without a phase, the work on the node ends before it is done. Then a cordon that is older than this work stays.

        Args:
            phase: The phase to record with it; empty for none.
            claimed: The run must have the claim. If not, it is enough that no other run has it.
        """
        if not phase and stays_cordoned(read_node(self.context.cluster, self.node)):
            return {"freed": False, "unschedulable": True}
        params: Mapping[str, Any] = {
            "name": self.node,
            "owner": PURPOSE,
            "state": "uncordoned",
            "force": False,
            "run": self.run,
            "claimed": claimed,
            "operation": self.operation if phase else "",
        }
        found = cordon.cordon(self.context, params)
        self.changed |= found["changed"]
        self.cordon_ended |= found["changed"]
        return {**found, "freed": found["changed"] and not found["unschedulable"]}

    def opt_in(self) -> None:
        """Undo the opt-outs, also those of an earlier run with other settings."""
        before, after = opt_outs.put_back(self.context, self.node, run=self.run)
        self.changed |= before.facts != after.facts

    def try_opt_in(self) -> None:
        """Undo the opt-outs of a node that is given back. If that fails, only warn: the next run tries again."""
        try:
            self.opt_in()
        except HoldfastError as error:
            self.context.warn(
                f"The opt-outs of node {self.node} could not be restored: {error.message} The next run on the node "
                "puts them back, or the playbook holdfast.kubernetes.doctor."
            )

    def unclaim(self, *, waits: bool = False) -> None:
        """Give our own claim back, end the silences, and remove our lifecycle conditions; keep another run's claim.

        Args:
            waits: The node waits for another turn, so the conditions that say so stay.
        """
        before, after = claims.give_back(
            self.context.cluster, self.node, run=self.run, context=self.context, waits=waits
        )
        self.changed |= before is not after
        if self.silences is not None:
            self.silences.end()

    def show_waiting(self) -> None:
        """Show that the node waits for its turn."""
        change = lifecycle_rules.waits(conditions=self.conditions, taint=self.taint)
        if change:
            with suppress(HoldfastError):
                lifecycle.show_waiting(self.context, self.node, self._shown, change, old_after=self.old_after)

    def end_waiting(self) -> None:
        """Stop showing that the node waits, for this run or for a dead run."""
        try:
            lifecycle.end_waiting(self.context, self.node, self._shown)
        except HoldfastError as error:
            self.context.warn(
                f"Node {self.node} still shows that it waits for its reboot: {error.message} Run "
                "holdfast.kubernetes.doctor, which removes its condition and its taint."
            )

    def leave(self, group: str, record: str, why: str) -> None:
        """Leave a node that was claimed, before work on it starts.

        Args:
            record: What to record: the phase ``hold``, the result ``skipped``, or nothing.
        """
        if record == "hold":
            self.record(phase="hold")
        elif record:
            self.record(result=record, detail=why)
        self.slot(group, "absent")
        self.unclaim(waits=record == "hold")

    def put_back(self, group: str, record: str, why: str) -> str:
        """Put back a node that is cordoned, and leave it; see :meth:`leave`. Return the outcome as text."""
        found = self.uncordon()
        self.try_opt_in()
        self.leave(group, record, why)
        return "is uncordoned" if found["freed"] else "stays cordoned" if found["unschedulable"] else "is given back"

    @property
    def _shown(self) -> lifecycle_rules.Work:
        return lifecycle_rules.Work(PURPOSE.replace("_", " "), self.operation, self.run)

    @property
    def _ids(self) -> dict[str, str]:
        return {"operation": self.operation, "run": self.run}
