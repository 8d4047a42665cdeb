# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guard that is killed at each step, and the same command again at once.

The test kills ansible-playbook with its process group. The second run ends where an undisturbed one would; no file of
the user's tasks runs twice, and no hook is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from integration.support.guards import Guarding
from integration.support.halts import Halt
from integration.support.machines_capi import Fleet, controlled
from integration.support.volumes import attach, detach

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.modules import node_claim
from lab.patience import PATIENCE

# As many runs as two cores carry.
AT_ONCE = 3
BOTH, END = ("pre-drain", "pre-terminate"), ("pre-terminate",)


@dataclass(frozen=True)
class Point:
    """Where the first run is killed.

    Attributes:
        name: The last step before the kill.
        module: The run is killed after the task with this module; empty: in the second file of the user's tasks, or
            while it waits.
        phase: The phase that the record on the Machine must have then: proof that the run got there.
        answer: Some of that task's results.
        waits: What it waits for when it is killed; empty if it does not wait.
        points: The points with hooks.
    """

    name: str
    module: str
    phase: str
    answer: Mapping[str, Any] = field(default_factory=dict)
    waits: str = ""
    points: tuple[str, ...] = BOTH


RELEASED = {"step": "continue", "point": ""}
POINTS = (
    Point("hooks-set", "machine_guard_begin", ""),
    Point("taken", "machine_guard_step", "claim", {"step": "continue"}),
    Point("another-run-has-the-node", "", "claim", waits="claim"),
    Point("node-claimed", "", "hold", waits="hold"),
    Point("first-file-done", "machine_guard_step", "tasks", {"step": "tasks", "file_name": "second.yml"}),
    Point("in-the-second-file", "", "tasks"),
    Point("drained", "drain", "drain"),
    Point("let-go-before-the-drain", "machine_guard_step", "release", RELEASED),
    Point("waits-for-volumes", "", "volumes", waits="volumes", points=END),
    Point("let-go-at-the-end", "machine_guard_step", "", RELEASED, points=END),
)
HOLD = {"spec": {"holderIdentity": "app", "acquireTime": "2026-01-02T03:04:05.000000Z"}}
NO_VOLUME_WAIT = {"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}


def block(world: Any, node: str, what: str) -> Callable[[], object]:
    """Have a run wait for something; return how to end that."""
    if what == "claim":
        other = f"other-{node}"
        world.run(node_claim, name=node, run=other, operation="other")
        return lambda: world.run(node_claim, name=node, run=other, operation="other", state="absent")
    if what == "hold":
        world.create("leases", node, HOLD)
        return lambda: world.delete("leases", node)
    attach(world, node)
    return lambda: detach(world, node)


def play(stage: Any, point: Point | None) -> dict[str, Any]:
    world, ansible = stage()
    fleet = Fleet(world)
    guarding = Guarding(fleet, ansible)
    try:
        (node,) = world.nodes()
        name = fleet.machine(node, annotations=NO_VOLUME_WAIT)
        world.owned("app", node)
        halt = Halt(ansible.folder / "halt")
        waits = point.waits if point else ""
        last = halt.command if point and not point.module and not waits else "true"
        settings = {
            "points": list(point.points if point else BOTH),
            "parallel": 1,
            "pre_drain_tasks": [guarding.tasks("first"), guarding.tasks("second", last)],
            "pre_terminate_tasks": guarding.tasks("last"),
        }
        if point:
            free = block(world, node, waits) if waits else lambda: None
            host = "localhost" if point.module == "machine_guard_begin" else "machine_guard_1"
            there = halt.after(host, point.module, point.answer) if point.module else {}
            run = guarding.start(name, environment=there, **settings)
            if host != "localhost":
                guarding.hooked(name, *point.points)
                fleet.delete(name)
            there_yet = (lambda: guarding.record(name).get("phase") == point.phase) if waits else (lambda: halt.reached)
            run.until(there_yet, point.name, PATIENCE)
            run.kill()
            if point.phase:
                assert guarding.record(name)["phase"] == point.phase
            free()
        again = guarding.start(name, **settings)
        if not point or point.module == "machine_guard_begin":
            guarding.hooked(name)
            fleet.delete(name)
        done = again.done(PATIENCE).good()
        fleet.until_gone(name)
        return {
            "log": [line.replace(name, "it") for line in guarding.log],
            "failed": done.report["summary"]["failed"],
            "node": world.cluster.find(paths.node(node)),
        }
    finally:
        guarding.close()
        fleet.close()


@pytest.fixture(scope="module")
def played(request, lab, stage):
    """The result of each chosen point; several run at once, because each waits until a run counts as dead."""
    mine = [item for item in request.session.items if item.function is test_killed_and_started_again]
    with controlled(lab), ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        yield {item.nodeid: pool.submit(play, stage, item.callspec.params["point"]) for item in mine}


@pytest.mark.long
@pytest.mark.parametrize("point", [None, *POINTS], ids=lambda point: point.name if point else "undisturbed")
def test_killed_and_started_again(played, request, point):
    before = ["first pre-drain it", "second pre-drain it"] if not point or point.points == BOTH else []
    assert played[request.node.nodeid].result() == {
        "log": [*before, "last pre-terminate it"],
        "failed": [],
        "node": None,
    }
