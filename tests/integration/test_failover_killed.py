# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failover, and a recovery, that is killed at each step, and the same command again at once.

The test kills ansible-playbook with its process group. The second run ends where an undisturbed one would, and no host
is switched off twice. The management controller and the API server's history show what was done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from integration.support.failovers import FAILOVER, RECOVER, TAINT, Failovers, Victim
from integration.support.halts import Halt
from integration.support.metal3 import bound
from integration.support.playbooks import Done

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from lab.patience import PATIENCE


@dataclass(frozen=True)
class Point:
    """Where the first run is killed.

    Attributes:
        name: The last step before the kill.
        playbook: The playbook of the run.
        module: The run is killed after the task with this module.
        options: Some of that task's options.
        phase: The phase that the record on the Node must have then: proof that the run got there.
    """

    name: str
    playbook: str
    module: str
    phase: str
    options: Mapping[str, Any] = field(default_factory=dict)


TURN = "failover_turn"
POINTS = (
    Point("claimed", FAILOVER, TURN, "claim", {"done": "claim"}),
    Point("cordoned", FAILOVER, "cordon", "claim"),
    Point("looked-again", FAILOVER, TURN, "claim", {"done": "cordon"}),
    Point("fenced", FAILOVER, "failover_power", "fence"),
    Point("taint-written-down", FAILOVER, TURN, "taint", {"done": "fence"}),
    Point("tainted", FAILOVER, "out_of_service", "taint", {"wait": False}),
    Point("evidence-written-down", FAILOVER, TURN, "move", {"done": "taint"}),
    Point("moved", FAILOVER, "out_of_service", "move", {"wait": None}),
    Point("moved-written-down", FAILOVER, TURN, "move", {"done": "move"}),
    Point("power-on-written-down", RECOVER, TURN, "power_on", {"done": "claim"}),
    Point("powered-on", RECOVER, "reboot_annotation", "power_on", {"state": "absent"}),
    Point("ready-written-down", RECOVER, TURN, "ready", {"done": "power_on"}),
    Point("ready", RECOVER, "node_ready", "ready", {"daemonset_pods": False}),
    Point("in-service-written-down", RECOVER, TURN, "in_service", {"done": "ready"}),
    Point("in-service", RECOVER, "out_of_service", "in_service", {"state": "absent"}),
    Point("uncordon-written-down", RECOVER, TURN, "uncordon", {"done": "in_service"}),
    Point("uncordoned", RECOVER, "cordon", "uncordon", {"state": "uncordoned"}),
    Point("recovered", RECOVER, TURN, "", {"done": "uncordon"}),
)


class Scene:
    """A node that hangs, with a pod, and its host."""

    def __init__(self, world: Any, ansible: Any, hosts: Any, point: Point | None) -> None:
        self.point = point
        self.failovers = Failovers(world, ansible)
        self.victim: Victim = self.failovers.victim()
        world.nodes(2)
        self.host = hosts.add(self.victim.name)
        self.halt = Halt(ansible.folder / "halt")
        world.workload("statefulsets", "db", 3)

    def go(self, playbook: str) -> Done:
        """Run to the end; kill the run on the way and start it again, if the point belongs to this playbook."""
        settings = {"soft_timeout": 0, "bare_metal_host": self.host.name, "holder": "ada"}
        name, point = self.victim.name, self.point
        if point and point.playbook == playbook:
            there = self.halt.after("localhost", point.module, **point.options)
            run = self.failovers.start(name, playbook=playbook, environment=there, **settings)
            run.until(lambda: self.halt.reached, point.name, PATIENCE)
            run.kill()
            assert self.victim.record.get("phase", "") == point.phase
        return self.failovers.start(name, playbook=playbook, **settings).done(PATIENCE).good()


def play(stage: Any, point: Point | None = None) -> dict[str, Any]:
    """The state at the end, without what differs from one run to the next."""
    world, ansible = stage()
    with bound(world, ansible.lab, ansible.folder) as hosts:
        scene = Scene(world, ansible, hosts, point)
        hosts.start()
        victim, host = scene.victim, scene.host
        before = victim.boot_id
        history = world.record(paths.NODES, field_selector=f"metadata.name={victim.name}")
        victim.hang()
        try:
            moved = scene.go(FAILOVER)
            world.until(
                world.path("statefulsets"),
                "db",
                lambda item: item is not None and item["status"].get("readyReplicas") == 3,
            )
            assert (host.powered, victim.taint, victim.claim) == (False, "nodeshutdown", {})
            assert all(pod["spec"]["nodeName"] != victim.name for pod in world.pods().values())
            back = scene.go(RECOVER)
        finally:
            scene.failovers.close()
        assert {*moved.results.values(), *back.results.values()} <= {"moved", "recovered", "skipped"}
        entries = [entry for entry in scene.failovers.audit().values() if entry["node"] == victim.name]
        seen = [change.object for change in list(history.changes)]
        tainted = {
            node["status"]["nodeInfo"]["bootID"]
            for before_it, node in zip(seen, seen[1:])
            if _tainted(node) and not _tainted(before_it)
        }
        return {
            "commands": host.commands,
            "keys": sorted(name for name in host.annotations if "reboot" in name),
            "untouched": victim.untouched,
            "ready": victim.ready,
            "tainted while it was off": tainted == {before},
            "new boot": victim.boot_id != before,
            "results": [entry["result"] for entry in entries],
        }


def _tainted(node: Any) -> bool:
    return any(taint["key"] == TAINT for taint in node["spec"].get("taints") or [])


@pytest.mark.long
@pytest.mark.together(by=play)
@pytest.mark.parametrize("point", [None, *POINTS], ids=lambda point: point.name if point else "undisturbed")
def test_killed_and_started_again(outcome, point):
    assert outcome() == {
        "commands": ["off", "on"],
        "keys": [],
        "untouched": True,
        "ready": True,
        "tainted while it was off": True,
        "new boot": True,
        "results": ["recovered"],
    }
