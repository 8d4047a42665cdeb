# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who cordoned a node, what was before, and what is undone: against a Node that lives in memory."""

from __future__ import annotations

import copy
import json
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput, NotFound, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import (
    CLAIM,
    CORDON,
    KEEP_CORDONED,
    OPERATION,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import ClaimLost
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation_rules import Phase, phase_of
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.cordon import give_back, take
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.cordon_rules import (
    owner_of,
    shown,
    slim,
    why_it_stays,
)


class OneNode:
    """The part of a cluster that a cordon needs."""

    def __init__(self, *, unschedulable=False, **annotations):
        self.node = {"metadata": {"name": "n", "resourceVersion": "1", "annotations": annotations}, "spec": {}}
        if unschedulable:
            self.node["spec"]["unschedulable"] = True

    def now(self):
        return datetime(2026, 5, 4, tzinfo=timezone.utc)

    def find(self, path):
        return copy.deepcopy(self.node) if path.endswith("/n") else None

    def merge(self, _path, patch):
        assert patch["metadata"]["resourceVersion"] == self.node["metadata"]["resourceVersion"]
        self.node["metadata"]["resourceVersion"] += "1"
        for target, change in (
            (self.node["metadata"]["annotations"], patch["metadata"]["annotations"]),
            (self.node["spec"], patch["spec"]),
        ):
            for key, value in change.items():
                target.pop(key, None)
                if value is not None:
                    target[key] = value
        return copy.deepcopy(self.node)

    @property
    def cordoned(self):
        return self.node["spec"].get("unschedulable", False)

    @property
    def record(self):
        return json.loads(self.node["metadata"]["annotations"].get(CORDON, "null"))


def test_cordon_and_uncordon_leave_nothing():
    cluster = OneNode(mine="kept")
    take(cluster, "n", "me", "why")
    assert cluster.cordoned
    assert cluster.record == {
        "owner": "me",
        "reason": "why",
        "since": "2026-05-04T00:00:00.000000Z",
        "unschedulable_before": False,
    }

    give_back(cluster, "n", "me")

    assert not cluster.cordoned
    assert cluster.node["metadata"]["annotations"] == {"mine": "kept"}
    assert cluster.node["spec"] == {}


def test_a_node_that_others_had_cordoned_stays_cordoned():
    cluster = OneNode(unschedulable=True)
    take(cluster, "n", "me", "")
    before, after = give_back(cluster, "n", "me")

    assert cluster.cordoned
    assert cluster.record is None
    assert before is not after


def test_keep_cordoned_during_the_drain():
    cluster = OneNode()
    take(cluster, "n", "me", "")
    cluster.node["metadata"]["annotations"][KEEP_CORDONED] = ""
    assert "annotation" in why_it_stays(cluster.node, "me")
    give_back(cluster, "n", "me")

    assert cluster.cordoned
    assert cluster.record is None
    assert KEEP_CORDONED in cluster.node["metadata"]["annotations"]


def test_uncordoned_by_others_during_the_drain_stays_uncordoned():
    cluster = OneNode()
    take(cluster, "n", "me", "")
    del cluster.node["spec"]["unschedulable"]
    give_back(cluster, "n", "me")

    assert not cluster.cordoned


def test_a_cordon_after_an_uncordon_by_others_is_only_ours():
    cluster = OneNode(unschedulable=True)
    take(cluster, "n", "me", "")
    del cluster.node["spec"]["unschedulable"]
    take(cluster, "n", "me", "")
    assert cluster.cordoned
    give_back(cluster, "n", "me")

    assert not cluster.cordoned


def test_what_is_shown_of_a_node():
    cluster = OneNode()
    assert shown(cluster.node) == {"unschedulable": False, "cordon": None}
    assert owner_of(cluster.node) is None

    take(cluster, "n", "me", "why")

    assert shown(cluster.node) == {"unschedulable": True, "cordon": cluster.record}
    assert owner_of(cluster.node) == "me"


def test_a_record_without_an_owner_has_none():
    assert owner_of(OneNode(**{CORDON: json.dumps({"reason": "why"})}).node) is None


def test_twice_is_once():
    cluster = OneNode()
    take(cluster, "n", "me", "why")
    before, after = take(cluster, "n", "me", "")

    assert before is after
    assert cluster.record["reason"] == "why"


def test_another_owner_is_refused_and_named():
    cluster = OneNode()
    take(cluster, "n", "you", "disk")

    with pytest.raises(Refused, match=r"cordoned by you since .*disk.*not by me"):
        take(cluster, "n", "me", "")
    before, after = give_back(cluster, "n", "me")
    assert before is after
    assert "you cordoned it" in why_it_stays(after, "me")


def test_the_cordon_of_another_owner_is_shared():
    cluster = OneNode()
    take(cluster, "n", "you", "disk")
    before, after = take(cluster, "n", "me", "", share=True)

    assert before is after
    assert cluster.record["owner"] == "you"


def test_the_record_of_another_owner_is_refused_if_the_node_is_not_cordoned():
    cluster = OneNode()
    take(cluster, "n", "you", "disk")
    del cluster.node["spec"]["unschedulable"]

    with pytest.raises(Refused, match="cordoned by you"):
        take(cluster, "n", "me", "", share=True)


def test_force_takes_over_and_remembers_what_was_before_the_first():
    cluster = OneNode(unschedulable=True)
    take(cluster, "n", "you", "")
    take(cluster, "n", "me", "", force=True)
    assert cluster.record["owner"] == "me"
    give_back(cluster, "n", "me")

    assert cluster.cordoned


def test_force_uncordons_for_any_owner():
    cluster = OneNode(unschedulable=True)
    give_back(cluster, "n", "me", force=True)

    assert not cluster.cordoned
    before, after = give_back(cluster, "n", "me", force=True)
    assert before is after


@pytest.mark.parametrize("text", ["", "no json", "[]", "7", '"text"'])
def test_an_invalid_record_counts_as_none(text):
    cluster = OneNode(unschedulable=True, **{CORDON: text})
    give_back(cluster, "n", "me")
    assert cluster.cordoned
    assert "without this collection's record" in why_it_stays(cluster.node, "me")
    take(cluster, "n", "me", "")
    assert owner_of(cluster.node) == "me"
    give_back(cluster, "n", "me")

    assert cluster.cordoned


@pytest.mark.parametrize(
    ("spec", "record", "stays"),
    [
        (["holdfast.kubernetes"], ["holdfast.kubernetes"], False),
        (["kubectl-cordon"], ["holdfast.kubernetes"], True),
        (["holdfast.kubernetes", "gitops"], ["holdfast.kubernetes"], False),
        (["kubectl-cordon"], [], False),
        ([], ["holdfast.kubernetes"], False),
    ],
)
def test_a_cordon_of_another_client_stays(spec, record, stays):
    cluster = OneNode()
    take(cluster, "n", "me", "")
    cluster.node["metadata"]["managedFields"] = [
        *({"manager": name, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}} for name in spec),
        *({"manager": name, "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{CORDON}": {}}}}} for name in record),
        {"manager": "kubelet", "fieldsV1": {"f:metadata": {"f:annotations": {}}, "f:spec": None}},
        {"manager": "old"},
    ]
    assert ("managedFields" in slim(cluster.node)["metadata"]) is stays
    before = give_back(cluster, "n", "me")[0]
    assert cluster.cordoned is stays
    assert cluster.record is None
    assert ("kubectl-cordon has cordoned it again since me" in why_it_stays(before, "me")) is stays


def test_no_such_node():
    with pytest.raises(NotFound, match="no Node m"):
        take(OneNode(), "m", "me", "")


@given(
    st.booleans(), st.lists(st.sampled_from(["take", "give_back", "kubectl cordon", "kubectl uncordon"]), max_size=8)
)
def test_only_our_cordon_is_undone_whatever_others_do(cordoned_before, steps):
    cluster = OneNode(unschedulable=cordoned_before)
    wanted_by_others = cordoned_before
    for step in steps:
        if step == "take":
            take(cluster, "n", "me", "")
        elif step == "give_back":
            give_back(cluster, "n", "me")
            # Cordoned by others while ours stood is not to be told from ours: that is what keep-cordoned is for.
            assert cluster.cordoned or not wanted_by_others
        elif step == "kubectl uncordon":
            cluster.node["spec"].pop("unschedulable", None)
            wanted_by_others = False
        elif cluster.record is None:
            cluster.node["spec"]["unschedulable"] = True
            wanted_by_others = True
    if cluster.record is not None:
        give_back(cluster, "n", "me")
    assert cluster.cordoned == wanted_by_others


CLAIMED = {CLAIM: json.dumps({"run": "me", "operation": "kernel"})}


def phase_of_node(cluster):
    return json.loads(cluster.node["metadata"]["annotations"][OPERATION])["phase"]


def test_a_cordon_records_its_phase_by_the_same_write():
    cluster = OneNode(**CLAIMED)
    take(cluster, "n", "me", "why", run="me", phase=Phase("kernel", "me", "cordon"))
    assert (phase_of_node(cluster), cluster.cordoned) == ("cordon", True)
    assert cluster.node["metadata"]["resourceVersion"] == "11", "one write"

    before, after = take(cluster, "n", "me", "why", run="me", phase=Phase("kernel", "me", "cordon"))
    assert before is after


def test_an_uncordon_records_its_phase_by_the_same_write():
    cluster = OneNode(**CLAIMED)
    take(cluster, "n", "me", "why", run="me", phase=Phase("kernel", "me", "cordon"))
    give_back(cluster, "n", "me", run="me", phase=Phase("kernel", "me", "uncordon"))
    assert (phase_of_node(cluster), cluster.cordoned) == ("uncordon", False)
    assert cluster.node["metadata"]["resourceVersion"] == "111"


def test_a_phase_is_recorded_also_if_the_cordon_belongs_to_others():
    cluster = OneNode(unschedulable=True, **CLAIMED)
    give_back(cluster, "n", "me", run="me", phase=Phase("kernel", "me", "uncordon"))
    assert (phase_of_node(cluster), cluster.cordoned) == ("uncordon", True)


def test_a_run_without_the_claim_records_nothing():
    cluster = OneNode()
    with pytest.raises(ClaimLost):
        take(cluster, "n", "me", "why", run="me", phase=Phase("kernel", "me", "cordon"))
    assert cluster.node["metadata"]["annotations"] == {}


def test_an_operation_needs_its_run():
    with pytest.raises(InvalidInput, match="operation kernel needs run"):
        phase_of({"operation": "kernel"}, "cordon")
    assert phase_of({"run": "me"}, "cordon") is None
