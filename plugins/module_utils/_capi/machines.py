# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of Cluster API, in the management cluster."""

from __future__ import annotations

from dataclasses import dataclass

from .._api import node_rules, paths
from .._api.cluster import Cluster, Object
from .._api.names import MACHINE, MACHINE_NAMESPACE
from .rules import cluster_of

GROUP = "cluster.x-k8s.io"
_VERSIONS = ("v1beta2", "v1beta1")
_CLUSTER_NAME = f"{GROUP}/cluster-name"

# Whether a Machine is that of a Node. One management cluster may have several Clusters with Nodes of one name.
PROVEN, UNPROVEN, FOREIGN = "proven", "unproven", "foreign"
HOW_PROVEN = (
    f"Cluster API proves it by the Node's annotations {MACHINE}, {MACHINE_NAMESPACE} and {_CLUSTER_NAME}, by "
    "status.nodeRef.uid, or by a providerID"
)


@dataclass(frozen=True)
class Machine:
    """A Machine as it is, and where."""

    path: str
    object: Object


def name_of(node: Object) -> tuple[str, str] | None:
    """Namespace and name of the Machine that a Node is; ``None`` where Cluster API did not make it."""
    marks = node_rules.annotations_of(node)
    namespace, name = marks.get(MACHINE_NAMESPACE), marks.get(MACHINE)
    return (namespace, name) if namespace and name else None


def relation(node: Object, machine: Object) -> str:
    """Whether a Machine is that of a Node: ``PROVEN``, ``UNPROVEN`` or ``FOREIGN``.

    A name alone proves nothing: ``status.nodeRef`` of v1beta2 has no more than that. A kubelet may write its own Node's
    annotations, so they count only where the Machine names the Node, too.
    """
    reference = (machine.get("status") or {}).get("nodeRef") or {}
    uid = reference.get("uid")
    if reference.get("name") not in (None, "", node_rules.name(node)) or uid not in (
        None,
        "",
        node["metadata"].get("uid"),
    ):
        return FOREIGN
    named, metadata = name_of(node), machine["metadata"]
    if named is not None and named != (metadata["namespace"], metadata["name"]):
        return FOREIGN
    cluster = node_rules.annotations_of(node).get(_CLUSTER_NAME)
    if cluster and cluster != cluster_of(machine):
        return FOREIGN
    by_annotations = bool(named and cluster and reference.get("name"))
    return PROVEN if by_annotations or uid or _same_provider_id(node, machine) else UNPROVEN


def _same_provider_id(node: Object, machine: Object) -> bool:
    """Whether both have the same providerID, and it is more than the Node's name, of which some providers make it."""
    found = (node.get("spec") or {}).get("providerID")
    same = bool(found) and found == (machine.get("spec") or {}).get("providerID")
    return same and str(found).rpartition("/")[2] != node_rules.name(node)


def served_versions(management: Cluster) -> list[str]:
    """The API's versions that we know, newest first; none where it is not installed."""
    group = management.find(f"/apis/{GROUP}") or {}
    served = {item["version"] for item in group.get("versions") or []}
    return [version for version in _VERSIONS if version in served]


def find(management: Cluster, versions: list[str], namespace: str, name: str) -> Machine | None:
    """A Machine, ``None`` where there is none of that name."""
    for version in versions:
        path = paths.one(paths.namespaced(f"apis/{GROUP}/{version}", namespace, "machines"), name)
        found = management.find(path)
        if found is not None:
            return Machine(path, found)
    return None
