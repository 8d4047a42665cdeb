# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about guarding Machines: who works on which, what is recorded about it, and when a hook may be removed.

The record is an annotation of the Machine, with an entry for each hook. As long as an entry has no result, it is also
a claim: its run works on the Machine, and while that run lives, no other does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .._api import node_rules
from .._api.errors import Refused
from .._api.names import MACHINE_GUARD
from .._api.objects import Object
from .._api.times import from_text, seconds_between, to_text
from .._budget.claim_rules import ClaimLost
from .._capi import rules as hooks
from .._capi.label_rules import label_value
from .._capi.rules import POINTS, PRE_DRAIN, PRE_TERMINATE, key_of
from .._failover.rules import known_off
from .._shared.bounds import cut, merged, seconds_since

PURPOSE = "machine_guard"
# A machine that a recovery may have switched on no longer counts as off.
RECOVER_FIRST = "If a recovery of it was interrupted, run the playbook holdfast.kubernetes.recover again first."
CLAIM = "claim"
# Used in place of a phase if a run only reports that no run works on the Machine.
NOT_BEGUN = "not_begun"
RELEASED, FAILED, REMOVED = "released", "failed", "removed"
RESULTS = (RELEASED, FAILED)

# When a run ends, and why it ended.
DEADLINE, IDLE, NEVER, GONE, PLANNED = "deadline", "idle", "never", "gone", "planned"

# The states of the Node, as far as known.
NO_NODE, NODE_GONE, READY, NOT_READY, UNREACHABLE, OFF = "none", "gone", "ready", "not_ready", "unreachable", "off"
# The given cluster is not shown to be the one that the Machine belongs to.
FOREIGN = "foreign"

LABELS = {
    "MachineDeployment": "cluster.x-k8s.io/deployment-name",
    "MachineSet": "cluster.x-k8s.io/set-name",
    "KubeadmControlPlane": "cluster.x-k8s.io/control-plane-name",
}
_KEPT_FAILURES = 10
# Seconds. No run follows one that never ends, so it tries by itself again.
_RETRY = 600.0

# The fields of a record.
_TYPES: Mapping[str, type] = {
    "uid": str,
    "run": str,
    "point": str,
    "result": str,
    "since": str,
    "phase": str,
    "phases": dict,
    "done": dict,
    "failures": dict,
    "facts": dict,
}


class Unfenced(Refused):
    """The Node gives no sign of life, and nothing proves that it is off."""

    kind = "unfenced"


# -- which Machines ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Guard:
    """Our hooks, by their name and their owner."""

    hook: str
    owner: str

    def key(self, point: str) -> str:
        return key_of(point, self.hook)

    def has(self, machine: Object, point: str) -> bool:
        return node_rules.annotations_of(machine).get(self.key(point)) == self.owner

    def waits_at(self, machine: Object) -> str | None:
        """Return the point at which the deletion waits for our hook; ``None`` if it does not."""
        waiting = (point for point in POINTS if hooks.waits_for(machine, point, self.key(point)))
        return next((point for point in waiting if self.has(machine, point)), None)

    def holds(self, machine: Object) -> bool:
        """Return whether one of our hooks is there that the deletion may still reach."""
        return any(self.has(machine, point) and not hooks.is_past(machine, point) for point in POINTS)

    def missing(self, machine: Object, points: Collection[str]) -> dict[str, str | None]:
        """Return what to write so that a Machine has our hooks, unless it is being deleted; keep those of others."""
        if hooks.is_deleting(machine):
            return {}
        keys = [self.key(point) for point in POINTS if point in points]
        return {key: self.owner for key in keys if key not in node_rules.annotations_of(machine)}

    def leaves_drain(self, machine: Object) -> bool:
        """Return whether the drain is not for a guard: another owner still works before it, or the Machine has none.

        Cluster API drains after the last pre-drain hook.
        """
        others = (item for item in hooks.hooks_of(machine) if item.annotation != self.key(PRE_DRAIN))
        excluded = hooks.EXCLUDE_DRAIN in node_rules.annotations_of(machine)
        return excluded or any(item.point == PRE_DRAIN for item in others)

    def skipped(self, machine: Object) -> bool:
        """Return whether Cluster API passed our pre-drain hook without waiting for it."""
        return self.has(machine, PRE_DRAIN) and hooks.is_past(machine, PRE_DRAIN)


@dataclass(frozen=True)
class Selection:
    """Which Machines are meant, apart from their labels. Names and templates add Machines; a Cluster narrows them.

    Attributes:
        machines: Names of Machines.
        cluster: Name of their Cluster; empty for any.
        templates: Kind and name of the objects that make them.
    """

    machines: frozenset[str] = frozenset()
    cluster: str = ""
    templates: tuple[tuple[str, str], ...] = ()

    def has(self, machine: Object) -> bool:
        if self.cluster and hooks.cluster_of(machine) != self.cluster:
            return False
        if not self.machines and not self.templates:
            return True
        named = machine["metadata"]["name"] in self.machines
        return named or any(_made_of(machine, kind, name) for kind, name in self.templates)

    def gives_hooks_to(self, machine: Object) -> bool:
        """Return whether a run sets hooks on a Machine; if only a template selects it, the template brings them.

        Cluster API removes those hooks with the template's, but not if another client wrote them, too.
        """
        return self.has(machine) and (not self.templates or machine["metadata"]["name"] in self.machines)

    @property
    def only_names(self) -> bool:
        return bool(self.machines) and not self.templates


def _made_of(machine: Object, kind: str, name: str) -> bool:
    return node_rules.labels_of(machine).get(LABELS[kind]) == label_value(name)


# -- the record -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """What to record.

    Attributes:
        phase: The phase that begins; empty for none.
        done: A file of the user's tasks that is done.
        done_at: The point that the file belongs to.
        result: How the work at this point ended; empty while it continues.
        detail: More about the result.
        facts: Details for people who read the record.
    """

    phase: str = ""
    done: str = ""
    done_at: str = ""
    result: str = ""
    detail: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def record_of(machine: Object, hook: str) -> dict[str, Any] | None:
    """Return the record on a Machine; ``None`` if there is none, or an invalid one, or an earlier Machine's."""
    found = (node_rules.record(machine, MACHINE_GUARD) or {}).get(hook)
    if not isinstance(found, dict) or not _is_record(found):
        return None
    return found if found["uid"] == machine["metadata"].get("uid") else None


def is_invalid(machine: Object, hook: str) -> bool:
    """Return whether the record was changed so that it cannot be read."""
    text = node_rules.annotations_of(machine).get(MACHINE_GUARD)
    known = node_rules.record(machine, MACHINE_GUARD)
    return bool(text) and (known is None or (hook in known and not _is_record(known[hook])))


def _is_record(found: Any) -> bool:
    if not (isinstance(found, dict) and all(isinstance(found.get(key), kind) for key, kind in _TYPES.items())):
        return False
    return (
        found["point"] in POINTS
        and _is_time(found["since"])
        and all(isinstance(seconds, (int, float)) for seconds in found["phases"].values())
        and all(_are_texts(files) for files in found["done"].values())
        and all(_is_failure(failure) for failure in found["failures"].values())
    )


def _is_failure(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("point"), str) and _is_time(found.get("at"))


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(item, str) for item in found)


def _is_time(found: Any) -> bool:
    try:
        return isinstance(found, str) and bool(from_text(found))
    except ValueError:
        return False


def written(machine: Object, hook: str, record: Mapping[str, Any]) -> str:
    """Return the annotation with this record, and with the records of other hooks."""
    known = node_rules.record(machine, MACHINE_GUARD) or {}
    return json.dumps({**known, hook: dict(record)}, sort_keys=True)


def run_id(base: str, worker: str) -> str:
    """Return the id of one work. A run works on several Machines at once, and each work has an id of its own."""
    return f"{base}/{worker}"


def begin(
    record: Mapping[str, Any] | None,
    point: str,
    *,
    uid: str,
    run: str,
    holder: str,
    now: datetime,
    saw_node: bool = False,
) -> dict[str, Any]:
    """Return the record of work that begins on a Machine at a point, or that resumes what another run left there.

    Args:
        record: The record on the Machine.
        point: The point at which it waits.
        uid: The UID of the Machine: a recreated Machine may get the annotations of the former one.
        run: Id of this work.
        holder: Who runs it, for people.
        now: The present time.
        saw_node: Whether this work has seen the Machine's Node in the given cluster.
    """
    moment = to_text(now)
    same = record is not None and record["point"] == point
    known = dict(record or {})
    return {
        "started": known.get("started", moment),
        "done": known.get("done", {}),
        "failures": known.get("failures", {}),
        "facts": known.get("facts", {}),
        "phases": known.get("phases", {}) if same else {},
        "uid": uid,
        "run": run,
        "holder": holder,
        "saw_node": saw_node,
        "point": point,
        "phase": CLAIM,
        "resumed": resumes(record, point),
        "since": moment,
        "result": "",
        "detail": "",
    }


def resumes(record: Mapping[str, Any] | None, point: str) -> bool:
    """Return whether earlier work on the Machine at this point has not ended."""
    if record is None or record["point"] != point or record["result"] == RELEASED:
        return False
    return record["phase"] != NOT_BEGUN or bool(record.get("resumed"))


def advance(record: Mapping[str, Any], change: Change, base: str, now: datetime) -> dict[str, Any]:
    """Return the record after a change."""
    moment, phase = to_text(now), change.phase or record["phase"]
    changed = {**record, "facts": merged(record["facts"], change.facts)}
    if change.done:
        done = record["done"].get(change.done_at, [])
        changed["done"] = {
            **record["done"],
            change.done_at: [*(name for name in done if name != change.done), change.done],
        }
    if (phase, change.result) == (record["phase"], record["result"]):
        return changed
    spent = max(0.0, seconds_between(from_text(record["since"]), now))
    changed["phases"] = {
        **record["phases"],
        record["phase"]: round(record["phases"].get(record["phase"], 0) + spent, 1),
    }
    changed.update(phase=phase, since=moment, result=change.result, detail=cut(change.detail, 1000))
    if change.result == FAILED:
        failures = {**record["failures"], base: {"point": record["point"], "at": moment}}
        last = sorted(failures, key=lambda name: str(failures[name]["at"]))[-_KEPT_FAILURES:]
        changed["failures"] = {name: failures[name] for name in last}
    return changed


def done_at(record: Mapping[str, Any] | None, point: str) -> list[str]:
    """Return the files of the user's tasks that are done for the Machine at a point."""
    return list(((record or {}).get("done") or {}).get(point) or [])


# -- who works on it --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunOptions:
    """This run.

    Attributes:
        base: Its id; the ids of its works begin with it.
        retry: Seconds after which it retries failed work; 0 for never, or for 10 minutes if the run never ends.
        stop: When it ends.
    """

    base: str
    retry: float = 0.0
    stop: str = DEADLINE

    def seconds_to_retry(self, machine: Object, guard: Guard, now: datetime) -> float:
        """Return in how many seconds this run may work on a Machine; 0 for now, infinity for never."""
        record = record_of(machine, guard.hook)
        failure = ((record or {}).get("failures") or {}).get(self.base)
        at = guard.waits_at(machine) or next((point for point in POINTS if not hooks.is_past(machine, point)), "")
        if not failure or failure["point"] != at:
            return 0.0
        retry = self.retry or (_RETRY if self.stop == NEVER else 0.0)
        return max(0.0, retry - seconds_since(failure["at"], now)) if retry else float("inf")


def claimed_by(machine: Object, hook: str) -> str:
    """Return the run whose work on the Machine has not ended, live or dead; empty if there is none."""
    record = record_of(machine, hook)
    return str(record["run"]) if record and not record["result"] else ""


def may_take(machine: Object, guard: Guard, me: RunOptions, live: Collection[str], now: datetime) -> bool:
    """Return whether this run may work on a Machine now: it waits for our hook, and no live run works on it.

    While it is paused, nobody works on it, as Cluster API's own controllers do.
    """
    if guard.waits_at(machine) is None or claimed_by(machine, guard.hook) in live or hooks.is_paused(machine):
        return False
    return me.seconds_to_retry(machine, guard, now) <= 0


def no_answer(machine: Object, error: str) -> str:
    """Return why a Machine is not served whose Node can't be read, and the way out."""
    return (
        f"the API server of Cluster {hooks.cluster_of(machine)} does not answer. If it is gone for good, remove the "
        f"hook with deletion_hook, state: absent. {error}"
    )


def by_age(machines: Collection[Object]) -> list[Object]:
    """Sort Machines: the one that has waited longest comes first."""
    return sorted(machines, key=lambda item: (str(hooks.waiting_since(item) or ""), item["metadata"]["name"]))


def why_over(machines: Collection[Object], selection: Selection, guard: Guard, me: RunOptions, now: datetime) -> str:
    """Return why this run has nothing more to do; empty if it has, or may have."""
    left = [
        machine
        for machine in machines
        if guard.holds(machine) and (me.stop == NEVER or me.seconds_to_retry(machine, guard, now) < float("inf"))
    ]
    if selection.only_names and not left:
        return GONE
    return IDLE if me.stop == IDLE and not any(hooks.is_deleting(machine) for machine in left) else ""


# -- before the hook goes ---------------------------------------------------------------------------------------------


def ended_before(machine: Object, hook: str, run: str, result: str) -> dict[str, Any] | None:
    """Return the record if this run has already ended its work, as it would write it now or with more success.

    The answer to that write may have been lost. A lost answer does not undo the release of a Machine.
    """
    record = record_of(machine, hook)
    if not result or record is None or record["run"] != run:
        return None
    return record if record["result"] in (result, RELEASED, REMOVED) else None


def check_claim(machine: Object, hook: str, run: str) -> dict[str, Any]:
    """Return the record if this run still works on the Machine.

    Raises:
        ClaimLost: Another run works on it, or none.
    """
    record, name = record_of(machine, hook), machine["metadata"]["name"]
    if record is not None and record["run"] == run and not record["result"]:
        return record
    whose = f"run {record['run']} now works on it" if record else "its record was removed"
    raise ClaimLost(
        f"Run {run} has lost Machine {name}: {whose}. This run stops its work on the Machine; the other run "
        "continues it.",
        machine=name,
    )


def node_state(machine: Object, node: Object | None) -> str:
    """Return the state of a Machine's Node, as far as it is known."""
    if hooks.node_of(machine) is None:
        return NO_NODE
    if node is None:
        return NODE_GONE
    if node_rules.ready(node):
        return READY
    if known_off(node):
        return OFF
    return NOT_READY if (node_rules.condition(node, "Ready") or {}).get("status") == "False" else UNREACHABLE


def check_fenced(machine: Object, state: str) -> None:
    """Refuse to release a Machine whose silent Node may still run and write to its volumes.

    Raises:
        Unfenced: It may.
    """
    if state != UNREACHABLE:
        return
    node, name = hooks.node_of(machine), machine["metadata"]["name"]
    raise Unfenced(
        f"Node {node} of Machine {name} gives no sign of life, and nothing proves that it is off: its pods may still "
        "run. The hook stays, because Cluster API would continue as if that were safe. Set machine_guard_unreachable: "
        f"fence, or run ansible-playbook holdfast.kubernetes.failover -e failover_node={node}. "
        f"{RECOVER_FIRST}",
        machine=name,
        node=node,
    )


def hooks_to_remove(machine: Object, guard: Guard, point: str) -> dict[str, str | None]:
    """Return which of our hooks to remove when the work at a point is done; empty if ours is already removed."""
    if not guard.has(machine, point):
        return {}
    points = (PRE_DRAIN, PRE_TERMINATE) if point == PRE_TERMINATE else (point,)
    return {guard.key(each): None for each in points if guard.has(machine, each)}
