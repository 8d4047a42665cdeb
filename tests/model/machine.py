# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state machine that makes up histories: hypothesis chooses what happens next, and to which node or run."""

from __future__ import annotations

from typing import Any

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from model.fleet import FATES, Fleet, Worker
from model.memory import Memory
from model.seen import ZONE

ZONES = {"alfa": "a", "bravo": "a", "charlie": "b", "delta": "b"}
COUNT = len(ZONES)
# No sum of these brings a run's age near a limit at which observers may disagree about it.
SECONDS = [35, 100]
POLICIES: list[dict[str, Any]] = [
    {"max_unavailable": "1"},
    {"max_unavailable": "2"},
    {"max_unavailable": "3"},
    {"max_unavailable": "50%"},
    {"max_unavailable": "0"},
    {"max_unavailable": "3", "topology_key": ZONE, "max_unavailable_per_domain": 1},
    {"max_unavailable": "2", "topology_key": ZONE, "max_domains": 1},
]
node = st.integers(0, COUNT - 1)
a_run = st.integers(0, 2)


class Machine(RuleBasedStateMachine):
    """Events with plain values; an event that does not fit the moment changes nothing."""

    fleet: Fleet

    def make(self) -> Fleet:
        """A fleet in which nothing has happened yet."""
        return Fleet(Memory(ZONES), list(ZONES))

    @initialize(policy=st.integers(0, len(POLICIES) - 1), max_failed=st.integers(0, 2), others=st.booleans())
    def begin(self, policy: int, max_failed: int, others: bool) -> None:
        self.fleet = self.make()
        # The settings of a group seldom change; a person who asks for other ones gets an error.
        self.usual = {"policy": POLICIES[policy], "max_failed": max_failed, "count_others": others}
        self.fleet.start(**self.usual)

    def runs(self) -> list[Worker]:
        return self.fleet.alive()

    def pick(self, number: int, *, awake: bool = False) -> Worker | None:
        chosen = [worker for worker in self.runs() if not (awake and worker.paused)]
        return chosen[number % len(chosen)] if chosen else None

    def name(self, number: int) -> str:
        return self.fleet.nodes[number % len(self.fleet.nodes)]

    # -- runs

    @precondition(lambda self: len(self.runs()) < 3)
    @rule(operation=st.sampled_from(["", "", "", "kernel"]), restart=st.sampled_from([False, False, False, True]))
    def start(self, operation: str, restart: bool) -> None:
        self.fleet.start(operation=operation, restart=restart, **self.usual)

    @precondition(lambda self: len(self.runs()) < 3)
    @rule(policy=st.sampled_from(POLICIES), max_failed=st.integers(0, 2))
    def start_with_another_policy(self, policy: dict[str, Any], max_failed: int) -> None:
        self.fleet.start(policy=policy, max_failed=max_failed)

    def work(self, run: int, number: int, times: int, fate: str, patient: bool) -> None:
        """Several acts of a run in a row."""
        worker = self.pick(run, awake=True)
        for _time in range(times):
            if worker is None or worker.ended:
                return
            todo = worker.todo()
            if not self.fleet.step(worker, todo[number % len(todo)], fate=fate, patient=patient):
                return

    @rule(run=a_run, number=node, times=st.integers(1, 12))
    def all_goes_well(self, run: int, number: int, times: int) -> None:
        self.work(run, number, times, "well", True)

    @rule(run=a_run, number=node, times=st.integers(1, 4))
    def goes_on(self, run: int, number: int, times: int) -> None:
        self.work(run, number, times, "well", True)

    @rule(run=a_run, number=node, times=st.integers(1, 12), fate=st.sampled_from(FATES), patient=st.booleans())
    def works(self, run: int, number: int, times: int, fate: str, patient: bool) -> None:
        self.work(run, number, times, fate, patient)

    @rule(run=a_run)
    def is_killed(self, run: int) -> None:
        if worker := self.pick(run):
            self.fleet.kill(worker)

    @rule(run=a_run)
    def is_paused_or_wakes(self, run: int) -> None:
        if worker := self.pick(run):
            self.fleet.pause(worker)

    @rule(run=a_run, number=node, times=st.integers(0, 3))
    def sleeps_long_and_another_takes_over(self, run: int, number: int, times: int) -> None:
        """As when a laptop is closed between any two tasks."""
        worker = self.pick(run, awake=True)
        if worker is None:
            return
        self.fleet.pause(worker)
        self.fleet.pass_time(100)
        if len(self.runs()) < 3:
            self.fleet.start(**self.usual)
        self.work(0, number, 1 + times * 4, "well", True)
        self.fleet.pause(worker)

    @rule(seconds=st.sampled_from(SECONDS))
    def time_passes(self, seconds: int) -> None:
        self.fleet.pass_time(seconds)

    # -- nodes and people

    @rule(number=node, back=st.booleans())
    def a_node_fails_or_comes_back(self, number: int, back: bool) -> None:
        name = self.name(number)
        if not self.fleet.judge.last["nodes"][name]["ready"] or name in self.fleet.judge.down:
            (self.fleet.comes_back if back else self.fleet.is_ready_again)(name)
        elif not back:
            self.fleet.fails(name)

    @rule(number=node)
    def is_held_or_freed(self, number: int) -> None:
        name = self.name(number)
        self.fleet.hold(name, held=not self.fleet.judge.last["nodes"][name]["held"])

    @rule(number=node)
    def is_excluded_or_included(self, number: int) -> None:
        name = self.name(number)
        self.fleet.exclude(name, excluded=not self.fleet.judge.last["nodes"][name]["excluded"])

    @rule(number=node)
    def a_person_cordons_or_uncordons(self, number: int) -> None:
        name = self.name(number)
        self.fleet.person_cordons(name, cordoned=name not in self.fleet.judge.cordoned)

    @rule(release=st.lists(node, max_size=COUNT, unique=True))
    def the_doctor_comes(self, release: list[int]) -> None:
        self.fleet.doctor([self.name(number) for number in release])

    def teardown(self) -> None:
        if not hasattr(self, "fleet"):
            return
        try:
            self.fleet.end()
        finally:
            # pytest reports a case that was kept.
            (note if currently_in_test_context() else print)("\n".join(self.fleet.history))
