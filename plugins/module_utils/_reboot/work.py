# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a reboot that both its begin and its end need: its record, its slot, and what is given back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._api.runner import Context, Result
from .._budget import claims
from .._budget.claim_rules import PURPOSE
from .._budget.node_operation import node_operation
from .._budget.slots import reboot_slot
from .._drain import cordon
from .._nodes import opt_outs

# Options of reboot_slot that do not matter where a slot is given back or fails.
_NO_POLICY = {"max_unavailable": "1", "max_failed": 0, "unhealthy_grace": 0}


@dataclass
class Work:
    """What one run does to one node, in an operation.

    Attributes:
        opt_outs: The autoscaler and health checks were told to leave the node alone.
        changed: Something was changed.
    """

    context: Context
    node: str
    operation: str
    run: str
    opt_outs: bool = True
    changed: bool = field(default=False)

    def record(self, phase: str = "", result: str = "", detail: str = "", *, claimed: bool = False) -> dict[str, Any]:
        """Record the phase or the result; the record."""
        params = {"phase": phase, "result": result, "detail": detail, "claimed": claimed}
        found = node_operation(self.context, {"name": self.node, **self._ids, **params})
        self.changed |= found["changed"]
        record: dict[str, Any] = found["operation"] or {}
        return record

    def slot(self, group: str, state: str, **options: Any) -> Result:
        """Take the slot, give it back, or have it fail."""
        params = {**_NO_POLICY, "name": self.node, "group": group, "state": state, **self._ids, **options}
        found = reboot_slot(self.context, params)
        self.changed |= found["changed"]
        return found

    def uncordon(self, *, run: str, phase: str = "") -> bool:
        """Undo our cordon; whether there was one to undo.

        Args:
            run: Who needs the claim for it; empty where nobody does.
            phase: The phase that it begins; empty for none.
        """
        params: Mapping[str, Any] = {
            "name": self.node,
            "owner": PURPOSE,
            "state": "uncordoned",
            "force": False,
            "run": run,
            "operation": self.operation if phase else "",
        }
        found = cordon.cordon(self.context, params)
        self.changed |= found["changed"]
        return bool(found["changed"])

    def opt_in(self) -> None:
        """Let the autoscaler and health checks have the node again."""
        if self.opt_outs:
            before, after = opt_outs.put_back(self.context, self.node, run=self.run)
            self.changed |= before.facts != after.facts

    def unclaim(self) -> None:
        """Give our own claim back; another run's stays."""
        before, after = claims.give_back(self.context.cluster, self.node, run=self.run)
        self.changed |= before is not after

    def leave(self, group: str, record: str, why: str) -> None:
        """Leave a node that was claimed and not begun with.

        Args:
            record: What is recorded: the phase ``hold``, the result ``skipped``, or nothing.
        """
        if record == "hold":
            self.record(phase="hold")
        elif record:
            self.record(result=record, detail=why)
        self.slot(group, "absent")
        self.unclaim()

    def put_back(self, group: str) -> None:
        """Put back a node that is cordoned: its holders go on undisturbed, and its turn comes again."""
        self.uncordon(run=self.run)
        self.opt_in()
        self.leave(group, "hold", "")

    @property
    def _ids(self) -> dict[str, str]:
        return {"operation": self.operation, "run": self.run}
