# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook guard_machine with Cluster API's own controller, which deletes Machines point by point."""

from __future__ import annotations

import pytest
from integration.guards import HOOK, OWNER, Guarding, points
from integration.machines_capi import NAME, PRE_TERMINATE, Fleet, controlled, deleting
from integration.test_lab_capi import attach, detach

from ansible_collections.holdfast.kubernetes.plugins.module_utils import _paths as paths


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


def test_both_points(guarding, fleet, world):
    """It waits, the user's tasks run, it is drained by us, each hook goes, and Machine and Node are gone."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    world.owned("app", node)
    seen = world.record(fleet.path("machines"), field_selector=f"metadata.name={name}")
    run = guarding.start(
        name,
        pre_drain_tasks=guarding.tasks("backup"),
        pre_terminate_tasks=[guarding.tasks("off"), guarding.tasks("out")],
    )
    guarding.hooked(name)
    assert world.pods(node), "nobody deletes it yet"
    fleet.delete(name)

    done = run.done().good()
    fleet.until_gone(name)
    assert world.cluster.find(paths.node(node)) is None
    assert guarding.log == [f"backup pre-drain {name}", f"off pre-terminate {name}", f"out pre-terminate {name}"]
    assert points(done) == {(name, "pre-drain"): "released", (name, "pre-terminate"): "released"}
    assert done.report["summary"]["ended"] == ["gone"]
    assert done.stats["machine_guard_released"] == 1
    before, after = done.report["machines"]
    assert {"claim", "hold", "tasks", "drain", "release"} <= before["seconds"].keys()
    assert {"volumes"} <= after["seconds"].keys()
    reasons = list(dict.fromkeys(deleting(change.object) for change in seen.changes))
    assert [reason for reason in reasons if "Hook" in reason] == [
        "WaitingForPreDrainHook",
        "WaitingForPreTerminateHook",
    ]


def test_two_owners_at_one_point(guarding, fleet, world):
    """Each removes its own; the Machine goes on after the last. Both runs are at work at the same time."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    others = {"hook": "storage", "owner": "storage-team"}
    ours = guarding.start(name, pre_drain_tasks=guarding.tasks("ours"))
    theirs = guarding.start(name, **others, pre_drain_tasks=guarding.tasks("theirs"))
    guarding.hooked(name)
    fleet.until(name, lambda item: len(hooks_in(item)) == 4)
    fleet.delete(name)

    assert points(ours.done().good()) == points(theirs.done().good())
    fleet.until_gone(name)
    assert sorted(line.split()[0] for line in guarding.log) == ["ours", "theirs"]


def test_ten_at_once(guarding, fleet, world):
    """Each waits for the others in its own task, so all of them are worked on at the same time."""
    names = [fleet.machine(node) for node in world.nodes(10)]
    together = guarding.together(10)
    run = guarding.start(
        cluster=NAME,
        machines=[],
        parallel=10,
        stop="idle",
        set_hooks=True,
        timeout=900,
        selector="!cluster.x-k8s.io/control-plane",
        pre_drain_tasks=guarding.tasks("all", together),
    )
    for name in names:
        guarding.hooked(name)
    for name in names:
        fleet.delete(name)
    done = run.done(600).good()
    for name in names:
        fleet.until_gone(name)
    assert sorted(guarding.log) == sorted(f"all pre-drain {name}" for name in names)
    assert set(points(done).values()) == {"released"}
    assert len(points(done)) == 20
    assert done.report["summary"]["ended"] == ["idle"]


def test_guarded_from_birth(guarding, fleet, world):
    """A MachineDeployment is scaled up and down: what is made later has the hooks, and is served like the others."""
    fleet.workers("pool", 1)
    run = guarding.start(
        machines=[],
        templates=[{"name": "pool"}],
        timeout=3600,
        wait_for_replacement=True,
        pre_drain_tasks=guarding.tasks("backup"),
    )
    (first,) = fleet.until_running("pool", 1)
    guarding.hooked(first)
    fleet.scale("pool", 3)
    names = fleet.until_running("pool", 3)
    for name in names:
        guarding.hooked(name)

    # In its place another is made when it is gone, which is guarded, too.
    fleet.delete(first)
    fleet.until_gone(first)
    assert guarding.log == [f"backup pre-drain {first}"]
    names = fleet.until_running("pool", 3)
    for name in names:
        guarding.hooked(name)
    fleet.scale("pool", 1)
    run.until(lambda: len(guarding.log) == 3, "those that are too many are served")
    (left,) = fleet.until_running("pool", 1)
    assert set(guarding.log[1:]) == {f"backup pre-drain {name}" for name in set(names) - {left}}


def test_what_cannot_hold_is_said(guarding, fleet, world):
    """A Machine that is past a point, and one without a Node: said in the report, and not waited for."""
    lonely = fleet.unbound("lonely")
    fleet.annotate(lonely, {f"{PRE_TERMINATE}/{HOOK}": OWNER})
    fleet.delete(lonely)
    fleet.until_reason(lonely, "WaitingForPreTerminateHook")

    files = {"pre_drain_tasks": guarding.tasks("before"), "pre_terminate_tasks": guarding.tasks("after")}
    done = guarding.run(lonely, **files, make_up=True).good()
    assert [(hook["point"], hook["error"]) for hook in done.report["hooks"]] == [("pre-drain", "cannot_hold")]
    assert done.report["summary"]["cannot_hold"] == [lonely]
    assert points(done) == {(lonely, "pre-terminate"): "released"}
    assert guarding.log == [f"after pre-terminate {lonely}"], "it had no hook of ours before its drain"
    fleet.until_gone(lonely)


def test_a_point_that_is_skipped_is_made_up_for(guarding, fleet, world):
    """Without a Node, Cluster API goes past pre-drain hooks."""
    lonely = fleet.unbound("lonely")
    files = {"pre_drain_tasks": guarding.tasks("before"), "pre_terminate_tasks": guarding.tasks("after")}
    run = guarding.start(lonely, **files, make_up=True)
    guarding.hooked(lonely)
    fleet.delete(lonely)
    done = run.done().good()
    assert guarding.log == [f"before pre-terminate {lonely}", f"after pre-terminate {lonely}"]
    assert "skipped pre-drain" in done.report["machines"][0]["detail"]
    fleet.until_gone(lonely)


def test_a_failed_task_keeps_the_hook(guarding, fleet, world):
    """It says so on the Machine as an Event. The next run goes on: what was done is not done again."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    first = guarding.tasks("first")
    second = guarding.tasks("second", "echo no; exit 3")
    run = guarding.start(name, pre_drain_tasks=[first, second])
    guarding.hooked(name)
    fleet.delete(name)
    failed = run.done()
    assert failed.code != 0
    assert points(failed) == {(name, "pre-drain"): "failed"}
    assert deleting(fleet.get(name)) == "WaitingForPreDrainHook"
    (event, *_more) = guarding.events(name)
    assert (event["type"], event["reason"]) == ("Warning", "MachineGuardFailed")
    assert "User's task" in event["message"]
    assert guarding.record(name)["result"] == "failed"
    assert guarding.leases() == []

    guarding.tasks("second")
    done = guarding.run(name, pre_drain_tasks=[first, second]).good()
    fleet.until_gone(name)
    assert guarding.log == [f"first pre-drain {name}", f"second pre-drain {name}"]
    assert done.report["machines"][0]["resumed"]


def test_tried_again_after_a_while(guarding, fleet, world):
    (node,) = world.nodes()
    name = fleet.machine(node)
    once = guarding.tasks("once", "mkdir once 2>/dev/null && exit 1 || true")
    run = guarding.start(name, pre_drain_tasks=once, retry_seconds=1)
    guarding.hooked(name)
    fleet.delete(name)
    done = run.done().good()
    fleet.until_gone(name)
    assert guarding.log == [f"once pre-drain {name}"]
    assert done.report["summary"]["failed"] == []


def test_a_deadline(guarding, fleet, world):
    """It ends when nobody deletes anything; the hooks stay for the next run, and go when they are taken away."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    done = guarding.run(name, timeout=3).good()
    assert done.report["summary"]["ended"] == ["deadline"]
    assert done.report["machines"] == []
    guarding.hooked(name)
    guarding.run(name, state="absent").good()
    assert fleet.hooks(name) == {}


def test_somebody_holds_the_node(guarding, fleet, world):
    """Its work is not interrupted: neither the drain nor the end of the machine comes before it lets go."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    world.owned("app", node)
    hold = {"spec": {"holderIdentity": "app", "acquireTime": "2026-01-02T03:04:05.000000Z"}}
    world.create("leases", node, hold)
    run = guarding.start(name, pre_drain_tasks=guarding.tasks("backup"))
    guarding.hooked(name)
    fleet.delete(name)
    run.until(lambda: guarding.record(name).get("phase") == "hold", "it waits for the holder")
    assert guarding.log == []
    assert "app" in world.pods(node)
    world.delete("leases", node)
    run.done().good()
    fleet.until_gone(name)


def test_its_volumes_have_to_be_gone(guarding, fleet, world):
    (node,) = world.nodes()
    name = fleet.machine(node, annotations={"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""})
    attach(world, node)
    run = guarding.start(name)
    guarding.hooked(name)
    fleet.delete(name)
    run.until(lambda: guarding.record(name).get("phase") == "volumes", "it waits for the volumes")
    assert deleting(fleet.get(name)) == "WaitingForPreTerminateHook"
    detach(world, node)
    run.done().good()
    fleet.until_gone(name)


def test_two_runs_at_once(guarding, fleet, world):
    """The user's tasks are run by one of them."""
    names = [fleet.machine(node) for node in world.nodes(3)]
    files = {"pre_drain_tasks": guarding.tasks("backup", "sleep 1"), "pre_terminate_tasks": guarding.tasks("out")}
    runs = [guarding.start(*names, **files) for _number in range(2)]
    for name in names:
        guarding.hooked(name)
    for name in names:
        fleet.delete(name)
    done = [run.done().good() for run in runs]
    for name in names:
        fleet.until_gone(name)
    assert sorted(guarding.log) == sorted(
        [f"backup pre-drain {name}" for name in names] + [f"out pre-terminate {name}" for name in names]
    )
    assert not points(done[0]).keys() & points(done[1]).keys()
    assert len(points(done[0])) + len(points(done[1])) == 6


def test_check_mode(guarding, fleet, world):
    (node,) = world.nodes()
    name = fleet.machine(node)
    done = guarding.run(name, arguments=("--check",)).good()
    assert fleet.hooks(name) == {}
    assert done.report["machines"] == []


def test_no_such_machine(guarding, fleet):
    """It may be gone already, and that is said."""
    done = guarding.run("nobody").good()
    assert "there is no Machine nobody" in done.output
    assert done.report["summary"]["unknown"] == ["nobody"]
    assert done.report["summary"]["ended"] == ["gone"]


def test_nothing_is_selected(guarding, fleet):
    refused = guarding.run()
    assert refused.code != 0
    assert "Say on which Machines hooks are set" in refused.output


def test_a_limit_that_leaves_out_the_workers(guarding, fleet, world):
    (node,) = world.nodes()
    name = fleet.machine(node)
    refused = guarding.run(name, timeout=1, arguments=("--limit", "localhost"))
    assert refused.code != 0
    assert "localhost,machine_guard_workers" in refused.output


def hooks_in(item):
    return [key for key in (item or {"metadata": {}})["metadata"].get("annotations") or {} if ".delete.hook." in key]
