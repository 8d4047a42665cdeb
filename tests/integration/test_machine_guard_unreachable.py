# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines with a silent node: fenced before Cluster API continues as if they were off."""

from __future__ import annotations

import pytest
from integration.support.failovers import TAINT
from integration.support.guards import HOOK, Guarding, points
from integration.support.halts import Halt
from integration.support.machines_capi import PRE_DRAIN, Fleet, controlled, deleting
from integration.support.metal3 import BASE, bound
from integration.support.volumes import attach, detach

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths


@pytest.fixture(scope="module")
def capi(lab):
    with controlled(lab) as found:
        yield found


@pytest.fixture
def fleet(capi, world):
    found = Fleet(world)
    yield found
    found.close()


@pytest.fixture
def guarding(fleet, ansible):
    found = Guarding(fleet, ansible)
    yield found
    found.close()


def fencing(failovers, world, name):
    """Variables of the role failover; its command records which hooks existed when it switched the node off."""
    namespace = world.namespace
    look = f"$kubectl -n {namespace} get machine {name} -o jsonpath='{{.metadata.annotations}}' > $log.hooks"
    settings = {"selector": f"pool={namespace}", "max_unhealthy": 1, "confirm_seconds": 0}
    return {f"failover_{key}": value for key, value in {**settings, **failovers.by_command(fence=look)}.items()}


@pytest.mark.long
def test_it_is_fenced_first(guarding, fleet, failovers, world):
    victim = failovers.victim()
    name = fleet.machine(victim.name)
    world.owned("app", victim.name)
    nodes = world.record(paths.NODES, field_selector=f"metadata.name={victim.name}")
    run = guarding.start(
        name, variables=fencing(failovers, world, name), pre_drain_tasks=guarding.tasks("before"), parallel=1
    )
    guarding.hooked(name)
    victim.hang()
    fleet.delete(name)

    done = run.done().good()
    fleet.until_gone(name)
    assert failovers.commands == ["off"], "once, for both points"
    assert f"{PRE_DRAIN}/{HOOK}" in failovers.log.with_name("commands.hooks").read_text(), "before our first hook went"
    assert any(tainted(change.object) for change in nodes.changes)
    assert points(done) == {(name, "pre-drain"): "released", (name, "pre-terminate"): "released"}
    assert {item["node_state"] for item in done.report["machines"]} <= {"off", "gone"}
    assert guarding.log == [f"before pre-drain {name}"]


@pytest.mark.long
def test_the_key_on_its_host_goes_with_it(guarding, fleet, failovers, world, lab):
    """The host's next life stays on: TestExpired in test_reboot_annotation.py."""
    victim = failovers.victim()
    name = fleet.machine(victim.name)
    with bound(world, lab, guarding.folder) as hosts:
        host = hosts.add(victim.name)
        hosts.start()
        metal3 = {"fence": "metal3", "soft_timeout": 0, "bare_metal_host": host.name}
        limits = {"selector": f"pool={world.namespace}", "max_unhealthy": 1, "confirm_seconds": 0}
        variables = {f"failover_{key}": value for key, value in {**metal3, **limits}.items()}
        run = guarding.start(name, variables=variables)
        guarding.hooked(name)
        victim.hang()
        fleet.delete(name)
        fleet.until_gone(name)
        assert host.commands == ["off"]
        assert [key for key in host.annotations if key.startswith(BASE)] != []
        host.tell(provisioning={"state": "deprovisioning", "ID": "an-id"})

        done = run.done().good()
        assert points(done) == {(name, "pre-drain"): "released", (name, "pre-terminate"): "released"}
        assert [key for key in host.annotations if key.startswith(BASE)] == []


@pytest.mark.long
def test_it_dies_while_the_users_tasks_run(guarding, fleet, failovers, world, ansible):
    victim = failovers.victim()
    name = fleet.machine(victim.name)
    halt = Halt(ansible.folder / "halt")
    run = guarding.start(
        name,
        variables=fencing(failovers, world, name),
        pre_drain_tasks=guarding.tasks("before", halt.command),
        parallel=1,
    )
    guarding.hooked(name)
    fleet.delete(name)
    run.until(lambda: halt.reached, "the user's task")
    victim.hang()
    halt.resume()

    run.done().good()
    fleet.until_gone(name)
    assert failovers.commands == ["off"]


@pytest.mark.long
def test_it_dies_before_its_volumes_are_gone(guarding, fleet, failovers, world, ansible):
    """It dies after its drain: nothing would ever detach them."""
    victim = failovers.victim()
    name = fleet.machine(victim.name, annotations={"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""})
    attach(world, victim.name)
    halt = Halt(ansible.folder / "halt")
    run = guarding.start(
        name,
        variables=fencing(failovers, world, name),
        pre_terminate_tasks=guarding.tasks("last", halt.command),
        volumes_timeout=5,
        parallel=1,
    )
    guarding.hooked(name)
    fleet.delete(name)
    run.until(lambda: halt.reached, "the user's task")
    victim.hang()
    halt.resume()
    run.until(lambda: failovers.commands, "it is fenced")
    detach(world, victim.name)

    done = run.done().good()
    fleet.until_gone(name)
    assert failovers.commands == ["off"]
    assert {"fence", "volumes"} <= done.report["machines"][1]["seconds"].keys()


@pytest.mark.long
def test_it_dies_while_it_is_held(guarding, fleet, failovers, world):
    """The user's tasks run once the state of the node is known."""
    victim = failovers.victim()
    name = fleet.machine(victim.name)
    hold = {"spec": {"holderIdentity": "app", "acquireTime": "2026-01-02T03:04:05.000000Z"}}
    world.create("leases", victim.name, hold)
    run = guarding.start(
        name,
        variables=fencing(failovers, world, name),
        pre_drain_tasks=guarding.tasks("before", "test {{ machine_guard_node_state }} = off"),
        parallel=1,
    )
    guarding.hooked(name)
    fleet.delete(name)
    run.until(lambda: guarding.record(name).get("phase") == "hold", "it waits for the holder")
    victim.hang()
    world.delete("leases", victim.name)

    run.done().good()
    fleet.until_gone(name)
    assert failovers.commands == ["off"]
    assert guarding.log == [f"before pre-drain {name}"]


@pytest.mark.long
def test_without_a_way_to_fence_it_stays(guarding, fleet, failovers, world):
    victim = failovers.victim()
    name = fleet.machine(victim.name)
    run = guarding.start(name, unreachable="keep", parallel=1)
    guarding.hooked(name)
    victim.hang()
    fleet.delete(name)
    done = run.done()
    assert done.code != 0
    assert points(done) == {(name, "pre-drain"): "failed"}
    assert deleting(fleet.get(name)) == "WaitingForPreDrainHook"
    assert "no sign of life" in guarding.events(name)[0]["message"]
    assert victim.taint is None

    victim.wake()
    guarding.run(name, unreachable="keep").good()
    fleet.until_gone(name)


def tainted(node):
    return any(taint["key"] == TAINT for taint in node["spec"].get("taints") or [])
