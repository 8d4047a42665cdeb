# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reboot of a node ends, well or badly, on an API server in memory."""

from __future__ import annotations

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from unit.reboot.memory_cluster import AT, MemoryCluster
from unit.reboot.variables import settings

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Held, HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import ClaimLost
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger, Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.finish import reboot_finish
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.permit import reboot_gate
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.silences import Alertmanager
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_finish as module

CLAIM = {"run": "me", "operation": "kernel", "purpose": "rolling_reboot", "since": AT}
CORDON = {"owner": "rolling_reboot", "reason": "kernel", "since": AT, "unschedulable_before": False}
BROKEN = {"msg": "It timed out.", "error": "timed_out"}


# The steps of a turn that resumes a reboot which an earlier run may have sent.
RESUMED = ["before_reboot", "reboot", "finish"]


def record(phase, run="me", operation="kernel", **more):
    return {
        "id": operation,
        "run": run,
        "started": AT,
        "since": AT,
        "phase": phase,
        "phases": {"drain": 3.0},
        "boot_id_before": "boot-1",
        "versions_before": {"kernel_version": "kernel of boot-1"},
        "unschedulable_before": False,
        "result": "",
        "detail": "",
        **more,
    }


def behind(known):
    """The same record, after a run of another operation has waited for the node."""
    return record("slot", "other", "firmware", unchecked=True, earlier=[known])


def slot(run="me"):
    return Ledger(slots={"node-1": Slot("node-1", "kernel", run, AT, boot_id="boot-1", claims=1)})


@pytest.fixture
def cluster():
    """A node that this run works on: cordoned, claimed, with a slot."""
    found = MemoryCluster()
    found.ledger(ledger=slot())
    at_work(found, "drain")
    return found


def at_work(cluster, phase, **node):
    marks = {"claim": CLAIM, "cordon": CORDON, "operation": record(phase), **node}
    cluster.node(unschedulable=True, **marks)


def finish(cluster, **options):
    names = ("stage", "steps", "attempts", "needed", "group", "counted_in", "step")
    turn = {
        "stage": "working",
        "steps": ["cordon", "reboot", "finish"],
        **{key: options.pop(key) for key in names if key in options},
    }
    given = {"name": "node-1", "operation": "kernel", "run": "me", "settings": settings(), "turn": turn, **options}
    found = ArgumentSpecValidator(module.SPEC["argument_spec"]).validate(given)
    assert not found.error_messages
    context = Context(found.validated_parameters)
    context.cluster = cluster
    return reboot_finish(context, found.validated_parameters)


def test_a_healthy_node_is_given_back(cluster):
    at_work(cluster, "ready", boot_id="boot-2")
    found = finish(cluster, needed="a kernel", steps=["reboot", "finish", "after"])
    assert (found["step"], found["changed"], found["uncounted"]) == ("done", True, [])
    assert found["steps"] == ["after"]
    result = found["result"]
    assert {**result, "phases": set(result["phases"])} == {
        "name": "node-1",
        "result": "rebooted",
        "detail": "a kernel",
        "boot_id_before": "boot-1",
        "boot_id_after": "boot-2",
        "versions_before": {"kernel_version": "kernel of boot-1"},
        "versions_after": {"kernel_version": "kernel of boot-2"},
        "phases": {"drain", "ready", "uncordon"},
        "leftovers": [],
    }
    assert not cluster.cordoned()
    assert set(cluster.marks()) == {"operation"}
    assert cluster.marks()["operation"]["result"] == "rebooted"
    assert cluster.ledger().slots == {}


def test_a_pod_that_can_not_be_removed_does_not_fail_a_healthy_node(cluster):
    at_work(cluster, "ready", boot_id="boot-2")
    cluster.broken = ["/pods"]
    found = finish(cluster, steps=["reboot", "finish"])

    assert (found["step"], found["result"]["result"], found["result"]["leftovers"]) == ("done", "rebooted", [])
    assert not cluster.cordoned()
    assert cluster.ledger().slots == {}


def test_a_run_that_lost_its_claim_gives_nothing_back(cluster):
    at_work(cluster, "ready", boot_id="boot-2", claim={**CLAIM, "run": "another"})
    with pytest.raises(ClaimLost) as caught:
        finish(cluster)
    assert (caught.value.fields["stage"], caught.value.fields["group"]) == ("working", "default")
    assert cluster.cordoned()
    assert "node-1" in cluster.ledger().slots


def test_a_failure_is_counted_although_the_run_gives_no_sign_of_life(cluster):
    cluster.broken = ["/leases/run"]
    found = finish(cluster, failed=BROKEN)

    assert (found["step"], found["uncounted"]) == ("failed", [])
    assert cluster.ledger().failed("kernel") == 1


def test_a_failure_that_could_not_be_counted_is_reported(cluster):
    cluster.broken = ["."]
    found = finish(cluster, failed=BROKEN, group="control-plane", counted_in="default")

    assert [(item["name"], item["group"]) for item in found["uncounted"]] == [
        ("node-1", "control-plane"),
        ("node-1", "default"),
    ]


@pytest.mark.parametrize("broken", ["/leases/run", "/nodes/"])
def test_the_cleanup_after_a_failed_end_knows_the_turn(cluster, broken):
    cluster.broken = [broken]
    with pytest.raises(HoldfastError) as caught:
        finish(cluster, group="control-plane", counted_in="default")

    fields = caught.value.fields
    assert {name: fields[name] for name in ("node", "group", "counted_in", "steps", "claimed")} == {
        "node": "node-1",
        "group": "control-plane",
        "counted_in": "default",
        "steps": ["cordon", "reboot", "finish"],
        "claimed": True,
    }


def test_a_node_that_a_hold_refused_is_put_back(cluster):
    found = finish(cluster, rebooted={"step": "held", "why": "held by shop/app"}, attempts=1)
    assert (found["stage"], found["attempts"], found["left"]) == ("waiting", 2, "held by shop/app")
    assert (found["step"], found["steps"], found["result"]) == ("put_back", ["again"], None)
    assert found["why"] == "Node node-1 is uncordoned, and tried again later: held by shop/app"
    assert not cluster.cordoned()
    assert set(cluster.marks()) == {"operation", "conditions"}
    assert cluster.marks()["operation"]["phase"] == "hold"
    assert cluster.ledger().slots == {}
    assert set(cluster.conditions()) == {"MaintenancePlanned"}


class TestNodeThatHasNotPassedItsCheckSinceAnEarlierOperation:
    """Its cordon is older than the work of this run, so it stays if the work ends before it is done."""

    @pytest.fixture
    def unchecked(self, cluster):
        at_work(cluster, "drain", operation=record("drain", unchecked=True))
        return cluster

    def test_a_drain_that_fails_leaves_it_cordoned(self, unchecked):
        found = finish(unchecked, failed=BROKEN, where="Drain")

        assert found["result"]["detail"].endswith(
            "The node stays cordoned: fix its problem, then run this again to continue."
        )
        assert unchecked.cordoned()
        assert "cordon" in unchecked.marks()
        assert unchecked.ledger().slots == {}

    def test_a_hold_that_refuses_the_reboot_leaves_it_cordoned(self, unchecked):
        found = finish(unchecked, rebooted={"step": "held", "why": "held by shop/app"})

        assert found["why"] == "Node node-1 stays cordoned, and tried again later: held by shop/app"
        assert unchecked.cordoned()
        assert unchecked.ledger().slots == {}

    def test_its_reboot_ends_that(self, unchecked):
        at_work(unchecked, "ready", operation=record("ready", unchecked=True), boot_id="boot-2")
        finish(unchecked)

        assert not unchecked.cordoned()
        assert "unchecked" not in unchecked.marks()["operation"]


class TestNodeThatSomeoneElseHasCordonedAgain:
    @pytest.fixture
    def again(self, cluster):
        at_work(cluster, "drain")
        cluster.objects[paths.node("node-1")]["metadata"]["managedFields"] = [
            {"manager": "kubectl-cordon", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}},
            {"manager": "run", "fieldsV1": {"f:metadata": {"f:annotations": {"f:holdfast.dev/cordon": {}}}}},
        ]
        return cluster

    def test_a_failure_says_why_it_stays_cordoned(self, again):
        found = finish(again, failed=BROKEN, where="Drain")

        assert found["result"]["detail"] == (
            "Drain: It timed out. The node stays cordoned: kubectl-cordon has cordoned it again since rolling_reboot "
            "cordoned it."
        )
        assert again.cordoned()
        assert "cordon" not in again.marks()

    def test_a_hold_that_refuses_the_reboot_leaves_it_cordoned(self, again):
        found = finish(again, rebooted={"step": "held", "why": "held by shop/app"})

        assert found["why"] == "Node node-1 stays cordoned, and tried again later: held by shop/app"
        assert again.cordoned()


def test_no_slot_is_given_back_for_a_node_that_is_down(cluster):
    at_work(cluster, "reboot", ready=False)
    with pytest.raises(Held, match="midway and not Ready, and now a hold refuses its reboot: held by shop/app"):
        finish(cluster, rebooted={"step": "held", "why": "held by shop/app"})
    assert "node-1" in cluster.ledger().slots


def test_a_healthy_node_is_given_back_after_a_failure(cluster):
    found = finish(cluster, failed=BROKEN, where="Drain")
    assert found["result"] == {
        "name": "node-1",
        "result": "failed",
        "detail": "Drain: It timed out. The node was uncordoned.",
        "boot_id_before": "boot-1",
        "boot_id_after": "boot-1",
        "versions_before": {"kernel_version": "kernel of boot-1"},
        "versions_after": {"kernel_version": "kernel of boot-1"},
        "phases": found["result"]["phases"],
    }
    assert not cluster.cordoned()
    assert cluster.ledger().slots == {}
    assert cluster.ledger().failures("kernel") == {"node-1": "It timed out."}
    assert cluster.marks()["operation"]["result"] == "failed"
    assert "claim" not in cluster.marks()


def test_a_failure_says_why_a_healthy_node_stays_cordoned(cluster):
    at_work(cluster, "drain", cordon={**CORDON, "unschedulable_before": True})
    found = finish(cluster, failed=BROKEN)
    assert found["result"]["detail"] == "It timed out. The node stays cordoned: it was cordoned before."
    assert cluster.cordoned()
    assert "cordon" not in cluster.marks()


@pytest.mark.parametrize(
    ("phase", "node", "options"),
    [
        ("reboot", {"ready": False}, {}),
        ("ready", {"boot_id": "boot-2"}, {}),
        ("reboot", {}, {}),
        ("reboot", {}, {"failed": {"msg": "It timed out.", "sent": True}}),
    ],
    ids=["not Ready", "failed its check", "may be off", "was told to reboot"],
)
def test_a_node_that_is_not_healthy_stays_cordoned_and_keeps_its_slot(cluster, phase, node, options):
    at_work(cluster, phase, **node)
    found = finish(cluster, **{"failed": BROKEN, **options})
    assert found["result"]["result"] == "failed"
    assert "The node stays cordoned: fix its problem" in found["result"]["detail"]
    assert cluster.cordoned()
    assert cluster.ledger().slots["node-1"].state == "failed"
    assert cluster.ledger().failed("kernel") == 1


def test_a_node_that_a_person_has_uncordoned_does_not_stay_cordoned(cluster):
    cluster.node(ready=False, claim=CLAIM, cordon=CORDON, operation=record("drain"))
    assert finish(cluster, failed=BROKEN)["result"]["detail"] == "It timed out."
    assert "cordon" in cluster.marks()


def test_a_reboot_that_was_refused_did_not_switch_the_node_off(cluster):
    at_work(cluster, "reboot")
    found = finish(cluster, failed={"msg": "It is paused.", "error": "refused"})
    assert "The node was uncordoned." in found["result"]["detail"]
    assert not cluster.cordoned()


@pytest.mark.parametrize(
    "failed",
    [
        BROKEN,
        {"msg": "It is held.", "error": "held"},
        {"msg": "It has block locks.", "error": "timed_out", "sent": False},
        {"msg": "etcd would lose its quorum."},
    ],
    ids=["timed out", "refused", "not sent by this run", "in the user's tasks"],
)
@pytest.mark.parametrize("steps", [RESUMED, None], ids=["in the role's steps", "before its turn had steps"])
@pytest.mark.parametrize("known", [record("reboot"), record("reboot", "dead"), behind(record("reboot", "dead"))])
def test_a_node_that_an_earlier_run_may_have_sent_its_reboot_keeps_slot_and_cordon(cluster, failed, steps, known):
    """That request may still be pending, for example at metal3."""
    at_work(cluster, "reboot", operation=known)
    found = finish(cluster, failed=failed, steps=steps)
    assert "The node stays cordoned" in found["result"]["detail"]
    assert cluster.cordoned()
    assert cluster.ledger().slots["node-1"].state == "failed"


@pytest.mark.parametrize("failed", [{"error": "refused"}, {"sent": False}])
def test_the_user_s_tasks_can_t_say_that_nothing_was_sent(cluster, failed):
    """An earlier one of them may have asked a BMC."""
    at_work(cluster, "reboot")
    finish(cluster, failed={"msg": "The second task failed.", **failed}, settings={**settings(), "method": "command"})
    assert cluster.cordoned()
    assert cluster.ledger().slots["node-1"].state == "failed"


@pytest.mark.parametrize("known", [record("reboot", "dead"), behind(record("reboot", "dead"))])
def test_a_hold_does_not_put_back_a_node_that_an_earlier_run_may_have_sent_its_reboot(cluster, known):
    at_work(cluster, "reboot", operation=known)
    held = {"step": "held", "why": "held by shop/app"}
    with pytest.raises(Held, match="may still go down, and now a hold refuses its reboot: held by shop/app"):
        finish(cluster, rebooted=held, steps=RESUMED)
    assert cluster.cordoned()
    assert "claim" in cluster.marks()
    assert cluster.ledger().slots["node-1"].state == "active"


def test_a_hold_puts_back_a_node_whose_reboot_this_turn_recorded(cluster):
    at_work(cluster, "reboot")
    assert finish(cluster, rebooted={"step": "held", "why": "held by shop/app"})["step"] == "put_back"
    assert not cluster.cordoned()


@pytest.mark.parametrize("phase", ["", "slot", "ready"])
def test_a_node_that_an_earlier_operation_left_cordoned_stays_so(cluster, phase):
    """This run has not begun with it: it could not reach its host."""
    mine = record(phase) if phase != "ready" else record(phase, "another", "earlier")
    cluster.node(unschedulable=True, cordon={**CORDON, "reason": "earlier"}, operation=mine)
    cluster.ledger(ledger=Ledger())
    found = finish(cluster, failed={"msg": "No route to host.", "error": "unknown"}, stage="looking", steps=None)
    assert found["result"]["detail"] == (
        "No route to host. The node stays cordoned: fix its problem, then run this again to continue."
    )
    assert cluster.cordoned()
    assert "cordon" in cluster.marks()
    assert cluster.ledger().failed("kernel") == 1


def taken_over(cluster, *, after):
    """Another run takes slot and claim directly before this run writes the Node for the first time."""
    find = cluster.find

    def passed_on(path):
        if path.endswith("/nodes/node-1"):
            after.append(path)
            if len(after) == 2:
                at_work(cluster, "drain", claim={**CLAIM, "run": "another"}, operation=record("drain", "another"))
                cluster.ledger(ledger=slot("another"))
        return find(path)

    cluster.find = passed_on


@pytest.mark.parametrize("ready", [True, False], ids=["healthy", "unhealthy"])
def test_a_run_that_loses_its_node_in_its_cleanup_leaves_it_to_the_new_owner(cluster, ready):
    at_work(cluster, "drain", ready=ready)
    taken_over(cluster, after=[])
    found = finish(cluster, failed=BROKEN)
    assert found["result"]["result"] == "lost"
    assert "has lost its claim on node node-1: it now belongs to run another" in found["result"]["detail"]
    assert "stays cordoned" not in found["result"]["detail"]
    assert cluster.cordoned()
    assert cluster.marks()["operation"] == record("drain", "another")
    assert cluster.marks()["claim"]["run"] == "another"
    assert cluster.ledger().slots == slot("another").slots
    assert cluster.ledger().failed("kernel") == 0


@pytest.mark.parametrize("waits", [False, True])
def test_a_node_that_another_run_has_finished_is_no_failure(cluster, waits):
    theirs = {**record("uncordon", "another"), "result": "rebooted"}
    theirs = behind(theirs) if waits else theirs
    cluster.node(boot_id="boot-2", operation=theirs)
    cluster.ledger(ledger=Ledger())
    assert finish(cluster, failed=BROKEN)["result"]["result"] == "stopped"
    assert cluster.marks()["operation"] == theirs
    assert cluster.ledger().failed("kernel") == 0


def test_a_run_that_lost_a_node_which_nobody_has_taken_over_is_stopped(cluster):
    """The operation is not complete: a person has released the node, and a run of another operation waits for it."""
    cluster.node(operation=behind({**record("drain"), "result": "failed"}))
    assert finish(cluster, failed={"msg": "It is lost.", "error": ClaimLost.kind})["result"]["result"] == "stopped"


def test_all_that_the_runs_of_an_operation_did_despite_holds_and_budgets_is_named(cluster):
    """The run that reports may have other options than the one that died."""
    despite = {"overridden_holds": ["shop/app", 3], "deleted_pods": ["shop/db-0"]}
    at_work(cluster, "ready", boot_id="boot-2", operation={**record("ready"), **despite})
    found = finish(cluster, needed="a kernel", steps=["ready", "finish"])
    assert found["result"]["detail"] == (
        "a kernel; holds were overridden: shop/app; pods were deleted despite their budgets: shop/db-0"
    )
    assert cluster.marks()["operation"]["detail"] == found["result"]["detail"]


def test_a_run_that_resumes_reports_the_holds_that_the_dead_run_overrode(cluster):
    cluster.hold()
    params = {"name": "node-1", "operation": "kernel", "run": "me", "boot_id": "boot-1", "override_holds": True}
    context = Context(params)
    context.cluster = cluster
    assert reboot_gate(context, params)["step"] == "go"

    # The run dies after it has sent the reboot. The next one does not override holds.
    cluster.ledger(ledger=slot("next"))
    recorded = {**cluster.marks()["operation"], "run": "next"}
    at_work(cluster, "reboot", boot_id="boot-2", operation=recorded, claim={**CLAIM, "run": "next"})
    found = finish(cluster, needed="a kernel", run="next", steps=["ready", "finish"])

    assert found["result"]["detail"] == "a kernel; holds were overridden: shop/app"
    assert found["result"]["overridden_holds"] == ["shop/app"]


@pytest.mark.parametrize("operation", ["kernel", "another"])
def test_a_failure_names_the_holds_that_its_reboot_overrode(cluster, operation):
    at_work(cluster, "reboot", operation={**record("reboot"), "id": operation, "overridden_holds": ["shop/app"]})
    found = finish(cluster, failed=BROKEN)
    assert ("Holds were overridden: shop/app." in found["result"]["detail"]) is (operation == "kernel")


@pytest.mark.parametrize("error", ["not_found", "timed_out"])
def test_the_slot_of_a_deleted_node_is_given_back_and_its_failure_counts(cluster, error):
    """A cloud may delete the Node of a machine that does not come back."""
    del cluster.objects[paths.node("node-1")]
    found = finish(cluster, failed={"msg": "Node node-1 no longer exists.", "error": error})
    assert found["result"]["result"] == "failed"
    assert "could not" not in found["result"]["detail"].lower()
    assert cluster.ledger().slots == {}
    assert cluster.ledger().failures("kernel") == {"node-1": "Node node-1 no longer exists."}


def test_a_host_without_a_node_does_not_count(cluster):
    del cluster.objects[paths.node("node-1")]
    found = finish(cluster, failed={"msg": "There is no Node node-1.", "error": "not_found"}, stage="looking")
    assert found["result"]["result"] == "failed"
    assert cluster.ledger().failures("kernel") == {}


def test_the_slot_of_a_node_that_was_created_again_is_given_back(cluster):
    cluster.node(boot_id="boot-2")
    found = finish(cluster, failed={"msg": "The claim was removed.", "error": "claim_lost"})
    assert found["result"]["result"] == "stopped"
    assert cluster.ledger().slots == {}
    assert cluster.marks() == {}


def test_a_node_that_was_not_touched_is_stopped(cluster):
    cluster.node(operation=record("slot"))
    found = finish(cluster, failed=BROKEN, stage="waiting")
    assert found["result"]["result"] == "stopped"
    assert cluster.ledger().slots == {}
    assert cluster.ledger().failed("kernel") == 0


def test_one_that_another_run_works_on_is_left_to_it(cluster):
    at_work(cluster, "drain", claim={**CLAIM, "run": "another"})
    cluster.ledger(ledger=slot("another"))
    found = finish(cluster, failed={"msg": "It passed on.", "error": "claim_lost"})
    assert found["result"]["result"] == "lost"
    assert cluster.cordoned()
    assert cluster.ledger().slots["node-1"].run == "another"


def test_a_failure_that_can_t_be_counted_is_loud(cluster):
    cluster.broken.append("configmaps/group")
    found = finish(cluster, failed=BROKEN)
    assert found["uncounted"] == [
        {"name": "node-1", "group": "default", "reason": "It timed out.", "healthy": False, "run": "me"}
    ]
    assert "THIS FAILURE COULD NOT BE COUNTED" in found["result"]["detail"]


def test_a_failure_of_the_control_plane_stops_all_others(cluster):
    cluster.ledger("control-plane", slot())
    cluster.ledger(ledger=Ledger())
    finish(cluster, failed=BROKEN, group="control-plane")
    assert cluster.ledger("control-plane").slots == {}
    assert cluster.ledger().failures("kernel") == {"node-1": "It timed out."}


def test_a_failure_stops_the_operation_of_another_group(cluster):
    cluster.ledger("first", Ledger())
    finish(cluster, failed=BROKEN, counted_in="first")
    assert cluster.ledger().failed("kernel") == cluster.ledger("first").failed("kernel") == 1


def test_a_task_that_fails_after_the_node_is_done_changes_nothing_of_it(cluster):
    cluster.node(operation={**record("uncordon"), "result": "rebooted"})
    found = finish(cluster, failed=BROKEN, step="done")
    assert found["result"]["result"] == "failed"
    assert cluster.marks()["operation"]["result"] == "rebooted"
    assert cluster.ledger().failed("kernel") == 0


def test_a_healthy_node_of_a_host_that_dropped_out_gives_its_slot_back(cluster):
    found = finish(cluster, failed=BROKEN, dropped=True)
    assert found["result"]["result"] == "failed"
    assert cluster.ledger().slots == {}


@pytest.mark.parametrize("ending", [{}, {"failed": BROKEN}, {"rebooted": {"step": "held", "why": "held"}}])
def test_the_silences_end_however_the_work_ends(cluster, ending, monkeypatch):
    asked = []
    monkeypatch.setattr(Alertmanager, "unsilence", lambda alertmanager, node: asked.append(node))
    at_work(cluster, "ready")
    finish(cluster, alertmanager={"url": "http://alertmanager.invalid"}, **ending)
    assert asked == ["node-1"]


def test_the_silences_end_if_the_end_fails(cluster, monkeypatch):
    asked = []
    monkeypatch.setattr(Alertmanager, "unsilence", lambda alertmanager, node: asked.append(node))
    at_work(cluster, "ready", claim={**CLAIM, "run": "another"})
    with pytest.raises(ClaimLost):
        finish(cluster, alertmanager={"url": "http://alertmanager.invalid"})
    assert asked == ["node-1"]


@pytest.mark.parametrize(("phases", "files"), [(["end"], ["notify.yml"]), (["cordon"], [])])
def test_a_failure_is_notified_of(cluster, phases, files):
    known = {**settings(), "notify": "slack.yml", "notify_phases": phases, "after_tasks": "after.yml"}
    assert finish(cluster, failed=BROKEN, settings=known)["files"] == {"after": files}


def test_a_turn_whose_options_are_invalid_counts_no_failure(cluster):
    cluster.node()
    cluster.ledger(ledger=Ledger())
    found = finish(
        cluster, failed={"msg": "missing required arguments: selector found in pods"}, stage=None, steps=None
    )
    assert found["result"]["result"] == "stopped"
    assert cluster.ledger().failed("kernel") == 0


def test_a_turn_that_was_ended_while_it_had_the_claim_counts(cluster):
    """A timeout of the task gives a result without a stage, too."""
    cluster.ledger(ledger=slot())
    at_work(cluster, "slot")
    found = finish(cluster, failed={"msg": "Timed out after 600 seconds"}, stage=None, steps=None)
    assert found["result"]["result"] == "failed"
    assert cluster.ledger().failed("kernel") == 1
    assert not cluster.cordoned()
