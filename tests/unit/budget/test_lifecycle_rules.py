# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lifecycle conditions a run sets and removes, and that those of other writers stay as they are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.api import with_conditions

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import CLAIM, LIFECYCLE_CONDITIONS
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import lifecycle_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.lifecycle_rules import (
    DRAIN_FAILED,
    DRAINS,
    ENDS,
    IS_DRAINED,
    STARTS,
    TAINT,
    TYPES,
    WAITS,
    Patch,
    Work,
    patch_of,
    waits,
)

NOW, LATER = "2026-11-23T03:00:00Z", "2026-11-23T03:05:00Z"
ME, OTHER = Work("rolling reboot", "kernel", "me"), Work("rolling reboot", "kernel", "other")
OF_OTHERS = {**TAINT, "effect": "NoSchedule"}
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": NOW}
TAINTED, ONLY_TAINTED = waits(conditions=True, taint=True), waits(conditions=False, taint=True)
CHANGES = (WAITS, TAINTED, ONLY_TAINTED, STARTS, DRAINS, IS_DRAINED, DRAIN_FAILED, ENDS)


def theirs(kind, status="True", **more):
    return {"type": kind, "status": status, "reason": "DiskReplacement", "message": "slot 3", **more}


def a_node(*conditions, taints=(), **annotations):
    marks = {f"holdfast.dev/{key}": value for key, value in annotations.items()}
    return {
        "metadata": {"name": "n", "annotations": marks},
        "spec": {"taints": list(taints)},
        "status": {"conditions": [READY, *conditions]},
    }


def written(node, change, work=ME, now=NOW):
    """The node after a change."""
    patch = patch_of(node, change, work, now)
    marks = {**node["metadata"]["annotations"], **patch.marks}
    found = {key: value for key, value in marks.items() if value is not None}
    return {
        "metadata": {"name": "n", "annotations": found},
        "spec": node["spec"] if patch.taints is None else {"taints": patch.taints},
        "status": {"conditions": with_conditions(node["status"]["conditions"], patch.conditions)},
    }


def kinds(node):
    return [item["type"] for item in node["status"]["conditions"] if item["type"] in TYPES and item["status"] == "True"]


def by_type(node):
    return {item["type"]: item for item in node["status"]["conditions"]}


def test_a_whole_reboot():
    node = written(a_node(), WAITS)
    assert kinds(node) == ["MaintenancePlanned"]
    node = written(node, STARTS)
    assert kinds(node) == ["MaintenanceInProgress"]
    assert by_type(node)["MaintenanceInProgress"] == {
        "type": "MaintenanceInProgress",
        "status": "True",
        "reason": "AdminRequested",
        "message": "holdfast.kubernetes: rolling reboot, operation kernel, run me",
        "lastHeartbeatTime": NOW,
        "lastTransitionTime": NOW,
    }
    node = written(node, DRAINS)
    assert kinds(node) == ["MaintenanceInProgress", "DrainInProgress"]
    node = written(node, IS_DRAINED)
    assert kinds(node) == ["MaintenanceInProgress", "Drained"]
    assert written(node, ENDS) == a_node()


def test_a_failed_drain_is_in_progress_no_longer():
    assert kinds(written(written(written(a_node(), STARTS), DRAINS), DRAIN_FAILED)) == ["MaintenanceInProgress"]


def test_the_next_run_takes_over_and_keeps_since_when():
    dead = written(written(written(a_node(), STARTS, OTHER), DRAINS, OTHER), IS_DRAINED, OTHER)
    node = written(dead, STARTS, ME, LATER)
    assert kinds(node) == ["MaintenanceInProgress", "Drained"]
    assert rules.run_of(node) == "me"
    for kind in ("MaintenanceInProgress", "Drained"):
        found = by_type(node)[kind]
        assert found["message"].endswith("run me")
        assert (found["lastTransitionTime"], found["lastHeartbeatTime"]) == (NOW, LATER)
    assert written(node, ENDS) == a_node()


def test_what_is_as_wanted_is_not_written():
    node = written(a_node(), STARTS)
    assert patch_of(node, STARTS, ME, LATER) == Patch()
    assert patch_of(a_node(), ENDS, ME, NOW) == Patch()
    assert patch_of(a_node(theirs("Drained")), ENDS, ME, NOW) == Patch()


def test_only_what_changes_is_in_the_patch():
    node = written(written(a_node(), STARTS), DRAINS)
    patch = patch_of(node, IS_DRAINED, ME, LATER)
    assert [item["type"] for item in patch.conditions] == ["DrainInProgress", "Drained"]


def test_a_condition_that_another_writer_changed_is_theirs():
    node = written(a_node(), STARTS)
    node["status"]["conditions"] = with_conditions(node["status"]["conditions"], [theirs("MaintenanceInProgress")])
    assert rules.ours(node) == {}
    after = written(node, ENDS)
    assert after["status"] == node["status"]
    assert LIFECYCLE_CONDITIONS not in after["metadata"]["annotations"]


def test_a_condition_that_is_gone_is_set_again():
    node = written(a_node(), STARTS)
    node["status"]["conditions"] = [READY]
    assert kinds(written(node, STARTS)) == ["MaintenanceInProgress"]


def test_a_false_condition_of_another_writer_is_restored():
    false = theirs("MaintenanceInProgress", "False", lastTransitionTime=NOW)
    node = written(a_node(false), STARTS)
    assert kinds(node) == ["MaintenanceInProgress"]
    node = written(node, DRAINS, OTHER, LATER)
    assert written(node, ENDS) == a_node(false)


@pytest.mark.parametrize(
    "record", ["[]", '{"conditions": 1}', '{"conditions": {"Drained": 1}}', "no json", '{"run": 3}']
)
def test_a_broken_record_claims_nothing(record):
    node = a_node(theirs("Drained"), conditions=record)
    assert rules.ours(node) == {}
    assert written(node, ENDS)["status"] == node["status"]
    assert kinds(written(node, STARTS)) == ["Drained", "MaintenanceInProgress"]


class TestOthers:
    def test_says_who_maintains_a_node(self):
        node = a_node(theirs("MaintenanceInProgress", lastTransitionTime=NOW), theirs("Drained"))
        assert rules.others_words(node) == (
            "another writer maintains it: MaintenanceInProgress is True since 2026-11-23T03:00:00Z "
            "(DiskReplacement: slot 3)"
        )

    @pytest.mark.parametrize(
        "item", [theirs("MaintenancePlanned"), theirs("Drained"), theirs("DrainInProgress", "False")]
    )
    def test_other_conditions_do_not_count(self, item):
        assert rules.others_words(a_node(item)) == ""

    def test_ours_do_not_count(self):
        assert rules.others_words(written(written(a_node(), STARTS), DRAINS)) == ""

    def test_a_long_message_is_cut(self):
        assert len(rules.others_words(a_node(theirs("DrainInProgress") | {"message": "x" * 100_000}))) < 1000

    def test_a_condition_without_texts(self):
        words = rules.others_words(a_node({"type": "DrainInProgress", "status": "True"}))
        assert words.endswith("since an unknown time (no reason: no message)")


class TestTaint:
    def test_while_the_node_waits(self):
        node = written(a_node(taints=[OF_OTHERS]), TAINTED)
        assert (kinds(node), node["spec"]["taints"]) == (["MaintenancePlanned"], [OF_OTHERS, TAINT])
        assert rules.tainted(node)
        node = written(node, STARTS)
        assert (kinds(node), node["spec"]["taints"]) == (["MaintenanceInProgress"], [OF_OTHERS])
        assert not rules.tainted(node)

    def test_without_conditions(self):
        node = written(a_node(), ONLY_TAINTED)
        assert (kinds(node), node["spec"]["taints"]) == ([], [TAINT])
        assert rules.run_of(node) == "me"
        assert written(node, ENDS) == a_node()

    def test_a_change_that_is_not_about_it_leaves_it(self):
        node = written(written(a_node(), TAINTED), DRAINS)
        assert node["spec"]["taints"] == [TAINT]
        assert patch_of(node, DRAINS, ME, LATER) == Patch()
        assert written(a_node(), DRAINS)["spec"]["taints"] == []

    @pytest.mark.parametrize("taint", [TAINT, {**TAINT, "value": "theirs"}])
    def test_a_taint_that_no_record_names_is_of_another_writer(self, taint):
        node = a_node(taints=[taint])
        assert not rules.tainted(node)
        assert patch_of(node, ONLY_TAINTED, ME, NOW) == Patch()
        assert patch_of(node, ENDS, ME, NOW) == Patch()
        assert written(node, TAINTED)["spec"] == node["spec"]

    def test_the_same_key_with_another_effect_is_another_taint(self):
        node = written(a_node(taints=[OF_OTHERS]), ONLY_TAINTED)
        assert node["spec"]["taints"] == [OF_OTHERS, TAINT]

    def test_is_recorded_alone_if_no_condition_can_be_written(self):
        patch = patch_of(a_node(), TAINTED, ME, NOW)
        (record,) = patch.marks_alone.values()
        assert json.loads(record) == {"run": "me", "operation": "kernel", "conditions": {}, "taint": True}
        assert patch.taint

        node = written(a_node(), TAINTED)
        end = patch_of(node, ENDS, ME, NOW)
        (left,) = end.marks_alone.values()
        assert list(json.loads(left)["conditions"]) == ["MaintenancePlanned"]
        assert "taint" not in json.loads(left)
        assert (end.taint, end.taints) == (False, [])
        assert patch_of(a_node(), WAITS, ME, NOW).marks_alone == {}

    def test_a_run_that_shows_nothing_changes_nothing(self):
        assert waits(conditions=False, taint=False) is None
        assert waits(conditions=True, taint=False) == WAITS


def test_a_node_that_stays_in_maintenance_is_named():
    error = rules.still_maintained("n", "another writer maintains it", 30)
    assert error.fields == {"node": "n"}
    assert "Node n was not started within 30 s, because another writer maintains it" in error.message


@pytest.mark.parametrize(("claim", "works"), [(None, False), ("me", False), ("other", True), ("", True)])
def test_whether_another_run_works_on_a_node(claim, works):
    node = a_node(**({} if claim is None else {CLAIM.partition("/")[2]: json.dumps({"run": claim})}))
    assert rules.others_work_on_it(node, "me") is works


@pytest.mark.parametrize(
    ("claim", "setter", "run", "may"),
    [
        (None, None, "", True),
        (None, None, "me", True),
        (None, OTHER, "me", False),
        (None, ME, "me", True),
        ("me", OTHER, "me", True),
        ("other", ME, "me", False),
        ("other", None, "", False),
        (None, ME, "", False),
    ],
)
def test_who_may_change_them(claim, setter, run, may):
    node = a_node(**({CLAIM.partition("/")[2]: json.dumps({"run": claim})} if claim else {}))
    node = written(node, STARTS, setter) if setter else node
    assert rules.may_change(node, run) is may


conditions = st.builds(
    lambda kind, status, more: {"type": kind, "status": status, **more},
    st.sampled_from([*TYPES, "Ready", "GracefulNodeShutdownInProgress"]),
    st.sampled_from(["True", "False", "Unknown"]),
    st.dictionaries(st.sampled_from(["reason", "message", "lastTransitionTime"]), st.text(max_size=5)),
)
nodes = st.lists(conditions, max_size=6, unique_by=lambda item: item["type"])
taints = st.lists(st.sampled_from([OF_OTHERS, TAINT, {**TAINT, "value": "theirs"}]), max_size=2, unique_by=str)
steps = st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from([ME, OTHER])), max_size=8)


@given(nodes, taints, steps)
def test_no_condition_or_taint_of_others_changes_and_all_our_own_are_removed(present, taints, changes):
    before = {**a_node(taints=taints), "status": {"conditions": present}}
    node = before
    held = [item for item in present if item["type"] not in TYPES or item["status"] == "True"]
    for change, work in changes:
        node = written(node, change, work)
        assert all(item in node["status"]["conditions"] for item in held)
        assert set(rules.ours(node)) <= set(TYPES)
        assert (rules.run_of(node) is not None) == bool(rules.ours(node) or rules.tainted(node))
        assert [item for item in node["spec"]["taints"] if item != TAINT or not rules.tainted(node)] == taints
        assert patch_of(node, change, work, LATER) == Patch(), "the same again"
    end = written(node, ENDS)
    assert by_type(end) == by_type(before)
    assert (end["metadata"], end["spec"]) == (before["metadata"], before["spec"])


@given(nodes, steps, conditions)
def test_concurrent_changes_of_another_writer_stay(present, changes, late):
    node = {**a_node(), "status": {"conditions": present}}
    for change, work in changes:
        node = written(node, change, work)
    node["status"]["conditions"] = [
        late,
        *(item for item in node["status"]["conditions"] if item["type"] != late["type"]),
    ]
    assert by_type(written(node, ENDS))[late["type"]] == late
