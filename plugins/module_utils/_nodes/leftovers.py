# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on finished pods that a node's shutdown left behind."""

from __future__ import annotations

from typing import Any

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, HoldfastError, NotFound
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .leftover_rules import describe, is_leftover


def leftover_pods(context: Context, params: Params) -> Result:
    """Report the pods that a shutdown left on a node. With ``state: absent``, remove the ones that nothing needs."""
    cluster, name = context.cluster, params["name"]
    read_node(cluster, name)
    found = leftovers(cluster, name)
    remove, force = params["state"] == "absent", params.get("force")
    to_remove = [item for item in found if remove and (force or not item["kept"])]
    removed: list[dict[str, Any]] = []
    try:
        for item in to_remove:
            _remove(cluster, item)
            removed.append(item)
    except HoldfastError as error:
        error.fields.update(changed=bool(removed), pods=_pods(found, removed))
        raise
    return {
        "changed": bool(removed),
        "pods": _pods(found, removed),
        "diff": {"before": {"pods": found}, "after": {"pods": [item for item in found if item not in removed]}},
    }


def _pods(found: list[dict[str, Any]], removed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**item, "removed": item in removed} for item in found]


def leftovers(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    """Finished pods of a node that the kubelet's shutdown manager ended or refused."""
    items = cluster.items(paths.PODS, field_selector=f"spec.nodeName={node}")
    return [describe(item) for item in items if is_leftover(item)]


def _remove(cluster: Cluster, item: dict[str, Any]) -> None:
    try:
        cluster.delete(paths.pod(item["namespace"], item["name"]), {"preconditions": {"uid": item["uid"]}})
    except NotFound:
        return
    except ApiFailure as error:
        # 409: another pod has this name now, so the leftover pod is gone.
        if error.status != 409:
            raise
