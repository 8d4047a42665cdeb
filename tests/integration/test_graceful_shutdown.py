# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the real kubelet does when its node shuts down, systemd 252 and 257: the order, the times, what is left."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from integration.support.agent import agents_on, free
from integration.support.shutdowns import RealNode
from integration.support.world import ready

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.modules import leftover_pods

pytestmark = pytest.mark.nodes

# systemd 252 and systemd 257.
NODES = ("node-1", "node-2")
# A busy pod writes late, by less than this many seconds. A late kubelet on a busy machine is not a defect: the tests
# prove the order, and that no pod gets less time than it asked for.
LATE = 2.0
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture(params=NODES)
def node(request, lab, world, ansible):
    return RealNode(lab, ansible, request.param, world.namespace)


def start(world, node, **specs):
    """Start pods with these names; wait until they run."""
    for name, spec in specs.items():
        world.create("pods", name, {"spec": {"nodeName": node.name, **spec}})
    for name in specs:
        world.until(world.path("pods"), name, lambda item: item is not None and ready(item))


def priority_class(world, name, value):
    """The name of the priority class, which belongs to the cluster."""
    full = f"{world.namespace}-{name}"
    world.cluster.create(CLASSES, {"metadata": {"name": full}, "value": value})
    world.made.objects.append(paths.one(CLASSES, full))
    return {"priorityClassName": full}


def going_down(changes):
    """The condition of a Node that reports a shutdown."""
    for change in changes:
        for item in change.object["status"].get("conditions") or []:
            said = (item["type"], item["status"], item["reason"])
            if said == ("Ready", "False", "KubeletNotReady") and "node is shutting down" in item["message"]:
                return item
    return None


def finished(node):
    """The kubelet finished the shutdown, and let logind continue."""
    state = json.loads(node.last_shutdown())
    begin, end = (datetime.fromisoformat(state[key][:26].rstrip("Z") + "+00:00") for key in ("startTime", "endTime"))
    assert begin < end
    assert not node.was_cut_short()


CRITICAL = {"priorityClassName": "system-cluster-critical"}
NODE_CRITICAL = {"priorityClassName": "system-node-critical"}


@pytest.mark.long_on("node-1")
def test_critical_pods_end_last_and_no_pod_gets_more_than_its_group_has(node, world):
    with node.periods(total=14, critical=5):
        before = node.boot_id
        start(
            world,
            node,
            quick=node.pod("quick", 1),
            slow=node.pod("slow", 6),
            stubborn=node.pod("stubborn", 60),
            hooked=node.pod("hooked", 1, hook=2),
            **{
                "own-limit": node.pod("own-limit", 60, terminationGracePeriodSeconds=3),
                "of-the-node": node.pod("of-the-node", 1, **NODE_CRITICAL),
                "of-the-cluster": node.pod("of-the-cluster", 2, **CRITICAL),
                "stubborn-critical": node.pod("stubborn-critical", 60, **CRITICAL),
            },
        )
        news = world.record(paths.NODES, field_selector=f"metadata.name={node.name}")

        node.ask_to_reboot()
        assert news.until(going_down)
        tolerant = {"tolerations": [{"operator": "Exists"}]}
        world.create("pods", "late", {"spec": {"nodeName": node.name, **node.pod("late", 1, **tolerant)}})
        late = world.until(
            world.path("pods"), "late", lambda item: item is not None and item["status"].get("phase") == "Failed"
        )
        node.wait_for_a_new_boot(before)

        assert late["status"]["reason"] == "NodeShutdown"
        assert "Pod was rejected as the node is shutting down." in late["status"]["message"]
        written = node.written()
        assert "late" not in written
        critical = {name: written.pop(name) for name in ("of-the-node", "of-the-cluster", "stubborn-critical")}
        assert set(written) == {"quick", "slow", "stubborn", "hooked", "own-limit"}

        first = min(record.begun for record in written.values())
        # As long as they wanted, where their group allows it.
        assert None not in (written["quick"].ended, written["slow"].ended)
        assert written["quick"].took >= 1
        assert written["slow"].took >= 6
        # First the hook, then SIGTERM.
        hooked = written["hooked"]
        assert hooked.hooked + 2 <= hooked.unhooked <= hooked.terminated < hooked.ended
        # Killed at the limit of its group, or at its own limit if that is shorter.
        assert written["stubborn"].ended is None
        assert written["stubborn"].last >= first + 9 - LATE
        assert written["own-limit"].ended is None
        assert written["own-limit"].last < written["slow"].ended < written["stubborn"].last

        second = min(record.terminated for record in critical.values())
        for name in ("quick", "slow", "hooked"):
            assert written[name].ended < second, name
        # While other pods still work, critical pods must wait for the whole time of the others.
        assert second >= first + 9 - LATE
        assert None not in (critical["of-the-node"].ended, critical["of-the-cluster"].ended)
        assert critical["stubborn-critical"].ended is None
        assert critical["stubborn-critical"].last >= second + 5 - LATE
        # The kubelet continues at the end of its time, and so does logind.
        finished(node)


@pytest.mark.long
def test_three_groups_by_priority_end_one_after_the_other(node, world):
    middle, between = priority_class(world, "middle", 1000), priority_class(world, "between", 999)
    groups = [
        {"priority": 0, "seconds": 5},
        {"priority": 1000, "seconds": 4},
        {"priority": 2000000000, "seconds": 3},
    ]
    # Their order in the file has no meaning.
    with node.periods(by_priority=[groups[1], groups[2], groups[0]]):
        before = node.boot_id
        start(
            world,
            node,
            lowest=node.pod("lowest", 60),
            between=node.pod("between", 1, **between),
            middle=node.pod("middle", 60, **middle),
            other=node.pod("other", 1, **middle),
            highest=node.pod("highest", 1, **NODE_CRITICAL),
        )

        node.ask_to_reboot()
        node.wait_for_a_new_boot(before)

        written = node.written()
        low, mid, high = (
            [written[name] for name in names] for names in (("lowest", "between"), ("middle", "other"), ("highest",))
        )
        for earlier, later in ((low, mid), (mid, high)):
            assert max(record.terminated for record in earlier) < min(record.terminated for record in later)
            assert all(record.ended < min(after.terminated for after in later) for record in earlier if record.ended)
        assert [record.ended is None for record in (*low, *mid, *high)] == [True, False, True, False, False]
        for group, seconds in ((low, 5), (mid, 4)):
            assert max(record.last for record in group) >= min(record.terminated for record in group) + seconds - LATE
        finished(node)


REBOOTS = (
    "systemctl reboot",
    "shutdown -r now",
    "busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager Reboot b false",
    "kill -s RTMIN+5 1",
)


@pytest.mark.long_on("node-2")
def test_a_hold_comes_first_and_the_reboot_that_it_refuses_ends_no_pod(node, world, lab, cluster):
    name = node.name
    with (
        node.periods(total=8, critical=4),
        agents_on(lab, cluster, (name,)) as agents,
        free(agents[name]) as agent,
    ):
        before, state = node.boot_id, node.last_shutdown()
        start(world, node, plain=node.pod("plain", 1), critical=node.pod("critical", 1, **CRITICAL))
        news = world.record(paths.NODES, field_selector=f"metadata.name={name}")
        agent.hold(world.namespace)
        agent.until(f"{world.namespace}/me", "True")

        for attempt in REBOOTS:
            node.ssh(f"timeout 10 {attempt} </dev/null >/dev/null 2>&1 || true")
        # A kubelet that shuts down accepts no pods.
        start(world, node, later=node.pod("later", 1))

        assert node.boot_id == before
        assert not node.preparing()
        assert not node.heard()
        assert node.last_shutdown() == state
        assert node.delays()
        assert going_down(news.changes) is None
        held = node.written()
        assert set(held) == {"plain", "critical", "later"}
        assert [record.terminated for record in held.values()] == [None] * 3

        agent.end_hold(world.namespace)
        agent.until_free()
        assert [record.terminated for record in node.written().values()] == [None] * 3
        node.ask_to_reboot()
        assert news.until(going_down)
        node.wait_for_a_new_boot(before)

        written = node.written()
        assert None not in [record.ended for record in written.values()]
        assert max(written["plain"].ended, written["later"].ended) < written["critical"].terminated
        assert node.heard(boot=-1)
        assert node.last_shutdown() != state
        finished(node)


def owned(world, node, kind, name, spec, **more):
    """Run one pod of a controller; return its name."""
    world.has_other_kinds()
    group = "batch/v1" if kind == "jobs" else "apps/v1"
    labels = {"app": name}
    selector = {} if kind == "jobs" else {"selector": {"matchLabels": labels}}
    # The scheduler binds it; the scheduler avoids a node that shuts down.
    template = {"metadata": {"labels": labels}, "spec": {"nodeSelector": {"kubernetes.io/hostname": node.name}, **spec}}
    collection = paths.namespaced(f"apis/{group}", world.namespace, kind)
    world.cluster.create(collection, {"metadata": {"name": name}, "spec": {**selector, "template": template, **more}})
    pods = world.record(world.path("pods"), label_selector=f"app={name}")
    return pods.until(
        lambda changes: next((item.object["metadata"]["name"] for item in changes if ready(item.object)), None)
    )


@pytest.mark.long
def test_pods_that_it_leaves_are_named_and_removed_if_they_are_not_needed(node, world):
    # This is the setting of the lab's nodes.
    before = node.boot_id
    fails = {"restartPolicy": "Never", **node.pod("job", 0, status=3)}
    names = {
        "completed": owned(world, node, "deployments", "completed", node.pod("completed", 0)),
        "failed": owned(world, node, "deployments", "failed", node.pod("failed", 0, status=3)),
        "job": owned(world, node, "jobs", "job", fails, backoffLimit=6),
    }
    daemon = owned(world, node, "daemonsets", "daemon", node.pod("daemon", 0))
    start(world, node, bare=node.pod("bare", 0), broken=node.pod("broken", 0, status=3))
    try:
        node.ask_to_reboot()
        node.wait_for_a_new_boot(before)

        found = {item["name"]: item for item in world.run(leftover_pods, name=node.name, state="reported")["pods"]}
        # A DaemonSet removes its own sooner or later, as a StatefulSet does.
        found.pop(daemon, None)
        # The scheduler may have bound a next pod to the node just before its taint; the kubelet rejects such a pod.
        found = {name: item for name, item in found.items() if item["reason"] != "NodeShutdown"}
        assert {name: (item["phase"], item["reason"]) for name, item in found.items()} == {
            names["completed"]: ("Succeeded", "TerminationByKubelet"),
            names["failed"]: ("Failed", "Terminated"),
            names["job"]: ("Failed", "Terminated"),
            "bare": ("Succeeded", "TerminationByKubelet"),
            "broken": ("Failed", "Terminated"),
        }
        uids = {item["uid"] for item in found.values()}
        assert not any(item["removed"] for item in found.values())

        result = world.run(leftover_pods, name=node.name)

        assert result["changed"] is True
        kept = {item["metadata"]["name"] for item in world.pods(node.name).values() if item["metadata"]["uid"] in uids}
        assert kept == {names["job"], "bare", "broken"}
        assert kept == {item["name"] for item in result["pods"] if not item["removed"]}
        # The other pods exist again, and the job has counted its own pod.
        for kind in ("deployments", "daemonsets"):
            for item in world.cluster.items(world.path(kind)):
                world.until(world.path(kind), item["metadata"]["name"], is_whole)
        jobs = paths.namespaced("apis/batch/v1", world.namespace, "jobs")
        world.until(jobs, "job", lambda item: item is not None and item["status"].get("failed") == 1)
    finally:
        node.ssh(f"rm -rf {node.records}")


def is_whole(item):
    status = (item or {}).get("status") or {}
    return status.get("readyReplicas", 0) == 1 or status.get("numberReady", 0) >= 1
