# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.ending_rules import (
    Ending,
    Failure,
    Undone,
    after_failure,
    failure_of,
    report_of,
    result_of,
    result_of_failure,
    result_of_step,
    was_sent,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.facts_rules import Progress
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.journey_rules import Step

AT_WORK = Progress("node-1", "failover", "r/node-1", "fence", "op", facts={"fence": "metal3", "key": "k"})
FENCING = replace(AT_WORK, doing=("fence",))
SENT = replace(AT_WORK, sent=True)
CAME_BACK = Failure(error="came_back")


@pytest.mark.parametrize(
    ("progress", "failure", "expected"),
    [
        (AT_WORK, Failure(), False),
        (SENT, Failure(), True),
        (FENCING, Failure(error="held"), False),
        (FENCING, Failure(error="timed_out"), True),
        (FENCING, Failure(), True),
        (FENCING, Failure(error="command", sent=False), False),
        (FENCING, Failure(error="came_back", sent=True), True),
    ],
)
def test_whether_the_machine_was_requested_to_switch_off(progress, failure, expected):
    assert was_sent(progress, failure) is expected


BY_COMMAND = replace(SENT, facts={"fence": "command"})
BY_REDFISH = replace(SENT, facts={"fence": "redfish", "uri": "https://a/1"})


@pytest.mark.parametrize(
    ("progress", "failure", "result", "undo", "remove_key", "words"),
    [
        # Nothing was sent: nothing is left.
        (AT_WORK, Failure(), "failed", True, False, ""),
        # It was: it stays as it is, for the next run.
        (SENT, Failure(), "failed", False, True, ""),
        (SENT, CAME_BACK, "stopped", True, True, ""),
        (replace(SENT, step="stop"), Failure(), "stopped", True, True, ""),
        # After a soft power-off, the node counts as lost. Without its key, metal3 switches it on again.
        (FENCING, Failure(error="refused", reason="changed", sent=True), "failed", False, True, ""),
        (SENT, Failure(reason="new_boot"), "stopped", True, True, ""),
        (SENT, Failure(back=True), "failed", False, True, "still has the taint: run the playbook recover"),
        (replace(SENT, tainted=True), CAME_BACK, "failed", False, True, "still has the taint"),
        # It is still off: the next run resumes.
        (replace(SENT, tainted=True), Failure(error="timed_out"), "failed", False, True, ""),
        (BY_COMMAND, Failure(error="timed_out"), "failed", False, False, ""),
        (replace(SENT, step="taint"), CAME_BACK, "failed", False, True, "still has the taint"),
        # After an attestation, a task that failed may have set the taint before.
        (replace(AT_WORK, doing=("taint",)), Failure(error="api"), "failed", False, False, ""),
        (replace(AT_WORK, doing=("taint",)), Failure(error="refused"), "failed", True, False, ""),
        (replace(BY_COMMAND, sent=False), CAME_BACK, "stopped", True, False, ""),
        (
            BY_COMMAND,
            CAME_BACK,
            "failed",
            False,
            False,
            "The machine of failover_fence_command was requested to switch off",
        ),
        (
            BY_REDFISH,
            Failure(reason="alive"),
            "failed",
            False,
            False,
            "at https://a/1 was requested to switch off and may be off, and",
        ),
        # An earlier run sent a request. This one has a person's word, and sends nothing.
        (
            replace(BY_REDFISH, facts={**BY_REDFISH.facts, "fence": "attestation", "requested_by": "redfish"}),
            CAME_BACK,
            "failed",
            False,
            False,
            "at https://a/1 was requested to switch off and may be off. Run the playbook recover, which asks you to",
        ),
        (replace(SENT, facts={"fence": "attestation"}), CAME_BACK, "stopped", True, False, ""),
        (SENT, Failure(error="claim_lost"), "failed", False, True, ""),
        # On the way back, nothing is undone.
        (replace(SENT, direction="recover", step="power_on"), CAME_BACK, "failed", False, True, ""),
    ],
)
def test_what_a_failure_leaves(progress, failure, result, undo, remove_key, words):  # noqa: PLR0917
    ending = after_failure(progress, failure)
    assert (ending.result, ending.undo, ending.remove_key) == (result, undo, remove_key)
    assert words in ending.advice
    assert bool(words) is bool(ending.advice)
    assert ending.record is (failure.error != "claim_lost")


@pytest.mark.parametrize(("failure", "another"), [(Failure(reason="alive"), True), (Failure(reason="ready"), False)])
def test_a_sign_of_life_after_the_power_off_means_another_machine(failure, another):
    assert ("the machine of another node" in after_failure(BY_REDFISH, failure).advice) is another


@pytest.mark.parametrize("step", ["", "done"])
def test_what_was_not_claimed_is_refused(step):
    ending = after_failure(replace(AT_WORK, step=step), Failure())
    assert (ending.result, ending.record, ending.undo) == ("refused", False, False)


@given(
    st.builds(
        Progress,
        step=st.sampled_from(["fence", "taint", "stop", "power_on"]),
        direction=st.sampled_from(["failover", "recover"]),
        sent=st.booleans(),
        tainted=st.booleans(),
        doing=st.sampled_from([(), ("fence",)]),
        facts=st.sampled_from([{}, {"fence": "metal3", "key": "k"}, {"fence": "command"}]),
    ),
    st.builds(
        Failure,
        error=st.sampled_from(["", "held", "came_back", "claim_lost", "timed_out", "command"]),
        reason=st.sampled_from(["", "alive", "ready"]),
        back=st.booleans(),
    ),
)
def test_a_node_is_let_go_only_if_it_is_on_or_was_not_switched_off(progress, failure):
    ending = after_failure(progress, failure)
    on = failure.back or failure.reason or failure.error == "came_back" or progress.step == "stop"
    if ending.undo:
        assert on or not was_sent(progress, failure)
        # Under the taint, the recovery does it.
        assert not (on and (progress.tainted or progress.step == "taint"))
        assert progress.direction == "failover"
        assert failure.error != "claim_lost"


def test_a_failure_is_read_from_what_the_task_answered():
    assert failure_of({"msg": ""}, "Cordon") == Failure("Cordon", "unknown")
    found = failure_of({"msg": "No.", "error": "held", "why": "alive", "sent": False, "output": "on"}, "Fence")
    assert found == Failure("Fence", "No.", "held", "alive", sent=False, output="on")

    left = [{"name": "csi-1"}]
    assert failure_of({"msg": "No.", "back": True, "blockers": left}, "Wait") == Failure(
        "Wait", "No.", back=True, blockers=tuple(left)
    )


ENTRY = {"result": "recovered", "seconds": {"ready": 2.0}, "evidence": {"kind": "Redfish"}, "runs": ["r"]}


def test_the_result_of_a_node():
    progress = replace(SENT, record_boot_id="b1", boot_id_after="b2", resumed=True)
    assert result_of(progress, "recovered", "it is Ready", ENTRY) == {
        "name": "node-1",
        "result": "recovered",
        "detail": "it is Ready",
        "operation": "op",
        "resumed": True,
        "attempts": [],
        "boot_id_before": "b1",
        "boot_id_after": "b2",
        "seconds": {"ready": 2.0},
        "evidence": {"kind": "Redfish"},
        "maintained_by": "",
        "entry": ENTRY,
    }
    nothing = result_of(progress, "moved", "")
    assert (nothing["boot_id_after"], nothing["seconds"], nothing["evidence"], nothing["entry"]) == (None, {}, None, {})


@pytest.mark.parametrize(("name", "result"), [("skipped", "skipped"), ("planned", "planned")])
def test_the_result_of_a_node_with_which_nothing_was_done(name, result):
    found = result_of_step(SENT, Step(name, "because"))
    assert (found["result"], found["detail"], found["pods"], found["volume_attachments"]) == (result, "because", [], [])


@pytest.mark.parametrize(
    ("progress", "failure", "undone", "result", "detail"),
    [
        (Progress("node-1"), Failure(why="It is held."), Undone(), "refused", "It is held."),
        (SENT, Failure("Fence", "No."), Undone(), "stopped", "Fence: No. Go on."),
        # Another run has ended the failover, and this run has recorded nothing.
        (replace(SENT, exists=False), Failure("Fence", "No."), Undone(entry=ENTRY), "failed", "Fence: No. Go on."),
        (
            SENT,
            Failure("Fence", "No."),
            Undone(why_not="It is unavailable."),
            "failed",
            "Fence: No. Go on. The changes could not be undone: It is unavailable. Run it again to retry that.",
        ),
        (
            SENT,
            Failure("Fence", "No."),
            Undone(unrecorded="It is down."),
            "failed",
            "Fence: No. Go on. THIS COULD NOT BE RECORDED: It is down. Run it again, or holdfast.kubernetes.doctor.",
        ),
    ],
)
def test_the_result_of_a_failure(progress, failure, undone, result, detail):
    advice = " Go on." if progress.claimed else ""
    failure = replace(failure, blockers=({"name": "csi-1"},), output="no route")
    ending = Ending("stopped" if progress.claimed else "refused", advice, record=progress.claimed and progress.exists)
    found = result_of_failure(replace(progress, boot_id_after="b2"), failure, ending, undone)
    assert (found["result"], found["detail"], found["boot_id_after"]) == (result, detail, None)
    assert (found["blockers"], found["output"]) == ([{"name": "csi-1"}], "no route")
    assert found["entry"] == undone.entry


def test_each_result_is_counted():
    results = ("moved", "recovered", "skipped", "planned", "refused", "stopped", "failed")
    nodes = [{"name": result, "result": result, "detail": "", "seconds": {}} for result in results]
    report = report_of("r", nodes, check_mode=True, delete_node=True)
    one = {name: [name] for name in results if name not in ("skipped", "planned")}
    assert report["content"]["summary"] == {"run": "r", "check_mode": True, "skipped": ["skipped", "planned"], **one}
    assert report["stats"] == {
        **{f"failover_{name}": 1 for name in one},
        "failover_skipped": 2,
        "failover_failed_nodes": "refused,stopped,failed",
        "failover_results": {name: f"{name}: " for name in results},
        "failover_results_left_out": 0,
    }
    assert report["why"] == "Node refused refused:  Node stopped stopped:  Node failed failed: "
    # A Node that is deleted needs no way back.
    assert not any("stays off" in line for line in report["lines"])


def test_the_report():
    moved = {"name": "a", "result": "moved", "detail": "1 pod gone", "seconds": {"move": 2.0, "claim": 1.0}}
    failed = {"name": "b", "result": "failed", "detail": "Fence: no", "seconds": {}, "output": "no route"}
    report = report_of("r", [moved, failed], check_mode=False, delete_node=False)
    assert report["content"]["summary"] == {
        "run": "r",
        "check_mode": False,
        "moved": ["a"],
        "recovered": [],
        "skipped": [],
        "refused": [],
        "stopped": [],
        "failed": ["b"],
    }
    assert (report["stats"]["failover_moved"], report["stats"]["failover_failed_nodes"]) == (1, "b")
    assert report["why"] == "Node b failed: Fence: no"
    assert report["lines"] == [
        "a: moved (1 pod gone), seconds: claim 1.0, move 2.0",
        (
            "a stays off, cordoned and out of service. To bring it back, with the same variables: "
            "ansible-playbook holdfast.kubernetes.recover -e failover_node=a"
        ),
        "b: failed (see below)",
        "b: its output was: no route",
    ]
