# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordons on a real API server: their owners, the state before, and which one comes first."""

from __future__ import annotations

import json
import threading

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.modules import cordon

CORDON = "holdfast.dev/cordon"
KEEP_CORDONED = "holdfast.dev/keep-cordoned"


class One:
    """One node, and what kubectl and this collection do to it."""

    def __init__(self, world, lab):
        self.world, self.lab = world, lab
        (self.name,) = world.nodes()

    def kubectl_again(self):
        """A person uncordons the node with kubectl, and cordons it again."""
        for verb in ("uncordon", "cordon"):
            self.lab.kubectl(verb, self.name)

    def take(self, **more):
        return self.world.run(cordon, name=self.name, **more)

    def give_back(self, **more):
        return self.take(state="uncordoned", **more)

    def kubectl(self, *, cordoned):
        self.world.cluster.merge(paths.node(self.name), {"spec": {"unschedulable": cordoned or None}})

    @property
    def kept(self):
        return self.world.kept(self.name)

    def annotate(self, **annotations):
        self.world.cluster.merge(paths.node(self.name), {"metadata": {"annotations": annotations}})

    @property
    def cordoned(self):
        return self.world.cordoned(self.name)

    @property
    def record(self):
        return json.loads(self.world.node(self.name)["metadata"]["annotations"].get(CORDON, "null"))


@pytest.fixture
def node(world, lab):
    return One(world, lab)


def test_records_who_why_and_what_was_before(node):
    result = node.take(owner="storage", reason="disk")

    assert (result["changed"], result["unschedulable"], result["owner"]) == (True, True, "storage")
    assert {key: value for key, value in node.record.items() if key != "since"} == {
        "owner": "storage",
        "reason": "disk",
        "unschedulable_before": False,
    }
    assert node.record["since"]
    assert result["diff"]["after"] == {"unschedulable": True, "cordon": node.record}


@pytest.mark.core
def test_there_and_back_and_each_only_once(node):
    before = node.kept
    assert [node.take()["changed"] for _round in range(2)] == [True, False]
    assert [node.give_back()["changed"] for _round in range(2)] == [True, False]
    assert node.kept == before
    assert not node.cordoned


@pytest.mark.core
def test_a_person_s_cordon_stays_although_our_record_is_older(node):
    node.take()
    node.kubectl_again()
    node.take(reason="a second run")

    result = node.give_back()

    assert (node.cordoned, node.record) == (True, None)
    assert "kubectl has cordoned it again since holdfast" in " ".join(result["warnings"])


def test_a_node_that_someone_else_cordoned_stays_cordoned(node):
    node.kubectl(cordoned=True)
    node.take()
    assert node.record["unschedulable_before"] is True

    result = node.give_back()

    assert result["unschedulable"] is True
    assert node.cordoned
    assert node.record is None
    assert "it was cordoned before" in result["warnings"][0]


def test_a_cordon_without_our_record_is_nobody_s_to_undo(node):
    node.kubectl(cordoned=True)
    result = node.give_back()

    assert (result["changed"], result["unschedulable"], result["owner"]) == (False, True, None)
    assert "without this collection's record" in result["warnings"][0]


def test_keep_cordoned(node):
    node.take()
    node.annotate(**{KEEP_CORDONED: "broken fan"})
    result = node.give_back()

    assert node.cordoned
    assert node.record is None
    assert node.world.node(node.name)["metadata"]["annotations"][KEEP_CORDONED] == "broken fan"
    assert "keep-cordoned" in result["warnings"][0]


def test_another_owner(node):
    node.take(owner="them", reason="disk")
    before = node.kept

    taken, given_back = node.take(owner="us"), node.give_back(owner="us")

    assert (taken["failed"], taken["error"], taken["owner"]) == (True, "refused", "them")
    assert "disk" in taken["msg"]
    assert (given_back["changed"], given_back["owner"]) == (False, "them")
    assert node.kept == before


def test_force(node):
    node.take(owner="them")
    assert node.take(owner="us", force=True)["owner"] == "us"
    assert node.record["unschedulable_before"] is False

    assert node.give_back(owner="anybody", force=True)["unschedulable"] is False
    node.kubectl(cordoned=True)
    assert node.give_back(force=True)["changed"]
    assert not node.cordoned


def test_check_mode(node):
    before = node.kept
    plan = node.take(check_mode=True, owner="us")
    assert node.kept == before
    assert (plan["changed"], plan["unschedulable"], plan["owner"]) == (True, True, "us")

    node.take(owner="us")
    before = node.kept
    plan = node.give_back(check_mode=True, owner="us")
    assert node.kept == before
    assert (plan["changed"], plan["unschedulable"]) == (True, False)


@pytest.mark.core
def test_of_many_owners_at_once_one_wins(node):
    futures = [node.world.start(cordon, name=node.name, owner=f"owner-{number}") for number in range(16)]
    results = [future.result() for future in futures]

    (winner,) = [result for result in results if not result.get("failed")]
    assert winner["owner"] == node.record["owner"]
    assert {result["error"] for result in results if result.get("failed")} == {"refused"}
    assert node.record["unschedulable_before"] is False, "the second took the first's cordon for another user's"


def test_others_who_write_to_the_node_all_the_time(node):
    """Heartbeats and other annotations cause conflicts; no write is lost, neither theirs nor ours."""
    stop = threading.Event()
    written = []

    def busy():
        while not stop.wait(0.02):
            node.annotate(**{f"busy-{len(written)}": "1"})
            written.append(1)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _round in range(5):
            assert not node.take().get("failed")
            assert not node.give_back().get("failed")
    finally:
        stop.set()
        thread.join()

    found = node.world.node(node.name)["metadata"]["annotations"]
    assert {f"busy-{number}" for number in range(len(written))} <= set(found)
    assert not node.cordoned


def test_no_such_node(world):
    result = world.run(cordon, name=f"{world.namespace}-none")

    assert (result["failed"], result["error"]) == (True, "not_found")
    assert "kubectl get nodes" in result["msg"]
