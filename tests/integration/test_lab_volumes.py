# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the real controllers do with volumes of simulated nodes that are live, die, and are declared dead."""

from __future__ import annotations

import time

import pytest
from integration.support.volumes import attached, driver

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline, wait_for
from lab.metal3.switches import SimulatedSwitch
from lab.patience import PATIENCE

# Pods leave unreachable nodes at once, and not after five minutes.
AT_ONCE = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    for what in ("unreachable", "not-ready")
]
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


# The lab's stand-ins do not change with the product.
pytestmark = pytest.mark.long


@pytest.fixture
def volumes(world, lab, tmp_path):
    with driver(world, lab, tmp_path) as found:
        yield found


def die(world, name):
    """Cut a node's power, and wait until its pods are told to end and can't."""
    SimulatedSwitch(world.cluster, name).off()
    pods = set(world.pods(name))
    assert pods
    for pod in pods:
        # Only when the node counts as dead, after some time without a heartbeat.
        assert wait_for(world.cluster, world.path("pods"), pod, going, Deadline(PATIENCE)), pod
    return pods


def going(item):
    return "deletionTimestamp" in item["metadata"]


def taint(world, name):
    node = world.node(name)
    others = node["spec"].get("taints") or []
    world.cluster.merge(
        paths.node(name),
        {
            "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
            "spec": {"taints": [*others, TAINT]},
        },
    )


def test_a_pod_that_leaves_a_living_node_lets_its_volume_go(volumes, world, nodes):
    (node,) = nodes()
    volumes.statefulset("db", 1)
    (there,) = volumes.attachments(node)
    # What the kubelet says, and what the controller says.
    for kind in ("volumesInUse", "volumesAttached"):
        world.until(paths.NODES, node, lambda item, kind=kind: item["status"].get(kind))

    world.cluster.merge(f"{world.path('statefulsets')}/db", {"spec": {"replicas": 0}})
    volumes.until(lambda found: not found)
    assert attached(there)
    assert not world.node(node)["status"].get("volumesInUse")


def test_attaching_takes_its_time(volumes, world, nodes):
    nodes()
    before = time.monotonic()
    volumes.delays(attach=3)
    volumes.statefulset("db", 1)
    assert time.monotonic() > before + 3


def test_a_dead_nodes_volumes_stay_until_it_is_out_of_service(volumes, world, nodes):
    # All pods start on it before the other node exists.
    (dead,) = nodes()
    volumes.statefulset("db", 4, tolerations=AT_ONCE)
    (other,) = nodes()
    volumes.adopt()
    on_dead = {item["metadata"]["name"] for item in volumes.attachments(dead)}
    stuck = die(world, dead)
    assert len(on_dead) == len(stuck) == 4
    time.sleep(3)
    assert set(world.pods(dead)) == stuck, "nobody is there to end them"
    assert {item["metadata"]["name"] for item in volumes.attachments(dead)} == on_dead

    taint(world, dead)
    volumes.until(lambda found: not found, dead)
    assert world.pods(dead) == {}
    volumes.until(lambda found: len(found) == 4 and all(map(attached, found)), other)
    volumes.until_ready("db", 4)


def test_a_driver_that_never_detaches(volumes, world, nodes):
    (dead,) = nodes()
    volumes.statefulset("db", 2, tolerations=AT_ONCE)
    (other,) = nodes()
    volumes.adopt()
    before = {item["metadata"]["name"] for item in volumes.attachments(dead)}
    die(world, dead)
    volumes.delays(detach=None)
    taint(world, dead)
    volumes.until(lambda found: all("deletionTimestamp" in item["metadata"] for item in found), dead)
    time.sleep(2)
    assert {item["metadata"]["name"] for item in volumes.attachments(dead)} == before
    volumes.delays(detach=1)
    volumes.until(lambda found: not found, dead)
    volumes.until(lambda found: len(found) == 2 and all(map(attached, found)), other)
