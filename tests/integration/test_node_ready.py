# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for a node that comes back, against a real API server."""

from __future__ import annotations

import itertools
import json
import threading

import pytest
from integration.support.world import ready

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.modules import drain, node_ready
from lab.patience import PATIENCE


@pytest.fixture
def daemons(world):
    """A DaemonSet over the world's nodes."""

    def make(app="daemon", **more):
        template = world.template(app, nodeSelector=world.pool, **more)
        world.create("daemonsets", app, {"spec": {"selector": {"matchLabels": {"app": app}}, "template": template}})

    return make


def boot(world, name, boot_id):
    world.cluster.merge(f"/api/v1/nodes/{name}/status", {"status": {"nodeInfo": {"bootID": boot_id}}})


def test_a_node_that_is_there_is_not_waited_for(world, nodes):
    (name,) = nodes()

    result = world.run(node_ready, name=name, timeout=PATIENCE)

    assert result["changed"] is False
    assert result["ready"] is True
    assert result["boot_id"] == world.node(name)["status"]["nodeInfo"]["bootID"]


def test_waits_for_ready_and_for_a_new_boot_id(world, nodes):
    (name,) = nodes()
    old = world.node(name)["status"]["nodeInfo"]["bootID"]
    seen = world.record("/api/v1/nodes", field_selector=f"metadata.name={name}")
    world.set_condition(name, "Ready", "False", "KubeletNotReady")
    waiting = world.start(node_ready, name=name, boot_id_before=old, timeout=PATIENCE)

    world.set_condition(name, "Ready", "True", "KubeletReady")
    seen.until(lambda changes: len(changes) >= 3)
    assert not waiting.done(), "the old boot ID is no new boot"
    boot(world, name, "new")
    result = waiting.result(PATIENCE)

    assert (result["ready"], result["boot_id"]) == (True, "new")


def test_not_rebooted(world, nodes):
    (name,) = nodes()
    old = world.node(name)["status"]["nodeInfo"]["bootID"]

    result = world.run(node_ready, name=name, boot_id_before=old, timeout=1)

    assert result["failed"]
    assert result["error"] == "timed_out"
    assert f"Node {name} is not back after 1 s: its boot ID is still {old}, so it was not rebooted" in result["msg"]
    assert (result["node"], result["boot_id"], result["ready"]) == (name, old, True)


def test_not_ready(world, nodes):
    (name,) = nodes()
    world.set_condition(name, "Ready", "False", "KubeletNotReady")

    result = world.run(node_ready, name=name, boot_id_before="before", timeout=1)

    assert result["error"] == "timed_out"
    assert "Ready is False (KubeletNotReady: by a test)" in result["msg"]
    assert result["ready"] is False


def test_without_any_time_it_still_looks(world, nodes):
    (name,) = nodes()

    assert world.run(node_ready, name=name, timeout=0)["ready"] is True
    world.set_condition(name, "Ready", "Unknown", "NodeStatusUnknown")
    assert "Ready is Unknown" in world.run(node_ready, name=name, timeout=0)["msg"]


def test_a_node_that_is_not_there(world):
    result = world.run(node_ready, name="no-such-node", timeout=PATIENCE)

    assert result["error"] == "not_found"


def test_a_node_that_is_deleted_during_the_wait(world, nodes):
    (name,) = nodes()
    waiting = world.start(
        node_ready, name=name, boot_id_before=world.node(name)["status"]["nodeInfo"]["bootID"], timeout=10
    )

    # It may be made again, so the module waits to the end.
    world.cluster.delete(f"/api/v1/nodes/{name}")

    result = waiting.result(PATIENCE)
    assert result["error"] in ("timed_out", "not_found")
    assert "no longer exists" in result["msg"] or "There is no Node" in result["msg"]


class TestSignOfLife:
    """The node's Ready condition does not change, as for a while after a node dies."""

    def test_is_waited_for(self, world, nodes):
        (name,) = nodes()
        leases = paths.leases("kube-node-lease")
        before = world.until(leases, name, lambda item: item is not None)["spec"]["renewTime"]

        assert world.run(node_ready, name=name, sign_of_life=True, timeout=PATIENCE)["ready"] is True

        # By then it was already renewed.
        assert world.cluster.get(paths.one(leases, name))["spec"]["renewTime"] > before

    @pytest.fixture
    def unattended(self, world):
        """Make Ready nodes whose Leases nothing renews; their status is renewed, or they would soon count as dead."""
        over = threading.Event()
        threads = []

        def report(name):
            beat = itertools.count()
            while not over.wait(1):
                heartbeat = f"2026-01-02T03:04:{next(beat) % 60:02}Z"
                world.set_condition(name, "Ready", "True", "KubeletReady", lastHeartbeatTime=heartbeat)

        def make(*, lease):
            name = f"{world.namespace}-unattended"
            world.cluster.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            world.made.objects.append(f"/api/v1/nodes/{name}")
            world.set_condition(name, "Ready", "True", "KubeletReady")
            if lease:
                leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
                body = {"metadata": {"name": name}, "spec": {"renewTime": "2026-01-02T03:04:05.000000Z"}}
                world.cluster.create(leases, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **body})
                world.made.objects.append(f"{leases}/{name}")
            threads.append(threading.Thread(target=report, args=(name,)))
            threads[-1].start()
            return name

        yield make
        over.set()
        for thread in threads:
            thread.join()

    def test_of_a_dead_node_is_missing(self, world, unattended):
        result = world.run(node_ready, name=unattended(lease=True), sign_of_life=True, timeout=1)
        assert (result["failed"], result["error"], result["ready"]) == (True, "timed_out", False)
        assert "gave no sign of life within 1 s; the last one is from 2026-01-02T03:04:05.000000Z" in result["msg"]

    def test_is_not_asked_of_a_node_without_a_lease(self, world, unattended):
        assert world.run(node_ready, name=unattended(lease=False), sign_of_life=True, timeout=1)["ready"] is True


def test_check_mode_waits_for_nothing(world, nodes):
    (name,) = nodes()
    old = world.node(name)["status"]["nodeInfo"]["bootID"]

    result = world.run(node_ready, name=name, boot_id_before=old, timeout=PATIENCE, check_mode=True)

    assert not result.get("failed")
    assert result["ready"] is False


def container(world, pod, container_id):
    """Set the ID of a pod's container. The pods of simulated nodes have none."""
    status = {"name": "app", "ready": True, "restartCount": 0, "image": "", "imageID": "", "containerID": container_id}
    world.cluster.merge(f"{world.path('pods')}/{pod}/status", {"status": {"containerStatuses": [status]}})


def scheduled(count):
    """Tell when so many pods have their nodes, and return their names. The module sees a pod from then on."""

    def look(changes):
        found = {item.object["metadata"]["name"] for item in changes if item.object["spec"].get("nodeName")}
        return sorted(found) if len(found) == count else []

    return look


def drained(world, name):
    """Drain a node as part of an operation, and return the options that say so."""
    mark = {"holdfast.dev/claim": json.dumps({"run": "run-1", "purpose": "rolling_reboot", "since": ""})}
    world.cluster.merge(paths.node(name), {"metadata": {"annotations": mark}})
    work = {"name": name, "operation": "kernel", "run": "run-1"}
    world.run(drain, **work, timeout=PATIENCE)
    return work


class TestDaemonSetPods:
    def test_are_waited_for(self, world, nodes, daemons):
        (name,) = nodes()
        daemons(slow={"ready": "3600s"})
        (pod,) = world.record(world.path("pods")).until(scheduled(1))
        waiting = world.start(node_ready, name=name, timeout=PATIENCE)

        assert not waiting.done()
        world.set_pod(pod)

        assert waiting.result(PATIENCE)["ready"] is True

    def test_that_are_not_ready_are_named(self, world, nodes, daemons):
        (name,) = nodes()
        daemons(slow={"ready": "3600s"})
        (pod,) = world.record(world.path("pods")).until(scheduled(1))

        result = world.run(node_ready, name=name, timeout=1)

        assert result["error"] == "timed_out"
        assert result["pods"] == [f"{world.namespace}/{pod}"]
        assert f"1 of its DaemonSet pods are not after 1 s: {world.namespace}/{pod}" in result["msg"]
        assert world.run(node_ready, name=name, timeout=0)["pods"] == [f"{world.namespace}/{pod}"]

    def test_that_were_not_ready_before_the_drain_are_only_named(self, world, nodes, daemons):
        (name,) = nodes()
        daemons("sound")
        daemons("tenant", slow={"ready": "3600s"})
        sound, tenant = world.record(world.path("pods")).until(scheduled(2))
        world.until(world.path("pods"), sound, lambda item: item is not None and ready(item))
        work = drained(world, name)
        daemons("new", slow={"ready": "3600s"})
        world.unready(sound)

        result = world.run(node_ready, **work, timeout=1)
        assert (result["error"], result["pods"]) == ("timed_out", [f"{world.namespace}/{sound}"])
        world.set_pod(sound)
        result = world.run(node_ready, **work, timeout=PATIENCE)

        assert result["ready"] is True
        assert f"{world.namespace}/{tenant}" in result["warnings"][0]
        # The module waits for all of them if it is not part of an operation.
        assert f"{world.namespace}/{tenant}" in world.run(node_ready, name=name, timeout=0)["pods"]

    def test_whose_status_is_from_before_the_reboot_are_waited_for(self, world, nodes, daemons):
        """After a reboot of a few seconds, the pods count as Ready until the kubelet writes their status."""
        (name,) = nodes()
        daemons()
        (pod,) = world.record(world.path("pods")).until(scheduled(1))
        world.until(world.path("pods"), pod, lambda item: item is not None and ready(item))
        container(world, pod, "containerd://before")
        work = drained(world, name)
        assert world.run(node_ready, **work, timeout=PATIENCE)["ready"] is True
        boot(world, name, "new")

        result = world.run(node_ready, **work, timeout=1)
        assert (result["error"], result["pods"]) == ("timed_out", [f"{world.namespace}/{pod}"])
        container(world, pod, "containerd://after")

        assert world.run(node_ready, **work, timeout=PATIENCE)["ready"] is True

    def test_of_a_daemonset_that_is_ready_nowhere_are_only_named(self, world, nodes, daemons):
        first, _second = nodes(2)
        daemons(slow={"ready": "3600s"})
        world.record(world.path("pods")).until(scheduled(2))

        def is_on_both(item):
            return item is not None and (item.get("status") or {}).get("desiredNumberScheduled") == 2

        world.until(world.path("daemonsets"), "daemon", is_on_both)
        result = world.run(node_ready, name=first, timeout=1)

        assert result["ready"] is True
        assert "have no Ready pod on any node" in result["warnings"][0]

    def test_need_not_be_waited_for(self, world, nodes, daemons):
        (name,) = nodes()
        daemons(slow={"ready": "3600s"})
        world.record(world.path("pods")).until(scheduled(1))

        assert world.run(node_ready, name=name, timeout=PATIENCE, daemonset_pods=False)["ready"] is True

    def test_other_pods_are_not_waited_for(self, world, nodes):
        (name,) = nodes()
        world.owned("slow", name, slow={"ready": "3600s"}, wait=False)

        assert world.run(node_ready, name=name, timeout=PATIENCE)["ready"] is True
