# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletion hooks: which annotations they are, whose, and what the deletion of a Machine waits for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi import rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.rules import Around

PRE_DRAIN = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
PRE_TERMINATE = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
OURS = {"pre-drain": f"{PRE_DRAIN}/backup", "pre-terminate": f"{PRE_TERMINATE}/backup"}
WAITS = {"pre-drain": "WaitingForPreDrainHook", "pre-terminate": "WaitingForPreTerminateHook"}
STARTED = {"pre-drain": "waitForPreDrainHookStartTime", "pre-terminate": "waitForPreTerminateHookStartTime"}
MESSAGE = "Waiting for {} hooks to succeed (hooks: {})"
THEN = "2026-05-04T01:02:03Z"


def machine(reason="", message="", *, hooks=(), deleting=True, node="n", **status):
    """A Machine as v1beta2 has it."""
    conditions = [{"type": "Deleting", "status": "True", "reason": reason, "message": message}] if reason else []
    return {
        "metadata": {
            "name": "m",
            "namespace": "metal",
            "uid": "1",
            "annotations": dict.fromkeys(hooks, "team"),
            **({"deletionTimestamp": THEN} if deleting else {}),
        },
        "spec": {"clusterName": "c"},
        "status": {"conditions": conditions, **({"nodeRef": {"name": node}} if node else {}), **status},
    }


def waiting(point, *keys, hooks=None):
    """One that waits at a point, for these hooks as far as the controller knows."""
    named = MESSAGE.format(point, ",".join(keys))
    return machine(WAITS[point], named, hooks=keys if hooks is None else hooks)


def old(reason=None, *, deleting=True, hooks=(), **conditions):
    """A Machine as v1beta1 has it; without a reason, from before it knew of v1beta2's conditions."""
    item = machine(deleting=deleting, hooks=hooks)
    item["status"]["conditions"] = [
        {"type": kind, "status": status, "lastTransitionTime": THEN} for kind, status in conditions.items()
    ]
    if reason:
        newer = {"type": "Deleting", "status": "True", "reason": reason, "message": ""}
        item["status"]["v1beta2"] = {"conditions": [newer]}
    return item


class TestKeys:
    @pytest.mark.parametrize("hook", ["a", "A", "0", "a.b_c-D9", "x" * 63, "K\u212a", "\u0130"])
    def test_what_the_api_takes(self, hook):
        assert rules.key_of("pre-drain", hook) == f"{PRE_DRAIN}/{hook}"
        assert rules.key_of("pre-terminate", hook) == f"{PRE_TERMINATE}/{hook}"

    @pytest.mark.parametrize(
        "hook", ["", " ", "a b", "a/b", "-a", "a-", ".a", "a.", "_", "é", "\u0131", "a\n", "x" * 64, "x" * 1000]
    )
    def test_what_it_does_not_take(self, hook):
        with pytest.raises(InvalidInput):
            rules.key_of("pre-drain", hook)

    def test_the_hook_of_the_control_plane_can_not_be_set(self):
        with pytest.raises(InvalidInput, match="etcd"):
            rules.key_of("pre-terminate", "kcp-cleanup")

    def test_whatever_begins_with_a_prefix_is_a_hook(self):
        """As Cluster API has it, which looks for nothing else."""
        annotations = {
            PRE_DRAIN: "bare",
            f"{PRE_TERMINATE}/kcp-cleanup": "",
            f"{PRE_DRAIN}more": "odd",
            "other": "x",
            f"x{PRE_DRAIN}/a": "no",
        }
        assert [(hook.point, hook.name, hook.owner) for hook in rules.hooks_in(annotations)] == [
            ("pre-drain", "", "bare"),
            ("pre-drain", "more", "odd"),
            ("pre-terminate", "kcp-cleanup", ""),
        ]


keys = st.sampled_from([*OURS.values(), PRE_DRAIN, f"{PRE_DRAIN}/theirs", f"{PRE_TERMINATE}/kcp-cleanup", "other"])
owners = st.sampled_from(["team", "them", ""])


class TestChange:
    @given(st.dictionaries(keys, owners), st.sampled_from(sorted(OURS)), st.booleans())
    def test_only_our_own_is_ever_written(self, annotations, point, present):
        """Whatever is there: nothing of others is set, replaced or removed."""
        key = OURS[point]
        if annotations.get(key, "team") != "team":
            with pytest.raises(Refused) as refused:
                rules.change(annotations, key, "team", present=present)
            assert refused.value.fields["owner"] == annotations[key]
            return
        written = rules.change(annotations, key, "team", present=present)
        after = {name: value for name, value in {**annotations, **written}.items() if value is not None}
        assert {**after, key: None} == {**annotations, key: None}
        assert after.get(key) == ("team" if present else None)
        assert bool(written) == (after != annotations)


class TestPhase:
    def test_a_machine_that_is_not_deleted(self):
        assert rules.phase(machine("NotDeleting", deleting=False)) == "NotDeleting"
        assert rules.phase(old(deleting=False)) == "NotDeleting"

    def test_one_that_is_gone(self):
        assert rules.phase(None) == "Deleted"

    @pytest.mark.parametrize("stage", rules.STAGES[2:-1])
    def test_the_controllers_word_counts(self, stage):
        assert rules.phase(machine(stage)) == stage
        assert rules.phase(old(stage)) == stage
        later = {"nodeDrainStartTime": THEN, "waitForPreTerminateHookStartTime": THEN}
        assert rules.phase(machine(stage, deletion=later)) == stage

    @pytest.mark.parametrize("reason", ["", "NotDeleting", "Deleting", "InternalError", "NewWord"])
    def test_without_a_reason_the_stages_that_started_count(self, reason):
        assert rules.phase(machine(reason)) == "Deleting"
        for name, stage in (
            ("waitForPreDrainHookStartTime", "WaitingForPreDrainHook"),
            ("nodeDrainStartTime", "DrainingNode"),
            ("waitForNodeVolumeDetachStartTime", "WaitingForVolumeDetach"),
            ("waitForPreTerminateHookStartTime", "WaitingForPreTerminateHook"),
        ):
            assert rules.phase(machine(reason, deletion={name: THEN})) == stage

    def test_it_failed_after_the_last_hook_was_gone(self):
        conditions = [{"type": "PreTerminateDeleteHookSucceeded", "status": "True"}]
        item = machine(
            "InternalError",
            deletion={"waitForPreTerminateHookStartTime": THEN},
            deprecated={"v1beta1": {"conditions": conditions}},
        )
        assert rules.phase(item) == "WaitingForInfrastructureDeletion"

    @pytest.mark.parametrize(
        ("conditions", "stage"),
        [
            ({}, "Deleting"),
            ({"PreDrainDeleteHookSucceeded": "False"}, "WaitingForPreDrainHook"),
            ({"PreDrainDeleteHookSucceeded": "True"}, "DrainingNode"),
            ({"PreDrainDeleteHookSucceeded": "True", "DrainingSucceeded": "False"}, "DrainingNode"),
            ({"DrainingSucceeded": "True"}, "WaitingForVolumeDetach"),
            ({"DrainingSucceeded": "True", "VolumeDetachSucceeded": "False"}, "WaitingForVolumeDetach"),
            ({"DrainingSucceeded": "True", "PreTerminateDeleteHookSucceeded": "False"}, "WaitingForPreTerminateHook"),
            ({"PreTerminateDeleteHookSucceeded": "True"}, "WaitingForInfrastructureDeletion"),
        ],
    )
    def test_of_an_older_cluster_api(self, conditions, stage):
        assert rules.phase(old(**conditions)) == stage


class TestWaitsFor:
    @pytest.mark.parametrize("point", rules.POINTS)
    def test_it_waits_at_this_point_for_this_hook(self, point):
        key = OURS[point]
        other = next(name for name in rules.POINTS if name != point)
        item = waiting(point, "a", key, "z")
        assert rules.waits_for(item, point, key)
        assert not rules.waits_for(item, other, OURS[other])
        assert not rules.waits_for(item, other, key)
        assert rules.waits_at(item) == point

    def test_a_hook_that_the_controller_has_not_seen(self):
        """It was set just when the last one before it was removed: the controller may be draining already."""
        key = OURS["pre-drain"]
        assert not rules.waits_for(waiting("pre-drain", f"{PRE_DRAIN}/theirs", hooks=[key]), "pre-drain", key)
        assert not rules.waits_for(waiting("pre-drain", f"{key}-2", hooks=[key]), "pre-drain", key)

    def test_a_hook_that_is_not_there_any_more(self):
        assert not rules.waits_for(waiting("pre-drain", OURS["pre-drain"], hooks=[]), "pre-drain", OURS["pre-drain"])

    @pytest.mark.parametrize("stage", [stage for stage in rules.STAGES[:-1] if stage not in WAITS.values()])
    def test_it_waits_at_no_other_stage(self, stage):
        item = machine(stage, hooks=OURS.values())
        assert not any(rules.waits_for(item, point, key) for point, key in OURS.items())

    def test_of_an_older_cluster_api_which_names_none(self):
        item = old(PreDrainDeleteHookSucceeded="False", hooks=OURS.values())
        assert rules.waits_for(item, "pre-drain", OURS["pre-drain"])
        assert not rules.waits_for(item, "pre-terminate", OURS["pre-terminate"]), "it waits at another point"
        assert rules.waiting_since(item) == THEN

    def test_a_machine_that_is_not_deleted(self):
        item = {**waiting("pre-drain", OURS["pre-drain"])}
        del item["metadata"]["deletionTimestamp"]
        assert not rules.waits_for(item, "pre-drain", OURS["pre-drain"])

    @pytest.mark.parametrize("point", rules.POINTS)
    def test_since_when(self, point):
        item = waiting(point, OURS[point])
        item["status"]["conditions"][0]["lastTransitionTime"] = "2026-05-04T09:09:09Z"
        assert rules.waiting_since(item) == "2026-05-04T09:09:09Z", "the status comes a moment later"
        item["status"]["deletion"] = {STARTED[point]: THEN}
        assert rules.waiting_since(item) == THEN
        assert rules.waiting_since(machine("DrainingNode", deletion={STARTED[point]: THEN})) is None
        assert rules.waiting_since(None) is None


some_hooks = st.sets(st.sampled_from([*OURS.values(), f"{PRE_DRAIN}/theirs"]))


@given(
    st.sampled_from(["", *rules.STAGES[:-1], "InternalError"]),
    st.sampled_from(rules.POINTS),
    st.tuples(some_hooks, some_hooks),
    st.booleans(),
    st.sets(st.sampled_from(["nodeDrainStartTime", *STARTED.values()])),
)
def test_verdicts(reason, point, sets, deleting, begun):
    """Whatever the state: it waits only at this point for this hook, and it is past only where it can't any more."""
    hooks, named = sets
    message = MESSAGE.format(point, ",".join(sorted(named))) if reason in WAITS.values() else ""
    item = machine(reason, message, hooks=hooks, deleting=deleting, deletion=dict.fromkeys(begun, THEN))
    key = OURS[point]
    verdict = rules.verdict(item, "1", point, key)

    assert rules.verdict(None, "1", point, key) == "gone"
    assert rules.verdict(item, "2", point, key) == "gone"
    assert (verdict == "removed") == (key not in hooks)
    past = rules.STAGES.index(rules.phase(item)) > rules.STAGES.index(WAITS[point])
    assert rules.is_past(item, point) is past
    assert (verdict == "past") == (past and key in hooks)
    if verdict == "waits":
        assert deleting
        assert rules.phase(item) == WAITS[point]
        assert reason not in WAITS.values() or key in named
    if verdict == "past":
        assert deleting
        assert rules.why_not(item, point, Around()).why == "past"
    if not deleting and key in hooks:
        assert verdict == ""


class TestWhyNot:
    NOTHING = Around(cluster_deleting=True, control_plane_deleting=True, control_plane=False)

    def test_nothing_is_amiss(self):
        for point in rules.POINTS:
            assert rules.why_not(machine(deleting=False), point, Around()) is None

    @pytest.mark.parametrize(
        ("around", "node", "why", "final"),
        [
            (Around(cluster_deleting=True), "n", "cluster_deleting", True),
            (Around(control_plane_deleting=True), "n", "control_plane_deleting", True),
            (Around(), None, "no_node", False),
            (Around(control_plane=False), "n", "no_control_plane", False),
        ],
    )
    def test_pre_drain_hooks_are_skipped(self, around, node, why, final):
        found = rules.why_not(machine(deleting=False, node=node), "pre-drain", around)
        assert (found.why, found.final) == (why, final)
        begun = rules.why_not(machine("Deleting", node=node), "pre-drain", around)
        assert (begun.why, begun.final) == (why, True), "what is being deleted does not wait for that to change"

    def test_pre_terminate_hooks_always_hold(self):
        for deleting in (False, True):
            item = machine(deleting=deleting, node=None)
            assert rules.why_not(item, "pre-terminate", self.NOTHING) is None

    def test_what_waits_there_now_holds(self):
        assert rules.why_not(waiting("pre-drain", OURS["pre-drain"]), "pre-drain", self.NOTHING) is None

    @pytest.mark.parametrize("point", rules.POINTS)
    def test_past(self, point):
        for stage in rules.STAGES[1:-1]:
            found = rules.why_not(machine(stage), point, Around())
            assert (found is not None) == (rules.STAGES.index(stage) > rules.STAGES.index(WAITS[point]))
            if found:
                assert (found.why, found.final) == ("past", True)


@pytest.mark.parametrize(
    ("manager", "operation", "expected"),
    [
        ("capi-machineset", "Apply", True),
        ("capi-kubeadmcontrolplane", "Apply", True),
        ("holdfast.kubernetes", "Update", False),
        ("kubectl", "Apply", False),
    ],
)
def test_a_hook_that_the_template_keeps(manager, operation, expected):
    item = machine(deleting=False)
    fields = {"f:metadata": {"f:annotations": {".": {}, f"f:{OURS['pre-drain']}": {}}}}
    item["metadata"]["managedFields"] = [
        {"manager": "capi-machineset", "operation": "Apply", "fieldsV1": {"f:spec": {}}},
        {"manager": manager, "operation": operation, "fieldsV1": fields},
    ]
    assert rules.kept_by_template(item, OURS["pre-drain"]) is expected
    assert not rules.kept_by_template(item, OURS["pre-terminate"])


def test_a_hook_must_still_be_served_while_its_machine_is_deleted():
    key = OURS["pre-drain"]

    assert rules.kept_while_deleting(machine(hooks=[key]), key)
    assert not rules.kept_while_deleting(machine(), key)
    assert not rules.kept_while_deleting(machine(hooks=[key], deleting=False), key)


def test_a_machine_that_was_just_made_has_no_node_and_no_cluster():
    assert (rules.node_of({"metadata": {}}), rules.cluster_of({"metadata": {}})) == (None, "")
    assert (rules.node_of(machine()), rules.cluster_of(machine())) == ("n", "c")


def test_a_hook_is_shown_as_its_owner_named_it():
    (hook,) = rules.hooks_of(machine(hooks=[OURS["pre-drain"]]))

    assert hook.shown() == {
        "point": "pre-drain",
        "hook": "backup",
        "owner": "team",
        "annotation": OURS["pre-drain"],
    }
