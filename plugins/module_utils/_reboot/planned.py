# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the turn of one node: what an admission would do, with the same rules, and without a change or a wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._api.errors import HoldfastError, Refused
from .._api.runner import Context, Params, Result
from .._drain.drain import pods_on
from .._drain.rules import NEVER, NOW, Options
from . import journey_rules as rules
from .admit import Admission
from .end_rules import result_of
from .journey_rules import Step
from .snapshot import Snapshot

# Steps that only read.
_LOOKS = (rules.LOOK, rules.LOOK_AT_ETCD, rules.LOOK_AT_WINDOW)


def plan_turn(context: Context, params: Params, snapshot: Snapshot) -> Result:
    """Plan a node's turn.

    Args:
        context: The context of a plan, see :func:`.snapshot.planning`.
        params: The options of the module ``reboot_turn``.
        snapshot: Answers what stops the node's drain.
    """
    plan = _Plan(context, params, snapshot)
    try:
        return plan.run()
    except HoldfastError as error:
        return plan.failed(error)


def plan_failed(context: Context, params: Params, snapshot: Snapshot, error: HoldfastError) -> Result:
    """The plan of a node that can't be judged."""
    return _Plan(context, params, snapshot).failed(error)


class _Plan(Admission):
    """One request for the plan of a turn."""

    def __init__(self, context: Context, params: Params, snapshot: Snapshot) -> None:
        super().__init__(context, params)
        self._snapshot = snapshot

    def run(self) -> Result:
        while True:
            step = rules.decision(self._facts)
            if step.name == rules.ASK:
                return self._answer(step)
            if step.name in _LOOKS:
                self._facts = self._carry_out[step.name](step)
            elif not rules.gives_back_first(step, self._facts):
                return self._plan(step)
            elif why := self._why_no_slot():
                return self._planned("planned", why, verdict=NEVER)
            else:
                self._facts = self._facts.given_back()

    def _plan(self, step: Step) -> Result:
        """What a run would do.

        If the node could start now, a refusal of its slot counts, too, and its drain if it still has to be drained.
        """
        self._warn()
        if step.error == "unknown":
            raise Refused(step.why, node=self._settings.node)
        found = rules.plan_of(step, self._facts)
        if found.verdict == NOW and (why := self._why_no_slot()):
            found = rules.Verdict(NEVER, why)
        if found.verdict == NOW and "drain" in rules.steps_left(self._facts):
            found = self._plan_with_drain(found)
        return self._planned("planned", found.why, verdict=found.verdict)

    def _why_no_slot(self) -> str:
        """Why the node gets no slot however long it waits; empty if it may get one."""
        # The playbook has a pass that returns the slots of nodes whose reboot has not begun.
        returned = self._settings.in_turns and not self._facts.midway
        try:
            self._work.refuse_slot(self._budget.group, returned=returned, **self._slot_options(wait_timeout=0))
        except Refused as error:
            return error.message
        return ""

    def _plan_with_drain(self, found: rules.Verdict) -> rules.Verdict:
        params = self._params
        options = Options(force=params["force"], delete_emptydir=params["delete_emptydir"])
        selects = bool(params.get("pod_selector") or params.get("delete_selector"))
        drain = self._snapshot.drain(self._settings.node, options, every=selects)
        blockers = self._selected(drain["blockers"], params.get("pod_selector"))
        refused = [item for item in blockers if item.get("pdb")]
        if params["disable_eviction"]:
            # Budgets do not stop this drain, but other pods may.
            blockers, refused = [item for item in blockers if item not in refused], []
        after = params.get("delete_after")
        deletes = self._selected(refused, params.get("delete_selector")) if after is not None else []
        return rules.plan_with_drain(found, blockers, deletes=deletes, delete_after=after)

    def _selected(self, blockers: Sequence[Mapping[str, Any]], selector: str | None) -> list[Mapping[str, Any]]:
        """The blockers among the pods that a label selector selects; all of them without one."""
        if not selector or not blockers:
            return list(blockers)
        names = {pod.full_name for pod in pods_on(self._cluster, self._settings.node, selector)}
        return [item for item in blockers if f"{item['namespace']}/{item['name']}" in names]

    def failed(self, error: HoldfastError) -> Result:
        return self._planned("failed", error.message)

    def _planned(self, result: str, why: str, **more: str) -> Result:
        seen = self._facts.node
        entry = result_of(seen.name, result, why, record={}, before=seen.boot_id, after=seen.boot_id)
        return {
            "changed": False,
            "step": "planned",
            "why": why,
            "steps": [],
            "result": {**entry, **more},
            **self.progress(),
        }
