# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's Cluster API is real: its own controller deletes Machines, point by point."""

from __future__ import annotations

import pytest
from integration.support.machines_capi import PRE_DRAIN, PRE_TERMINATE, Fleet, controlled, deleting
from integration.support.volumes import attach, detach

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline, wait_for
from lab.patience import PATIENCE

# The lab's stand-ins do not change with the product.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def capi(lab):
    with controlled(lab) as found:
        yield found


@pytest.fixture
def fleet(capi, world):
    found = Fleet(world)
    yield found
    found.close()


def test_every_point_of_a_deletion(fleet, world):
    """Pre-drain, drain, volumes, pre-terminate: in this order, and the Node is removed with the Machine."""
    (node,) = world.nodes()
    name = fleet.machine(node, annotations={f"{PRE_DRAIN}/a": "x", f"{PRE_TERMINATE}/b": "y"})
    world.owned("app", node, slow={"delete": "2s"})
    attach(world, node)
    seen = world.record(fleet.path("machines"), field_selector=f"metadata.name={name}")

    fleet.delete(name)
    waiting = fleet.until_reason(name, "WaitingForPreDrainHook")
    assert f"{PRE_DRAIN}/a" in next(c for c in waiting["status"]["conditions"] if c["type"] == "Deleting")["message"]
    assert not world.cordoned(node)
    fleet.annotate(name, {f"{PRE_DRAIN}/a": None})
    fleet.until_reason(name, "WaitingForVolumeDetach")
    assert world.cordoned(node)
    assert "app" not in world.pods(node)
    detach(world, node)
    fleet.until_reason(name, "WaitingForPreTerminateHook")
    assert world.node(node)
    fleet.annotate(name, {f"{PRE_TERMINATE}/b": None})
    fleet.until_gone(name)

    assert wait_for(world.cluster, paths.NODES, node, lambda item: item is None, Deadline(PATIENCE)) is None
    reasons = list(dict.fromkeys(deleting(change.object) for change in seen.changes))
    order = ["WaitingForPreDrainHook", "DrainingNode", "WaitingForVolumeDetach", "WaitingForPreTerminateHook"]
    assert [reason for reason in reasons if reason in order] == order


def test_machines_of_a_deployment(fleet, world):
    fleet.workers("pool", 2)
    assert len(fleet.until_running("pool", 2)) == 2
    fleet.scale("pool", 3)
    names = fleet.until_running("pool", 3)
    nodes = [fleet.get(name)["status"]["nodeRef"]["name"] for name in names]
    assert all(world.node(node)["metadata"]["annotations"]["cluster.x-k8s.io/machine"] in names for node in nodes)


def test_the_older_version_of_the_api_is_converted(fleet, world):
    (node,) = world.nodes()
    name = fleet.machine(node, annotations={f"{PRE_DRAIN}/a": "x"})
    fleet.delete(name)
    fleet.until_reason(name, "WaitingForPreDrainHook")

    old = fleet.get(name, "v1beta1")
    assert old["status"]["v1beta2"]["conditions"]
    assert {c["reason"] for c in old["status"]["conditions"] if c["type"] == "PreDrainDeleteHookSucceeded"} == {
        "WaitingExternalHook"
    }


@pytest.mark.nodes
def test_a_real_node(fleet, world, lab):
    name = fleet.machine("node-2", annotations={f"{PRE_TERMINATE}/b": "y"})
    world.owned("app", "node-2")
    try:
        fleet.delete(name)
        fleet.until_reason(name, "WaitingForPreTerminateHook")
        assert "app" not in world.pods("node-2")
        fleet.annotate(name, {f"{PRE_TERMINATE}/b": None})
        fleet.until_gone(name)
        assert world.cluster.find(paths.node("node-2")) is None
    finally:
        # A kubelet makes its Node only when it starts.
        lab.ssh("node-2", "systemctl restart kubelet")
        lab.wait_ready(["node-2"])
