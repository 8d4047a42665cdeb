# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the rights of node agents: the objects that grant them, and the Nodes that still need them."""

from __future__ import annotations

from typing import Any

from .._api import node_rules, paths
from .._api.names import COLLECTION, MANAGED_BY, SHUTDOWN_INHIBITED
from .._api.objects import Object

NAME = "holdfast-node-agent"
_API = "rbac.authorization.k8s.io"
_COLLECTION = f"/apis/{_API}/v1/"
_METADATA = {"name": NAME, "labels": {MANAGED_BY: COLLECTION}}

# Agents have the identity of their kubelet, which may already read its Node, write its status and create Events.
ROLE: Object = {
    "apiVersion": f"{_API}/v1",
    "kind": "ClusterRole",
    "metadata": _METADATA,
    "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "watch"]}],
}
BINDING: Object = {
    "apiVersion": f"{_API}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": _METADATA,
    "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": NAME},
    "subjects": [{"apiGroup": _API, "kind": "Group", "name": "system:nodes"}],
}
COLLECTIONS = {"ClusterRole": f"{_COLLECTION}clusterroles", "ClusterRoleBinding": f"{_COLLECTION}clusterrolebindings"}


def path(wanted: Object) -> str:
    """The API path of one of our objects."""
    return paths.one(COLLECTIONS[wanted["kind"]], NAME)


def content(item: Object | None) -> dict[str, Any]:
    """What an object grants, without the fields that the API adds; empty if there is no object."""
    if item is None:
        return {}
    # With an aggregation rule, the API would replace our rules.
    keys = ("rules", "aggregationRule", "roleRef", "subjects")
    return {key: item[key] for key in keys if item.get(key)}


def must_be_recreated(before: Object, wanted: Object) -> bool:
    """Whether the API would refuse the change, because the ``roleRef`` of a binding is immutable."""
    return bool(before.get("roleRef") != wanted.get("roleRef"))


def changed_into(before: Object, wanted: Object) -> Object:
    """The object with our content; other labels and annotations stay."""
    labels = {**node_rules.labels_of(before), **node_rules.labels_of(wanted)}
    return {**wanted, "metadata": {**before["metadata"], "labels": labels}}


def has_agent(node: Object) -> bool:
    """Whether a Node has an agent. The condition is created with the agent and removed with it."""
    return node_rules.condition(node, SHUTDOWN_INHIBITED) is not None
