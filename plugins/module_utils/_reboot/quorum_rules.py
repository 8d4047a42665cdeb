# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether etcd keeps its quorum without one node. Rules only.

The collection does not query etcd. It takes each node with an etcd pod for one member.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .._api import node_rules
from .._api.objects import Object

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
# The label of control-plane nodes before Kubernetes 1.24. Upgraded clusters may still have it.
MASTER = "node-role.kubernetes.io/master"
ETCD = "node-role.kubernetes.io/etcd"
_NODE_NOT_READY = "its Node is not Ready"
_UNLABELLED = f"its Node has neither the label {CONTROL_PLANE} nor {ETCD}"


@dataclass(frozen=True)
class EtcdPod:
    """The pod of an etcd member.

    Attributes:
        uid: UID of the pod.
        name: ``namespace/name`` of the pod.
        node: Node of the pod; the name of the pod if it has no node yet, so that it counts as a separate member.
        ready: Whether the pod is Ready and is not being deleted.
    """

    uid: str
    name: str
    node: str
    ready: bool


@dataclass(frozen=True)
class Quorum:
    """etcd's members without one node.

    Attributes:
        members: Nodes with a member.
        ready_others: Other nodes whose member and Node are Ready.
        missing: The other members that don't count, and why.
        only_node_missing: The entries of ``missing`` whose pod is Ready, but whose Node is not.
    """

    members: tuple[str, ...]
    ready_others: tuple[str, ...]
    missing: Mapping[str, str]
    only_node_missing: tuple[str, ...]

    @property
    def needed(self) -> int:
        """The number of members that form a quorum; 0 if no member is known."""
        return len(self.members) // 2 + 1 if self.members else 0

    @property
    def kept(self) -> bool | None:
        """Whether there is a quorum without the node; ``None`` if no member is known."""
        return len(self.ready_others) >= self.needed if self.members else None

    @property
    def pods_suffice(self) -> bool:
        """Whether there would be a quorum if all Nodes were Ready, with the pods as they are."""
        return len(self.ready_others) + len(self.only_node_missing) >= self.needed

    @property
    def can_spare_one(self) -> bool:
        """Whether there would be a quorum if every other member were Ready."""
        return len(self.ready_others) + len(self.missing) >= self.needed


def read_etcd_pod(pod: Object) -> EtcdPod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    conditions = status.get("conditions") or []
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return EtcdPod(
        uid=metadata["uid"],
        name=f"{metadata['namespace']}/{metadata['name']}",
        node=(pod.get("spec") or {}).get("nodeName") or metadata["name"],
        ready=ready and status.get("phase") == "Running" and not metadata.get("deletionTimestamp"),
    )


def is_control_plane(node: Object) -> bool:
    return any(label in node_rules.labels_of(node) for label in (CONTROL_PLANE, MASTER))


def quorum_without(
    name: str, pods: Collection[EtcdPod], nodes: Mapping[str, bool], labelled: Collection[str] = ()
) -> Quorum:
    """The quorum of etcd while one node is down.

    A worker can run a pod with the labels of etcd, but not set these labels of its Node. If members are on nodes with
    one of them, a pod elsewhere can't add to the quorum.

    Args:
        name: The node that goes down.
        pods: etcd's pods.
        nodes: The nodes that exist, at least those with a pod of etcd, and whether each is Ready.
        labelled: Those of them with a label of the control plane or of etcd.
    """
    by_node: dict[str, list[EtcdPod]] = {}
    for pod in pods:
        by_node.setdefault(pod.node, []).append(pod)
    trusted = labelled if by_node.keys() & set(labelled) else by_node
    others = {
        node: _why_missing(by_node[node], nodes.get(node)) or ("" if node in trusted else _UNLABELLED)
        for node in sorted(by_node)
        if node != name
    }
    return Quorum(
        members=tuple(sorted(by_node)),
        ready_others=tuple(node for node, why in others.items() if not why),
        missing={node: why for node, why in others.items() if why},
        only_node_missing=tuple(node for node, why in others.items() if why == _NODE_NOT_READY),
    )


def _why_missing(pods: Collection[EtcdPod], node_ready: bool | None) -> str:
    """Why the member of a node does not count; empty if it counts. Two pods on a node are one member."""
    if node_ready is None:
        return "its Node does not exist"
    if not any(pod.ready for pod in pods):
        return f"its pod {', '.join(sorted(pod.name for pod in pods))} is not Ready"
    return "" if node_ready else _NODE_NOT_READY
