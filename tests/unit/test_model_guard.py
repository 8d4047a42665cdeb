# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model of a guarded deletion: every history of a small scope, and what finds a broken promise."""

from __future__ import annotations

import pytest
from model.explore import explore
from model.fleet import Scope
from model.guard import GuardPlan

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.gate import Pass
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import journey_rules, record, rules


def guards(count, **faults):
    """Runs serve the Machine of one node. A person deletes it at any time."""
    plans = tuple(GuardPlan(f"guard-{number}", "alfa", number=number) for number in range(1, count + 1))
    return Scope(plans, {"alfa": "a"}, faults).begin()


def lead_to(state, run, until):
    """Advance one run alone until its next request starts with ``until``. While it waits, take the first event."""
    while not str(state.runs[run].places[0].asked).startswith(until):
        moves = [*state.steps(run, 0)] or [*state.world()]
        state = moves[0].after
    return state


def a_race():
    """The first run has begun the tasks of the first point, and the second run is about to begin."""
    return lead_to(guards(2, death=1), 0, "USER")


@pytest.mark.long
@pytest.mark.parametrize("fault", ["death", "hold", "pause", "stuck"])
def test_every_history_of_one_guard_keeps_all_promises(fault):
    found = explore(guards(1, **{fault: 1}))

    assert not found.broken, found
    assert (found.whole, found.ends > 0) == (True, True)


@pytest.mark.long
def test_the_first_histories_with_an_outage_keep_all_promises():
    found = explore(guards(1, outage=1), limit=10 * LIMIT)

    assert not found.broken, found


@pytest.mark.usefixtures("other_rules")
def test_a_hook_that_is_removed_before_the_tasks_is_found(monkeypatch):
    without = tuple(rule for rule in journey_rules._RULES if rule is not journey_rules._files)
    monkeypatch.setattr(journey_rules, "_RULES", without)
    # The hooks are set, and the deletion waits.
    found = explore(lead_to(guards(1), 0, "POST"))

    assert "Machine alfa is released at pre-drain, and these did not end well" in found.broken


@pytest.mark.usefixtures("other_rules")
def test_a_hook_that_is_removed_from_a_held_node_is_found(monkeypatch):
    monkeypatch.setattr(record.gate, "check", lambda *_arguments, **_options: Pass(""))
    # The first point is about to be released: nobody holds the node yet.
    found = explore(lead_to(guards(1, hold=1), 0, "LIST apis/coordination.k8s.io"), limit=LIMIT)

    assert "promise 2: alfa is held, and its Machine is released" in found.broken


def test_two_guards_take_turns():
    found = explore(a_race(), limit=LIMIT)

    assert not found.broken, found


@pytest.mark.usefixtures("other_rules")
def test_a_machine_that_a_live_run_serves_would_be_taken(monkeypatch):
    monkeypatch.setattr(rules, "claimed_by", lambda _machine, _hook: "")

    assert "2 live runs are in the tasks for alfa at pre-drain at the same time" in explore(a_race()).broken


# As many states as make the test fast.
LIMIT = 1500
