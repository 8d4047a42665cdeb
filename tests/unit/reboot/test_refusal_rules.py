# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node is refused, whose turn it is, and how its journey ends."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import end_rules, refusal_rules, turn_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.refusal_rules import Etcd, Shutdown

GROUP = {
    "group": "workers",
    "selector": "pool=blue",
    "max_unavailable": "10%",
    "topology_key": "zone",
    "max_unavailable_per_domain": 1,
    "max_domains": None,
    "control_plane_group": "control-plane",
}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"in_effect": True, "problems": [], "enabled": True}, ""),
        ({"in_effect": False, "problems": [{"message": "Too short."}], "enabled": True}, "may kill pods: Too short. "),
        ({"in_effect": False, "problems": [], "enabled": False}, "its kubelet has no grace periods"),
        ({"failed": True, "msg": "No such file.\n"}, "is in effect: No such file. The role"),
        ({"unreachable": True}, "is in effect: no answer The role"),
    ],
)
def test_what_a_node_says_of_its_shutdown(answer, words):
    said = refusal_rules.shutdown_trouble("node-1", refusal_rules.read_shutdown(answer))
    assert words in said
    assert bool(said) is bool(words)
    assert refusal_rules.read_shutdown({"in_effect": True}) == Shutdown(in_effect=True)


@pytest.mark.parametrize(
    ("results", "trouble", "postponed"),
    [
        ([], "", ()),
        ([{"name": "a", "result": "rebooted"}, {"name": "b", "result": "skipped"}], "", ()),
        ([{"name": "a", "result": "rebooted"}, {"name": "b", "result": "postponed"}], "", ("b",)),
        (
            [{"name": "a", "result": "postponed"}, {"name": "b", "result": "failed", "detail": "no"}],
            "Canary b failed (no), so no other node is rebooted. Fix the canary, then run this again.",
            (),
        ),
        ([{"name": "a", "result": "lost", "detail": "to another run"}], "", ()),
        ([None], "Canary of this run dropped out (no result), so no other node is rebooted.", ()),
    ],
)
def test_what_became_of_the_canaries(results, trouble, postponed):
    found = refusal_rules.canaries_of_run(results)
    assert found.trouble.startswith(trouble)
    assert bool(found.trouble) is bool(trouble)
    assert found.postponed == postponed


def test_a_control_plane_needs_others():
    assert Etcd(control_plane=True).needs_quorum
    assert not Etcd(control_plane=True, only_control_plane=True).needs_quorum
    assert not Etcd().needs_quorum


def test_the_budget_of_a_node():
    worker = turn_rules.budget_of(GROUP, control_plane=False)
    assert (worker.group, worker.counted_in) == ("workers", "workers")
    assert worker.policy == {
        "selector": "pool=blue,!node-role.kubernetes.io/control-plane",
        "max_unavailable": "10%",
        "topology_key": "zone",
        "max_unavailable_per_domain": 1,
        "max_domains": None,
    }


def test_the_budget_of_a_control_plane_node():
    budget = turn_rules.budget_of(GROUP, control_plane=True)
    assert (budget.group, budget.counted_in) == ("control-plane", "workers")
    assert budget.policy == {"selector": "node-role.kubernetes.io/control-plane", "max_unavailable": "1"}
    together = turn_rules.budget_of({**GROUP, "selector": "", "control_plane_group": "none"}, control_plane=True)
    assert (together.group, together.counted_in, together.policy["selector"]) == ("workers", "workers", "")


def test_the_budget_of_a_node_whose_operation_is_in_another_group():
    options = {**GROUP, "operation_group": "databases"}
    worker, control_plane = (turn_rules.budget_of(options, control_plane=own) for own in (False, True))
    assert (worker.group, worker.counted_in) == ("workers", "databases")
    assert (control_plane.group, control_plane.counted_in) == ("control-plane", "databases")


def test_hosts_that_dropped_out():
    hosts = [
        {"node": "a", "claimed": True},
        {"node": "b", "claimed": True, "result": "rebooted"},
        {"node": "c", "claimed": False},
    ]
    assert [host["node"] for host in turn_rules.dropped_out(hosts)] == ["a"]


@pytest.mark.parametrize(
    ("ready", "sent_before", "step", "way_out"),
    [
        (True, False, "put_back", ""),
        (False, False, "stop", "Bring the node back or have the hold released"),
        (False, True, "stop", "Bring the node back or have the hold released"),
        (True, True, "stop", "Have the hold released"),
    ],
)
def test_a_node_that_is_held_at_the_last_moment(ready, sent_before, step, way_out):
    found = end_rules.after_hold("node-1", "held by a/b", ready=ready, sent_before=sent_before)
    assert found.name == step
    assert "held by a/b" in found.why
    assert way_out in found.why
    assert ("not Ready" in found.why) is (not ready)


def test_an_entry_names_all_that_happened_despite_holds_and_budgets():
    """Its text names the first ten, and how many more there are."""
    holds = [f"shop/app-{number}" for number in range(12)]
    record = {"id": "kernel", "overridden_holds": holds, "deleted_pods": []}
    known = end_rules.overrides_of(record, "kernel")
    entry = end_rules.result_of("node-1", "rebooted", "", record=record, before=None, after=None)
    assert known == {"overridden_holds": holds}
    assert {name: entry.get(name) for name in ("overridden_holds", "deleted_pods")} == {**known, "deleted_pods": None}
    assert end_rules.detail_of("a kernel", known).endswith("shop/app-9, and 2 more")
    assert end_rules.overrides_of(record, "firmware") == end_rules.overrides_of(None, "kernel") == {}


def test_why_a_node_was_rebooted():
    assert end_rules.detail_of("a kernel", {}) == "a kernel"
    overrides = {"deleted_pods": ["shop/db"], "overridden_holds": ["a/b", "c/d"]}
    assert end_rules.detail_of("a kernel", overrides) == (
        "a kernel; holds were overridden: a/b, c/d; pods were deleted despite their budgets: shop/db"
    )


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, "Drain: it timed out."),
        ({"uncordoned": True}, "Drain: it timed out. The node was uncordoned."),
        (
            {"overrides": {"overridden_holds": ["a/b"], "deleted_pods": ["c/d"]}, "uncordoned": True},
            "out. Holds were overridden: a/b. Pods were deleted despite their budgets: c/d. The node was uncordoned.",
        ),
        ({"cordoned": True}, "it timed out. The node stays cordoned: fix its problem"),
        ({"stays": "it was cordoned before"}, "it timed out. The node stays cordoned: it was cordoned before."),
        ({"unwritten": ["No API."]}, "it timed out. Not everything could be undone: No API. Run"),
        ({"unwritten": ["No API.", "No API."], "lost": True}, "THIS FAILURE COULD NOT BE COUNTED, so the operation "),
    ],
)
def test_what_a_report_says_of_a_failure(known, words):
    options = {"overrides": {}, "uncordoned": False, "cordoned": False, "stays": "", "unwritten": [], "lost": False}
    assert words in end_rules.detail_of_failure("Drain", "it timed out.", **{**options, **known})
