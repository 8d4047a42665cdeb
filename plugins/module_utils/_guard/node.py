# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Node of a Machine, and whether the given cluster is the one that the Machine belongs to.

A Machine gives only its Node's name, and a cluster that is not its own may have a Node of that name, or none. With
the wrong cluster, a run would drain a Node that is not being deleted, or release a Machine that still runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import Refused
from .._api.objects import Object
from .._capi import machine_rules
from .._capi import rules as hooks
from .rules import FOREIGN, NO_NODE, NODE_GONE, node_state


class WrongCluster(Refused):
    """The given cluster is not shown to be the Machine's."""

    kind = "wrong_cluster"


# -- rules ------------------------------------------------------------------------------------------------------------


def is_node_of(node: Object, machine: Object) -> bool:
    """Return whether a Node of the right name belongs to a Machine.

    The annotations of Cluster API on the Node decide. Without them, the provider ID does. It is no proof by itself,
    because some providers derive it from the name.
    """
    named = machine_rules.name_of(node)
    if named is not None:
        metadata = machine["metadata"]
        return named == (metadata["namespace"], metadata["name"]) and _cluster_of(node) in (
            "",
            hooks.cluster_of(machine),
        )
    provider_id = (machine.get("spec") or {}).get("providerID")
    return bool(provider_id) and (node.get("spec") or {}).get("providerID") == provider_id


def is_of_same_cluster(node: Object, machine: Object) -> bool:
    """Return whether a Node says that it belongs to the Machine's Cluster."""
    named = machine_rules.name_of(node)
    namespace = machine["metadata"]["namespace"]
    return named is not None and named[0] == namespace and _cluster_of(node) == hooks.cluster_of(machine)


def _cluster_of(node: Object) -> str:
    return node_rules.annotations_of(node).get(machine_rules.CLUSTER_NAME, "")


# -- the operation ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The Node of a Machine.

    Attributes:
        node: The Node; ``None`` if the Machine has none.
        state: The state of the Node, as far as it is known.
        foreign: Why the cluster does not count as the Machine's; empty if it does.
    """

    node: Object | None
    state: str
    foreign: str = ""

    def check(self, machine: Object) -> None:
        """Refuse a cluster that is not the Machine's, before anything is done there.

        Raises:
            WrongCluster: It is not shown to be.
        """
        if not self.foreign:
            return
        metadata = machine["metadata"]
        raise WrongCluster(
            f"Machine {metadata['namespace']}/{metadata['name']} of Cluster {hooks.cluster_of(machine)} is Node "
            f"{hooks.node_of(machine)}, and {self.foreign}. Nothing was done to the Node, and the hook stays. Name the "
            "workload cluster of this Machine in machine_guard_auth, and select only its Machines with "
            "machine_guard_cluster. If the cluster is right and its Nodes are gone, remove the hook with "
            "deletion_hook, state: absent.",
            machine=metadata["name"],
            node=hooks.node_of(machine),
        )


def look(cluster: Cluster, machine: Object, *, seen: bool = False) -> Found:
    """Return what is known of the Node of a Machine.

    Args:
        cluster: The workload cluster.
        machine: The Machine.
        seen: Whether the same work has seen the Node in the same cluster before.
    """
    name = hooks.node_of(machine)
    if name is None:
        return Found(None, NO_NODE)
    node = cluster.find(paths.node(name))
    if node is not None:
        if is_node_of(node, machine):
            return Found(node, node_state(machine, node))
        named = machine_rules.name_of(node)
        says = f"says that it is Machine {'/'.join(named)}" if named else "names no Machine and has another providerID"
        of = f" of Cluster {_cluster_of(node)}" if _cluster_of(node) else ""
        return Found(None, FOREIGN, f"the Node of that name in the given cluster {says}{of}")
    if seen or any(is_of_same_cluster(item, machine) for item in cluster.items(paths.NODES)):
        return Found(None, NODE_GONE)
    return Found(None, FOREIGN, "the given cluster has neither that Node nor another one of that Cluster")
