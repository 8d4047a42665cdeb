# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on deletion hooks: set, remove, wait until a deletion waits for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._api.errors import HoldfastError, InvalidInput, NotFound, TimedOut
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline, retry_conflicts, wait_for
from . import find as capi
from . import rules
from .find import KINDS, MACHINE, Kind, Place
from .rules import CannotHold, WhyNot

_ENDED = {
    "gone": "the Machine is gone, and its deletion did not wait for the hook",
    "removed": "the hook was removed",
    "past": "the deletion passed that point without waiting for the hook",
}


@dataclass(frozen=True)
class _HookOnMachine:
    """Our hook, and the UID of the Machine that has it: a later Machine may get the same name."""

    key: str
    uid: str


def deletion_hook(context: Context, params: Params) -> Result:
    """Set or remove one hook on a Machine or on a template."""
    key = _checked(params)
    if params["kind"] == MACHINE:
        return _on_machine(context, params, key)
    found = capi.place(context.management, KINDS[params["kind"]], params["namespace"], params["machine"])
    before, after = retry_conflicts(lambda: _attempt(context, params, found, key))
    return _result(KINDS[params["kind"]], before, after)


def _checked(params: Params) -> str:
    """Return the annotation, after checking that the options fit together."""
    key = rules.key_of(params["point"], params["hook"])
    if not params["owner"].strip():
        raise InvalidInput("owner must not be empty. Name the owner that will remove the hook: only that owner can.")
    machine, node, kind = params.get("machine"), params.get("node"), params["kind"]
    if bool(machine) == bool(node):
        raise InvalidInput("Give exactly one of machine and node.")
    if node and kind != MACHINE:
        raise InvalidInput(f"node names the Node of a Machine, not a {kind}. Name the {kind} with machine.")
    if machine and not params.get("namespace"):
        raise InvalidInput(f"namespace is missing: the namespace of {kind} {machine}.")
    if params["unless_deleting"] and (params["state"] != "absent" or kind != MACHINE):
        raise InvalidInput("unless_deleting needs state: absent and kind: Machine. It prevents the removal of a hook.")
    if params["wait_for"] != "none":
        if kind != MACHINE:
            raise InvalidInput(f"wait_for: deletion waits for one Machine, not for the Machines of a {kind}.")
        if params["state"] == "absent":
            raise InvalidInput("wait_for: deletion needs state: present. No deletion waits for a hook that is removed.")
    return key


def _on_machine(context: Context, params: Params, key: str) -> Result:
    deadline = Deadline(params["wait_timeout"])
    found = _find(context, params)
    if found is None:
        return _result(KINDS[MACHINE], None, None)
    before, after = retry_conflicts(lambda: _attempt(context, params, found, key))
    if params["wait_for"] == "deletion" and not context.check_mode and after:
        try:
            last = _await(context, params, found, _HookOnMachine(key, after["metadata"]["uid"]), deadline)
        except HoldfastError as error:
            error.fields["changed"] = before is not after
            raise
        return {**_result(KINDS[MACHINE], before, after), **_state(last), "waited": round(deadline.elapsed, 3)}
    if params["state"] == "absent" and after and before is not after:
        _warn_of_template(context, before, key)
    result = _result(KINDS[MACHINE], before, after)
    if params["unless_deleting"] and after and rules.kept_while_deleting(after, key):
        context.warn(
            f"The hook {key} of Machine {after['metadata']['name']} was not removed: the Machine is being deleted, and "
            "the work that the hook waits for is not done. Let that work finish, or remove the hook without "
            "unless_deleting."
        )
        result["kept"] = True
    return result


def _find(context: Context, params: Params) -> Place | None:
    node, namespace = params.get("node"), params.get("namespace")
    if not node:
        return capi.place(context.management, KINDS[MACHINE], str(namespace), params["machine"])
    found = capi.of_node(context, node, namespace)
    if found is None and params["state"] == "present":
        raise NotFound(
            f"No Machine is Node {node}: the Node does not name one, and no Machine in this cluster names the Node. If "
            "the Machines are in a management cluster, give its options in management.",
            node=node,
        )
    return found


def _attempt(context: Context, params: Params, found: Place, key: str) -> tuple[Object | None, Object | None]:
    """Read, decide, and write with the resourceVersion that was read."""
    kind, present = KINDS[params["kind"]], params["state"] == "present"
    item = context.management.find(found.path)
    if item is None and present:
        raise NotFound(
            f"There is no {params['kind']} {found.name} in the namespace {params['namespace'] or 'of its Node'}. Check "
            "its name, and that management names the cluster that it is in.",
            name=found.name,
        )
    if item is None:
        return None, None
    # If the deletion begins between this read and the write, the write is refused, and the check runs again.
    if params["unless_deleting"] and rules.kept_while_deleting(item, key):
        return item, item
    changes = rules.change(kind.annotations(item), key, params["owner"], present=present)
    if present and params["kind"] == MACHINE:
        _check_that_it_holds(context, params, item, key, wanted=bool(changes))
        item = _latest(context, found, item) if changes else item
    if not changes:
        return item, item
    return item, context.management.merge(found.path, kind.patch(item, changes))


def _latest(context: Context, found: Place, machine: Object) -> Object:
    """Read a Machine again if it is still at the same stage: another client may have written to it during the check."""
    latest = context.management.find(found.path)
    return latest if latest is not None and _stage(latest) == _stage(machine) else machine


def _stage(machine: Object) -> tuple[Any, ...]:
    """Return what the check was about, and the hooks, because they decided what to write."""
    return machine["metadata"]["uid"], rules.phase(machine), rules.node_of(machine), rules.hooks_of(machine)


def _check_that_it_holds(context: Context, params: Params, machine: Object, key: str, *, wanted: bool) -> None:
    """Refuse a hook that cannot hold, before anything is written; warn of one that may not hold."""
    problem = _why_not(context, params, machine)
    if problem is None:
        return
    if params["wait_for"] == "deletion" or (problem.final and wanted):
        raise CannotHold(
            f"{key} can't hold the deletion of Machine {machine['metadata']['name']}: {problem.text}. "
            + ("Nothing was changed. " if wanted else "")
            + _way_out(params["point"], problem),
            why=problem.why,
            **_state(machine),
        )
    context.warn(
        f"The hook {key} does not hold the deletion of Machine {machine['metadata']['name']} at present: "
        f"{problem.text}. {_way_out(params['point'], problem)}"
    )


def _why_not(context: Context, params: Params, machine: Object) -> WhyNot | None:
    point = params["point"]
    # Only pre-drain hooks depend on more than the Machine.
    skipped = point != rules.PRE_DRAIN or rules.is_past(machine, point) or rules.waits_at(machine) == point
    around = rules.Around() if skipped else capi.around(context.management, machine)
    return rules.why_not(machine, point, around)


def _way_out(point: str, problem: WhyNot) -> str:
    if problem.why == "past":
        return "Set hooks before the Machine is deleted, preferably on its template."
    return "Use a hook at the point pre-terminate, which always holds." if point == rules.PRE_DRAIN else ""


def _await(context: Context, params: Params, found: Place, ours: _HookOnMachine, deadline: Deadline) -> Object:
    """Wait until the deletion waits for our hook."""
    point, key, uid = params["point"], ours.key, ours.uid
    last = wait_for(
        context.management,
        found.collection,
        found.name,
        lambda item: bool(rules.verdict(item, uid, point, key)),
        deadline,
    )
    verdict = rules.verdict(last, uid, point, key)
    if verdict == "waits" and last:
        return last
    fields = {**_state(last), "waited": round(deadline.elapsed, 3)}
    if verdict:
        raise CannotHold(
            f"The deletion of Machine {found.name} does not wait at {point} for {key}: {_ENDED[verdict]}. Check the "
            "Machine before you change anything that depends on it.",
            why=verdict,
            **fields,
        )
    raise TimedOut(
        f"Machine {found.name} does not wait at {point} after {params['wait_timeout']} s; it is at "
        f"{rules.phase(last)}. The hook stays. Raise wait_timeout, or run this again to continue the wait.",
        **fields,
    )


def _warn_of_template(context: Context, before: Object | None, key: str) -> None:
    if before and not rules.is_deleting(before) and rules.kept_by_template(before, key):
        context.warn(
            f"The hook {key} of Machine {before['metadata']['name']} comes from the Machine's template, whose "
            "controller will set it again at once. Remove it from the MachineDeployment, MachineSet or "
            "KubeadmControlPlane."
        )


def _state(machine: Object | None) -> dict[str, Any]:
    """Return what results say of a Machine."""
    hooks = rules.hooks_of(machine) if machine else []
    return {
        "hooks": [hook.shown() for hook in hooks],
        "phase": rules.phase(machine),
        "waiting_since": rules.waiting_since(machine),
        "node": rules.node_of(machine) if machine else None,
        "machine": machine["metadata"]["name"] if machine else None,
        "namespace": machine["metadata"]["namespace"] if machine else None,
    }


def _result(kind: Kind, before: Object | None, after: Object | None) -> Result:
    shown = [{hook.annotation: hook.owner for hook in _hooks(kind, item)} for item in (before, after)]
    state = _state(after)
    if kind.template:
        # A template is not deleted like its Machines.
        state.update(
            hooks=[hook.shown() for hook in _hooks(kind, after)],
            phase=None,
            waiting_since=None,
            machine=None,
        )
    return {
        "changed": before is not after,
        **state,
        "waited": 0,
        "kept": False,
        "diff": {"before": {"hooks": shown[0]}, "after": {"hooks": shown[1]}},
    }


def _hooks(kind: Kind, item: Object | None) -> list[rules.Hook]:
    return rules.hooks_in(kind.annotations(item)) if item else []
