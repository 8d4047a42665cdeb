# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines in one cluster, their Nodes in another, and Cluster API's own controller between them."""

from __future__ import annotations

import copy

import pytest
from integration.support.guards import Guarding, points
from integration.support.machines_capi import Fleet, controlled, running
from integration.support.metal3 import management

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from lab import machines


@pytest.fixture
def workload(lab, world):
    """A second cluster, which has the Nodes."""
    with management(lab, world) as (cluster, kubeconfig):
        yield cluster, str(kubeconfig)


@pytest.fixture
def fleet(lab, world, workload):
    there = copy.copy(world)
    there.kubeconfig = workload[1]
    with controlled(lab):
        found = Fleet(there)
        yield found
        found.close()


@pytest.fixture
def guarding(fleet, ansible):
    found = Guarding(fleet, ansible)
    yield found
    found.close()


@pytest.fixture
def node(workload, world):
    """A Ready Node, with no controller to change that."""
    cluster, _kubeconfig = workload
    name = f"{world.namespace}-there"
    spec = {"providerID": machines.provider_id(name)}
    cluster.create(paths.NODES, {"metadata": {"name": name}, "spec": spec})
    ready = {"type": "Ready", "status": "True", "reason": "ATest", "message": "by a test"}
    cluster.merge(f"{paths.node(name)}/status", {"status": {"conditions": [ready], "nodeInfo": {"bootID": "b-1"}}})
    return name


@pytest.mark.long
def test_two_clusters(guarding, fleet, world, workload, node):
    """Hooks, records and Leases of runs are where the Machines are; holds, claims and cordons where the Nodes are."""
    cluster, _kubeconfig = workload
    name = fleet.unbound("there", node)
    fleet.until(name, running)
    nodes = []
    run = guarding.start(
        name, pre_drain_tasks=guarding.tasks("before"), management={"kubeconfig": world.kubeconfig}, parallel=1
    )
    guarding.hooked(name)
    lease = paths.one(paths.leases(world.namespace), node)
    hold = {"holderIdentity": "app", "acquireTime": "2026-01-02T03:04:05.000000Z"}
    cluster.create(paths.leases(world.namespace), {"metadata": {"name": node}, "spec": hold})
    fleet.delete(name)
    run.until(lambda: guarding.record(name).get("phase") == "hold", "it waits for the holder")
    nodes.append(cluster.get(paths.node(node))["metadata"]["annotations"])
    assert "holdfast.dev/claim" in nodes[0]
    assert world.cluster.find(paths.node(node)) is None
    cluster.delete(lease)

    done = run.done().good()
    fleet.until_gone(name)
    assert cluster.find(paths.node(node)) is None
    assert points(done) == {(name, "pre-drain"): "released", (name, "pre-terminate"): "released"}
    assert guarding.log == [f"before pre-drain {name}"]
