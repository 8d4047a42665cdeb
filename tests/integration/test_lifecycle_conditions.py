# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes' own lifecycle conditions, as an API server's watch shows them during runs over simulated nodes."""

from __future__ import annotations

import pytest
from integration.support.halts import Halt
from integration.support.history import History
from integration.support.playbooks import OPERATION
from integration.support.rights import Account

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules, paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import NAMESPACE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import run_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.lifecycle_rules import TAINT
from ansible_collections.holdfast.kubernetes.plugins.modules import cordon, doctor, drain, node_info
from lab.patience import PATIENCE

RECORD = "holdfast.dev/conditions"
PLANNED, WORKS, DRAINS, DRAINED = TYPES = ("MaintenancePlanned", "MaintenanceInProgress", "DrainInProgress", "Drained")
# What a watch shows of one node.
COURSE = [(), (PLANNED,), (WORKS,), (WORKS, DRAINS), (WORKS, DRAINED), ()]
LONG_AGO = "2020-01-01T00:00:00.000000Z"
THEIRS = {"message": "slot 3, ticket 8812", "lastTransitionTime": "2026-01-02T03:04:05Z"}


def long(parameter):
    return pytest.param(parameter, marks=pytest.mark.long)


@pytest.fixture
def history(rolling, kubeconfig):
    return History(kubeconfig, group=rolling.group, selector=rolling.selector)


def shown(world, name):
    """The lifecycle conditions of a node that are True, with their messages."""
    conditions = world.node(name)["status"]["conditions"]
    return {item["type"]: item["message"] for item in conditions if item["type"] in TYPES and item["status"] == "True"}


def tainted(node):
    return TAINT in (node["spec"].get("taints") or [])


def assert_none(world, names):
    for name in names:
        node = world.node(name)
        assert not tainted(node)
        assert not [item for item in node["status"]["conditions"] if item["type"] in TYPES], "not even as False"
        assert RECORD not in node["metadata"]["annotations"]


@pytest.mark.long
def test_each_condition_is_set_and_removed_in_order(rolling, nodes, history):
    names = nodes(3)
    for name in names:
        rolling.world.owned(f"app-{name}", name)
    with history:
        done = rolling.run(names, operation="kernel", run=f"job-7-{rolling.group}", max_unavailable=2).good()
    assert set(done.results.values()) == {"rebooted"}
    assert history.conditions(*TYPES) == dict.fromkeys(names, COURSE)
    assert_none(rolling.world, names)
    # No other condition disappears meanwhile.
    assert all(node_rules.ready(rolling.world.node(name)) for name in names)


@pytest.mark.long
def test_says_which_run_of_which_operation(rolling, nodes):
    (name,) = nodes()
    halt = Halt(rolling._ansible.folder / "halt")
    run = rolling.start(
        [name],
        operation="kernel",
        run=f"job-7-{rolling.group}",
        before_reboot_tasks=rolling.tasks("stay", halt.command),
    )
    run.until(lambda: halt.reached, "the reboot")
    node = rolling.world.node(name)
    found = {item["type"]: item for item in node["status"]["conditions"]}
    for kind in (WORKS, DRAINED):
        assert found[kind]["reason"] == "AdminRequested"
        assert found[kind]["message"].endswith(f"operation kernel, run job-7-{rolling.group}")
        assert found[kind]["lastTransitionTime"] >= node["metadata"]["creationTimestamp"]
    (info,) = rolling.world.run(node_info, name=name)["nodes"]
    assert [(item["type"], item["ours"]) for item in info["maintenance"]] == [(WORKS, True), (DRAINED, True)]
    halt.resume()
    run.done().good()
    assert_none(rolling.world, [name])


@pytest.mark.long
def test_without_the_option_none_is_set(rolling, nodes, history):
    (name,) = nodes()
    with history:
        rolling.run([name], lifecycle_conditions=False).good()
    assert history.conditions(*TYPES) == {name: [()]}


@pytest.mark.long
def test_a_node_waits_for_its_holder(rolling, nodes, history):
    held, other = nodes(2)
    rolling.hold(held)
    with history:
        run = rolling.start([held, other])
        run.until(lambda: rolling.record(held).get("phase") == "hold", "the holder")
        assert set(shown(rolling.world, held)) == {PLANNED}
        rolling.release(held)
        run.done().good()
    assert history.conditions(*TYPES) == {held: COURSE, other: COURSE}


@pytest.mark.long
def test_a_hold_at_the_last_moment(rolling, nodes, history, tmp_path):
    (name,) = nodes()
    marker = tmp_path / "held"
    once = rolling.tasks("late", f"test -e {marker} || {{ touch {marker} && {rolling.hold_task()}; }}")
    with history:
        run = rolling.start([name], before_reboot_tasks=once, prefer_no_schedule=True)
        run.until(lambda: rolling.record(name).get("phase") == "hold" and rolling.slots() == {}, "put back")
        rolling.release(name)
        run.done().good()
    course = history.conditions(*TYPES)[name]
    assert course[:5] == COURSE[:5]
    assert course[5] == (PLANNED,)
    assert course[-4:] == COURSE[-4:]
    assert history.course(tainted)[name] == [False, True, False, True, False]
    assert_none(rolling.world, [name])


@pytest.mark.long
def test_a_node_that_is_never_started(rolling, nodes, history):
    """It waits for its holder until the run gives up."""
    (name,) = nodes()
    rolling.hold(name)
    with history:
        done = rolling.run([name], hold_timeout=1, prefer_no_schedule=True)
    assert done.results == {name: "stopped"}
    assert history.course(tainted)[name] == [False, True, False]
    assert history.conditions(*TYPES) == {name: [(), (PLANNED,), ()]}
    assert_none(rolling.world, [name])


@pytest.mark.long
@pytest.mark.parametrize("hook", ["before_drain", "before_reboot", "check"])
def test_a_node_that_fails(rolling, nodes, history, hook):
    (name,) = nodes()
    with history:
        done = rolling.run([name], **{f"{hook}_tasks": rolling.tasks("fail", "exit 1")})
    assert done.results == {name: "failed"}
    assert (WORKS,) in history.conditions(*TYPES)[name]
    assert_none(rolling.world, [name])


@pytest.mark.long
def test_a_drain_that_fails(rolling, nodes, history):
    (name,) = nodes()
    rolling.world.owned("web", name)
    rolling.world.budget("web", "web", lambda status: status["currentHealthy"] == 1, minAvailable=1)
    with history:
        done = rolling.run([name], drain_timeout=1)
    assert done.results == {name: "failed"}
    course = history.conditions(*TYPES)[name]
    assert (WORKS, DRAINS) in course
    assert not [kinds for kinds in course if DRAINED in kinds]
    assert_none(rolling.world, [name])


# Where a run is killed, and what it shows then.
POINTS = {
    "waits": {PLANNED},
    "before_cordon": {WORKS},
    "drains": {WORKS, DRAINS},
    "before_reboot": {WORKS, DRAINED},
    "before_uncordon": {WORKS, DRAINED},
}


class TestKilled:
    """The run is killed with all that it started, at several points."""

    @pytest.fixture(params=[point if point == "before_reboot" else long(point) for point in POINTS])
    def killed(self, request, rolling, nodes):
        (name,) = nodes()
        point, world = request.param, rolling.world
        halt = Halt(rolling._ansible.folder / "halt")
        more = {} if point in ("waits", "drains") else {f"{point}_tasks": rolling.tasks("stay", halt.command)}
        if point == "waits":
            rolling.hold(name)
        if point == "drains":
            world.owned("web", name, slow={"delete": "1h"})
        environment = {"K8S_AUTH_KUBECONFIG": world.kubeconfig}
        options = {"operation": "kernel", "run": f"one-{world.namespace}", "prefer_no_schedule": True}
        run = rolling.start([name], environment=environment, **options, **more)
        phase = {"waits": "hold", "drains": "drain"}.get(point)
        run.until(lambda: rolling.record(name).get("phase") == phase if phase else halt.reached, point, PATIENCE)
        run.kill()
        run.send_to_all(9)
        assert set(shown(world, name)) == POINTS[point]
        assert tainted(world.node(name)) is (point == "waits")
        lease = paths.lease(NAMESPACE, run_rules.lease_name(f"one-{world.namespace}"))
        world.made.objects.append(lease)
        world.cluster.merge(lease, {"spec": {"renewTime": LONG_AGO}})
        return name, point

    def test_then_the_doctor(self, rolling, killed):
        name, _point = killed
        world = rolling.world
        # Before its first slot, a group does not know its nodes.
        report = world.run(doctor, nodes=[name])
        assert "conditions" in {finding["kind"] for finding in report["findings"] if finding["stale"]}
        assert shown(world, name)
        world.run(doctor, nodes=[name], state="cleared", check_mode=True)
        assert shown(world, name)
        found = world.run(doctor, nodes=[name], state="cleared")
        assert "conditions" in {finding["kind"] for finding in found["findings"] if finding["cleared"]}
        assert_none(world, [name])
        assert world.run(doctor, nodes=[name], state="cleared")["stale"] == 0

    @pytest.mark.long
    def test_then_the_next_run(self, rolling, killed, history):
        name, point = killed
        if point == "waits":
            rolling.release(name)
        if point == "drains":
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
            rolling.world.cluster.delete(paths.pod(rolling.world.namespace, "web"), options)
        before = shown(rolling.world, name)
        with history:
            done = rolling.run([name], operation="kernel", run=f"two-{rolling.group}", holder=rolling.group).good()
        assert done.results == {name: "rebooted"}
        course = history.conditions(*TYPES)[name]
        assert set(course[0]) == set(before)
        # If the node was not cordoned yet, the next run returns its slot and its claim first, and gets them again.
        free = point == "before_cordon"
        assert free or () not in course[:-1], "a cordoned node that the next run takes over is never shown as free"
        assert course[-1] == ()
        assert_none(rolling.world, [name])


@pytest.mark.long
def test_the_doctor_leaves_a_live_run(rolling, nodes):
    (name,) = nodes()
    halt = Halt(rolling._ansible.folder / "halt")
    run = rolling.start([name], before_reboot_tasks=rolling.tasks("stay", halt.command))
    run.until(lambda: halt.reached, "the reboot")
    found = rolling.world.run(doctor, group=rolling.group, state="cleared")
    assert {"conditions"} <= {finding["kind"] for finding in found["findings"] if finding["alive"]}
    assert set(shown(rolling.world, name)) == {WORKS, DRAINED}
    halt.resume()
    run.done().good()


@pytest.mark.long
def test_the_doctor_clears_a_node_that_is_down_and_leaves_the_rest(rolling, nodes):
    (name,) = nodes()
    world, halt = rolling.world, Halt(rolling._ansible.folder / "halt")
    off, on = rolling.off_and_on
    tasks = rolling.tasks("halting", off, halt.command, on)
    run = rolling.start([name], run=f"one-{rolling.group}", command_tasks=tasks)
    run.until(lambda: halt.reached, "the reboot")
    run.kill()
    run.send_to_all(9)
    lease = paths.lease(NAMESPACE, run_rules.lease_name(f"one-{rolling.group}"))
    world.made.objects.append(lease)
    world.cluster.merge(lease, {"spec": {"renewTime": LONG_AGO}})
    assert not node_rules.ready(world.node(name))
    kept = {key: value for key, value in rolling.ours(name).items() if key != RECORD}
    found = world.run(doctor, group=rolling.group, state="cleared")
    assert {finding["kind"] for finding in found["findings"] if finding["cleared"]} == {"conditions"}
    assert_none(world, [name])
    assert rolling.ours(name) == kept


class TestOthers:
    """Another writer has set conditions."""

    @pytest.mark.parametrize("kind", [WORKS, long(DRAINS)])
    def test_its_node_is_not_started(self, rolling, nodes, history, kind):
        theirs, other = names = nodes(2)
        rolling.world.set_condition(theirs, kind, "True", "DiskReplacement", **THEIRS)
        before = condition(rolling.world, theirs, kind)

        plan = rolling.run(names, "--check")
        assert {entry["name"]: entry["verdict"] for entry in plan.report["nodes"]} == {theirs: "later", other: "now"}
        words = f"another writer maintains it: {kind} is True since 2026-01-02T03:04:05Z (DiskReplacement: slot 3"
        assert words in plan.detail(theirs)

        boot_id = rolling.boot_id(theirs)
        with history:
            done = rolling.run(names, hold_timeout=1)
        assert done.results == {theirs: "stopped", other: "rebooted"}
        assert words in done.detail(theirs)
        assert "rolling_reboot_override_maintenance: true" in done.detail(theirs)
        assert (rolling.boot_id(theirs), rolling.world.cordoned(theirs)) == (boot_id, False)
        assert history.conditions(*TYPES) == {theirs: [(kind,), (PLANNED, kind), (kind,)], other: COURSE}
        assert condition(rolling.world, theirs, kind) == before
        rolling.assert_nothing_left(names)

    @pytest.mark.long
    def test_it_is_waited_for(self, rolling, nodes):
        (name,) = nodes()
        rolling.world.set_condition(name, WORKS, "True", "DiskReplacement", **THEIRS)
        run = rolling.start([name])
        run.until(lambda: rolling.record(name).get("phase") == "hold", "waiting for it")
        assert set(shown(rolling.world, name)) == {PLANNED, WORKS}
        rolling.world.set_condition(name, WORKS, "False", "Done")
        done = run.done().good()
        assert done.results == {name: "rebooted"}
        found = condition(rolling.world, name, WORKS)
        assert (found["status"], found["reason"], found["message"]) == ("False", "Done", "by a test")
        assert RECORD not in rolling.ours(name)

    @pytest.mark.long
    def test_it_comes_after_the_claim(self, rolling, nodes):
        (name,) = nodes()
        patch = rolling.report_task(conditions=[{"type": WORKS, "status": "True", "reason": "Late", "message": "m"}])
        run = rolling.start([name], before_slot_tasks=rolling.tasks("late", patch))
        run.until(lambda: "put off" in run.output or rolling.record(name).get("phase") == "hold", "left")
        assert not rolling.world.cordoned(name)
        assert shown(rolling.world, name)[WORKS] == "m"
        run.close()

    @pytest.mark.long
    def test_overridden(self, rolling, nodes, history):
        (name,) = nodes()
        rolling.world.set_condition(name, WORKS, "True", "DiskReplacement", **THEIRS)
        before = condition(rolling.world, name, WORKS)
        with history:
            done = rolling.run([name], override_maintenance=True).good()
        assert done.results == {name: "rebooted"}
        assert history.conditions(*TYPES)[name] == [
            (WORKS,),
            (PLANNED, WORKS),
            (WORKS,),
            (WORKS, DRAINS),
            (WORKS, DRAINED),
            (WORKS,),
        ]
        assert condition(rolling.world, name, WORKS) == before
        assert set(rolling.ours(name)) == {OPERATION}


def condition(world, name, kind):
    return node_rules.condition(world.node(name), kind)


@pytest.mark.long
def test_without_the_right_it_warns_once_and_works(rolling, nodes, cluster, lab, tmp_path):
    names = nodes(2)
    account = Account(cluster, rolling.group, lambda rule: rule["resources"] != ["nodes/status"])
    rolling.world.made.objects += account.objects
    environment = {"K8S_AUTH_KUBECONFIG": str(account.kubeconfig(lab.kubeconfig, tmp_path))}
    done = rolling.run(names, environment=environment, max_unavailable=2).good()
    assert set(done.results.values()) == {"rebooted"}
    assert "".join(done.output.split()).count("lifecycleconditionsofNodes") == 1, done.output
    rolling.assert_nothing_left(names)
    assert_none(rolling.world, names)


class TestDrainAlone:
    def test_the_cordon_ends_it(self, world, nodes, run_module):
        (name,) = nodes()
        world.owned("app", name)
        assert not run_module(drain, name=name, lifecycle_conditions=True).get("failed")
        assert set(shown(world, name)) == {DRAINED}
        run_module(cordon, name=name, state="uncordoned", owner="another")
        assert set(shown(world, name)) == {DRAINED}, "it stays cordoned"
        planned = run_module(cordon, name=name, state="uncordoned", check_mode=True)
        done = run_module(cordon, name=name, state="uncordoned")
        assert (planned["changed"], planned["unschedulable"], planned["diff"]) == (True, False, done["diff"])
        assert_none(world, [name])
        assert not run_module(cordon, name=name, state="uncordoned")["changed"]

    def test_by_default_it_shows_nothing(self, world, nodes, run_module):
        (name,) = nodes()
        run_module(drain, name=name)
        assert_none(world, [name])

    def test_a_drain_that_fails(self, world, nodes, run_module):
        (name,) = nodes()
        world.owned("web", name)
        world.budget("web", "web", lambda status: status["currentHealthy"] == 1, minAvailable=1)
        assert run_module(drain, name=name, lifecycle_conditions=True, timeout=1)["failed"]
        assert_none(world, [name])

    def test_the_doctor_does_not_know_whether_it_is_in_use(self, world, nodes, run_module):
        (name,) = nodes()
        run_module(drain, name=name, lifecycle_conditions=True)
        found = run_module(doctor, nodes=[name], state="cleared")
        (finding,) = [item for item in found["findings"] if item["kind"] == "conditions"]
        assert not finding["stale"]
        assert "state=uncordoned" in finding["todo"]
        assert set(shown(world, name)) == {DRAINED}


class TestFailover:
    @pytest.fixture
    def victim(self, failovers):
        found = failovers.victim()
        failovers.world.nodes(2)
        return found

    @pytest.fixture
    def history(self, world, kubeconfig):
        return History(kubeconfig, group=world.namespace, selector=f"pool={world.namespace}")

    @pytest.mark.long
    def test_there_and_back(self, failovers, victim, history):
        variables = failovers.by_command()
        victim.hang()
        with history:
            done = failovers.run(victim.name, **variables).good()
            assert_none(failovers.world, [victim.name])
            failovers.recover(victim.name, **variables).good()
        assert done.report["nodes"][0]["maintained_by"] == ""
        assert history.conditions(*TYPES)[victim.name] == [(), (WORKS,), (), (WORKS,), ()]
        assert victim.untouched
        assert_none(failovers.world, [victim.name])

    @pytest.mark.long
    def test_one_that_fails(self, failovers, victim, history):
        variables = failovers.by_command(fence="exit 1")
        victim.hang()
        with history:
            failovers.run(victim.name, **variables)
        assert history.conditions(*TYPES)[victim.name] == [(), (WORKS,), ()]
        assert_none(failovers.world, [victim.name])

    @pytest.mark.long
    def test_it_does_not_wait_for_another_writer(self, failovers, victim, history):
        world, variables = failovers.world, failovers.by_command()
        victim.hang()
        world.set_condition(victim.name, DRAINS, "True", "DiskReplacement", **THEIRS)
        before = condition(world, victim.name, DRAINS)
        with history:
            done = failovers.run(victim.name, **variables).good()
        (entry,) = done.report["nodes"]
        assert entry["result"] == "moved"
        assert entry["maintained_by"].startswith(f"another writer maintains it: {DRAINS} is True since 2026-01-02")
        assert "A failover does not wait for it" in done.output
        assert history.conditions(*TYPES)[victim.name] == [(DRAINS,), (WORKS, DRAINS), (DRAINS,)]
        assert condition(world, victim.name, DRAINS) == before

    @pytest.mark.long
    def test_killed_and_started_again(self, failovers, victim, history):
        halt = Halt(failovers._ansible.folder / "halt")
        stays = failovers.by_command(fence=halt.command)
        victim.hang()
        run = failovers.start(victim.name, **stays)
        run.until(lambda: halt.reached, "the fence")
        assert set(shown(failovers.world, victim.name)) == {WORKS}
        run.kill()
        run.send_to_all(9)
        with history:
            failovers.run(victim.name, **stays).good()
        assert history.conditions(*TYPES)[victim.name] == [(WORKS,), ()]
        assert_none(failovers.world, [victim.name])
