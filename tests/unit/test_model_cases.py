# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a promise was broken once: every history after a certain moment keeps it, and the old rule does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model import role
from model.explore import explore
from model.fleet import Scope
from model.role import Plan

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import ledger_rules, node_operation_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.facts_rules import Facts

pytestmark = pytest.mark.usefixtures("other_rules")


def lead_past(state, run, until):
    """Advance one run alone until a request that starts with ``until`` has its answer."""
    while True:
        asked = str(state.runs[run].places[0].asked)
        state = next(state.steps(run, 0)).after
        if asked.startswith(until):
            return state


def happens(state, *words):
    for each in words:
        state = next(move.after for move in (*state.world(), *state.faults()) if move.words == each)
    return state


def runs(*operations, **faults):
    """Runs of the first operation work on alfa, and runs of other operations on bravo."""
    plans = [
        Plan(
            f"run-{number}",
            ("alfa",) if operation == operations[0] else ("bravo",),
            {"operation": operation},
            number=number,
        )
        for number, operation in enumerate(operations, 1)
    ]
    return Scope(tuple(plans), faults=faults).begin()


def a_slot():
    """The first run has a slot, and no claim yet. Another operation is about to begin."""
    return lead_past(lead_past(runs("one", "two", pause=1), 0, "POST configmaps"), 0, "PUT configmaps")


def test_a_slot_stays_under_which_a_node_was_claimed_a_moment_ago():
    found = explore(a_slot(), limit=LIMIT)

    assert not found.broken, found


@pytest.mark.long
def test_without_its_record_on_the_slot_it_would_be_given_away(monkeypatch):
    """The rule as it was. The first run is silent between its slot and its claim, while the other one reads."""
    monkeypatch.setattr(ledger_rules, "claim", lambda ledger, *_whose: ledger)

    found = explore(a_slot())

    assert "promise 1: alfa is cordoned by a run, and has no slot" in found.broken
    paused, silent, wakes = (
        found.history.index(f"run-1 {words}") for words in ("is paused", "is silent for 100 s", "wakes")
    )
    assert paused < silent < wakes
    assert "LIST leases" in "".join(found.history[silent:wakes])


def a_slot_that_passed_on():
    """A slot under which a run claimed its node passes to another run, and the first run gives up its claim."""
    # The second run begins before the first one has a slot, so it does not take the slot over when it begins.
    state = lead_past(lead_past(runs("one", "one", "two", pause=2, death=1), 0, "POST configmaps"), 1, "PUT configmaps")
    state = lead_past(lead_past(state, 1, "LIST configmaps"), 0, "PATCH nodes/alfa ['claim']")
    state = happens(lead_past(state, 0, "PUT configmaps"), "run-1 is paused", "run-1 is silent for 100 s")
    state = lead_past(state, 1, "PUT configmaps")
    state = lead_past(happens(state, "run-1 wakes"), 0, "PATCH nodes/alfa ['claim']")
    return happens(state, "run-1 dies")


def a_second_claim():
    """The second run is about to claim the node, and a third one of another operation is about to ask for a slot."""
    state = lead_past(lead_past(a_slot_that_passed_on(), 2, "PUT configmaps"), 2, "LIST configmaps")
    # Only these two matter from here on.
    return replace(state, runs=state.runs[1:])


@pytest.mark.long
def test_a_slot_that_passed_on_stays_under_which_a_node_was_claimed_a_moment_ago():
    found = explore(a_second_claim(), limit=LIMIT)

    assert not found.broken, found


@pytest.mark.long
def test_with_a_second_claim_that_changes_nothing_it_would_be_given_away(monkeypatch):
    """A slot that says only whether it was ever claimed."""
    count = ledger_rules.claim

    def once(ledger, node, *whose):
        slot = ledger.slots.get(node)
        return ledger if slot and slot.claims else count(ledger, node, *whose)

    monkeypatch.setattr(ledger_rules, "claim", once)

    assert "promise 1: alfa is cordoned by a run, and has no slot" in explore(a_second_claim()).broken


def a_cordoned_node():
    """A run has cordoned its node, and dies. Another operation is about to begin."""
    return happens(
        lead_past(runs("one", "two", death=1), 0, "PATCH nodes/alfa ['cordon'"),
        "run-1 dies",
        "run-1 is silent for 100 s",
    )


def test_a_slot_stays_on_a_node_that_a_killed_run_left_cordoned():
    found = explore(a_cordoned_node())

    assert not found.broken, found
    assert found.whole


def a_reboot_that_comes_late():
    """A run sends the reboot, and dies. The node is still seen to be up when the next run of the operation begins."""
    return happens(lead_past(runs("one", "one", death=1), 0, "REBOOT alfa"), "run-1 dies", "run-1 is silent for 100 s")


def test_a_reboot_that_a_dead_run_requested_is_not_requested_again():
    found = explore(a_reboot_that_comes_late())

    assert not found.broken, found
    assert found.whole


@pytest.mark.long
def test_without_a_look_at_the_boot_that_was_to_end_it_would_be(monkeypatch):
    """The rule as it was. The node comes back while the next run is between its turn and its reboot."""
    monkeypatch.setattr(role, "boot_to_end", lambda *_arguments: "")

    assert "promise 6: alfa is rebooted twice in operation one" in explore(a_reboot_that_comes_late()).broken


def a_claim_on_a_node_that_is_done():
    """A run takes slot and claim directly after another run of the operation has rebooted the node, and dies."""
    state = lead_past(runs("one", "one", death=1), 0, "REBOOT alfa")
    for until in ("PUT configmaps", "LIST nodes", "LIST configmaps"):
        state = lead_past(state, 1, until)
    state = lead_past(happens(state, "alfa comes back"), 0, "PATCH nodes/alfa ['operation', 'claim'")
    return happens(lead_past(state, 1, "PATCH nodes/alfa ['claim'"), "run-2 dies", "run-2 is silent for 100 s")


def test_the_next_run_returns_slot_and_claim_of_a_node_that_is_done():
    found = explore(a_claim_on_a_node_that_is_done())

    assert not found.broken, found
    assert found.whole


@pytest.mark.long
def test_without_taking_them_over_they_would_stay(monkeypatch):
    """The rule as it was: a node that needs no reboot is skipped."""
    monkeypatch.setattr(Facts, "left_behind", False)

    assert "promise 3: alfa is left with ['holdfast.dev/claim']" in explore(a_claim_on_a_node_that_is_done()).broken


def two_operations_over_a_node():
    """A run has rebooted the node. A run of another operation has recorded that it waits for it, because it is held."""
    plans = [
        Plan(f"run-{number}", ("alfa",), {"operation": operation}, number=number)
        for number, operation in enumerate(("one", "two", "one"), 1)
    ]
    state = lead_past(Scope(tuple(plans), faults={"hold": 1}).begin(), 0, "REBOOT alfa")
    state = lead_past(happens(state, "alfa comes back"), 0, "PATCH nodes/alfa ['operation', 'claim'")
    state = happens(lead_past(state, 0, "DELETE leases"), "alfa is held")
    return happens(lead_past(state, 1, "PATCH nodes/alfa ['operation'"), "alfa is free")


def test_a_run_of_another_operation_hides_no_reboot():
    found = explore(two_operations_over_a_node(), limit=LIMIT)

    assert not found.broken, found


@pytest.mark.long
def test_without_the_earlier_record_the_node_would_be_rebooted_again(monkeypatch):
    """The rule as it was: the record of another operation is replaced."""
    monkeypatch.setattr(
        node_operation_rules,
        "_own_and_others",
        lambda record, operation: (record if record.get("id") == operation else {}, []),
    )

    assert "promise 6: alfa is rebooted twice in operation one" in explore(two_operations_over_a_node()).broken


# As many states as make the tests fast: no promise is broken in the first steps after the moment in question.
LIMIT = 8000
