# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a node whose reboot failed somewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.failure_rules import (
    Failure,
    judge,
    may_go_down,
)

NODE = {
    "ready": True,
    "claim": {"run": "me"},
    "slot": {"run": "me"},
    "boot_id": "old",
    "operation": {"id": "kernel", "phase": "drain", "boot_id_before": "old"},
}


def after(node=None, **failure):
    return judge({**NODE, **(node or {})}, Failure(**{"run": "me", "operation": "kernel", **failure}))


def test_a_healthy_node_is_given_back_and_counted():
    assert after() == {"state": "failed", "healthy": True, "uncordon": True, "count": True, "return_slot": False}


@pytest.mark.parametrize(
    ("node", "failure"),
    [
        ({"ready": False}, {}),
        ({"operation": {"id": "kernel", "phase": "ready"}}, {}),
        ({"boot_id": "new", "operation": {"id": "kernel", "phase": "reboot", "boot_id_before": "old"}}, {}),
        ({}, {"switched_off": True}),
    ],
    ids=["not Ready", "failed its check", "never got to its check", "may be off"],
)
def test_one_that_is_not_healthy_stays_cordoned_and_counts(node, failure):
    found = after(node, **failure)
    assert (found["state"], found["uncordon"], found["count"]) == ("failed", False, True)


def test_a_check_that_failed_in_an_earlier_operation_says_nothing():
    assert after({"operation": {"id": "other", "phase": "ready"}})["healthy"]


@pytest.mark.parametrize(
    "node",
    [
        {"operation": {"id": "kernel", "phase": "reboot", "boot_id_before": "old"}},
        {"boot_id": "new", "operation": {"id": "kernel", "phase": "uncordon", "boot_id_before": "old"}},
        {"operation": None},
        {"claim": None, "slot": None},
    ],
    ids=["has not gone down", "passed its check", "without a record", "without a claim and a slot"],
)
def test_one_that_is_healthy_is_given_back(node):
    found = after(node)
    assert (found["state"], found["uncordon"], found["count"]) == ("failed", True, True)


@pytest.mark.parametrize(
    ("node", "given_back"),
    [
        ({"claim": None, "operation": {"id": "kernel", "phase": "slot"}}, False),
        ({"claim": None, "operation": {"id": "kernel", "phase": ""}}, False),
        ({"claim": None, "operation": {"id": "other", "phase": "drain"}}, False),
        ({"claim": None, "operation": None}, False),
        ({"claim": None, "operation": {"id": "kernel", "phase": "drain"}}, True),
        ({"operation": {"id": "other", "phase": "drain"}}, True),
    ],
    ids=["waited", "without a phase", "of another operation", "without a record", "a dead run worked", "claimed"],
)
def test_only_what_this_operation_may_have_cordoned_is_given_back(node, given_back):
    found = after(node)
    assert (found["state"], found["healthy"], found["count"]) == ("failed", True, True)
    assert found["uncordon"] is given_back


OURS = ("cordon", "drain", "reboot")


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"sent": True}, True),
        ({"sent": True, "phase": "drain"}, True),
        ({}, True),
        ({"refused": True}, False),
        ({"sent": False}, False),
        ({"phase": "drain"}, False),
        ({"id": "other"}, False),
        ({"boot_id": "new"}, False),
        ({"refused": True, "steps": ("reboot",)}, True),
        ({"sent": False, "steps": ("reboot",)}, True),
        ({"sent": False, "steps": ()}, True),
        ({"refused": True, "method": "command"}, True),
        ({"at_the_gate": True, "method": "command"}, False),
        ({"at_the_gate": True, "method": "command", "steps": ("reboot",)}, True),
    ],
)
def test_whether_a_node_may_still_go_down(known, expected):
    record = {"id": known.get("id", "kernel"), "phase": known.get("phase", "reboot"), "boot_id_before": "old"}
    found = may_go_down(
        {"boot_id": known.get("boot_id", "old"), "operation": record},
        "kernel",
        sent=known.get("sent"),
        refused=known.get("refused", False),
        steps=known.get("steps", OURS),
        method=known.get("method", "metal3"),
        at_the_gate=known.get("at_the_gate", False),
    )
    assert found is expected


def test_a_failure_counts_though_the_api_did_not_say_what_it_left():
    known = {"run": "me", "operation": "kernel"}
    assert judge(None, Failure(**known, unseen=True)) == {
        "state": "failed",
        "healthy": False,
        "uncordon": False,
        "count": True,
        "return_slot": False,
    }
    assert judge(None, Failure(**known, unseen=True, untouched=True))["return_slot"]


@pytest.mark.parametrize("options", [{}, {"untouched": True}, {"error": "claim_lost"}])
def test_the_slot_of_a_node_that_no_longer_exists_is_given_back(options):
    found = judge(None, Failure(run="me", operation="kernel", **options))
    assert (found["uncordon"], found["count"], found["return_slot"]) == (False, False, True)


def test_the_failure_of_a_claimed_node_that_no_longer_exists_counts():
    found = judge(None, Failure(run="me", operation="kernel", claimed=True))
    assert (found["uncordon"], found["count"], found["return_slot"]) == (False, True, True)


@pytest.mark.parametrize("record", [None, {}, {"id": "kernel", "run": "me", "phase": "drain"}])
def test_a_node_whose_claim_is_gone_is_no_run_s(record):
    """It was created again, or a person removed the claim. The next run of the operation gets it."""
    found = after({"claim": None, "operation": record}, error="claim_lost")
    assert (found["state"], found["uncordon"], found["count"], found["return_slot"]) == ("stopped", False, False, True)


def test_a_node_that_another_run_has_left_again_is_that_run_s():
    found = after({"claim": None, "operation": {"id": "kernel", "run": "other", "phase": "hold"}}, error="claim_lost")
    assert (found["state"], found["uncordon"], found["count"], found["return_slot"]) == ("lost", False, False, True)


def test_a_node_that_was_not_touched_does_not_count_and_gives_its_slot_back():
    found = after(untouched=True)
    assert found == {"state": "stopped", "healthy": True, "uncordon": False, "count": False, "return_slot": True}


@pytest.mark.parametrize("marks", [{"claim": {"run": "another"}}, {"claim": None, "slot": {"run": "another"}}])
def test_one_that_another_run_works_on_is_left_to_it(marks):
    found = after(marks)
    assert (found["state"], found["uncordon"], found["count"]) == ("stopped", False, False)


def test_a_slot_that_passed_on_does_not_keep_who_has_the_claim_from_putting_the_node_back():
    found = after({"slot": {"run": "another"}})
    assert (found["state"], found["uncordon"], found["count"]) == ("failed", True, True)


def test_a_run_that_lost_its_claim_does_nothing_more():
    found = after(error="claim_lost")
    assert found["state"] == "lost"
    assert not any(found[what] for what in ("uncordon", "count", "return_slot"))


def test_a_task_after_the_node_was_done_changes_nothing_of_it():
    found = after(done=True)
    assert found["state"] == "failed"
    assert not any(found[what] for what in ("uncordon", "count", "return_slot"))


@pytest.mark.parametrize("node", [None, NODE])
def test_before_there_is_an_operation_nothing_can_be_done(node):
    found = judge(node, Failure(run="", operation=""))
    assert not any(found[what] for what in ("uncordon", "count", "return_slot"))


@given(
    ready=st.booleans(),
    owner=st.sampled_from(["me", "another"]),
    phase=st.sampled_from(["slot", "cordon", "drain", "reboot", "ready", "uncordon"]),
    flags=st.fixed_dictionaries({name: st.booleans() for name in ("done", "untouched", "switched_off")}),
    error=st.sampled_from(["", "claim_lost", "timed_out"]),
)
def test_only_our_healthy_node_is_uncordoned_and_only_our_node_counts(ready, owner, phase, flags, error):
    node = {"ready": ready, "claim": {"run": owner}, "operation": {"id": "kernel", "phase": phase}}
    found = after(node, error=error, **flags)
    if found["uncordon"]:
        assert ready
        assert owner == "me"
        assert found["count"]
    if found["count"]:
        assert found["state"] == "failed"
        assert owner == "me"
