# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All kinds of writes through an API server that is overloaded, resets connections or is down: each is made once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from integration.support.faults import AWAY, BUSY, ENDED, KINDS, LOST, UNANSWERED, Faults
from integration.support.playbooks import CLAIM, CORDON, OPERATION, Rolling

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import lifecycle_rules, operations, run_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation import node_operation
from ansible_collections.holdfast.kubernetes.plugins.modules import (
    cordon,
    lease_hold,
    node_claim,
    reboot_slot,
)
from lab.patience import PATIENCE

KERNEL = {"operation": "kernel"}


class Scene:
    """One node of a group, and everything that a rolling reboot writes for it."""

    def __init__(self, world: Any, proxy: Any, ansible: Any) -> None:
        self.world, self.proxy = world, proxy
        self.rolling = Rolling(world, ansible)
        self.node, self.other = world.nodes(2)
        self.run_id = f"{world.namespace}-run"
        world.made.objects.append(self.lease)

    @property
    def lease(self) -> str:
        return paths.lease("holdfast", run_rules.lease_name(self.run_id))

    @property
    def group(self) -> dict[str, Any]:
        return {"group": self.rolling.group, **KERNEL, "run": self.run_id}

    def run(self, module: Any, **options: Any) -> dict[str, Any]:
        result = self.world.run(module, api_timeout=60, **options)
        assert not result.get("failed"), result
        return result

    def slot(self, state: str = "present", node: str = "", **more: Any) -> dict[str, Any]:
        taking = {"selector": self.rolling.selector, "wait_timeout": 0, "max_failed": 1} if state == "present" else {}
        return self.run(reboot_slot, name=node or self.node, state=state, **{**self.group, **taking, **more})

    def claim(self, state: str = "present") -> dict[str, Any]:
        names = {"run": self.run_id, "operation": "kernel", "lifecycle_conditions": True}
        return self.run(node_claim, name=self.node, state=state, **names)

    def cordon(self, state: str = "cordoned") -> dict[str, Any]:
        return self.run(cordon, name=self.node, owner="rolling_reboot", state=state)

    def record(self, *, claimed: bool = False, **what: Any) -> dict[str, Any]:
        names = {"name": self.node, "run": self.run_id, **KERNEL}
        return self.run(node_operation, lifecycle_conditions=True, claimed=claimed, **names, **what)

    def hold(self, state: str = "present") -> dict[str, Any]:
        options = {"namespace": self.world.namespace, "holder": "backup", "wait": False, "state": state}
        return self.run(lease_hold, node=self.node, **options)

    def begin(self) -> dict[str, Any]:
        return self.run(operations.enter, holder="me", nodes=[self.node], restart=False, adopt_within=0, **self.group)

    def ours(self, what: str) -> Any:
        return self.rolling.ours(self.node).get(what)

    def shows(self) -> str:
        """The lifecycle condition of the node that is True; empty if there is none."""
        node = self.world.node(self.node)
        return next((item["type"] for item in lifecycle_rules.shown(node) if item["ours"]), "")

    def failures(self) -> dict[str, str]:
        return self.rolling.failures("kernel")

    def holder(self) -> Any:
        found = self.world.cluster.find(paths.one(self.world.path("leases"), self.node))
        return found and found["spec"].get("holderIdentity")


@pytest.fixture
def scene(world, proxy, ansible):
    return Scene(world, proxy, ansible)


def kind(
    write: Callable[[Scene], Any],
    path: str,
    shown: Callable[[Scene], Any],
    *before: Callable[[Scene], Any],
) -> Any:
    """A kind of write: the steps before it, the write, a part of its path, and a check that it is there."""
    return SimpleNamespace(write=write, path=path, shown=shown, before=before)


def _take(scene: Scene) -> Any:
    return scene.slot()


def _count(scene: Scene) -> Any:
    return scene.slot("failed", reason="drain timed out", healthy=True)


WRITES = {
    "the first slot": kind(_take, "configmaps", lambda scene: set(scene.rolling.slots()) == {scene.node}),
    "a slot": kind(
        _take,
        "configmaps/group",
        lambda scene: set(scene.rolling.slots()) == {scene.node},
        lambda scene: scene.slot(node=scene.other),
        lambda scene: scene.slot("absent", node=scene.other),
    ),
    "a slot given back": kind(
        lambda scene: scene.slot("absent"), "configmaps/group", lambda scene: scene.rolling.slots() == {}, _take
    ),
    "a failure": kind(
        _count,
        "configmaps/group",
        lambda scene: (scene.failures(), scene.rolling.slots()) == ({scene.node: "drain timed out"}, {}),
        _take,
    ),
    "a claim": kind(
        lambda scene: scene.claim(),
        "/nodes/",
        lambda scene: (scene.ours(CLAIM)["run"], scene.shows()) == (scene.run_id, "MaintenanceInProgress"),
        _take,
    ),
    "a claim given back": kind(
        lambda scene: scene.claim("absent"),
        "/nodes/",
        lambda scene: (scene.ours(CLAIM), scene.shows()) == (None, ""),
        lambda scene: scene.claim(),
    ),
    "a cordon": kind(
        lambda scene: scene.cordon(),
        "/nodes/",
        lambda scene: scene.world.cordoned(scene.node) and scene.ours(CORDON)["unschedulable_before"] is False,
    ),
    "a cordon undone": kind(
        lambda scene: scene.cordon("uncordoned"),
        "/nodes/",
        lambda scene: not scene.world.cordoned(scene.node) and scene.ours(CORDON) is None,
        lambda scene: scene.cordon(),
    ),
    "the record": kind(
        lambda scene: scene.record(phase="slot"),
        "/nodes/",
        lambda scene: (scene.ours(OPERATION)["phase"], scene.shows()) == ("slot", "MaintenancePlanned"),
    ),
    "the result": kind(
        lambda scene: scene.record(result="rebooted", claimed=True),
        "/nodes/",
        lambda scene: (scene.ours(OPERATION)["result"], scene.ours(CLAIM), scene.shows()) == ("rebooted", None, ""),
        lambda scene: scene.claim(),
        lambda scene: scene.record(phase="uncordon", claimed=True),
    ),
    "the sign of life": kind(
        lambda scene: scene.begin(), "/leases", lambda scene: scene.world.cluster.find(scene.lease) is not None
    ),
    "a hold": kind(lambda scene: scene.hold(), "/leases", lambda scene: scene.holder() == "backup"),
    "a hold released": kind(
        lambda scene: scene.hold("absent"),
        "/leases",
        lambda scene: scene.holder() is None,
        lambda scene: scene.hold(),
    ),
}


@pytest.fixture(params=WRITES, ids=lambda name: name.replace(" ", "-"))
def write(request, scene):
    chosen = WRITES[request.param]
    for step in chosen.before:
        step(scene)
    return chosen


@pytest.mark.long_on("503", "lost")
@pytest.mark.parametrize("fault", KINDS, ids=["429", "503", "lost", "unanswered"])
def test_gets_through_and_says_so(scene, write, fault):
    # A working run also renews its Lease; that write is a case of its own.
    scene.proxy.faults.next(fault, path=write.path)

    result = write.write(scene)

    assert [entry[2] for entry in scene.proxy.faults.log] == [fault]
    assert result["changed"] is True
    assert write.shown(scene)
    # The result also removes the claim, and each renewal of a Lease differs.
    if write not in (WRITES["the result"], WRITES["the sign of life"]):
        assert write.write(scene)["changed"] is False
        assert write.shown(scene)


_LONG = pytest.mark.long_on(
    *(name.replace(" ", "-") for name in WRITES if name not in ("a slot given back", "a failure"))
)


@_LONG
def test_waits_for_an_api_server_that_is_away(scene, write):
    back = threading.Event()
    with scene.proxy.away():
        waiting = scene.world._threads.submit(write.write, scene)
        back.wait(1.5)
        assert not waiting.done()
    assert waiting.result(PATIENCE)["changed"] is True
    assert write.shown(scene)


@_LONG
@pytest.mark.long
def test_waits_for_an_api_server_that_is_frozen(scene, write):
    with scene.proxy.frozen():
        waiting = scene.world._threads.submit(write.write, scene)
        time.sleep(1)
        assert not waiting.done()
    assert waiting.result(PATIENCE)["changed"] is True
    assert write.shown(scene)


def test_a_change_is_decided_again_after_an_outage(scene):
    """While the first one's request failed, another run took the only slot."""
    scene.slot(node=scene.other)
    place = paths.one(paths.config_maps("holdfast"), f"group.{scene.rolling.group}")
    taken = scene.world.cluster.get(place)["data"]
    scene.slot("absent", node=scene.other)
    scene.proxy.faults.next(AWAY, path="configmaps/group", times=1000)
    known = {"name": scene.node, "selector": scene.rolling.selector, "wait_timeout": 0, "api_timeout": 60}
    asked = scene.world.start(reboot_slot, **known, **scene.group)
    while not scene.proxy.faults.log:
        time.sleep(0.05)
    scene.world.cluster.replace(place, {**scene.world.cluster.get(place), "data": taken})
    scene.proxy.faults.planned.clear()

    result = asked.result(PATIENCE)

    assert result["error"] == "timed_out", result
    assert set(scene.rolling.slots()) == {scene.other}


def test_a_waiting_node_gets_its_slot_after_an_outage(scene):
    scene.slot()
    waiting = scene.world._threads.submit(scene.slot, node=scene.other, wait_timeout=PATIENCE)
    time.sleep(1)
    with scene.proxy.away():
        time.sleep(3)
    assert not waiting.done()
    scene.slot("absent")
    assert waiting.result(PATIENCE)["slot"]["node"] == scene.other


@pytest.mark.core
def test_watches_that_end_at_once_lose_nothing(scene):
    scene.proxy.faults.watches = ENDED
    scene.slot()
    waiting = scene.world._threads.submit(scene.slot, node=scene.other, wait_timeout=PATIENCE)
    time.sleep(1)
    scene.slot("absent")
    assert waiting.result(PATIENCE)["slot"]["node"] == scene.other


def test_a_third_of_the_writes_fails(scene):
    scene.proxy.faults.share = 0.33
    for _turn in range(3):
        scene.slot()
        scene.claim()
        scene.cordon()
        scene.record(phase="drain")
        _count(scene)
        scene.cordon("uncordoned")
        scene.claim("absent")
    assert scene.failures() == {scene.node: "drain timed out"}
    scene.rolling.assert_nothing_left([scene.node])
    assert {entry[2] for entry in scene.proxy.faults.log} <= set(KINDS)
    assert scene.proxy.faults.log


def test_faults_follow_from_the_seed():
    def decisions(seed: int) -> list[str]:
        faults = Faults(seed=seed, share=0.5)
        return [faults.decide("PATCH", f"/api/v1/nodes/n-{number % 3}") for number in range(30)]

    assert decisions(1) == decisions(1)
    assert decisions(1) != decisions(2)
    assert set(decisions(1)) <= {"", BUSY, AWAY, LOST, UNANSWERED}
