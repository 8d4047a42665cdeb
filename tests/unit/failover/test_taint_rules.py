# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes may be declared out of service, which may come back, and what has to move."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import taint_rules as rules

KEY = "node.kubernetes.io/out-of-service"
NOW = datetime(2026, 5, 4, 10, 0, 0, tzinfo=timezone.utc)
OTHERS = {"key": "theirs", "value": "x", "effect": "NoSchedule", "timeAdded": "2020-01-01T00:00:00Z"}


def node(ready="Unknown", message="", taints=(), boot_id="b", evidence=None):
    annotations = {} if evidence is None else {"holdfast.dev/evidence": json.dumps(evidence)}
    return {
        "metadata": {"name": "n", "annotations": annotations},
        "spec": {"taints": list(taints)},
        "status": {
            "conditions": [{"type": "Ready", "status": ready, "reason": "R", "message": message}],
            "nodeInfo": {"bootID": boot_id},
        },
    }


def pod(name="p", tolerations=(), **metadata):
    return {
        "metadata": {"namespace": "ns", "name": name, "uid": f"uid-{name}", **metadata},
        "spec": {"tolerations": list(tolerations)},
        "status": {"phase": "Running"},
    }


def why(act, *args, **options):
    with pytest.raises(Refused) as refused:
        act(*args, **options)
    return refused.value.fields["why"]


class TestTaint:
    def test_those_of_others_stay_as_they_are(self):
        tainted = rules.with_taint(node(taints=[OTHERS]), "nodeshutdown", NOW)
        assert tainted[0] == OTHERS
        assert tainted[1] == {
            "key": KEY,
            "value": "nodeshutdown",
            "effect": "NoExecute",
            "timeAdded": "2026-05-04T10:00:00Z",
        }
        assert rules.without_taint(node(taints=tainted)) == [OTHERS]

    def test_a_taint_without_eviction_does_not_count(self):
        theirs = {"key": KEY, "effect": "NoSchedule"}
        assert rules.taint_of(node(taints=[theirs])) is None
        assert rules.without_taint(node(taints=[theirs])) == [theirs]

    def test_it_is_there_once(self):
        tainted = node(taints=rules.with_taint(node(), "nodeshutdown", NOW))
        (again,) = rules.with_taint(tainted, "hardwarefailure", NOW)
        assert again["value"] == "hardwarefailure"


class TestBackUnderTheTaint:
    """A node that this collection tainted and that is on again."""

    def tainted(self, *arguments, evidence=None, **options):
        taints = rules.with_taint(node(), "nodeshutdown", NOW)
        return node(*arguments, taints=taints, evidence=evidence or {"boot_id": "b"}, **options)

    def test_still_off(self):
        assert rules.back(self.tainted()) == ""
        rules.check_down(self.tainted(), None)

    @pytest.mark.parametrize(
        ("ready", "message", "why_"), [("True", "", "ready"), ("False", "node is shutting down", "shutting_down")]
    )
    def test_on(self, ready, message, why_):
        with pytest.raises(Refused, match=r"The taint stays.*recover") as refused:
            rules.check_down(self.tainted(ready, message), None)
        assert (refused.value.fields["why"], refused.value.fields["back"]) == (why_, True)
        with pytest.raises(Refused, match="Nothing was changed") as refused:
            rules.check_down(node(ready, message), None)
        assert (refused.value.fields["why"], refused.value.fields["back"]) == (why_, False)

    def test_booted_since(self):
        assert "booted again" in rules.back(self.tainted(boot_id="c"))
        assert rules.back(self.tainted(boot_id="c"), "c") == ""

    @pytest.mark.parametrize("ready", ["True", "Unknown"])
    def test_no_taint_of_this_collection(self, ready):
        assert rules.back(node(ready, boot_id="c", evidence={"boot_id": "b"})) == ""
        assert rules.back(self.tainted(ready, boot_id="c", evidence={"boot_id": "b", "removed": {"at": "x"}})) == ""
        theirs = node(ready, boot_id="c", taints=rules.with_taint(node(), "nodeshutdown", NOW))
        assert rules.back(theirs) == ""

    def test_a_taint_of_others_on_a_node_that_is_on(self):
        theirs = node("True", taints=rules.with_taint(node(), "nodeshutdown", NOW))
        with pytest.raises(Refused) as refused:
            rules.check_down(theirs, None)
        assert refused.value.fields["back"] is False

    def test_evidence_that_names_no_boot(self):
        assert rules.back(self.tainted(boot_id="c", evidence={"kind": "Attestation"})) == ""


class TestDown:
    def test_a_silent_node(self):
        rules.check_down(node(), None)
        rules.check_down(node("False", "runtime is down"), None)

    def test_ready(self):
        assert why(rules.check_down, node("True"), None) == "ready"

    def test_shutting_down(self):
        assert why(rules.check_down, node("False", "[node is shutting down]"), None) == "shutting_down"
        rules.check_down(node("Unknown", "node is shutting down"), None)

    def test_in_a_slot(self):
        assert why(rules.check_down, node(), ("g", Slot("n", "o", "r", "s"))) == "in_slot"

    @pytest.mark.parametrize(
        ("slot", "mine", "counts"),
        [
            ({"run": "alive"}, "", True),
            ({"run": "alive"}, "me", True),
            ({"run": "me"}, "me", False),
            ({"run": "dead"}, "me", False),
            ({"run": ""}, "", True),
            ({"run": ""}, "me", True),
            ({"run": "alive", "state": "failed"}, "me", False),
        ],
    )
    def test_which_slots_count(self, slot, mine, counts):
        taken = ("g", Slot("n", "o", since="s", **slot))
        other = ("h", Slot("n", "o", "alive", "s"))
        assert rules.live_slot([taken], {"alive", "me"}, mine) == (taken if counts else None)
        assert rules.live_slot([taken, other], {"alive", "me"}, mine) == (taken if counts else other)


EVIDENCE = {"boot_id": "old"}


class TestBack:
    def test_ready_with_a_new_boot_id(self):
        rules.check_back(node("True", boot_id="new", evidence=EVIDENCE), [], force=False)

    @pytest.mark.parametrize("force", [False, True])
    def test_not_ready(self, force):
        found = node("Unknown", boot_id="new", evidence=EVIDENCE)
        assert why(rules.check_back, found, [], force=force) == "not_ready"

    def test_the_old_boot_id(self):
        found = node("True", boot_id="old", evidence=EVIDENCE)
        assert why(rules.check_back, found, [], force=False) == "same_boot"
        rules.check_back(found, [], force=True)

    def test_no_boot_id(self):
        assert why(rules.check_back, node("True", boot_id="", evidence=EVIDENCE), [], force=False) == "same_boot"

    @pytest.mark.parametrize("evidence", [None, {}, [], {"boot_id": "old", "removed": {"forced": True}}])
    def test_no_evidence_of_this_collection(self, evidence):
        found = node("True", boot_id="new", evidence=evidence)
        assert why(rules.check_back, found, [], force=False) == "not_ours"
        rules.check_back(found, [], force=True)

    def test_something_is_left(self):
        left = rules.blockers([rules.occupant(pod(), "nodeshutdown")], [])
        found = node("True", boot_id="new", evidence=EVIDENCE)
        for force in (False, True):
            with pytest.raises(Refused, match="ns/p"):
                rules.check_back(found, left, force=force)
        rules.check_back(node("True", boot_id="old", evidence=EVIDENCE), left, force=True)

    @pytest.mark.parametrize("asked", [True, False])
    def test_a_volume_that_its_driver_does_not_detach(self, asked):
        metadata = {"name": "va", **({"deletionTimestamp": "2026-05-04T10:00:00Z"} if asked else {})}
        item = {"metadata": metadata, "spec": {"attacher": "csi", "nodeName": "n", "source": {}}}
        left = rules.blockers([], [rules.attachment(item)])
        found = node("True", boot_id="new", evidence=EVIDENCE)
        assert why(rules.check_back, found, left, force=False) == "left"
        assert bool(rules.attachments_advice(left)) is asked
        if asked:
            rules.check_back(found, left, force=True)
        else:
            assert why(rules.check_back, found, left, force=True) == "left"

    @given(
        st.sampled_from(["True", "False", "Unknown"]),
        st.sampled_from(["old", "new", ""]),
        st.sampled_from([None, {}, {"boot_id": "old"}]),
        st.booleans(),
        st.booleans(),
    )
    def test_only_with_all_of_it(self, ready, boot_id, evidence, left, force):
        found = node(ready, boot_id=boot_id, evidence=evidence)
        blockers = rules.blockers([rules.occupant(pod(), "nodeshutdown")], []) if left else []
        was_off = bool(evidence) and boot_id == "new"
        good = ready == "True" and (not left if was_off else force)
        try:
            rules.check_back(found, blockers, force=force)
        except Refused:
            assert not good
        else:
            assert good


@pytest.mark.parametrize(
    ("tolerations", "stays"),
    [
        ([], False),
        ([{"operator": "Exists"}], True),
        ([{"operator": "Exists", "effect": "NoExecute"}], True),
        ([{"operator": "Exists", "effect": "NoSchedule"}], False),
        ([{"key": KEY, "operator": "Exists"}], True),
        ([{"key": KEY, "operator": "Exists", "effect": "NoExecute"}], True),
        ([{"key": KEY, "value": "nodeshutdown"}], True),
        ([{"key": KEY, "operator": "Equal", "value": "hardwarefailure"}], False),
        ([{"key": KEY}], False),
        ([{"operator": "Equal", "value": "nodeshutdown"}], False),
        ([{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}], False),
        ([{"key": KEY, "operator": "Exists", "tolerationSeconds": 5}], False),
        ([{"key": KEY, "operator": "Exists", "tolerationSeconds": 5}, {"operator": "Exists"}], False),
        ([{"operator": "Exists"}, {"key": KEY, "operator": "Exists", "tolerationSeconds": 5}], True),
        ([{"operator": "Exists", "effect": "NoSchedule"}, {"operator": "Exists"}], True),
        ([{"key": "theirs", "operator": "Exists"}, {"operator": "Exists"}], True),
        ([{"key": KEY, "value": "hardwarefailure"}, {"operator": "Exists"}], True),
        ([{"key": KEY, "operator": "Gt", "value": "nodeshutdown"}], False),
    ],
)
def test_pods_that_tolerate_it_stay(tolerations, stays):
    assert bool(rules.occupant(pod(tolerations=tolerations), "nodeshutdown").stays) == stays


def test_a_pod_that_tolerates_the_taint_and_is_being_deleted_goes():
    found = rules.occupant(
        pod(tolerations=[{"operator": "Exists"}], deletionTimestamp="then", finalizers=["f"]), "nodeshutdown"
    )
    assert not found.stays
    assert "then" in found.reason()
    assert "f" in found.reason()


_KEPT = {"deletionTimestamp": "then", "finalizers": ["a.b/c"]}


@pytest.mark.parametrize(
    ("phase", "metadata", "stays"),
    [
        ("Failed", _KEPT, "it has ended, and its finalizers keep it: a.b/c"),
        ("Succeeded", _KEPT, "its finalizers keep it"),
        # Its containers may run.
        ("Running", _KEPT, ""),
        ("Unknown", _KEPT, ""),
        # It is removed.
        ("Failed", {"deletionTimestamp": "then"}, ""),
        ("Failed", {"finalizers": ["a.b/c"]}, ""),
    ],
)
def test_a_pod_that_has_ended_and_that_finalizers_keep_needs_no_taint(phase, metadata, stays):
    found = rules.occupant({**pod(**metadata), "status": {"phase": phase}}, "nodeshutdown").stays
    assert stays in found
    assert bool(found) == bool(stays)


def test_mirror_pods_stay():
    assert "static" in rules.occupant(pod(annotations={"kubernetes.io/config.mirror": "x"}), "nodeshutdown").stays


def test_what_is_left_is_named():
    item = {
        "metadata": {"name": "va", "deletionTimestamp": "then"},
        "spec": {"attacher": "csi", "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
        "status": {"attached": True, "detachError": {"message": "device busy"}},
    }
    (left_pod, left_volume) = rules.blockers([rules.occupant(pod(), "nodeshutdown")], [rules.attachment(item)])
    assert (left_pod["kind"], left_pod["uid"], left_volume["kind"]) == ("Pod", "uid-p", "VolumeAttachment")
    words = rules.sentence([left_pod, left_volume])
    assert "Pod ns/p" in words
    assert "VolumeAttachment va is left (csi could not detach it: device busy)" in words
    assert rules.attachment(item).to_data(rules.LEFT) == {
        "name": "va",
        "volume": "pv",
        "attacher": "csi",
        "reason": "csi could not detach it: device busy",
        "state": "left",
    }
    del item["status"]["detachError"]
    assert "at then" in rules.attachment(item).reason
    del item["metadata"]["deletionTimestamp"]
    assert "not requested" in rules.attachment(item).reason


def test_a_sign_of_life_is_dated_by_the_api_server():
    lease = {
        "metadata": {"managedFields": [{"time": "2026-05-04T10:00:00Z"}, {"time": "2026-05-04T09:00:00Z"}, {}]},
        "spec": {"leaseDurationSeconds": 20, "renewTime": "2030-01-01T00:00:00Z"},
    }
    assert rules.last_sign(lease) == NOW
    assert rules.quiet_seconds(lease) == 10
    assert rules.last_sign({"metadata": {}}) is None
    assert rules.quiet_seconds({"metadata": {}}) == 15
    assert rules.quiet_seconds({"metadata": {}, "spec": {"leaseDurationSeconds": 2**31 - 1}}) == 305


def test_what_is_left_is_sorted_by_name():
    volumes = [rules.Attachment(name, "pv", "csi") for name in ("b", "a")]
    pods = [rules.occupant(pod(name), "nodeshutdown") for name in ("q", "p")]

    assert [item["name"] for item in rules.blockers(pods, volumes)] == ["p", "q", "a", "b"]
    assert rules.blockers([], volumes)[0] == {
        "kind": "VolumeAttachment",
        "namespace": None,
        "name": "a",
        "uid": None,
        "reason": "",
        "detaching": False,
    }


def test_only_a_pod_that_stays_has_a_reason_to():
    staying = rules.occupant(pod(tolerations=[{"operator": "Exists"}]), "nodeshutdown")
    told = {"namespace": "ns", "name": "p", "uid": "uid-p"}

    assert staying.to_data(rules.STAYS) == {**told, "state": "stays", "reason": staying.stays}
    assert staying.to_data(rules.GONE) == {**told, "state": "gone", "reason": ""}


def test_a_pod_is_asked_to_go_before_its_finalizers_keep_it():
    asked = rules.occupant(pod(deletionTimestamp="then"), "nodeshutdown")

    assert asked.reason() == "its deletion started at then"
    assert rules.occupant(pod(), "nodeshutdown").reason() == "its deletion has not started"


def test_results_show_no_more_of_a_taint_than_its_meaning():
    (taint,) = rules.with_taint(node(), "nodeshutdown", NOW)

    assert rules.shown(taint) == {"key": KEY, "value": "nodeshutdown", "effect": "NoExecute"}
    assert rules.shown(None) is None
