# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real node whose kubelet hangs under a StatefulSet: one command moves its pods, another brings it back."""

from __future__ import annotations

import contextlib

import pytest
from integration.support.failovers import Failovers, Victim
from integration.support.group import until
from integration.support.metal3 import bound
from integration.support.realnodes import boot_id, member

from lab.metal3.settings import Times
from lab.patience import PATIENCE

DEAD, OTHER = "node-3", "node-1"


@pytest.fixture
def hosts(world, lab, tmp_path):
    with bound(world, lab, tmp_path) as found:
        yield found


@pytest.mark.long
@pytest.mark.nodes
def test_a_real_node_hangs_and_comes_back(world, ansible, lab, hosts):
    failovers = Failovers(world, ansible)
    with contextlib.ExitStack() as members:
        members.enter_context(member(world, lab, DEAD))
        host = hosts.add(DEAD, times=Times.quick())
        hosts.start()
        # All pods start on it before the other node exists.
        world.workload("statefulsets", "db", 2, terminationGracePeriodSeconds=2)
        on_it = list(world.pods(DEAD))
        assert len(on_it) == 2
        members.enter_context(member(world, lab, OTHER))
        before = boot_id(lab, DEAD)
        victim = Victim(world, DEAD)
        # Its containers run on, which makes it dangerous.
        lab.ssh(DEAD, "systemctl kill --signal=STOP kubelet")
        try:
            until(lambda: not victim.ready, "the node to be given up")

            done = failovers.run(DEAD, bare_metal_host=host.name, soft_timeout=0, confirm_seconds=5).good()
            (moved,) = done.report["nodes"]
            assert moved["result"] == "moved"
            assert {item["name"] for item in moved["pods"] if item["state"] == "gone"} >= set(on_it)
            assert host.powered is False
            world.until(
                world.path("statefulsets"),
                "db",
                lambda item: item is not None and item["status"].get("readyReplicas") == 2,
            )
            assert all(pod["spec"]["nodeName"] == OTHER for pod in world.pods().values())
        finally:
            back = failovers.recover(DEAD, ready_timeout=PATIENCE)
            # In case it was not switched off.
            lab.ssh(DEAD, "systemctl kill --signal=CONT kubelet")
            failovers.close()
        assert back.good().results == {DEAD: "recovered"}
        assert boot_id(lab, DEAD) != before
        assert victim.ready
        assert victim.untouched
        print(f"\nseconds: {moved['seconds']}, and back: {back.report['nodes'][0]['seconds']}")
