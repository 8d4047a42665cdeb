# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random histories of larger scopes: hypothesis chooses what happens next, and to which node or run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from model import api
from model.after import check_the_end, doctor
from model.fleet import FAULTS, ZONE, Move, Run, Scope, State, about_to_reboot
from model.judge import hold_path, node_path
from model.plan import CLOSED, SETTINGS, check_plan
from model.programs import first_place
from model.role import Plan

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import CORDON, EXCLUDE, KEEP_CORDONED

ZONES = {"alfa": "a", "bravo": "a", "charlie": "b", "delta": "b"}
NODES = tuple(ZONES)
POLICIES: list[dict[str, Any]] = [
    {"max_unavailable": "1"},
    {"max_unavailable": "2"},
    {"max_unavailable": "3"},
    {"max_unavailable": "50%"},
    {"max_unavailable": "0"},
    {"max_unavailable": "3", "topology_key": ZONE, "max_unavailable_per_domain": 1},
    {"max_unavailable": "2", "topology_key": ZONE, "max_domains": 1},
]
# Requests until a history counts as endless.
_MOST = 6000
which = st.integers(0, 11)
a_node = st.sampled_from(NODES)


class Machine(RuleBasedStateMachine):
    """Events with plain values; an event that does not fit the moment changes nothing."""

    state: State

    @initialize(
        policy=st.sampled_from(POLICIES), max_failed=st.integers(0, 2), others=st.booleans(), opt_outs=st.booleans()
    )
    def begin(self, policy: dict[str, Any], max_failed: int, others: bool, opt_outs: bool) -> None:
        api.versions_grow = True
        self.history: list[str] = []
        self.steps = self.number = 0
        # The settings of a group seldom change; a person who asks for other ones gets an error.
        self.usual = {**policy, "max_failed": max_failed, "count_others": others, "opt_outs": opt_outs}
        self.state = replace(Scope((), ZONES).begin(), left=(99,) * len(FAULTS))
        self.start("", False)

    def take(self, move: Move | None) -> bool:
        if move is not None:
            self.history.append(move.words)
            self.state, self.steps = move.after, self.steps + 1
        return move is not None

    def happens(self, words: str, objects: api.Objects) -> None:
        self.take(Move((words,), lambda: self.state.with_objects(objects, (words,))))

    @property
    def awake(self) -> list[int]:
        return [number for number, run in enumerate(self.state.runs) if run.status == "awake" and not run.over]

    # -- runs

    @precondition(lambda self: sum(not run.over for run in self.state.runs) < 3)
    @rule(named=st.sampled_from(["", "", "", "kernel"]), restart=st.sampled_from([False, False, False, True]))
    def start(self, named: str, restart: bool, **other: Any) -> None:
        self.number += 1
        variables = {**self.usual, **other, "operation": named, "restart": restart}
        plan = Plan(f"run-{self.number}", NODES, variables, number=self.number)
        run = Run(plan, (first_place(plan.begin()),))
        self.take(
            Move((plan.run, " starts with ", variables), lambda: replace(self.state, runs=(*self.state.runs, run)))
        )

    @precondition(lambda self: sum(not run.over for run in self.state.runs) < 3)
    @rule(named=st.sampled_from(["", "kernel"]), restart=st.booleans())
    def start_outside_the_window(self, named: str, restart: bool) -> None:
        self.start(named, restart, windows=CLOSED)

    @precondition(lambda self: sum(not run.over for run in self.state.runs) < 3)
    @rule(policy=st.sampled_from(POLICIES), max_failed=st.integers(0, 2))
    def start_with_another_policy(self, policy: dict[str, Any], max_failed: int) -> None:
        self.start("", False, **policy, max_failed=max_failed)

    def work(self, run: int, program: int, times: int, until: str = "") -> int:
        """Requests of one program of a run in a row, or of any other where that one waits; how many there were.

        Args:
            until: The last request, for example ``PUT configmaps``.
        """
        for done in range(times):
            awake = self.awake
            places = self.state.runs[number := awake[run % len(awake)]].places if awake else ()
            for which in range(program, program + len(places)):
                place = places[which % len(places)]
                move = next(self.state.steps(number, which % len(places)), None)
                if self.take(move):
                    break
            else:
                return done
            if until and str(place.asked).startswith(until):
                return done + 1
        return times

    @rule(run=which, program=which, times=st.integers(1, 60))
    def all_goes_well(self, run: int, program: int, times: int) -> None:
        self.work(run, program, times)

    @rule(run=which, program=which, times=st.integers(1, 12))
    def goes_on(self, run: int, program: int, times: int) -> None:
        self.work(run, program, times)

    @rule(number=which)
    def something_happens(self, number: int) -> None:
        moves = list(self.state.world())
        self.take(moves[number % len(moves)] if moves else None)

    @rule(number=st.integers(0, 99))
    def something_goes_wrong(self, number: int) -> None:
        moves = list(self.state.faults())
        self.take(moves[number % len(moves)] if moves else None)

    @rule(run=which, program=which, times=st.integers(0, 60))
    def sleeps_long_and_another_takes_over(self, run: int, program: int, times: int) -> None:
        """As when a laptop is closed between any two requests."""
        if not (awake := self.awake):
            return
        name = self.state.runs[awake[run % len(awake)]].plan.run
        self.only(f"{name} is paused", faults=True)
        self.only(f"{name} is silent for 100 s")
        if sum(not item.over for item in self.state.runs) < 3:
            self.start("", False)
        self.work(run, program, times)
        self.only(f"{name} wakes")

    def only(self, words: str, *, faults: bool = False) -> None:
        """What happens, by its words."""
        moves = self.state.faults() if faults else self.state.world()
        self.take(next((move for move in moves if move.words == words), None))

    # -- people

    @rule(name=a_node)
    def is_held_or_freed(self, name: str) -> None:
        self.only(
            f"{name} is {'free' if hold_path(name) in self.state.objects else 'held'}",
            faults=hold_path(name) not in self.state.objects,
        )

    @rule(name=a_node)
    def is_excluded_or_included(self, name: str) -> None:
        node = self.state.objects[node_path(name)].content
        value = None if EXCLUDE in node_rules.labels_of(node) else ""
        self.edits(
            f"a person {'includes' if value is None else 'excludes'} {name}",
            name,
            {"metadata": {"labels": {EXCLUDE: value}}},
        )

    @rule(name=a_node)
    def a_person_cordons_or_uncordons(self, name: str) -> None:
        known = self.state.objects["judge"].content
        cordons = name not in known["kept"]
        kept = sorted({*known["kept"], name} if cordons else {*known["kept"]} - {name})
        # On a node that a run has cordoned, a person has to say that the node is to stay cordoned.
        ours = node_rules.record(self.state.objects[node_path(name)].content, CORDON)
        patch = {
            "metadata": {"annotations": {KEEP_CORDONED: "" if cordons and ours else None}},
            "spec": {"unschedulable": cordons or None},
        }
        # A person who uncordons a node in the middle of its reboot releases it: the next run may return its slot.
        excused = sorted({*known["excused"], *([name] if ours and not cordons else [])})
        objects = api.write(self.state.objects, "judge", {**known, "kept": kept, "excused": excused})
        self.edits(f"a person {'cordons' if cordons else 'uncordons'} {name}", name, patch, objects)

    def edits(self, words: str, name: str, patch: dict[str, Any], objects: api.Objects | None = None) -> None:
        path, before = node_path(name), objects or self.state.objects
        content = api.merged(before[path].content, patch)
        self.happens(words, api.write(before, path, content))

    @rule(name=a_node, settings=st.sampled_from(SETTINGS), policy=st.sampled_from([{}, {}, *POLICIES]))
    def a_person_plans(self, name: str, settings: dict[str, Any], policy: dict[str, Any]) -> None:
        check_plan(self.state, name, **{**self.usual, **policy, **settings})

    @rule(release=st.lists(a_node, max_size=2, unique=True))
    def the_doctor_comes(self, release: list[str]) -> None:
        # Between the last look of a run and its reboot, a person is too late.
        places = [place for run in self.state.runs if run.status == "awake" for place in run.places]
        release = [name for name in release if not any(about_to_reboot(place, name) for place in places)]
        self.take(Move(("the doctor comes, told to release ", release), lambda: doctor(self.state, release)))

    # -- the end

    def teardown(self) -> None:
        try:
            if hasattr(self, "state"):
                self.end()
        finally:
            api.versions_grow = False
            # pytest reports a case that was kept.
            (note if currently_in_test_context() else print)("\n".join(getattr(self, "history", [])))

    def end(self) -> None:
        """Holders and people let go, all live runs do what they can, and a last run does the rest."""
        for name in NODES:
            if EXCLUDE in node_rules.labels_of(self.state.objects[node_path(name)].content):
                self.is_excluded_or_included(name)
        self.state = replace(self.state, left=(0,) * len(FAULTS))
        most = self.steps + _MOST
        while self.take(next(self.state.moves(), None)):
            assert self.steps < most, (
                f"these never end: {[str(place.asked) for run in self.state.runs for place in run.places]}"
            )
        check_the_end(self.state)
