# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether etcd keeps its quorum without one node. Rules only: pods and Nodes as they are go in.

What is known of etcd's members is what their pods tell: one member on each node that has such a pod.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .._api import node_rules
from .._api.objects import Object

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
# Before Kubernetes 1.24; who came from there may have it still.
MASTER = "node-role.kubernetes.io/master"
_NODE_NOT_READY = "its Node is not Ready"


@dataclass(frozen=True)
class EtcdPod:
    """A member's pod.

    Attributes:
        uid: Its uid.
        name: Its ``namespace/name``.
        node: Where it runs; its own name where it has no node yet, so that it counts as a member of its own.
        ready: Whether it is Ready and not on its way out.
    """

    uid: str
    name: str
    node: str
    ready: bool


@dataclass(frozen=True)
class Quorum:
    """What is left of etcd without one node.

    Attributes:
        members: Nodes that have a member.
        ready_others: Other control-plane nodes whose member and Node are Ready.
        missing: The other members that don't count, and why.
        behind: Those of them of which only the Node is not Ready.
    """

    members: tuple[str, ...]
    ready_others: tuple[str, ...]
    missing: Mapping[str, str]
    behind: tuple[str, ...]

    @property
    def needed(self) -> int:
        """How many members make a quorum; 0 where none is known."""
        return len(self.members) // 2 + 1 if self.members else 0

    @property
    def kept(self) -> bool | None:
        """Whether there is a quorum without the node; ``None`` where no member is known."""
        return len(self.ready_others) >= self.needed if self.members else None

    @property
    def pods_suffice(self) -> bool:
        """Whether it would be kept as soon as Nodes are Ready, without news of any pod."""
        return len(self.ready_others) + len(self.behind) >= self.needed

    @property
    def can_spare_one(self) -> bool:
        """Whether it would be kept with every other member Ready."""
        return len(self.ready_others) + len(self.missing) >= self.needed


def read_pod(pod: Object) -> EtcdPod:
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


def judge(name: str, pods: Collection[EtcdPod], control_plane: Mapping[str, bool]) -> Quorum:
    """What would be left without a node.

    Args:
        name: The node that is to go away.
        pods: etcd's pods.
        control_plane: The control-plane nodes, and whether each is Ready.
    """
    placed: dict[str, list[EtcdPod]] = {}
    for pod in pods:
        placed.setdefault(pod.node, []).append(pod)
    others = {node: _why_missing(placed[node], control_plane.get(node)) for node in sorted(placed) if node != name}
    return Quorum(
        members=tuple(sorted(placed)),
        ready_others=tuple(node for node, why in others.items() if not why),
        missing={node: why for node, why in others.items() if why},
        behind=tuple(node for node, why in others.items() if why == _NODE_NOT_READY),
    )


def _why_missing(pods: Collection[EtcdPod], node_ready: bool | None) -> str:
    """Why the member of a node does not count; empty where it does. Two pods on a node are one member."""
    if node_ready is None:
        return "it is no control-plane node"
    if not any(pod.ready for pod in pods):
        return f"its pod {', '.join(sorted(pod.name for pod in pods))} is not Ready"
    return "" if node_ready else _NODE_NOT_READY
