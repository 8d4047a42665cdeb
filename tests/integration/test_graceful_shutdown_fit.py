# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""graceful_shutdown_fit and real pods of the API."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.modules import graceful_shutdown_fit

NODE_CRITICAL = {"priorityClassName": "system-node-critical"}
MINUTE = {"total": 60, "critical": 20}


@pytest.fixture
def fit(world):
    def look(**options):
        result = world.run(graceful_shutdown_fit, **options)
        assert not result.get("failed"), result
        assert result["changed"] is False
        return result

    return look


def place(world, name, node, seconds, **spec):
    world.pod(name, node, terminationGracePeriodSeconds=seconds, **spec)


@pytest.fixture
def node(world):
    """A node with pods of several grace periods."""
    (name,) = world.nodes()
    world.open(name)
    place(world, "long", name, 120)
    place(world, "exact", name, 40)
    place(world, "critical", name, 30, **NODE_CRITICAL)
    place(world, "finished", name, 600)
    world.set_pod("finished", phase="Succeeded")
    return name


def test_names_the_pods_that_are_cut_short(world, fit, node):
    result = fit(name=node, **MINUTE)

    (found,) = result["nodes"]
    assert (result["enabled"], result["needed"]) == (True, 60)
    assert (found["name"], found["fits"], found["pods"]) == (node, False, 3)
    assert found["cut_short"] == [
        {"namespace": world.namespace, "name": "long", "priority": 0, "wants": 120, "gets": 40, "short_by": 80},
        {
            "namespace": world.namespace,
            "name": "critical",
            "priority": 2_000_001_000,
            "wants": 30,
            "gets": 20,
            "short_by": 10,
        },
    ]
    assert found["longest"] == [{"priority": 0, "seconds": 120}, {"priority": 2_000_000_000, "seconds": 30}]


def test_what_they_want_fits(fit, node):
    assert fit(name=node, total=150, critical=30)["nodes"][0]["fits"]
    groups = [{"priority": 0, "seconds": 120}, {"priority": 2_000_001_000, "seconds": 30}]
    assert fit(name=node, by_priority=groups)["nodes"][0]["fits"]


def test_off_gives_no_pod_any_time(fit, node):
    result = fit(name=node)

    assert (result["enabled"], result["needed"], result["groups"]) == (False, 0, [])
    assert {item["name"]: item["gets"] for item in result["nodes"][0]["cut_short"]} == {
        "long": 0,
        "exact": 0,
        "critical": 0,
    }


def test_all_nodes_of_a_selector(world, fit, node):
    (empty,) = world.nodes()

    result = fit(selector=f"pool={world.namespace}", **MINUTE)

    assert {item["name"]: item["fits"] for item in result["nodes"]} == {node: False, empty: True}


def test_a_missing_node_is_reported(world):
    result = world.run(graceful_shutdown_fit, name=f"{world.namespace}-none", **MINUTE)

    assert (result["failed"], result["error"]) == (True, "not_found")


@pytest.mark.parametrize(
    "options", [{"total": 10, "critical": 20}, {"total": 10, "by_priority": [{"priority": 0, "seconds": 1}]}]
)
def test_refuses_what_the_kubelet_would(world, options):
    result = world.run(graceful_shutdown_fit, **options)

    assert (result["failed"], result["error"]) == (True, "invalid_input")
