# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which operation a run enters, what passes to it, and what is left when it ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import FAILED, Ledger, Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.operation_rules import (
    ADOPT_WITHIN,
    KEPT_LEFT,
    StartRequest,
    begin,
    end,
    fresh_id,
    is_fresh_id,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import Policy
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import DEAD_AFTER, Run

NOW = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
NODES = frozenset({"alfa", "bravo"})


def run(name, silent=0.0):
    return Run(name, name, to_text(NOW - timedelta(seconds=silent)))


def runs(*known):
    return {item.id: item for item in known}


def ledger(*slots, **entry):
    operation = {"id": "old", "failures": {}, "runs": ["one"], "seen": NOW.isoformat(), "unfinished": False, **entry}
    return Ledger(Policy(), {slot.node: slot for slot in slots}, (operation,))


def slot(node, owner="one", **more):
    return Slot(node, "old", owner, to_text(NOW), **more)


def request(**more):
    return StartRequest(run="two", new_id="new", nodes=NODES, **more)


class TestBegin:
    def test_a_first_run_begins_a_new_operation(self):
        made = begin(Ledger(), request(), runs(run("two")), NOW)

        assert (made.operation, made.adopted, made.takes_over) == ("new", False, ())
        assert made.ledger.operations[-1]["runs"] == ["two"]

    def test_one_that_is_under_way_is_joined(self):
        made = begin(ledger(slot("alfa")), request(), runs(run("one"), run("two")), NOW)

        assert (made.operation, made.adopted, made.takes_over) == ("old", True, ())
        assert made.ledger.operations[-1]["runs"] == ["one", "two"]

    def test_a_run_that_joins_a_live_one_leaves_its_failures(self):
        made = begin(ledger(failures={"alfa": "boot"}), request(), runs(run("one"), run("two")), NOW)

        assert made.ledger.failed("old") == 1

    def test_a_live_run_counts_more_than_an_old_sign_of_its_operation(self):
        old = ledger(seen=(NOW - timedelta(hours=27)).isoformat())

        assert begin(old, request(), runs(run("one"), run("two")), NOW).operation == "old"

    def test_a_run_without_a_lease_is_as_old_as_its_operation(self):
        assert begin(ledger(runs=["gone"]), request(), runs(run("two")), NOW).operation == "old"
        assert begin(ledger(runs=["gone"], seen=""), request(), runs(run("two")), NOW).operation == "new"

    def test_slots_of_a_dead_run_pass_for_the_nodes_of_this_one(self):
        left = ledger(slot("alfa"), slot("charlie"), slot("bravo", state=FAILED))
        made = begin(left, request(), runs(run("one", DEAD_AFTER + 1), run("two")), NOW)

        assert made.takes_over == ("alfa",)
        assert {name: item.run for name, item in made.ledger.slots.items()} == {
            "alfa": "two",
            "bravo": "one",
            "charlie": "one",
        }

    @pytest.mark.parametrize("operation", ["kernel", "another"])
    def test_a_slot_without_a_run_stays_with_its_owner(self, operation):
        left = ledger(replace(slot("alfa"), run="", operation=operation))
        made = begin(left, replace(request(), restart=True), runs(run("two")), NOW)

        assert made.takes_over == ()
        assert made.ledger.slots == left.slots

    def test_a_dead_run_stays_known_until_its_lease_is_gone(self):
        """It may only be paused, so nothing deletes its Lease before the operation ends."""
        dead = run("one", DEAD_AFTER + 1)

        assert begin(ledger(), request(), runs(dead, run("two")), NOW).ledger.operations[-1]["runs"] == ["one", "two"]
        assert begin(ledger(), request(), runs(run("two")), NOW).ledger.operations[-1]["runs"] == ["two"]

    def test_a_finished_one_is_not_joined(self):
        assert begin(ledger(runs=[]), request(), runs(run("two")), NOW).operation == "new"

    def test_one_that_ended_with_nodes_left_over_is_gone_on_with(self):
        left = ledger(runs=[], unfinished=True, failures={"alfa": "drain", "charlie": "drain"})
        made = begin(left, request(), runs(run("two")), NOW)

        assert (made.operation, made.adopted) == ("old", True)
        assert made.ledger.operations[-1]["failures"] == {"charlie": "drain"}

    def test_failures_without_a_name_count_on_with_those_that_do(self):
        elsewhere = ledger(runs=[], unfinished=True, failures={"alfa": "boot", "charlie": "boot"}, left_out=3)
        again = ledger(runs=[], unfinished=True, failures={"alfa": "boot"}, left_out=3)

        assert begin(elsewhere, request(), runs(run("two")), NOW).ledger.failed("old") == 4
        assert begin(again, request(), runs(run("two")), NOW).ledger.failed("old") == 0

    def test_a_failure_counts_while_its_slot_stays(self):
        left = ledger(slot("alfa", state=FAILED), runs=[], unfinished=True, failures={"alfa": "boot"})

        assert begin(left, request(), runs(run("two")), NOW).ledger.operations[-1]["failures"] == {"alfa": "boot"}

    def test_one_that_rested_for_too_long_is_left(self):
        left = ledger(seen=(NOW - timedelta(hours=27)).isoformat())

        assert begin(left, request(), runs(run("one", 27 * 3600), run("two")), NOW).operation == "new"
        assert begin(left, request(adopt_within=27 * 3600), runs(run("one", 27 * 3600)), NOW).operation == "old"

    def test_one_that_was_seen_in_the_future_is_left(self):
        future = NOW + timedelta(days=400)
        left = ledger(runs=[], unfinished=True, seen=future.isoformat())

        assert begin(left, request(), runs(run("two")), NOW).operation == "new"

    def test_one_of_the_night_before_is_resumed(self):
        left = ledger(runs=[], unfinished=True, seen=(NOW - timedelta(hours=25)).isoformat())

        assert begin(left, request(), runs(run("two")), NOW).operation == "old"

    def test_restart_begins_afresh_and_takes_what_dead_runs_left(self):
        dead = begin(ledger(slot("alfa")), request(restart=True), runs(run("one", 100), run("two")), NOW)

        assert (dead.operation, dead.adopted, dead.takes_over) == ("new", False, ("alfa",))
        assert dead.ledger.slots["alfa"].operation == "new"

        live = begin(ledger(slot("alfa")), request(restart=True), runs(run("one"), run("two")), NOW)
        assert (live.operation, live.takes_over) == ("new", ())

    def test_the_named_one_is_entered(self):
        made = begin(ledger(), request(operation="kernel"), runs(run("two")), NOW)

        assert (made.operation, made.adopted) == ("kernel", False)
        assert begin(made.ledger, request(operation="kernel"), runs(run("two")), NOW).adopted


class TestEnd:
    def test_a_complete_run_finishes_it_and_takes_dead_runs_along(self):
        after = end(ledger(runs=["one", "two"]), "old", "two", {"two"}, complete=True, now=NOW)

        assert (after.operations[-1]["runs"], after.operations[-1]["unfinished"]) == ([], False)

    def test_another_live_run_keeps_it_open(self):
        after = end(ledger(runs=["one", "two"]), "old", "two", {"one", "two"}, complete=True, now=NOW)

        assert after.operations[-1]["runs"] == ["one"]

    def test_nodes_left_over_are_remembered(self):
        after = end(ledger(runs=["two"]), "old", "two", {"two"}, complete=False, now=NOW)

        assert after.operations[-1]["unfinished"] is True

    @pytest.mark.parametrize(
        ("left", "unfinished"),
        [
            ({}, True),
            ({"owner": "two"}, True),
            ({"owner": "three"}, False),
            ({"state": FAILED}, False),
        ],
        ids=["a dead run's", "its own", "a live run's", "of a failed node"],
    )
    def test_a_slot_that_a_dead_run_left_keeps_it_unfinished(self, left, unfinished):
        before = ledger(slot("alfa", **left), runs=["one", "two", "three"])
        after = end(before, "old", "two", {"two", "three"}, complete=True, now=NOW)

        assert after.operations[-1]["unfinished"] is unfinished

    def test_a_slot_of_another_operation_does_not(self):
        before = replace(ledger(runs=["two"]), slots={"alfa": Slot("alfa", "other", "one", to_text(NOW))})

        assert end(before, "old", "two", {"two"}, complete=True, now=NOW).operations[-1]["unfinished"] is False

    def test_what_another_run_left_over_stays_left_over(self):
        after = end(ledger(runs=["two"], unfinished=True), "old", "two", {"two"}, complete=True, now=NOW)

        assert after.operations[-1]["unfinished"] is True

    def test_a_run_that_resumes_it_and_does_all_finishes_it(self):
        left = ledger(runs=[], unfinished=True)
        resumed = begin(left, request(), runs(run("two")), NOW).ledger
        after = end(resumed, "old", "two", {"two"}, complete=True, now=NOW)

        assert begin(after, request(), runs(run("two")), NOW).operation == "new"

    def test_a_run_over_some_nodes_does_not_finish_what_others_left(self):
        """A --limit, or AWX's relaunch on failed hosts: the next night would reboot all nodes again."""
        left = end(ledger(runs=["one"]), "old", "one", {"one"}, complete=False, undone=["alfa", "zulu"], now=NOW)
        resumed = begin(left, request(), runs(run("two")), NOW).ledger
        after = end(resumed, "old", "two", {"two"}, complete=True, done=NODES, now=NOW)

        assert (after.operations[-1]["unfinished"], set(after.operations[-1]["left"])) == (True, {"zulu"})
        rest = replace(request(), run="three", nodes=frozenset({"zulu"}))
        resumed = begin(after, rest, runs(run("three")), NOW).ledger
        last = end(resumed, "old", "three", {"three"}, complete=True, done=["zulu"], now=NOW)
        assert last.operations[-1]["unfinished"] is False
        assert "left" not in last.operations[-1]

    def test_nodes_that_wait_for_a_window_are_known_until_they_are_done(self):
        first = end(
            ledger(runs=["one"]),
            *("old", "one", {"one"}),
            complete=False,
            undone=["alfa", "bravo", "charlie"],
            postponed=["alfa", "bravo"],
            now=NOW,
        )
        assert first.operations[-1]["postponed"] == ["alfa", "bravo"]
        resumed = begin(first, request(), runs(run("two")), NOW).ledger
        after = end(resumed, "old", "two", {"two"}, complete=False, done=["alfa"], undone=["charlie"], now=NOW)
        assert after.operations[-1]["postponed"] == ["bravo"]
        last = end(resumed, "old", "two", {"two"}, complete=False, done=[], undone=["alfa"], now=NOW)
        assert last.operations[-1]["postponed"] == ["bravo"]

    def test_too_many_names_are_not_kept(self):
        many = [f"node-{number}" for number in range(KEPT_LEFT + 1)]
        left = end(ledger(runs=["one"]), "old", "one", {"one"}, complete=False, undone=many, now=NOW)

        assert left.operations[-1]["unfinished"] is True
        assert {"left", "postponed"}.isdisjoint(left.operations[-1])

    def test_too_many_nodes_that_wait_for_a_window_are_known_as_such(self):
        many = [f"node-{number}" for number in range(KEPT_LEFT + 1)]

        def after(before, run_id, undone, postponed):
            at_work = ledger(**{**before, "runs": [run_id]})
            known = {"undone": undone, "postponed": postponed, "complete": False, "done": []}
            return end(at_work, "old", run_id, {run_id}, now=NOW, **known).operations[-1]

        first = after({}, "one", many, many)
        assert (first["unfinished"], first["postponed"], "left" in first) == (True, True, False)
        assert after(first, "two", ["more"], ["more"])["postponed"] is True
        assert "postponed" not in after(first, "two", ["more", "stuck"], ["more"])
        assert "postponed" not in after({"unfinished": True}, "two", ["more"], ["more"])

    def test_a_slot_in_the_ledger_of_another_group_counts(self):
        """Control-plane nodes have their slots in a ledger of their own."""
        # The other group has an operation of the same name.
        elsewhere = [slot("alfa"), slot("bravo", "of another group")]
        after = end(ledger(runs=["one", "two"]), "old", "two", {"two"}, complete=True, elsewhere=elsewhere, now=NOW)

        assert (after.operations[-1]["unfinished"], set(after.operations[-1]["left"])) == (True, {"alfa"})

    def test_a_node_that_no_run_does_any_more_keeps_it_open_no_longer_than_it_can_be_resumed(self):
        """Its Node or its host is gone."""
        first = end(ledger(runs=["one"]), "old", "one", {"one"}, complete=False, undone=["zulu"], now=NOW)
        night = NOW + timedelta(seconds=ADOPT_WITHIN - 60)
        resumed = begin(first, request(), runs(run("two", -ADOPT_WITHIN + 60)), night)
        after = end(resumed.ledger, "old", "two", {"two"}, complete=True, done=NODES, now=night)
        assert (resumed.operation, after.operations[-1]["unfinished"]) == ("old", True)

        late = night + timedelta(seconds=120)
        assert begin(after, replace(request(), run="three"), runs(run("three")), late).operation == "new"

    def test_a_run_that_dies_has_done_none_of_them(self):
        left = end(ledger(runs=["one"]), "old", "one", {"one"}, complete=False, undone=["alfa"], now=NOW)
        dead = begin(left, request(), runs(run("two")), NOW).ledger
        third = begin(dead, replace(request(), run="three", nodes=frozenset({"zulu"})), runs(run("three")), NOW).ledger
        after = end(third, "old", "three", {"three"}, complete=True, done=["zulu"], now=NOW)

        assert set(after.operations[-1]["left"]) == {"alfa"}

    @pytest.mark.parametrize("left", [["alfa"], {"alfa": "yesterday"}, {"alfa": "2999-01-01T00:00:00Z"}])
    def test_names_that_can_not_be_read_do_not_count(self, left):
        broken = ledger(runs=[], unfinished=True, left=left)
        made = begin(broken, request(operation="old"), runs(run("two")), NOW)

        assert made.ledger.operations[-1]["unfinished"] is False


@pytest.mark.parametrize("named", ["kernel", "reboot-20261121", "reboot-20261121T030000Z-2", ""])
def test_an_id_shows_whether_the_user_chose_it(named):
    assert is_fresh_id(fresh_id(NOW))
    assert not is_fresh_id(named)
