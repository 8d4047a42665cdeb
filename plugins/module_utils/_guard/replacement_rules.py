# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about replacements: how many other Machines have to be there before one of them goes."""

from __future__ import annotations

from collections.abc import Collection

from .._api import node_rules
from .._api.objects import Object
from .._capi import rules as hooks

_DEPLOYMENT, _SET, _CONTROL_PLANE = "MachineDeployment", "MachineSet", "KubeadmControlPlane"
_GROUP = "cluster.x-k8s.io"
_LABELS = (f"{_GROUP}/deployment-name", f"{_GROUP}/set-name", f"{_GROUP}/control-plane-name")


def makers(machine: Object) -> list[tuple[str, str]]:
    """Kind and name of what has made a Machine; none for one that a person has made."""
    owners = machine["metadata"].get("ownerReferences") or []
    return [(item["kind"], item["name"]) for item in owners if item["kind"] in (_SET, _CONTROL_PLANE)]


def deployment_of(machine_set: Object) -> str | None:
    owners = machine_set["metadata"].get("ownerReferences") or []
    return next((str(item["name"]) for item in owners if item["kind"] == _DEPLOYMENT), None)


def siblings_label(machine: Object) -> str | None:
    """A label selector of all that the same object makes; ``None`` where nothing makes a replacement."""
    labels = node_rules.labels_of(machine)
    if not makers(machine):
        return None
    return next((f"{label}={labels[label]}" for label in _LABELS if labels.get(label)), None)


def wanted(maker: Object | None, machines: Collection[Object]) -> int:
    """How many others have to be there while one that is being deleted still is.

    Cluster API counts Machines that are being deleted: in the place of one that is deleted by itself it makes another
    only when it is gone. So this is what is asked for, or what there is in a rollout, without those that go.

    Args:
        maker: What makes them; ``None`` where it is gone.
        machines: All of them, those that are being deleted included.
    """
    if maker is None or maker["metadata"].get("deletionTimestamp"):
        return 0
    asked = int((maker.get("spec") or {}).get("replicas") or 0)
    return max(0, max(asked, len(machines)) - sum(hooks.is_deleting(machine) for machine in machines))


def counts(machine: Object) -> bool:
    """Whether a Machine may take the place of one that goes: it has a Node and is not going itself."""
    return not hooks.is_deleting(machine) and hooks.node_of(machine) is not None
