# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules: which host a Node is, its groups and its variables."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .._api import node_rules
from .._api.objects import Object
from .._capi import machine_rules
from .._fencing import host_rules
from .._nodes import fact_rules

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
# Variables of the roles that name the Node of a host. By default the host has the name of its Node.
NODE_OF_HOST = ("graceful_shutdown_node", "node_agent_node_name", "rolling_reboot_node_name")

# The group of all nodes, and the groups that exist even if no node is in them: a play over an absent group gets a
# warning.
ALL = "nodes"
STATES = ("ready", "not_ready", "cordoned", "held", "excluded")

_ROLE = "node-role.kubernetes.io/"
_OLD_ROLE = "kubernetes.io/role"
# kubeadm gives no label to the nodes that are not in the control plane.
_NO_ROLE = "worker"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]")
# An IP address or a DNS name. A kubelet writes the addresses of its Node, and the API server accepts any text.
# ssh reads text that begins with a hyphen as an option, and an option of ssh can start a command on the controller.
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9:._-]*")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")


def facts(node: Object) -> dict[str, Any]:
    """What the variables of a host say, apart from its holds, as data that a cache can keep."""
    status, labels = node.get("status") or {}, node_rules.labels_of(node)
    _text, parts = host_rules.provider_id(node)
    return {
        **fact_rules.facts(node),
        "roles": roles(labels),
        "zone": labels.get(ZONE),
        "region": labels.get(REGION),
        "addresses": [{key: item.get(key) for key in ("type", "address")} for item in status.get("addresses") or []],
        "conditions": {item["type"]: item.get("status") for item in status.get("conditions") or []},
        "machine": _named(machine_rules.name_of(node)),
        "bare_metal_host": _named(parts),
        "architecture": str((status.get("nodeInfo") or {}).get("architecture") or ""),
        **dict.fromkeys(node_rules.VERSIONS.values(), ""),
        **node_rules.versions(node),
    }


def hold_fact(hold: Mapping[str, Any]) -> dict[str, Any]:
    """A hold of a host, without its age, which a cache would make wrong."""
    return {key: hold[key] for key in ("namespace", "holder", "acquired", "reason")}


def _named(names: Sequence[str] | None) -> dict[str, str] | None:
    return {"namespace": names[0], "name": names[1]} if names and len(names) > 1 else None


def roles(labels: Mapping[str, str]) -> list[str]:
    """The roles of a node, as kubectl shows them; ``worker`` if no label names one."""
    named = {key[len(_ROLE) :] for key in labels if key.startswith(_ROLE)} | {labels.get(_OLD_ROLE, "")}
    return sorted(named - {""}) or [_NO_ROLE]


def shared_addresses(nodes: Iterable[Mapping[str, Any]]) -> set[str]:
    """The addresses that several nodes report. A kubelet can report the address of another node.

    Work on its node would then run on the other node. So no node gets such an address.
    """
    counted = Counter(
        text for found in nodes for text in {_spelled(item["address"]) for item in found["addresses"]} if text
    )
    return {text for text, count in counted.items() if count > 1}


def _spelled(address: Any) -> str:
    """The one spelling of an IP address or a DNS name; empty for anything else.

    ssh reads 10.1, 0x0a000001 and 167772161 as 10.0.0.1. The last part of a DNS name is no number.
    """
    text = str(address)
    if not _ADDRESS.fullmatch(text):
        return ""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        name = text.lower().rstrip(".")
        return "" if ":" in name or _NUMBER.fullmatch(name.rpartition(".")[2]) else name
    return str(getattr(found, "ipv4_mapped", None) or found)


def address(found: Mapping[str, Any], types: Iterable[str], shared: Collection[str] = ()) -> str | None:
    """The first IP address or DNS name of the first of these types that only this node has; ``None`` without one."""
    for wanted in types:
        for text in (str(item["address"]) for item in found["addresses"] if item["type"] == wanted):
            spelled = _spelled(text)
            if spelled and spelled not in shared:
                return text
    return None


def groups(found: Mapping[str, Any], labels: Iterable[str]) -> Iterator[str]:
    """The names of the groups of a node, without their prefix and without the group of all nodes.

    Args:
        labels: Keys of the labels by whose values the nodes are grouped.
    """
    for role in found["roles"]:
        yield safe(f"role_{role}")
    if found["zone"]:
        yield safe(f"zone_{found['zone']}")
    for key in labels:
        if key in found["labels"]:
            yield safe("_".join(filter(None, (key.rpartition("/")[2], found["labels"][key]))))
    yield state("ready" if found["ready"] else "not_ready")
    for name, applies in (
        ("cordoned", found["unschedulable"]),
        ("held", found.get("holds")),
        ("excluded", found["excluded"]),
    ):
        if applies:
            yield state(name)


def state(name: str) -> str:
    """The name of the group of the nodes that are in a state."""
    return f"{ALL}_{name}"


def safe(name: str) -> str:
    """A name of a group that Ansible accepts everywhere."""
    return _UNSAFE.sub("_", name)


def variables(
    found: Mapping[str, Any], *, prefix: str, host: str, types: Iterable[str], shared: Collection[str] = ()
) -> dict[str, Any]:
    """The variables of a host.

    Args:
        prefix: What the names of the facts begin with.
        host: The name of the host.
        types: The types of addresses; the first address of these is used.
        shared: The addresses that other nodes report, too.
    """
    named = {f"{prefix}{name}": value for name, value in found.items()}
    if host != found["name"]:
        named.update(dict.fromkeys(NODE_OF_HOST, found["name"]))
    reached = address(found, types, shared)
    return {**named, **({"ansible_host": reached} if reached else {})}
