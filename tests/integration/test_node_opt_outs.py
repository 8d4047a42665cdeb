# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opt-outs on a real API server. Machines are a kind of the test's own there, without Cluster API's controller.

The objects show the final state of both annotations, whichever run was killed on the way.
"""

from __future__ import annotations

import contextlib
import itertools
import json

import pytest
from integration.support import machines

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.modules import node_opt_outs

DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SKIP = "cluster.x-k8s.io/skip-remediation"
EXCLUDED = "remediation.medik8s.io/exclude-from-remediation"
RECORD = "holdfast.dev/opt-outs"
NOWHERE = {"host": "https://127.0.0.1:1", "api_key": "none", "validate_certs": False}


class KilledError(BaseException):
    """The process is gone."""


class Spared:
    """One node, which also has a Machine."""

    def __init__(self, world, on_node=None, on_machine=None):
        self.world = world
        (self.name,) = world.nodes()
        marks = {} if on_machine is None else {SKIP: on_machine}
        self.machine = machines.Machine(world, self.name, theirs="kept", **marks)
        self.annotate({"theirs": "kept", DISABLED: on_node})
        self.start = self.state

    def annotate(self, annotations):
        self.world.cluster.merge(paths.node(self.name), {"metadata": {"annotations": annotations}})

    def run(self, state="present", **more):
        return self.world.run(node_opt_outs, name=self.name, state=state, **more)

    @property
    def on_node(self):
        return self.world.kept(self.name)["metadata"]["annotations"]

    @property
    def state(self):
        return self.on_node, self.machine.annotations

    @property
    def values(self):
        node, machine = self.state
        return node.get(DISABLED), machine.get(SKIP)

    @property
    def labels(self):
        return self.world.node(self.name)["metadata"]["labels"]

    @property
    def record(self):
        return json.loads(self.state[0].get(RECORD, "null"))


@pytest.fixture(scope="module")
def installed(lab, cluster):
    with machines.installed(lab, cluster):
        yield


@pytest.fixture
def spared(installed, world):
    return Spared(world)


def test_there_and_back(spared):
    told = spared.run()

    assert told["changed"]
    assert told["opt_outs"] == {"autoscaler": True, "machine": spared.machine.full_name, "node_health_check": True}
    assert spared.values == ("true", "holdfast.dev")
    assert spared.labels[EXCLUDED] == "true"
    assert spared.record["machine"]["before"] is None
    assert spared.run()["changed"] is False

    assert spared.run("absent")["changed"]
    assert EXCLUDED not in spared.labels
    assert spared.state == spared.start
    assert spared.run("absent")["changed"] is False


@pytest.mark.parametrize("state", ["present", "absent"])
def test_check_mode_reports_and_writes_nothing(spared, state):
    if state == "absent":
        spared.run()
    before = spared.state
    result = spared.run(state, check_mode=True)

    assert result["changed"]
    assert spared.state == before
    real = spared.run(state)
    for key in (DISABLED, SKIP):
        assert result["diff"]["after"][key] == real["diff"]["after"][key]
    assert result["opt_outs"] == real["opt_outs"]


@pytest.mark.parametrize("start", list(itertools.product([None, "false"], [None, "theirs"])), ids=str)
@pytest.mark.parametrize("killed", [("present", 1), ("present", 2), ("absent", 1), ("absent", 2)], ids=str)
def test_a_run_killed_after_any_write(installed, world, monkeypatch, start, killed):
    """Step by step: the next run opts out as if nothing had happened, or restores the earlier state."""
    spared, (state, writes) = Spared(world, *start), killed
    for then in ("present", "absent"):
        if state == "absent":
            spared.run()
        kill_after(monkeypatch, writes)
        with contextlib.suppress(KilledError):
            spared.run(state)
        monkeypatch.undo()
        spared.run(then)

        if then == "present":
            assert spared.values == ("true", start[1] or "holdfast.dev")
        else:
            assert spared.state == spared.start


def kill_after(monkeypatch, writes):
    merge, done = Cluster.merge, []

    def last_words(self, path, body, **more):
        answer = merge(self, path, body, **more)
        done.append(path)
        if len(done) >= writes:
            raise KilledError
        return answer

    monkeypatch.setattr(Cluster, "merge", last_words)


def test_a_value_that_someone_else_changed_stays(spared):
    spared.run()
    spared.annotate({DISABLED: "by another user"})
    spared.machine.annotate({SKIP: "by another user"})
    again = spared.run()
    assert again["changed"] is False
    assert spared.name in again["warnings"][0]

    spared.run("absent")
    assert spared.values == ("by another user", "by another user")
    assert spared.record is None


def test_a_machine_that_is_gone(spared):
    spared.run()
    spared.machine.delete()
    result = spared.run("absent")

    assert result["why_not"] == f"Machine {spared.machine.full_name} is gone"
    assert spared.on_node == spared.start[0]


def test_no_machine(installed, world):
    (name,) = world.nodes()
    result = world.run(node_opt_outs, name=name)
    assert result["opt_outs"] == {"autoscaler": True, "machine": None, "node_health_check": True}
    assert "Cluster API did not create it" in result["why_not"]

    world.run(node_opt_outs, name=name, state="absent")
    assert RECORD not in world.node(name)["metadata"]["annotations"]


def test_management_cluster_away(spared):
    spared.run()
    before = spared.state

    failed = spared.run("absent", management=NOWHERE, api_timeout=1)
    assert failed["error"] == "api_unreachable"
    assert "127.0.0.1:1" in failed["msg"]
    assert spared.state == before


def test_a_run_without_the_claim(spared):
    assert spared.run(run="nobody's")["error"] == "claim_lost"
    assert spared.state == spared.start


def test_no_such_node(world):
    assert world.run(node_opt_outs, name="no-such-node")["error"] == "not_found"


@pytest.mark.long
def test_in_a_play_with_a_management_cluster(spared, ansible):
    options = {
        "name": spared.name,
        "kubeconfig": spared.world.kubeconfig,
        "management": {"kubeconfig": spared.world.kubeconfig, "context": "lab"},
    }
    name = "holdfast.kubernetes.node_opt_outs"
    told, nowhere, back = ansible.tasks(
        [
            {name: options},
            {name: {**options, "management": NOWHERE, "api_timeout": 1}},
            {name: {**options, "state": "absent"}},
        ]
    )[0]

    assert told["opt_outs"] == {"autoscaler": True, "machine": spared.machine.full_name, "node_health_check": True}
    assert nowhere["error"] == "api_unreachable"
    assert back["changed"]
    assert spared.state == spared.start
