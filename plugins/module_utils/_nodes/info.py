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
from .._drain.rules import Options, Pod, node_verdict, plan, read_pod
from .._holds.leases import holds_by_node
from .fact_rules import facts
from .leftover_rules import describe as describe_leftover
from .leftover_rules import is_leftover


def node_info(context: Context, params: Params) -> Result:
    """Describe one node, the nodes of a selector, or all."""
    cluster = context.cluster
    nodes = _nodes(cluster, params.get("name"), params.get("selector"))
    names = {node_rules.name(node) for node in nodes}
    single = next(iter(names)) if len(names) == 1 else None
    options = Options(force=params["force"], delete_emptydir=params["delete_emptydir"])
    held = holds_by_node(cluster, names)
    slots = {name: slot for name, slot in _slots(cluster) if name in names}
    pods, leftovers = _pods(cluster, names, single)
    plans = {name: plan(pods[name], options) for name in names}
    spaces = {space for each in plans.values() for space in drain.namespaces_of(each)}
    budgets = drain.budgets_of(cluster, spaces)
    described = []
    for node in nodes:
        name = node_rules.name(node)
        verdict, blockers = node_verdict(plans[name], budgets)
        described.append(
            {
                **facts(node),
                "holds": held[name],
                "slot": slots.get(name),
                "drain": {"verdict": verdict, "blockers": blockers},
                "leftovers": leftovers[name],
            }
        )
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


def _pods(
    cluster: Cluster, names: set[str], single: str | None
) -> tuple[dict[str, list[Pod]], dict[str, list[dict[str, Any]]]]:
    pods: dict[str, list[Pod]] = defaultdict(list)
    left: dict[str, list[dict[str, Any]]] = defaultdict(list)
    if not names:
        return pods, left
    selector = f"spec.nodeName={single}" if single else "spec.nodeName!="
    for item in cluster.items(paths.PODS, field_selector=selector):
        node = item["spec"].get("nodeName")
        if node not in names:
            continue
        pods[node].append(read_pod(item))
        if is_leftover(item):
            left[node].append(describe_leftover(item))
    return pods, left
