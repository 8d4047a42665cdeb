# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a node's shutdown left behind, finished and in the way."""

from __future__ import annotations

from typing import Any

from . import _paths as paths
from ._cluster import Cluster, Object
from ._errors import ApiFailure, NotFound
from ._face import Context, Params, Result
from ._read_node import read_node

_BY_SHUTDOWN = ("Terminated", "NodeShutdown")


def leftover_pods(context: Context, params: Params) -> Result:
    """Report and, unless only asked to look, remove what a shutdown left on a node."""
    cluster, name = context.cluster, params["name"]
    read_node(cluster, name)
    found = leftovers(cluster, name)
    gone = params["state"] == "absent" and bool(found)
    if gone:
        for item in found:
            _remove(cluster, item)
    return {
        "changed": gone,
        "pods": found,
        "diff": {"before": {"pods": found}, "after": {"pods": [] if gone else found}},
    }


def leftovers(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    """Finished pods of a node that the kubelet's shutdown manager ended, except those of Jobs, which count them."""
    items = cluster.items(paths.PODS, field_selector=f"spec.nodeName={node}")
    return [describe(item) for item in items if is_leftover(item)]


def is_leftover(pod: Object) -> bool:
    """Whether the kubelet ended this pod for a shutdown, and nothing else needs the object.

    Source: pkg/kubelet/nodeshutdown in Kubernetes 1.36 (reason Terminated, condition DisruptionTarget with reason
    TerminationByKubelet; a pod refused meanwhile has reason NodeShutdown).
    """
    status = pod.get("status") or {}
    if status.get("phase") not in ("Succeeded", "Failed"):
        return False
    if any(owner.get("kind") == "Job" for owner in pod["metadata"].get("ownerReferences") or []):
        return False
    conditions = status.get("conditions") or []
    by_kubelet = any(
        item["type"] == "DisruptionTarget" and item.get("reason") == "TerminationByKubelet" for item in conditions
    )
    return by_kubelet or status.get("reason") in _BY_SHUTDOWN


def describe(pod: Object) -> dict[str, Any]:
    metadata, status = pod["metadata"], pod["status"]
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "phase": status["phase"],
        "reason": status.get("reason") or "TerminationByKubelet",
    }


def _remove(cluster: Cluster, item: dict[str, Any]) -> None:
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": item["uid"]}}
    try:
        cluster.delete(paths.pod(item["namespace"], item["name"]), options)
    except NotFound:
        return
    except ApiFailure as error:
        # The name stands for another pod by now: the leftover is gone.
        if error.status != 409:
            raise
