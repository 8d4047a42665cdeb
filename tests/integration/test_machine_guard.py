# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook guard_machine with Cluster API's own controller, which deletes Machines point by point."""

from __future__ import annotations

import json
import re
import shutil
import time

import pytest
from integration.support.guards import HOOK, OWNER, Guarding, points
from integration.support.halts import Halt
from integration.support.machines_capi import NAME, PRE_DRAIN, PRE_TERMINATE, Fleet, controlled, deleting
from integration.support.volumes import attach, detach

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure
from ansible_collections.holdfast.kubernetes.plugins.modules import doctor
from lab.patience import PATIENCE

AWAY = {
    "name": "Ask a host that is down",
    "ansible.builtin.raw": "true",
    "delegate_to": "nowhere",
    "vars": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
}
UNTIL_IT_IS_OVER = "while [ $(date +%s) -le {{ __machine_guard_begun.begun.ends }} ]; do sleep 0.1; done"
BOOLEANS = (
    "set_hooks",
    "repeat_tasks",
    "make_up",
    "wait_for_replacement",
    "override_holds",
    "drain",
    "check_volumes",
    "delete_emptydir",
    "force",
    "disable_eviction",
)


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
    """The run waits, runs the user's tasks, drains the node, and removes each hook; then Machine and Node are gone."""
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


@pytest.mark.long
def test_two_owners_at_one_point(guarding, fleet, world):
    """Each removes its own; the Machine continues after the last. Both runs work at the same time."""
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


@pytest.mark.long
def test_ten_at_once(guarding, fleet, world):
    """Each waits for the others in its own task, so the run works on all of them at the same time."""
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
    done = run.done().good()
    for name in names:
        fleet.until_gone(name)
    assert sorted(guarding.log) == sorted(f"all pre-drain {name}" for name in names)
    assert set(points(done).values()) == {"released"}
    assert len(points(done)) == 20
    assert done.report["summary"]["ended"] == ["idle"]


@pytest.mark.long
def test_it_ends_when_all_that_waited_is_served(guarding, fleet, world):
    """One worker serves one after the other. It does not stay for a Machine that no one deletes."""
    *names, stays = [fleet.machine(node) for node in world.nodes(4)]
    hooks = {f"{PRE_DRAIN}/{HOOK}": OWNER, f"{PRE_TERMINATE}/{HOOK}": OWNER}
    for name in (*names, stays):
        fleet.annotate(name, hooks)
    for name in names:
        fleet.delete(name)
        fleet.until_reason(name, "WaitingForPreDrainHook")

    # The timeout is longer than the test may take.
    done = guarding.run(*names, stays, stop="idle", timeout=3600, pre_drain_tasks=guarding.tasks("all")).good()
    assert done.report["summary"]["ended"] == ["idle"]
    assert points(done) == {(name, point): "released" for name in names for point in ("pre-drain", "pre-terminate")}
    assert sorted(guarding.log) == sorted(f"all pre-drain {name}" for name in names)
    for name in names:
        fleet.until_gone(name)
    assert fleet.hooks(stays) == hooks


@pytest.mark.long
def test_the_replacement_is_waited_for_before_the_machine_ends(guarding, fleet, world):
    """With pre-terminate as the only point: the hook that Cluster API never skips."""
    fleet.workers("pool", 2)
    one, two = fleet.until_running("pool", 2)
    fleet.annotate(one, {f"{PRE_TERMINATE}/{HOOK}": OWNER})
    fleet.delete(one)
    fleet.until_reason(one, "WaitingForPreTerminateHook")
    world.set_condition(two, "Ready", "False", "ATest")
    wanted = {"points": ["pre-terminate"], "wait_for_replacement": True, "replacement_timeout": 0}
    last = guarding.tasks("last")

    done = guarding.run(one, **wanted, pre_terminate_tasks=last)
    assert done.code != 0
    assert points(done) == {(one, "pre-terminate"): "failed"}
    assert f"The replacement of Machine {one} needs 1 other Machines with Ready Nodes" in done.output
    assert fleet.hooks(one) == {f"{PRE_TERMINATE}/{HOOK}": OWNER}
    assert deleting(fleet.get(one)) == "WaitingForPreTerminateHook"
    assert guarding.log == [], "nothing is done before the replacement is there"

    world.set_condition(two, "Ready", "True", "ATest")
    done = guarding.run(one, **wanted, pre_terminate_tasks=last).good()
    assert points(done) == {(one, "pre-terminate"): "released"}
    fleet.until_gone(one)
    assert guarding.log == [f"last pre-terminate {one}"]


@pytest.mark.long
def test_guarded_from_birth(guarding, fleet, world):
    """A MachineDeployment is scaled up and down: later Machines get the hooks, and are served like the others.

    The Cluster that is also given adds no other Machine. When the template loses the hooks, its Machines lose them too.
    """
    (node,) = world.nodes()
    apart = fleet.machine(node)
    fleet.workers("pool", 1)
    wanted = {"machines": [], "cluster": NAME, "templates": [{"name": "pool"}]}
    run = guarding.start(
        **wanted,
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

    # When it is gone, a new one replaces it, which is guarded, too.
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

    for name in set(names) - {left}:
        fleet.until_gone(name)
    run.close()
    assert fleet.hooks(apart) == {}
    guarding.run(**wanted, state="absent").good()
    fleet.until(left, lambda item: not hooks_in(item))


@pytest.mark.long
def test_hooks_that_can_not_hold_are_reported(guarding, fleet, world):
    """A Machine that is past a point, and one without a Node: the report names them, and the run does not wait."""
    lonely = fleet.unbound("lonely")
    fleet.annotate(lonely, {f"{PRE_TERMINATE}/{HOOK}": OWNER})
    fleet.delete(lonely)
    fleet.until_reason(lonely, "WaitingForPreTerminateHook")

    files = {"pre_drain_tasks": guarding.tasks("before"), "pre_terminate_tasks": guarding.tasks("after")}
    done = guarding.run(lonely, **files, make_up=True).good()
    assert [(hook["point"], hook["error"]) for hook in done.report["hooks"]] == [("pre-drain", "cannot_hold")]
    assert done.report["summary"]["cannot_hold"] == [lonely]
    assert points(done) == {(lonely, "pre-terminate"): "released"}
    assert guarding.log == [f"after pre-terminate {lonely}"], "it had none of our hooks before its drain"
    fleet.until_gone(lonely)


@pytest.mark.long
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
    """An Event on the Machine names the failure. The next run resumes: what was done is not done again."""
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
    (finding,) = (item for item in world.run(doctor, nodes=[node])["findings"] if item["kind"] == "machine")
    assert (finding["operation"], finding["alive"], finding["stale"]) == (f"{fleet.namespace}/{name}", False, False)
    assert "User's task" in finding["why"]
    assert "start guard_machine again" in finding["todo"]

    guarding.tasks("second")
    elsewhere = guarding.folder / "elsewhere"
    elsewhere.mkdir()
    files = [shutil.copy(file, elsewhere) for file in (first, second)]
    done = guarding.run(name, pre_drain_tasks=files).good()
    fleet.until_gone(name)
    assert guarding.log == [f"first pre-drain {name}", f"second pre-drain {name}"], "in another checkout, too"
    assert done.report["machines"][0]["done"] == ["first.yml", "second.yml"]
    assert done.report["machines"][0]["resumed"]


@pytest.mark.long
def test_a_file_that_was_done_is_written_down_in_the_end(guarding, fleet, world, made):
    """While the API server does not accept the record, the file is not run again."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    waiting(fleet, name)
    done = '"done": {"pre-drain"'
    lift = refuse(fleet, made, name, f"object.metadata.annotations[key].contains('{done}')", {"probe": done})
    run = guarding.start(name, pre_drain_tasks=guarding.tasks("backup"))
    run.until(lambda: "is not recorded yet, and the worker tries again" in run.output, "it is tried again")
    assert guarding.log == [f"backup pre-drain {name}"]
    lift()
    run.done().good()
    fleet.until_gone(name)
    assert guarding.log == [f"backup pre-drain {name}"]


@pytest.mark.long
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


@pytest.mark.long
def test_a_deadline(guarding, fleet, world):
    """The run ends when no Machine is deleted; the hooks stay for the next run, until a run removes them."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    done = guarding.run(name, timeout=3).good()
    assert done.report["summary"]["ended"] == ["deadline"]
    assert done.report["machines"] == []
    guarding.hooked(name)
    guarding.run(name, state="absent").good()
    assert fleet.hooks(name) == {}


@pytest.mark.long
def test_machines_that_are_left_are_reported(guarding, fleet, world):
    """A run whose time has passed leaves one Machine that waits, and one that comes to our next hook."""
    names = [fleet.machine(node) for node in world.nodes(2)]
    for name in names:
        waiting(fleet, name)
    done = guarding.run(*names, parallel=1, timeout=30, pre_drain_tasks=guarding.tasks("slow", UNTIL_IT_IS_OVER))
    assert done.code != 0
    ((begun, _point),) = points(done)
    (left,) = set(names) - {begun}
    assert done.report["summary"]["ended"] == ["deadline"]
    assert set(done.report["summary"]["waiting"]) == {begun, left}
    assert done.stats["machine_guard_waiting"] == 2
    assert f"Machine {left} is being deleted (WaitingForPreDrainHook)" in done.output
    (event,) = guarding.events(left)
    assert "not started: the run ended (deadline)" in event["message"]
    assert guarding.leases() == []

    done = guarding.run(*names).good()
    assert not any(item["resumed"] for item in done.report["machines"]), "nobody had begun with it"
    for name in names:
        fleet.until_gone(name)


@pytest.mark.long
def test_the_api_is_away_for_long(guarding, fleet, world):
    """A run that ends only on a signal does not end because the API is unavailable."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    halt = Halt(guarding.folder / "halt")
    config, nowhere, back = (guarding.folder / name for name in ("kubeconfig", "nowhere", "back"))
    for copied in (config, back):
        shutil.copy(world.kubeconfig, copied)
    nowhere.write_text(re.sub(r"(server: https://[^:]*):\d+", r"\1:1", config.read_text()))
    run = guarding.start(
        name,
        stop="never",
        parallel=1,
        api_timeout=1,
        environment={"K8S_AUTH_KUBECONFIG": str(config), **halt.after("localhost", "machine_guard_begin")},
    )
    run.until(lambda: halt.reached, "the hooks are set")
    nowhere.replace(config)
    halt.resume()
    run.until(lambda: run.output.count('"error": "api_unreachable"') > 2, "it asks again")
    back.replace(config)
    fleet.delete(name)
    done = run.done().good()
    fleet.until_gone(name)
    assert done.report["summary"]["ended"] == ["gone"]


@pytest.mark.long
def test_left_at_the_deadline(guarding, fleet, world):
    """Another owner's hook keeps it from ours until the run has ended. Removing hooks spares it, and reports that."""
    (node,) = world.nodes()
    name = fleet.machine(node, annotations={f"{PRE_DRAIN}/theirs": "them", f"{PRE_TERMINATE}/{HOOK}": OWNER})
    fleet.delete(name)
    fleet.until_reason(name, "WaitingForPreDrainHook")
    for settings in ({"timeout": 1}, {"state": "absent"}):
        done = guarding.run(name, **settings)
        assert done.code != 0
        assert done.report["summary"]["waiting"] == [name]
        assert f"Machine {name} is being deleted" in done.output
        assert fleet.hooks(name)[f"{PRE_TERMINATE}/{HOOK}"] == OWNER
    fleet.annotate(name, {f"{PRE_DRAIN}/theirs": None})
    guarding.run(name).good()
    fleet.until_gone(name)


@pytest.mark.long
def test_nothing_is_started_after_the_deadline(guarding, fleet, world):
    names = [fleet.machine(node) for node in world.nodes(2)]
    for name in names:
        waiting(fleet, name)
    done = guarding.run(*names, parallel=1, timeout=30, pre_drain_tasks=guarding.tasks("slow", UNTIL_IT_IS_OVER))
    assert done.code != 0
    ((begun, _point),) = points(done)
    (left,) = set(names) - {begun}
    assert guarding.log == [f"slow pre-drain {begun}"], "what was begun is brought to its end"
    assert done.report["summary"]["ended"] == ["deadline"]
    assert left in done.report["summary"]["waiting"]

    guarding.run(*names).good()
    for name in names:
        fleet.until_gone(name)


@pytest.mark.long
def test_every_boolean_as_text(guarding, fleet, world):
    """As a command line gives them: "false" is false."""
    lonely = fleet.unbound("lonely")
    held, other = world.nodes(2)
    name, spare = fleet.machine(held), fleet.machine(other)
    waiting(fleet, lonely, "WaitingForPreTerminateHook")
    waiting(fleet, name)
    hold = {"spec": {"holderIdentity": "app", "acquireTime": "2026-01-02T03:04:05.000000Z"}}
    world.create("leases", held, hold)
    run = guarding.start(
        name,
        spare,
        lonely,
        parallel=2,
        **dict.fromkeys(BOOLEANS, "false"),
        retry_seconds=1,
        pre_drain_tasks=[
            guarding.tasks("first"),
            guarding.tasks("second", "mkdir once 2>/dev/null && exit 1 || true"),
        ],
    )
    run.until(lambda: guarding.record(name).get("phase") == "hold", "it waits for the holder")
    fleet.until_gone(lonely)
    assert guarding.log == [], "nothing is made up for"
    world.delete("leases", held)
    done = run.done().good()
    fleet.until_gone(name)
    assert guarding.log == [f"first pre-drain {name}", f"second pre-drain {name}"]
    assert fleet.hooks(spare) == {}
    assert not {"replacement", "drain", "volumes"} & {
        phase for item in done.report["machines"] for phase in item["seconds"]
    }


@pytest.mark.long
def test_what_no_log_hides_stays_hidden(guarding, fleet, world):
    (node,) = world.nodes()
    name = fleet.machine(node)
    waiting(fleet, name)
    secret = {
        "name": "Log in",
        "ansible.builtin.fail": {"msg": "the password open-sesame is wrong"},
        "no_log": True,
    }
    failed = guarding.run(name, pre_drain_tasks=guarding.tasks("backup", secret), arguments=("-vv",), stop="idle")
    assert failed.code != 0
    (entry,) = failed.report["machines"]
    assert (entry["result"], entry["detail"]) == ("failed", "Log in: hidden (no_log)")
    (event,) = guarding.events(name)
    assert "Log in: hidden (no_log)" in event["message"]
    # ansible-core prints the message of an action that itself fails.
    ours = [line for line in failed.output.splitlines() if not line.startswith("[ERROR]: Task failed: Action failed:")]
    everything = (*ours, json.dumps(failed.report), json.dumps(event), json.dumps(fleet.get(name)))
    assert not [text for text in everything if "open-sesame" in text]
    fleet.annotate(name, dict.fromkeys(fleet.hooks(name)))


@pytest.mark.long
def test_a_host_that_can_not_be_reached(guarding, fleet, world):
    """The only worker drops out: the report still has it."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    waiting(fleet, name)
    done = guarding.run(name, parallel=1, pre_drain_tasks=guarding.tasks("backup", AWAY))
    assert done.code != 0
    assert points(done) == {(name, "pre-drain"): "failed"}
    assert done.stats["machine_guard_failed_machines"] == name
    (event,) = guarding.events(name)
    assert "unreachable" in event["message"]
    assert guarding.leases() == []
    fleet.annotate(name, dict.fromkeys(fleet.hooks(name)))


@pytest.mark.long
def test_one_of_two_workers_drops_out(guarding, fleet, world):
    """It is reported once, however long the other one continues."""
    name, another = (fleet.machine(node) for node in world.nodes(2))
    waiting(fleet, name)
    waiting(fleet, another)
    go = guarding.folder / "go"
    away = {**AWAY, "when": f"machine_guard_machine_name == '{name}'"}
    files = guarding.tasks("backup", away, until_there(go))
    run = guarding.start(name, another, parallel=2, pre_drain_tasks=files)
    run.until(lambda: "UNREACHABLE!" in run.output, "a worker drops out")
    go.touch()
    done = run.done()
    assert done.code != 0
    fleet.until_gone(another)
    results = [(item["name"], item["point"], item["result"]) for item in done.report["machines"]]
    assert sorted(results) == sorted(
        [(name, "pre-drain", "failed"), *((another, point, "released") for point in ("pre-drain", "pre-terminate"))]
    )
    assert len(guarding.events(name)) == 1
    assert guarding.leases() == []
    fleet.annotate(name, dict.fromkeys(fleet.hooks(name)))


@pytest.mark.long
def test_two_files_of_one_name(guarding, fleet):
    """The record of what was done uses the files' names."""
    file = guarding.tasks("backup")
    elsewhere = guarding.folder / "elsewhere"
    elsewhere.mkdir()
    refused = guarding.run("any", pre_drain_tasks=[file, shutil.copy(file, elsewhere)])
    assert refused.code != 0
    assert "Two files of tasks of one point have the same name, backup.yml, backup.yml" in refused.output


@pytest.mark.long
def test_the_node_is_held(guarding, fleet, world):
    """The hold is respected: neither the drain nor the end of the machine comes before its release."""
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


@pytest.mark.long
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


@pytest.mark.long
def test_two_runs_at_once(guarding, fleet, world):
    """Only one of them runs the user's tasks."""
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


@pytest.mark.long
def test_a_machine_that_may_not_have_hooks(guarding, fleet, world, made):
    """A policy refuses hooks on an existing Machine and on a new one: the run reports both, and serves the others."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    waiting(fleet, name)
    refuse_hooks(fleet, made, "odd")
    fleet.unbound("odd-from-the-start")
    go = guarding.folder / "go"
    run = guarding.start(
        parallel=2,
        cluster=NAME,
        machines=[],
        selector="!cluster.x-k8s.io/control-plane",
        stop="idle",
        set_hooks=True,
        pre_drain_tasks=guarding.tasks("slow", until_there(go)),
    )
    run.until(lambda: guarding.record(name).get("phase") == "tasks", "it works on the one")
    fleet.unbound("odd-one-later")
    go.touch()
    done = run.done()
    assert done.code != 0
    fleet.until_gone(name)
    refused = {item["machine"]: item["detail"] for item in done.report["summary"]["refused"]}
    assert set(refused) == {f"{fleet.namespace}/odd-{which}" for which in ("from-the-start", "one-later")}
    for odd, detail in refused.items():
        assert "not here" in detail
        assert f"hooks of Machine {odd} could not be set" in done.output
    assert done.report["summary"]["cannot_hold"] == []
    assert set(points(done).values()) == {"released"}


@pytest.mark.long
def test_a_machine_of_a_paused_cluster_is_left_alone(guarding, fleet, world):
    (node,) = world.nodes()
    name = fleet.machine(node)
    waiting(fleet, name)
    with fleet.paused(name):
        guarding.run(name, pre_drain_tasks=guarding.tasks("backup"), timeout=3)
        assert guarding.log == []
        assert f"{PRE_DRAIN}/{HOOK}" in fleet.hooks(name)
    fleet.annotate(name, dict.fromkeys(fleet.hooks(name)))


@pytest.mark.long
def test_check_mode(guarding, fleet, world):
    """It names those that wait for the hooks of this run, and no others."""
    name, gone, other = (fleet.machine(node) for node in world.nodes(3))
    for going in (gone, other):
        waiting(fleet, going)
    done = guarding.run(name, gone, arguments=("--check",)).good()
    assert fleet.hooks(name) == {}
    assert done.report["machines"] == []
    said = re.findall(rf"{fleet.namespace}/(\S+): (\w+) since", done.output)
    assert said == [(gone, "WaitingForPreDrainHook")]
    assert "Could not match supplied host pattern" not in done.output, "no workers, and no warning of that"


@pytest.mark.long
def test_no_such_machine(guarding, fleet):
    """It may be gone already, and the run says so."""
    done = guarding.run("nobody").good()
    assert "there is no Machine nobody" in done.output
    assert done.report["summary"]["unknown"] == ["nobody"]
    assert done.report["summary"]["ended"] == ["gone"]


@pytest.mark.long
def test_nothing_is_selected(guarding, fleet):
    refused = guarding.run()
    assert refused.code != 0
    assert "machine_guard_selector" in refused.output


@pytest.mark.long
def test_a_limit_that_leaves_out_the_workers(guarding, fleet, world):
    (node,) = world.nodes()
    name = fleet.machine(node)
    refused = guarding.run(name, timeout=1, arguments=("--limit", "localhost"))
    assert refused.code != 0
    assert "localhost,machine_guard_workers" in refused.output


def waiting(fleet, name, reason="WaitingForPreDrainHook"):
    """Return when the deletion of a Machine waits for hooks of this collection that no run has set."""
    fleet.annotate(name, {f"{point}/{HOOK}": OWNER for point in (PRE_DRAIN, PRE_TERMINATE)})
    fleet.delete(name)
    fleet.until_reason(name, reason)


def until_there(file):
    """A shell command that ends when a file exists."""
    return f"for _ in $(seq {10 * PATIENCE}); do [ ! -e {file} ] || exit 0; sleep 0.1; done; exit 1"


def refuse_hooks(fleet, made, name):
    """A policy that refuses hooks on Machines whose names start with this name."""
    fleet.unbound(name)
    refuse(fleet, made, name, "key.contains('.delete.hook.')", {f"{PRE_DRAIN}/probe": "probe"})
    fleet.delete(name)
    fleet.until_gone(name)


def refuse(fleet, made, name, forbidden, probe):
    """Add a policy about annotations of Machines with this name prefix; return how to remove it, once it works.

    Args:
        forbidden: What no annotation may be, by its ``key``; an expression.
        probe: A forbidden annotation, to try on the Machine with exactly this name.
    """
    policy = f"no-{name}-{fleet.namespace}"
    rule = {
        "apiGroups": ["cluster.x-k8s.io"],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["machines"],
    }
    of_it = f"request.namespace == '{fleet.namespace}' && request.name.startsWith('{name}')"
    has_it = f"has(object.metadata.annotations) && object.metadata.annotations.exists(key, {forbidden})"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "one", "expression": of_it}],
        "validations": [{"expression": f"!({has_it})", "message": "not here"}],
    }
    binding = {"policyName": policy, "validationActions": ["Deny"]}
    admission = "/apis/admissionregistration.k8s.io/v1"
    for kind, body in (("validatingadmissionpolicies", spec), ("validatingadmissionpolicybindings", binding)):
        fleet.cluster.create(f"{admission}/{kind}", {"metadata": {"name": policy}, "spec": body})
        made.objects.append(f"{admission}/{kind}/{policy}")
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fleet.annotate(name, probe)
        except ApiFailure:
            break
        assert time.monotonic() < end
        time.sleep(0.1)
    fleet.annotate(name, dict.fromkeys(probe))
    return lambda: fleet.cluster.delete(f"{admission}/validatingadmissionpolicybindings/{policy}")


def hooks_in(item):
    return [key for key in (item or {"metadata": {}})["metadata"].get("annotations") or {} if ".delete.hook." in key]
