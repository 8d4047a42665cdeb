# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guarding Machines: who works on which, what is recorded, and when a hook may be removed."""

from __future__ import annotations

import copy
import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import events
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import ClaimLost
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.label_rules import label_value
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import replacement_rules as replacement
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.rules import (
    Change,
    Guard,
    RunOptions,
    Selection,
    Unfenced,
)

NOW = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
GUARD = Guard("backup", "team")
ME = RunOptions("run-1")
POINTS = ("pre-drain", "pre-terminate")
WAITS = {"pre-drain": "WaitingForPreDrainHook", "pre-terminate": "WaitingForPreTerminateHook"}
RECORD = "holdfast.dev/machine-guard"


def machine(at="NotDeleting", *points, name="m", record=None, labels=None, node="n", **annotations):
    """A Machine whose deletion is at a stage, with our hooks at some points."""
    marks = {GUARD.key(point): GUARD.owner for point in points} | annotations
    if record:
        marks[RECORD] = json.dumps({GUARD.hook: record})
    going = {"deletionTimestamp": "2026-11-21T08:00:00Z"} if at != "NotDeleting" else {}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": name,
            "namespace": "metal",
            "uid": f"uid-{name}",
            "labels": labels or {},
            "annotations": marks,
            **going,
        },
        "spec": {"clusterName": "c"},
        "status": {
            "conditions": [{"type": "Deleting", "status": "True", "reason": at, "message": ""}] if going else [],
            **({"nodeRef": {"name": node}} if node else {}),
        },
    }


def waiting(point="pre-drain", **more):
    return machine(WAITS[point], *more.pop("points", POINTS), **more)


def claimed(run, point="pre-drain", **more):
    record = rules.begin(None, point, run=run, holder="ada", now=NOW, uid="uid-m")
    return {**record, **more}


def ended(run, result, point="pre-drain", at=NOW):
    base = run.rpartition("/")[0]
    return rules.advance(claimed(run, point), Change(result=result, detail="x"), base, at)


def node(ready="True", taint=False, boot_id="b-1", evidence="b-1"):
    marks = {"holdfast.dev/evidence": json.dumps({"boot_id": evidence})} if taint else {}
    taints = [{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}]
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {
        "metadata": {"name": "n", "annotations": marks},
        "spec": {"taints": taints if taint else []},
        "status": {"conditions": conditions, "nodeInfo": {"bootID": boot_id}},
    }


class TestWhichMachines:
    def test_our_hook_is_known_by_name_and_owner(self):
        assert GUARD.waits_at(waiting()) == "pre-drain"
        assert GUARD.waits_at(waiting("pre-terminate")) == "pre-terminate"
        assert GUARD.waits_at(machine()) is None
        assert GUARD.waits_at(waiting(points=["pre-terminate"])) is None, "our hook is at the other point"
        foreign = waiting(points=[], **{GUARD.key("pre-drain"): "someone else"})
        assert GUARD.waits_at(foreign) is None

    @pytest.mark.parametrize(
        ("selection", "chosen"),
        [
            (Selection(), True),
            (Selection(cluster="c"), True),
            (Selection(cluster="d"), False),
            (Selection(frozenset({"m"})), True),
            (Selection(frozenset({"x"})), False),
            (Selection(frozenset({"m"}), cluster="d"), False),
            (Selection(templates=(("MachineDeployment", "workers"),)), True),
            (Selection(templates=(("MachineSet", "workers"),)), False),
            (Selection(frozenset({"x"}), templates=(("MachineDeployment", "workers"),)), True),
            (Selection(templates=(("MachineDeployment", "w" * 64),)), False),
        ],
        ids=str,
    )
    def test_selection(self, selection, chosen):
        labels = {"cluster.x-k8s.io/deployment-name": "workers"}
        assert selection.has(machine(labels=labels)) is chosen

    @pytest.mark.parametrize(
        ("selection", "given"),
        [
            (Selection(), True),
            (Selection(cluster="c"), True),
            (Selection(cluster="d"), False),
            (Selection(frozenset({"m"})), True),
            (Selection(frozenset({"x"})), False),
            (Selection(templates=(("MachineDeployment", "workers"),)), False),
            (Selection(cluster="c", templates=(("MachineDeployment", "workers"),)), False),
            (Selection(cluster="c", templates=(("MachineDeployment", "another"),)), False),
            (Selection(frozenset({"x"}), templates=(("MachineDeployment", "workers"),)), False),
            (Selection(frozenset({"m"}), templates=(("MachineDeployment", "workers"),)), True),
            (Selection(frozenset({"m"}), "d", (("MachineDeployment", "workers"),)), False),
        ],
        ids=str,
    )
    def test_what_a_template_makes_has_its_hooks_from_it_alone(self, selection, given):
        assert selection.gives_hooks_to(machine(labels={"cluster.x-k8s.io/deployment-name": "workers"})) is given

    def test_a_name_that_no_label_can_have(self):
        long = Selection(templates=(("MachineDeployment", "w" * 64),))
        assert not long.has(machine(labels={"cluster.x-k8s.io/deployment-name": "hash_abc_z"}))
        assert long.has(machine(labels={"cluster.x-k8s.io/deployment-name": label_value("w" * 64)}))
        assert label_value("machineSetName" * 12) == "hash_FR_ghQ_z", "as in Cluster API's own test"

    def test_hooks_that_are_missing(self):
        assert GUARD.missing(machine("NotDeleting", "pre-drain"), POINTS) == {GUARD.key("pre-terminate"): "team"}
        assert GUARD.missing(machine(), ["pre-drain"]) == {GUARD.key("pre-drain"): "team"}
        assert GUARD.missing(waiting(points=["pre-drain"]), POINTS) == {}, "too late to do it unasked"
        foreign = machine(**{GUARD.key("pre-drain"): "someone else"})
        assert GUARD.missing(foreign, ["pre-drain"]) == {}, "another owner's hook stays"

    def test_a_point_that_was_skipped(self):
        assert GUARD.skipped(waiting("pre-terminate"))
        assert not GUARD.skipped(waiting("pre-terminate", points=["pre-terminate"]))
        assert not GUARD.skipped(waiting("pre-drain"))


class TestWhoWorks:
    def may(self, item, live=(), me=ME, now=NOW):
        return rules.may_take(item, GUARD, me, frozenset(live), now)

    def test_no_run_has_it(self):
        assert self.may(waiting())
        assert not self.may(machine("NotDeleting", *POINTS))

    def test_a_live_run_keeps_it(self):
        item = waiting(record=claimed("run-2/1.1"))
        assert not self.may(item, ["run-2/1.1"])
        assert self.may(item, ["run-3/1.1"]), "a dead run's record passes"

    def test_another_worker_of_the_same_run_keeps_it(self):
        assert not self.may(waiting(record=claimed("run-1/2.1")), ["run-1/2.1"])

    def test_a_live_run_keeps_it_at_the_next_point_too(self):
        """Someone removed our hook by hand during the work."""
        assert not self.may(waiting("pre-terminate", record=claimed("run-2/1.1")), ["run-2/1.1"])

    def test_what_has_failed_is_left_to_another_run(self):
        item = waiting(record=ended("run-1/1.1", "failed"))
        assert not self.may(item)
        assert self.may(item, me=RunOptions("run-2"))
        assert self.may(waiting("pre-terminate", record=ended("run-1/1.1", "failed"))), "the next point is another work"

    def test_two_runs_do_not_hand_a_failure_to_and_fro(self):
        record = ended("run-1/1.1", "failed")
        record = rules.begin(record, "pre-drain", run="run-2/1.1", holder="", now=NOW, uid="uid-m")
        record = rules.advance(record, Change(result="failed"), "run-2", NOW)
        item = waiting(record=record)
        assert not self.may(item)
        assert not self.may(item, me=RunOptions("run-2"))

    def test_it_is_tried_again_after_a_while(self):
        item = waiting(record=ended("run-1/1.1", "failed"))
        me = RunOptions("run-1", retry=60)
        assert me.seconds_to_retry(item, GUARD, NOW + timedelta(seconds=20)) == 40
        assert not self.may(item, me=me, now=NOW + timedelta(seconds=59))
        assert self.may(item, me=me, now=NOW + timedelta(seconds=60))
        assert self.may(item, me=me, now=NOW + timedelta(seconds=61))

    def test_a_run_that_never_ends_tries_again_by_itself(self):
        item = waiting(record=ended("run-1/1.1", "failed"))
        me = RunOptions("run-1", stop=rules.NEVER)
        assert not self.may(item, me=me, now=NOW + timedelta(seconds=599))
        assert self.may(item, me=me, now=NOW + timedelta(seconds=600))

    def test_what_is_paused_is_left_alone(self):
        assert self.may(waiting())
        assert not self.may(waiting(**{"cluster.x-k8s.io/paused": ""}))
        for status in ("True", "False"):
            paused = waiting()
            paused["status"]["conditions"].append({"type": "Paused", "status": status})
            assert self.may(paused) is (status == "False")
            older = waiting()
            older["status"]["v1beta2"] = {"conditions": [{"type": "Paused", "status": status}]}
            assert self.may(older) is (status == "False")

    @pytest.mark.parametrize(
        ("mark", "leaves"),
        [
            ({}, False),
            ({"pre-drain.delete.hook.machine.cluster.x-k8s.io/storage": "storage"}, True),
            ({"pre-terminate.delete.hook.machine.cluster.x-k8s.io/storage": "storage"}, False),
            ({"machine.cluster.x-k8s.io/exclude-node-draining": ""}, True),
        ],
    )
    def test_a_drain_that_is_not_for_a_guard(self, mark, leaves):
        """Cluster API drains after the last pre-drain hook, and leaves out a Machine that is excluded."""
        assert GUARD.leaves_drain(waiting(**mark)) is leaves

    def test_a_failure_of_the_future_waits_no_longer_than_one_of_now(self):
        item = waiting(record=ended("run-1/1.1", "failed", at=NOW + timedelta(days=400)))
        assert RunOptions("run-1", retry=60).seconds_to_retry(item, GUARD, NOW) == 60

    @pytest.mark.parametrize(
        "broken",
        [
            {"run": 1},
            {"point": "x"},
            {"since": "yesterday"},
            {"phases": []},
            {"phases": {"claim": "long"}},
            {"done": {"pre-drain": "a.yml"}},
            {"done": None},
            {"done": {"pre-drain": [1]}},
            {"failures": {"run-1": "x"}},
            {"failures": {"run-1": {"point": "pre-drain", "at": "x"}}},
            {"failures": {"run-1": {"point": "pre-drain", "at": 5}}},
            {"failures": {"run-1": {"point": 5, "at": "2026-11-21T09:00:00Z"}}},
            {"facts": []},
        ],
        ids=str,
    )
    def test_an_invalid_record(self, broken):
        item = waiting(record=claimed("run-2/1.1") | broken)
        assert rules.record_of(item, "backup") is None
        assert rules.is_invalid(item, "backup")
        assert self.may(item, ["run-2/1.1"])
        assert rules.is_invalid(waiting(**{RECORD: "no JSON"}), "backup")
        assert not rules.is_invalid(waiting(), "backup")

    def test_a_record_of_a_machine_that_had_its_name(self):
        item = waiting(record=ended("run-1/1.1", "failed") | {"uid": "before"})
        assert rules.record_of(item, "backup") is None
        assert not rules.is_invalid(item, "backup")
        assert self.may(item)


class TestRecord:
    def test_of_another_hook_stays(self):
        item = waiting(**{RECORD: json.dumps({"theirs": {"a": 1}})})
        record = claimed("run-1/1.1")
        assert json.loads(rules.written(item, "backup", record)) == {"theirs": {"a": 1}, "backup": record}
        assert not rules.is_invalid(item, "backup")

    def test_the_phase_not_begun_resumes_nothing(self):
        untouched = Change(phase=rules.NOT_BEGUN, result="failed")
        first = rules.advance(claimed("run-1/left.1"), untouched, "run-1", NOW)
        assert not rules.resumes(first, "pre-drain")

        killed = rules.begin(first, "pre-drain", run="run-2/1.1", holder="", now=NOW, uid="uid-m")
        assert rules.resumes(killed, "pre-drain")
        again = rules.begin(killed, "pre-drain", run="run-3/left.1", holder="", now=NOW, uid="uid-m")
        assert rules.resumes(rules.advance(again, untouched, "run-3", NOW), "pre-drain"), "the second one had"

    def test_done_stays_for_the_next_run_and_the_next_point(self):
        record = rules.advance(claimed("run-1/1.1"), Change(done="a.yml", done_at="pre-drain"), "run-1", NOW)
        again = rules.begin(record, "pre-drain", run="run-2/1.1", holder="", now=NOW, uid="uid-m")
        assert rules.done_at(again, "pre-drain") == ["a.yml"]
        later = rules.begin(again, "pre-terminate", run="run-2/1.2", holder="", now=NOW, uid="uid-m")
        assert rules.done_at(later, "pre-drain") == ["a.yml"]
        assert rules.done_at(later, "pre-terminate") == []
        assert later["phases"] == {}

    def test_seconds_of_a_phase(self):
        record = rules.advance(claimed("run-1/1.1"), Change(phase="tasks"), "run-1", NOW + timedelta(seconds=2))
        record = rules.advance(record, Change(phase="drain"), "run-1", NOW + timedelta(seconds=5))
        assert record["phases"] == {"claim": 2.0, "tasks": 3.0}
        record = rules.advance(record, Change(phase="tasks"), "run-1", NOW + timedelta(seconds=5.34))
        record = rules.advance(record, Change(phase="drain"), "run-1", NOW + timedelta(seconds=9.34))
        assert record["phases"] == {"claim": 2.0, "tasks": 7.0, "drain": 0.3}
        back = rules.advance(record, Change(phase="wait"), "run-1", NOW)
        assert back["phases"]["drain"] == 0.3, "a clock that was set back"

    def test_a_run_that_resumes_keeps_what_is_known_and_the_seconds_of_this_point(self):
        before = rules.advance(
            claimed("run-1/1.1"), Change(phase="tasks", facts={"pods": 3}), "run-1", NOW + timedelta(seconds=2)
        )
        late = NOW + timedelta(hours=1)
        same, other = (
            rules.begin(before, point, run="run-2/1.1", holder="", now=late, uid="uid-m", saw_node=True)
            for point in POINTS
        )

        assert (same["phases"], other["phases"]) == ({"claim": 2.0}, {})
        assert same["started"] == other["started"] == "2026-11-21T09:00:00.000000Z"
        assert same["facts"] == other["facts"] == {"pods": 3}
        assert (same["resumed"], other["resumed"]) == (True, False)
        assert (same["saw_node"], before["saw_node"]) == (True, False)

    def test_a_file_that_is_done_again_is_listed_once(self):
        record = claimed("run-1/1.1")
        for name in ("a.yml", "b.yml", "a.yml"):
            record = rules.advance(record, Change(done=name, done_at="pre-drain"), "run-1", NOW)
        assert rules.done_at(record, "pre-drain") == ["b.yml", "a.yml"]
        assert rules.done_at(None, "pre-drain") == []

    def test_a_long_detail_is_cut(self):
        record = rules.advance(claimed("run-1/1.1"), Change(result="failed", detail="x" * 3000), "run-1", NOW)
        assert 1000 <= len(record["detail"]) < 1100

    def test_resumed(self):
        assert not rules.resumes(None, "pre-drain")
        assert rules.resumes(claimed("run-1/1.1"), "pre-drain")
        assert rules.resumes(ended("run-1/1.1", "failed"), "pre-drain")
        assert not rules.resumes(ended("run-1/1.1", "released"), "pre-drain")
        assert not rules.resumes(claimed("run-1/1.1"), "pre-terminate")

    def test_failures_do_not_grow_for_ever(self):
        record = None
        for number in range(30):
            record = rules.begin(record, "pre-drain", run=f"run-{number}/1.1", holder="", now=NOW, uid="uid-m")
            at = NOW + timedelta(seconds=number)
            record = rules.advance(record, Change(result="failed"), f"run-{number}", at)
        assert set(record["failures"]) == {f"run-{number}" for number in range(20, 30)}

    def test_the_latest_failures_are_kept(self):
        record = claimed("run-0/1.1")
        for second, number in enumerate([*range(10), 0, 10]):
            begun = rules.begin(record, "pre-drain", run=f"run-{number}/1.1", holder="", now=NOW, uid="uid-m")
            at = NOW + timedelta(seconds=second)
            record = rules.advance(begun, Change(result="failed"), f"run-{number}", at)
        assert set(record["failures"]) == {"run-0", *(f"run-{number}" for number in range(2, 11))}

    @pytest.mark.parametrize(
        ("before", "wanted", "is_so"),
        [
            ("released", "released", True),
            ("removed", "released", True),
            ("released", "failed", True),
            ("failed", "failed", True),
            ("failed", "released", False),
            ("released", "", False),
        ],
    )
    def test_what_this_run_has_written_before(self, before, wanted, is_so):
        """The answer was lost, and it asks again."""
        record = ended("run-1/1.1", before)
        item = waiting(record=record)
        assert rules.ended_before(item, "backup", "run-1/1.1", wanted) == (record if is_so else None)
        assert rules.ended_before(item, "backup", "run-1/1.2", wanted) is None
        assert rules.ended_before(waiting(record=claimed("run-1/1.1")), "backup", "run-1/1.1", wanted) is None

    @pytest.mark.parametrize("record", [None, claimed("run-2/1.1"), ended("run-1/1.1", "released")])
    def test_a_run_that_lost_the_machine_writes_nothing(self, record):
        with pytest.raises(ClaimLost):
            rules.check_claim(waiting(record=record), "backup", "run-1/1.1")


class TestWhenItEnds:
    def over(self, *machines, stop="deadline", names=(), retry=0, now=NOW):
        return rules.why_over(machines, Selection(frozenset(names)), GUARD, RunOptions("run-1", retry, stop), now)

    def test_idle(self):
        assert self.over(machine("NotDeleting", *POINTS), stop="idle") == "idle"
        assert self.over(stop="idle") == "idle"
        for busy in (
            waiting(),
            waiting("pre-terminate"),
            machine("DrainingNode", *POINTS),
            machine("Deleting", *POINTS),
        ):
            assert self.over(busy, stop="idle") == "", busy
        assert self.over(machine("DrainingNode", "pre-drain"), stop="idle") == "idle", "it comes to none of our hooks"
        assert self.over(waiting(), stop="deadline") == ""

    def test_a_machine_that_failed_is_not_waited_for(self):
        failed = waiting(record=ended("run-1/1.1", "failed"))
        assert self.over(failed, stop="idle") == "idle"
        assert self.over(failed, stop="idle", retry=60) == ""
        assert self.over(waiting(record=ended("run-2/1.1", "failed")), stop="idle") == ""

    def test_one_that_another_run_works_on_is(self):
        assert self.over(waiting(record=claimed("run-2/1.1")), stop="idle") == ""

    def test_named_machines_that_no_longer_have_our_hook(self):
        for stop in ("deadline", "idle", "never"):
            assert self.over(names=["m"], stop=stop) == "gone"
            assert self.over(machine(), names=["m"], stop=stop) == "gone"
            assert self.over(waiting("pre-terminate", points=["pre-drain"]), names=["m"], stop=stop) == "gone"
        assert self.over(machine("NotDeleting", *POINTS), names=["m"]) == ""
        failed = waiting(record=ended("run-1/1.1", "failed"))
        assert self.over(failed, names=["m"]) == "gone"
        assert self.over(failed, names=["m"], stop="never") == ""
        assert self.over() == ""


class TestRelease:
    @pytest.mark.parametrize(
        ("found", "state"),
        [
            (None, "gone"),
            (node(), "ready"),
            (node("False"), "not_ready"),
            (node("Unknown"), "unreachable"),
            (node(None), "unreachable"),
            (node("Unknown", taint=True), "off"),
            (node("Unknown", taint=True, boot_id="b-2"), "unreachable"),
            (node("True", taint=True), "ready"),
        ],
        ids=lambda item: item if isinstance(item, str) else "",
    )
    def test_what_is_known_of_the_node(self, found, state):
        assert rules.node_state(waiting(), found) == state

    @pytest.mark.parametrize(
        ("phase", "result", "state"),
        [
            ("move", "moved", "off"),
            ("move", "failed", "off"),
            ("power_on", "", "unreachable"),
            ("power_on", "failed", "unreachable"),
            ("ready", "failed", "unreachable"),
            ("in_service", "", "unreachable"),
            ("uncordon", "", "unreachable"),
            ("a phase of the future", "", "unreachable"),
        ],
    )
    def test_a_machine_that_a_recovery_may_have_switched_on_is_not_off(self, phase, result, state):
        found = node("Unknown", taint=True)
        record = {
            **dict.fromkeys(("id", "run", "holder", "reason", "detail"), "x"),
            "started": "2026-11-21T09:00:00Z",
            "since": "2026-11-21T09:00:00Z",
            "phase": phase,
            "phases": {},
            "boot_id": "b-1",
            "facts": {},
            "result": result,
        }
        found["metadata"]["annotations"]["holdfast.dev/failover"] = json.dumps(record)
        assert rules.node_state(waiting(), found) == state
        with pytest.raises(Unfenced, match=r"run the playbook holdfast\.kubernetes\.recover again first"):
            rules.check_fenced(waiting(), "unreachable")

    def test_no_node(self):
        assert rules.node_state(waiting(node=None), None) == "none"

    @pytest.mark.parametrize("state", ["none", "gone", "ready", "not_ready", "unreachable", "off"])
    def test_a_silent_node_keeps_its_machine(self, state):
        if state == "unreachable":
            with pytest.raises(Unfenced, match="nothing proves that it is off"):
                rules.check_fenced(waiting(), state)
        else:
            rules.check_fenced(waiting(), state)

    def test_which_hooks_go(self):
        drain, terminate = (GUARD.key(point) for point in POINTS)
        assert rules.hooks_to_remove(waiting(), GUARD, "pre-drain") == {drain: None}
        assert rules.hooks_to_remove(waiting("pre-terminate"), GUARD, "pre-terminate") == {drain: None, terminate: None}
        assert rules.hooks_to_remove(waiting(points=["pre-terminate"]), GUARD, "pre-drain") == {}
        foreign = waiting(points=[], **{drain: "someone else"})
        assert rules.hooks_to_remove(foreign, GUARD, "pre-drain") == {}


class TestReplacement:
    def test_the_object_that_creates_the_replacement(self):
        labels = {"cluster.x-k8s.io/set-name": "s", "cluster.x-k8s.io/deployment-name": "d"}
        item = machine(labels=labels)
        assert replacement.siblings_label(item) is None, "a person has made it"
        item["metadata"]["ownerReferences"] = [{"kind": "MachineSet", "name": "s"}]
        assert replacement.siblings_label(item) == "cluster.x-k8s.io/deployment-name=d"
        assert replacement.makers(item) == [("MachineSet", "s")]

    @pytest.mark.parametrize(
        ("replicas", "staying", "going", "others"),
        [
            (2, 1, 1, 1),  # deleted by itself: another is made when it is gone
            (3, 1, 1, 2),  # one more is asked for, and is not there yet
            (3, 2, 1, 2),
            (2, 2, 1, 2),  # a rollout with a surge
            (1, 1, 1, 1),  # scaled down
            (0, 0, 1, 0),
            (5, 0, 2, 3),
        ],
    )
    def test_how_many(self, replicas, staying, going, others):
        maker = {"metadata": {}, "spec": {"replicas": replicas}}
        pool = [machine(name=f"s{n}") for n in range(staying)] + [waiting(name=f"g{n}") for n in range(going)]
        assert replacement.wanted(maker, pool) == others
        assert replacement.wanted(None, pool) == 0
        assert replacement.wanted({**maker, "metadata": {"deletionTimestamp": "x"}}, pool) == 0

    def test_a_maker_that_asks_for_none_keeps_what_there_is(self):
        assert replacement.wanted({"metadata": {}}, [machine(name="s"), waiting(name="g")]) == 1

    def test_who_made_it(self):
        item = machine(labels={"cluster.x-k8s.io/control-plane-name": "cp"})
        assert replacement.makers(item) == []
        item["metadata"]["ownerReferences"] = [
            {"kind": "Cluster", "name": "c"},
            {"kind": "KubeadmControlPlane", "name": "cp"},
        ]
        assert replacement.makers(item) == [("KubeadmControlPlane", "cp")]
        assert replacement.siblings_label(item) == "cluster.x-k8s.io/control-plane-name=cp"
        item["metadata"]["labels"] = {}
        assert replacement.siblings_label(item) is None

    def test_the_deployment_of_a_machine_set(self):
        owners = [{"kind": "Cluster", "name": "c"}, {"kind": "MachineDeployment", "name": "d"}]
        assert replacement.deployment_of({"metadata": {"ownerReferences": owners}}) == "d"
        assert replacement.deployment_of({"metadata": {"ownerReferences": owners[:1]}}) is None
        assert replacement.deployment_of({"metadata": {}}) is None

    def test_which_count(self):
        assert replacement.counts(machine())
        assert not replacement.counts(machine(node=None))
        assert not replacement.counts(waiting())


def test_the_machine_that_waits_longest_comes_first():
    def since(name, time):
        item = waiting(name=name)
        item["status"]["conditions"][0]["lastTransitionTime"] = time
        return item

    items = [since("b", "2026-11-21T08:30:00Z"), since("c", "2026-11-21T08:00:00Z"), since("a", "2026-11-21T08:30:00Z")]
    assert [item["metadata"]["name"] for item in rules.by_age(items)] == ["c", "a", "b"]


def test_an_event_has_one_name_for_one_failure():
    body = events.warning(waiting(), "MachineGuardFailed", "x" * 2000, mark="a", now="2026-11-21T09:00:00.123456Z")
    assert body["involvedObject"] == {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "namespace": "metal",
        "name": "m",
        "uid": "uid-m",
    }
    assert (body["firstTimestamp"], len(body["message"])) == ("2026-11-21T09:00:00Z", 1024)
    names = {events.warning(waiting(), "R", "x", mark=mark, now="")["metadata"]["name"] for mark in "aab"}
    assert len(names) == 2


class Runs(RuleBasedStateMachine):
    """Runs that begin, work, fail, die and come back, on one Machine, each by what it last read."""

    @initialize()
    def begin(self):
        self.now = NOW
        self.item = waiting()
        self.alive: dict[str, str] = {}
        self.done: list[tuple[str, str]] = []
        self.removed: list[tuple[str, str]] = []
        self.tried: set[tuple[str, str]] = set()
        self.count = 0

    @property
    def record(self):
        return rules.record_of(self.item, "backup")

    def write(self, record, **changes):
        item = copy.deepcopy(self.item)
        for key, value in {RECORD: rules.written(item, "backup", record), **changes}.items():
            if value is None:
                item["metadata"]["annotations"].pop(key, None)
            else:
                item["metadata"]["annotations"][key] = value
        self.item = item

    @rule(base=st.sampled_from(["run-1", "run-2", "run-3"]), seconds=st.integers(0, 100))
    def take(self, base, seconds):
        self.now += timedelta(seconds=seconds)
        point = GUARD.waits_at(self.item)
        if not rules.may_take(self.item, GUARD, RunOptions(base), frozenset(self.alive), self.now):
            return
        assert not self.alive, "one at a time"
        assert (base, point) not in self.tried, "a failure is not tried again by the same run"
        self.count += 1
        run = rules.run_id(base, f"1.{self.count}")
        self.alive[run] = point
        self.write(rules.begin(self.record, point, run=run, holder="", now=self.now, uid="uid-m"))

    @precondition(lambda self: self.alive)
    @rule(name=st.sampled_from(["a.yml", "b.yml"]))
    def run_a_file(self, name):
        run, point = next(iter(self.alive.items()))
        record = rules.check_claim(self.item, "backup", run)
        if name in rules.done_at(record, point):
            return
        assert (name, point) not in self.done, "done twice"
        self.done.append((name, point))
        self.write(rules.advance(record, Change(done=name, done_at=point), run.rpartition("/")[0], self.now))

    @precondition(lambda self: self.alive)
    @rule()
    def die(self):
        self.alive.clear()

    @precondition(lambda self: self.alive)
    @rule(result=st.sampled_from(["released", "failed"]))
    def end(self, result):
        run, point = next(iter(self.alive.items()))
        base = run.rpartition("/")[0]
        record = rules.advance(
            rules.check_claim(self.item, "backup", run), Change(result=result, detail="x"), base, self.now
        )
        gone = rules.hooks_to_remove(self.item, GUARD, point) if result == "released" else {}
        self.write(record, **gone)
        self.alive.clear()
        if result == "failed":
            self.tried.add((base, point))
        elif point == "pre-drain":
            self.item["status"]["conditions"][0]["reason"] = WAITS["pre-terminate"]

    @invariant()
    def nobody_else_writes(self):
        record = getattr(self, "item", None) and self.record
        if record and not record["result"]:
            for other in ("run-9/1.1", f"{record['run']}x"):
                with pytest.raises(ClaimLost):
                    rules.check_claim(self.item, "backup", other)


Runs.TestCase.settings = settings(stateful_step_count=30)
TestRuns = Runs.TestCase
