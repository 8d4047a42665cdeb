# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Histories in which a promise was broken once, as the model found them."""

from __future__ import annotations

import pytest
from model.machine import Machine
from model.memory import Memory

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import ledger_rules


def test_a_slot_that_a_new_start_took_over_returns_to_the_run_with_the_claim():
    model = Machine()
    model.begin(policy=1, max_failed=0, others=False)
    model.sleeps_long_and_another_takes_over(number=0, run=0, times=0)
    model.is_excluded_or_included(number=1)
    model.start(operation="", restart=True)
    model.sleeps_long_and_another_takes_over(number=1, run=1, times=3)
    model.a_person_cordons_or_uncordons(number=0)
    model.a_person_cordons_or_uncordons(number=0)
    model.a_person_cordons_or_uncordons(number=0)
    model.goes_on(number=0, run=0, times=3)
    model.is_paused_or_wakes(run=1)
    model.sleeps_long_and_another_takes_over(number=0, run=0, times=1)
    model.works(fate="bad", number=2, patient=False, run=1, times=9)
    model.teardown()


def a_cordoned_node_without_a_claim():
    """A run has the slot of a node that a dead run left cordoned, could not claim it, and gives the slot back."""
    model = Machine()
    model.begin(policy=0, max_failed=0, others=False)
    model.goes_on(run=0, number=0, times=1)
    model.start(operation="", restart=False)
    model.goes_on(run=1, number=0, times=1)
    model.all_goes_well(run=0, number=0, times=10)
    # It has cordoned its node. It is taken for dead, and the other gets the slot.
    model.is_paused_or_wakes(run=0)
    model.time_passes(100)
    model.goes_on(run=1, number=0, times=3)
    # It lives, so the other does not get the claim. Then it dies, and its claim is cleared.
    model.is_paused_or_wakes(run=0)
    model.works(run=1, number=0, times=1, fate="well", patient=False)
    model.is_killed(run=0)
    model.time_passes(100)
    model.the_doctor_comes(release=[])
    model.goes_on(run=0, number=0, times=2)
    return model


def test_a_slot_stays_on_a_node_that_a_killed_run_left_cordoned():
    model = a_cordoned_node_without_a_claim()
    node = model.fleet.judge.last["nodes"]["alfa"]

    assert "run-2: release(alfa" in model.fleet.history[-1]
    assert (node["claim"], bool(node["cordon"]), node["slot"]["run"]) == (None, True, "run-2")
    model.teardown()


def test_given_back_it_would_leave_a_cordoned_node_without_a_slot(monkeypatch):
    give_back = ledger_rules.give_back
    monkeypatch.setattr(ledger_rules, "give_back", lambda *given, cordoned: give_back(*given, cordoned=False))

    with pytest.raises(AssertionError, match="promise 1: alfa is cordoned by us without a slot"):
        a_cordoned_node_without_a_claim()


def two_runs_in_one_moment():
    """A run is silent between its slot and its claim; another reads ledger and Nodes, and writes after the claim."""
    model = Machine()
    model.begin(policy=0, max_failed=0, others=False)
    model.goes_on(run=0, number=0, times=1)
    model.goes_on(run=0, number=0, times=4)
    # It has a slot. The other begins before anybody takes it for dead.
    model.start(operation="another", restart=False)
    model.goes_on(run=1, number=1, times=1)
    model.is_paused_or_wakes(run=0)
    model.time_passes(100)
    model.goes_on(run=0, number=1, times=3)
    # The other has read that the first is dead, and has claimed nothing.
    model.is_paused_or_wakes(run=0)
    model.goes_on(run=0, number=0, times=3)
    # It has seen that the slot is its own still.
    model.goes_on(run=1, number=1, times=1)
    return model


def test_a_slot_stays_under_which_a_node_was_claimed_a_moment_ago():
    model = two_runs_in_one_moment()
    first = model.fleet.judge.last["nodes"]["alfa"]

    assert (first["claim"]["run"], first["slot"]["run"], first["slot"]["claims"]) == ("run-1", "run-1", 1)
    model.teardown()


def test_without_its_record_on_the_slot_it_would_be_given_away(monkeypatch):
    """The rule as it was."""
    monkeypatch.setattr(Memory, "do_mark", lambda *_arguments, **_options: None)
    with pytest.raises(AssertionError, match="promise 1"):
        two_runs_in_one_moment()


def a_slot_that_passed_on():
    """A slot under which a run has claimed its node passes to another run, and the first lets go of its claim."""
    model = Machine()
    model.begin(policy=0, max_failed=0, others=False)
    model.goes_on(run=0, number=0, times=1)
    # It has counted its claim, and has not looked whether the slot is its own still.
    model.goes_on(run=0, number=0, times=4)
    model.goes_on(run=0, number=0, times=2)
    model.is_paused_or_wakes(run=0)
    model.time_passes(100)
    # The second continues the operation, and gets the slot.
    model.start(operation="", restart=False)
    model.goes_on(run=1, number=0, times=4)
    model.is_paused_or_wakes(run=0)
    # The first sees that it has lost the slot, and lets go of the claim.
    model.goes_on(run=0, number=0, times=2)
    seen = model.fleet.judge.last["nodes"]["alfa"]
    assert (seen["claim"], seen["slot"]["run"], seen["slot"]["claims"]) == (None, "run-2", 1)
    return model


def a_second_claim_in_one_moment():
    """The second run is silent between that slot and its claim; a third reads, and writes after the claim."""
    model = a_slot_that_passed_on()
    model.is_killed(run=0)
    model.start(operation="another", restart=False)
    model.goes_on(run=1, number=1, times=1)
    model.is_paused_or_wakes(run=0)
    model.time_passes(100)
    model.goes_on(run=1, number=1, times=3)
    # The third has read that the second is dead, and has claimed nothing.
    model.is_paused_or_wakes(run=0)
    model.goes_on(run=0, number=0, times=3)
    # The second has seen that the slot is its own still.
    model.goes_on(run=1, number=1, times=1)
    return model


def test_a_slot_that_passed_on_stays_under_which_a_node_was_claimed_a_moment_ago():
    model = a_second_claim_in_one_moment()
    seen = model.fleet.judge.last["nodes"]["alfa"]

    assert (seen["claim"]["run"], seen["slot"]["run"], seen["slot"]["claims"]) == ("run-2", "run-2", 2)
    model.teardown()


def test_with_a_second_claim_that_changes_nothing_it_would_be_given_away(monkeypatch):
    """A slot that says only whether it was ever claimed."""
    count = ledger_rules.claim

    def once(ledger, node, *whose):
        slot = ledger.slots.get(node)
        return ledger if slot and slot.claims else count(ledger, node, *whose)

    monkeypatch.setattr(ledger_rules, "claim", once)
    with pytest.raises(AssertionError, match="promise 1"):
        a_second_claim_in_one_moment()


def test_a_claimed_slot_of_a_dead_run_is_released_when_its_node_is_healthy():
    model = a_slot_that_passed_on()
    model.is_killed(run=1)
    model.is_killed(run=0)
    model.start(operation="another", restart=False)
    model.time_passes(100)
    model.goes_on(run=0, number=1, times=1)
    model.goes_on(run=0, number=1, times=4)

    nodes = model.fleet.judge.last["nodes"]
    assert (nodes["alfa"]["slot"], nodes["bravo"]["slot"]["run"]) == (None, "run-3")
    model.teardown()
