# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold in the end: one more run, which nothing disturbs, leaves everything as it should be."""

from __future__ import annotations

from dataclasses import replace

from model.fleet import FAULTS, Run, State
from model.judge import ledgers, must, names, node_path, record_of, slot_of
from model.programs import begin_of
from model.role import Plan

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import CLAIM, CORDON, LIFECYCLE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import claim_of
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import FAILED
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.lifecycle_rules import TYPES
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import Policy

_MOST = 2000
_checked: set[int] = set()


def check_the_end(state: State) -> None:
    """Repair what is broken, let one more run do the rest, and judge what it leaves."""
    state = _repaired(replace(state, left=(0,) * len(FAULTS)))
    plan = _last_plan(state)
    key = hash((frozenset(item.number for item in state.objects.values()), str(plan.variables)))
    if key in _checked:
        return
    _checked.add(key)
    last = replace(state, runs=(Run(plan, (begin_of(plan.begin()),)),))
    for _step in range(_MOST):
        move = next(last.moves(), None)
        if move is None:
            break
        last = move.after
    must(last.runs[0].over, f"the last run never ends: {[str(place.asked) for place in last.runs[0].places]}")
    _judge(last)


def _repaired(state: State) -> State:
    """A repair includes a reboot, also that of a node that failed and is Ready."""
    objects = state.objects
    for name in names(objects):
        node, slot = objects[node_path(name)].content, slot_of(objects, name)
        if (slot and slot.state == FAILED) or not node_rules.ready(node):
            objects = replace(state, objects=objects).booted(name)
    return replace(state, objects=objects)


def _last_plan(state: State) -> Plan:
    """It starts over where marks of another operation than the last open one are left."""
    objects, first = state.objects, state.runs[0].plan
    open_ones = [
        entry["id"]
        for ledger in ledgers(objects)
        for entry in ledger.operations
        if entry.get("runs") or entry.get("unfinished")
    ]
    marks = [slot_of(objects, name) or claim_of(objects[node_path(name)].content) for name in names(objects)]
    others = {mark.operation for mark in marks if mark} - set(open_ones[-1:])
    # Slots keep the policy under which they were given.
    policy = next((ledger.policy for ledger in ledgers(objects) if ledger.slots), None)
    limits = policy or Policy("", "1")
    variables = {key: value for key, value in vars(limits).items() if key != "selector" and value}
    more = {"restart": bool(others), "max_failed": len(marks), "count_others": False, "single_node": True}
    return Plan("last", tuple(names(objects)), {**variables, **more}, first.path, number=99)


def _judge(state: State) -> None:
    objects = state.objects
    kept = objects["judge"].content["kept"]
    for name in names(objects):
        node, record = objects[node_path(name)].content, record_of(objects[node_path(name)])
        must(record.get("result") in ("rebooted", "skipped"), f"promise 6: {name} ends as {record}")
        marks = [mark for mark in (CLAIM, CORDON) if node_rules.record(node, mark)]
        must(not marks, f"promise 3: {name} is left with {marks}")
        shown = [
            kind for kind in (LIFECYCLE, *TYPES) if node_rules.record(node, kind) or node_rules.condition(node, kind)
        ]
        must(not shown, f"{name} is left with {shown}")
        must(node_rules.unschedulable(node) == (name in kept), f"promise 3: {name} is left cordoned, or uncordoned")
    left = [name for ledger in ledgers(objects) for name in ledger.slots]
    must(not left, f"slots of {left} are left")
    must(state.runs[0].lease not in objects, "the Lease of the last run is left")
