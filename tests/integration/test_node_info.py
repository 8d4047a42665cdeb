# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_info returns for real Node objects and the objects that belong to them."""

from __future__ import annotations

import json

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation import node_operation
from ansible_collections.holdfast.kubernetes.plugins.modules import (
    cordon,
    lease_hold,
    node_info,
    reboot_slot,
)


@pytest.fixture
def info(world):
    """The one node of that name, as node_info returns it."""

    def look(name, **options):
        result = world.run(node_info, name=name, **options)
        assert not result.get("failed"), result
        assert result["changed"] is False
        (found,) = result["nodes"]
        return found

    return look


def test_an_idle_node(world, nodes, info):
    (name,) = nodes()
    world.open(name)

    found = info(name)

    assert found["name"] == name
    assert found["ready"] is True
    assert found["boot_id"] == world.node(name)["status"]["nodeInfo"]["bootID"]
    assert found["unschedulable"] is False
    assert found["labels"]["pool"] == world.namespace
    assert found["drain"] == {"verdict": "now", "blockers": []}
    nothing = {key: value for key, value in found.items() if value in (None, [], False)}
    assert set(nothing) == {
        "unschedulable",
        "cordoned_by",
        "holds",
        "shutdown_inhibited",
        "inhibited_by",
        "maintenance",
        "slot",
        "claim",
        "operation",
        "excluded",
        "taints",
        "leftovers",
    }


def test_an_unknown_name_gives_an_empty_list(world):
    assert world.run(node_info, name="no-such-node")["nodes"] == []
    assert world.run(node_info, selector="pool=no-such-pool")["nodes"] == []


def test_by_selector(world, nodes):
    names = nodes(3)
    for name in names:
        world.open(name)
    selector = f"pool={world.namespace}"

    found = world.run(node_info, selector=selector)["nodes"]

    assert [item["name"] for item in found] == sorted(names)
    assert found == [world.run(node_info, name=name)["nodes"][0] for name in sorted(names)]


def test_a_node_that_is_worked_on(world, nodes, info):
    (name,) = nodes()
    world.run(cordon, name=name, state="cordoned", owner="kernel", reason="reboot")
    slot = world.run(reboot_slot, name=name, group=world.namespace, operation="kernel", run="run-1", wait_timeout=0)
    world.made.objects.append(f"/api/v1/namespaces/holdfast/configmaps/group.{world.namespace}")
    step = {"operation": "kernel", "run": "run-1", "phase": "drain", "claimed": False}
    operation = world.run(node_operation, name=name, **step)

    found = info(name)

    assert found["cordoned_by"] == "kernel"
    assert found["unschedulable"] is True
    assert found["slot"] == slot["slot"]
    assert found["operation"] == operation["operation"]
    assert found["operation"]["phase"] == "drain"
    assert found["operation"]["unschedulable_before"] is False


def test_a_cordon_without_our_record(world, nodes, info):
    (name,) = nodes(closed=True)

    found = info(name)

    assert (found["unschedulable"], found["cordoned_by"]) == (True, None)


def test_what_others_set(world, nodes, info):
    (name,) = nodes()
    claim = {"run": "run-1", "purpose": "reboot", "since": "2026-11-21T09:00:00.000000Z"}
    world.cluster.merge(
        f"/api/v1/nodes/{name}",
        {
            "metadata": {
                "labels": {"holdfast.dev/exclude": ""},
                "annotations": {"holdfast.dev/claim": json.dumps(claim), "holdfast.dev/operation": "{broken"},
            },
            "spec": {"taints": [{"key": "example.com/gpu", "value": "yes", "effect": "PreferNoSchedule"}]},
        },
    )

    found = info(name)

    assert found["excluded"] is True
    assert found["claim"] == claim
    assert found["operation"] is None
    assert found["taints"] == [{"key": "example.com/gpu", "value": "yes", "effect": "PreferNoSchedule"}]


@pytest.mark.parametrize(
    ("status", "reason", "by"),
    [
        ("True", "shop/db,shop/cache", ["shop/db", "shop/cache"]),
        ("False", "NoInhibitors", []),
        ("Unknown", "AgentGone", []),
    ],
)
def test_the_node_s_condition(world, info, status, reason, by):
    (name,) = world.nodes()
    world.set_condition(name, "ShutdownInhibited", status, reason)

    found = info(name)

    assert (found["shutdown_inhibited"], found["inhibited_by"]) == (status == "True", by)


def test_holds_oldest_first(world, nodes, info):
    name, other = nodes(2)
    held = world.run(lease_hold, node=name, namespace=world.namespace, holder="db", reason="backup", wait=False)
    assert held["changed"], held
    # Not a hold: a Lease of that name counts only once it names its holder and the time.
    world.run(lease_hold, node=other, namespace=world.namespace, holder="db", wait=False)
    world.cluster.merge(f"{world.path('leases')}/{other}", {"spec": {"acquireTime": None}})

    (hold,) = info(name)["holds"]

    assert (hold["namespace"], hold["holder"], hold["reason"]) == (world.namespace, "db", "backup")
    assert hold["held_seconds"] >= 0
    assert info(other)["holds"] == []


class TestVerdict:
    def test_now(self, world, nodes, info):
        (name,) = nodes()
        world.workload("deployments", "web", 3)
        world.budget("web", "web", lambda status: status["disruptionsAllowed"] == 1, maxUnavailable=1)

        # Each pod alone may go now: a drain evicts one after the other.
        assert info(name)["drain"] == {"verdict": "now", "blockers": []}

    def test_later(self, world, nodes, info):
        (name,) = nodes()
        world.workload("deployments", "web", 3)
        world.budget("web", "web", lambda status: status["disruptionsAllowed"] == 1, maxUnavailable=1)
        unready = min(world.pods(name))
        world.unready(unready)
        world.until_budget("web", lambda status: status["disruptionsAllowed"] == 0)

        drain = info(name)["drain"]

        assert drain["verdict"] == "later"
        assert {item["verdict"] for item in drain["blockers"]} == {"later"}
        assert {item["pdb"] for item in drain["blockers"]} == {"web"}
        assert {item["name"] for item in drain["blockers"]} == set(world.pods(name)) - {unready}

    def test_never(self, world, nodes, info):
        (name,) = nodes()
        world.workload("deployments", "web", 2)
        world.budget("web", "web", lambda status: status["expectedPods"] == 2, minAvailable=2)

        drain = info(name)["drain"]

        assert drain["verdict"] == "never"
        assert [(item["verdict"], item["pdb"]) for item in drain["blockers"]] == [("never", "web")] * 2
        assert "wants 2 of 2 pods healthy, so it never allows an eviction" in drain["blockers"][0]["reason"]

    def test_what_the_user_would_have_to_allow(self, world, nodes, info):
        (name,) = nodes()
        world.pod("bare", name)
        world.owned("scratch", name, volumes=[{"name": "scratch", "emptyDir": {}}])

        drain = info(name)["drain"]

        assert drain["verdict"] == "never"
        assert {item["name"]: "no owner" in item["reason"] for item in drain["blockers"]} == {
            "bare": True,
            "scratch": False,
        }
        assert info(name, force=True, delete_emptydir=True)["drain"]["verdict"] == "now"
        assert [item["name"] for item in info(name, force=True)["drain"]["blockers"]] == ["scratch"]


def test_leftovers(world, nodes, info):
    (name,) = nodes()
    world.owned("left", name)
    world.owned("at-work", name)
    world.cluster.merge(f"{world.path('pods')}/left/status", {"status": {"phase": "Failed", "reason": "Terminated"}})

    (left,) = info(name)["leftovers"]

    assert (left["namespace"], left["name"], left["reason"]) == (world.namespace, "left", "Terminated")


def test_a_cordon_record_that_someone_broke(world):
    (node,) = world.nodes()
    marks = {"holdfast.dev/cordon": '{"reason": "x"}'}
    world.cluster.merge(paths.node(node), {"metadata": {"annotations": marks}})
    (found,) = world.run(node_info, name=node)["nodes"]
    # The cordon exists, and nothing names its owner.
    assert found["cordoned_by"] == ""
