# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a Node to its BareMetalHost, and back.

A Node names its Machine in annotations, or the Machine names the Node in ``status.nodeRef``. The Machine names its
Metal3Machine, and that names its BareMetalHost. Or the Node's provider ID names the host. Contradictions are refused,
and so is a Machine that is not proven to be the Node's: the wrong host would be switched off.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import InvalidInput, NotFound, Refused
from .._api.objects import Object
from .._api.runner import Context, Params
from .._capi import machine_rules
from .._capi import machines as capi_machines
from .._capi.machines import VERSIONS
from .._capi.rules import cluster_of
from . import host_rules as rules

GROUP = "metal3.io"
_HOSTS = f"apis/{GROUP}/v1alpha1"
ALL_HOSTS = f"/{_HOSTS}/baremetalhosts"

_INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
_KIND = "Metal3Machine"
HOST_OF_MACHINE = "metal3.io/BareMetalHost"


def hosts(namespace: str) -> str:
    """Return the path of the BareMetalHosts of a namespace; of all namespaces if it is empty."""
    return paths.namespaced(_HOSTS, namespace, "baremetalhosts") if namespace else ALL_HOSTS


def path_of(host: Object) -> str:
    return paths.one(hosts(host["metadata"]["namespace"]), host["metadata"]["name"])


def find(management: Cluster, name: str, namespace: str) -> Object:
    """Return the only BareMetalHost of a name.

    Raises:
        NotFound: No host has the name.
        Refused: Several namespaces have one.
    """
    found = named(management, name, namespace)
    if not found:
        where = f"in namespace {namespace}" if namespace else "in any namespace"
        raise NotFound(
            f"There is no BareMetalHost {name} {where} of the management cluster. Use its name as the API has it "
            "(kubectl get baremetalhosts --all-namespaces), and give the management cluster's options in management "
            "if it is another cluster.",
            host=name,
        )
    if len(found) > 1:
        names = sorted(rules.full_name(host) for host in found)
        raise Refused(
            f"There are several BareMetalHosts {name}: {', '.join(names)}. Give the namespace of the right one.",
            host=name,
            candidates=names,
        )
    return found[0]


def named(management: Cluster, name: str, namespace: str) -> list[Object]:
    """Return all BareMetalHosts of a name; none if the kind is not installed."""
    if namespace:
        one = management.find(paths.one(hosts(namespace), name))
        return [one] if one else []
    return list(listed(management, field_selector=f"metadata.name={name}"))


def listed(management: Cluster, namespace: str = "", field_selector: str = "") -> Iterator[Object]:
    """Return the BareMetalHosts of a namespace, or all; none if the kind is not installed."""
    with suppress(NotFound):
        yield from management.items(hosts(namespace), field_selector=field_selector)


def from_options(context: Context, params: Params) -> tuple[Context, str]:
    """Return how to reach the clusters, and the name of the BareMetalHost that a task gives, if any.

    The common option ``host`` is the URL of the API server. A value that is no URL is the name of a host.

    Raises:
        InvalidInput: It is given twice, with different values.
    """
    name, host = params.get("bare_metal_host") or "", params.get("host") or ""
    if not host or "://" in host:
        return context, name
    if name and name != host:
        raise InvalidInput(
            f"bare_metal_host is {name}, but host is {host}. Give one of them; the host of an API server is a URL."
        )
    if context.params.get("host"):
        # The host's name hid the API server that the environment gives.
        context = replace(context, params={**context.params, "host": os.environ.get("K8S_AUTH_HOST")})
    return context, host


def served(management: Cluster) -> bool:
    """Return whether the kind is installed. If it is not, a missing host does not count as gone."""
    try:
        for _page in management.pages(ALL_HOSTS):
            break
    except NotFound:
        return False
    return True


# -- from a Node to its host ------------------------------------------------------------------------------------------


def host_of(management: Cluster, node: Object, namespace: str = "") -> Object:
    """Return the BareMetalHost that a Node is.

    Args:
        namespace: Where it must be; anywhere if empty.

    Raises:
        NotFound: No way leads to a host; the message says where each ends.
        Refused: There are several, or two ways lead to different hosts.
    """
    name = node_rules.name(node)
    by_machine, why_no_machine = _by_machine(management, node, namespace)
    by_provider, why_no_provider = _by_provider_id(management, node)
    if by_machine and by_provider and _uid(by_machine) != _uid(by_provider):
        both = [rules.full_name(by_machine), rules.full_name(by_provider)]
        raise Refused(
            f"Node {name} is BareMetalHost {both[0]} by its Machine, but {both[1]} by its provider ID. Correct the "
            "wrong one, or name the host.",
            node=name,
            candidates=both,
        )
    found = by_machine or by_provider
    if by_provider and not by_machine:
        _check_machine_of(management, by_provider, node)
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


def _check_machine_of(management: Cluster, host: Object, node: Object) -> None:
    """Check that the Machine of the host is no other Node's. A kubelet can write an empty provider ID of its Node."""
    other, machine = claimed_by(management, host)
    if machine and machine_rules.relation(node, machine) == machine_rules.FOREIGN:
        name = node_rules.name(node)
        raise Refused(
            f"Node {name} is BareMetalHost {rules.full_name(host)} by its provider ID, but the host is node "
            f"{other or '-'} of Cluster {cluster_of(machine)} by its Machine {_full_name(machine)}. Correct the wrong "
            "one.",
            node=name,
            host=rules.full_name(host),
        )


def _by_machine(management: Cluster, node: Object, namespace: str) -> tuple[Object | None, str]:
    machine, why = _machine_of(management, node, namespace)
    if machine is None:
        return None, why
    full_name = _full_name(machine)
    reference = (machine.get("spec") or {}).get("infrastructureRef") or {}
    if reference.get("kind") != _KIND:
        return None, (
            f"Machine {full_name} has no {_KIND} as its infrastructure, but {reference.get('kind') or 'nothing yet'}"
        )
    place = reference.get("namespace") or machine["metadata"]["namespace"]
    metal3_machine = _metal3_machine(management, place, reference["name"])
    if metal3_machine is None:
        return None, f"there is no {_KIND} {place}/{reference['name']}"
    wanted, _slash, name = node_rules.annotations_of(metal3_machine).get(HOST_OF_MACHINE, "").partition("/")
    if not name:
        return None, f"{_KIND} {_full_name(metal3_machine)} has no annotation {HOST_OF_MACHINE}"
    host = management.find(paths.one(hosts(wanted), name))
    if host is None:
        return None, f"there is no BareMetalHost {wanted}/{name}, which {_KIND} {_full_name(metal3_machine)} names"
    consumer = _consumer(host)
    if consumer.get("kind") == _KIND and consumer.get("name") != reference["name"]:
        raise Refused(
            f"{_KIND} {_full_name(metal3_machine)} of node {node_rules.name(node)} names BareMetalHost "
            f"{wanted}/{name}, but that belongs to {_KIND} {consumer.get('namespace')}/{consumer.get('name')}. Wait "
            "until Cluster API has resolved that, or name the host.",
            node=node_rules.name(node),
            host=rules.full_name(host),
        )
    return host, ""


def _machine_of(management: Cluster, node: Object, namespace: str) -> tuple[Object | None, str]:
    """Return the Machine that the Node names, else the one that names the Node."""
    name, known = node_rules.name(node), machine_rules.name_of(node)
    if known is None:
        return _machine_naming(management, node, namespace)
    machine = capi_machines.find(management, VERSIONS, *known)
    if machine is None:
        return None, f"there is no Machine {'/'.join(known)}"
    reference = _node_reference(machine.object)
    if reference.get("name") not in (None, name):
        # A kubelet may write the annotations of its own Node: they prove nothing by themselves.
        raise Refused(
            f"Node {name} names Machine {'/'.join(known)}, but that Machine names node {reference['name']}. Correct "
            "the Node's annotations, or name the host.",
            node=name,
            machine="/".join(known),
        )
    if machine_rules.relation(node, machine.object) != machine_rules.PROVEN:
        return None, _not_proven(machine.object)
    return machine.object, ""


def _machine_naming(management: Cluster, node: Object, namespace: str) -> tuple[Object | None, str]:
    name = node_rules.name(node)
    relations = [
        (machine, machine_rules.relation(node, machine))
        for machine in _machines(management, namespace)
        if _node_reference(machine).get("name") == name
    ]
    found = [machine for machine, relation in relations if relation == machine_rules.PROVEN]
    if len(found) > 1:
        names = sorted(_full_name(machine) for machine in found)
        raise Refused(
            f"Several Machines name node {name}: {', '.join(names)}. Give the namespace, or name the host.",
            node=name,
            candidates=names,
        )
    if found:
        return found[0], ""
    unproven = [_not_proven(machine) for machine, _relation in relations]
    return None, "; ".join(unproven) or f"no Machine names node {name}"


def _not_proven(machine: Object) -> str:
    """Return why a Machine that seems to be the Node's is not proven to be."""
    return (
        f"Machine {_full_name(machine)} of Cluster {cluster_of(machine)} may belong to another Node of the same name "
        f"({machine_rules.HOW_PROVEN})"
    )


def _machines(management: Cluster, namespace: str) -> list[Object]:
    """Return the Machines of a namespace, or all; none if Cluster API is not installed."""
    for version in VERSIONS:
        api = f"apis/{machine_rules.GROUP}/{version}"
        path = paths.namespaced(api, namespace, "machines") if namespace else f"/{api}/machines"
        with suppress(NotFound):
            return list(management.items(path))
    return []


def _by_provider_id(management: Cluster, node: Object) -> tuple[Object | None, str]:
    """Follow a provider ID like metal3://NAMESPACE/HOST/METAL3MACHINE, or the older metal3://UID-OF-THE-HOST."""
    text, parts = rules.provider_id(node)
    if parts is None:
        return None, f"its provider ID is {text}" if text else "it has no provider ID"
    if len(parts) > 1:
        host = management.find(paths.one(hosts(parts[0]), parts[1]))
    else:
        host = next((item for item in listed(management) if parts and _uid(item) == parts[0]), None)
    if host is None:
        return None, f"there is no BareMetalHost for its provider ID {text}"
    if not _is_used_by(host, parts):
        return None, f"BareMetalHost {rules.full_name(host)} of its provider ID {text} now has another consumer"
    return host, ""


def _is_used_by(host: Object, parts: list[str]) -> bool:
    """Return whether the Metal3Machine in a provider ID, if there is one, still uses the host."""
    consumer = _consumer(host)
    return len(parts) < 3 or consumer.get("kind") != _KIND or consumer.get("name") == parts[2]


# -- and back ---------------------------------------------------------------------------------------------------------


def nodes_of(cluster: Cluster, management: Cluster, wanted: Iterable[Object]) -> dict[str, str]:
    """Return which Node each host is: UID of the BareMetalHost → name of the Node, where it is known."""
    found = candidates_of(cluster, management, wanted)
    return {uid: names[0] for uid, names in found.items() if len(names) == 1}


def candidates_of(cluster: Cluster, management: Cluster, wanted: Iterable[Object]) -> dict[str, list[str]]:
    """Return which Nodes each host may be, by its UID: one by its Machine, or all with its provider ID.

    A Node with the right name that is not proven to be the host's may belong to another Cluster.
    """
    found = {}
    providers: dict[str, set[str]] | None = None
    for host in wanted:
        name, machine = claimed_by(management, host)
        node = cluster.find(paths.node(name)) if name else None
        if node and machine and machine_rules.relation(node, machine) != machine_rules.PROVEN:
            name = ""
        if not name and providers is None:
            providers = _providers(cluster)
        found[_uid(host)] = [name] if name else _by_providers(providers or {}, host)
    return found


def claimed_by(management: Cluster, host: Object) -> tuple[str, Object | None]:
    """Return the Node's name according to the host's Machine, of any Cluster, and that Machine."""
    consumer = _consumer(host)
    metal3_machine = _consumer_of(management, host)
    owners = metal3_machine["metadata"].get("ownerReferences") or [] if metal3_machine else []
    owner = next((item for item in owners if item.get("kind") == "Machine"), None)
    if owner is None:
        return "", None
    place = consumer.get("namespace") or host["metadata"]["namespace"]
    machine = capi_machines.find(management, VERSIONS, place, owner["name"])
    return (str(_node_reference(machine.object).get("name") or ""), machine.object) if machine else ("", None)


def consumer_uid(management: Cluster, host: Object) -> str:
    """Return the UID of the Metal3Machine that uses the host; empty if unknown."""
    found = _consumer_of(management, host)
    return _uid(found) if found else str(_consumer(host).get("uid") or "")


def _consumer(host: Object) -> dict[str, Any]:
    return (host.get("spec") or {}).get("consumerRef") or {}


def _consumer_of(management: Cluster, host: Object) -> Object | None:
    consumer = _consumer(host)
    if consumer.get("kind") != _KIND or not consumer.get("name"):
        return None
    return _metal3_machine(management, consumer.get("namespace") or host["metadata"]["namespace"], consumer["name"])


def _by_providers(providers: dict[str, set[str]], host: Object) -> list[str]:
    """Find the Nodes by the provider IDs that ``_providers`` returns."""
    consumer = _consumer(host)
    names = [_uid(host), f"{rules.full_name(host)}/{consumer.get('name')}"]
    if consumer.get("kind") != _KIND:
        names.append(rules.full_name(host))
    return sorted(set().union(*(providers.get(name, ()) for name in names)))


def _providers(cluster: Cluster) -> dict[str, set[str]]:
    """Map what each provider ID says of the host (UID, or namespace and name, with and without consumer) to Nodes."""
    found: dict[str, set[str]] = {}
    for node in cluster.items(paths.NODES):
        _text, parts = rules.provider_id(node)
        if parts is not None:
            for text in ("/".join(parts[:2]), "/".join(parts)):
                found.setdefault(text, set()).add(node_rules.name(node))
    return found


def _metal3_machine(management: Cluster, namespace: str, name: str) -> Object | None:
    for version in VERSIONS:
        collection = paths.namespaced(f"apis/{_INFRASTRUCTURE}/{version}", namespace, "metal3machines")
        if found := management.find(paths.one(collection, name)):
            return found
    return None


def _node_reference(machine: Object) -> dict[str, Any]:
    return (machine.get("status") or {}).get("nodeRef") or {}


def _full_name(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _uid(item: Object) -> str:
    return str(item["metadata"]["uid"])
