# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rolling reboot respects besides the reboot: windows, blockers, canaries, the control plane, and others."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

AUTOSCALER = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
# Open for a minute a week, days from now.
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FAR = _DAYS[(datetime.now(timezone.utc).weekday() + 3) % 7]
NEVER_NOW = {"windows": [{"days": [_FAR], "start": "00:00", "end": "00:01"}], "window_time_zone": "UTC"}
ALWAYS = {"windows": [{"start": "00:00", "end": "24:00"}]}


def annotation(rolling, node, key):
    return (rolling.world.node(node)["metadata"].get("annotations") or {}).get(key)


# --- windows


@pytest.mark.long
def test_outside_of_the_windows_nothing_is_begun_and_that_is_no_failure(rolling, nodes):
    names = nodes(2)
    before = rolling.boot_ids(names)

    done = rolling.run(names, operation="night", **NEVER_NOW).good()

    assert set(done.results.values()) == {"postponed"}
    assert sorted(done.report["summary"]["postponed"]) == sorted(names)
    assert done.stats["rolling_reboot_postponed"] == 2
    for name in names:
        assert "the next one opens 20" in done.detail(name)
    assert rolling.boot_ids(names) == before
    rolling.assert_nothing_left(names)

    # The next run resumes the same operation.
    done = rolling.run(names, **ALWAYS).good()
    assert set(done.results.values()) == {"rebooted"}
    assert done.report["summary"]["operation"] == "night"


@pytest.mark.long
def test_if_the_canary_is_postponed_all_nodes_are(rolling, nodes):
    canary, other = names = nodes(2)
    before = rolling.boot_ids(names)

    closed = {f"rolling_reboot_{key}": value for key, value in NEVER_NOW.items()}
    done = rolling.run({canary: closed, other: {}}, canary=1)

    assert done.good().results == dict.fromkeys(names, "postponed")
    assert f"canary {canary} is postponed" in done.detail(other)
    assert rolling.boot_ids(names) == before


@pytest.mark.long
def test_the_plan_names_the_next_window(rolling, nodes):
    (node,) = nodes(1)
    done = rolling.run([node], "--check", **NEVER_NOW).good()
    assert done.entry(node)["verdict"] == "later"
    assert "the next maintenance window opens 20" in done.detail(node)


# --- pods that block


@pytest.mark.long
def test_a_blocked_node_is_put_off_until_the_pod_is_gone(rolling, nodes, world):
    blocked, free = names = nodes(2)
    world.owned("migration", blocked)

    run = rolling.start(names, operation="blocks", block_pods=[{"selector": "app=migration"}])
    run.until(lambda: rolling.record(free).get("result") == "rebooted", "the other node")
    run.until(lambda: rolling.record(blocked).get("phase") == "hold", "the wait for the pod")
    assert not rolling.world.cordoned(blocked)
    world.delete("pods", "migration")
    done = run.done().good()

    assert set(done.results.values()) == {"rebooted"}
    assert f"pod {world.namespace}/migration" in done.output


# --- other tools that repair nodes


@pytest.mark.long
@pytest.mark.parametrize("known", [None, "false", "true"])
def test_the_autoscaler_leaves_the_node_alone_during_its_reboot(rolling, nodes, world, tmp_path, known):
    (node,) = nodes(1)
    if known is not None:
        world.cluster.merge(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {AUTOSCALER: known}}})
    seen = tmp_path / "seen"
    look = f"{{{{ kubectl }}}} get node {node} -o json > {seen}"

    rolling.run([node], operation="scale", before_reboot_tasks=rolling.tasks("look", look)).good()

    assert json.loads(seen.read_text())["metadata"]["annotations"][AUTOSCALER] == "true"
    assert annotation(rolling, node, AUTOSCALER) == known
    rolling.assert_nothing_left([node])


# --- the control plane


def etcd(world, node):
    """A pod that claims to be a member of etcd; it runs no etcd."""
    pod = world.template("etcd")
    mirror = {"kubernetes.io/config.mirror": node}
    pod["metadata"] = {"name": f"etcd-{node}", "labels": {"component": world.namespace}, "annotations": mirror}
    pod["spec"] |= {"nodeName": node, "tolerations": [{"operator": "Exists"}]}
    path = f"/api/v1/namespaces/kube-system/pods/etcd-{node}"
    world.cluster.create("/api/v1/namespaces/kube-system/pods", {"apiVersion": "v1", "kind": "Pod", **pod})
    world.made.objects.append(path)
    world.until("/api/v1/namespaces/kube-system/pods", f"etcd-{node}", is_ready)


def is_ready(pod):
    conditions = ((pod or {}).get("status") or {}).get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


@pytest.fixture
def masters(rolling, nodes, world, control_plane):
    """Three control-plane nodes with members of etcd, and what a run needs to know of them."""
    names, group = nodes(3), f"{rolling.group}-masters"
    world.made.objects.append(f"/api/v1/namespaces/holdfast/configmaps/group.{group}")
    for name in names:
        world.cluster.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {CONTROL_PLANE: ""}}})
        etcd(world, name)
    return names, {"control_plane_group": group, "etcd_selector": f"component={world.namespace}"}


@pytest.mark.long
def test_control_plane_nodes_go_one_at_a_time_in_a_group_of_their_own(rolling, masters, tmp_path):
    names, options = masters
    seen = tmp_path / "seen"
    ledger = f"group.{options['control_plane_group']}"
    slots = f"{{{{ kubectl }}}} -n holdfast get configmap {ledger} -o json >> {seen}; echo ==== >> {seen}"

    done = rolling.run(
        names,
        operation="masters",
        max_unavailable=3,
        before_reboot_tasks=rolling.tasks("slots", slots),
        **options,
    ).good()

    assert set(done.results.values()) == {"rebooted"}
    looks = [json.loads(text) for text in seen.read_text().split("====\n") if text.strip()]
    assert [len(json.loads(look["data"]["slots"])) for look in looks] == [1, 1, 1]


@pytest.mark.long
def test_a_control_plane_node_is_not_rebooted_if_the_quorum_would_break(rolling, masters, world):
    (going, other, gone), options = masters
    world.set_condition(gone, "Ready", "False", "Told")
    before = rolling.boot_ids([going, other])

    done = rolling.run([going], operation="quorum", count_others=False, quorum_timeout=1, **options)

    assert done.results == {going: "failed"}
    assert gone in done.detail(going)
    assert rolling.boot_ids([going, other]) == before
    assert not world.cordoned(going)


@pytest.mark.long
@pytest.mark.parametrize("by", ["pods", "command"])
def test_the_quorum_is_checked_again_directly_before_the_reboot(rolling, masters, world, by):
    (going, *others), options = masters
    before = rolling.boot_ids([going])
    members = " ".join(f"etcd-{name}" for name in others)
    lose = f"{{{{ kubectl }}}} -n kube-system delete pod {members} --force --grace-period=0"
    more = {"before_reboot_tasks": rolling.tasks("lose", lose)} if by == "pods" else {"quorum_command": "false"}

    done = rolling.run([going], operation="quorum", quorum_timeout=1, **options, **more)

    assert done.results == {going: "failed"}
    check = "Wait for etcd's other members" if by == "pods" else "Ask your command whether etcd can spare one member"
    assert done.detail(going).startswith(f"{check}:")
    assert rolling.boot_ids([going]) == before
    assert not world.cordoned(going)
    if by == "command":
        assert rolling.run([going], operation="asked", quorum_command="true", **options).good().results == {
            going: "rebooted"
        }


# --- which nodes go first, and which last


def order(rolling, names):
    """The nodes in the order in which they were done."""
    return sorted(names, key=lambda name: rolling.record(name)["since"])


@pytest.mark.long
def test_canaries_go_first_and_soak(rolling, nodes, tmp_path):
    names = nodes(4)
    canaries = names[2:]
    seen = tmp_path / "seen"
    note = rolling.tasks("note", f"echo {{{{ rolling_reboot_node_name }}}} $(date +%s.%N) >> {seen}")

    rolling.run(
        names, operation="canary", canary=",".join(canaries), soak=3, max_unavailable=4, before_cordon_tasks=note
    ).good()

    begun = {name: float(at) for name, at in (line.split() for line in seen.read_text().splitlines())}
    assert sorted(sorted(begun, key=begun.__getitem__)[:2]) == sorted(canaries)
    assert min(begun[name] for name in names[:2]) - max(begun[name] for name in canaries) > 3
    rolling.assert_nothing_left(names)


def test_no_node_is_begun_if_a_canary_fails(rolling, nodes):
    canary, *rest = names = nodes(3)
    before = rolling.boot_ids(names)
    sick = {"rolling_reboot_check_tasks": rolling.tasks("check", "echo sick; false")}

    done = rolling.run(
        {canary: sick, **{name: {} for name in rest}}, operation="canary", canary=1, max_failed=2, max_unavailable=3
    )

    assert done.code != 0
    assert done.results == {canary: "failed", **dict.fromkeys(rest, "stopped")}
    assert all(f"Canary {canary} failed" in done.detail(name) for name in rest)
    assert rolling.boot_ids(rest) == {name: before[name] for name in rest}
    assert not any(rolling.world.cordoned(name) for name in rest)


@pytest.mark.long
def test_slices_wait_for_the_canary_of_another_slice(rolling, nodes):
    canary, other = nodes(2)
    budget = {"operation": "slices", "canary": [canary], "max_unavailable": 2}

    waiting = rolling.start([other], **budget)
    # Ansible prints the heading of a task with its first result, so only the task before the wait is seen.
    waiting.until(lambda: waiting.output.count("Read the settings]") == 2, "the wait for the canary")
    assert rolling.record(other) == {}
    rolling.run([canary], **budget).good()
    waiting.done().good()

    assert order(rolling, [other, canary]) == [canary, other]


@pytest.mark.long
def test_the_node_of_the_controller_goes_last(rolling, nodes):
    own, *rest = names = nodes(3)
    rolling.hold(rest[0])

    run = rolling.start(names, operation="own", controller_node=own, max_unavailable=3, canary=[own])
    run.until(lambda: rolling.record(rest[0]).get("phase") == "hold", "the wait for the holder")
    run.until(lambda: rolling.record(rest[1]).get("result") == "rebooted", "the other node")
    assert rolling.record(own) == {}
    rolling.release(rest[0])
    run.done().good()

    assert order(rolling, names)[-1] == own
    rolling.assert_nothing_left(names)


# --- hosts that drop out


def drops_out(rolling):
    """Variables of a host that Ansible can't reach in one of the user's tasks."""
    reach = rolling.tasks("reach", {"name": "Reach it", "ansible.builtin.ping": {}})
    nowhere = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    return {**nowhere, "rolling_reboot_before_drain_tasks": reach}


@pytest.mark.long
def test_a_host_that_drops_out_in_a_user_s_task_is_a_failure_and_the_run_cleans_up_its_node(rolling, nodes):
    deaf, fine = names = nodes(2)
    before = rolling.boot_ids(names)

    done = rolling.run({deaf: drops_out(rolling), fine: {}}, operation="dropped", max_failed=1, max_unavailable=2)

    assert done.code != 0
    assert done.results == {deaf: "failed", fine: "rebooted"}
    assert "dropped out" in done.detail(deaf)
    assert rolling.boot_id(deaf) == before[deaf]
    assert list(rolling.failures("dropped")) == [deaf]
    rolling.assert_nothing_left(names)


@pytest.mark.long
def test_a_host_that_drops_out_stops_the_nodes_of_later_passes(rolling, nodes):
    """The host is not in the play of the next pass."""
    deaf, held = names = nodes(2)
    before = rolling.boot_ids(names)
    rolling.hold(held)

    run = rolling.start({deaf: drops_out(rolling), held: {}}, operation="dropped", max_unavailable=2)
    run.until(lambda: "UNREACHABLE!" in run.output, "the host drops out")
    run.until(lambda: "Wait for the nodes that were held" in run.output, "the next pass")
    rolling.release(held)
    done = run.done()

    assert done.results == {deaf: "failed", held: "stopped"}
    assert deaf in done.detail(held)
    assert rolling.boot_ids(names) == before
    rolling.assert_nothing_left(names)
