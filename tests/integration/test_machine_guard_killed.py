# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kill a guard after each step, then start the same command again immediately.

The test kills ansible-playbook with its process group. The second run ends like an undisturbed one: it runs no finished
file of the user's tasks again, and leaves no hook.
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
from integration.support.turns import TESTS, turn
from integration.support.volumes import attach, detach

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.modules import node_claim
from lab.patience import PATIENCE

# More runs at the same time would miss the limits of Cluster API's controller on two cores.
PARALLEL_RUNS = 3
BOTH, PRE_TERMINATE_ONLY = ("pre-drain", "pre-terminate"), ("pre-terminate",)


@dataclass(frozen=True)
class Kill:
    """Where the first run is killed.

    Attributes:
        name: The last step before the kill.
        module: The run is killed after the task with this module. If it is empty, the run is killed while it waits
            (``waits``), or in the second file of the user's tasks.
        phase: The phase that the record on the Machine must have then: proof that the run got there.
        answer: Some of that task's results.
        waits: What the run waits for at the kill: ``claim``, ``hold`` or ``volumes``; empty if it does not wait.
        hooks: The points of the deletion at which the Machine has hooks.
    """

    name: str
    module: str
    phase: str
    answer: Mapping[str, Any] = field(default_factory=dict)
    waits: str = ""
    hooks: tuple[str, ...] = BOTH


RELEASED = {"step": "continue", "point": ""}
KILLS = (
    Kill("hooks-set", "machine_guard_begin", ""),
    Kill("taken", "machine_guard_step", "claim", {"step": "continue"}),
    Kill("another-run-has-the-node", "", "claim", waits="claim"),
    Kill("node-claimed", "", "hold", waits="hold"),
    Kill("first-file-done", "machine_guard_step", "tasks", {"step": "tasks", "file_name": "second.yml"}),
    Kill("in-the-second-file", "", "tasks"),
    Kill("drained", "drain", "drain"),
    Kill("let-go-before-the-drain", "machine_guard_step", "release", RELEASED),
    Kill("waits-for-volumes", "", "volumes", waits="volumes", hooks=PRE_TERMINATE_ONLY),
    Kill("let-go-at-the-end", "machine_guard_step", "", RELEASED, hooks=PRE_TERMINATE_ONLY),
)
HOLD = {"spec": {"holderIdentity": "app", "acquireTime": "2026-01-02T03:04:05.000000Z"}}
# Cluster API itself must not wait for volumes, so that the test sees the wait of the guard.
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


def settings_of(guarding: Guarding, halt: Halt, kill: Kill | None) -> dict[str, Any]:
    in_second_file = kill is not None and not kill.module and not kill.waits
    return {
        "points": list(kill.hooks if kill else BOTH),
        "pre_drain_tasks": [
            guarding.tasks("first"),
            guarding.tasks("second", halt.command if in_second_file else "true"),
        ],
        "pre_terminate_tasks": guarding.tasks("last"),
    }


def kill_first_run(
    guarding: Guarding, halt: Halt, kill: Kill, name: str, *, node: str, settings: dict[str, Any]
) -> bool:
    """Start a run and kill it; return whether the deletion of the Machine was requested before that."""
    free = block(guarding.world, node, kill.waits) if kill.waits else lambda: None
    before_deletion = kill.module == "machine_guard_begin"
    host = "localhost" if before_deletion else "machine_guard_1"
    environment = halt.after(host, kill.module, kill.answer) if kill.module else {}
    run = guarding.start(name, environment=environment, **settings)
    if not before_deletion:
        guarding.hooked(name, *kill.hooks)
        guarding.fleet.delete(name)
    if kill.waits:
        run.until(lambda: guarding.record(name).get("phase") == kill.phase, kill.name, PATIENCE)
    else:
        run.until(lambda: halt.reached, kill.name, PATIENCE)
    run.kill()
    if kill.phase:
        assert guarding.record(name)["phase"] == kill.phase
    free()
    return not before_deletion


def play(stage: Any, kill: Kill | None) -> dict[str, Any]:
    world, ansible = stage()
    fleet = Fleet(world)
    guarding = Guarding(fleet, ansible)
    try:
        (node,) = world.nodes()
        name = fleet.machine(node, annotations=NO_VOLUME_WAIT)
        world.owned("app", node)
        halt = Halt(ansible.folder / "halt")
        settings = settings_of(guarding, halt, kill)
        requested = kill_first_run(guarding, halt, kill, name, node=node, settings=settings) if kill else False
        again = guarding.start(name, **settings)
        if not requested:
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
    """The result of each chosen test; several run at once, because each waits until a run counts as dead."""
    mine = [item for item in request.session.items if item.function is test_killed_and_started_again]
    # Not marked ``together``: all of them share one controller of Cluster API.
    with controlled(lab), ThreadPoolExecutor(max_workers=PARALLEL_RUNS) as pool:
        yield {item.nodeid: pool.submit(in_turn, lab, stage, item.callspec.params["kill"]) for item in mine}


def in_turn(lab: Any, stage: Any, kill: Kill | None) -> dict[str, Any]:
    """Play while other tests run, but not while a test marked ``alone`` runs."""
    with turn(lab, TESTS, shared=True):
        return play(stage, kill)


@pytest.mark.long
@pytest.mark.parametrize("kill", [None, *KILLS], ids=lambda kill: kill.name if kill else "undisturbed")
def test_killed_and_started_again(played, request, kill):
    before = ["first pre-drain it", "second pre-drain it"] if not kill or kill.hooks == BOTH else []
    assert played[request.node.nodeid].result() == {
        "log": [*before, "last pre-terminate it"],
        "failed": [],
        "node": None,
    }
