# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan never differs from what a run then does, if nothing else happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from model import api
from model.fleet import FAULTS, Run, State
from model.judge import must, names, slot_of
from model.programs import first_place
from model.role import Plan

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.plan_rules import EXCLUDED

# At the time of the model, a Saturday at midnight, this window is closed.
CLOSED = [{"days": ["wed"], "start": "10:00", "end": "11:00"}]
# What a person may set differently for a plan.
SETTINGS: tuple[Mapping[str, Any], ...] = (
    {},
    {"when": "required"},
    {"restart": True},
    {"operation": "kernel"},
    {"windows": CLOSED},
)
# The results of a run by the verdict of the plan.
_RESULTS = {
    "now": {"reboot", "rebooted", "waits for configmaps", "waits for nodes"},
    "later": {"postponed", "waits for leases"},
    "never": {"stopped", "failed", "excluded"},
    "not needed": {"skipped"},
    "failed": {"stopped", "failed"},
    "refused": {"refused"},
}
_MOST = 2000
_checked: set[int] = set()


def forget() -> None:
    """Forget which plans were checked. Needed where the rules have changed."""
    _checked.clear()


def check_plans(state: State, **variables: Any) -> None:
    """Plan each node with each of the settings, and compare the plan with a run.

    Args:
        variables: The other variables of the role.
    """
    for name in names(state.objects):
        for settings in SETTINGS:
            check_plan(state, name, **{**variables, **settings})


def check_plan(state: State, name: str, **variables: Any) -> None:
    """Plan one node, and compare the plan with a run of the same variables."""
    plan = Plan("planned", (name,), variables, number=98)
    key = hash((frozenset(item.number for item in state.objects.values()), plan.key))
    if key in _checked:
        return
    verdict, why = _verdict(state, plan)
    result, detail = _result(state, plan)
    if result == "waits for configmaps" and slot_of(state.objects, name):
        # The run waits for a live run that works on the node. A plan does not foresee what that run leaves.
        return
    ends = f"{result} ({detail}) {variables}"
    must(result in _RESULTS[verdict], f"a plan of {name} says {verdict} ({why}), and a run ends: {ends}")
    _checked.add(key)


def _verdict(state: State, plan: Plan) -> tuple[str, str]:
    """The verdict of a plan of one node, and why. The writes of the plan are dry runs."""
    place = first_place(plan.check_mode())
    while place.asked is not None:
        place = place.after(api.perform(state.objects, place.asked)[1])
    if place.value.get("failed"):
        return "refused", place.value["msg"]
    (entry,) = place.value["nodes"]
    return entry.get("verdict") or entry["result"], entry["detail"]


def _result(state: State, plan: Plan) -> tuple[str, str]:
    """What becomes of the node of a run if nothing else happens: its result, its reboot, or what the run waits for.

    Returns:
        The result, and its reason.
    """
    (name,) = plan.nodes
    alone = replace(state, runs=(Run(plan, (first_place(plan.begin()),)),), left=(0,) * len(FAULTS))
    for now in _still(alone):
        run = now.runs[0]
        if run.turns:
            ended = run.turns[name]["result"]
            return "excluded" if ended["detail"] == EXCLUDED else ended["result"], ended["detail"]
        asked = run.places[0].asked if run.places else None
        if asked is None:
            return "refused", ""
        if asked.verb == "REBOOT":
            return "reboot", ""
    return f"waits for {asked.path.rpartition('/')[2]}", asked.path


def _still(state: State) -> Iterator[State]:
    """The states that the programs come to, until they all wait."""
    for _step in range(_MOST):
        yield state
        move = next(state.moves(still=True), None)
        if move is None:
            return
        state = move.after
    must(False, f"{state.runs[0].plan.run} never ends")
