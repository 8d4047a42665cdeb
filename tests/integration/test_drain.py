# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains against a real API server, with its own budget controller, workload controllers and scheduler."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from integration.support.group import until

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain import drain as drain_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain import state_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.rules import Options, Plan
from ansible_collections.holdfast.kubernetes.plugins.modules import cordon, drain
from lab.patience import PATIENCE

CORDON = "holdfast.dev/cordon"
# Seconds of a drain that fails. The API server answers each request once in that time, busy or not.
IN_VAIN = 10


@pytest.fixture
def only_the_watch(monkeypatch):
    """Nothing is polled: every step follows from an event of the watch."""
    monkeypatch.setattr(state_rules, "ASK_AGAIN", 3600.0)


@pytest.fixture
def settle(monkeypatch):
    """An operator that frees budgets gets only a moment."""
    monkeypatch.setattr(state_rules, "SETTLE", 0.5)


def names(items):
    return sorted(item["name"] for item in items)


def node_changes(recorder, condition):
    return recorder.until(lambda changes: any(condition(change.object) for change in changes))


def lowest_ready(recorder, count):
    """The fewest ready pods at any time after there were ``count``, by the API server's own history."""
    alive, lowest, full = {}, count, False
    for change in recorder.changes:
        item = change.object
        conditions = item.get("status", {}).get("conditions") or []
        good = any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)
        alive[item["metadata"]["uid"]] = good and not change.deleted and not item["metadata"].get("deletionTimestamp")
        full = full or sum(alive.values()) == count
        if full:
            lowest = min(lowest, sum(alive.values()))
    return lowest


def _there_and_ready(world, name, node):
    found = world.cluster.find(paths.pod(world.namespace, name))
    if found is None:
        world.pod(name, node, wait=False)
    conditions = (found or {}).get("status", {}).get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


class TestBudgets:
    @pytest.mark.core
    def test_refused_evictions_wait_and_go_as_the_budget_allows(self, world, only_the_watch):
        a, b = *world.nodes(), *world.nodes(closed=True)
        recorder = world.record(world.path("pods"))
        world.workload("deployments", "web", 6, slow={"ready": "200ms"})
        world.budget("web", "web", lambda status: status["disruptionsAllowed"] == 2, maxUnavailable=2)
        before = world.pods(a)
        world.open(b)

        result = world.run(drain, name=a, timeout=PATIENCE)

        assert not result.get("failed"), result
        assert result["changed"]
        assert sorted(item["uid"] for item in result["evicted"]) == sorted(
            item["metadata"]["uid"] for item in before.values()
        )
        assert lowest_ready(recorder, 6) >= 4
        assert world.pods(a) == {}
        assert world.cordoned(a)
        # Two lists, two watches, a few looks, and some evictions for each pod: nothing was polled.
        assert result["requests"] < 60

    def test_goes_when_a_pod_elsewhere_becomes_healthy(self, world, only_the_watch):
        a, b = world.nodes(2)
        world.owned("here", a, "web")
        world.owned("there", b, "web")
        world.unready("there")
        world.budget("web", "web", lambda status: status["currentHealthy"] == 1, minAvailable=1)
        recorder = world.record(world.path("pods"))
        nodes = world.record(paths.NODES, field_selector=f"metadata.name={a}")
        running = world.start(drain, name=a, timeout=PATIENCE)
        node_changes(nodes, lambda item: item["spec"].get("unschedulable"))
        healthy = world.set_pod("there")

        result = running.result()

        assert names(result["evicted"]) == ["here"]
        ended = recorder.until(
            lambda changes: [
                int(change.object["metadata"]["resourceVersion"])
                for change in changes
                if change.object["metadata"]["name"] == "here" and change.object["metadata"].get("deletionTimestamp")
            ]
        )
        assert int(healthy["metadata"]["resourceVersion"]) < ended[0]

    def test_goes_when_the_budget_is_taken_away(self, world, only_the_watch):
        a, b = world.nodes(2)
        world.owned("here", a, "web")
        world.owned("there", b, "web")
        world.unready("there")
        world.budget("web", "web", lambda status: status["currentHealthy"] == 1, minAvailable=1)
        nodes = world.record(paths.NODES, field_selector=f"metadata.name={a}")
        running = world.start(drain, name=a, timeout=PATIENCE)
        node_changes(nodes, lambda item: item["spec"].get("unschedulable"))
        world.delete("poddisruptionbudgets", "web")

        assert names(running.result()["evicted"]) == ["here"]

    def test_never_is_refused_before_the_cordon(self, world):
        (a,) = world.nodes()
        world.workload("deployments", "web", 2)
        world.budget("all", "web", lambda status: status["expectedPods"] == 2, maxUnavailable=0)
        before = world.snapshot(a)

        result = world.run(drain, name=a, timeout=600)

        assert (result["failed"], result["changed"], result["error"]) == (True, False, "refused")
        assert {(item["pdb"], item["verdict"]) for item in result["blocked"]} == {("all", "never")}
        assert len(result["blocked"]) == 2
        assert "nothing was changed" in result["msg"]
        assert "change the budget" in result["msg"]
        assert world.snapshot(a) == before

    def test_never_is_named_at_once_and_fails_before_the_deadline(self, world, settle):
        (a,) = world.nodes()
        world.owned("free", a, slow={"delete": "1s"})
        world.owned("kept", a)
        world.budget("kept", "kept", lambda status: status["expectedPods"] == 1, minAvailable=1)

        result = world.run(drain, name=a, timeout=3600)

        assert (result["failed"], result["changed"], result["error"]) == (True, True, "refused")
        assert names(result["evicted"]) == ["free"]
        assert [(item["name"], item["pdb"], item["verdict"]) for item in result["blocked"]] == [
            ("kept", "kept", "never")
        ]
        assert "kept" in result["warnings"][0]
        assert result["unschedulable"] is True
        assert world.cordoned(a)
        assert "kept" in world.pods(a)

    def test_a_chain_of_budgets(self, world, only_the_watch):
        """As with an operator: one budget is freed only when the other's pod is gone."""
        (a,) = world.nodes()
        world.owned("first", a)
        world.owned("second", a)
        world.budget("second", "second", lambda status: status["expectedPods"] == 1, minAvailable=1)
        recorder = world.record(world.path("pods"))

        def operator() -> None:
            recorder.until(
                lambda changes: any(
                    change.deleted and change.object["metadata"]["name"] == "first" for change in changes
                )
            )
            path = paths.one(world.path("poddisruptionbudgets"), "second")
            world.cluster.merge(path, {"spec": {"minAvailable": 0}})

        thread = threading.Thread(target=operator)
        thread.start()
        result = world.run(drain, name=a, timeout=PATIENCE)
        thread.join()

        assert not result.get("failed"), result
        assert names(result["evicted"]) == ["first", "second"]
        assert any("second" in warning for warning in result["warnings"])

    def test_two_budgets_on_one_pod(self, world):
        (a,) = world.nodes()
        world.owned("web", a)
        for name in ("one", "two"):
            world.budget(name, "web", lambda status: status["disruptionsAllowed"] == 1, minAvailable=0)
        before = world.snapshot(a)

        result = world.run(drain, name=a)

        assert result["error"] == "refused"
        assert result["blocked"][0]["pdb"] == "one, two"
        assert world.snapshot(a) == before

    def test_one_of_two_budgets_is_deleted_during_the_drain(self, world, only_the_watch):
        (a,) = world.nodes()
        world.owned("slow", a, slow={"delete": "1h"})
        world.owned("web", a)
        for name in ("one", "two"):
            world.budget(name, "web", lambda status: status["disruptionsAllowed"] == 1, minAvailable=0)
        pods = world.record(world.path("pods"))
        running = world.start(drain, name=a, timeout=PATIENCE)
        pods.until(lambda changes: any(change.object["metadata"].get("deletionTimestamp") for change in changes))
        world.delete("poddisruptionbudgets", "one")
        pods.until(lambda changes: any(item.deleted and item.object["metadata"]["name"] == "web" for item in changes))
        world.cluster.delete(
            paths.pod(world.namespace, "slow"),
            {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0},
        )

        assert names(running.result()["evicted"]) == ["slow", "web"]


class TestDeadline:
    def test_names_what_is_left_with_its_budget(self, world):
        a, c, b = world.nodes(3)
        for node in (a, c):
            world.owned(f"on-{node}", node, "web")
        world.owned("there", b, "web")
        world.unready("there")
        world.unready(f"on-{c}")
        world.budget("web", "web", lambda status: status["currentHealthy"] == 1, minAvailable=1)
        world.owned("stuck", c, slow={"delete": "1h"})

        stays = world.start(drain, name=a, timeout=IN_VAIN)
        goes_back = world.start(drain, name=c, timeout=IN_VAIN, uncordon_on_failure=True)

        result = stays.result()
        assert (result["failed"], result["error"], result["changed"]) == (True, "timed_out", True)
        assert [(item["name"], item["pdb"], item["verdict"]) for item in result["blocked"]] == [
            (f"on-{a}", "web", "later")
        ]
        assert f"Node {a} was not drained within {IN_VAIN} s" in result["msg"]
        assert "PodDisruptionBudget web" in result["msg"]
        assert result["unschedulable"] is True
        assert world.cordoned(a)
        assert json.loads(world.node(a)["metadata"]["annotations"][CORDON])["owner"] == "holdfast"

        result = goes_back.result()
        assert result["error"] == "timed_out"
        left = {item["name"]: item["reason"] for item in result["blocked"]}
        assert "is terminating" in left["stuck"]
        assert result["unschedulable"] is False
        assert not world.cordoned(c)
        assert CORDON not in world.node(c)["metadata"]["annotations"]

    def test_a_finalizer_is_named(self, world):
        (a,) = world.nodes()
        world.owned("kept", a, metadata={"finalizers": ["example.com/wait"]})

        result = world.run(drain, name=a, timeout=IN_VAIN)
        world.cluster.merge(paths.pod(world.namespace, "kept"), {"metadata": {"finalizers": None}})

        assert "example.com/wait" in result["blocked"][0]["reason"]

    def test_a_cordon_of_others_stays_when_ours_is_undone(self, world):
        a, b = *world.nodes(closed=True), *world.nodes()
        world.owned("here", a, "web")
        world.owned("there", b, "web")
        world.unready("there")
        world.budget("web", "web", lambda status: status["currentHealthy"] == 1, minAvailable=1)

        result = world.run(drain, name=a, timeout=IN_VAIN, uncordon_on_failure=True)

        assert result["unschedulable"] is True
        assert world.cordoned(a)
        assert CORDON not in world.node(a)["metadata"]["annotations"]

    def test_that_passes_before_the_first_list_is_no_success(self, world, monkeypatch):
        (a,) = world.nodes()
        world.owned("here", a)
        monkeypatch.setattr(
            drain_module, "Deadline", lambda seconds: Deadline(seconds, started=time.monotonic() - seconds)
        )

        result = world.run(drain, name=a, timeout=IN_VAIN)

        assert result["error"] == "timed_out"
        assert names(result["blocked"]) == ["here"]

    @pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": -1}, {"grace_period": -1}])
    def test_options_that_can_not_work(self, world, options):
        assert world.run(drain, name="any", **options)["error"] == "invalid_input"

    def test_no_such_node(self, world):
        assert world.run(drain, name=f"{world.namespace}-none")["error"] == "not_found"


class TestWhatGoes:
    def test_each_check_can_be_accepted_alone_and_nothing_is_changed(self, world):
        (a,) = world.nodes()
        scratch = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
        world.pod("bare", a)
        world.owned("scratch", a, **scratch)
        world.pod("both", a, **scratch)
        before = world.snapshot(a)
        expected = {
            (False, False): ["bare", "both", "scratch"],
            (True, False): ["both", "scratch"],
            (False, True): ["bare", "both"],
        }
        for (force, delete_emptydir), blocked in expected.items():
            result = world.run(drain, name=a, force=force, delete_emptydir=delete_emptydir)

            assert (result["failed"], result["changed"], result["error"]) == (True, False, "refused")
            assert names(result["blocked"]) == blocked
            reason = next(item["reason"] for item in result["blocked"] if item["name"] == "both")
            assert ("no owner" in reason, "emptyDir" in reason) == (not force, not delete_emptydir)
        assert world.snapshot(a) == before

        result = world.run(drain, name=a, force=True, delete_emptydir=True, timeout=PATIENCE)

        assert names(result["evicted"]) == ["bare", "both", "scratch"]

    def test_finished_pods_go_whatever_they_are(self, world):
        (a,) = world.nodes()
        for name, phase in (("done", "Succeeded"), ("broken", "Failed")):
            world.pod(name, a, "web", volumes=[{"name": "scratch", "emptyDir": {}}])
            world.set_pod(name, ready_="False", phase=phase)
        world.budget("web", "web", maxUnavailable=0)

        assert names(world.run(drain, name=a, timeout=PATIENCE)["evicted"]) == ["broken", "done"]

    def test_daemon_set_and_mirror_pods_are_left(self, world):
        (a,) = world.nodes()
        spec = {"selector": {"matchLabels": {"app": "ds"}}, "template": world.template("ds", nodeSelector=world.pool)}
        world.create("daemonsets", "ds", {"spec": spec})
        world.until(world.path("daemonsets"), "ds", lambda item: item["status"].get("numberReady") == 1)
        world.pod("static", a, metadata={"annotations": {"kubernetes.io/config.mirror": "hash"}})
        world.owned("web", a)
        left = {name: item["metadata"]["uid"] for name, item in world.pods(a).items() if name != "web"}

        result = world.run(drain, name=a, timeout=PATIENCE)

        assert names(result["evicted"]) == ["web"]
        assert {item["name"]: item["uid"] for item in result["left"]} == left
        assert {item["reason"] for item in result["left"]} == {"DaemonSet pod", "mirror pod of a static pod"}
        assert {name: item["metadata"]["uid"] for name, item in world.pods(a).items()} == left
        assert not [item for item in world.pods(a).values() if item["metadata"].get("deletionTimestamp")]

    def test_pod_selector(self, world):
        (a,) = world.nodes()
        world.owned("web", a)
        world.owned("db", a)
        world.pod("bare", a, "db")

        result = world.run(drain, name=a, pod_selector="app=web", timeout=PATIENCE)

        assert names(result["evicted"]) == ["web"]
        assert sorted(world.pods(a)) == ["bare", "db"]

    def test_a_pod_selector_that_is_none(self, world):
        (a,) = world.nodes()
        before = world.snapshot(a)

        assert world.run(drain, name=a, pod_selector="a in (")["error"] == "api"
        assert world.snapshot(a) == before

    def test_grace_period_zero_is_zero(self, world):
        (a,) = world.nodes()
        for number in range(20):
            world.owned(f"web-{number}", a, "web", slow={"delete": "1h"}, wait=False)
        for number in range(20):
            world.until(world.path("pods"), f"web-{number}", lambda item: item["status"].get("phase") == "Running")

        result = world.run(drain, name=a, grace_period=0, timeout=PATIENCE)

        assert not result.get("failed"), result
        assert len(result["evicted"]) == 20, "gone before the answer came, and forgotten"

    def test_grace_period_goes_to_each_pod(self, world):
        (a,) = world.nodes()
        world.owned("web", a, slow={"delete": "1h"})
        recorder = world.record(world.path("pods"))
        running = world.start(drain, name=a, grace_period=7, timeout=PATIENCE)
        ending = recorder.until(
            lambda changes: [item.object for item in changes if item.object["metadata"].get("deletionTimestamp")]
        )
        world.cluster.delete(
            paths.pod(world.namespace, "web"), {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        )
        running.result()

        assert ending[0]["metadata"]["deletionGracePeriodSeconds"] == 7

    def test_a_pod_that_was_ending_already_is_waited_for(self, world):
        (a,) = world.nodes()
        world.pod("bare", a, slow={"delete": "1s"})
        world.cluster.delete(paths.pod(world.namespace, "bare"))

        result = world.run(drain, name=a, timeout=PATIENCE)

        assert not result.get("failed"), result
        assert result["evicted"] == []
        assert world.pods(a) == {}

    def test_nothing_on_it_and_once_more(self, world):
        (a,) = world.nodes()
        first, second = world.run(drain, name=a), world.run(drain, name=a)

        assert (first["changed"], second["changed"]) == (True, False)
        assert world.cordoned(a)

    def test_another_owner_s_cordon(self, world):
        (a,) = world.nodes()
        world.owned("web", a)
        world.run(cordon, name=a, owner="them", reason="disk")

        result = world.run(drain, name=a, owner="us")

        assert result["error"] == "refused"
        assert "them" in result["msg"]
        assert "web" in world.pods(a)


class TestIdentity:
    def test_a_stateful_set_s_pod_that_comes_back_does_not_count(self, world):
        a, b = *world.nodes(), *world.nodes(closed=True)
        world.workload("statefulsets", "db", 3)
        before = {name: item["metadata"]["uid"] for name, item in world.pods(a).items()}
        world.open(b)

        result = world.run(drain, name=a, timeout=PATIENCE)

        assert {item["name"]: item["uid"] for item in result["evicted"]} == before
        assert world.pods(a) == {}
        # The StatefulSet's own count may still be the old one.
        after = {}

        def back():
            after.clear()
            after.update({name: item["metadata"]["uid"] for name, item in world.pods(b).items()})
            return sorted(after) == sorted(before)

        until(back, "the pods are not back on the other node")
        assert not set(after.values()) & set(before.values())

    @pytest.mark.parametrize("disable_eviction", [False, True])
    def test_the_next_pod_of_a_name_is_not_evicted_in_the_last_one_s_place(self, world, disable_eviction):
        """Between the list and the request the pod is replaced."""
        (a,) = world.nodes()
        world.owned("web", a)
        (old,) = drain_module.pods_on(world.cluster, a)
        world.cluster.delete(
            paths.pod(world.namespace, "web"), {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        )
        # The simulated kubelet ends pods by name, and may still end the old one: make the pod again until it stays.
        until(lambda: _there_and_ready(world, "web", a), "the next pod does not stay")
        params: dict[str, Any] = {
            "name": a,
            "kubeconfig": world.kubeconfig,
            "force": True,
            "delete_emptydir": False,
            "disable_eviction": disable_eviction,
        }
        work = drain_module._DrainRun(Context(params), params, Deadline(PATIENCE), Plan())
        work.state.saw_all([old], 0.0)
        assert work.state.options == Options(force=True)

        work._send(old)(work.state)

        assert "deletionTimestamp" not in world.get("pods", "web")["metadata"]
        assert work.state.done
        assert work.state.gone == []


class TestHow:
    """By the eviction API alone, unless the user explicitly asks otherwise."""

    @pytest.fixture
    def evictor(self, world, made):
        """A user who may evict pods, but not delete them."""
        user = f"evictor-{world.namespace}"
        rules = [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
            {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["storage.k8s.io"], "resources": ["volumeattachments"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get", "list", "watch"]},
        ]
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        world.cluster.create(f"{rbac}/clusterroles", {"metadata": {"name": user}, "rules": rules})
        binding = {
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }
        world.cluster.create(f"{rbac}/clusterrolebindings", binding)
        made.objects += [f"{rbac}/clusterroles/{user}", f"{rbac}/clusterrolebindings/{user}"]
        return user

    def test_needs_no_right_to_delete(self, world, evictor):
        a, b = *world.nodes(), *world.nodes(closed=True)
        world.workload("deployments", "web", 3)
        world.budget("web", "web", lambda status: status["disruptionsAllowed"] == 1, maxUnavailable=1)
        world.open(b)
        before = sorted(world.pods(a))

        result = world.run(drain, name=a, timeout=PATIENCE, impersonate_user=evictor)

        assert not result.get("failed"), result
        assert names(result["evicted"]) == before

    @pytest.mark.parametrize("check_mode", [False, True])
    def test_deletion_is_another_right_and_refused_to_such_a_user(self, world, evictor, check_mode):
        (a,) = world.nodes()
        world.owned("web", a)

        result = world.run(
            drain, check_mode=check_mode, name=a, timeout=PATIENCE, disable_eviction=True, impersonate_user=evictor
        )

        assert (result["failed"], result["error"]) == (True, "refused")
        assert result["blocked"][0]["verdict"] == "never"
        assert "cannot delete resource" in result["blocked"][0]["reason"]
        assert "deletionTimestamp" not in world.pods(a)["web"]["metadata"]

    def test_an_evicted_pod_says_so(self, world):
        (a,) = world.nodes()
        world.owned("web", a, slow={"delete": "300ms"})
        recorder = world.record(world.path("pods"))
        world.run(drain, name=a, timeout=PATIENCE)
        last = recorder.until(lambda changes: [item.object for item in changes if item.deleted])[0]

        reasons = {item.get("reason") for item in last["status"]["conditions"]}
        assert "EvictionByEvictionAPI" in reasons

    def test_disable_eviction_passes_over_budgets(self, world):
        (a,) = world.nodes()
        world.owned("web", a)
        world.budget("web", "web", lambda status: status["expectedPods"] == 1, minAvailable=1)

        result = world.run(drain, name=a, timeout=PATIENCE, disable_eviction=True)

        assert names(result["evicted"]) == ["web"]


class TestVolumes:
    ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"

    def volume(self, world, made, claim, *, node=None):
        """A claim bound to a volume, attached to a node as an attacher would do it."""
        name = f"{world.namespace}-{claim}"
        common = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
        }
        world.cluster.create(
            "/api/v1/persistentvolumes",
            {
                "metadata": {"name": name},
                "spec": {
                    **common,
                    "capacity": {"storage": "1Gi"},
                    "hostPath": {"path": "/tmp/none"},
                    "claimRef": {"namespace": world.namespace, "name": claim},
                },
            },
        )
        resources = {"requests": {"storage": "1Gi"}}
        world.create("persistentvolumeclaims", claim, {"spec": {**common, "volumeName": name, "resources": resources}})
        made.objects.append(f"/api/v1/persistentvolumes/{name}")
        world.until(world.path("persistentvolumeclaims"), claim, lambda item: item["status"].get("phase") == "Bound")
        if node:
            self.attach(world, made, name, node)
        return name

    def attach(self, world, made, name, node):
        spec = {"attacher": "test.holdfast.dev", "nodeName": node, "source": {"persistentVolumeName": name}}
        world.cluster.create(self.ATTACHMENTS, {"metadata": {"name": f"{name}-{node}"}, "spec": spec})
        made.objects.append(f"{self.ATTACHMENTS}/{name}-{node}")

    def using(self, claim):
        return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}

    def test_waits_until_the_attachment_is_absent(self, world, made):
        a, b = world.nodes(2)
        volume = self.volume(world, made, "data", node=a)
        kept = self.volume(world, made, "kept", node=a)
        self.attach(world, made, volume, b)
        world.owned("web", a, **self.using("data"))
        path = f"{self.ATTACHMENTS}/{volume}-{a}"
        pods = world.record(world.path("pods"))
        running = world.start(drain, name=a, timeout=PATIENCE)
        pods.until(lambda changes: any(item.deleted for item in changes))
        world.cluster.merge(f"{path}/status", {"status": {"attached": False}})
        # Another volume of the node, and the same volume elsewhere, do not concern this drain.
        assert not running.done()
        world.cluster.delete(path)

        result = running.result()

        assert not result.get("failed"), result
        assert names(result["evicted"]) == ["web"]
        assert world.cluster.find(f"{self.ATTACHMENTS}/{kept}-{a}")

    def test_fails_and_names_what_is_still_attached(self, world, made):
        a, b = world.nodes(2)
        volume = self.volume(world, made, "data", node=a)
        other = self.volume(world, made, "other", node=b)
        for claim, node in (("data", a), ("other", b)):
            world.owned(claim, node, **self.using(claim))
        waits = world.start(drain, name=a, timeout=IN_VAIN)
        does_not = world.start(drain, name=b, timeout=PATIENCE, wait_for_volumes=False)

        result = waits.result()
        assert (result["error"], names(result["evicted"])) == ("timed_out", ["data"])
        assert [item["name"] for item in result["blocked"]] == [f"{volume}-{a}"]
        assert volume in result["blocked"][0]["reason"]
        assert not does_not.result().get("failed")
        assert world.cluster.find(f"{self.ATTACHMENTS}/{other}-{b}")


class TestCheckMode:
    def test_changes_nothing_and_predicts(self, world):
        a, b = *world.nodes(), *world.nodes(closed=True)
        world.workload("deployments", "web", 3)
        world.budget("web", "web", lambda status: status["disruptionsAllowed"] == 1, maxUnavailable=1)
        world.open(b)
        before = world.snapshot(a)

        plan = world.run(drain, check_mode=True, name=a, timeout=PATIENCE)

        assert world.snapshot(a) == before
        assert plan["changed"]
        real = world.run(drain, name=a, timeout=PATIENCE)
        assert sorted(item["uid"] for item in plan["evicted"]) == sorted(item["uid"] for item in real["evicted"])
        assert plan["diff"].keys() == real["diff"].keys()
        assert plan["diff"]["after"]["unschedulable"] is real["diff"]["after"]["unschedulable"] is True

    def test_pods_that_wait_and_pods_that_never_go(self, world, settle):
        a, b = world.nodes(2)
        world.owned("free", a)
        world.owned("kept", a)
        world.owned("here", a, "web")
        world.owned("there", b, "web")
        world.unready("there")
        world.budget("kept", "kept", lambda status: status["expectedPods"] == 1, minAvailable=1)
        world.budget("web", "web", lambda status: status["currentHealthy"] == 1, minAvailable=1)
        before = world.snapshot(a, b)

        plan = world.run(drain, check_mode=True, name=a, timeout=PATIENCE)

        assert world.snapshot(a, b) == before
        assert plan["error"] == "refused"
        assert "kept wants 1 of 1 pods healthy" in plan["msg"]
        assert {item["name"]: item["verdict"] for item in plan["blocked"]} == {"kept": "never", "here": "later"}
        assert names(plan["evicted"]) == ["free", "here"]

    def test_fails_if_the_run_would_fail(self, world):
        (a,) = world.nodes()
        world.pod("bare", a)

        plan, real = world.run(drain, check_mode=True, name=a), world.run(drain, name=a)

        assert {**plan, "duration": 0} == {**real, "duration": 0}


@pytest.mark.nodes
class TestRealPods:
    """On node-3, whose kubelet ends the pods; the test looks only at its own pods."""

    NODE = "node-3"

    @pytest.fixture
    def real(self, world):
        # Another test may be rebooting it just now.
        world.until(paths.NODES, self.NODE, lambda item: not item["spec"].get("taints"))
        yield self.NODE
        world.run(cordon, name=self.NODE, state="uncordoned", owner=world.namespace)

    def workload(self, world, kind, count):
        """The pods start on the real node; a simulated one takes them after the eviction."""
        world.cluster.merge(paths.node(self.NODE), {"metadata": {"labels": world.pool}})
        try:
            world.workload(kind, "web", count)
        finally:
            world.cluster.merge(paths.node(self.NODE), {"metadata": {"labels": {"pool": None}}})
        assert len(world.pods(self.NODE)) == count
        world.nodes()

    def test_refused_evictions_wait_for_the_budget(self, world, real, only_the_watch):
        recorder = world.record(world.path("pods"))
        self.workload(world, "deployments", 4)
        world.budget("web", "web", lambda status: status["disruptionsAllowed"] == 2, maxUnavailable=2)

        result = world.run(drain, name=real, owner=world.namespace, pod_selector="app=web", timeout=PATIENCE)

        assert not result.get("failed"), result
        assert len(result["evicted"]) == 4
        assert lowest_ready(recorder, 4) >= 2

    def test_a_stateful_set_and_a_time_out(self, world, real):
        self.workload(world, "statefulsets", 2)
        world.budget("web", "web", lambda status: status["expectedPods"] == 2, minAvailable=1)
        before = {item["metadata"]["uid"] for item in world.pods(real).values()}

        result = world.run(drain, name=real, owner=world.namespace, pod_selector="app=web", timeout=PATIENCE)

        assert not result.get("failed"), result
        assert {item["uid"] for item in result["evicted"]} == before
        assert world.pods(real) == {}
