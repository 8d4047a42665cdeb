# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node gets its turn: from the first look to its claim, on an API server in memory."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from unit.reboot.admission import CONTROL_PLANE, CORDON, DEAD_CLAIM, GIVEN, record, slot, turn, two_nodes
from unit.reboot.memory_cluster import AT, QuietCluster
from unit.reboot.variables import settings, split

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    HoldfastError,
    Refused,
    TimedOut,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import CLAIM, EXCLUDE, SCALE_DOWN_DISABLED
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import CORDON as CORDON_MARK
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import (
    Ledger,
    Member,
    fail,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import admit
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.facts_rules import Facts, Settings
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.refusal_rules import Canaries
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.silences import Alertmanager
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.turn import reboot_turn
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_turn as module

# An operation that the collection has named. Runs resume it night after night.
FRESH = "reboot-20261119T080000Z"
STEPS = ["cordon", "opt_outs", "drain", "reboot", "ready", "finish"]
AS_CANARY = {"play": "canary", "inventory_host": "node-1", "canary_hosts": ["node-1"]}
WAITED = {"step": "wait", "steps": ["again"], "waited": 100, "idle": 10}


@pytest.fixture
def cluster():
    return two_nodes()


def when_claimed(cluster, act):
    """Have something happen between the claim and the second look."""

    def hook(_verb, path, body):
        claimed = path.endswith("/node-1") and (body["metadata"].get("annotations") or {}).get(CLAIM)
        if claimed and not done:
            done.append(True)
            act()

    done = []
    cluster.hooks.append(hook)


def test_a_node_has_its_turn(cluster):
    found = turn(cluster)
    assert (found["step"], found["steps"], found["why"]) == ("go", STEPS, "rolling_reboot_when is always")
    assert (found["stage"], found["claimed"], found["boot_id"]) == ("working", True, "boot-1")
    assert found["changed"]
    assert cluster.marks()["claim"]["run"] == "me"
    assert (cluster.ledger().slots["node-1"].run, cluster.ledger().slots["node-1"].claims) == ("me", 1)
    assert cluster.marks()["operation"]["phase"] == "slot"


def test_a_label_of_the_control_plane_does_not_move_the_slot(cluster):
    """It is added between the slot and the claim. The slot of the other group would stay until the run ends."""
    label = {CONTROL_PLANE: ""}
    when_claimed(cluster, lambda: cluster.objects[paths.node("node-1")]["metadata"].update(labels=label))
    cluster.node("node-2", labels=label)
    found = turn(cluster)
    assert (found["step"], found["group"], list(cluster.ledger().slots)) == ("go", "default", ["node-1"])


def test_a_label_of_the_control_plane_does_not_move_a_slot_that_a_dead_run_left(cluster):
    cluster.node("node-2", labels={CONTROL_PLANE: ""})
    cluster.node(claim=DEAD_CLAIM, operation=record("slot"))
    cluster.ledger(ledger=slot())
    cluster.hold()
    label = {CONTROL_PLANE: ""}
    when_claimed(cluster, lambda: cluster.objects[paths.node("node-1")]["metadata"].update(labels=label))
    assert turn(cluster, play="first")["step"] == "put_off"
    assert ("claim" in cluster.marks(), cluster.ledger().slots) == (False, {})


def test_a_postponed_node_is_reported_without_the_phases_of_another_operation(cluster):
    cluster.node(operation=record("uncordon", "rebooted", id="last month", phases={"drain": 300.0}))
    closed = [{"days": ["mon"], "start": "01:00", "end": "02:00"}]
    found = turn(cluster, windows=closed)
    assert (found["step"], found["result"]["phases"]) == ("postponed", {})


def test_the_node_is_asked_first(cluster):
    asked = turn(cluster, when="required")
    assert (asked["step"], asked["steps"]) == ("ask", ["needed", "again"])
    assert not asked["changed"]
    found = turn(cluster, when="required", answer={"needed": "a kernel", "boot_id": "boot-1"})
    assert (found["step"], found["needed"]) == ("go", "a kernel")
    assert turn(cluster, when="required", answer={"needed": "a kernel", "boot_id": "boot-0"})["step"] == "ask"


def test_an_answer_without_a_boot_is_about_the_present_one(cluster):
    when_claimed(cluster, lambda: cluster.node(boot_id="boot-2", claim={"run": "me", "operation": "kernel"}))
    found = turn(cluster, when="required", answer={"needed": "a kernel"})
    assert found["step"] == "ask", "it has booted while it waited"
    assert cluster.ledger().slots == {}
    assert "claim" not in cluster.marks()


def test_a_node_that_needs_nothing_is_not_touched(cluster):
    found = turn(cluster, when="required", answer={"needed": ""})
    assert found["step"] == "skipped"
    assert found["result"] == {
        "name": "node-1",
        "result": "skipped",
        "detail": "no reboot is required",
        "boot_id_before": "boot-1",
        "boot_id_after": "boot-1",
        "phases": {},
    }
    assert "operation" not in cluster.marks()


class TestLeftOnANodeThatIsDone:
    """Another run of the operation took slot and claim directly after the node was rebooted."""

    DONE = record("uncordon", "rebooted")

    @pytest.fixture
    def done(self, cluster):
        cluster.node(boot_id="boot-2", claim=DEAD_CLAIM, operation=self.DONE)
        cluster.ledger(ledger=slot(claims=1))
        return cluster

    def test_it_is_returned_for_a_dead_run(self, done):
        found = turn(done)

        assert (found["step"], found["why"]) == ("skipped", "it was already rebooted in operation kernel")
        assert done.ledger().slots == {}
        assert "claim" not in done.marks()
        assert done.marks()["operation"] == self.DONE

    def test_the_claim_is_returned_although_the_budget_is_full(self, done):
        """The dead run returned its slot, and died before it returned its claim."""
        done.lives("me")
        done.ledger(ledger=slot("me", node="node-2", claims=1))

        assert turn(done)["step"] == "skipped"
        assert set(done.ledger().slots) == {"node-2"}
        assert "claim" not in done.marks()

    def test_a_live_run_returns_it_itself(self, done):
        done.lives("dead")

        assert turn(done)["step"] == "skipped"
        assert done.ledger().slots["node-1"].run == "dead"
        assert done.marks()["claim"] == DEAD_CLAIM

    def test_a_plan_does_not_touch_it(self, done):
        found = turn(done, check_mode=True)

        assert (found["step"], found["result"]["verdict"]) == ("planned", "not needed")
        assert done.ledger().slots["node-1"].run == "dead"


class TestSlotThatPassedToThisRunAtItsBegin:
    """The run must not wait for a slot of its own: the other nodes need it."""

    @pytest.fixture
    def passed(self, cluster):
        cluster.ledger(ledger=slot("me", claims=1))
        return cluster

    def other(self, cluster):
        cluster.lives("me")
        return turn(cluster, name="node-2", play="first", slot_timeout=0)["step"]

    def test_the_paused_run_finished_the_node(self, passed):
        passed.node(boot_id="boot-2", operation=record("uncordon", "rebooted"))

        assert turn(passed, play="first")["step"] == "skipped"
        assert passed.ledger().slots == {}
        assert self.other(passed) == "go"

    def test_a_held_node_is_put_off(self, passed):
        passed.node(claim=DEAD_CLAIM, operation=record("slot"))
        passed.hold()

        assert turn(passed, play="first")["step"] == "put_off"
        assert passed.ledger().slots == {}
        assert "claim" not in passed.marks()
        assert self.other(passed) == "go"

    def test_in_the_last_pass_no_run_has_it_while_the_node_is_waited_for(self, passed):
        passed.node(claim=DEAD_CLAIM, operation=record("slot"))
        passed.hold()
        with pytest.raises(HoldfastError, match="is still held after 0 s"):
            turn(passed, play="last", hold_timeout=0)

        assert passed.ledger().slots == {}

    def test_a_run_that_lives_again_gets_it_back_with_its_claim(self, passed):
        passed.node(claim=DEAD_CLAIM, operation=record("slot"))
        passed.hold()
        passed.lives("dead")

        assert turn(passed, play="first")["step"] == "put_off"
        assert passed.ledger().slots["node-1"].run == "dead"
        assert passed.marks()["claim"] == DEAD_CLAIM

    def test_a_node_whose_reboot_may_still_come_keeps_it_and_is_waited_for(self, passed):
        passed.node(unschedulable=True, cordon=CORDON, claim=DEAD_CLAIM, operation=record("reboot"))
        passed.hold()
        with pytest.raises(HoldfastError, match="is still held after 0 s"):
            turn(passed, play="first", hold_timeout=0)

        assert passed.ledger().slots["node-1"].run == "me"
        assert passed.marks()["claim"]["run"] == "me"


NEEDS_NOTHING = {"when": "required", "answer": {"needed": ""}}
OTHER_CLAIM = {**DEAD_CLAIM, "operation": "old"}
CLOSED = {"windows": [{"start": "03:00", "end": "04:00"}]}


@pytest.mark.parametrize(
    ("manager", "before", "drained"),
    [("holdfast.kubernetes", False, False), ("kubectl", False, True), ("kubectl", True, False)],
    ids=["not cordoned again", "cordoned again", "cordoned before the run"],
)
def test_a_node_that_another_client_has_uncordoned_and_cordoned_again_is_drained(cluster, manager, before, drained):
    """A dead run sent its reboot, and nothing shows that it happened. Pods may have come back meanwhile."""
    cordon = {**CORDON, "unschedulable_before": before}
    cluster.node(unschedulable=True, cordon=cordon, claim=DEAD_CLAIM, operation=record("reboot"))
    cluster.objects[paths.node("node-1")]["metadata"]["managedFields"] = [
        {"manager": "holdfast.kubernetes", "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{CORDON_MARK}": {}}}}},
        {"manager": manager, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}},
    ]
    cluster.ledger(ledger=slot(claims=1))

    assert ("drain" in turn(cluster)["steps"]) is drained


class TestNodeThatADeadRunLeftCordoned:
    """A run never ends well and leaves the cordon of a dead run behind."""

    @pytest.fixture
    def left(self, cluster):
        """The dead run of another operation has drained the node."""
        old = record("drain", id="old")
        cluster.node(unschedulable=True, cordon=CORDON, claim=OTHER_CLAIM, operation=old)
        cluster.ledger(ledger=slot(operation="old", claims=1))
        return cluster

    def test_a_run_of_another_operation_is_stopped(self, left):
        with pytest.raises(Refused, match=r"run dead .* is dead and belongs to another operation.*restart: true"):
            turn(left, **NEEDS_NOTHING)

        assert left.marks()["claim"] == OTHER_CLAIM
        assert left.ledger().slots["node-1"].run == "dead"

    def test_it_is_stopped_before_it_waits_for_a_slot(self, left):
        left.ledger(ledger=slot("busy", node="node-2"))
        left.lives("busy")

        with pytest.raises(Refused, match="belongs to another operation"):
            turn(left)

    def test_so_does_a_plan(self, left):
        found = turn(left, check_mode=True, **NEEDS_NOTHING)["result"]

        assert found["verdict"] == "never"
        assert "run holdfast.kubernetes.doctor" in found["detail"]

    def test_a_live_run_finishes_it_itself(self, left):
        left.lives("dead")

        assert turn(left, **NEEDS_NOTHING)["step"] == "skipped"
        assert left.marks()["claim"] == OTHER_CLAIM

    def test_an_excluded_node_is_left_as_it_is(self, left):
        left.node(unschedulable=True, cordon=CORDON, claim=OTHER_CLAIM, labels={EXCLUDE: ""})

        assert turn(left)["step"] == "skipped"

    @pytest.mark.parametrize("passed", [True, False], ids=["slot passed at its begin", "slot in another ledger"])
    def test_an_excluded_node_of_the_same_operation_is_restored(self, left, passed):
        claim = {**OTHER_CLAIM, "operation": "kernel"}
        left.node(unschedulable=True, cordon=CORDON, claim=claim, operation=record("drain"), labels={EXCLUDE: ""})
        left.ledger(ledger=slot("me" if passed else "dead", claims=1))

        found = turn(left)

        assert (found["step"], found["changed"]) == ("skipped", True)
        assert left.ledger().slots == {}
        assert not {"claim", "cordon"} & left.marks().keys()
        assert not left.get(paths.node("node-1"))["spec"].get("unschedulable")

    @pytest.mark.parametrize("passed", [True, False], ids=["slot passed at its begin", "slot in another ledger"])
    def test_with_restart_it_is_restored(self, left, passed):
        left.ledger(ledger=slot("me", claims=1) if passed else slot(operation="old", claims=1))

        found = turn(left, restart=True, **NEEDS_NOTHING)

        assert (found["step"], found["changed"]) == ("skipped", True)
        assert left.ledger().slots == {}
        assert not {"claim", "cordon"} & left.marks().keys()
        assert not left.get(paths.node("node-1"))["spec"].get("unschedulable")

    @pytest.mark.parametrize(
        ("node", "why"),
        [
            ({"operation": record("reboot", id="old")}, "another operation"),
            ({"operation": record("ready", id="old"), "boot_id": "boot-2"}, "another operation"),
            ({"ready": False}, "another operation"),
            ({"failover": {"phase": "recovered"}}, "another operation"),
            ({"claim": {**OTHER_CLAIM, "purpose": "failover"}}, "another operation"),
            ({"claim": None, "operation": record("ready", "failed", id="old"), "boot_id": "boot-2"}, "not passed its"),
            ({"claim": None, "ready": False}, "it is not Ready"),
        ],
        ids=[
            "it may still go down",
            "it was not checked",
            "it is down",
            "it was failed over",
            "a failover has its claim",
            "it failed its check",
            "it is down, and no run has a claim",
        ],
    )
    def test_a_node_that_has_to_stay_cordoned_does_with_restart_too(self, left, node, why):
        left.ledger(ledger=Ledger())
        marks = {"cordon": CORDON, "claim": OTHER_CLAIM, **node}
        left.node(unschedulable=True, **{name: value for name, value in marks.items() if value is not None})
        before = json.dumps(left.get(paths.node("node-1")), sort_keys=True)

        with pytest.raises(Refused, match=why):
            turn(left, restart=True, **NEEDS_NOTHING)

        assert json.dumps(left.get(paths.node("node-1")), sort_keys=True) == before

    @pytest.fixture
    def unhealthy(self, left):
        """A node that has failed its check in another operation."""
        failed = record("ready", "failed", id="old")
        left.ledger(ledger=Ledger())
        left.node(unschedulable=True, cordon=CORDON, operation=failed, boot_id="boot-2")
        return left

    def test_a_node_that_failed_its_check_stays_cordoned_while_it_is_held(self, unhealthy):
        unhealthy.hold()

        assert turn(unhealthy, play="first")["step"] == "put_off"
        assert unhealthy.marks()["cordon"] == CORDON

    def test_it_stays_cordoned_if_a_hold_comes_after_the_claim(self, unhealthy):
        """The record of the operation that knew about the check is gone by then."""
        when_claimed(unhealthy, unhealthy.hold)

        assert turn(unhealthy, play="first")["step"] == "put_off"
        assert unhealthy.marks()["operation"]["id"] == "kernel"
        assert unhealthy.marks()["cordon"] == CORDON
        with pytest.raises(Refused, match="it has not passed its check"):
            turn(unhealthy, **NEEDS_NOTHING)

    @pytest.mark.parametrize("owner", ["dead", "me"], ids=["of a dead run", "that passed at the begin"])
    def test_a_slot_under_which_no_work_has_begun_does_not_stay(self, unhealthy, owner):
        """The dead run of this operation wrote its record over that of the check."""
        begun = record("slot", unchecked=True)
        unhealthy.node(unschedulable=True, cordon=CORDON, operation=begun, claim=DEAD_CLAIM, boot_id="boot-2")
        unhealthy.ledger(ledger=slot(owner, claims=1))

        with pytest.raises(Refused, match="it has not passed its check"):
            turn(unhealthy, **NEEDS_NOTHING)

        assert unhealthy.ledger().slots == {}
        assert "claim" not in unhealthy.marks()
        assert unhealthy.marks()["cordon"] == CORDON

    def test_the_slot_is_returned_if_a_hold_comes_after_the_claim(self, unhealthy):
        when_claimed(unhealthy, unhealthy.hold)
        turn(unhealthy, play="first")

        assert unhealthy.ledger().slots == {}

    def test_its_stop_is_no_failure_of_this_run(self, unhealthy):
        with pytest.raises(Refused) as caught:
            turn(unhealthy, **NEEDS_NOTHING)

        assert caught.value.fields["stage"] == "waiting"

    def test_it_is_rebooted_if_it_needs_it(self, unhealthy):
        assert turn(unhealthy)["step"] == "go"

    def test_a_mark_on_a_node_that_a_person_has_uncordoned_is_removed(self, unhealthy):
        unhealthy.node(cordon=CORDON, operation=record("ready", "failed", id="old"), boot_id="boot-2")

        assert turn(unhealthy, **NEEDS_NOTHING)["step"] == "skipped"
        assert "cordon" not in unhealthy.marks()

    def test_it_stays_cordoned_if_too_many_nodes_have_failed(self, left):
        """The node may turn out to be in the middle of its reboot, and no work starts after too many failures."""
        slots = slot("me", claims=1).slots
        failures = {"id": "kernel", "failures": {"node-2": "no boot"}}
        left.ledger(ledger=Ledger(slots=slots, operations=(failures,)))

        with pytest.raises(Refused, match="1 node failed in this operation and max_failed is 0"):
            turn(left, restart=True, **NEEDS_NOTHING)
        assert left.marks()["cordon"] == CORDON

    def test_with_restart_it_is_rebooted_if_it_needs_it(self, left):
        found = turn(left, restart=True)

        assert (found["step"], found["steps"]) == ("go", STEPS)
        assert left.marks()["claim"]["run"] == "me"
        assert left.ledger().slots["node-1"].operation == "kernel"


class TestOptOutsOfADeadRun:
    """A run never ends well and leaves the opt-outs of a dead run behind."""

    @pytest.fixture
    def left(self, cluster):
        """The run died between the uncordon and the end of the opt-outs, or could not end them."""
        opted_out(cluster)
        return cluster

    def test_they_are_undone_on_a_node_that_is_skipped(self, left):
        said = []
        found = turn(left, said=said, **NEEDS_NOTHING)

        assert (found["step"], found["changed"], found["claimed"]) == ("skipped", True, False)
        assert marks_on(left) == {"holdfast.dev/operation"}
        assert said == ["Node node-1 is given back: no reboot is required"]

    def test_with_the_claim_of_the_dead_run(self, left):
        opted_out(left, claim=DEAD_CLAIM, operation=record("uncordon"), labels={EXCLUDE: ""})
        left.ledger(ledger=slot(claims=1))

        assert turn(left)["step"] == "skipped"
        assert marks_on(left) == {"holdfast.dev/operation"}
        assert left.ledger().slots == {}

    def test_they_do_not_delay_a_reboot(self, left):
        assert turn(left)["step"] == "go"
        assert SCALE_DOWN_DISABLED in marks_on(left)

    def test_a_plan_does_not_touch_them(self, left):
        assert turn(left, check_mode=True, **NEEDS_NOTHING)["result"]["verdict"] == "not needed"
        assert left.writes == []

    @pytest.mark.parametrize(
        "node",
        [
            {"claim": OTHER_CLAIM},
            {"claim": {**OTHER_CLAIM, "purpose": "failover"}},
            {"ready": False},
            {"run": ""},
            {"unschedulable": True, "failover": {"phase": "recovered"}},
            {"cordon": {**CORDON, "owner": "failover"}},
        ],
        ids=[
            "a live run works on it",
            "a failover works on it",
            "it is down",
            "a user has set them",
            "it was failed over",
            "others have cordoned it",
        ],
    )
    def test_they_stay(self, left, node):
        opted_out(left, labels={EXCLUDE: ""}, **node)
        left.lives("dead")
        before = marks_on(left)

        assert turn(left)["step"] == "skipped"
        assert marks_on(left) == before

    def test_they_stay_on_a_node_that_has_failed(self, left):
        left.ledger(ledger=slot(state="failed"))
        before = marks_on(left)

        assert turn(left, **NEEDS_NOTHING)["step"] == "skipped"
        assert marks_on(left) == before

    def test_a_machine_that_is_not_reached_is_a_warning(self, left):
        """Otherwise a node that is skipped would count as a failure, and stop the other nodes."""
        opted_out(left, machine={"namespace": "metal", "name": "m", "before": None})
        warned = []

        assert turn(left, warned=warned, **NEEDS_NOTHING)["step"] == "skipped"
        assert "The opt-outs of node node-1 could not be restored: Machine metal/m" in warned[0]
        assert marks_on(left) == {"holdfast.dev/operation", "holdfast.dev/opt-outs", SCALE_DOWN_DISABLED}


def opted_out(cluster, *, run="dead", machine=None, **node):
    autoscaler = {"before": None}
    cluster.node(opt_outs={"run": run, "since": AT, "autoscaler": autoscaler, "machine": machine}, **node)
    cluster.objects[paths.node("node-1")]["metadata"]["annotations"][SCALE_DOWN_DISABLED] = "true"


def marks_on(cluster):
    return set(cluster.objects[paths.node("node-1")]["metadata"]["annotations"])


class TestSlotOfADeadRunOnANodeThatThisRunLeaves:
    @pytest.fixture
    def left(self, cluster):
        cluster.node(claim=DEAD_CLAIM, operation=record("slot"))
        cluster.ledger(ledger=slot(claims=1))
        return cluster

    def free(self, cluster):
        return cluster.ledger().slots == {} and "claim" not in cluster.marks()

    def test_postponed(self, left):
        assert turn(left, **CLOSED)["step"] == "postponed"
        assert self.free(left)

    def test_it_waits_for_a_window(self, left, monkeypatch):
        slots = []

        def window(*_arguments, **_options):
            slots.append(dict(left.ledger().slots))
            return {"open": False, "opens": "", "seconds_left": None, "waited": 0}

        monkeypatch.setattr(admit, "maintenance_window", window)
        assert turn(left, window_wait=7200, **CLOSED)["step"] == "postponed"
        assert slots == [{}]

    def test_stopped(self, left):
        with pytest.raises(HoldfastError, match="It does not answer"):
            turn(left, when="required", answer={"trouble": "It does not answer."})
        assert self.free(left)

    def test_it_waits_for_canaries(self, left):
        """The canary needs the slot."""
        with pytest.raises(HoldfastError, match="node-2 has not started"):
            turn(left, play="first", canaries=["node-2"], canary_hosts=["node-2"], canary_timeout=0)
        assert self.free(left)

    def test_its_attempt_does_not_count(self, left):
        left.hold()
        with pytest.raises(HoldfastError, match="is still held after 0 s"):
            turn(left, play="last", hold_attempts=1, hold_timeout=0)
        assert self.free(left)


class TestThePassThatResumes:
    """Its nodes have the slots that the others wait for."""

    def test_it_resumes_a_node_that_is_midway(self, cluster):
        cluster.node(unschedulable=True, cordon=CORDON, claim=DEAD_CLAIM, operation=record("drain"))
        cluster.ledger(ledger=slot(claims=1))

        assert turn(cluster, play="resume")["step"] == "go"

    def test_a_node_that_is_not_gives_its_slot_back_for_now(self, cluster):
        cluster.node(claim=DEAD_CLAIM, operation=record("slot"))
        cluster.ledger(ledger=slot(claims=1))

        found = turn(cluster, play="resume")

        assert (found["step"], found["why"]) == ("put_off", "its reboot has not begun")
        assert cluster.ledger().slots == {}
        assert "claim" not in cluster.marks()

    def test_a_node_of_a_live_run_waits_for_a_later_pass(self, cluster):
        cluster.node(unschedulable=True, cordon=CORDON, claim=DEAD_CLAIM, operation=record("drain"))
        cluster.ledger(ledger=slot(claims=1))
        cluster.lives("dead")

        assert turn(cluster, play="resume", slot_timeout=0)["step"] == "put_off"

    @pytest.mark.parametrize(("phase", "step"), [("drain", "put_off"), ("reboot", "go")])
    def test_the_controller_s_own_node_goes_last_unless_its_reboot_was_sent(self, cluster, phase, step):
        cluster.node(unschedulable=True, cordon=CORDON, claim=DEAD_CLAIM, operation=record(phase))
        cluster.ledger(ledger=slot(claims=1))

        assert turn(cluster, play="resume", own=True)["step"] == step
        assert ("cordon" in cluster.marks()) is (step == "go")

    def test_it_does_not_ask_for_more_than_it_needs(self, cluster):
        assert turn(cluster, play="resume", when="required")["step"] == "put_off"


def test_its_run_lives_while_it_waits_for_canaries(cluster, monkeypatch):
    alive = []
    monkeypatch.setattr(admit, "await_canaries", lambda context, _options: alive.append(runs.live_ids(context.cluster)))
    turn(cluster, play="first", canaries=["node-2"], canary_hosts=["node-2"])

    assert alive == [{"me"}]


def test_a_canary_that_needs_nothing_says_so_to_other_slices(cluster):
    found = turn(cluster, when="required", answer={"needed": ""}, **AS_CANARY)
    assert (found["step"], found["changed"]) == ("skipped", False)
    assert cluster.marks()["operation"]["result"] == "skipped"


def test_a_canary_that_was_held_and_now_needs_nothing_says_so_too(cluster):
    cluster.node(operation=record("hold"))
    assert turn(cluster, when="required", answer={"needed": ""}, **AS_CANARY)["step"] == "skipped"
    assert cluster.marks()["operation"]["result"] == "skipped"


@pytest.mark.parametrize(
    ("result", "age", "again"),
    [("failed", 1, True), ("skipped", 1, False), ("skipped", 27, True), ("rebooted", 27, True)],
)
def test_a_canary_that_needs_nothing_any_more_says_so_too(cluster, result, age, again):
    """A person has repaired it, or the operation lasts for several nights."""
    old = to_text(cluster.now() - timedelta(hours=age))
    cluster.node(operation=record("drain", result, id=FRESH, since=old))
    options = {"operation": FRESH, "when": "required", "answer": {"needed": ""}}
    assert turn(cluster, **options, **AS_CANARY)["step"] == "skipped"
    written = cluster.marks()["operation"]
    assert (written["result"], written["since"] != old) == ("skipped" if again else result, again)


def test_the_canaries_are_looked_at_again_after_a_wait():
    """A canary may break while a node waits for its window or its holders."""
    waited = Facts(Settings("node-1", "kernel", "me"), canaries=Canaries())
    for facts in (waited.stale(), waited.after_holders(), waited.after_back()):
        assert facts.canaries is None


def test_the_record_of_a_canary_that_another_run_works_on_stays(cluster):
    theirs = record("drain", id="theirs")
    cluster.node(claim={**DEAD_CLAIM, "operation": "theirs"}, operation=theirs)
    assert turn(cluster, when="required", answer={"needed": ""}, **AS_CANARY)["step"] == "skipped"
    assert cluster.marks()["operation"] == theirs


@pytest.mark.parametrize(
    ("known", "cordon", "steps"),
    [
        (record("uncordon", "rebooted", boot_id_after="boot-2"), None, []),
        (record("ready", "failed"), CORDON, ["ready", "finish"]),
        (record("ready"), CORDON, ["ready", "finish"]),
    ],
)
def test_a_run_of_another_operation_that_waits_hides_no_reboot(cluster, known, cordon, steps):
    """The first operation is resumed after it, and does not reboot the node again."""
    cluster.node(boot_id="boot-2", unschedulable=bool(cordon), cordon=cordon, operation=known)
    cluster.hold()
    with pytest.raises(HoldfastError, match="still held"):
        turn(cluster, operation="firmware", run="other", hold_timeout=0)
    assert cluster.marks()["operation"]["id"] == "firmware"
    del cluster.objects[paths.lease("shop", "node-1")]
    assert turn(cluster)["steps"] == steps


def test_a_held_node_is_put_off(cluster):
    cluster.hold()
    found = turn(cluster, play="first")
    assert (found["step"], found["stage"]) == ("put_off", "waiting")
    assert found["why"].startswith("held by shop/app since 2026-11-21")
    assert set(cluster.marks()) == {"conditions"}
    assert set(cluster.conditions()) == {"MaintenancePlanned"}


class TestConditions:
    @pytest.mark.parametrize("claims", [True, False])
    def test_of_a_node_that_is_held_and_was_rebooted_long_ago(self, cluster, claims):
        """Its operation is resumed for several nights. A hold comes before or after the claim."""
        old = to_text(cluster.now() - timedelta(hours=27))
        cluster.node(operation=record("uncordon", "rebooted", id=FRESH, since=old))
        if claims:
            when_claimed(cluster, cluster.hold)
        else:
            cluster.hold()
        answer = {"needed": "a kernel", "boot_id": "boot-1"}
        assert turn(cluster, operation=FRESH, when="required", answer=answer, play="first")["step"] == "put_off"
        assert "claim" not in cluster.marks()
        assert set(cluster.conditions()) == {"MaintenancePlanned"}

    def test_a_claim_starts_the_maintenance(self, cluster):
        turn(cluster)
        assert set(cluster.conditions()) == {"MaintenanceInProgress"}
        assert cluster.conditions()["MaintenanceInProgress"].endswith("rolling reboot, operation kernel, run me")

    def test_they_cost_no_write(self, cluster):
        turn(cluster, lifecycle_conditions=False)
        assert cluster.conditions() == {}
        without, cluster.writes[:] = len(cluster.writes), []
        cluster.node()
        cluster.ledger(ledger=Ledger())
        turn(cluster)
        assert len(cluster.writes) <= without

    def test_another_writer_is_like_a_holder(self, cluster):
        cluster.condition("MaintenanceInProgress", lastTransitionTime=AT)
        found = turn(cluster, play="first")
        assert found["step"] == "put_off"
        assert found["why"] == f"another writer maintains it: MaintenanceInProgress is True since {AT} (Theirs: a disk)"
        with pytest.raises(HoldfastError, match="rolling_reboot_override_maintenance: true") as error:
            turn(cluster, play="last", hold_timeout=0)
        assert (error.value.kind, error.value.fields["stage"]) == ("timed_out", "waiting")
        assert cluster.ledger().slots == {}

    def test_the_plan_names_another_writer(self, cluster):
        cluster.condition("DrainInProgress")
        found = turn(cluster, check_mode=True)["result"]
        assert found["verdict"] == "later"
        assert "another writer maintains it: DrainInProgress" in found["detail"]

    def test_overridden(self, cluster):
        cluster.condition("MaintenanceInProgress")
        assert turn(cluster, override_maintenance=True)["step"] == "go"
        assert cluster.conditions() == {"MaintenanceInProgress": "a disk"}

    def test_another_writer_that_comes_with_the_claim(self, cluster):
        when_claimed(cluster, lambda: cluster.condition("DrainInProgress"))
        assert turn(cluster, play="first")["step"] == "put_off"
        assert cluster.ledger().slots == {}
        assert "claim" not in cluster.marks()
        assert set(cluster.conditions()) == {"MaintenancePlanned", "DrainInProgress"}

    def test_a_node_that_is_midway_is_finished(self, cluster):
        left_midway(cluster, "drain")
        cluster.condition("DrainInProgress")
        assert turn(cluster, play="first")["step"] == "go"

    def test_a_node_that_needs_nothing_any_more(self, cluster):
        cluster.hold()
        turn(cluster, play="first")
        found = turn(cluster, play="last", when="required", answer={"needed": ""})
        assert found["step"] == "skipped"
        assert (cluster.conditions(), "conditions" in cluster.marks()) == ({}, False)

    def test_without_the_option(self, cluster):
        cluster.hold()
        turn(cluster, play="first", lifecycle_conditions=False)
        assert cluster.marks() == {}


def test_a_hold_that_does_not_count(cluster):
    cluster.hold()
    assert turn(cluster, override_holds=True)["step"] == "go"


def test_a_held_node_is_waited_for(cluster):
    cluster.hold()
    with pytest.raises(HoldfastError) as caught:
        turn(cluster, hold_timeout=0)
    assert (caught.value.kind, caught.value.fields["stage"]) == ("timed_out", "waiting")
    assert cluster.marks()["operation"]["phase"] == "hold"


def test_an_agent_that_has_not_seen_the_end_of_a_hold_is_waited_for(cluster):
    """The hold does not count as a failure, and no slot is taken for it."""
    cluster.condition("ShutdownInhibited", reason="shop/app")
    with pytest.raises(HoldfastError, match=r"no Lease holds it.* still names shop/app") as caught:
        turn(cluster, hold_timeout=0)
    assert (caught.value.kind, caught.value.fields["stage"]) == ("timed_out", "waiting")
    assert cluster.ledger().slots == {}


def test_a_hold_that_comes_before_the_second_look(cluster):
    when_claimed(cluster, cluster.hold)
    found = turn(cluster, play="first")
    assert (found["step"], found["stage"], found["claimed"]) == ("put_off", "waiting", False)
    assert cluster.ledger().slots == {}
    assert "claim" not in cluster.marks()
    assert cluster.marks()["operation"]["phase"] == "hold"


def test_a_slot_that_passes_on_before_the_claim_is_left_to_its_run(cluster):
    cluster.lives("another")
    when_claimed(cluster, lambda: cluster.ledger(ledger=slot("another")))
    found = turn(cluster, play="first")
    assert (found["step"], found["why"]) == ("put_off", "the slot of node node-1 passed to another run")
    assert cluster.ledger().slots["node-1"].run == "another"
    assert "claim" not in cluster.marks()


def left_midway(cluster, phase, **node):
    cluster.node(unschedulable=True, cordon=CORDON, claim=DEAD_CLAIM, operation=record(phase), **node)
    cluster.ledger(ledger=slot())


def test_a_node_that_was_left_midway_is_taken_over(cluster):
    left_midway(cluster, "drain")
    found = turn(cluster, when="required")
    assert (found["step"], found["steps"], found["needed"]) == ("go", STEPS, "another run had started on it")
    assert cluster.marks()["claim"]["run"] == "me"
    assert cluster.ledger().slots["node-1"].run == "me"


def test_a_node_that_was_left_after_its_reboot_is_finished_though_it_is_held(cluster):
    left_midway(cluster, "reboot", boot_id="boot-2")
    cluster.hold()
    found = turn(cluster, play="first")
    assert (found["step"], found["steps"], found["boot_id"]) == ("go", ["ready", "finish"], "boot-1")


@pytest.mark.parametrize("play", ["first", "last"])
def test_a_node_that_was_left_midway_and_is_held_is_put_back_before_anybody_waits(cluster, play):
    left_midway(cluster, "drain")
    cluster.hold()
    if play == "first":
        assert turn(cluster, play=play)["step"] == "put_off"
    else:
        with pytest.raises(HoldfastError, match="is still held after 0 s"):
            turn(cluster, play=play, hold_timeout=0)
    assert not cluster.cordoned()
    assert cluster.ledger().slots == {}
    assert set(cluster.marks()) == {"operation", "conditions"}
    assert cluster.marks()["operation"]["phase"] == "hold"
    assert set(cluster.conditions()) == {"MaintenancePlanned"}


def test_a_node_that_is_done_when_its_claim_is_taken_over_keeps_no_slot(cluster):
    left_midway(cluster, "drain")
    cluster.hold()
    done = {"claim": {"run": "me", "operation": "kernel"}, "operation": record("uncordon", "rebooted")}
    when_claimed(cluster, lambda: cluster.node(boot_id="boot-2", **done))
    assert turn(cluster, play="first")["step"] == "skipped"
    assert cluster.ledger().slots == {}
    assert "claim" not in cluster.marks()


def test_too_many_have_failed(cluster):
    node = Member("node-2", ready=True, unschedulable=False)
    cluster.ledger(ledger=fail(Ledger(), node, "kernel", "it broke"))
    with pytest.raises(HoldfastError, match="1 node failed in this operation and max_failed is 0") as caught:
        turn(cluster)
    assert (caught.value.kind, caught.value.fields["stage"], caught.value.fields["claimed"]) == (
        "refused",
        "waiting",
        False,
    )


def test_too_many_have_failed_in_the_operation_of_another_group(cluster):
    node = Member("node-2", ready=True, unschedulable=False)
    cluster.ledger("first", fail(Ledger(), node, "kernel", "it broke"))
    with pytest.raises(HoldfastError, match="1 node failed in this operation and max_failed is 0") as caught:
        turn(cluster, operation_group="first")
    assert caught.value.fields["counted_in"] == "first"


def test_the_wait_for_a_slot_continues_in_the_next_turn(cluster):
    cluster.ledger(ledger=slot("another", node="node-2"))
    cluster.lives("another")
    cluster.node("node-2", claim={**DEAD_CLAIM, "run": "another"})
    # Something happened in the group: the time is not over yet.
    late = {"name": "node-3", "group": "default", "reason": "it broke", "healthy": True, "run": "me"}
    found = turn(cluster, play="first", slot_timeout=10, last=WAITED, uncounted=[late], max_failed=1)
    assert (found["step"], found["steps"], found["stage"]) == ("wait", ["again"], "waiting")
    assert found["waited"] >= 101


def test_the_wait_for_a_slot_ends(cluster):
    cluster.ledger(ledger=slot("another", node="node-2"))
    cluster.lives("another")
    cluster.node("node-2", claim={**DEAD_CLAIM, "run": "another"})
    with pytest.raises(HoldfastError, match="got no slot of group default within 10 s: 1 of 1 allowed") as caught:
        turn(cluster, play="first", slot_timeout=10, last=WAITED)
    assert caught.value.kind == "timed_out"
    assert "Raise rolling_reboot_slot_timeout, or" in caught.value.message


def test_a_wait_for_the_quorum_that_ends_names_the_variable_of_the_role():
    cluster = QuietCluster()
    for name in ("node-1", "node-2", "node-3"):
        cluster.node(name, labels={CONTROL_PLANE: ""}, ready=name != "node-3")
        cluster.etcd_pod(name)
    with pytest.raises(TimedOut) as caught:
        turn(cluster, quorum_timeout=1, count_others=False)
    assert caught.value.message.endswith("or raise rolling_reboot_quorum_timeout.")


def test_failures_of_other_hosts_are_counted_first(cluster):
    cluster.ledger(ledger=slot("me", node="node-2"))
    cluster.node("node-2", claim={**DEAD_CLAIM, "run": "me"})
    lost = {"node": "node-2", "group": "default", "claimed": True, "result": None}
    with pytest.raises(HoldfastError, match=r"node-2 \(its host dropped out"):
        turn(cluster, play="first", hosts=[lost])
    assert cluster.ledger().slots["node-2"].state == "failed"


def test_failures_of_hosts_with_a_run_of_their_own_are_counted_under_that_run(cluster):
    """As in the role without the playbook."""
    cluster.ledger(ledger=slot("job/two", node="node-2"))
    cluster.node("node-2", claim={**DEAD_CLAIM, "run": "job/two"}, ready=False)
    lost = {"node": "node-2", "group": "default", "claimed": True, "result": None, "run": "job/two"}
    with pytest.raises(HoldfastError, match=r"node-2 \(its host dropped out"):
        turn(cluster, run="job/one", hosts=[lost], max_unavailable="2")
    assert cluster.ledger().failed("kernel") == 1


def test_the_quorum_has_to_be_known_when_the_turn_comes(cluster):
    for name in ("node-1", "node-2", "node-3"):
        cluster.node(name, labels={CONTROL_PLANE: ""})
        cluster.etcd_pod(name)

    def pods_go(_verb, path, body):
        if path.endswith("/node-1") and (body["metadata"].get("annotations") or {}).get(CLAIM):
            for place in [place for place in cluster.objects if "/pods/" in place]:
                del cluster.objects[place]

    cluster.hooks.append(pods_go)
    with pytest.raises(Refused, match="does not run in pods"):
        turn(cluster)


def test_a_failure_that_was_counted_does_not_let_a_lone_host_ask_for_ever(cluster):
    cluster.lives("other")
    cluster.ledger(ledger=slot("other", node="node-2"))
    cluster.node("node-2", claim={**DEAD_CLAIM, "run": "other"})
    known = {"name": "node-3", "group": "default", "reason": "boot", "healthy": True, "run": "me"}
    cluster.node("node-3", ready=True)
    with pytest.raises(TimedOut, match="got no slot"):
        turn(cluster, uncounted=[known], slot_timeout=0, max_failed=5)


def test_a_blocked_node_is_not_waited_for_with_a_timeout_of_0():
    cluster = QuietCluster()
    cluster.node()
    cluster.node("node-2")
    pod = {
        "metadata": {"name": "backup", "namespace": "shop", "labels": {"job": "yes"}, "uid": "u"},
        "spec": {"nodeName": "node-1"},
        "status": {"phase": "Running"},
    }
    cluster._store("TEST", paths.pod("shop", "backup"), pod)
    with pytest.raises(TimedOut, match="still block") as caught:
        turn(cluster, pods=[{"selector": "job=yes"}], hold_timeout=0)
    assert caught.value.fields["stage"] == "waiting"
    assert "raise rolling_reboot_hold_timeout, or" in caught.value.message
    assert cluster.ledger().slots == {}


def test_failures_of_other_hosts_are_counted_in_the_group_of_the_operation(cluster):
    cluster.ledger("control-plane", slot("me", node="node-2"))
    cluster.node("node-2", claim={**DEAD_CLAIM, "run": "me"})
    lost = {"node": "node-2", "group": "control-plane", "counted_in": "default", "claimed": True, "result": None}
    with pytest.raises(HoldfastError, match=r"node-2 \(its host dropped out"):
        turn(cluster, play="first", hosts=[lost])
    assert cluster.ledger().failed("kernel") == 1


def test_failures_that_could_not_be_counted_are_counted_first(cluster):
    late = {"name": "node-2", "group": "default", "reason": "it broke", "healthy": True, "run": "me"}
    with pytest.raises(HoldfastError, match=r"node-2 \(it broke\)"):
        turn(cluster, uncounted=[late])


def test_if_a_failure_can_t_be_counted_no_node_is_begun(cluster):
    late = {"name": "node-2", "group": "other", "reason": "it broke", "healthy": True, "run": "me"}
    cluster.broken.append("group.other")
    with pytest.raises(ApiFailure) as caught:
        turn(cluster, uncounted=[late])
    assert caught.value.fields["stage"] == "waiting"
    assert cluster.ledger().slots == {}


def test_a_failure_after_the_claim_says_how_far_it_came(cluster):
    cluster.node(labels={CONTROL_PLANE: ""})
    cluster.node("node-2", labels={CONTROL_PLANE: ""})
    when_claimed(cluster, lambda: cluster.broken.append("/leases"))
    with pytest.raises(ApiFailure) as caught:
        turn(cluster, quorum_command="etcd-check")
    fields = caught.value.fields
    assert (fields["stage"], fields["claimed"], fields["group"]) == ("working", True, "control-plane")
    assert fields["boot_id"] == "boot-1"


def test_control_plane_nodes_have_a_budget_of_their_own(cluster):
    cluster.node(labels={CONTROL_PLANE: ""})
    cluster.node("node-2", labels={CONTROL_PLANE: ""})
    found = turn(cluster, quorum_command="etcd-check", max_unavailable="50%", topology_key="zone")
    assert (found["group"], found["steps"]) == ("control-plane", STEPS)
    assert found["method"] == "after_quorum_command"
    assert cluster.ledger("control-plane").policy.selector == CONTROL_PLANE
    assert cluster.ledger().slots == {}


@pytest.mark.parametrize("options", [{}, {"quorum_command": "etcd-check"}])
@pytest.mark.parametrize("role", ["master", "etcd"])
def test_a_member_of_etcd_without_the_label_of_the_control_plane_is_refused(cluster, options, role):
    """It would get a slot of the workers, so two members of etcd could go down together."""
    for name in ("node-1", "node-2", "node-3"):
        cluster.node(name, labels={f"node-role.kubernetes.io/{role}": ""})
        cluster.etcd_pod(name)
    planned = turn(cluster, check_mode=True, **options)["result"]
    assert planned["verdict"] == "never"
    cluster.writes.clear()
    with pytest.raises(Refused, match=f"kubectl label node node-1 {CONTROL_PLANE}= ") as caught:
        turn(cluster, **options)
    assert caught.value.message.startswith(planned["detail"])
    assert (caught.value.fields["claimed"], cluster.ledger().slots) == (False, {})
    assert not [path for _verb, path, *_more in cluster.writes if "/nodes/" in path]


@pytest.mark.parametrize("ready", [True, False])
def test_members_of_etcd_on_other_nodes_than_the_control_plane_count(ready):
    cluster = QuietCluster()
    for name in ("node-1", "node-2"):
        cluster.node(name, labels={CONTROL_PLANE: ""})
    for name in ("etcd-1", "etcd-2", "etcd-3"):
        cluster.node(name, ready=ready or name == "etcd-1", labels={"node-role.kubernetes.io/etcd": ""})
        cluster.etcd_pod(name)
    if ready:
        found = turn(cluster, quorum_timeout=1)
        assert (found["method"], found["etcd_selector"]) == ("after_etcd", "component=etcd")
    else:
        with pytest.raises(TimedOut, match="etcd-2: its Node is not Ready; etcd-3: its Node is not Ready"):
            turn(cluster, quorum_timeout=1)


def test_the_user_s_tasks_before_the_slot(cluster):
    files = {"before_slot_tasks": "slot.yml", "check_tasks": "check.yml"}
    first = turn(cluster, **files)
    assert (first["step"], first["steps"]) == ("before_slot", ["before_slot", "again"])
    found = turn(cluster, **files, last=first)
    assert found["steps"] == ["cordon", "opt_outs", "drain", "reboot", "ready", "check", "finish"]


def test_the_files_of_the_steps_are_in_the_answer(cluster):
    files = {"before_slot_tasks": "slot.yml", "check_tasks": "check.yml", "notify": "x.yml", "notify_phases": ["end"]}
    first = turn(cluster, **files)
    assert first["files"] == {"before_slot": ["slot.yml"]}
    found = turn(cluster, **files, last=first)
    assert found["files"] == {"check": ["check.yml"], "after": ["notify.yml"]}
    assert found["steps"][-2:] == ["finish", "after"]


@pytest.fixture
def silenced(monkeypatch):
    """What was asked of an Alertmanager, and whether the node was claimed then."""
    asked = []

    def note(what):
        return lambda alertmanager, node: asked.append((what, node))

    monkeypatch.setattr(Alertmanager, "silence", note("silence"))
    monkeypatch.setattr(Alertmanager, "unsilence", note("unsilence"))
    return asked


ALERTMANAGER = {"alertmanager": {"url": "http://alertmanager.invalid"}}


def test_the_alerts_of_a_claimed_node_are_silenced(cluster, silenced):
    turn(cluster, **ALERTMANAGER)
    assert silenced == [("silence", "node-1")]


def test_a_node_that_waits_is_not_silenced(cluster, silenced):
    cluster.hold()
    turn(cluster, play="first", **ALERTMANAGER)
    assert silenced == []


def test_the_silences_end_with_the_claim(cluster, silenced):
    when_claimed(cluster, cluster.hold)
    assert turn(cluster, play="first", **ALERTMANAGER)["step"] == "put_off"
    assert silenced == [("silence", "node-1"), ("unsilence", "node-1")]


def test_a_plan_silences_nothing(cluster, silenced):
    turn(cluster, check_mode=True, **ALERTMANAGER)
    assert silenced == []


def test_the_last_answer_of_an_earlier_pass_does_not_count(cluster):
    cluster.hold()
    put_off = turn(cluster, play="first", last={**WAITED, "attempts": 3})
    assert (put_off["step"], put_off["attempts"]) == ("put_off", 3)
    with pytest.raises(HoldfastError) as caught:
        turn(cluster, play="last", last=put_off, hold_timeout=0)
    assert caught.value.fields["attempts"] == 0


def test_the_user_sees_that_a_node_is_put_off(cluster):
    cluster.hold()
    said = []
    turn(cluster, play="first", said=said)
    assert len(said) == 1
    assert said[0].startswith("Node node-1 is put off: held by shop/app")


def test_a_warning_is_given_once(cluster):
    said = []
    turn(cluster, method="systemd", shutdown={"in_effect": False, "enabled": True, "problems": []}, said=said)
    assert len(said) == 1
    assert said[0].startswith("WARNING: Graceful shutdown of node node-1 is not in effect")


def test_a_warning_is_given_after_the_question_and_not_at_each_request(cluster):
    said = []
    cluster.hold()
    asked = turn(cluster, method="systemd", play="first", said=said)
    assert (asked["steps"], said) == (["shutdown", "again"], [])
    answer = {"in_effect": False, "enabled": True, "problems": []}
    turn(cluster, method="systemd", play="first", last=asked, shutdown=answer, said=said)
    assert [line.partition(":")[0] for line in said] == ["WARNING", "Node node-1 is put off"]
    said.clear()
    turn(cluster, method="systemd", play="first", last={**WAITED, "shutdown": answer}, said=said)
    assert [line.partition(":")[0] for line in said] == ["Node node-1 is put off"]


@pytest.mark.parametrize(
    ("options", "adopt_within", "asks"),
    [
        ({"when": "required"}, 3600, True),
        ({"when": "required"}, 7200, False),
        ({"when": "always"}, 3600, False),
        ({"when": "required", "operation": "kernel"}, 3600, False),
        ({"when": "required", "operation": "reboot-20261120T073000Z"}, 3600, True),
    ],
    ids=["long ago", "not long ago", "always", "the user names the operation", "the plan names the operation"],
)
def test_a_node_that_was_rebooted_long_ago_in_this_operation_is_asked_again(cluster, options, adopt_within, asks):
    cluster.node(operation={**record("uncordon", "rebooted"), "since": "2026-11-21T07:30:00.000000Z"})
    named = {key: value for key, value in options.items() if key == "operation"}
    ours, others = split({**GIVEN, "when": options["when"]})
    given = settings(**ours, **named, adopt_within=adopt_within)
    found = ArgumentSpecValidator(module.SPEC["argument_spec"]).validate({"settings": given, **others})
    context = Context(found.validated_parameters)
    context.cluster = cluster
    assert reboot_turn(context, found.validated_parameters)["step"] == ("ask" if asks else "skipped")


TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


@pytest.mark.parametrize("marks", [{"failover": {"phase": "fence"}, "ready": False}, {"cordon": {"owner": "storage"}}])
def test_a_node_that_is_left_to_other_work_before_it_is_asked_does_not_count_as_failed(cluster, marks):
    cluster.node(**marks)
    with pytest.raises(Refused) as caught:
        turn(cluster, when="required")
    assert caught.value.fields["stage"] == "waiting"


@pytest.mark.parametrize("boot_id", ["boot-1", "boot-2"])
def test_a_node_that_is_failed_over_is_left_to_its_recovery(cluster, boot_id):
    cluster.node(ready=False, boot_id=boot_id, operation=record("reboot"), failover={"phase": "move"})
    cluster.objects[paths.node("node-1")]["spec"]["taints"] = [TAINT]
    before = cluster.marks()
    with pytest.raises(Refused, match=r"the taint .*out-of-service\. Run .*recover first") as caught:
        turn(cluster, method="command")
    assert (caught.value.fields["stage"], caught.value.fields["claimed"]) == ("waiting", False)
    assert (cluster.marks(), cluster.ledger().slots) == (before, {})


@pytest.mark.parametrize("ready", [False, True])
def test_a_node_whose_failover_has_not_ended_is_left_to_it_unless_it_is_back(cluster, ready):
    cluster.node(ready=ready, failover={"phase": "fence"})
    if ready:
        assert turn(cluster)["step"] == "go"
    else:
        with pytest.raises(Refused, match="its failover has not ended"):
            turn(cluster)
