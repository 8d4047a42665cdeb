# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal of leftover pods after a shutdown, against a real API server."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.modules import leftover_pods

BY_KUBELET = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}


@pytest.fixture
def node(world, nodes):
    """A node with two leftovers and with three pods that must not be removed."""
    (name,) = nodes()
    for pod in ("ended", "refused", "failed", "at-work"):
        world.owned(pod, name)
    for pod, status in {
        "ended": {"phase": "Failed", "reason": "Terminated", "conditions": [BY_KUBELET]},
        "refused": {"phase": "Failed", "reason": "NodeShutdown"},
        "failed": {"phase": "Failed"},
    }.items():
        world.cluster.merge(f"{world.path('pods')}/{pod}/status", {"status": status})
    return name


def names(pods):
    return {item["name"] for item in pods}


def test_removes_what_a_shutdown_left_and_nothing_else(world, node):
    uids = {name: pod["metadata"]["uid"] for name, pod in world.pods(node).items()}

    result = world.run(leftover_pods, name=node)

    assert result["changed"] is True
    assert names(result["pods"]) == {"ended", "refused"}
    assert {item["uid"] for item in result["pods"]} == {uids["ended"], uids["refused"]}
    for name in ("ended", "refused"):
        world.until(world.path("pods"), name, lambda item: item is None)
    assert set(world.pods(node)) == {"failed", "at-work"}

    again = world.run(leftover_pods, name=node)
    assert (again["changed"], again["pods"]) == (False, [])


def test_only_looks(world, node):
    before = world.snapshot()

    result = world.run(leftover_pods, name=node, state="reported")

    assert (result["changed"], names(result["pods"])) == (False, {"ended", "refused"})
    assert [item["removed"] for item in result["pods"]] == [False, False]
    assert world.snapshot() == before


def test_check_mode_changes_nothing(world, node):
    before = world.snapshot()

    result = world.run(leftover_pods, name=node, check_mode=True)

    assert (result["changed"], names(result["pods"])) == (True, {"ended", "refused"})
    assert world.snapshot() == before


def test_pods_that_nobody_makes_again_go_only_by_force(world, node):
    # Its owner's API group is neither apps nor core, and no controller manages the pod.
    made = world.create("poddisruptionbudgets", "import", {"spec": {"selector": {"matchLabels": {"app": "import"}}}})
    owner = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "name": "import",
        "controller": True,
        "uid": made["metadata"]["uid"],
    }
    world.pod("bare", node)
    world.pod("counted", node, metadata={"ownerReferences": [owner]})
    for pod in ("bare", "counted"):
        world.cluster.merge(
            f"{world.path('pods')}/{pod}/status", {"status": {"phase": "Failed", "reason": "Terminated"}}
        )

    result = world.run(leftover_pods, name=node)

    assert {item["name"]: item["removed"] for item in result["pods"]} == {
        **dict.fromkeys(("ended", "refused"), True),
        **dict.fromkeys(("bare", "counted"), False),
    }
    kept = {item["name"]: item["kept"] for item in result["pods"] if not item["removed"]}
    assert "it has no owner" in kept["bare"]
    assert "PodDisruptionBudget import" in kept["counted"]
    assert {"bare", "counted"} <= set(world.pods(node))
    assert world.run(leftover_pods, name=node)["changed"] is False

    assert world.run(leftover_pods, name=node, force=True)["changed"] is True
    for name in ("bare", "counted"):
        world.until(world.path("pods"), name, lambda item: item is None)


def test_other_nodes_are_left(world, nodes, node):
    (other,) = nodes()
    world.owned("elsewhere", other)
    world.cluster.merge(
        f"{world.path('pods')}/elsewhere/status", {"status": {"phase": "Failed", "reason": "Terminated"}}
    )

    world.run(leftover_pods, name=node)

    assert set(world.pods(other)) == {"elsewhere"}


def test_a_node_that_is_not_there(world):
    result = world.run(leftover_pods, name="no-such-node")

    assert result["error"] == "not_found"
