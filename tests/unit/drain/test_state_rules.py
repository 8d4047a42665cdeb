# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The course of a drain, whatever happens in whatever order."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from examples import share
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.rules import (
    NEVER,
    Budget,
    Options,
    Pod,
    forbidden,
    stays,
    verdict,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.state_rules import (
    ASK_AGAIN,
    SENT,
    SETTLE,
    WAITING,
    Drain,
)

FOREVER = float("inf")
APPS = ["web", "db"]
OPTIONS = st.builds(Options, st.booleans(), st.booleans())


def pod(number=1, app="web", **more):
    more.setdefault("controller", "ReplicaSet")
    return Pod("shop", f"{app}-{number}", f"uid-{number}", {"app": app}, **more)


def budget(app="web", **more):
    values = {"allowed": 1, "healthy": 3, "desired": 2, "expected": 3, **more}
    return Budget("shop", f"{app}-pdb", {"matchLabels": {"app": app}}, **values)


def drain(pods=(), budgets=(), options=Options()):  # noqa: B008 (frozen)
    state = Drain(options, 0.0)
    state.all_budgets(list(budgets))
    state.saw_all(list(pods), 0.0)
    return state


def uids(pods):
    return [item.uid for item in pods]


class AnyCourse(RuleBasedStateMachine):
    """The API's answers, pods and budgets in any order; what is promised holds after each step."""

    def __init__(self):
        super().__init__()
        self.now = 100.0
        self.numbers = itertools.count(1)
        self.on_node: dict[str, Pod] = {}
        self.flying: set[str] = set()
        self.accepted: set[str] = set()
        self.final: set[str] = set()

    @initialize(options=OPTIONS)
    def start(self, options):
        self.options = options
        self.state = Drain(options, self.now)
        self.state.saw_all([], self.now)

    def one(self, data, values):
        return data.draw(st.sampled_from(sorted(values)))

    @rule(
        app=st.sampled_from(APPS),
        controller=st.sampled_from(["ReplicaSet", "StatefulSet", "DaemonSet", ""]),
        mirror=st.booleans(),
        empty_dir=st.booleans(),
        phase=st.sampled_from(["Pending", "Running", "Running", "Succeeded"]),
        ready=st.booleans(),
        tolerates=st.booleans(),
        name=st.integers(1, 3),
    )
    def a_pod_comes(self, *, app, controller, mirror, empty_dir, phase, ready, tolerates, name):
        uid = f"uid-{next(self.numbers)}"
        came = Pod(
            "shop",
            # Few names, so that one comes back under a new UID.
            f"{app}-{name}",
            uid,
            {"app": app},
            controller=controller,
            mirror=mirror,
            empty_dir=empty_dir,
            phase=phase,
            ready=ready,
            tolerates_cordon=tolerates,
        )
        self.on_node[uid] = came
        self.state.saw(came)

    @precondition(lambda self: self.on_node)
    @rule(data=st.data(), terminating=st.booleans(), finished=st.booleans(), ready=st.booleans())
    def a_pod_changes(self, data, terminating, finished, ready):
        uid = self.one(data, self.on_node)
        old = self.on_node[uid]
        self.on_node[uid] = replace(
            old,
            terminating=old.terminating or ("2026-01-01T00:00:00Z" if terminating else ""),
            phase="Succeeded" if finished else old.phase,
            ready=ready and not finished,
        )
        self.state.saw(self.on_node[uid])

    @precondition(lambda self: self.on_node)
    @rule(data=st.data())
    def a_pod_goes(self, data):
        uid = self.one(data, self.on_node)
        del self.on_node[uid]
        self.state.left(uid, self.now)

    @precondition(lambda self: self.on_node)
    @rule(data=st.data())
    def the_watch_is_lost_and_pods_are_listed_again(self, data):
        for uid in data.draw(st.lists(st.sampled_from(sorted(self.on_node)), unique=True)):
            del self.on_node[uid]
        self.state.saw_all(list(self.on_node.values()), self.now)

    @rule(
        app=st.sampled_from([*APPS, None]),
        name=st.sampled_from(["one", "two"]),
        allowed=st.integers(0, 2),
        healthy=st.integers(0, 3),
        desired=st.integers(0, 3),
        current=st.booleans(),
    )
    def a_budget_changes(self, *, app, name, allowed, healthy, desired, current):
        selector = {"matchLabels": {"app": app}} if app else {}
        self.state.budget(Budget("shop", name, selector, allowed, healthy, desired, 3, current))

    @rule(name=st.sampled_from(["one", "two"]))
    def a_budget_vanishes(self, name):
        self.state.budget_gone("shop", name)

    @rule()
    def evictions_are_sent(self):
        sent = self.state.next_evictions(self.now)
        for item in sent:
            assert item.uid not in self.flying, "two evictions in flight for one pod"
            assert item.uid not in self.accepted, "evicted again though it was accepted"
            assert item.uid not in self.final, "asked again though the answer was final"
            assert item.uid in self.on_node, "a pod that is not there"
            assert not stays(item)
            assert not forbidden(item, self.options)
            assert not item.terminating
            assert item == self.on_node[item.uid], "judged by what it was"
            self.flying.add(item.uid)
        assert self.state.wake_at() > self.now or self.state.gives_up(self.now), "the loop would spin"
        assert self.state.next_evictions(self.now) == []

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def accepted_(self, data):
        uid = self.one(data, self.flying)
        self.flying.discard(uid)
        self.accepted.add(uid)
        self.state.accepted(uid, self.now)

    @precondition(lambda self: self.flying)
    @rule(
        data=st.data(),
        retry_after=st.sampled_from([None, 0.0, 1.0, 10.0]),
        by_budget=st.booleans(),
        final=st.booleans(),
    )
    def refused_(self, data, retry_after, by_budget, final):
        uid = self.one(data, self.flying)
        self.flying.discard(uid)
        if final:
            self.final.add(uid)
        self.state.refused(uid, self.now, "no", retry_after=retry_after, by_budget=by_budget, final=final)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def not_there_(self, data):
        uid = self.one(data, self.flying)
        self.flying.discard(uid)
        self.on_node.pop(uid, None)
        self.state.missing(uid, self.now)

    @rule(seconds=st.floats(0.01, 30))
    def time_passes(self, seconds):
        self.now += seconds

    @invariant()
    def done_only_when_nothing_is_left(self):
        left = {uid for uid, item in self.on_node.items() if uid not in self.state.skipped}
        assert not self.state.done or not left
        assert not self.state.done or not self.flying, "an answer is still to come"
        assert set(self.state.entries) == left

    @invariant()
    def all_that_is_left_is_named(self):
        assert len(self.state.blocked()) == len(self.state.entries)
        assert all(item["reason"] for item in self.state.blocked())

    @invariant()
    def hopeless_only_if_all_that_is_left_may_never_go(self):
        if self.state.gives_up(self.now):
            for uid, entry in self.state.entries.items():
                assert uid not in self.flying
                assert not entry.pod.terminating or entry.state == WAITING
                never = verdict(entry.pod, self.state.budgets.values()).verdict == NEVER
                assert never or uid in self.final or forbidden(entry.pod, self.options)

    @invariant()
    def only_what_we_evicted_is_told_as_evicted(self):
        assert {item.pod.uid for item in self.state.gone} <= self.accepted


class Server:
    """An API server with one budget, as its own eviction handler counts."""

    def __init__(self, pods, app_budget, refill):
        self.pods = {item.uid: item for item in pods}
        self.budget = app_budget
        self.refill = refill

    def evict(self, item):
        if self.budget.covers(item):
            if not self.budget.allowed:
                return False
            self.budget = replace(self.budget, allowed=self.budget.allowed - 1)
        del self.pods[item.uid]
        return True


class AFreeingBudget(RuleBasedStateMachine):
    """Where a budget is free again and again, every pod goes, and soon after the budget allows it."""

    @initialize(count=st.integers(1, 8), others=st.integers(0, 3), allowed=st.integers(0, 2), lost=st.booleans())
    def start(self, count, others, allowed, lost):
        pods = [pod(number) for number in range(count)] + [pod(100 + number, "db") for number in range(others)]
        self.now = 50.0
        self.lost = lost
        self.server = Server(pods, budget(allowed=allowed, healthy=2 + allowed), refill=1)
        self.state = Drain(Options(), self.now)
        self.state.all_budgets([self.server.budget])
        self.state.saw_all(pods, self.now)
        self.requests = 0

    @rule(refill=st.integers(0, 2), late=st.booleans())
    def a_round(self, refill, late):
        """Evictions are sent and answered; the budget's news comes before or after the answers, or is lost."""
        self.server.budget = replace(self.server.budget, allowed=self.server.budget.allowed + refill)
        if refill and not late:
            self.state.budget(self.server.budget)
        sent = self.state.next_evictions(self.now)
        self.requests += len(sent)
        answers = [(item, self.server.evict(item)) for item in sent]
        if late and not self.lost:
            self.state.budget(self.server.budget)
        for item, went in answers:
            if went:
                self.state.accepted(item.uid, self.now)
                self.state.left(item.uid, self.now)
            else:
                self.state.refused(item.uid, self.now, "full", retry_after=None, by_budget=True)
        if self.server.pods:
            assert not self.state.gives_up(self.now)
            assert not self.state.done
        self.now += 0.01

    def teardown(self):
        if not hasattr(self, "state"):
            return
        # From here on the budget is free, and every piece of news about it is lost: asking again is what is left.
        rounds = 0
        while not self.state.done:
            rounds += 1
            assert rounds < 200, self.state.blocked()
            wake = self.state.wake_at()
            assert wake < FOREVER, "nobody would wake it"
            self.now = max(self.now, wake)
            self.a_round(refill=1, late=False) if not self.lost else self._lost_round()
        assert not self.server.pods
        assert len(self.state.gone) == len({item.pod.uid for item in self.state.gone})

    def _lost_round(self):
        self.server.budget = replace(self.server.budget, allowed=1)
        for item in self.state.next_evictions(self.now):
            if self.server.evict(item):
                self.state.accepted(item.uid, self.now)
                self.state.left(item.uid, self.now)
            else:
                self.state.refused(item.uid, self.now, "full", retry_after=None, by_budget=True)


AnyCourse.TestCase.settings = settings(max_examples=share(2), stateful_step_count=40)
AFreeingBudget.TestCase.settings = settings(stateful_step_count=15)
TestAnyCourse = AnyCourse.TestCase
TestAFreeingBudget = AFreeingBudget.TestCase


class TestAsking:
    def test_no_more_than_the_budget_allows(self):
        state = drain([pod(number) for number in range(6)], [budget(allowed=2)])

        assert len(state.next_evictions(0.0)) == 2

    def test_pods_without_a_budget_all_at_once(self):
        assert len(drain([pod(number) for number in range(50)]).next_evictions(0.0)) == 50

    def test_goes_as_soon_as_the_budget_allows(self):
        state = drain([pod(1)], [budget(allowed=0, healthy=2)])
        assert state.next_evictions(0.0) == []

        state.budget(budget(allowed=1))

        assert uids(state.next_evictions(0.0)) == ["uid-1"]

    def test_goes_when_a_new_list_of_budgets_is_without_its_own(self):
        state = drain([pod(1), pod(2, app="db")], [budget(allowed=0, healthy=2), budget("db", allowed=0, healthy=2)])
        assert state.next_evictions(0.0) == []

        state.all_budgets([budget("db", allowed=0, healthy=2)])

        assert uids(state.next_evictions(0.0)) == ["uid-1"]

    def test_goes_as_soon_as_the_budget_is_gone(self):
        state = drain([pod(1)], [budget(allowed=0, healthy=2)])
        assert state.next_evictions(0.0) == []

        state.budget_gone("shop", "web-pdb")

        assert uids(state.next_evictions(0.0)) == ["uid-1"]

    def test_a_budget_that_says_later_is_asked_again_in_the_end(self):
        state = drain([pod(1)], [budget(allowed=0, healthy=2)])
        assert state.next_evictions(0.0) == []
        state.saw(pod(1))
        assert state.wake_at() == ASK_AGAIN

        assert uids(state.next_evictions(ASK_AGAIN)) == ["uid-1"]

    def test_retry_after_is_honoured(self):
        state = drain([pod(1)])
        state.next_evictions(0.0)
        state.refused("uid-1", 0.0, "busy", retry_after=7.0, by_budget=False)
        # Neither news of its budget nor of the pod makes the API server less busy.
        state.budget(budget())
        state.saw(pod(1))

        assert state.next_evictions(6.9) == []
        assert uids(state.next_evictions(7.0)) == ["uid-1"]

    def test_news_of_the_budget_beats_the_pause_that_its_refusal_asked_for(self):
        state = drain([pod(1)], [budget(current=False)])
        state.next_evictions(0.0)
        state.next_evictions(ASK_AGAIN)
        state.refused("uid-1", ASK_AGAIN, "still being processed", retry_after=10.0, by_budget=True)
        state.budget(budget())

        assert uids(state.next_evictions(ASK_AGAIN)) == ["uid-1"]

    def test_a_budget_that_is_used_up_is_asked_again_in_the_end(self):
        state = drain([pod(1), pod(2)], [budget(allowed=1)])
        assert uids(state.next_evictions(0.0)) == ["uid-1"]
        state.refused("uid-1", 0.0, "full", retry_after=None, by_budget=True)
        assert state.wake_at() == ASK_AGAIN

        state.budget(budget(allowed=0))
        state.next_evictions(ASK_AGAIN)
        state.refused("uid-1", ASK_AGAIN, "full", retry_after=None, by_budget=True)
        assert state.wake_at() == 2 * ASK_AGAIN

    def test_a_pod_that_waits_holds_up_no_other(self):
        ending = pod(1, terminating="2026-01-01T00:00:00Z")
        state = drain([ending, pod(2), pod(3, "db")], [budget(allowed=0, healthy=2)])
        assert uids(state.next_evictions(0.0)) == ["uid-3"]

        state.saw(pod(4, "db"))

        assert uids(state.next_evictions(1.0)) == ["uid-4"]

    def test_a_list_of_one_namespace_says_nothing_about_another(self):
        state = drain([pod(1)], [budget(allowed=0, healthy=2)])

        state.all_budgets([], "other")
        assert state.next_evictions(0.0) == []

        state.all_budgets([], "shop")
        assert uids(state.next_evictions(0.0)) == ["uid-1"]

    def test_news_that_came_before_the_answer_is_not_lost(self):
        state = drain([pod(1)], [budget(allowed=1)])
        state.next_evictions(0.0)
        state.budget(budget(allowed=1))
        state.refused("uid-1", 0.0, "full a moment ago", retry_after=None, by_budget=True)

        assert state.wake_at() < 1.0

    def test_retry_after_zero_still_has_a_pause(self):
        state = drain([pod(1)])
        state.next_evictions(0.0)
        state.refused("uid-1", 0.0, "busy", retry_after=0.0, by_budget=False)

        assert state.wake_at() == 1.0

    def test_a_budget_that_says_now_and_refuses_is_asked_less_and_less(self):
        state = drain([pod(1)], [budget(allowed=1)])
        waits = []
        now = 0.0
        for _time in range(9):
            state.next_evictions(now)
            state.budget(budget(allowed=1))
            state.refused("uid-1", now, "full", retry_after=None, by_budget=True)
            waits.append(round(state.wake_at() - now, 6))
            now = state.wake_at()

        assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, ASK_AGAIN, ASK_AGAIN, ASK_AGAIN]

    def test_a_pod_that_is_not_ready_costs_its_budget_nothing(self):
        state = drain([pod(1, ready=False), pod(2)], [budget(allowed=1)])

        assert uids(state.next_evictions(0.0)) == ["uid-1", "uid-2"]


class TestIdentity:
    def test_the_same_name_with_another_uid_is_another_pod(self):
        state = drain([pod(1)])
        state.next_evictions(0.0)
        state.accepted("uid-1", 0.5)
        state.saw(replace(pod(2), name="web-1"))
        state.left("uid-1", 1.5)

        assert [(item.pod.uid, item.seconds) for item in state.gone] == [("uid-1", 1.0)]
        assert list(state.entries) == ["uid-2"]

    def test_gone_before_the_answer_still_counts_as_evicted(self):
        state = drain([pod(1)])
        state.next_evictions(0.0)
        state.left("uid-1", 0.1)
        assert not state.done

        state.accepted("uid-1", 0.2)

        assert state.done
        assert [(item.pod.uid, item.seconds) for item in state.gone] == [("uid-1", 0.0)]

    @pytest.mark.parametrize("refused", [False, True])
    def test_a_pod_that_others_removed_does_not_count_as_evicted(self, refused):
        state = drain([pod(1)])
        state.next_evictions(0.0)
        state.left("uid-1", 0.1)
        if refused:
            state.refused("uid-1", 0.2, "full", retry_after=None, by_budget=True)
        else:
            state.missing("uid-1", 0.2)

        assert state.done
        assert state.gone == []

    def test_ended_by_others_while_asked_is_left_to_end(self):
        state = drain([pod(1)])
        state.next_evictions(0.0)
        state.saw(pod(1, terminating="2026-01-01T00:00:00Z"))
        state.refused("uid-1", 0.2, "no", retry_after=None, by_budget=True)

        assert state.next_evictions(100.0) == []
        assert "terminating" in state.blocked()[0]["reason"]

    def test_ended_by_others_before_it_is_asked_is_left_to_end(self):
        state = drain([pod(1)], [budget(allowed=0, healthy=2)])
        state.saw(pod(1, terminating="2026-01-01T00:00:00Z"))

        assert state.next_evictions(ASK_AGAIN) == []
        assert "terminating" in state.blocked()[0]["reason"]

    def test_what_tolerates_the_cordon_and_comes_later_is_left(self):
        state = drain([pod(1, tolerates_cordon=True)])
        state.saw(pod(2, tolerates_cordon=True))

        assert list(state.entries) == ["uid-1"]
        assert "tolerates the cordon" in state.skipped["uid-2"][1]

    def test_a_left_pod_stays_left_when_it_finishes(self):
        state = drain([pod(1, controller="DaemonSet")])
        state.saw(pod(1, controller="DaemonSet", phase="Failed"))

        assert state.done
        assert list(state.skipped) == ["uid-1"]

        state.left("uid-1", 2.0)
        assert not state.skipped


def test_no_answer_is_no_empty_node():
    assert not Drain(Options(), 0.0).done


class TestNever:
    def test_a_pod_that_comes_and_is_forbidden_is_not_evicted(self):
        state = drain([pod(1, controller="")])

        assert state.next_evictions(0.0) == []
        assert state.gives_up(0.0)
        assert "no owner" in state.blocked()[0]["reason"]

    def test_whatever_its_budget_allows_later(self):
        state = drain([pod(1, controller="")], [budget(allowed=0)])
        state.budget(budget(allowed=1))
        state.saw(pod(1, controller=""))

        assert state.next_evictions(ASK_AGAIN) == []

    def test_until_it_has_finished(self):
        state = drain([pod(1, controller="")])
        state.saw(pod(1, controller="", phase="Succeeded"))

        assert uids(state.next_evictions(0.0)) == ["uid-1"]

    def test_named_at_once_but_not_given_up_while_others_move(self):
        state = drain([pod(1), pod(2, "db")], [budget(allowed=0, desired=3)])
        state.next_evictions(0.0)

        assert list(state.never_now()) == ["uid-1"]
        state.refused("uid-1", 0.0, "full", retry_after=None, by_budget=True)
        assert not state.gives_up(0.0)

    @pytest.mark.parametrize(
        "go",
        [
            lambda state: state.left("uid-2", 5.0),
            lambda state: state.missing("uid-2", 5.0),
            lambda state: state.saw_all([pod(1)], 5.0),
        ],
    )
    def test_the_last_one_to_go_may_free_the_others(self, go):
        state = drain([pod(1), pod(2, "db")], [budget(allowed=0, desired=3)])
        state.next_evictions(0.0)
        state.refused("uid-1", 0.0, "full", retry_after=None, by_budget=True)
        state.accepted("uid-2", 0.0)
        go(state)
        assert not state.gives_up(5.0)
        assert not state.gives_up(5.0 + SETTLE / 2)
        assert 5.0 < state.wake_at() <= 5.0 + SETTLE

        assert state.gives_up(5.0 + SETTLE)

        state.budget(budget(allowed=1))
        assert not state.gives_up(5.0 + SETTLE)
        assert uids(state.next_evictions(6.0)) == ["uid-1"]

    def test_two_budgets_of_which_one_is_taken_away(self):
        state = drain([pod(1)], [budget(), replace(budget(), name="also")])
        state.next_evictions(0.0)
        state.refused("uid-1", 0.0, "more than one", retry_after=None, by_budget=True)
        assert state.gives_up(0.0)

        state.budget_gone("shop", "also")

        assert uids(state.next_evictions(0.0)) == ["uid-1"]

    def test_what_is_under_way_is_not_hopeless(self):
        state = drain([pod(1)], [budget(allowed=0, desired=3)])
        state.next_evictions(0.0)

        assert state.entries["uid-1"].state == SENT
        assert not state.gives_up(1000.0)


class TestTelling:
    @pytest.mark.parametrize(
        ("item", "words"),
        [
            (pod(1, terminating="2026-01-01T00:00:00Z", finalizers=("example.com/wait",)), "example.com/wait"),
            (pod(1, terminating="2026-01-01T00:00:00Z"), "(its grace period ends at 2026-01-01T00:00:00Z)"),
            (pod(1, empty_dir=True), "emptyDir"),
            (pod(1), "has not answered"),
        ],
    )
    def test_why_a_pod_is_left(self, item, words):
        state = drain([item])
        state.next_evictions(0.0)

        (found,) = state.blocked()
        assert words in found["reason"]
        assert ("is terminating" in found["reason"]) is bool(item.terminating)
        assert (found["pdb"], found["verdict"]) == (None, "never" if item.empty_dir else "later")

    @pytest.mark.parametrize("refusal", ["", "full"])
    def test_the_budget_is_named(self, refusal):
        state = drain([pod(1)], [budget(allowed=0, healthy=2)])
        if refusal:
            state.next_evictions(0.0)
            state.next_evictions(ASK_AGAIN)
            state.refused("uid-1", ASK_AGAIN, refusal, retry_after=None, by_budget=True)
        (found,) = state.blocked()

        assert (found["pdb"], found["verdict"]) == ("web-pdb", "later")
        assert "allows no eviction now" in found["reason"]

    def test_pods_that_never_go_are_distinct_from_pods_that_must_wait(self):
        pods = [pod(1, controller=""), pod(2), pod(3, "db"), pod(4)]
        state = drain(pods, [budget("db", allowed=0, desired=3)])
        state.next_evictions(0.0)
        state.refused("uid-2", 0.0, "no webhook", retry_after=None, by_budget=False, final=True)
        for uid in ("uid-3", "uid-4"):
            state.refused(uid, 0.0, "budget", retry_after=None, by_budget=True)
        state.budget(budget())
        state.saw(pod(2))

        assert [(item["name"], item["pdb"], item["verdict"]) for item in state.never()] == [
            ("web-1", "web-pdb", "never"),
            ("web-2", "web-pdb", "never"),
            ("db-3", "db-pdb", "never"),
        ]
        assert state.never()[1]["reason"] == "no webhook"


class TestDeletion:
    """Pods that a budget keeps refusing are deleted, if the user wants that."""

    FULL = budget(allowed=0)

    def state(self, after=60.0, uids_=("uid-1",), budgets=None):
        state = drain([pod(1), pod(2, "db")], [self.FULL] if budgets is None else budgets)
        state.deletable, state.delete_after = frozenset(uids_), after
        return state

    def refuse(self, state, now, **more):
        (sent,) = [item for item in state.next_evictions(now) if item.uid == "uid-1"]
        state.refused(sent.uid, now, "not now", retry_after=None, **{"by_budget": True, **more})

    def test_it_is_evicted_first(self):
        state = self.state()
        assert uids(state.next_evictions(0.0)) == ["uid-2"]
        assert uids(state.next_evictions(ASK_AGAIN)) == ["uid-1"]
        assert state.deletion("uid-1") is None

    def test_it_is_deleted_after_its_time(self):
        state = self.state()
        state.next_evictions(0.0)
        self.refuse(state, ASK_AGAIN)
        assert uids(state.next_evictions(59.9)) == ["uid-1"]
        assert state.deletion("uid-1") is None
        state.refused("uid-1", 59.9, "not now", retry_after=None, by_budget=True)
        assert state.wake_at() == 60.0
        assert uids(state.next_evictions(60.0)) == ["uid-1"]
        assert state.deletion("uid-1").budget == "web-pdb"
        assert state.deletion("uid-2") is None
        # The API server was busy: it is deleted again, and not evicted.
        state.refused("uid-1", 60.0, "busy", retry_after=None, by_budget=False)
        assert state.next_evictions(60.5) == []
        assert uids(state.next_evictions(61.0)) == ["uid-1"]
        assert state.deletion("uid-1") is not None

    def test_another_pod_is_not(self):
        state = self.state(uids_=("uid-2",))
        state.next_evictions(0.0)
        self.refuse(state, ASK_AGAIN)
        state.next_evictions(100.0)
        assert state.deletion("uid-1") is None

    def test_a_refusal_for_another_reason_does_not_count(self):
        state = self.state(budgets=[])
        self.refuse(state, 0.0, by_budget=False)
        state.next_evictions(100.0)
        assert state.deletion("uid-1") is None

    @pytest.mark.parametrize("final", [True, False])
    def test_a_final_refusal_is_no_reason(self, final):
        state = self.state(budgets=[])
        self.refuse(state, 0.0, final=final)
        state.next_evictions(100.0)
        assert (state.deletion("uid-1") is None) is final

    def test_a_pod_that_is_forbidden_is_not_deleted(self):
        state = drain([pod(1, controller="")], [self.FULL])
        state.deletable, state.delete_after = frozenset(["uid-1"]), 60.0
        assert state.next_evictions(100.0) == []
        assert state.gives_up(100.0)

    def test_a_budget_that_says_never_is_no_reason_to_give_up(self):
        never = budget(allowed=0, healthy=1, desired=1, expected=1)
        for deletable, gives_up in ((frozenset(), True), (frozenset(["uid-1"]), False)):
            state = drain([pod(1)], [never])
            state.deletable, state.delete_after = deletable, 60.0
            self.refuse(state, 0.0)
            assert state.verdict(state.entries["uid-1"]).verdict == NEVER
            assert state.gives_up(30.0) is gives_up
            assert uids(state.next_evictions(60.0)) == ["uid-1"]
            assert (state.deletion("uid-1") is not None) is not gives_up


def test_a_pod_that_its_controller_binds_to_the_node_is_not_evicted_for_ever():
    """With spec.nodeName, the cordon does not matter."""
    state = drain([pod(1, controller_name="pinned"), pod(9, controller_name="other")])
    for number in (1, 2, 3):
        state.left(f"uid-{number}", float(number))
        state.saw(pod(number + 1, controller_name="pinned"))
    assert set(state.entries) == {"uid-9"}
    skipped = [(stays.uid, why) for stays, why in state.skipped.values()]
    assert skipped == [("uid-4", "its controller creates it on this node again")]
    state.left("uid-9", 9.0)
    assert state.done


def test_pods_that_arrive_late_are_evicted():
    state = drain([pod(1, controller_name="web")])
    for number in range(2, 8):
        state.saw(pod(number, controller_name="web"))
    assert len(state.entries) == 7
    state.left("uid-1", 1.0)
    for number in (8, 9):
        state.saw(pod(number, controller_name="web"))
    assert len(state.entries) == 8
    assert state.skipped == {}
