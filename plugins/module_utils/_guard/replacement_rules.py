# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about replacements: how many other Machines must exist before one is released."""

from __future__ import annotations

from collections.abc import Collection

from .._api import node_rules
from .._api.objects import Object
from .._capi import rules as hooks
from .rules import LABELS

_DEPLOYMENT, _SET, _CONTROL_PLANE = "MachineDeployment", "MachineSet", "KubeadmControlPlane"


def makers(machine: Object) -> list[tuple[str, str]]:
    """Return kind and name of the objects that made a Machine; none if a person made it."""
    owners = machine["metadata"].get("ownerReferences") or []
    return [(item["kind"], item["name"]) for item in owners if item["kind"] in (_SET, _CONTROL_PLANE)]


def deployment_of(machine_set: Object) -> str | None:
    owners = machine_set["metadata"].get("ownerReferences") or []
    return next((str(item["name"]) for item in owners if item["kind"] == _DEPLOYMENT), None)


def siblings_label(machine: Object) -> str | None:
    """Return a label selector of all Machines that the same object makes; ``None`` if nothing makes a replacement."""
    labels = node_rules.labels_of(machine)
    if not makers(machine):
        return None
    return next((f"{label}={labels[label]}" for label in LABELS.values() if labels.get(label)), None)


def wanted(maker: Object | None, machines: Collection[Object]) -> int:
    """Return how many others must exist while a Machine that is being deleted still does.

    Cluster API counts Machines that are being deleted: it replaces one that is deleted by itself only when that one is
    gone. So the number is what is asked for, or what exists in a rollout, without those that are being deleted.

    Args:
        maker: The object that makes them; ``None`` if it is gone.
        machines: All of them, including those that are being deleted.
    """
    if maker is None or maker["metadata"].get("deletionTimestamp"):
        return 0
    asked = int((maker.get("spec") or {}).get("replicas") or 0)
    return max(0, max(asked, len(machines)) - sum(hooks.is_deleting(machine) for machine in machines))


def counts(machine: Object) -> bool:
    """Return whether a Machine may replace another: it has a Node and is not being deleted."""
    return not hooks.is_deleting(machine) and hooks.node_of(machine) is not None
