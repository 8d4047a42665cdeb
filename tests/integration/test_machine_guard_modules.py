# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operations of the role machine_guard, with Cluster API's own controller."""

from __future__ import annotations

import json
import time
import uuid
from types import SimpleNamespace

import pytest
from integration.support.failovers import Victim
from integration.support.guards import RECORD
from integration.support.machines_capi import NAME, PRE_DRAIN, PRE_TERMINATE, Fleet, controlled, deleting, silent
from integration.support.volumes import attach, detach

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.record import machine_guard_record as record
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.steps import take_machine
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.wait import machine_guard_wait as wait
from ansible_collections.holdfast.kubernetes.plugins.modules import deletion_hook, node_claim
from lab.patience import PATIENCE

AUTH = {
    name: option
    for name, option in deletion_hook.SPEC["argument_spec"].items()
    if name not in ("kind", "machine", "node", "namespace", "point", "hook", "owner", "state", "unless_deleting")
    and not name.startswith("wait")
}


def operation(function, **options):
    """An operation with its options, as the tests run modules."""
    return SimpleNamespace(OPERATION=function, SPEC={"argument_spec": {**options, **AUTH}})


TEXT, NAMES, NUMBER = {"type": "str", "default": ""}, {"type": "list", "default": []}, {"type": "int"}
OURS = {"hook": TEXT, "owner": TEXT, "run": TEXT, "namespace": {"type": "str"}}
machine_guard_step = operation(
    take_machine,
    **OURS,
    worker=TEXT,
    holder=TEXT,
    machines=NAMES,
    selector=TEXT,
    cluster=TEXT,
    templates=NAMES,
    set_points=NAMES,
    stop={"type": "str", "default": "deadline"},
    retry_seconds={"type": "int", "default": 0},
    wait_timeout=NUMBER,
)
machine_guard_record = operation(
    record,
    **OURS,
    machine=TEXT,
    node={"type": "str"},
    phase={"type": "str"},
    done={"type": "str"},
    done_at={"type": "str"},
    result={"type": "str"},
    detail={"type": "str"},
    look={"type": "bool", "default": False},
    override_holds={"type": "bool", "default": False},
)
machine_guard_wait = operation(
    wait,
    wait_for=TEXT,
    machine=TEXT,
    namespace=TEXT,
    node={"type": "str"},
    run={"type": "str"},
    wait_timeout={"type": "int", "default": 600},
)

HOOKS = {f"{PRE_DRAIN}/backup": "team", f"{PRE_TERMINATE}/backup": "team"}


@pytest.fixture(scope="module")
def capi(lab):
    with controlled(lab) as found:
        yield found


@pytest.fixture
def fleet(capi, world):
    found = Fleet(world)
    yield found
    found.close()


class Work:
    """One run's work on the Machines of a fleet."""

    def __init__(self, fleet):
        self.fleet, self.world = fleet, fleet.world
        self.base = f"test-{uuid.uuid4().hex[:8]}"
        self.count = 0
        self.taken = {}

    def close(self):
        for number in range(self.count):
            runs.end(self.world.cluster, f"{self.base}/{number + 1}.1")

    def options(self, **more):
        self.count += 1
        known = {
            "hook": "backup",
            "owner": "team",
            "run": self.base,
            "worker": f"{self.count}.1",
            "namespace": self.fleet.namespace,
            "wait_timeout": PATIENCE,
        }
        return {**known, **more}

    def step(self, *, check_mode=False, **more):
        self.taken = self.world.run(machine_guard_step, check_mode=check_mode, **self.options(**more))
        return self.taken

    def start(self, **more):
        return self.world.start(machine_guard_step, **self.options(**more))

    def write(self, *, taken=None, **more):
        taken = taken or self.taken
        return self.world.run(
            machine_guard_record,
            machine=taken["machine"]["name"],
            namespace=self.fleet.namespace,
            node=taken["machine"]["node"],
            hook="backup",
            owner="team",
            run=taken["run"],
            **more,
        )

    def claim(self):
        node = self.taken["machine"]["node"]
        assert self.world.run(node_claim, name=node, run=self.taken["run"], operation="x")["changed"]

    def wait(self, what, **more):
        machine = more.pop("machine", None) or self.taken["machine"]["name"]
        options = {"machine": machine, "namespace": self.fleet.namespace, "wait_timeout": 1, **more}
        return self.world.run(machine_guard_wait, wait_for=what, **options)


@pytest.fixture
def work(fleet):
    found = Work(fleet)
    yield found
    found.close()


@pytest.fixture
def another(fleet):
    found = Work(fleet)
    yield found
    found.close()


@pytest.fixture
def name(fleet, world):
    """A Machine that waits before its drain."""
    (node,) = world.nodes()
    made = fleet.machine(node, annotations=HOOKS)
    fleet.delete(made)
    fleet.until_reason(made, "WaitingForPreDrainHook")
    return made


@pytest.mark.core
def test_from_point_to_point(work, fleet, name, world):
    taken = work.step()
    assert (taken["step"], taken["machine"]["name"], taken["node_state"]) == ("pre-drain", name, "ready")
    assert (taken["resumed"], taken["taken_from"], taken["skipped"]) == (False, None, False)
    work.claim()
    assert work.write(phase="tasks")["changed"]
    assert work.write(done="a.yml")["record"]["done"] == {"pre-drain": ["a.yml"]}
    outcome = work.write(result="released")
    assert (outcome["record"]["result"], outcome["node_state"]) == ("released", "ready")
    assert outcome["diff"]["after"]["hooks"] == {f"{PRE_TERMINATE}/backup": "team"}
    assert "holdfast.dev/claim" not in world.node(taken["machine"]["node"])["metadata"]["annotations"]

    taken = work.step()
    assert taken["step"] == "pre-terminate"
    assert taken["record"]["done"] == {"pre-drain": ["a.yml"]}
    work.claim()
    work.write(result="released")
    fleet.until_gone(name)
    assert work.step(stop="idle")["why"] == "idle"
    assert work.step(machines=[name])["why"] == "gone"


@pytest.mark.parametrize("missing", [("resumed",), ("resumed", "uid")], ids=["resumed", "uid"])
def test_a_record_of_an_earlier_version(work, another, fleet, name, missing):
    """A run died in the user's tasks. Without the UID, the record may be of an earlier Machine of the same name."""
    another.step()
    another.write(phase="tasks")
    record = another.write(done="a.yml")["record"]
    left = {key: value for key, value in record.items() if key not in missing} | {"run": "of-an-earlier-version/1.1"}
    fleet.annotate(name, {"holdfast.dev/machine-guard": json.dumps({"backup": left})})

    outcome = work.step()
    resumes = "uid" not in missing
    assert (outcome["step"], outcome["resumed"]) == ("pre-drain", resumes)
    assert outcome["record"]["done"] == ({"pre-drain": ["a.yml"]} if resumes else {})
    assert ("an early version wrote it" in " ".join(outcome.get("warnings") or [])) is not resumes


def test_one_of_many_gets_it(work, name):
    waiting = [work.start(wait_timeout=0) for _number in range(12)]
    outcome = [item.result(PATIENCE) for item in waiting]
    assert sorted(item["step"] for item in outcome) == ["done"] * 11 + ["pre-drain"]


def test_a_live_run_keeps_the_machine_and_a_dead_one_does_not(work, another, name, world):
    first = work.step()
    assert another.step(wait_timeout=0)["step"] == "done"
    runs.end(world.cluster, first["run"])
    taken = another.step()
    assert (taken["step"], taken["resumed"], taken["taken_from"]) == ("pre-drain", True, first["run"])

    lost = work.write(taken=first, phase="tasks")
    assert lost["error"] == "claim_lost"
    assert work.write(taken=first, result="failed")["error"] == "claim_lost"
    assert first["run"] not in runs.live_ids(world.cluster)
    assert another.write(phase="tasks")["changed"]


def test_the_node_is_held(work, fleet, name, world):
    """The last look, directly before the hook is removed."""
    taken = work.step()
    work.claim()
    node = taken["machine"]["node"]
    world.create("leases", node, {"spec": {"holderIdentity": "app", "acquireTime": "2026-01-02T03:04:05.000000Z"}})
    refused = work.write(result="released")
    assert refused["error"] == "held"
    assert fleet.hooks(name) == HOOKS
    outcome = work.write(result="released", override_holds=True)
    assert outcome["record"]["facts"] == {"overridden_holds": [f"{world.namespace}/app"]}
    assert f"{PRE_DRAIN}/backup" not in fleet.hooks(name)


def test_the_node_is_another_runs(work, fleet, name):
    work.step()
    assert work.write(result="released")["error"] == "claim_lost"
    assert fleet.hooks(name) == HOOKS


def test_a_silent_node(work, fleet, name, world):
    taken = work.step()
    victim = Victim(world, taken["machine"]["node"])
    victim.hang()
    assert work.write(phase="release", look=True)["node_state"] == "unreachable"
    work.claim()
    refused = work.write(result="released")
    assert refused["error"] == "unfenced"
    assert fleet.hooks(name) == HOOKS


def test_a_failure(work, another, fleet, name, world):
    work.step()
    work.claim()
    outcome = work.write(result="failed", detail="the disk is full")
    assert outcome["record"]["result"] == "failed"
    assert fleet.hooks(name) == HOOKS
    (event,) = [
        item
        for item in world.cluster.items(world.path("events"), field_selector=f"involvedObject.name={name}")
        if item["reason"] == "MachineGuardFailed"
    ]
    assert (event["type"], event["involvedObject"]["kind"]) == ("Warning", "Machine")
    assert "the disk is full" in event["message"]
    assert work.step(stop="idle")["why"] == "idle", "this run has done what it could"
    assert another.step()["resumed"]


def test_the_hook_is_removed_by_others(work, fleet, name):
    work.step()
    work.claim()
    fleet.annotate(name, {f"{PRE_DRAIN}/backup": None})
    assert work.write(result="released")["record"]["result"] == "removed"
    fleet.until_reason(name, "WaitingForPreTerminateHook")


def test_the_answer_is_lost(work, fleet, name, monkeypatch):
    """The hook stays removed, though the answer did not reach us."""
    work.step()
    work.claim()
    merge = Cluster.merge

    def unheard(cluster, path, body, **more):
        answer = merge(cluster, path, body, **more)
        if path.endswith(f"/{name}"):
            monkeypatch.undo()
            raise Unreachable("gone")
        return answer

    monkeypatch.setattr(Cluster, "merge", unheard)
    assert work.write(result="released")["error"] == "api_unreachable"
    assert f"{PRE_DRAIN}/backup" not in fleet.hooks(name)
    assert work.write(result="failed", detail="unheard")["record"]["result"] == "released"
    assert work.write(result="released")["record"]["result"] == "released"
    assert work.taken["run"] not in runs.live_ids(fleet.cluster)


def test_what_the_turn_before_left(work, name, world):
    """Otherwise its renewer would keep that run live, and no other run could work on the Machine."""
    first = work.step(worker="w.1")
    work.claim()
    taken = work.step(worker="w.2", wait_timeout=0)
    assert (taken["step"], taken["taken_from"]) == ("pre-drain", first["run"])
    assert first["run"] not in runs.live_ids(world.cluster)
    assert "holdfast.dev/claim" not in world.node(first["machine"]["node"])["metadata"]["annotations"]
    runs.end(world.cluster, taken["run"])


def test_a_machine_that_may_not_be_changed(work, fleet, name, world, monkeypatch):
    """The others are still served."""
    merge = Cluster.merge

    def forbidden(cluster, path, body, **more):
        if path.endswith("/odd"):
            raise ApiFailure("a webhook says no", status=403, reason="Forbidden")
        return merge(cluster, path, body, **more)

    fleet.unbound("odd")
    monkeypatch.setattr(Cluster, "merge", forbidden)
    taken = work.step(cluster=NAME, set_points=["pre-drain"], selector="!cluster.x-k8s.io/control-plane")
    assert taken["machine"]["name"] == name
    odd = f"{fleet.namespace}/odd"
    assert taken["refused"] == [{"machine": odd, "detail": "a webhook says no"}]
    assert [text for text in taken["warnings"] if odd in text]


def test_hooks_of_others_stay(work, fleet, name):
    theirs = {f"{PRE_DRAIN}/theirs": "them", RECORD: json.dumps({"theirs": {"a": "b"}})}
    fleet.annotate(name, theirs)
    work.step()
    work.claim()
    work.write(result="released")
    assert fleet.hooks(name)[f"{PRE_DRAIN}/theirs"] == "them"
    assert json.loads(fleet.get(name)["metadata"]["annotations"][RECORD])["theirs"] == {"a": "b"}
    assert deleting(fleet.get(name)) == "WaitingForPreDrainHook"
    fleet.annotate(name, {f"{PRE_DRAIN}/theirs": None})


def test_a_machine_that_is_made_later_is_given_hooks(work, fleet, world):
    waiting = work.start(
        cluster=NAME, set_points=["pre-drain", "pre-terminate"], selector="!cluster.x-k8s.io/control-plane"
    )
    (node,) = world.nodes()
    made = fleet.machine(node)
    fleet.until(made, lambda item: HOOKS.items() <= (item["metadata"].get("annotations") or {}).items())
    fleet.delete(made)
    assert waiting.result(PATIENCE)["machine"]["name"] == made


def test_check_mode_takes_nothing(work, fleet, name):
    before = fleet.get(name)["metadata"]["annotations"]
    outcome = work.step(check_mode=True)
    assert (outcome["step"], outcome["changed"]) == ("pre-drain", True)
    assert fleet.get(name)["metadata"]["annotations"] == before


@pytest.mark.parametrize(
    "options", [{"run": " "}, {"worker": "a/b"}, {"owner": ""}, {"hook": "a b"}, {"set_points": ["pre-drain"]}], ids=str
)
def test_options_that_can_t_work(work, options):
    assert work.step(**options)["error"] == "invalid_input"


class TestWaits:
    def test_volumes(self, work, fleet, world):
        (node,) = world.nodes()
        made = fleet.machine(node)
        attach(world, node)
        late = work.wait("volumes", machine=made, node=node)
        assert (late["error"], late["volume_attachments"]) == ("timed_out", [f"va-{node}"])
        waiting = world.start(
            machine_guard_wait,
            wait_for="volumes",
            machine=made,
            namespace=fleet.namespace,
            node=node,
            wait_timeout=PATIENCE,
        )
        time.sleep(0.5)
        detach(world, node)
        assert waiting.result(PATIENCE)["volume_attachments"] == []
        assert work.wait("volumes", machine=made, node=None)["waited"] == 0

    def test_replacement(self, work, fleet, world):
        """The run waits for a replacement that is made beforehand until its Node is Ready."""
        fleet.workers("pool", 2)
        one, two = fleet.until_running("pool", 2)
        fleet.annotate(one, HOOKS)
        fleet.delete(one)
        outcome = work.wait("replacement", machine=one, wait_timeout=PATIENCE)
        assert (outcome["wanted"], outcome["ready"]) == (1, [two]), "another is made only when it is gone"

        world.set_condition(two, "Ready", "False", "ATest")
        late = work.wait("replacement", machine=one, wait_timeout=0)
        assert (late["error"], late["ready"]) == ("timed_out", [])
        world.set_condition(two, "Ready", "True", "ATest")
        fleet.scale("pool", 3)
        waiting = world.start(
            machine_guard_wait,
            wait_for="replacement",
            machine=one,
            namespace=fleet.namespace,
            wait_timeout=PATIENCE,
        )
        outcome = waiting.result(PATIENCE)
        assert (outcome["wanted"], len(outcome["ready"])) == (2, 2)
        fleet.annotate(one, dict.fromkeys(HOOKS))
        fleet.until_gone(one)

    def test_nothing_creates_a_replacement(self, work, fleet, world):
        (node,) = world.nodes()
        assert work.wait("replacement", machine=fleet.machine(node))["wanted"] is None


def test_the_node_is_gone(work, fleet, name, world):
    taken = work.step()
    world.cluster.delete(paths.node(taken["machine"]["node"]))
    outcome = work.write(result="released")
    assert (outcome["record"]["result"], outcome["node_state"]) == ("released", "gone")


def test_the_node_is_gone_and_held(work, fleet, name, world):
    """Its machine may still run."""
    node = work.step()["machine"]["node"]
    world.create("leases", node, {"spec": {"holderIdentity": "app", "acquireTime": "2026-01-02T03:04:05.000000Z"}})
    world.cluster.delete(paths.node(node))
    assert work.write(result="released")["error"] == "held"
    assert fleet.hooks(name) == HOOKS
    outcome = work.write(result="released", override_holds=True)
    assert outcome["record"]["facts"] == {"overridden_holds": [f"{world.namespace}/app"]}


def test_the_node_of_another_machine(work, fleet, name, world, capi):
    """As in a cluster that is not the Machine's, but has a Node of that name."""
    node = fleet.get(name)["status"]["nodeRef"]["name"]
    # Cluster API would write its own annotation again.
    with silent(capi):
        marks = {"cluster.x-k8s.io/cluster-name": "another"}
        world.cluster.merge(paths.node(node), {"metadata": {"annotations": marks}})
        taken = work.step()
        assert (taken["node_state"], taken["boot_id"]) == ("foreign", "")
        for refused in (work.write(phase="tasks", look=True), work.write(result="released")):
            assert (refused["error"], refused["node"]) == ("wrong_cluster", node)
        assert work.write(result="failed", detail="the wrong cluster")["record"]["result"] == "failed"
        assert fleet.hooks(name) == HOOKS
