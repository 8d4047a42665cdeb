# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""etcd's quorum, judged by its pods on a real API server; the pods are simulated, and no etcd runs."""

from __future__ import annotations

import time

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import run_rules
from ansible_collections.holdfast.kubernetes.plugins.modules import etcd_quorum
from lab.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("control_plane")

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


class Plane:
    """Control-plane nodes with a member of etcd each."""

    def __init__(self, world, count=3, label=CONTROL_PLANE):
        self.world = world
        self.names = world.nodes(count)
        for name in self.names:
            world.cluster.merge(paths.node(name), {"metadata": {"labels": {label: ""}}})
            world.pod(self.pod(name), name, "etcd")
        self.first = self.names[0]

    def pod(self, name):
        return f"etcd-{name}"

    def options(self, **more):
        return {"name": self.first, "namespace": self.world.namespace, "selector": "app=etcd", **more}

    def ask(self, **more):
        return self.world.run(etcd_quorum, **self.options(**more))

    def start(self, **more):
        return self.world.start(etcd_quorum, **self.options(**more))

    def member_down(self, name):
        self.world.unready(self.pod(name))

    def member_up(self, name):
        self.world.set_pod(self.pod(name))


@pytest.fixture
def plane(world):
    return Plane(world)


def still_waits(future):
    time.sleep(1)
    return not future.done()


def test_three_of_three(plane):
    result = plane.ask()

    assert (result["changed"], result["kept"], result["needed"]) == (False, True, 2)
    assert result["members"] == plane.names
    assert result["ready_others"] == plane.names[1:]
    assert result["missing"] == []
    assert (result["control_plane"], result["single_node"], result["only_control_plane"]) == (True, False, False)
    assert plane.ask(wait_timeout=PATIENCE)["waited"] < PATIENCE


def test_two_of_three_are_needed(plane):
    plane.member_down(plane.names[2])
    result = plane.ask()

    assert not result.get("failed")
    assert result["kept"] is False
    assert result["ready_others"] == [plane.names[1]]
    name = f"{plane.world.namespace}/{plane.pod(plane.names[2])}"
    assert result["missing"] == [{"node": plane.names[2], "reason": f"its pod {name} is not Ready"}]


def test_time_out_names_who_is_missing_and_the_way_out(plane):
    plane.member_down(plane.names[2])
    result = plane.ask(wait_timeout=2)

    assert result["error"] == "timed_out"
    assert f"Node {plane.first} has to stay up" in result["msg"]
    assert f"{plane.names[2]}: its pod" in result["msg"]
    assert "raise wait_timeout" in result["msg"]
    assert (result["kept"], result["needed"]) == (False, 2)
    assert result["waited"] >= 2


def test_check_mode_waits_for_nothing(plane):
    plane.member_down(plane.names[2])
    result = plane.ask(wait_timeout=PATIENCE, check_mode=True)

    assert not result.get("failed")
    assert result["kept"] is False
    assert result["waited"] < PATIENCE


def test_waits_until_the_member_is_back_and_shows_that_the_run_lives(plane):
    run = f"quorum-{plane.world.namespace}"
    lease = paths.lease("holdfast", run_rules.lease_name(run))
    plane.world.made.objects.append(lease)
    assert plane.ask(run=run)["kept"]
    assert plane.world.cluster.find(lease) is None, "nobody had to wait"
    plane.member_down(plane.names[1])
    waiting = plane.start(wait_timeout=PATIENCE, run=run, holder="me")

    found = plane.world.until(paths.leases("holdfast"), run_rules.lease_name(run), lambda item: item is not None)
    assert found["spec"]["holderIdentity"] == "me"
    assert still_waits(waiting)
    plane.member_up(plane.names[1])
    result = waiting.result(PATIENCE)
    assert result["kept"] is True
    assert result["waited"] > 0.5


def test_waits_for_the_node_behind_a_ready_pod(plane):
    world, lost = plane.world, plane.names[2]
    world.set_condition(lost, "Ready", "False", "KubeletNotReady")
    waiting = plane.start(wait_timeout=PATIENCE)

    assert still_waits(waiting)
    # The controller manager may have removed the pod's readiness, too.
    plane.member_up(lost)
    assert plane.ask()["missing"] == [{"node": lost, "reason": "its Node is not Ready"}]
    assert still_waits(waiting)
    world.set_condition(lost, "Ready", "True", "KubeletReady")
    plane.member_up(lost)
    assert waiting.result(PATIENCE)["kept"] is True


def test_a_member_that_is_new_counts(plane):
    plane.member_down(plane.names[2])
    waiting = plane.start(wait_timeout=PATIENCE)
    assert still_waits(waiting)
    (worker,) = plane.world.nodes()
    plane.world.cluster.merge(paths.node(worker), {"metadata": {"labels": {"node-role.kubernetes.io/etcd": ""}}})
    plane.world.pod(plane.pod(worker), worker, "etcd")
    assert still_waits(waiting), "of four three are needed"
    plane.member_up(plane.names[2])

    assert waiting.result(PATIENCE)["ready_others"] == sorted([*plane.names[1:], worker])


def test_an_external_etcd_can_not_be_judged(plane):
    result = plane.ask(selector="app=nothing", wait_timeout=PATIENCE)

    assert result["kept"] is None
    assert (result["members"], result["needed"]) == ([], 0)
    assert result["waited"] < PATIENCE


def test_a_worker_and_the_older_label(world):
    plane = Plane(world, 1, "node-role.kubernetes.io/master")
    (worker,) = world.nodes()

    assert plane.ask()["control_plane"] is True
    assert plane.ask()["kept"] is False
    result = plane.ask(name=worker)
    assert (result["control_plane"], result["only_control_plane"]) == (False, False)
    assert result["ready_others"] == [plane.first]


def test_no_such_node(plane):
    assert plane.ask(name="no-such-node")["error"] == "not_found"


@pytest.mark.long
def test_in_a_play(plane, ansible):
    task = {"holdfast.kubernetes.etcd_quorum": {"kubeconfig": plane.world.kubeconfig, **plane.options()}}
    (result,), _output = ansible.tasks([task])

    assert result["kept"] is True
    assert result["members"] == plane.names
