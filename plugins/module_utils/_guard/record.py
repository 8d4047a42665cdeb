# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record what was done for a Machine at a point of its deletion, and release it when all work is done."""

from __future__ import annotations

from typing import Any

from .._api import events, node_rules
from .._api.cluster import Cluster
from .._api.errors import HoldfastError, InvalidInput, NotFound
from .._api.names import MACHINE_GUARD
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._api.watch import retry_conflicts
from .._budget import claim_rules, claims, gate, runs
from .._capi import find as capi
from .._capi import rules as hooks
from .._capi.find import KINDS, MACHINE
from .._fencing import last_look
from . import node as nodes
from . import rules
from .rules import FAILED, RELEASED, REMOVED, Change, Guard

REASON = "MachineGuardFailed"
_HELD = (rules.READY, rules.NOT_READY)


def machine_guard_record(context: Context, params: Params) -> Result:
    """Record a phase, a finished file or a result; see the module of the same name."""
    if not (params.get("phase") or params.get("done") or params.get("result")):
        raise InvalidInput("machine_guard_record needs phase, done or result: what to record.")
    return _GuardRecord(context, params).write()


class _GuardRecord:
    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._params = context, params
        self._management: Cluster = context.management
        self._guard = Guard(params["hook"], params["owner"])
        self._run: str = params["run"]
        self._place = capi.place(self._management, KINDS[MACHINE], params["namespace"], params["machine"])

    def write(self) -> Result:
        ends = bool(self._params.get("result")) and not self._context.check_mode
        try:
            with runs.heartbeat(self._management, self._run):
                before, after, record, state = last_look.repeat(lambda: retry_conflicts(self._attempt))
        except claim_rules.ClaimLost:
            # The heartbeat creates the Lease again that the other run has removed.
            if ends:
                self._end_work(None)
            raise
        if ends:
            self._end_work(after or before)
            if record["result"] == FAILED and after is not None:
                self._report_failure(after, record)
        return {
            "changed": before is not after,
            "record": record,
            "node_state": state,
            "diff": {"before": self._shown(before), "after": self._shown(after)},
        }

    def _attempt(self) -> tuple[Object | None, Object | None, dict[str, Any], str]:
        """Read, decide, and write with the resourceVersion that was read."""
        params, guard, began = self._params, self._guard, last_look.steady()
        machine = self._management.find(self._place.path)
        if machine is None:
            return None, None, self._record_without_machine(), rules.NODE_GONE
        # In check mode, no run has taken the Machine.
        if self._context.check_mode:
            return machine, machine, rules.record_of(machine, guard.hook) or {}, rules.NO_NODE
        ended = rules.ended_before(machine, guard.hook, self._run, params.get("result") or "")
        if ended is not None:
            return machine, machine, ended, rules.NO_NODE
        record = rules.check_claim(machine, guard.hook, self._run)
        result, changes, facts = params.get("result") or "", {}, {}
        found = nodes.Found(None, rules.NO_NODE)
        if params["look"] or result == RELEASED:
            found = nodes.look(self._context.cluster, machine, seen=bool(record.get("saw_node")))
            found.check(machine)
        state = found.state
        if result == RELEASED:
            changes = rules.hooks_to_remove(machine, guard, record["point"])
            if not changes:
                result = REMOVED
            elif found.node is not None:
                facts = self._pass_the_gate(machine, found.node, state)
            elif state == rules.NODE_GONE:
                name, override = str(hooks.node_of(machine)), params["override_holds"]
                held = gate.check_leases(self._context.cluster, name, override_holds=override)
                facts = _overridden(held)
        change = Change(
            phase=params.get("phase") or "",
            done=params.get("done") or "",
            done_at=params.get("done_at") or record["point"],
            result=result,
            detail=params.get("detail") or "",
            facts=facts,
        )
        record = rules.advance(record, change, self._base, self._management.now())
        changes[MACHINE_GUARD] = rules.written(machine, guard.hook, record)
        patch, releases = KINDS[MACHINE].patch(machine, changes), result == RELEASED
        if releases:
            # Without its hook, Cluster API may end the machine at once.
            last_look.check(began)
        return machine, self._management.merge(self._place.path, patch, once=releases), record, state

    def _record_without_machine(self) -> dict[str, Any]:
        if not self._params.get("result"):
            raise NotFound(
                f"Machine {self._params['machine']} is gone: its hook or its finalizers were removed before the work "
                "was done. Check its Node.",
                machine=self._params["machine"],
            )
        return {"result": REMOVED, "detail": self._params.get("detail") or "", "phases": {}, "facts": {}}

    def _pass_the_gate(self, machine: Object, node: Object, state: str) -> dict[str, Any]:
        """Take the last look before Cluster API resumes: it drains the Node, or ends the machine."""
        rules.check_fenced(machine, state)
        if state not in _HELD:
            # A node that is proven to be off interrupts no workload, so holds do not count.
            claim_rules.check(node, self._run)
            return {"off": state}
        override = self._params["override_holds"]
        seen = gate.check(self._context.cluster, node_rules.name(node), override_holds=override, run=self._run)
        return _overridden(seen.overridden)

    @property
    def _base(self) -> str:
        return self._run.rpartition("/")[0]

    def _end_work(self, machine: Object | None) -> None:
        """Release the Node, and end this work's sign of life. If that fails, this worker's next work does it.

        The Lease in the management cluster goes last, because it shows the next work what is left.
        """
        node = hooks.node_of(machine) if machine else self._params.get("node")
        cluster, run = self._context.cluster, self._run
        try:
            if node:
                claims.give_back(cluster, node, run=run)
            if node and cluster is not self._management:
                runs.end(cluster, run)
            runs.end(self._management, run)
        except HoldfastError as error:
            what = f"the claim on Node {node}" if node else "its Lease"
            self._context.warn(
                f"Could not end run {run}, or release {what}; the next work tries again: {error.message}"
            )

    def _report_failure(self, machine: Object, record: dict[str, Any]) -> None:
        text = f"Deletion waits at {record['point']} for hook {self._guard.hook}, whose work failed: {record['detail']}"
        try:
            events.warn(self._management, machine, REASON, text, mark=f"{self._run}/{record['since']}")
        except HoldfastError as error:
            self._context.warn(f"Could not report the failure as an Event of the Machine: {error.message}")

    def _shown(self, machine: Object | None) -> dict[str, Any]:
        if machine is None:
            return {}
        return {
            "hooks": {hook.annotation: hook.owner for hook in hooks.hooks_of(machine)},
            "machine_guard": rules.record_of(machine, self._guard.hook),
        }


def _overridden(holds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the record keeps of overridden holds."""
    held = [f"{hold['namespace']}/{hold['holder']}" for hold in holds]
    return {"overridden_holds": held} if held else {}
