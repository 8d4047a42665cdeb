# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that operators ask for, all in one run over simulated nodes: what a watch shows, and what is left."""

from __future__ import annotations

import contextlib
from datetime import timedelta

import pytest
import yaml
from integration.support.history import History

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules, paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import from_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.lifecycle_rules import TAINT
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import health_checks
from ansible_collections.holdfast.kubernetes.plugins.modules import doctor
from lab.paths import PACKAGE
from lab.patience import PATIENCE

LABEL, MARK = "maintenance.example.com/state", "maintenance.example.com/by"
EXCLUDED = "remediation.medik8s.io/exclude-from-remediation"
OTHERS = "cluster-upgrade"
PAUSE = 2


@pytest.fixture
def check(world, cluster):
    """A NodeHealthCheck of this test, which another program has paused."""
    definition = yaml.safe_load((PACKAGE / "medik8s/nodehealthchecks.yaml").read_text())
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    # Another test may have made it. It stays, because to remove it would remove their objects.
    with contextlib.suppress(ApiFailure):
        cluster.create(definitions, definition)
    world.until(definitions, definition["metadata"]["name"], established)
    body = {
        "apiVersion": "remediation.medik8s.io/v1alpha1",
        "kind": "NodeHealthCheck",
        "metadata": {"name": world.namespace},
        "spec": {"selector": {"matchLabels": world.pool}, "pauseRequests": [OTHERS]},
    }
    cluster.create(health_checks.PATH, body)
    path = paths.one(health_checks.PATH, world.namespace)
    world.made.objects.append(path)
    return lambda: cluster.get(path)["spec"].get("pauseRequests") or []


def established(item):
    conditions = ((item or {}).get("status") or {}).get("conditions") or []
    return any(found["type"] == "Established" and found["status"] == "True" for found in conditions)


def marks_of(node):
    """What the options set on a node, apart from the taint."""
    labels, annotations = node_rules.labels_of(node), node_rules.annotations_of(node)
    return labels.get(LABEL), annotations.get(MARK), labels.get(EXCLUDED)


def phase_of(node):
    """Whether the node waits, and whether it has the taint."""
    working = (node_rules.condition(node, "MaintenanceInProgress") or {}).get("status") == "True"
    return working, TAINT in (node["spec"].get("taints") or [])


def grants(history):
    """When each node got its slot, and when a node of the operation had ended before."""
    found, ended = {}, ""
    for ledger in history.ledgers:
        for name, slot in (ledger.get("slots") or {}).items():
            found.setdefault(name, (slot["since"], ended))
        ended = next((item.get("ended") or "" for item in ledger.get("operations") or []), "")
    return sorted(found.values())


@pytest.mark.long
def test_all_options_in_one_run(rolling, nodes, check, kubeconfig):
    names = first, second, _third = nodes(3)
    world = rolling.world
    # The drain deletes web, must wait for db, and leaves cache alone.
    for app, node in (("web", first), ("db", first), ("cache", second)):
        world.owned(app, node, metadata={"labels": {"app": app}})
        world.budget(app, app, lambda status: status["currentHealthy"] == 1, minAvailable=1)
    world.cluster.merge(paths.node(first), {"metadata": {"labels": {LABEL: "before"}}})
    pods = world.record(world.path("pods"))
    with History(kubeconfig, group=rolling.group, selector=rolling.selector) as history:
        run = rolling.start(
            names,
            run=f"job-{rolling.group}",
            max_unavailable=1,
            pause=PAUSE,
            delete_after=1,
            delete_selector="app=web",
            pod_selector="app!=cache",
            labels={LABEL: "draining"},
            annotations={MARK: "kernel"},
            prefer_no_schedule=True,
            pause_health_checks=True,
        )
        run.until(lambda: rolling.record(first).get("deleted_pods"), "the deletion", PATIENCE)
        assert "db" in world.pods(first), "its budget refuses, and the selector does not name it"
        assert check() == [OTHERS, f"holdfast.kubernetes run job-{rolling.group}"]
        world.delete("poddisruptionbudgets", "db")
        done = run.done().good()

    assert set(done.results.values()) == {"rebooted"}
    # An eviction leaves a condition on the pod, and a deletion does not.
    ends = {item.object["metadata"]["name"]: evicted(item.object) for item in pods.changes if ending(item.object)}
    assert ends == {"web": False, "db": True}
    assert f"{world.namespace}/web" in done.detail(first)
    assert "/db" not in done.detail(first)
    assert set(world.pods()) == {"cache"}

    before = ("before", None, None)
    course = history.course(marks_of)
    assert course[first] == [before, ("draining", "kernel", "true"), before]
    assert course[second] == [(None, None, None), ("draining", "kernel", "true"), (None, None, None)]

    for name, found in history.course(phase_of).items():
        assert (True, True) not in found, f"{name} works and has the taint"
        assert (False, True) in found, f"{name} never had the taint"
        assert found[-1] == (False, False), name
    assert check() == [OTHERS]
    rolling.assert_nothing_left(names)

    (_granted, nobody), *later = grants(history)
    assert not nobody
    assert len(later) == 2
    for granted, ended in later:
        assert from_text(granted) - from_text(ended) >= timedelta(seconds=PAUSE)


def ending(pod):
    return bool(pod["metadata"].get("deletionTimestamp"))


def evicted(pod):
    return any(item["type"] == "DisruptionTarget" for item in pod["status"].get("conditions") or [])


def test_the_doctor_ends_the_pause_of_a_dead_run(world, check):
    mine, gone = f"live-{world.namespace}", f"dead-{world.namespace}"
    live, dead = (f"holdfast.kubernetes run {run}" for run in (mine, gone))
    path = paths.one(health_checks.PATH, world.namespace)
    world.cluster.merge(path, {"spec": {"pauseRequests": [live, dead, OTHERS]}})
    world.until_closed(runs.heartbeat(world.cluster, mine))

    def pauses(**options):
        found = world.run(doctor, **options)["findings"]
        return {
            item["run"]: (item["stale"], item["cleared"])
            for item in found
            if (item["kind"], item["operation"]) == ("pause", world.namespace)
        }

    assert pauses() == {mine: (False, False), gone: (True, False)}
    assert pauses(nodes=[]) == {}
    # To clear everything would disturb other tests.
    assert pauses(state="cleared", check_mode=True) == {mine: (False, False), gone: (True, True)}
    assert check() == [live, dead, OTHERS]
    for run in (mine, gone):
        health_checks.resume_one(world.cluster, world.namespace, run)
    assert check() == [live, OTHERS]
