# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything about nodes that matters before and during their reboot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._budget import ledger_store as store
from .._drain import drain
from .._drain.rules import Drains, Options, plan, read_pod
from .._holds.leases import holds_by_node
from .fact_rules import facts
from .leftover_rules import describe as describe_leftover
from .leftover_rules import is_leftover


def node_info(context: Context, params: Params) -> Result:
    """Describe one node, the nodes of a selector, or all."""
    cluster = context.cluster
    found = _nodes(cluster, params.get("name"), params.get("selector"))
    nodes = {node_rules.name(node): node for node in found}
    names = set(nodes)
    options = Options(force=params["force"], delete_emptydir=params["delete_emptydir"])
    held = holds_by_node(cluster, names)
    slots = {name: slot for name, slot in _slots(cluster) if name in names}
    drains, leftovers = _pods(cluster, names, options)
    described = [
        {
            **facts(node),
            "holds": held[name],
            "slot": slots.get(name),
            "drain": drains.of(name),
            "leftovers": leftovers[name],
        }
        for name, node in nodes.items()
    ]
    return {"changed": False, "nodes": described}


def _nodes(cluster: Cluster, name: str | None, selector: str | None) -> list[Object]:
    if name:
        node = cluster.find(paths.node(name))
        return [node] if node else []
    return [node_rules.slim(node) for node in cluster.items(paths.NODES, label_selector=selector or "")]


def _slots(cluster: Cluster) -> Iterable[tuple[str, dict[str, Any]]]:
    for group, ledger in store.all_ledgers(cluster):
        for name, slot in ledger.slots.items():
            yield name, {"group": group, **vars(slot)}


def _pods(cluster: Cluster, names: set[str], options: Options) -> tuple[Drains, dict[str, list[dict[str, Any]]]]:
    """What the pods of these nodes mean for drains, and the pods that a shutdown of each node left."""
    leftovers: dict[str, list[dict[str, Any]]] = defaultdict(list)
    items: Iterable[Object] = ()
    spaces: set[str] | None = set()
    if len(names) == 1:
        items = list(cluster.items(paths.PODS, field_selector=f"spec.nodeName={next(iter(names))}"))
        spaces = drain.namespaces_of(plan(map(read_pod, items), options))
    elif names:
        items, spaces = cluster.items(paths.PODS, field_selector="spec.nodeName!="), None
    drains = Drains(drain.budgets_of(cluster, spaces), options)
    for item in items:
        node = item["spec"].get("nodeName")
        if node in names:
            drains.add(item)
            if is_leftover(item):
                leftovers[node].append(describe_leftover(item))
    return drains, leftovers
