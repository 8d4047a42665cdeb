# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about Machines of Cluster API: which Machine a Node has."""

from __future__ import annotations

from .._api import node_rules
from .._api.names import MACHINE, MACHINE_NAMESPACE
from .._api.objects import Object
from .rules import cluster_of

GROUP = "cluster.x-k8s.io"
CLUSTER_NAME = f"{GROUP}/cluster-name"
# Whether a Machine is the Node's. Several Clusters of one management cluster may have Nodes of the same name.
PROVEN, UNPROVEN, FOREIGN = "proven", "unproven", "foreign"
HOW_PROVEN = (
    f"Cluster API proves it by the Node's annotations {MACHINE}, {MACHINE_NAMESPACE} and {CLUSTER_NAME}, by "
    "status.nodeRef.uid, or by a providerID"
)


def name_of(node: Object) -> tuple[str, str] | None:
    """Return namespace and name of the Machine that a Node is; ``None`` if Cluster API did not make it."""
    marks = node_rules.annotations_of(node)
    namespace, name = marks.get(MACHINE_NAMESPACE), marks.get(MACHINE)
    return (namespace, name) if namespace and name else None


def relation(node: Object, machine: Object) -> str:
    """Return whether a Machine is a Node's: ``PROVEN``, ``UNPROVEN`` or ``FOREIGN``.

    A name alone proves nothing, and ``status.nodeRef`` of v1beta2 has only a name. A kubelet may write its own Node's
    annotations, so they count only if the Machine also names the Node.
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
    cluster = node_rules.annotations_of(node).get(CLUSTER_NAME)
    if cluster and cluster != cluster_of(machine):
        return FOREIGN
    by_annotations = bool(named and cluster and reference.get("name"))
    return PROVEN if by_annotations or uid or _same_provider_id(node, machine) else UNPROVEN


def _same_provider_id(node: Object, machine: Object) -> bool:
    """Return whether both have the same providerID, and it is more than the Node's name, which some providers use."""
    found = node_rules.provider_id(node)
    same = bool(found) and found == (machine.get("spec") or {}).get("providerID")
    return same and found.rpartition("/")[2] != node_rules.name(node)
