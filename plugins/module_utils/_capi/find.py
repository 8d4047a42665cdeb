# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where Cluster API's objects are in the management cluster, and what they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import InvalidInput, NotFound, Refused
from .._api.node_rules import annotations_of
from .._api.objects import Object
from .._api.runner import Context
from . import machine_rules
from .machines import VERSIONS, served_versions
from .rules import Around, cluster_of, node_of

_CONTROL_PLANE = f"{machine_rules.GROUP}/control-plane"
_KUBEADM = f"controlplane.{machine_rules.GROUP}"


@dataclass(frozen=True)
class Place:
    """A collection, and the name of an object in it."""

    collection: str
    name: str

    @property
    def path(self) -> str:
        return paths.one(self.collection, self.name)


@dataclass(frozen=True)
class Kind:
    """Where a kind is, and where it has the annotations that its Machines get."""

    group: str
    resource: str
    template: str = ""

    def annotations(self, item: Object) -> dict[str, str]:
        if not self.template:
            return annotations_of(item)
        metadata = ((item.get("spec") or {}).get(self.template) or {}).get("metadata") or {}
        return metadata.get("annotations") or {}

    def patch(self, item: Object, changes: dict[str, str | None]) -> Object:
        """Return a merge patch of these annotations alone; the API server refuses it if someone else wrote first."""
        version = {"resourceVersion": item["metadata"]["resourceVersion"]}
        if not self.template:
            return {"metadata": {**version, "annotations": changes}}
        return {"metadata": version, "spec": {self.template: {"metadata": {"annotations": changes}}}}


MACHINE = "Machine"
KINDS = {
    MACHINE: Kind(machine_rules.GROUP, "machines"),
    "MachineDeployment": Kind(machine_rules.GROUP, "machinedeployments", "template"),
    "MachineSet": Kind(machine_rules.GROUP, "machinesets", "template"),
    "KubeadmControlPlane": Kind(_KUBEADM, "kubeadmcontrolplanes", "machineTemplate"),
}


def version_of(management: Cluster, group: str) -> str | None:
    """Return the newest version of an API group that is served and supported; ``None`` if there is none."""
    return next(iter(served_versions(management, group)), None)


def place(management: Cluster, kind: Kind, namespace: str, name: str) -> Place:
    """Return where an object of a kind is, or would be.

    Raises:
        NotFound: The cluster does not serve the kind.
    """
    return Place(paths.namespaced(_api(management, kind), namespace, kind.resource), name)


def of_node(context: Context, node: str, namespace: str | None) -> Place | None:
    """Return where a Node's Machine is; ``None`` if nothing says so.

    Raises:
        InvalidInput: It is in another namespace than ``namespace``.
        Refused: Several Machines claim to be that Node, or the one that does is not proven to be.
    """
    management, kind = context.management, KINDS[MACHINE]
    present = context.cluster.find(paths.node(node))
    named = machine_rules.name_of(present) if present else None
    if named is None:
        return _by_reference(management, node, present, namespace)
    if namespace and named[0] != namespace:
        raise InvalidInput(
            f"The Machine of Node {node} is {'/'.join(named)}, not in the namespace {namespace}. Leave namespace out, "
            "or give that of the Machine.",
            node=node,
            machine="/".join(named),
        )
    found = place(management, kind, *named)
    machine = management.find(found.path)
    if machine and present:
        _check_relation(present, machine)
    return found


def _check_relation(node: Object, machine: Object) -> None:
    relation = machine_rules.relation(node, machine)
    if relation == machine_rules.PROVEN:
        return
    name, full_name = node["metadata"]["name"], _full_name(machine)
    other = node_of(machine)
    why = (
        f"that Machine is Node {other}"
        if other not in (None, name)
        else f"that Machine belongs to Cluster {cluster_of(machine)}, and is the Machine of another Node"
        if relation == machine_rules.FOREIGN
        else f"nothing proves that it is the Machine of this Node. {machine_rules.HOW_PROVEN}"
    )
    raise Refused(
        f"Node {name} seems to be Machine {full_name}, but {why}. Name the Machine itself with machine and namespace.",
        node=name,
        machine=full_name,
        why=relation,
    )


def _by_reference(management: Cluster, node: str, present: Object | None, namespace: str | None) -> Place | None:
    """Search by ``status.nodeRef`` if the Node is gone or does not name its Machine."""
    known = list(machines(management, namespace))
    found = [item for item in known if node_of(item) == node]
    if present:
        proven = [item for item in found if machine_rules.relation(present, item) == machine_rules.PROVEN]
        found = proven or found
    names = sorted(_full_name(item) for item in found)
    clusters = sorted({f"{item['metadata']['namespace']}/{cluster_of(item)}" for item in known})
    if len(found) > 1:
        raise Refused(
            f"Several Machines name Node {node}: {', '.join(names)}. Name the Machine itself with machine and "
            "namespace.",
            node=node,
            machines=names,
        )
    if not found:
        return None
    if present:
        _check_relation(present, found[0])
    elif len(clusters) > 1:
        raise Refused(
            f"There is no Node {node}, and Machine {names[0]} names one of that name. There are Machines of several "
            f"Clusters ({', '.join(clusters)}), so that Node may belong to another Cluster. Name the Machine itself "
            "with machine and namespace.",
            node=node,
            machines=names,
            why=machine_rules.UNPROVEN,
        )
    metadata = found[0]["metadata"]
    return place(management, KINDS[MACHINE], metadata["namespace"], metadata["name"])


def _full_name(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def machines(
    management: Cluster, namespace: str | None, *, field_selector: str = "", label_selector: str = ""
) -> Iterator[Object]:
    """Return the Machines of a namespace, or of all."""
    path = machines_path(management, namespace)
    return management.items(path, field_selector=field_selector, label_selector=label_selector)


def machines_path(management: Cluster, namespace: str | None) -> str:
    kind = KINDS[MACHINE]
    api = _api(management, kind)
    return paths.namespaced(api, namespace, kind.resource) if namespace else f"/{api}/{kind.resource}"


def around(management: Cluster, machine: Object) -> Around:
    """Return what else, besides the Machine, decides whether Cluster API waits for pre-drain hooks."""
    namespace, name = machine["metadata"]["namespace"], cluster_of(machine)
    api = _api(management, KINDS[MACHINE])
    cluster = management.find(paths.one(paths.namespaced(api, namespace, "clusters"), name))
    if cluster is None:
        # Cluster API does nothing with the Machines of such a Cluster.
        return Around()
    maker = _control_plane_of(management, cluster) or {}
    return Around(
        cluster_deleting=_is_going(cluster),
        control_plane_deleting=_is_going(maker),
        control_plane=_is_external(maker) or _has_another(management, machine),
    )


def _has_another(management: Cluster, machine: Object) -> bool:
    """Return whether a Machine of the control plane stays when this one goes."""
    namespace, own = machine["metadata"]["namespace"], machine["metadata"].get("uid")
    selector = f"{machine_rules.CLUSTER_NAME}={cluster_of(machine)},{_CONTROL_PLANE}"
    others = machines(management, namespace, label_selector=selector)
    return any(not _is_going(item) and item["metadata"].get("uid") != own for item in others)


def _control_plane_of(management: Cluster, cluster: Object) -> Object | None:
    """Return the object that makes the control plane; ``None`` if there is none."""
    reference = (cluster.get("spec") or {}).get("controlPlaneRef") or {}
    # v1beta2 gives only the group, v1beta1 also a version.
    group = str(reference.get("apiGroup") or reference.get("apiVersion") or "").partition("/")[0]
    known = management.find(f"/apis/{group}") if group else None
    if not known:
        return None
    version = known["preferredVersion"]["groupVersion"]
    served = (management.find(f"/apis/{version}") or {}).get("resources") or []
    plural = next(
        (item["name"] for item in served if item["kind"] == reference.get("kind") and "/" not in item["name"]), None
    )
    if not plural:
        return None
    namespace = cluster["metadata"]["namespace"]
    return management.find(
        paths.one(paths.namespaced(f"apis/{version}", namespace, plural), str(reference.get("name")))
    )


def _is_external(maker: dict[str, Any]) -> bool:
    return bool((maker.get("status") or {}).get("externalManagedControlPlane"))


def _is_going(item: dict[str, Any]) -> bool:
    return bool((item.get("metadata") or {}).get("deletionTimestamp"))


def _api(management: Cluster, kind: Kind) -> str:
    version = version_of(management, kind.group)
    if version is None:
        raise NotFound(
            f"The cluster does not serve the API {kind.group} ({' or '.join(VERSIONS)}). If the Machines are in a "
            "management cluster, give its options in management.",
            group=kind.group,
        )
    return f"apis/{kind.group}/{version}"
