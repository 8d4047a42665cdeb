# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What blocks a reboot, against a real API server and a real Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Follower
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import run_rules, runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import blockers as blockers_module
from ansible_collections.holdfast.kubernetes.plugins.modules import node_blockers
from lab import packages
from lab.paths import Paths
from lab.patience import PATIENCE
from lab.prometheus import PACKAGE, Prometheus

BACKUP = [{"selector": "app=backup"}]


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """A proxy of the machine can't reach a Prometheus on the machine's loopback."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,10.0.0.0/8")
    monkeypatch.setenv("no_proxy", "127.0.0.1,10.0.0.0/8")


@pytest.fixture
def node(nodes) -> str:
    return nodes()[0]


@pytest.fixture
def watched(monkeypatch):
    """Counts the watches that have begun; ``acquire`` waits for the next."""
    begun = threading.Semaphore(0)

    class Counting(Follower):
        def __iter__(self) -> Iterator[Any]:
            for news in super().__iter__():
                begun.release()
                yield news

    monkeypatch.setattr(blockers_module, "Follower", Counting)
    return begun


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Prometheus]:
    found = Prometheus(packages.program(Paths.default().cache, PACKAGE), tmp_path_factory.mktemp("prometheus"))
    found.start()
    yield found
    found.stop()


@pytest.fixture
def prometheus(server) -> Prometheus:
    """Prometheus runs, without alerts."""
    server.start()
    server.alerts()
    return server


@pytest.fixture
def asked(monkeypatch):
    """Counts the queries of a Prometheus that found a blocker; ``acquire`` waits for the next."""
    found = threading.Semaphore(0)

    class Counting(blockers_module.Prometheus):
        def blockers(self) -> Any:
            blockers = super().blockers()
            if blockers:
                found.release()
            return blockers

    monkeypatch.setattr(blockers_module, "Prometheus", Counting)
    return found


def fires(name="DiskFull", **labels):
    return {"alert": name, "expr": "vector(1)", "labels": labels}


def pends(name="DiskFull", **labels):
    return {**fires(name, **labels), "for": "1h"}


def named(result):
    return [(item["kind"], item["namespace"], item["name"]) for item in result["blockers"]]


def alert_names(result):
    assert {item["kind"] for item in result["blockers"]} <= {"alert"}
    return [item["name"] for item in result["blockers"]]


def test_without_anything_to_look_for_nothing_blocks(world, node):
    result = world.run(node_blockers, name=node, wait_timeout=PATIENCE)

    assert (result["changed"], result["blockers"]) == (False, [])


def test_a_node_that_is_not_there(world):
    result = world.run(node_blockers, name="no-such-node", pods=BACKUP)

    assert result["error"] == "not_found"


class TestPods:
    def test_of_a_selector_block(self, world, node):
        world.pod("job", node, "backup")
        world.pod("web", node)

        result = world.run(node_blockers, name=node, pods=BACKUP)

        assert not result.get("failed")
        assert result["blockers"] == [
            {
                "kind": "pod",
                "name": "job",
                "namespace": world.namespace,
                "reason": "Running, selected by app=backup",
            }
        ]

    def test_on_other_nodes_do_not(self, world, nodes):
        one, other = nodes(2)
        world.pod("job", other, "backup")

        assert named(world.run(node_blockers, name=one, pods=BACKUP)) == []
        assert named(world.run(node_blockers, name=other, pods=BACKUP)) == [("pod", world.namespace, "job")]

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_that_have_ended_do_not(self, world, node, phase):
        world.pod("job", node, "backup")
        world.set_pod("job", phase=phase)

        assert named(world.run(node_blockers, name=node, pods=BACKUP)) == []

    @pytest.mark.parametrize("phase", ["Pending", "Unknown"])
    def test_that_have_not_do(self, world, node, phase):
        world.pod("job", node, "backup")
        world.set_pod("job", phase=phase)

        assert named(world.run(node_blockers, name=node, pods=BACKUP)) == [("pod", world.namespace, "job")]

    def test_of_one_namespace(self, world, node):
        world.pod("job", node, "backup")
        here, there = ([{**BACKUP[0], "namespace": name}] for name in (world.namespace, "default"))

        assert named(world.run(node_blockers, name=node, pods=here)) == [("pod", world.namespace, "job")]
        assert named(world.run(node_blockers, name=node, pods=there)) == []

    def test_pods_that_two_selectors_match_are_reported_once(self, world, node):
        world.pod("job", node, "backup")
        world.pod("web", node)

        result = world.run(node_blockers, name=node, pods=[{"selector": "app in (web, backup)"}, *BACKUP])

        assert named(result) == [("pod", world.namespace, "job"), ("pod", world.namespace, "web")]

    def test_a_selector_that_is_none(self, world, node):
        result = world.run(node_blockers, name=node, pods=[{"selector": "app in backup"}])

        assert result["error"] == "invalid_input"
        assert '"app in backup"' in result["msg"]


class TestWaitingForPods:
    def test_ends_when_the_pod_is_gone(self, world, node, watched):
        world.pod("job", node, "backup")
        waiting = world.start(node_blockers, name=node, pods=BACKUP, wait_timeout=PATIENCE)

        assert watched.acquire(timeout=PATIENCE)
        assert not waiting.done()
        world.delete("pods", "job")

        result = waiting.result(PATIENCE)
        assert (result.get("failed"), result["blockers"]) == (None, [])
        assert 0 < result["waited"] < PATIENCE

    def test_ends_when_the_pod_has_ended(self, world, node, watched):
        world.pod("job", node, "backup")
        waiting = world.start(node_blockers, name=node, pods=BACKUP, wait_timeout=PATIENCE)

        assert watched.acquire(timeout=PATIENCE)
        world.set_pod("job", phase="Succeeded")

        assert waiting.result(PATIENCE)["blockers"] == []

    def test_is_for_every_selector(self, world, node, watched):
        world.pod("job", node, "backup")
        world.pod("web", node)
        both = [*BACKUP, {"selector": "app=web", "namespace": world.namespace}]
        waiting = world.start(node_blockers, name=node, pods=both, wait_timeout=PATIENCE)

        assert watched.acquire(timeout=PATIENCE)
        world.delete("pods", "job")
        # The list of the first, its event, and the list of the second.
        for _news in range(2):
            assert watched.acquire(timeout=PATIENCE)
        world.pod("job-2", node, "backup")
        assert not waiting.done()
        world.delete("pods", "web")
        world.until(world.path("pods"), "web", lambda item: item is None)
        assert not waiting.done(), "the first selector has a pod again"
        world.delete("pods", "job-2")

        assert waiting.result(PATIENCE)["blockers"] == []

    def test_in_vain(self, world, node):
        world.pod("job", node, "backup")

        result = world.run(node_blockers, name=node, pods=BACKUP, wait_timeout=1)

        assert (result["failed"], result["error"], result["node"]) == (True, "timed_out", node)
        assert named(result) == [("pod", world.namespace, "job")]
        assert f"pod {world.namespace}/job: Running, selected by app=backup" in result["msg"]
        assert result["waited"] >= 1

    def test_keeps_the_sign_of_life_of_the_run_up(self, world, node, watched, monkeypatch):
        monkeypatch.setattr(runs, "RENEW_EVERY", 0.1)
        world.pod("job", node, "backup")
        run = f"run-{world.namespace}"
        seen = world.record(paths.leases("holdfast"), field_selector=f"metadata.name={run_rules.lease_name(run)}")
        waiting = world.start(node_blockers, name=node, pods=BACKUP, wait_timeout=PATIENCE, run=run, holder="me@here")

        assert watched.acquire(timeout=PATIENCE)
        seen.until(lambda changes: len({change.object["spec"]["renewTime"] for change in changes}) > 2)
        assert seen.changes[0].object["spec"]["holderIdentity"] == "me@here"
        world.delete("pods", "job")

        assert waiting.result(PATIENCE)["blockers"] == []
        runs.end(world.cluster, run)

    def test_check_mode_looks_and_does_not_wait(self, world, node):
        world.pod("job", node, "backup")
        run = f"run-{world.namespace}"

        result = world.run(node_blockers, check_mode=True, name=node, pods=BACKUP, wait_timeout=3600, run=run)

        assert not result.get("failed")
        assert named(result) == [("pod", world.namespace, "job")]
        assert world.cluster.find(paths.lease("holdfast", run_rules.lease_name(run))) is None


class TestAlerts:
    def look(self, world, node, prometheus, **options):
        result = world.run(node_blockers, name=node, alerts={"url": prometheus.url, **options})
        assert not result.get("failed"), result
        return alert_names(result)

    def test_firing_and_pending_ones_block(self, world, node, prometheus):
        assert self.look(world, node, prometheus) == []

        prometheus.alerts(fires("Fires"), pends("Pends"), {"alert": "Sleeps", "expr": "vector(1) > 1"})

        assert self.look(world, node, prometheus) == ["Fires", "Pends"]
        assert self.look(world, node, prometheus, firing_only=True) == ["Fires"]

    def test_alerts_are_reported_with_start_and_labels(self, world, node, prometheus):
        prometheus.alerts(fires("DiskFull", severity="page", node=node))

        result = world.run(node_blockers, name=node, alerts={"url": prometheus.url})

        (blocker,) = result["blockers"]
        assert (blocker["kind"], blocker["name"], blocker["namespace"]) == ("alert", "DiskFull", None)
        assert blocker["reason"].startswith("firing since 2")
        assert blocker["reason"].endswith(f"(node={node}, severity=page)")

    def test_chosen_by_their_names(self, world, node, prometheus):
        prometheus.alerts(fires("Watchdog"), fires("DiskFull"), fires("DiskSlow"))

        assert self.look(world, node, prometheus, ignore="^Watchdog$") == ["DiskFull", "DiskSlow"]
        assert self.look(world, node, prometheus, only="^Disk") == ["DiskFull", "DiskSlow"]
        assert self.look(world, node, prometheus, only="^Disk", ignore="Slow") == ["DiskFull"]
        assert self.look(world, node, prometheus, ignore=".") == []

    def test_chosen_by_their_labels(self, world, node, prometheus):
        prometheus.alerts(fires("Page", severity="page", team="a"), fires("Mail", severity="mail"), fires("None"))

        assert self.look(world, node, prometheus, labels={"severity": "page"}) == ["Page"]
        assert self.look(world, node, prometheus, labels={"severity": "mail", "team": "a"}) == []

    def test_of_the_node(self, world, node, prometheus):
        prometheus.alerts(fires("Here", node=node), fires("There", node=f"{node}0"), fires("Anywhere"))

        assert self.look(world, node, prometheus, node_label="node") == ["Here"]

    def test_before_their_rules_are_evaluated(self, world, node, prometheus):
        prometheus.alerts(fires("Later"), every="10000h")

        assert self.look(world, node, prometheus) == ["Later"]
        assert self.look(world, node, prometheus, ignore="Later") == []

    def test_of_a_prometheus_that_is_away(self, world, node, prometheus):
        prometheus.stop()

        result = world.run(node_blockers, name=node, alerts={"url": prometheus.url})

        assert not result.get("failed")
        assert alert_names(result) == [prometheus.url]
        assert "does not report its alerts" in result["blockers"][0]["reason"]
        assert "Connection refused" in result["blockers"][0]["reason"]

    def test_of_something_that_is_no_prometheus(self, world, node, prometheus):
        beside = prometheus.url.removesuffix(Prometheus.PATH)

        result = world.run(node_blockers, name=node, alerts={"url": beside})

        assert alert_names(result) == [beside]
        assert "404 Not Found" in result["blockers"][0]["reason"]


class TestWaitingForAlerts:
    def start(self, world, node, prometheus, **options):
        return world.start(
            node_blockers, name=node, alerts={"url": prometheus.url}, wait_timeout=PATIENCE, interval=1, **options
        )

    def test_ends_when_they_stop(self, world, node, prometheus, asked):
        prometheus.alerts(fires(), pends("Pends"))
        waiting = self.start(world, node, prometheus)

        assert asked.acquire(timeout=PATIENCE)
        prometheus.alerts({"alert": "DiskFull", "expr": "vector(1) > 1"}, {"alert": "Pends", "expr": "vector(1) > 1"})

        assert waiting.result(PATIENCE)["blockers"] == []

    def test_in_vain(self, world, node, prometheus):
        prometheus.alerts(fires())
        world.pod("job", node, "backup")

        result = world.run(
            node_blockers, name=node, pods=BACKUP, alerts={"url": prometheus.url}, wait_timeout=1, interval=1
        )

        assert (result["failed"], result["error"]) == (True, "timed_out")
        assert named(result) == [("pod", world.namespace, "job"), ("alert", None, "DiskFull")]
        assert "2 pods or alerts still block the reboot of" in result["msg"]

    def test_a_prometheus_that_comes_back_unblocks(self, world, node, prometheus, asked):
        prometheus.stop()
        waiting = self.start(world, node, prometheus)

        for _look in range(2):
            assert asked.acquire(timeout=PATIENCE)
        assert not waiting.done()
        prometheus.start()

        result = waiting.result(PATIENCE)
        assert (result.get("failed"), result["blockers"]) == (None, [])

    def test_one_that_comes_back_with_the_alert_does_not(self, world, node, prometheus, asked):
        prometheus.alerts(fires())
        prometheus.stop()
        waiting = self.start(world, node, prometheus)
        assert asked.acquire(timeout=PATIENCE)

        prometheus.start()
        for _look in range(3):
            assert asked.acquire(timeout=PATIENCE)
        assert not waiting.done()
        prometheus.alerts()

        assert waiting.result(PATIENCE)["blockers"] == []

    def test_an_alert_that_comes_while_pods_are_waited_for_counts(self, world, node, prometheus, watched, asked):
        world.pod("job", node, "backup")
        waiting = self.start(world, node, prometheus, pods=BACKUP)
        assert watched.acquire(timeout=PATIENCE)

        prometheus.alerts(fires())
        world.delete("pods", "job")
        # Once when the pod is gone; and again, because the run waits for the alert.
        for _look in range(2):
            assert asked.acquire(timeout=PATIENCE)
        prometheus.alerts()

        assert waiting.result(PATIENCE)["blockers"] == []


@pytest.mark.long
def test_in_a_play_secrets_are_masked(ansible, world, node, prometheus, kubeconfig):
    prometheus.alerts(fires())
    options = {"name": node, "kubeconfig": kubeconfig}
    secret = {"url": prometheus.url, "token": "secret-of-mine"}
    tasks = [
        {"holdfast.kubernetes.node_blockers": {**options, "alerts": secret}},
        {"holdfast.kubernetes.node_blockers": {**options, "alerts": {**secret, "url": "nonsense"}}},
        {
            "holdfast.kubernetes.node_blockers": {
                **options,
                "alerts": {**secret, "username": "me", "password": "pass-1"},
            }
        },
    ]
    results, text = ansible.tasks(tasks, "-vvvv")

    assert alert_names(results[0]) == ["DiskFull"]
    assert (results[1]["failed"], results[1]["error"]) == (True, "invalid_input")
    assert "mutually exclusive" in results[2]["msg"]
    for secret in ("secret-of-mine", "pass-1"):
        assert secret not in text + str(results)
