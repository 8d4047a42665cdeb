# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Machine of Cluster API, and what happens to it without a run: its deletion, step by step.

This stands in for Cluster API's controller. The controller waits at each point while a hook is there, drains in
between, and shows only what the collection reads: the condition ``Deleting`` (v1beta2) with its reason and message. The
Node goes in the same step as the Machine. No point is skipped: the Machine always has a Node, and its Cluster stays.
The owner of another hook removes it at some time after the deletion has come to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from model import api
from model.api import Stored

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import MACHINE, MACHINE_NAMESPACE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi import rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.machine_rules import GROUP
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.rules import PRE_DRAIN, PRE_TERMINATE

NAMESPACE, CLUSTER = "metal", "fleet"
_GROUP = f"/apis/{GROUP}"
_NAMESPACED = f"{_GROUP}/v1beta2/namespaces/{NAMESPACE}"
MACHINES = f"{_NAMESPACED}/machines/"
_CLUSTER = f"{_NAMESPACED}/clusters/{CLUSTER}"
# These objects never change.
CONSTANT = (_GROUP, _CLUSTER)
_CLUSTER_NAME, _CONTROL_PLANE = f"{GROUP}/cluster-name", f"{GROUP}/control-plane"
# The marks of a Machine's Node.
NODE_MARKS = {MACHINE_NAMESPACE: NAMESPACE, _CLUSTER_NAME: CLUSTER}
_OTHER = rules.key_of(PRE_TERMINATE, "backup")
_AT = {PRE_DRAIN: "WaitingForPreDrainHook", PRE_TERMINATE: "WaitingForPreTerminateHook"}


def machine_path(name: str) -> str:
    """The Machine has the name of its Node."""
    return MACHINES + name


def node_marks(name: str) -> dict[str, str]:
    return {**NODE_MARKS, MACHINE: name}


def management(name: str) -> dict[str, dict[str, Any]]:
    """The objects of Cluster API by their paths: a Machine with a hook of another owner, and what is around it."""
    machine = _machine(name, {_CLUSTER_NAME: CLUSTER})
    machine["metadata"]["annotations"] = {_OTHER: "another-team"}
    return {
        _GROUP: {"versions": [{"version": "v1beta2"}]},
        _CLUSTER: {"metadata": {"name": CLUSTER, "namespace": NAMESPACE}, "spec": {}},
        machine_path("control-plane"): _machine("control-plane", {_CLUSTER_NAME: CLUSTER, _CONTROL_PLANE: ""}),
        machine_path(name): machine,
    }


def _machine(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels)},
        "spec": {"clusterName": CLUSTER},
        "status": {"nodeRef": {"name": name}},
    }


@lru_cache(None)
def next_events(machine: Stored | None) -> tuple[tuple[str, dict[str, Any] | None], ...]:
    """What may happen to a Machine next: in words, with the Machine after it. It is ``None`` if the Machine is gone."""
    if machine is None:
        return ()
    content, name = machine.content, machine.content["metadata"]["name"]
    if not rules.is_deleting(content):
        deleted = api.merged(content, {"metadata": {"deletionTimestamp": api.CREATED}})
        return ((f"a person deletes Machine {name}", deleted),)
    words, after = _controlled(content)
    found = [] if after == content else [(f"Cluster API: Machine {name} {words}", after)]
    if rules.waits_for(content, PRE_TERMINATE, _OTHER):
        released = api.merged(content, {"metadata": {"annotations": {_OTHER: None}}})
        found.append((f"the other owner releases Machine {name}", released))
    return tuple(found)


def _controlled(machine: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """What the controller does with a Machine that is being deleted."""
    at = rules.STAGES.index(rules.phase(machine))
    for point in rules.POINTS:
        if at > rules.STAGES.index(_AT[point]):
            continue
        hooks = [hook.annotation for hook in rules.hooks_of(machine) if hook.point == point]
        if hooks:
            message = f"Waiting for {point} hooks to succeed (hooks: {','.join(hooks)})"
            return f"waits at {point}", _shown(machine, _AT[point], message)
        if point == PRE_DRAIN:
            return "is being drained", _shown(machine, "DrainingNode")
    return "is gone", None


def _shown(machine: dict[str, Any], reason: str, message: str = "") -> dict[str, Any]:
    condition = {"type": "Deleting", "status": "True", "reason": reason, "message": message}
    return {**machine, "status": {**machine["status"], "conditions": [condition]}}
