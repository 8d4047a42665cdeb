# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about deletion hooks: annotations that make Cluster API wait before it continues to delete a Machine.

Cluster API reads only the annotation's prefix. Our hook is a name after it, and its value names the owner.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._api.errors import InvalidInput, Refused
from .._api.node_rules import annotations_of, condition
from .._api.objects import Object

PRE_DRAIN, PRE_TERMINATE = "pre-drain", "pre-terminate"
POINTS = (PRE_DRAIN, PRE_TERMINATE)
# The hook of the kubeadm control plane; it is removed when every other hook of that point is gone.
KCP_CLEANUP = "kcp-cleanup"

NOT_DELETING, GONE = "NotDeleting", "Deleted"
# Cluster API's own words, in its order.
STAGES = (
    NOT_DELETING,
    "Deleting",
    "WaitingForPreDrainHook",
    "DrainingNode",
    "WaitingForVolumeDetach",
    "WaitingForPreTerminateHook",
    "WaitingForInfrastructureDeletion",
    "WaitingForBootstrapDeletion",
    "DeletingNode",
    "DeletionCompleted",
    GONE,
)
_WAITS_AT = {PRE_DRAIN: "WaitingForPreDrainHook", PRE_TERMINATE: "WaitingForPreTerminateHook"}
_STARTED = {PRE_DRAIN: "waitForPreDrainHookStartTime", PRE_TERMINATE: "waitForPreTerminateHookStartTime"}
_OLD_CONDITION = {PRE_DRAIN: "PreDrainDeleteHookSucceeded", PRE_TERMINATE: "PreTerminateDeleteHookSucceeded"}
# A recorded stage stays while the controller reports no stage.
_TIMES = (
    ("waitForPreTerminateHookStartTime", "WaitingForPreTerminateHook"),
    ("waitForNodeVolumeDetachStartTime", "WaitingForVolumeDetach"),
    ("nodeDrainStartTime", "DrainingNode"),
    ("waitForPreDrainHookStartTime", "WaitingForPreDrainHook"),
)
# Conditions of Cluster API before v1beta2: the stage of a deletion while one is False, and the stage once it is True.
_OLD_STAGES = (
    ("PreTerminateDeleteHookSucceeded", "WaitingForPreTerminateHook", "WaitingForInfrastructureDeletion"),
    ("VolumeDetachSucceeded", "WaitingForVolumeDetach", "WaitingForVolumeDetach"),
    ("DrainingSucceeded", "DrainingNode", "WaitingForVolumeDetach"),
    ("PreDrainDeleteHookSucceeded", "WaitingForPreDrainHook", "DrainingNode"),
)
# Cluster API does not drain a Machine with the first annotation, and does nothing with one that has the second.
EXCLUDE_DRAIN = "machine.cluster.x-k8s.io/exclude-node-draining"
_PAUSED = "cluster.x-k8s.io/paused"
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LONGEST = 63
# The API server converts a key to lower case before it checks it, and these two become plain letters.
_PLAIN = {0x212A: "k", 0x0130: "i"}


class CannotHold(Refused):
    """The hook would exist, but the deletion would not wait for it."""

    kind = "cannot_hold"


@dataclass(frozen=True)
class Hook:
    """One hook of a Machine or a template."""

    annotation: str
    point: str
    name: str
    owner: str

    def shown(self) -> dict[str, str]:
        return {"point": self.point, "hook": self.name, "owner": self.owner, "annotation": self.annotation}


def prefix(point: str) -> str:
    return f"{point}.delete.hook.machine.cluster.x-k8s.io"


def key_of(point: str, hook: str) -> str:
    """Return the annotation of a hook.

    Raises:
        InvalidInput: The API server would refuse it, or users must not set this hook.
    """
    if not _NAME.fullmatch(hook.translate(_PLAIN)):
        raise InvalidInput(
            f'hook "{hook}" can\'t be the name of an annotation. Use letters, digits, "-", "_" and ".", with a letter '
            "or digit first and last.",
            hook=hook,
        )
    if len(hook) > _LONGEST:
        raise InvalidInput(
            f'hook "{hook}" has {len(hook)} characters, and the name of an annotation has at most {_LONGEST}. Use a '
            "shorter one.",
            hook=hook,
        )
    if hook == KCP_CLEANUP:
        raise InvalidInput(
            f"{KCP_CLEANUP} is the hook of the kubeadm control plane itself, which uses it to remove a member from "
            "etcd. This collection neither sets nor removes it. Use a name of your own.",
            hook=hook,
        )
    return f"{prefix(point)}/{hook}"


def hooks_in(annotations: Mapping[str, str]) -> list[Hook]:
    """Return all hooks among annotations, as Cluster API sees them: all that begin with a prefix."""
    return [
        Hook(key, point, key[len(prefix(point)) :].removeprefix("/"), annotations[key])
        for key in sorted(annotations)
        for point in POINTS
        if key.startswith(prefix(point))
    ]


def hooks_of(machine: Object) -> list[Hook]:
    return hooks_in(annotations_of(machine))


def change(annotations: Mapping[str, str], key: str, owner: str, *, present: bool) -> dict[str, str | None]:
    """Return what to write to add or remove the hook; empty if nothing needs to change.

    Raises:
        Refused: The hook exists and belongs to another owner.
    """
    value = annotations.get(key)
    if value is not None and value != owner:
        raise Refused(
            f'The hook {key} belongs to "{value}", not to "{owner}". Use a hook of another name, or ask its owner.',
            owner=value,
            annotation=key,
        )
    if present:
        return {} if value is not None else {key: owner}
    return {} if value is None else {key: None}


def is_deleting(machine: Object) -> bool:
    return bool(machine["metadata"].get("deletionTimestamp"))


def is_paused(machine: Object) -> bool:
    """Return whether the Machine, or its Cluster, is paused. Cluster API shows a paused Cluster on its Machines."""
    if _PAUSED in annotations_of(machine):
        return True
    status = machine.get("status") or {}
    conditions = [*(status.get("conditions") or []), *((status.get("v1beta2") or {}).get("conditions") or [])]
    return any((item.get("type"), item.get("status")) == ("Paused", "True") for item in conditions)


def kept_while_deleting(machine: Object, key: str) -> bool:
    """Return whether a hook exists that its owner still has to serve: without it, the deletion would continue."""
    return is_deleting(machine) and key in annotations_of(machine)


def phase(machine: Object | None) -> str:
    """Return how far the deletion of a Machine is, in Cluster API's own words."""
    if machine is None:
        return GONE
    if not is_deleting(machine):
        return NOT_DELETING
    reason = str((_deleting(machine) or {}).get("reason"))
    # The controller's reason decides, except "Deleting" and "InternalError", which name no stage.
    if reason in STAGES[2:]:
        return reason
    return max(["Deleting", *_started_stages(machine), *_old_stages(machine)], key=STAGES.index)


def waits_at(machine: Object | None) -> str | None:
    """Return the point at which the controller waits for hooks now; ``None`` if it does not."""
    at = phase(machine)
    return next((point for point in POINTS if _WAITS_AT[point] == at), None)


def waits_for(machine: Object | None, point: str, key: str) -> bool:
    """Return whether the deletion waits at a point for exactly this hook.

    The condition names the hooks that the controller saw. It does not name a hook that was added when the controller
    had already resumed.
    """
    if machine is None or waits_at(machine) != point or key not in annotations_of(machine):
        return False
    named = _named(machine)
    return named is None or key in named


def waiting_since(machine: Object | None) -> str | None:
    """Return since when the deletion waits at its point; ``None`` if it does not wait for hooks."""
    point = waits_at(machine)
    if machine is None or point is None:
        return None
    known = _deletion(machine).get(_STARTED[point])
    # The status follows the condition a moment later.
    conditions = (_deleting(machine), _old_conditions(machine).get(_OLD_CONDITION[point]))
    since = known or next((item.get("lastTransitionTime") for item in conditions if item), None)
    return str(since) if since else None


def is_past(machine: Object | None, point: str) -> bool:
    """Return whether the deletion is past a point, or will never reach it."""
    return STAGES.index(phase(machine)) > STAGES.index(_WAITS_AT[point])


def verdict(machine: Object | None, uid: str, point: str, key: str) -> str:
    """Return how the wait for a deletion to wait for this hook ended; empty as long as it is open."""
    if machine is None or machine["metadata"].get("uid") != uid:
        return "gone"
    if key not in annotations_of(machine):
        return "removed"
    if waits_for(machine, point, key):
        return "waits"
    return "past" if is_past(machine, point) else ""


@dataclass(frozen=True)
class Around:
    """What else, besides the Machine itself, decides whether Cluster API waits for pre-drain hooks.

    Attributes:
        cluster_deleting: The Cluster is being deleted.
        control_plane_deleting: The object that makes its control plane is being deleted.
        control_plane: Another Machine of the control plane stays, or the control plane is not made of Machines.
    """

    cluster_deleting: bool = False
    control_plane_deleting: bool = False
    control_plane: bool = True


@dataclass(frozen=True)
class WhyNot:
    """Why a hook cannot hold.

    Attributes:
        why: One word, for programs.
        text: A sentence, for people.
        final: Whether it stays so.
    """

    why: str
    text: str
    final: bool


def why_not(machine: Object, point: str, around: Around) -> WhyNot | None:
    """Return why the deletion of a Machine would not wait at a point; ``None`` if it would, or waits there now."""
    at, name = phase(machine), machine["metadata"]["name"]
    if waits_at(machine) == point:
        return None
    if is_past(machine, point):
        return WhyNot("past", f"the deletion of Machine {name} has passed that point; it is at {at}", final=True)
    if point == PRE_TERMINATE:
        return None
    skips = "Cluster API skips pre-drain hooks and the drain"
    if around.cluster_deleting:
        return WhyNot("cluster_deleting", f"Cluster {cluster_of(machine)} is being deleted, so {skips}", final=True)
    if around.control_plane_deleting:
        text = f"the control plane of Cluster {cluster_of(machine)} is being deleted, so {skips}"
        return WhyNot("control_plane_deleting", text, final=True)
    # A deletion that has begun does not wait for this to change.
    final = is_deleting(machine)
    if node_of(machine) is None:
        return WhyNot("no_node", f"Machine {name} has no Node (status.nodeRef), and without one {skips}", final=final)
    if not around.control_plane:
        text = f"Cluster {cluster_of(machine)} has no other control-plane Machine that stays, and without one {skips}"
        return WhyNot("no_control_plane", text, final=final)
    return None


def node_of(machine: Object) -> str | None:
    """Return the Node that a Machine is; ``None`` if it has none (yet)."""
    name = ((machine.get("status") or {}).get("nodeRef") or {}).get("name")
    return str(name) if name else None


def cluster_of(machine: Object) -> str:
    return str((machine.get("spec") or {}).get("clusterName") or "")


def kept_by_template(machine: Object, key: str) -> bool:
    """Return whether the hook comes from the Machine's template: the controller of the template writes it again."""
    for entry in machine["metadata"].get("managedFields") or []:
        fields = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:annotations") or {}
        if entry.get("operation") == "Apply" and f"f:{key}" in fields:
            return str(entry.get("manager") or "").startswith("capi-")
    return False


def _deletion(machine: Object) -> dict[str, Any]:
    return (machine.get("status") or {}).get("deletion") or {}


def _deleting(machine: Object) -> Object | None:
    """Return the condition Deleting: v1beta2 has it among its conditions, v1beta1 in a separate list."""
    older = (machine.get("status") or {}).get("v1beta2") or {}
    return condition(machine, "Deleting") or condition({"status": older}, "Deleting")


def _old_conditions(machine: Object) -> dict[str, Object]:
    """Return the conditions of v1beta1, which v1beta2 keeps separately."""
    status = machine.get("status") or {}
    kept = ((status.get("deprecated") or {}).get("v1beta1") or {}).get("conditions")
    return {item["type"]: item for item in kept or status.get("conditions") or []}


def _old_stages(machine: Object) -> list[str]:
    known = _old_conditions(machine)
    status = {kind: (known.get(kind) or {}).get("status") for kind, _under_way, _done in _OLD_STAGES}
    return [
        done if status[kind] == "True" else under_way
        for kind, under_way, done in _OLD_STAGES
        if status[kind] in ("True", "False")
    ]


def _started_stages(machine: Object) -> list[str]:
    times = _deletion(machine)
    return [stage for name, stage in _TIMES if times.get(name)]


def _named(machine: Object) -> set[str] | None:
    """Return the hooks that the condition names; ``None`` if the API's version names none."""
    message = str((_deleting(machine) or {}).get("message") or "")
    found = re.search(r"\(hooks: ([^)]*)\)", message)
    return set(found[1].split(",")) if found else None
