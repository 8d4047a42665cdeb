# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller that is killed, at each point of the sequence, and the same command again at once.

The test kills ansible-playbook with its process group. The second run ends where an undisturbed one would, and no node
is rebooted twice. The API server's history shows which nodes were rebooted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from integration.support.halts import Halt
from integration.support.history import History
from integration.support.leases import Leases
from integration.support.playbooks import CLAIM, CORDON, OPERATION, Rolling, Run

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from lab.patience import PATIENCE


@dataclass(frozen=True)
class Point:
    """Where the first run is killed, and what it leaves on its node: proof that it was killed there.

    Attributes:
        name: The last step before the kill.
        phase: The phase in the node's record.
        slot: Whether the node has a slot.
        claim: Whether it is claimed.
        cordoned: Whether it is cordoned by us.
        hook: The user's tasks during which the run is killed.
        module: The run is killed after the task with this module, instead of in a hook.
        host: That task's host, if it is not the node's.
        act: The run is killed after this act of the rolling reboot, within a task.
    """

    name: str
    phase: str
    slot: bool
    claim: bool
    cordoned: bool
    hook: str = ""
    module: str = ""
    host: str = ""
    act: tuple[str, ...] = ()


NO, YES = False, True
POINTS = (
    #      what was last           phase      slot claim cordoned
    Point("operation-entered", "", NO, NO, NO, module="reboot_begin"),
    Point("slot-granted", "slot", YES, NO, NO, act=("slot", "present")),
    Point("claimed", "slot", YES, YES, NO, hook="before_cordon"),
    Point("cordoned", "cordon", YES, YES, YES, hook="before_drain"),
    Point("draining", "drain", YES, YES, YES),
    Point("drained", "drain", YES, YES, YES, hook="before_reboot"),
    Point("off", "reboot", YES, YES, YES, hook="command"),
    Point("on", "reboot", YES, YES, YES, hook="command"),
    Point("rebooted", "reboot", YES, YES, YES, hook="before_ready"),
    Point("healthy", "ready", YES, YES, YES, hook="before_uncordon"),
    Point("uncordoned", "uncordon", YES, YES, NO, act=("uncordon",)),
    Point("slot-given-back", "uncordon", NO, YES, NO, act=("slot", "absent")),
    Point("done", "uncordon", NO, NO, NO, hook="after"),
    Point("all-done", "uncordon", NO, NO, NO, module="set_stats", host="localhost"),
    Point("waiting-for-a-holder", "hold", NO, NO, NO),
)


class Scene:
    """Three nodes in their own world: one where the run is killed, one like it, one that another user cordoned."""

    def __init__(self, world: Any, ansible: Any, point: Point | None) -> None:
        self.point = point
        self.rolling = Rolling(world, ansible)
        self.names = world.nodes(3)
        self.node, _like, self.theirs = self.names
        world.cluster.merge(f"/api/v1/nodes/{self.theirs}", {"spec": {"unschedulable": True}})
        self.halt = Halt(ansible.folder / "halt")
        self.variables: dict[str, Any] = {}
        self.environment = {"K8S_AUTH_KUBECONFIG": world.kubeconfig}
        if point and point.hook:
            self.variables[f"rolling_reboot_{point.hook}_tasks"] = self._tasks(point)
        if point and point.module:
            self.environment.update(self.halt.after(point.host or self.node, point.module))
        if point and point.act:
            self.environment.update(self.halt.after_act(self.node, *point.act))

    def _tasks(self, point: Point) -> str:
        stay = {"name": "Stay", "ansible.builtin.raw": self.halt.command}
        if point.hook != "command":
            return self.rolling.tasks(point.hook, stay)
        off, on = self.rolling.off_and_on
        return self.rolling.tasks("halting", *((off, stay, on) if point.name == "off" else (off, on, stay)))

    def start(self, **more: Any) -> Run:
        hosts = {name: self.variables if name == self.node else {} for name in self.names}
        return self.rolling.start(
            hosts,
            environment=self.environment,
            max_unavailable=2,
            holder=self.rolling.group,
            resume_timeout=5,
            # A busy machine may ask for another node first. It waits until this run resumes what the killed run left.
            unhealthy_grace=PATIENCE,
            **more,
        )

    def kill(self, run: Run) -> None:
        """Kill the run at its point, and prove that it got there."""
        point = self.point
        assert point is not None
        if point.name in ("draining", "waiting-for-a-holder"):
            run.until(lambda: self.rolling.record(self.node).get("phase") == point.phase, point.name, PATIENCE)
        else:
            run.until(lambda: self.halt.reached, point.name, PATIENCE)
        run.kill()
        marks, record = self.rolling.ours(self.node), self.rolling.record(self.node)
        assert record.get("phase", "") == point.phase
        assert record.get("result", "") == ("rebooted" if point.name in ("done", "all-done") else "")
        found = (self.node in self.rolling.slots(), CLAIM in marks, CORDON in marks)
        assert found == (point.slot, point.claim, point.cordoned), (marks, self.rolling.slots())

    @contextlib.contextmanager
    def obstacle(self) -> Iterator[None]:
        """An obstacle for the first run; the second run does not meet it."""
        world, name = self.rolling.world, self.point.name if self.point else ""
        if name == "draining":
            # A drain that fails would give the node back, perhaps before the kill.
            world.owned("web", self.node, slow={"delete": "1h"})
        if name == "waiting-for-a-holder":
            self.rolling.hold(self.node)
        yield
        if name == "draining":
            world.cluster.delete(paths.pod(world.namespace, "web"), {"gracePeriodSeconds": 0})
        if name == "waiting-for-a-holder":
            self.rolling.release(self.node)


def play(stage: Any, point: Point | None = None) -> dict[str, Any]:
    """The state at the end, without what differs from one run to the next."""
    scene = Scene(*stage(), point)
    rolling, names = scene.rolling, scene.names
    leases = Leases(rolling.world, holder=rolling.group)
    before = rolling.boot_ids(names)
    try:
        with History(rolling.world.kubeconfig, group=rolling.group, selector=rolling.selector) as history:
            if point:
                with scene.obstacle():
                    scene.kill(scene.start())
            done = scene.start().done(PATIENCE).good()
        after = rolling.boot_ids(names)
        assert {name: history.boot_ids[name] for name in names} == {name: [before[name], after[name]] for name in names}
        assert all(rolling.record(name)["boot_id_before"] == before[name] for name in names)
        assert all(rolling.record(name)["boot_id_after"] == after[name] for name in names)
        assert set(done.results) == set(names)
        for name, result in done.results.items():
            again = result == "skipped" and "it was already rebooted in operation" in done.detail(name)
            assert result == "rebooted" or again, done.entry(name)
        assert len(history.worst.busy) <= 2, history.worst
        assert leases.left() == []
        return left(rolling, names)
    finally:
        rolling.close()


def left(rolling: Rolling, names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"slots": rolling.slots()}
    (operation,) = rolling.ledger()["operations"]
    found["operation"] = {key: operation[key] for key in ("failures", "runs", "unfinished")}
    for who, name in zip(("node", "like", "theirs"), names):
        record = rolling.record(name)
        found[who] = {
            "annotations": sorted(rolling.world.node(name)["metadata"]["annotations"]),
            "cordoned": rolling.world.cordoned(name),
            **{key: record[key] for key in ("phase", "result", "unschedulable_before")},
        }
    return found


@pytest.mark.long
@pytest.mark.together(by=play)
@pytest.mark.parametrize("point", [None, *POINTS], ids=lambda point: point.name if point else "undisturbed")
def test_killed_and_started_again(outcome, point):
    left_over = outcome()
    assert left_over["slots"] == {}
    assert left_over["operation"] == {"failures": {}, "runs": [], "unfinished": False}
    for name in ("node", "like", "theirs"):
        found = left_over[name]
        assert (found["result"], found["phase"]) == ("rebooted", "uncordon")
        assert [key for key in found["annotations"] if "holdfast" in key] == [OPERATION]
        assert found["cordoned"] == found["unschedulable_before"] == (name == "theirs")
