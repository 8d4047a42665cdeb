# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a Node to its BareMetalHost, and back.

A Node knows its Machine by annotations, or the Machine knows it by ``status.nodeRef``; the Machine knows its
Metal3Machine, and that its BareMetalHost. Or the Node's provider ID names the host. What contradicts itself is
refused: the wrong host would be switched off.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from . import _bare_metal_host as rules
from . import _machine, _node
from . import _paths as paths
from ._cluster import Cluster, Object
from ._errors import InvalidInput, NotFound, Refused
from ._face import Context, Params

GROUP = "metal3.io"
_HOSTS = f"apis/{GROUP}/v1alpha1"
ALL_HOSTS = f"/{_HOSTS}/baremetalhosts"

_INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
# Of Cluster API and of its metal3 provider alike. One that is not served has no objects.
_VERSIONS = ["v1beta2", "v1beta1"]
_KIND = "Metal3Machine"
HOST_OF_MACHINE = "metal3.io/BareMetalHost"
_PROVIDER = "metal3://"


def hosts(namespace: str) -> str:
    """Path of the BareMetalHosts of a namespace; of all where it is empty."""
    return paths.namespaced(_HOSTS, namespace, "baremetalhosts") if namespace else ALL_HOSTS


def path_of(host: Object) -> str:
    return paths.one(hosts(host["metadata"]["namespace"]), host["metadata"]["name"])


def find(management: Cluster, name: str, namespace: str) -> Object:
    """A BareMetalHost by name, which has to be there and to be the only one.

    Raises:
        NotFound: There is none of that name.
        Refused: Several namespaces have one.
    """
    found = named(management, name, namespace)
    if not found:
        where = f"in namespace {namespace}" if namespace else "in any namespace"
        raise NotFound(
            f"There is no BareMetalHost {name} {where} of the management cluster. Use its name as the API has it "
            "(kubectl get baremetalhosts --all-namespaces), and give the management cluster's options in management "
            "where it is another one.",
            host=name,
        )
    if len(found) > 1:
        names = sorted(rules.full_name(host) for host in found)
        raise Refused(
            f"There are several BareMetalHosts {name}: {', '.join(names)}. Give the namespace of the one you mean.",
            host=name,
            candidates=names,
        )
    return found[0]


def named(management: Cluster, name: str, namespace: str) -> list[Object]:
    """All BareMetalHosts of a name; none where the kind is not installed."""
    if namespace:
        one = management.find(paths.one(hosts(namespace), name))
        return [one] if one else []
    return listed(management, field_selector=f"metadata.name={name}")


def listed(management: Cluster, namespace: str = "", field_selector: str = "") -> list[Object]:
    """The BareMetalHosts of a namespace, or all; none where the kind is not installed."""
    try:
        return list(management.items(hosts(namespace), field_selector=field_selector))
    except NotFound:
        return []


def asked_for(context: Context, params: Params) -> tuple[Context, str]:
    """The name of the BareMetalHost that a task gives, if it does, and how to reach the clusters.

    The common option ``host`` is the URL of the API server. What is no URL there is the name of a host.

    Raises:
        InvalidInput: It is given twice, and differs.
    """
    name, host = params.get("bare_metal_host") or "", params.get("host") or ""
    if not host or "://" in host:
        return context, name
    if name and name != host:
        raise InvalidInput(
            f"bare_metal_host is {name}, but host is {host}. Give one; the API server is given as a URL."
        )
    if context.params.get("host"):
        # It has hidden what the environment says of the API server.
        context = replace(context, params={**context.params, "host": os.environ.get("K8S_AUTH_HOST")})
    return context, host


def served(management: Cluster) -> bool:
    """Whether the kind is installed. In a cluster that does not know it no host can be gone."""
    try:
        for _page in management.pages(ALL_HOSTS):
            break
    except NotFound:
        return False
    return True


# -- from a Node to its host ------------------------------------------------------------------------------------------


def host_of(management: Cluster, node: Object, namespace: str = "") -> Object:
    """The BareMetalHost that a Node is.

    Args:
        namespace: Where it has to be; anywhere when empty.

    Raises:
        NotFound: No way leads to a host; says where each ends.
        Refused: There are several, or two ways lead to different ones.
    """
    name = _node.name(node)
    by_machine, why_no_machine = _by_machine(management, node, namespace)
    by_provider, why_no_provider = _by_provider_id(management, node)
    if by_machine and by_provider and _uid(by_machine) != _uid(by_provider):
        both = [rules.full_name(by_machine), rules.full_name(by_provider)]
        raise Refused(
            f"Node {name} is BareMetalHost {both[0]} by its Machine, but {both[1]} by its provider ID. Mend what is "
            "wrong there, or name the host.",
            node=name,
            candidates=both,
        )
    found = by_machine or by_provider
    if found is None:
        raise NotFound(
            f"The BareMetalHost of node {name} can't be found: {why_no_machine}, and {why_no_provider}. Name the host, "
            "or give the management cluster's options in management.",
            node=name,
        )
    if namespace and found["metadata"]["namespace"] != namespace:
        raise NotFound(
            f"Node {name} is BareMetalHost {rules.full_name(found)}, which is not in namespace {namespace}.", node=name
        )
    return found


def _by_machine(management: Cluster, node: Object, namespace: str) -> tuple[Object | None, str]:
    machine, why = _machine_of(management, node, namespace)
    if machine is None:
        return None, why
    full_name = _full(machine)
    reference = (machine.get("spec") or {}).get("infrastructureRef") or {}
    if reference.get("kind") != _KIND:
        return None, f"Machine {full_name} is no {_KIND}, but {reference.get('kind') or 'nothing yet'}"
    place = reference.get("namespace") or machine["metadata"]["namespace"]
    metal3_machine = _metal3_machine(management, place, reference["name"])
    if metal3_machine is None:
        return None, f"there is no {_KIND} {place}/{reference['name']}"
    wanted, _slash, name = _node.annotations_of(metal3_machine).get(HOST_OF_MACHINE, "").partition("/")
    if not name:
        return None, f"{_KIND} {_full(metal3_machine)} has no annotation {HOST_OF_MACHINE}"
    host = management.find(paths.one(hosts(wanted), name))
    if host is None:
        return None, f"there is no BareMetalHost {wanted}/{name}, which {_KIND} {_full(metal3_machine)} names"
    consumer = (host.get("spec") or {}).get("consumerRef") or {}
    if consumer.get("kind") == _KIND and consumer.get("name") != reference["name"]:
        raise Refused(
            f"{_KIND} {_full(metal3_machine)} of node {_node.name(node)} names BareMetalHost {wanted}/{name}, but that "
            f"belongs to {_KIND} {consumer.get('namespace')}/{consumer.get('name')}. Wait until Cluster API has sorted "
            "that out, or name the host.",
            node=_node.name(node),
            host=rules.full_name(host),
        )
    return host, ""


def _machine_of(management: Cluster, node: Object, namespace: str) -> tuple[Object | None, str]:
    """The Machine that the Node names, else the one that names the Node."""
    name, known = _node.name(node), _machine.name_of(node)
    if known is None:
        return _machine_naming(management, node, namespace)
    machine = _machine.find(management, _VERSIONS, *known)
    if machine is None:
        return None, f"there is no Machine {'/'.join(known)}"
    reference = _node_reference(machine.object)
    if reference.get("name") not in (None, name):
        # A kubelet may write its own Node's annotations: they are no proof by themselves.
        raise Refused(
            f"Node {name} names Machine {'/'.join(known)}, but that says that it is node {reference['name']}. Mend the "
            "Node's annotations, or name the host.",
            node=name,
            machine="/".join(known),
        )
    return machine.object, ""


def _machine_naming(management: Cluster, node: Object, namespace: str) -> tuple[Object | None, str]:
    name, uid = _node.name(node), node["metadata"].get("uid")
    found = []
    for machine in _machines(management, namespace):
        reference = _node_reference(machine)
        if reference.get("name") == name and reference.get("uid") in (None, "", uid):
            found.append(machine)
    if len(found) > 1:
        names = sorted(_full(machine) for machine in found)
        raise Refused(
            f"Several Machines say that they are node {name}: {', '.join(names)}. Give the namespace, or name the "
            "host.",
            node=name,
            candidates=names,
        )
    return (found[0], "") if found else (None, f"no Machine says that it is node {name}")


def _machines(management: Cluster, namespace: str) -> list[Object]:
    """The Machines of a namespace, or all; none where Cluster API is not installed."""
    for version in _VERSIONS:
        api = f"apis/{_machine.GROUP}/{version}"
        path = paths.namespaced(api, namespace, "machines") if namespace else f"/{api}/machines"
        with suppress(NotFound):
            return list(management.items(path))
    return []


def _by_provider_id(management: Cluster, node: Object) -> tuple[Object | None, str]:
    """By a provider ID like metal3://NAMESPACE/HOST/METAL3MACHINE, or the older metal3://UID-OF-THE-HOST."""
    text = str((node.get("spec") or {}).get("providerID") or "")
    if not text.startswith(_PROVIDER):
        return None, f"its provider ID is {text}" if text else "it has no provider ID"
    parts = [part for part in text[len(_PROVIDER) :].split("/") if part]
    if len(parts) > 1:
        host = management.find(paths.one(hosts(parts[0]), parts[1]))
    else:
        host = next((item for item in listed(management) if parts and _uid(item) == parts[0]), None)
    return host, "" if host else f"there is no BareMetalHost for its provider ID {text}"


# -- and back ---------------------------------------------------------------------------------------------------------


def nodes_of(cluster: Cluster, management: Cluster, wanted: Iterable[Object]) -> dict[str, str]:
    """Which Node each host is: UID of the BareMetalHost → name of the Node, where it is known."""
    found = {}
    providers: dict[str, str] | None = None
    for host in wanted:
        name = _by_consumer(management, host)
        if not name:
            if providers is None:
                providers = _providers(cluster)
            name = providers.get(_uid(host)) or providers.get(rules.full_name(host)) or ""
        if name:
            found[_uid(host)] = name
    return found


def _by_consumer(management: Cluster, host: Object) -> str:
    consumer = (host.get("spec") or {}).get("consumerRef") or {}
    if consumer.get("kind") != _KIND or not consumer.get("name"):
        return ""
    place = consumer.get("namespace") or host["metadata"]["namespace"]
    metal3_machine = _metal3_machine(management, place, consumer["name"])
    owners = metal3_machine["metadata"].get("ownerReferences") or [] if metal3_machine else []
    owner = next((item for item in owners if item.get("kind") == "Machine"), None)
    if owner is None:
        return ""
    machine = _machine.find(management, _VERSIONS, place, owner["name"])
    return str(_node_reference(machine.object).get("name") or "") if machine else ""


def _providers(cluster: Cluster) -> dict[str, str]:
    """Node by what its provider ID says of the host: its UID, or its namespace and name."""
    found = {}
    for node in cluster.items(paths.NODES):
        text = str((node.get("spec") or {}).get("providerID") or "")
        if text.startswith(_PROVIDER):
            parts = [part for part in text[len(_PROVIDER) :].split("/") if part]
            found["/".join(parts[:2])] = _node.name(node)
    return found


def _metal3_machine(management: Cluster, namespace: str, name: str) -> Object | None:
    for version in _VERSIONS:
        collection = paths.namespaced(f"apis/{_INFRASTRUCTURE}/{version}", namespace, "metal3machines")
        if found := management.find(paths.one(collection, name)):
            return found
    return None


def _node_reference(machine: Object) -> dict[str, Any]:
    return (machine.get("status") or {}).get("nodeRef") or {}


def _full(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _uid(item: Object) -> str:
    return str(item["metadata"]["uid"])
