# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether etcd keeps its quorum without one node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.quorum_rules import (
    EtcdPod,
    is_control_plane,
    quorum_without,
    read_etcd_pod,
)

NODES = ["a", "b", "c", "d", "e", "f", "g"]


def pod(node, number=0, *, ready=True):
    return EtcdPod(uid=f"{node}-{number}", name=f"kube-system/etcd-{node}", node=node, ready=ready)


def members(*nodes):
    return [pod(node) for node in nodes]


def up(*nodes):
    return dict.fromkeys(nodes, True)


@pytest.mark.parametrize(
    ("nodes", "needed", "kept"),
    [("a", 1, False), ("ab", 2, False), ("abc", 2, True), ("abcd", 3, True), ("abcde", 3, True)],
)
def test_one_of_many_may_go(nodes, needed, kept):
    quorum = quorum_without("a", members(*nodes), up(*nodes))

    assert (quorum.needed, quorum.kept) == (needed, kept)
    assert quorum.can_spare_one is kept


def test_one_of_three_may_not_go_when_another_is_missing():
    quorum = quorum_without("a", [*members("a", "b"), pod("c", ready=False)], up("a", "b", "c"))

    assert quorum.kept is False
    assert quorum.members == ("a", "b", "c")
    assert quorum.ready_others == ("b",)
    assert quorum.missing == {"c": "its pod kube-system/etcd-c is not Ready"}
    assert quorum.can_spare_one
    assert not quorum.pods_suffice


def test_of_five_two_may_be_missing():
    pods = [*members("a", "b", "c", "d"), pod("e", ready=False)]

    assert quorum_without("a", pods, up(*"abcde")).kept is True
    assert quorum_without("a", pods, {**up(*"abcde"), "d": False}).kept is False


def test_a_ready_pod_on_a_node_that_is_not_ready_does_not_count():
    quorum = quorum_without("a", members("a", "b", "c"), {"a": True, "b": True, "c": False})

    assert quorum.kept is False
    assert quorum.missing == {"c": "its Node is not Ready"}
    assert quorum.pods_suffice, "it is the Node alone that is waited for"


def test_a_member_without_a_node_is_no_help_but_counts_as_one():
    quorum = quorum_without("a", members("a", "b", "gone"), up("a", "b"))

    assert quorum.kept is False
    assert quorum.needed == 2
    assert quorum.missing == {"gone": "its Node does not exist"}
    assert not quorum.pods_suffice


@pytest.mark.parametrize("name", ["a", "x"])
def test_a_pod_on_a_node_without_a_role_is_no_help_but_counts_as_a_member(name):
    """Root on a worker can run a pod with the labels of etcd."""
    pods, nodes = members("a", "b", "c", "x", "y"), {**up("a", "b", "x", "y"), "c": False}

    quorum = quorum_without(name, pods, nodes, {"a", "b", "c"})

    assert quorum.kept is False
    assert "has neither the label node-role.kubernetes.io/control-plane nor" in quorum.missing["y"]
    assert quorum_without("a", members("a", "b", "c"), up("a", "b", "c"), {"d"}).kept, "no member is on a labelled node"
    assert quorum_without("a", members("a", "b", "c"), up("a", "b", "c"), {"a", "b", "c"}).kept


def test_without_pods_it_is_unknown():
    quorum = quorum_without("a", [], up("a", "b", "c"))

    assert quorum.kept is None
    assert quorum.needed == 0


def test_two_pods_on_a_node_are_one_member():
    old = pod("b", 1, ready=False)

    assert quorum_without("a", [*members("a", "b"), pod("b", 1)], up("a", "b")).kept is False
    assert quorum_without("a", [*members("a", "b", "c"), old], up("a", "b", "c")).ready_others == ("b", "c")


@given(
    placed=st.lists(st.tuples(st.sampled_from(NODES), st.booleans()), max_size=12),
    nodes=st.dictionaries(st.sampled_from(NODES), st.booleans()),
    name=st.sampled_from(NODES),
)
def test_what_is_left_is_more_than_half_of_all(placed, nodes, name):
    pods = [pod(node, number, ready=ready) for number, (node, ready) in enumerate(placed)]
    quorum = quorum_without(name, pods, nodes)

    everyone = {node for node, _ready in placed}
    left = {node for node, ready in placed if ready and nodes.get(node) and node != name}
    assert set(quorum.members) == everyone
    assert set(quorum.ready_others) == left
    assert set(quorum.ready_others) | set(quorum.missing) == everyone - {name}
    assert quorum.kept is (2 * len(left) > len(everyone) if everyone else None)
    if quorum.kept:
        assert quorum.pods_suffice
        assert quorum.can_spare_one
    assert quorum_without(name, list(reversed(pods)), dict(reversed(nodes.items()))) == quorum


@given(
    placed=st.lists(st.tuples(st.sampled_from(NODES), st.booleans()), max_size=8),
    nodes=st.dictionaries(st.sampled_from(NODES), st.booleans()),
    name=st.sampled_from(NODES),
)
def test_nodes_alone_are_waited_for_when_they_alone_are_behind(placed, nodes, name):
    pods = [pod(node, number, ready=ready) for number, (node, ready) in enumerate(placed)]

    assert quorum_without(name, pods, nodes).pods_suffice == (
        quorum_without(name, pods, dict.fromkeys(nodes, True)).kept is not False
    )


def api_pod(phase="Running", ready="True", node="a", **metadata):
    return {
        "metadata": {"name": "etcd-a", "namespace": "kube-system", "uid": "1", **metadata},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
    }


def test_which_pods_are_ready():
    assert read_etcd_pod(api_pod()) == EtcdPod("1", "kube-system/etcd-a", "a", ready=True)
    assert not read_etcd_pod(api_pod(ready="False")).ready
    assert not read_etcd_pod(api_pod(phase="Failed")).ready
    assert not read_etcd_pod(api_pod(deletionTimestamp="2026-01-02T03:04:05Z")).ready
    assert not read_etcd_pod({"metadata": api_pod()["metadata"]}).ready


def test_a_pod_without_a_node_is_a_member_of_its_own():
    assert read_etcd_pod(api_pod(node="", phase="Pending")).node == "etcd-a"


@pytest.mark.parametrize("label", ["control-plane", "master"])
def test_what_is_a_control_plane_node(label):
    assert is_control_plane({"metadata": {"labels": {f"node-role.kubernetes.io/{label}": ""}}})
    assert not is_control_plane({"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}})
