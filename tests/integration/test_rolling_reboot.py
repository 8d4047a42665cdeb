# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook and role rolling_reboot, as real processes over simulated nodes."""

from __future__ import annotations

import os
import re

import pytest
import yaml
from integration.support.history import History
from integration.support.playbooks import CORDON, SIMULATED_REBOOT

# No server answers there.
DEAF = {
    "ansible_connection": "ssh",
    "ansible_host": "127.0.0.1",
    "ansible_port": 9,
    "ansible_ssh_retries": 0,
    "rolling_reboot_method": "systemd",
}


@pytest.fixture
def without_hostname(rolling, tmp_path):
    """The environment of a run in a minimal image: there is no program hostname."""
    program = tmp_path / "bin/hostname"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 127\n")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {"K8S_AUTH_KUBECONFIG": rolling.world.kubeconfig, "PATH": path}


# --- all goes well


@pytest.mark.core
def test_every_node_is_done_once_and_nothing_is_left(rolling, nodes, kubeconfig, without_hostname):
    *wanted, excluded = names = nodes(4)
    rolling.world.cluster.merge(f"/api/v1/nodes/{excluded}", {"metadata": {"labels": {"holdfast.dev/exclude": ""}}})
    before = rolling.boot_ids(names)

    variables = {"operation": "kernel", "max_unavailable": 2, "command_tasks": str(SIMULATED_REBOOT)}
    with History(kubeconfig, group=rolling.group, selector=rolling.selector) as history:
        done = rolling.run(names, environment=without_hostname, run=f"job-7-{rolling.group}", **variables).good()

    after = rolling.boot_ids(names)
    assert all(after[name] != before[name] for name in wanted)
    assert after[excluded] == before[excluded]
    # No node goes down without a slot, and each keeps its slot until it is back.
    assert history.most_slots == 2
    assert all(moment.unavailable <= moment.slots for moment in history.moments)
    rolling.assert_nothing_left(names)
    assert done.results == {**dict.fromkeys(wanted, "rebooted"), excluded: "skipped"}
    assert done.detail(excluded) == "it has the label holdfast.dev/exclude"
    assert rolling.record(excluded) == {}
    for name in wanted:
        record, entry = rolling.record(name), done.entry(name)
        assert (record["id"], record["run"], record["result"]) == ("kernel", f"job-7-{rolling.group}", "rebooted")
        assert (entry["boot_id_before"], entry["boot_id_after"]) == (before[name], after[name])
        assert list(entry["phases"]) == ["cordon", "drain", "ready", "reboot", "slot", "uncordon"]
        assert all(seconds >= 0 for seconds in entry["phases"].values())
    assert done.report["summary"] == {
        "operation": "kernel",
        "check_mode": False,
        "rebooted": wanted,
        "skipped": [excluded],
        "lost": [],
        "postponed": [],
        "stopped": [],
        "failed": [],
        "not_reported": [],
    }
    stats = done.stats
    texts = {name: text.partition(":")[0] for name, text in stats.pop("rolling_reboot_results").items()}
    assert texts == done.results
    assert stats == {
        "rolling_reboot_operation": "",
        "rolling_reboot_ended_operation": "kernel",
        "rolling_reboot_rebooted": 3,
        "rolling_reboot_skipped": 1,
        "rolling_reboot_postponed": 0,
        "rolling_reboot_failed": 0,
        "rolling_reboot_stopped": 0,
        "rolling_reboot_lost": 0,
        "rolling_reboot_failed_nodes": "",
        "rolling_reboot_results_left_out": 0,
    }
    assert f"{wanted[0]}: rebooted (rolling_reboot_when is always)" in done.output

    versions = rolling.versions(names)
    again = rolling.run(names, **variables).good()
    assert set(again.results.values()) == {"skipped"}
    assert again.detail(wanted[0]) == "it was already rebooted in operation kernel"
    assert rolling.versions(names) == versions
    assert "changed=0" in again.output
    assert not re.search(r"changed=[1-9]", again.output)


@pytest.mark.long
def test_only_nodes_that_need_it_by_the_user_s_command(rolling, nodes):
    yes, no, unclear = names = nodes(3)
    hosts = {name: {"rolling_reboot_when_command": f"sh -c 'exit {code}'"} for name, code in zip(names, (0, 1, 3))}
    before = rolling.boot_ids(names)

    done = rolling.run(hosts, when="command", max_failed=1, operation="asked")

    assert done.results == {yes: "rebooted", no: "skipped", unclear: "failed"}
    assert done.detail(no) == "no reboot is required"
    assert "rolling_reboot_when_command" in done.detail(unclear)
    assert done.failed_hosts == {unclear}
    assert rolling.boot_id(unclear) == before[unclear]
    assert list(rolling.failures("asked")) == [unclear]
    rolling.assert_nothing_left(names)


@pytest.mark.long
@pytest.mark.core
def test_the_plan_changes_nothing(rolling, nodes, world):
    now, held, blocked, never, excluded, idle = names = nodes(6)
    rolling.hold(held, "backup")
    world.owned("spare", now)
    world.owned("busy", blocked)
    world.budget("busy", "busy", lambda status: status["currentHealthy"] == 1, minAvailable=1)
    world.pod("lone", never)
    world.cluster.merge(f"/api/v1/nodes/{excluded}", {"metadata": {"labels": {"holdfast.dev/exclude": ""}}})
    hosts = {name: {"rolling_reboot_when_command": "false" if name == idle else "true"} for name in names}
    before = rolling.versions(names)

    hosts["nowhere"] = {"rolling_reboot_when_command": "true"}
    hosts["deaf"] = {**DEAF, "rolling_reboot_when": "required"}
    done = rolling.run(hosts, "--check", when="command")

    assert rolling.versions(names) == before
    assert rolling.ledger() == {}
    assert done.failed_hosts == {"deaf"}
    assert "can't reach node" in done.detail("deaf")
    assert {name for name, result in done.results.items() if result == "planned"} == {*names, "nowhere"}
    assert {entry["name"]: entry["verdict"] for entry in done.report["nodes"] if entry["name"] != "deaf"} == {
        now: "now",
        held: "later",
        blocked: "never",
        never: "never",
        excluded: "never",
        idle: "not needed",
        "nowhere": "never",
    }
    assert f"{world.namespace}/backup" in done.detail(held)
    assert f"{world.namespace}/busy" in done.detail(blocked)
    assert f"{world.namespace}/lone" in done.detail(never)
    assert "rolling_reboot_node_name" in done.detail("nowhere")
    assert f"Node {held}: later (held by {world.namespace}/backup" in done.output
    assert done.report["summary"]["check_mode"] is True


# --- holds


def test_a_held_node_is_put_off_and_done_after_its_release(rolling, nodes):
    """Its tenant wrote a holder of 220 KB and a time of year 0, and has a DaemonSet that never is Ready."""
    held, *others = names = nodes(3)
    template = rolling.world.template("tenant", nodeSelector=rolling.world.pool, slow={"ready": "3600s"})
    rolling.world.create(
        "daemonsets", "tenant", {"spec": {"selector": {"matchLabels": {"app": "tenant"}}, "template": template}}
    )
    rolling.world.until(
        rolling.world.path("daemonsets"),
        "tenant",
        lambda item: bool(item) and item["status"].get("currentNumberScheduled") == 3,
    )
    absurd = {"holderIdentity": "x" * 220_000, "acquireTime": "0000-01-01T00:00:00.000000Z"}
    rolling.world.create("leases", held, {"spec": absurd})
    before = rolling.boot_ids(names)

    run = rolling.start(names, operation="put-off")
    run.until(lambda: rolling.record(held).get("phase") == "hold", "waiting for the holder")
    after = rolling.boot_ids(names)
    assert all(after[name] != before[name] for name in others)
    assert after[held] == before[held]
    rolling.assert_nothing_left(others)
    rolling.release(held)
    done = run.done().good()

    assert set(done.results.values()) == {"rebooted"}
    assert rolling.boot_id(held) != before[held]
    assert f"Node {held} is put off: held by {rolling.group}/xxx" in done.output
    assert len(done.output) < 100_000
    assert done.entry(held)["phases"]["hold"] >= 0
    rolling.assert_nothing_left(names)


@pytest.mark.parametrize("point", [pytest.param("before_slot", marks=pytest.mark.long), "before_reboot"])
def test_a_hold_that_comes_late_puts_the_node_back(rolling, nodes, tmp_path, point):
    (node,) = nodes(1)
    before = rolling.boot_id(node)
    marker = tmp_path / "held"
    once = rolling.tasks("late", f"test -e {marker} || {{ touch {marker} && {rolling.hold_task()}; }}")

    run = rolling.start([node], operation="late", **{f"{point}_tasks": once})
    run.until(lambda: rolling.record(node).get("phase") == "hold" and rolling.slots() == {}, "put back")
    assert not rolling.world.cordoned(node)
    assert CORDON not in rolling.ours(node)
    assert rolling.boot_id(node) == before
    # A node that is held when its turn comes is not even cordoned.
    assert ("cordon" in rolling.record(node)["phases"]) == (point == "before_reboot")
    rolling.release(node)
    done = run.done().good()

    assert done.results == {node: "rebooted"}
    assert rolling.boot_id(node) != before
    if point == "before_reboot":
        assert f"Node {node} is uncordoned, and tried again later: held by {rolling.group}/late" in done.output
    rolling.assert_nothing_left([node])


@pytest.mark.long
def test_a_node_that_is_held_each_time_is_given_up_in_the_end(rolling, nodes, tmp_path):
    (node,) = nodes(1)
    before = rolling.boot_id(node)
    book = role_alone(tmp_path)
    again = rolling.tasks("again", rolling.hold_task())

    run = rolling.start([node], playbook=book, operation="again", before_reboot_tasks=again, hold_attempts=2)
    run.until(lambda: rolling.record(node).get("phase") == "hold" and rolling.slots() == {}, "put back")
    rolling.release(node)
    done = run.done()

    assert done.code != 0
    assert "was held again in each of 2 attempts" in done.output
    assert "rolling_reboot_hold_attempts" in done.output
    assert rolling.boot_id(node) == before
    assert list(rolling.failures("again")) == [node]
    rolling.assert_nothing_left([node])


@pytest.mark.long
def test_holds_can_be_overridden_and_it_is_recorded(rolling, nodes):
    (node,) = nodes(1)
    rolling.hold(node, "backup")
    lease = rolling.world.get("leases", node)
    before = rolling.boot_id(node)

    done = rolling.run([node], override_holds=True, operation="urgent").good()

    assert rolling.boot_id(node) != before
    assert f"holds were overridden: {rolling.group}/backup" in done.detail(node)
    assert f"{rolling.group}/backup" in rolling.record(node)["detail"]
    assert rolling.world.get("leases", node) == lease


@pytest.mark.long
def test_a_node_whose_hold_is_never_released_is_not_begun(rolling, nodes):
    (node,) = nodes(1)
    rolling.hold(node, "backup")
    before = rolling.boot_id(node)

    done = rolling.run([node], hold_timeout=1, operation="held")

    assert done.code != 0
    assert done.results == {node: "stopped"}
    assert rolling.failures("held") == {}
    assert f"{rolling.group}/backup" in done.detail(node)
    assert rolling.boot_id(node) == before
    rolling.assert_nothing_left([node])


# --- cordons of others


@pytest.mark.long
def test_a_cordon_of_another_owner_stays(rolling, nodes):
    theirs, kept = names = nodes(2)
    rolling.world.cluster.merge(f"/api/v1/nodes/{theirs}", {"spec": {"unschedulable": True}})
    keep = rolling.tasks(
        "keep", "{{ kubectl }} annotate node {{ rolling_reboot_node_name }} holdfast.dev/keep-cordoned="
    )
    before = rolling.boot_ids(names)

    done = rolling.run(
        {theirs: {}, kept: {"rolling_reboot_before_reboot_tasks": keep}}, operation="cordons", max_unavailable=2
    ).good()

    assert set(done.results.values()) == {"rebooted"}
    for name in names:
        assert rolling.boot_id(name) != before[name]
        assert rolling.world.cordoned(name)
        assert CORDON not in rolling.ours(name)
    assert rolling.record(theirs)["unschedulable_before"] is True
    assert rolling.record(kept)["unschedulable_before"] is False
    assert rolling.slots() == {}


# --- failures


@pytest.mark.long
@pytest.mark.parametrize("allowed", [0, 1])
def test_a_drain_that_fails_is_counted_and_the_node_given_back(rolling, nodes, world, allowed):
    stuck, *others = names = nodes(2)
    world.owned("web", stuck)
    world.budget("web", "web", lambda status: status["currentHealthy"] == 1, minAvailable=1)
    before = rolling.boot_ids(names)

    done = rolling.run(names, "--forks=1", operation="drains", max_failed=allowed, drain_timeout=10)

    assert done.code != 0
    assert rolling.boot_id(stuck) == before[stuck]
    assert list(rolling.failures("drains")) == [stuck]
    assert rolling.record(stuck)["result"] == "failed"
    rolling.assert_nothing_left(names)
    assert done.entry(stuck)["result"] == "failed"
    # The message names the object, the cause and the node's state; the output has it where a person sees it first.
    for part in ("Drain: ", stuck, f"{world.namespace}/web", "budget", "The node was uncordoned."):
        assert part in done.detail(stuck)
    assert f"Node {stuck} failed: Drain: " in done.output
    if allowed:
        assert [done.entry(name)["result"] for name in others] == ["rebooted"]
        assert done.failed_hosts == {stuck}
    else:
        (other,) = others
        assert done.entry(other)["result"] == "stopped"
        assert rolling.boot_id(other) == before[other]
        for part in (other, "max_failed is 0", stuck):
            assert part in done.detail(other)
        assert done.failed_hosts == set(names)
        assert done.report["summary"]["stopped"] == [other]
        assert done.stats["rolling_reboot_failed_nodes"] == stuck


def test_a_node_that_never_comes_back_stays_cordoned_and_stops_the_rest(rolling, nodes):
    lost, other = names = nodes(2)
    dead = {"type": "Ready", "status": "False", "reason": "Gone", "message": "by a test"}
    die = rolling.tasks("die", rolling.report_task(conditions=[dead]))
    before = rolling.boot_ids(names)

    done = rolling.run(names, "--forks=1", operation="lost", command_tasks=die, ready_timeout=1)

    assert done.results == {lost: "failed", other: "stopped"}
    assert rolling.world.cordoned(lost)
    assert rolling.ours(lost)[CORDON]["owner"] == "rolling_reboot"
    assert {name: slot["state"] for name, slot in rolling.slots().items()} == {lost: "failed"}
    assert "stays cordoned" in done.detail(lost)
    assert lost in done.detail(other)
    assert not rolling.world.cordoned(other)
    assert rolling.boot_id(other) == before[other]

    # A run that resumes the operation would stop, and the plan says so.
    plan = rolling.run(names, "--check", operation="lost", command_tasks=die).good()
    assert {entry["name"]: entry["verdict"] for entry in plan.report["nodes"]} == dict.fromkeys(names, "never")
    assert f"1 node failed in this operation and max_failed is 0: {lost}" in plan.detail(other)

    # The node is back, repaired by a person: the next run clears the slot.
    rolling.world.set_condition(lost, "Ready", "True", "Back")
    rolling.world.cluster.merge(f"/api/v1/nodes/{lost}/status", {"status": {"nodeInfo": {"bootID": "another"}}})
    rolling.world.cluster.merge(f"/api/v1/nodes/{lost}", {"spec": {"unschedulable": None}})
    again = rolling.run(names, operation="found").good()
    assert set(again.results.values()) == {"rebooted"}
    rolling.assert_nothing_left(names)


@pytest.mark.long
def test_a_node_that_fails_its_check_stays_cordoned(rolling, nodes):
    (node,) = nodes(1)
    before = rolling.boot_id(node)
    check = rolling.tasks("check", {"name": "The disks", "ansible.builtin.fail": {"msg": "The disks are missing."}})

    done = rolling.run([node], operation="check", check_tasks=check)

    assert done.code != 0
    assert rolling.boot_id(node) != before
    assert rolling.world.cordoned(node)
    assert "The disks: The disks are missing. The node stays cordoned" in done.detail(node)
    assert list(rolling.failures("check")) == [node]


@pytest.mark.long
def test_unreachable_hosts_are_failures_and_the_others_continue(rolling, nodes):
    deaf, mute, fine = names = nodes(3)
    hosts = {deaf: {**DEAF, "rolling_reboot_when": "required"}, mute: DEAF, fine: {}}
    before = rolling.boot_ids(names)

    done = rolling.run(hosts, operation="unreachable", max_failed=2)

    assert done.results == {deaf: "failed", mute: "failed", fine: "rebooted"}
    for name in (deaf, mute):
        assert "reach" in done.detail(name)
        assert rolling.boot_id(name) == before[name]
    assert set(rolling.failures("unreachable")) == {deaf, mute}
    assert "unreachable=0" in done.output.rpartition("PLAY RECAP")[2]
    assert done.failed_hosts == {deaf, mute}
    rolling.assert_nothing_left(names)


def test_a_missing_node_and_bad_variables_change_nothing(rolling, nodes):
    # The operation begins with the variables of the first host.
    misnamed, odd = names = nodes(2)
    before = rolling.versions(names)
    hosts = {odd: {"rolling_reboot_command_tasks": ""}, misnamed: {"rolling_reboot_node_name": "no-such-node"}}

    done = rolling.run(hosts, operation="bad")

    assert done.code != 0
    assert {entry["name"]: entry["result"] for entry in done.report["nodes"]} == {
        odd: "stopped",
        "no-such-node": "failed",
    }
    assert "rolling_reboot_method: command needs rolling_reboot_command_tasks" in done.detail(odd)
    assert f"no Node no-such-node for host {misnamed}" in done.detail("no-such-node")
    assert rolling.versions(names) == before
    assert rolling.slots() == {}


# --- the user's own tasks, and the role without the playbook

POINTS = (
    "before_slot",
    "before_cordon",
    "before_drain",
    "before_reboot",
    "command",
    "before_ready",
    "check",
    "before_uncordon",
    "after",
)


def role_alone(folder) -> str:
    play = {
        "hosts": "all",
        "gather_facts": False,
        # With the default strategy a node that waits for its slot would block the node that has it.
        "strategy": "ansible.builtin.host_pinned",
        "roles": [{"role": "holdfast.kubernetes.rolling_reboot"}],
        "tasks": [{"name": "After the role", "ansible.builtin.debug": {"msg": "the play continues"}}],
    }
    book = folder / "role.yml"
    book.write_text(yaml.safe_dump([play], sort_keys=False))
    return str(book)


@pytest.mark.long
def test_the_role_alone_runs_the_user_s_tasks_in_order(rolling, nodes, tmp_path):
    (node,) = nodes(1)
    seen = tmp_path / "seen"
    look = "{{ kubectl }} get node {{ rolling_reboot_node_name }} -o jsonpath='{.spec.unschedulable}'"
    variables = {}
    for point in POINTS:
        tasks = [f'echo "{point} $({look})" >> {seen}']
        if point == "command":
            tasks.append({"name": "Reboot", "ansible.builtin.include_tasks": str(SIMULATED_REBOOT)})
        variables[f"{point}_tasks"] = rolling.tasks(point, *tasks)
    auth = {"kubeconfig": rolling.world.kubeconfig}
    before = rolling.boot_id(node)

    done = rolling.run(
        [node], playbook=role_alone(tmp_path), environment={}, auth=auth, operation="own", **variables
    ).good()

    assert [line.split() for line in seen.read_text().splitlines()] == [
        ["before_slot"],
        ["before_cordon"],
        ["before_drain", "true"],
        ["before_reboot", "true"],
        ["command", "true"],
        ["before_ready", "true"],
        ["check", "true"],
        ["before_uncordon", "true"],
        ["after"],
    ]
    assert rolling.boot_id(node) != before
    assert "the play continues" in done.output
    rolling.assert_nothing_left([node])


@pytest.mark.long
def test_the_role_alone_fails_its_host(rolling, nodes, tmp_path):
    broken, fine = names = nodes(2)
    fail = rolling.tasks("fail", {"name": "Say no", "ansible.builtin.fail": {"msg": "Not today."}})
    hosts = {broken: {"rolling_reboot_before_drain_tasks": fail}, fine: {}}

    done = rolling.run(hosts, playbook=role_alone(tmp_path), operation="alone", max_failed=1)

    assert done.failed_hosts == {broken}
    assert f"Node {broken} failed: Say no: Not today. The node was uncordoned." in done.output
    assert rolling.record(fine)["result"] == "rebooted"
    rolling.assert_nothing_left(names)


@pytest.mark.long
def test_two_groups_at_once_do_not_wait_for_each_other(rolling, nodes):
    """The role's variables belong to each host: groups share a run, not a budget."""
    names = nodes(2)
    groups = [f"{rolling.group}-{letter}" for letter in "ab"]
    for group, name in zip(groups, names):
        rolling.world.cluster.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"team": group}}})
        rolling.world.made.objects.append(f"/api/v1/namespaces/holdfast/configmaps/group.{group}")
    hosts = {
        name: {"rolling_reboot_group": group, "rolling_reboot_selector": f"team={group}"}
        for group, name in zip(groups, names)
    }
    rolling.hold(names[0])

    run = rolling.start(hosts, operation="teams")
    run.until(lambda: rolling.record(names[1]).get("result") == "rebooted", "the other group's node")
    assert rolling.record(names[0]).get("result", "") == ""
    rolling.release(names[0])
    done = run.done().good()

    assert set(done.results.values()) == {"rebooted"}
