# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods a shutdown would cut short, before it is configured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from . import grace_rules as grace
from .grace_rules import Groups, Pod, Share


def graceful_shutdown_fit(context: Context, params: Params) -> Result:
    """Return, for each node, the pods that would get less time than they want."""
    groups = grace.wanted(params.get("total"), params.get("critical"), params.get("by_priority"))
    names = _names(context.cluster, params.get("name"), params.get("selector"))
    pods = _pods(context.cluster, names)
    return {
        "changed": False,
        "enabled": bool(groups),
        "groups": [group.to_data() for group in groups],
        "needed": grace.needed(groups),
        "nodes": [_node_result(name, groups, pods[name]) for name in names],
    }


def _names(cluster: Cluster, name: str | None, selector: str | None) -> list[str]:
    if name:
        return [node_rules.name(read_node(cluster, name))]
    return sorted(node_rules.name(node) for node in cluster.items(paths.NODES, label_selector=selector or ""))


def _pods(cluster: Cluster, names: list[str]) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = defaultdict(list)
    if not names:
        return found
    selector = f"spec.nodeName={names[0]}" if len(names) == 1 else "spec.nodeName!="
    wanted = set(names)
    for item in cluster.items(paths.PODS, field_selector=selector):
        node = item["spec"].get("nodeName")
        if node in wanted:
            found[node].append(grace.read_pod(item))
    return found


def _node_result(name: str, groups: Groups, pods: Iterable[Pod]) -> dict[str, Any]:
    shares = grace.fit(groups, pods)
    short = sorted((item for item in shares if item.short_by > 0), key=lambda item: (-item.short_by, _full_name(item)))
    return {
        "name": name,
        "fits": not short,
        "pods": len(shares),
        "longest": _longest(groups, shares),
        "cut_short": [item.to_data() for item in short],
    }


def _longest(groups: Groups, shares: Iterable[Share]) -> list[dict[str, int]]:
    """Return, for each group, the most that one of its pods wants: its pods end in parallel."""
    most = {group.priority: 0 for group in groups}
    for item in shares:
        group = grace.group_of(groups, item.priority)
        if group:
            most[group.priority] = max(most[group.priority], item.wants)
    return [{"priority": priority, "seconds": seconds} for priority, seconds in most.items()]


def _full_name(item: Share) -> str:
    return f"{item.namespace}/{item.name}"
