# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on one condition of a Node: read it, wait until it is present or absent, remove it."""

from __future__ import annotations

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import InvalidInput, TimedOut
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline, retry_conflicts, wait_for

# Without these the control plane considers a node broken, until its kubelet writes them again.
_REFUSED_TYPES = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def node_condition_info(context: Context, params: Params) -> Result:
    """Read a condition, at once or as soon as it is present or absent."""
    deadline = Deadline(params["wait_timeout"])
    name, kind = params["name"], params["condition"]
    waits = params["wait_for"] != "none" and not context.check_mode

    def enough(item: Object | None) -> bool:
        found = node_rules.condition(item, kind) if item else None
        return (found is not None) is bool(params["wait_for"] == "present")

    if waits:
        node = wait_for(context.cluster, paths.NODES, name, enough, deadline)
    else:
        node = context.cluster.find(paths.node(name))
    found = node_rules.condition(node, kind) if node else None
    if waits and not enough(node):
        state = f"is still {found['status']} ({found.get('reason')})" if found else "is missing"
        raise TimedOut(
            f"Condition {kind} of Node {name} {state} after {params['wait_timeout']} s. Check the program that writes "
            "it, or raise wait_timeout.",
            condition=found,
        )
    boot_id = node_rules.boot_id(node) if node else None
    return {"changed": False, "condition": found, "boot_id": boot_id, "waited": round(deadline.elapsed, 3)}


def node_condition(context: Context, params: Params) -> Result:
    name, kind = params["name"], params["condition"]
    if kind in _REFUSED_TYPES:
        raise InvalidInput(
            f"Condition {kind} of Node {name} belongs to its kubelet or network plugin, so it is not removed. "
            "Name a condition of another program."
        )
    found = retry_conflicts(lambda: _remove(context.cluster, name, kind))
    return {
        "changed": found is not None,
        "condition": found,
        "diff": {"before": found or {}, "after": {}},
    }


def _remove(cluster: Cluster, name: str, kind: str) -> Object | None:
    node = cluster.find(paths.node(name))
    found = node_rules.condition(node, kind) if node else None
    if node is None or found is None:
        return None
    cluster.merge(
        f"{paths.node(name)}/status",
        {
            "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
            "status": {"conditions": [item for item in node["status"]["conditions"] if item["type"] != kind]},
        },
    )
    return found
