# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make real nodes fit for a test: on, Ready, and free of what a killed test left."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import retry_conflicts
from lab import Lab

_OURS = "holdfast.dev/"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def make_fit(lab: Lab, names: Sequence[str]) -> None:
    """The caller must have the turns of these nodes: then no other test uses what is found on them."""
    there = sorted({*names} & {*lab.nodes})
    for name in there:
        lab.power_on(name)
    if there:
        lab.wait_ready(there)
        cluster = Cluster({"kubeconfig": str(lab.kubeconfig)})
        for name in there:
            _clear(cluster, name)


def _clear(cluster: Cluster, name: str) -> None:
    # Holds go first: with one left, an agent keeps the node.
    for item in list(cluster.items(paths.LEASES, field_selector=f"metadata.name={name}")):
        namespace = item["metadata"]["namespace"]
        if namespace.startswith("test-"):
            with contextlib.suppress(NotFound):
                cluster.delete(paths.lease(namespace, name))
    _empty_slots(cluster, name)
    retry_conflicts(lambda: _clean(cluster, name))


def _clean(cluster: Cluster, name: str) -> None:
    """Remove our marks and labels, our cordon, and the taint."""
    node = cluster.get(paths.node(name))
    metadata, spec = node["metadata"], node["spec"]
    marks = {key: None for key in metadata.get("annotations") or {} if key.startswith(_OURS)}
    labels = {key: None for key in metadata.get("labels") or {} if key == "pool" or key.startswith(_OURS)}
    taints = spec.get("taints") or []
    kept = [item for item in taints if item["key"] != _OUT_OF_SERVICE]
    if not (marks or labels or spec.get("unschedulable") or kept != taints):
        return
    version = {"resourceVersion": metadata["resourceVersion"]}
    body: Object = {"metadata": {**version, "annotations": marks, "labels": labels}, "spec": {"unschedulable": None}}
    if kept != taints:
        body["spec"]["taints"] = kept
    cluster.merge(paths.node(name), body)


def _empty_slots(cluster: Cluster, name: str) -> None:
    """A node that is in a ledger gets no slot of another group."""

    def attempt(path: str) -> None:
        ledger = cluster.get(path)
        slots = json.loads(ledger["data"]["slots"])
        if slots.pop(name, None) is not None:
            version = {"resourceVersion": ledger["metadata"]["resourceVersion"]}
            cluster.merge(path, {"metadata": version, "data": {"slots": json.dumps(slots)}})

    for item in list(cluster.items(paths.config_maps("holdfast"))):
        path = paths.one(paths.config_maps("holdfast"), item["metadata"]["name"])
        if f'"{name}"' in (item.get("data") or {}).get("slots", ""):
            with contextlib.suppress(NotFound, ValueError):
                retry_conflicts(lambda path=path: attempt(path))
