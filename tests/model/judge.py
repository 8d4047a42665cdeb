# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold at every instant, judged by the objects before and after something happened.

``docs/reliability.md`` has the numbers of the promises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from model import api
from model.api import Objects, Request, Stored
from model.deletion import MACHINES, machine_path
from model.programs import Place

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules, paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import CORDON, OPERATION, OPT_OUTS
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import PURPOSE, claim_of
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import FAILED, Ledger, Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation_rules import (
    record_of as record_in,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import amount
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.rules import hooks_of, is_deleting
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.taint_rules import taint_of
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import rules as guard_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.seen_rules import WENT

# What the objects do not show: the last operations that rebooted each node and did not fail on it since, as many as its
# record keeps; and the nodes that lost their slot as allowed: they came back after a failure, or a person released
# them. And which tasks of the user for a Machine ended well, and which guards were silent for so long that they counted
# as dead. And which run got the slot of a node outside its window, only to return it.
NOTHING: dict[str, Any] = {"reboots": {}, "excused": [], "kept": [], "tasks": [], "late": [], "closed": {}}
# The name and the owner of a guard's hooks.
_HOOK, _OWNER = "machine-guard", "holdfast.kubernetes"
LEDGERS = "/api/v1/namespaces/holdfast/configmaps/group."


@lru_cache(None)
def node_path(name: str) -> str:
    return paths.node(name)


@lru_cache(None)
def hold_path(name: str) -> str:
    """The Lease by which a job holds a node."""
    return paths.lease("team", name)


class Broken(AssertionError):
    """A promise is broken."""


def must(holds: object, promise: str) -> None:
    if not holds:
        raise Broken(promise)


def ledgers(objects: Objects) -> list[Ledger]:
    return [_ledger(item) for path, item in objects.items() if path.startswith(LEDGERS)]


@lru_cache(None)
def _ledger(item: Stored) -> Ledger:
    return Ledger.from_data(item.content["data"])


@lru_cache(None)
def record_of(node: Stored) -> dict[str, Any]:
    return node_rules.record(node.content, OPERATION) or {}


@lru_cache(None)
def _cordoned(node: Stored) -> bool:
    """Whether a run cordoned it, and nobody else."""
    cordon = node_rules.record(node.content, CORDON) or {}
    ours = cordon.get("owner") == PURPOSE and not cordon["unschedulable_before"]
    return ours and node_rules.unschedulable(node.content)


@lru_cache(None)
def tainted(node: Stored) -> bool:
    """Whether it is out of service."""
    return taint_of(node.content) is not None


def power_off(objects: Objects, name: str) -> None:
    """A run switches a machine off."""
    node = objects.get(node_path(name))
    must(node is None or not node_rules.ready(node.content), f"{name} is back, and is switched off")
    must(hold_path(name) not in objects, f"promise 2: {name} is held, and switched off")


def slot_of(objects: Objects, name: str) -> Any:
    return next((ledger.slots[name] for ledger in ledgers(objects) if name in ledger.slots), None)


def names(objects: Objects) -> list[str]:
    return [path[8:] for path in objects if path.startswith("machine/")]


def see(before: Objects, after: Objects, words: tuple[Any, ...], place: Place | None = None) -> Objects:
    """Judge a change; the objects with what has to be remembered of it."""
    if before is after:
        return after
    try:
        return _seen(before, after, words, place)
    except Broken as broken:
        raise Broken(f"{broken}, after {''.join(map(str, words))}") from broken


def _seen(before: Objects, after: Objects, words: tuple[Any, ...], place: Place | None) -> Objects:
    for path, machine in before.items():
        if path.startswith(MACHINES) and after.get(path) is not machine:
            _hooks(machine, after, place)
    known = after["judge"].content
    excused, reboots, closed = set(known["excused"]), dict(known["reboots"]), dict(known["closed"])
    nodes = names(after)
    for ledger in ledgers(after):
        _budget(ledger, len(nodes), after)
    for name in nodes:
        node, machine = after.get(node_path(name)), after[f"machine/{name}"].content
        if node is None:
            # A failover or a person has deleted it.
            continue
        earlier = before.get(node_path(name), node)
        had, has = slot_of(before, name), slot_of(after, name)
        if tainted(node) and not tainted(earlier):
            must(not machine["powered"], f"{name} is out of service, and its machine is on")
        if _cordoned(node) and not _cordoned(earlier):
            must(not has or closed.get(name) != has.run, f"{name} is cordoned outside the window")
            # A reboot that was sent before a person released the node may still come.
            if not machine["sent"]:
                excused.discard(name)
        if not has:
            closed.pop(name, None)
        if has:
            if not had and place is not None and _grant(after, has, place, len(nodes)):
                closed[name] = has.run
        elif had and (had.state == FAILED or words[0] == "the doctor" or _gives_up(place)):
            excused.add(name)
        if record_of(node).get("result") == "failed":
            # It is tried again.
            known_to = reboots.pop(name, [])
            if done := [own for own in known_to if record_in(node.content, own).get("result") == "rebooted"]:
                reboots[name] = done
        if name not in excused and name not in known["kept"]:
            must(has or not _cordoned(node), f"promise 1: {name} is cordoned by a run, and has no slot")
            must(has or not machine["sent"], f"promise 1: {name} goes down without a slot")
        if name in known["kept"]:
            kept = node_rules.unschedulable(node.content)
            must(kept, f"promise 3: {name} is uncordoned, and a person had cordoned it")
    content = {**known, "excused": sorted(excused), "reboots": reboots, "closed": closed}
    return after if content == known else api.write(after, "judge", content)


def _grant(objects: Objects, slot: Slot, place: Place, count: int) -> bool:
    """Judge a slot by the settings of the run, and by the Nodes that it read last.

    Returns:
        The window of the run is closed, and the node's reboot has not begun: the run may only return the slot.
    """
    assert place.call is not None
    settings = place.call.params["settings"]
    ledger = next(ledger for ledger in ledgers(objects) if slot.node in ledger.slots)
    failed, most = ledger.failed(slot.operation), settings["max_failed"]
    must(failed <= most, f"promise 5: {failed} nodes failed, {most} may, and {slot.node} gets a slot")
    if settings["count_others"]:
        away = {
            node_rules.name(item.content)
            for item in place.read
            if not node_rules.ready(item.content) or node_rules.unschedulable(item.content)
        }
        busy, allowed = away | set(ledger.slots), amount(settings["max_unavailable"], count)
        must(len(busy) <= allowed, f"promise 1: {sorted(busy)} are unavailable or have slots, and {allowed} may")
    node = objects[node_path(slot.node)]
    began = record_in(node.content, slot.operation).get("phase") in WENT or _cordoned(node)
    return bool(settings["windows"]) and not began


def _gives_up(place: Place | None) -> bool:
    """Whether a task puts a failed node back as far as it is healthy."""
    return (
        place is not None
        and place.call is not None
        and "failed" in place.call.params
        and bool(place.call.params["failed"])
    )


def _budget(ledger: Ledger, count: int, objects: Objects) -> None:
    if not ledger.slots or ledger.policy is None:
        return
    policy, slots = ledger.policy, ledger.slots.values()
    allowed = amount(policy.max_unavailable, count)
    must(len(slots) <= allowed, f"promise 1: {sorted(ledger.slots)} have slots, and {allowed} may have one")
    domains = Counter(slot.domain for slot in slots)
    each, many = policy.max_unavailable_per_domain, policy.max_domains
    must(
        each is None or max(domains.values()) <= each,
        f"promise 1: slots in the domains {dict(domains)}, {each} allowed in each",
    )
    must(
        many is None or len(domains) <= many, f"promise 1: slots in the domains {dict(domains)}, {many} domains allowed"
    )


def reboot(objects: Objects, name: str, run: str, *, opts_out: bool = False) -> Objects:
    """A run tells a node to reboot.

    Args:
        opts_out: The run opts nodes out of the controllers that would replace them.
    """
    node = objects[node_path(name)]
    claim, record = claim_of(node.content), record_of(node)
    must(hold_path(name) not in objects, f"promise 2: {name} is held, and rebooted")
    must(slot_of(objects, name), f"promise 1: {name} is rebooted without a slot")
    must(claim and claim.run == run, f"{name} is rebooted by {run}, and the claim is {claim}")
    must(objects[f"machine/{name}"].content["drained"], f"promise 4: {name} is rebooted, and was not drained")
    must(not opts_out or node_rules.record(node.content, OPT_OUTS), f"{name} is rebooted without its opt-outs")
    operation, known = record.get("id"), objects["judge"].content
    earlier = known["reboots"].get(name, [])
    must(operation not in earlier, f"promise 6: {name} is rebooted twice in operation {operation}")
    return api.write(objects, "judge", {**known, "reboots": {**known["reboots"], name: [*earlier[-2:], operation]}})


def _hooks(before: Stored, after: Objects, place: Place | None) -> None:
    """Judge a change of a Machine by the hooks that it has lost."""
    machine, name, gone = after.get(before.path), before.content["metadata"]["name"], before.path not in after
    left = {hook.annotation for hook in hooks_of(machine.content)} if machine else set()
    for hook in hooks_of(before.content):
        if hook.annotation in left:
            continue
        must(not gone, f"Machine {name} is gone, and had the hook {hook.annotation}")
        if hook.owner != _OWNER:
            must(place is None, f"promise 8: a run removes the hook {hook.name} of {hook.owner} from Machine {name}")
        elif is_deleting(before.content):
            tasks = set(_tasks_of(place, hook.point, name)) - set(after["judge"].content["tasks"])
            must(not tasks, f"Machine {name} is released at {hook.point}, and these did not end well: {sorted(tasks)}")
            must(hold_path(name) not in after, f"promise 2: {name} is held, and its Machine is released")


def _tasks_of(place: Place | None, point: str, machine: str) -> list[str]:
    """The user's tasks that a run has for a Machine at a point."""
    assert place is not None
    assert place.call is not None
    params = place.call.params
    settings = params["settings"] if "settings" in params else params["begun"]["settings"]
    return [f"{file} for {machine} at {point}" for file in settings[f"{point.replace('-', '_')}_tasks"]]


def tasks_end(objects: Objects, asked: Request, run: str) -> Objects:
    """The user's tasks end well. Those for a Machine are remembered."""
    step, machine, point = (asked.body.get(key) for key in ("step", "machine", "point"))
    if machine is None:
        return objects
    present = objects.get(machine_path(machine))
    record = guard_rules.record_of(present.shown, _HOOK) if present else None
    if record and record["run"].startswith(f"{run}/"):
        again = any(str(step).endswith(name) for name in guard_rules.done_at(record, str(point)))
        must(not again, f"{step} for {machine} at {point} was completed, and runs again")
    known = objects["judge"].content
    done = sorted({*known["tasks"], f"{step} for {machine} at {point}"})
    return api.write(objects, "judge", {**known, "tasks": done})


def at_work(asked: Sequence[Request]) -> None:
    """Live runs are in these tasks of the user at the same time."""
    found = Counter((item.body["machine"], item.body["point"]) for item in asked)
    for (machine, point), count in found.items():
        must(count == 1, f"{count} live runs are in the tasks for {machine} at {point} at the same time")


def was_silent(objects: Objects, run: str) -> Objects:
    """A guard that is paused counts as dead. What it does then may meet with the work of another run."""
    known = objects["judge"].content
    return api.write(objects, "judge", {**known, "late": sorted({*known["late"], run})})
