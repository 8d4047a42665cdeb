# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor writes and reports, on an API server in memory."""

from __future__ import annotations

import json

import pytest
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.doctor import doctor
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import find_host

CORDON = {"owner": "rolling_reboot", "reason": "reboot", "since": "2026-11-21T08:00:00Z"}


@pytest.fixture
def cluster():
    found = MemoryCluster()
    found.objects["/api/v1/namespaces/holdfast"] = {"metadata": {"name": "holdfast"}}
    return found


def clear(cluster):
    params = {"state": "cleared", "release": [], "nodes": None, "group": None}
    context = Context(params)
    context.__dict__.update(cluster=cluster, management=cluster)
    return doctor(context, params)


def test_if_nothing_is_stale_nothing_is_written(cluster):
    cluster.node()

    assert clear(cluster)["stale"] == 0
    assert cluster.writes == []


def test_if_the_api_server_fails_the_report_says_what_was_cleared(cluster):
    for name in ("node-1", "node-2"):
        cluster.node(name, unschedulable=True, cordon=CORDON)

    def fails(_verb, path, _body):
        if path.endswith("/nodes/node-2"):
            raise Unreachable("The API server did not answer.")

    cluster.hooks.append(fails)
    with pytest.raises(Unreachable) as caught:
        clear(cluster)

    cleared = {item["node"]: item["cleared"] for item in caught.value.fields["findings"] if item["kind"] == "cordon"}
    assert cleared == {"node-1": True, "node-2": False}
    assert any(line.startswith("cleared") for line in caught.value.fields["report"])


@pytest.mark.parametrize("ours", [True, False])
def test_the_host_of_another_cluster(cluster, ours):
    """Both clusters have a node of this name, and share the management cluster."""
    key = {"since": AT, "powered_on": True, "node": "node-1", "run": "r/node-1"}
    annotations = {"reboot.metal3.io/k": "", "holdfast.dev/reboot-keys": json.dumps({"k": key})}
    consumer = {"kind": "Metal3Machine", "namespace": "m", "name": "m3m"}
    owner = {"kind": "Machine", "name": "machine"}
    for path, item in {
        f"{find_host.hosts('')}/h": {
            "metadata": {"name": "h", "namespace": "m", "uid": "u", "annotations": annotations},
            "spec": {"consumerRef": consumer},
        },
        "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/m/metal3machines/m3m": {
            "metadata": {"name": "m3m", "namespace": "m", "ownerReferences": [owner]}
        },
        "/apis/cluster.x-k8s.io/v1beta2/namespaces/m/machines/machine": {
            "metadata": {"name": "machine", "namespace": "m"},
            "spec": {"clusterName": "b", "providerID": "metal3://m/h/m3m"},
            "status": {"nodeRef": {"name": "node-1"}},
        },
    }.items():
        cluster.objects[path] = item
    cluster.node()
    if ours:
        cluster.objects[paths.node("node-1")]["spec"]["providerID"] = "metal3://m/h/m3m"

    (found,) = (item for item in clear(cluster)["findings"] if item["kind"] == "key")
    assert ("state=absent bare_metal_host=h" in found["todo"], "of Cluster b" in found["todo"]) == (ours, not ours)


def failed_over(cluster):
    """The history says that metal3 keeps the host of node-1 off."""
    times = {"started": AT, "ended": AT, "by": "ada", "reason": "", "detail": "", "runs": [], "seconds": {}}
    place = {"host": "h", "namespace": "m", "key": "k", "fence": "metal3"}
    entry = {"operation": "op", "node": "node-1", "boot_id": "boot-1", "result": "moved", "steps": [{"step": "move"}]}
    audit = {"metadata": {"name": "failovers"}, "data": {"op": json.dumps({**entry, **times, **place})}}
    cluster.objects[paths.one(paths.config_maps("holdfast"), "failovers")] = audit


@pytest.mark.parametrize("served", [True, False])
def test_a_host_in_another_cluster_that_may_be_kept_off(cluster, monkeypatch, served):
    """The Node is gone, and the doctor does not know where the hosts are."""
    failed_over(cluster)

    def items(path, **selectors):
        if path == find_host.ALL_HOSTS:
            raise NotFound(path)
        yield from MemoryCluster.items(cluster, path, **selectors)

    if not served:
        monkeypatch.setattr(cluster, "items", items)
    found = [item["node"] for item in clear(cluster)["findings"] if item["kind"] == "failover"]
    assert found == ([] if served else ["node-1"])


def test_a_host_whose_node_may_be_another_machine_now(cluster):
    """The Node was created again, so nothing on it leads to the failover."""
    failed_over(cluster)
    key = {"since": AT, "powered_on": True, "node": "node-1", "run": "r/node-1"}
    annotations = {"reboot.metal3.io/k": "", "holdfast.dev/reboot-keys": json.dumps({"k": key})}
    metadata = {"name": "h", "namespace": "m", "uid": "u", "annotations": annotations}
    host = {"metadata": metadata, "spec": {}, "status": {"poweredOn": False}}
    cluster.objects[f"{find_host.hosts('')}/h"] = host

    def advice():
        (found,) = (item for item in clear(cluster)["findings"] if item["kind"] == "key")
        return found["todo"]

    cluster.node(boot_id="boot-2")
    assert "If other hardware runs as this node now" in advice()
    cluster.node(ready=False)
    assert advice().endswith("recover -e failover_node=node-1.")
