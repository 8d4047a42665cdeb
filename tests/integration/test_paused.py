# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller that is stopped for a while, while another run of the same command works."""

from __future__ import annotations

import json
import signal
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from integration.support.halts import Halt
from integration.support.history import History
from integration.support.leases import Leases
from integration.support.playbooks import CLAIM, Rolling, Run

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import LIFECYCLE_CONDITIONS
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import from_text, seconds_between
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import DEAD_AFTER
from lab.patience import PATIENCE


class Scene:
    """Nodes in their own world; a first run that stays in the user's tasks of the first node, and a second run."""

    def __init__(self, world: Any, ansible: Any, count: int, hook: str) -> None:
        self.world = world
        self.rolling = Rolling(world, ansible)
        self.names = world.nodes(count)
        self.node = self.names[0]
        self.before = self.rolling.boot_ids(self.names)
        self.halt, self.second_halt = Halt(ansible.folder / "halt"), Halt(ansible.folder / "second")
        self.leases = Leases(world, holder=self.rolling.group)
        self.changes = world.record(paths.NODES, label_selector=self.rolling.selector)
        # The others wait for a slot only when the first node has its own.
        later = self.rolling.tasks("later", self.halt.reached_command)
        self._hosts = {name: {"rolling_reboot_before_slot_tasks": later} for name in self.names}
        self._hosts[self.node] = {f"rolling_reboot_{hook}_tasks": self.rolling.tasks("stay", self.halt.command)}

    def history(self) -> History:
        return History(self.world.kubeconfig, group=self.rolling.group, selector=self.rolling.selector)

    def first(self) -> Run:
        run = self._start()
        run.until(lambda: self.halt.reached, "the first run in the user's tasks", PATIENCE)
        return run

    def second(self, **environment: str) -> Run:
        run = self._start(environment, claim_timeout=3)
        run.until(lambda: len(self.leases.names) == 2, "the second run's sign of life", PATIENCE)
        return run

    def _start(self, environment: Any = (), **more: Any) -> Run:
        return self.rolling.start(
            self._hosts,
            environment={"K8S_AUTH_KUBECONFIG": self.world.kubeconfig, **dict(environment)},
            operation="paused",
            holder=self.rolling.group,
            **more,
        )

    def owners(self) -> tuple[str, str]:
        """The runs that have the slot of the first node and its claim."""
        slot = self.rolling.slots().get(self.node, {})
        return slot.get("run", ""), self.rolling.ours(self.node).get(CLAIM, {}).get("run", "")

    def taken_over(self, run: str) -> datetime:
        """When a run other than this one claimed the first node."""
        claims = [
            change.object["metadata"]["annotations"].get(CLAIM)
            for change in list(self.changes.changes)
            if change.object["metadata"]["name"] == self.node
        ]
        return next(from_text(claim["since"]) for claim in map(json.loads, filter(None, claims)) if claim["run"] != run)

    def silent(self, lease: str) -> float:
        """Seconds since the run gave a sign of life."""
        return seconds_between(from_text(self.leases.last_sign(lease)), datetime.now(timezone.utc))

    def versions_of(self, name: str, *, claims: bool) -> list[str]:
        """Each successive version of a node, without what kubelets report."""
        written = []
        for change in list(self.changes.changes):
            node = change.object
            if node["metadata"]["name"] == name:
                annotations = node["metadata"].get("annotations") or {}
                # The conditions are set and removed with the claim.
                of_claim = () if claims else (CLAIM, LIFECYCLE_CONDITIONS)
                kept = {key: value for key, value in annotations.items() if key not in of_claim}
                text = json.dumps([kept, node["spec"]], sort_keys=True)
                if not written or written[-1] != text:
                    written.append(text)
        return written

    def assert_each_once(self, history: History) -> None:
        after = self.rolling.boot_ids(self.names)
        assert history.boot_ids == {name: [self.before[name], after[name]] for name in self.names}
        assert len(history.worst.busy) == 1, history.worst
        self.rolling.assert_nothing_left(self.names)
        assert all(self.rolling.record(name)["result"] == "rebooted" for name in self.names)
        (operation,) = self.rolling.ledger()["operations"]
        assert (operation["runs"], operation["unfinished"], operation["failures"]) == ([], False, {})
        assert self.leases.left() == []


def paused_for_a_minute(stage: Any) -> None:
    scene = Scene(*stage(), 1, "before_drain")
    try:
        with scene.history() as history:
            first = scene.first()
            owners = scene.owners()
            assert owners[0] == owners[1] != ""
            second = scene.second()
            (lease, _other) = scene.leases.names
            # Just after a renewal: a minute later the run does not count as dead, however late that renewal was.
            last = scene.leases.renewed(lease)
            first.until(lambda: scene.leases.renewed(lease) > last, "a sign of life")
            # Only ansible-playbook itself: the process that renews its Lease has to notice.
            first.send(signal.SIGSTOP)
            time.sleep(20)
            last = scene.leases.renewed(lease)
            time.sleep(40)
            assert scene.leases.renewed(lease) == last, "a paused run gives no sign of life"
            assert scene.owners() == owners
            first.send(signal.SIGCONT)
            first.until(lambda: scene.leases.renewed(lease) > last, "a sign of life")
            assert scene.owners() == owners
            scene.halt.resume()
            assert first.done(PATIENCE).good().results == {scene.node: "rebooted"}
            assert second.done(PATIENCE).good().results == {scene.node: "skipped"}
        assert scene.rolling.record(scene.node)["run"] == owners[0]
        scene.assert_each_once(history)
    finally:
        scene.rolling.close()


def paused_for_longer(stage: Any) -> None:
    scene = Scene(*stage(), 2, "before_drain")
    try:
        with scene.history() as history:
            first = scene.first()
            (run, _same) = scene.owners()
            (lease,) = scene.leases.names
            second = scene.second()
            # All processes, as when its machine or container is paused.
            first.send_to_all(signal.SIGSTOP)
            done = second.done(PATIENCE).good()
            silent = scene.taken_over(run) - from_text(scene.leases.last_sign(lease))
            # Each of the two has its own estimate of the server's time, which may be a second behind.
            assert silent > timedelta(seconds=88), "taken over from a live run"
            assert set(done.results.values()) == {"rebooted"}
            assert scene.rolling.record(scene.node)["run"] not in ("", run)
            node, other = scene.names
            # On a node that it only waited for, it takes the claim for a moment, to find that the node is done.
            written = scene.versions_of(node, claims=True), scene.versions_of(other, claims=False)
            ledger = scene.rolling.ledger()["slots"]

            scene.halt.resume()
            first.send_to_all(signal.SIGCONT)
            woken = first.done(PATIENCE)

            assert woken.code != 0
            assert woken.results[scene.node] == "lost"
            assert f"Run {run} has lost its claim on node {scene.node}" in woken.detail(scene.node)
            assert (scene.versions_of(node, claims=True), scene.versions_of(other, claims=False)) == written
            assert scene.rolling.ledger()["slots"] == ledger
        scene.assert_each_once(history)
    finally:
        scene.rolling.close()


def wakes_between_its_slot_and_its_claim(stage: Any, *, begins_later: bool = False) -> None:
    """The second run has the slot already, and finds that the claim belongs to a live run.

    Args:
        begins_later: The second run begins when the first one counts as dead.
    """
    scene = Scene(*stage(), 2, "before_cordon")
    _node, other = scene.names
    try:
        with scene.history() as history:
            first = scene.first()
            (run, _same) = scene.owners()
            (lease,) = scene.leases.names
            halt = scene.second_halt.after_act(scene.node, "slot", "present")
            second = None if begins_later else scene.second(**halt)
            first.send_to_all(signal.SIGSTOP)
            if second is None:
                first.until(lambda: scene.silent(lease) > DEAD_AFTER + 2, "it counts as dead", PATIENCE)
                second = scene.second(**halt)
            second.until(lambda: scene.second_halt.reached, "the slot passes", PATIENCE)
            slot, claim = scene.owners()
            assert slot != claim == run
            last = scene.leases.renewed(lease)
            first.send_to_all(signal.SIGCONT)
            first.until(lambda: scene.leases.renewed(lease) > last, "a sign of life")
            scene.second_halt.resume()
            if begins_later:
                # The pass that resumes does not wait for the claim.
                second.until(lambda: scene.owners() == (run, run), "the slot passes back")
            else:
                second.until(lambda: "The wait ended after 3 s" in second.output, "a claim that is not given")
            # Time for the mistake: to start with the other node while the first run works on this one.
            time.sleep(10)
            assert scene.rolling.boot_id(other) == scene.before[other]
            assert scene.node in scene.rolling.slots()
            scene.halt.resume()
            first.done(PATIENCE)
            second.done(PATIENCE)
        assert all(len(found) == 2 for found in history.boot_ids.values()), history.boot_ids
        assert history.most_slots == 1, history.worst_slots
        assert len(history.worst.busy) == 1, history.worst
        scene.rolling.assert_nothing_left(scene.names)
        assert scene.leases.left() == []
    finally:
        scene.rolling.close()


def begins_during_the_pause(stage: Any) -> None:
    wakes_between_its_slot_and_its_claim(stage, begins_later=True)


@pytest.mark.long
@pytest.mark.together(by=paused_for_a_minute)
def test_a_run_that_is_paused_for_a_minute_keeps_its_node(outcome):
    outcome()


@pytest.mark.long
@pytest.mark.together(by=paused_for_longer)
def test_a_run_that_is_paused_for_longer_loses_its_node_and_does_nothing_more(outcome):
    outcome()


@pytest.mark.long
@pytest.mark.together(by=wakes_between_its_slot_and_its_claim)
def test_a_run_that_wakes_between_the_passing_of_its_slot_and_of_its_claim(outcome):
    outcome()


@pytest.mark.long
@pytest.mark.together(by=begins_during_the_pause)
def test_a_run_that_wakes_after_another_one_has_begun_keeps_its_node(outcome):
    outcome()
