# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model of a failover: every history of a small scope, and what finds a broken promise."""

from __future__ import annotations

import pytest
from model.explore import explore
from model.failover import COMMAND, METAL3, FailoverPlan
from model.fleet import Scope

from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import audit, record, rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import evidence_rules, still_down_rules


def one_failover(*, ways=(COMMAND,), deletes=False, **faults):
    """A run fails a node over. Its machine has failed, and may boot at any time."""
    plan = FailoverPlan("failover-1/alfa", "alfa", ways=ways, variables={"delete_node": deletes})
    return Scope((plan,), {"alfa": "a"}, faults, down="alfa").begin()


@pytest.mark.parametrize(
    "scope",
    [
        {"death": 1},
        {"pause": 1},
        pytest.param({"outage": 1}, marks=pytest.mark.long),
        {"hold": 1},
        {"stuck": 1},
        {"lost": 1},
        {"forgotten": 1},
        {"deletes": True, "death": 1},
        pytest.param({"deletes": True, "death": 1, "lost": 1}, marks=pytest.mark.long),
        {"ways": (METAL3,), "hold": 1},
        pytest.param({"ways": (METAL3,), "death": 1}, marks=pytest.mark.long),
        pytest.param({"ways": (METAL3,), "lost": 1}, marks=pytest.mark.long),
        pytest.param({"ways": (METAL3,), "forgotten": 1}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_every_history_of_one_failover_keeps_all_promises(scope):
    found = explore(one_failover(**scope))

    assert not found.broken, found
    assert (found.whole, found.ends > 0) == (True, True)


@pytest.mark.usefixtures("other_rules")
def test_a_node_that_is_not_looked_at_again_would_be_switched_off(monkeypatch):
    monkeypatch.setattr(still_down_rules, "check_still_down", lambda *_arguments: None)

    assert "alfa is back, and is switched off" in explore(one_failover()).broken


@pytest.mark.usefixtures("other_rules")
def test_a_command_that_proves_nothing_would_taint_a_node_that_is_on(monkeypatch):
    monkeypatch.setattr(evidence_rules, "off_by_command", lambda _status, _output: True)

    assert "alfa is out of service, and its machine is on" in explore(one_failover(stuck=1)).broken


@pytest.mark.usefixtures("other_rules")
def test_a_result_that_the_history_gets_after_the_claim_is_returned_would_be_missing(monkeypatch):
    def late(context, params):
        before, after, found = record._attempt(context, params)
        name, run = params["name"], params["run"]
        entry = audit.note(context.cluster, name, found, {}, check=lambda: record._claimed_node(context, name, run))
        return {"changed": before is not after, "record": found, "entry": entry}

    monkeypatch.setattr(record, "_record_result", late)

    found = explore(one_failover(death=1)).broken
    assert "alfa is not back in the history after its recovery" in found


@pytest.mark.usefixtures("other_rules")
def test_a_recovery_that_asks_only_for_a_record_would_leave_a_cordon(monkeypatch):
    monkeypatch.setattr(rules, "cordoned", lambda _node: False)

    assert "alfa is left with ['holdfast.dev/cordon']" in explore(one_failover(death=1, lost=1)).broken
