# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold in the end: one more run, which nothing disturbs, leaves everything as it should be."""

from __future__ import annotations

from dataclasses import replace

from model import api, host, programs
from model.api import Objects
from model.deletion import machine_path
from model.failover import FailoverPlan
from model.fleet import FAULTS, HISTORY, AnyPlan, Run, State
from model.guard import GuardPlan
from model.judge import ledgers, must, names, node_path, record_of, slot_of, tainted
from model.plan import forget as forget_plans
from model.programs import Call, Program, Tasks, first_place
from model.role import Plan, operation

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import (
    CLAIM,
    CORDON,
    EXCLUDE,
    FAILOVER,
    LIFECYCLE_CONDITIONS,
    OPT_OUTS,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import PURPOSE, claim_of
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import FAILED
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.lifecycle_rules import TYPES
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation_rules import (
    earlier_of,
    unchecked,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import Policy
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.audit_rules import unfinished_of
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.seen_rules import WENT

_MOST = 2000
# Seconds, longer than anything takes in the model.
_PATIENT = 900
_checked: set[int] = set()


def forget() -> None:
    """Forget all steps, and which ends were checked. Needed where the rules have changed."""
    programs.forget()
    forget_plans()
    _checked.clear()


def check_the_end(state: State) -> None:
    """Repair what is broken, let one more run of each role do the rest, and judge what it leaves."""
    state = replace(state, left=(0,) * len(FAULTS))
    key = hash((frozenset(item.number for item in state.objects.values()), tuple(run.plan.run for run in state.runs)))
    if key in _checked:
        return
    _checked.add(key)
    first = state.runs[0].plan
    for name, plan in {run.plan.node: run.plan for run in state.runs if isinstance(run.plan, FailoverPlan)}.items():
        # A run may have the name of an earlier one.
        _judge_back(_alone(state, _back(state, plan.run, name)), name)
        # A node that is down is failed over, and one that is back is refused. Then the way back has to be free.
        state = _alone(state, FailoverPlan(f"last/{name}", name, ways=plan.ways, patience=_PATIENT))
        state = _judge_back(_alone(state, _back(state, f"back/{name}", name)), name)
    for plan in {run.plan.node: run.plan for run in state.runs if isinstance(run.plan, GuardPlan)}.values():
        if machine_path(plan.node) in state.objects:
            state = _alone(state, GuardPlan("last", plan.node, path=plan.path))
        _judge_deleted(state.objects, plan.node)
    if isinstance(first, Plan):
        state = _repaired(state)
        # A node may no longer need its reboot.
        for when in ("always", "required"):
            _judge(_alone(state, _last_plan(state, first, when)), rebooted=when == "always")
        excluded = _excluded(state)
        ended = _alone(excluded, _last_plan(excluded, first, "always"))
        _judge(ended, rebooted=False)
        _judge_excluded(excluded.objects, ended.objects)


def _back(state: State, run: str, node: str) -> FailoverPlan:
    # Without the history, a person says which host is the node's machine.
    named = {"bare_metal_host": node, "bare_metal_host_namespace": host.NAMESPACE}
    asked = host.host_path(node) in state.objects and state.objects["judge"].content.get("forgotten")
    return FailoverPlan(run, node, back=True, patience=_PATIENT, variables=named if asked else {})


def _alone(state: State, plan: AnyPlan) -> State:
    """The state after one more run, which nothing disturbs."""
    # A dead run of the same name may have left its Lease.
    before, state = state.objects, replace(state, runs=(Run(plan, (first_place(plan.begin()),)),))
    for _step in range(_MOST):
        move = next(state.moves(), None)
        if move is None:
            break
        state = move.after
    run = state.runs[0]
    must(run.over, f"{plan.run} never ends: {[str(place.asked) for place in run.places]}")
    left = [path for path in run.leases(state.objects) if state.objects[path] is not before.get(path)]
    must(not left, f"the Lease of {plan.run} is left")
    return state


def doctor(state: State, release: list[str]) -> State:
    """The state after the doctor has cleared what dead runs left. All of its requests come at once."""
    call = Call("Clear", *operation("doctor", {"state": "cleared", "release": release}))

    def tasks() -> Tasks:
        yield call

    place = first_place(Program(f"doctor {release}", tasks))
    while place.asked is not None:
        objects, answer = api.perform(state.objects, place.asked)
        after = state.with_objects(objects, ("the doctor", ": ", place.asked))
        for path in state.changed(objects):
            place = place.aged(path)
        state, place = after, place.after(answer)
    return state


def _judge_back(state: State, name: str) -> State:
    """Judge a node that was failed over and brought back, after the doctor has cleared what dead runs left."""
    state = doctor(state, [])
    objects = state.objects
    must(node_path(name) in objects, f"{name} has no Node after its recovery: its machine is off")
    node = objects[node_path(name)]
    must(node_rules.ready(node.content), f"{name} is not Ready after its recovery")
    must(not tainted(node), f"{name} is out of service after its recovery")
    found = {mark: node_rules.record(node.content, mark) for mark in (CLAIM, CORDON, FAILOVER)}
    marks = {mark: record for mark, record in found.items() if record}
    # What a rolling reboot left stays for its next run.
    ours = [mark for mark, record in marks.items() if PURPOSE not in (record.get("owner"), record.get("purpose"))]
    must(not ours, f"{name} is left with {ours} after its recovery")
    must(marks or not node_rules.unschedulable(node.content), f"{name} is left cordoned after its recovery")
    must(not host.has_key(objects.get(host.host_path(name))), f"the key of {name} is left after its recovery")
    history = objects[HISTORY].content["data"] if HISTORY in objects else {}
    must(name not in unfinished_of(history), f"{name} is not back in the history after its recovery")
    return state


def _judge_deleted(objects: Objects, name: str) -> None:
    """Judge a Machine whose deletion a guard has served. Its hooks and its record go with it."""
    for path in (machine_path(name), node_path(name)):
        must(path not in objects, f"the deletion of Machine {name} never ends: {path} is left")


def _repaired(state: State) -> State:
    """A repair includes a reboot, also of a node that failed and is Ready."""
    objects = state.objects
    for name in names(objects):
        node, slot = objects[node_path(name)].content, slot_of(objects, name)
        if (slot and slot.state == FAILED) or not node_rules.ready(node):
            objects = replace(state, objects=objects).booted(name)
    return replace(state, objects=objects)


def _excluded(state: State) -> State:
    """A person excludes all nodes, also those that a dead run left in the middle."""
    objects = state.objects
    for path in map(node_path, names(objects)):
        content = api.merged(objects[path].content, {"metadata": {"labels": {EXCLUDE: ""}}})
        objects = api.write(objects, path, content)
    return replace(state, objects=objects)


def _last_plan(state: State, first: Plan, when: str) -> Plan:
    """It starts over where marks of another operation than the last open one are left."""
    objects = state.objects
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
    more = {"when": when, "restart": bool(others), "max_failed": len(marks), "count_others": False, "single_node": True}
    return Plan("last", tuple(names(objects)), {**variables, **more}, first.path, number=99)


def _judge_excluded(before: Objects, after: Objects) -> None:
    """Only a reboot that was sent before a person excluded the node is finished."""
    for path in map(node_path, names(before)):
        sent = record_of(before[path]).get("phase") in WENT
        same = node_rules.boot_id(before[path].content) == node_rules.boot_id(after[path].content)
        must(sent or same, f"{path} is excluded, and rebooted")


def _judge(state: State, *, rebooted: bool) -> None:
    objects = state.objects
    kept = objects["judge"].content["kept"]
    stay = set()
    for name in names(objects):
        node, record = objects[node_path(name)].content, record_of(objects[node_path(name)])
        if not rebooted and unchecked(record):
            # Another operation has rebooted it, and nothing shows that it has passed its check.
            stay.add(name)
            continue
        # A run of another operation may have waited for a node that the operation of the last run has rebooted.
        results = {record.get("result"), *(item.get("result") for item in earlier_of(record))}
        must(not rebooted or results & {"rebooted", "skipped"}, f"promise 6: {name} ends as {record}")
        marks = [mark for mark in (CLAIM, CORDON, OPT_OUTS) if node_rules.record(node, mark)]
        must(not marks, f"promise 3: {name} is left with {marks}")
        shown = [
            kind
            for kind in (LIFECYCLE_CONDITIONS, *TYPES)
            if node_rules.record(node, kind) or node_rules.condition(node, kind)
        ]
        must(not shown, f"{name} is left with {shown}")
        must(node_rules.unschedulable(node) == (name in kept), f"promise 3: {name} is left cordoned, or uncordoned")
    left = [name for ledger in ledgers(objects) for name in ledger.slots if name not in stay]
    must(not left, f"slots of {left} are left")
