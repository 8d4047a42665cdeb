# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BareMetalHosts, the Nodes that they are, and the effect of a reboot annotation."""

from __future__ import annotations

from typing import Any

from .._api import paths
from .._api.errors import NotFound
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from . import find_host, key_rules
from . import host_rules as rules


def bare_metal_host_info(context: Context, params: Params) -> Result:
    """Describe one host, the host of a node, the hosts of a namespace, or all; omit hosts that do not exist."""
    context, named = find_host.from_options(context, params)
    found = _hosts(context, params, named)
    nodes = find_host.nodes_of(context.cluster, context.management, found)
    if params.get("node") and not named:
        nodes.update({host["metadata"]["uid"]: params["node"] for host in found})
    described = [_describe(host, nodes.get(host["metadata"]["uid"])) for host in found]
    return {"changed": False, "hosts": sorted(described, key=lambda host: (host["namespace"], host["name"]))}


def _hosts(context: Context, params: Params, named: str) -> list[Object]:
    namespace = params.get("namespace") or ""
    if named:
        found = find_host.named(context.management, named, namespace)
    elif params.get("node"):
        return _of_node(context, params["node"], namespace)
    else:
        return list(find_host.listed(context.management, namespace))
    if not params.get("node"):
        return found
    nodes = find_host.nodes_of(context.cluster, context.management, found)
    return [host for host in found if nodes.get(host["metadata"]["uid"], params["node"]) == params["node"]]


def _of_node(context: Context, name: str, namespace: str) -> list[Object]:
    node = context.cluster.find(paths.node(name))
    if node is None:
        return []
    try:
        return [find_host.host_of(context.management, node, namespace)]
    except NotFound as error:
        context.warn(error.message)
        return []


def _describe(host: Object, node: str | None) -> dict[str, Any]:
    requests, why_not = rules.requests_of(host), rules.why_not(host)
    return {
        "name": host["metadata"]["name"],
        "namespace": host["metadata"]["namespace"],
        "node": node,
        "powered_on": rules.powered_on(host),
        "online": rules.online(host),
        "state": rules.state(host),
        "trouble": rules.trouble(host),
        "last_updated": rules.last_updated(host) or None,
        "keys": [_key(host, request) for request in requests],
        "effective_mode": key_rules.effective_mode(requests, rules.error_count(host)) if requests else None,
        "acts": not why_not,
        "why_not": why_not,
    }


def _key(host: Object, request: key_rules.Request) -> dict[str, Any]:
    written, off = rules.written_of(host, request.key), rules.off(host, request.key)
    return {
        **request.to_data(),
        "ours": written is not None,
        "since": written.since if written else None,
        "run": written.run if written else None,
        "proves_off": bool(request.key) and off.proven,
        "why": off.why if request.key else "",
    }
