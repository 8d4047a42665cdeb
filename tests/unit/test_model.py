# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model of fleets: runs that begin, die, are paused, revive and race; nodes that fail and heal; people who cordon.

The steps of a run are those of the role, each an act of its own; between any two of them anything may happen. What the
steps ask are the rules of the collection itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ansible_collections.holdfast.kubernetes.plugins.module_utils import _ledger, _operation_book
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import Policy
from ansible_collections.holdfast.kubernetes.plugins.module_utils._claim import Claim, may_take
from ansible_collections.holdfast.kubernetes.plugins.module_utils._clock import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._ledger import GRANTED, Ledger, Member, Request
from ansible_collections.holdfast.kubernetes.plugins.module_utils._operation_book import Wish
from ansible_collections.holdfast.kubernetes.plugins.module_utils._run import DEAD_AFTER, Run

NAMES = ["alfa", "bravo", "charlie", "delta"]
STEPS = ["slot", "claim", "cordon", "reboot", "ready", "uncordon", "release", "record"]
START = datetime(2026, 11, 21, tzinfo=timezone.utc)


@dataclass
class Node:
    """A node of the model."""

    name: str
    ready: bool = True
    boot: int = 1
    cordoned: bool = False
    cordoned_by_us: bool = False
    cordoned_before: bool = False
    claim: Claim | None = None
    phase: str = ""
    operation: str = ""
    boot_before: int = 0
    result: str = ""
    reboots: dict[str, int] = field(default_factory=dict)

    def member(self) -> Member:
        return Member(self.name, self.ready, self.cordoned, f"{self.name}-{self.boot}")


@dataclass
class Worker:
    """A run of the model: where it is with each node, and what it believes."""

    id: str
    operation: str
    alive: bool = True
    paused: bool = False
    at: dict[str, int] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)


class Fleet(RuleBasedStateMachine):
    """The cluster, the ledger and the runs."""

    @initialize(budget=st.integers(1, 3), max_failed=st.integers(0, 2))
    def begin(self, budget: int, max_failed: int) -> None:
        self.policy = Policy(max_unavailable=str(budget))
        self.budget = budget
        self.max_failed = max_failed
        self.now = START
        self.nodes = {name: Node(name) for name in NAMES}
        self.ledger = Ledger()
        self.workers: dict[str, Worker] = {}
        self.signs: dict[str, Run] = {}
        self.foreign: set[str] = set()

    # -- runs

    @rule()
    @precondition(lambda self: sum(worker.alive for worker in self.workers.values()) < 3)
    def start_a_run(self) -> None:
        name = f"run-{len(self.workers) + 1}"
        self.signs[name] = Run(name, name, to_text(self.now))
        wish = Wish(run=name, fresh=f"operation-{name}", nodes=frozenset(NAMES))
        beginning = _operation_book.begin(self.healed(), wish, self.signs, self.now)
        self.ledger = beginning.ledger
        self.workers[name] = Worker(name, beginning.operation)

    @rule(data=st.data())
    @precondition(lambda self: any(worker.alive and not worker.paused for worker in self.workers.values()))
    def work(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from([item for item in self.workers.values() if item.alive and not item.paused]))
        left = [name for name in NAMES if name not in worker.done]
        if left:
            self.step(worker, self.nodes[data.draw(st.sampled_from(left))])

    @rule(data=st.data())
    @precondition(lambda self: any(worker.alive for worker in self.workers.values()))
    def kill(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from([item for item in self.workers.values() if item.alive])).alive = False

    @rule(data=st.data())
    @precondition(lambda self: any(worker.alive for worker in self.workers.values()))
    def pause_or_wake(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from([item for item in self.workers.values() if item.alive]))
        worker.paused = not worker.paused

    @rule(seconds=st.sampled_from([1, 30, 60, 91]))
    def time_passes(self, seconds: int) -> None:
        for _second in range(0, seconds, 15):
            self.now += timedelta(seconds=min(15, seconds))
            self.beat()

    def beat(self) -> None:
        for worker in self.workers.values():
            if worker.alive and not worker.paused and worker.id in self.signs:
                self.signs[worker.id] = Run(worker.id, worker.id, to_text(self.now))

    # -- the world

    @rule(name=st.sampled_from(NAMES))
    def node_fails(self, name: str) -> None:
        self.nodes[name].ready = False

    @rule(name=st.sampled_from(NAMES))
    def node_is_mended(self, name: str) -> None:
        node = self.nodes[name]
        if not node.ready:
            node.ready, node.boot = True, node.boot + 1

    @rule(name=st.sampled_from(NAMES))
    def a_person_cordons(self, name: str) -> None:
        node = self.nodes[name]
        if not node.cordoned:
            node.cordoned = True
            self.foreign.add(name)

    # -- the steps of a run, as the role has them

    def live(self) -> frozenset[str]:
        return frozenset(run.id for run in self.signs.values() if run.alive(self.now))

    def healed(self) -> Ledger:
        return _ledger.heal(self.ledger, {node.name: node.member() for node in self.nodes.values()})

    def step(self, worker: Worker, node: Node) -> None:
        at = worker.at.get(node.name, 0)
        if at > 1 and (node.claim is None or node.claim.run != worker.id):
            # The claim is checked in the same compare-and-swap as the act, or directly before it.
            worker.done.add(node.name)
            return
        if getattr(self, f"step_{STEPS[at]}")(worker, node):
            worker.at[node.name] = at + 1
            if at + 1 == len(STEPS):
                worker.done.add(node.name)
        if len(worker.done) == len(NAMES):
            self.end_run(worker)

    def end_run(self, worker: Worker) -> None:
        complete = all(node.operation == worker.operation and node.result for node in self.nodes.values())
        self.ledger = _operation_book.end(
            self.ledger, worker.operation, worker.id, self.live(), complete=complete, now=self.now
        )
        self.signs.pop(worker.id, None)
        worker.alive = False

    def step_claim(self, worker: Worker, node: Node) -> bool:
        wanted = Claim(worker.id, worker.operation, "rolling_reboot", to_text(self.now))
        if not may_take(node.claim, wanted, self.live()):
            self.ledger = _ledger.release(self.ledger, node.name)
            worker.done.add(node.name)
            return False
        if node.operation == worker.operation and node.result:
            self.ledger = _ledger.release(self.ledger, node.name)
            worker.done.add(node.name)
            return False
        node.claim = wanted
        if node.operation != worker.operation:
            node.operation, node.phase, node.result, node.boot_before = worker.operation, "slot", "", node.boot
        return True

    def step_slot(self, worker: Worker, node: Node) -> bool:
        if node.operation == worker.operation and node.result:
            worker.done.add(node.name)
            return False
        request = Request(node.name, worker.operation, worker.id, to_text(self.now), self.max_failed, live=self.live())
        members = [item.member() for item in self.nodes.values()]
        before = self.ledger
        decision = _ledger.decide(self.ledger, self.policy, members, request)
        if decision.outcome == GRANTED:
            self.ledger = decision.ledger
            if node.name not in before.slots:
                self.check_grant(worker)
            return True
        if decision.outcome == _ledger.REFUSED:
            worker.done.add(node.name)
        return False

    def check_grant(self, worker: Worker) -> None:
        busy = {item.name for item in self.nodes.values() if not item.ready or item.cordoned} | set(self.ledger.slots)
        granted = set(self.ledger.slots)
        assert len(granted) <= self.budget, "promise 1: more slots than the budget"
        assert len(busy) <= self.budget, "promise 1: others were not counted"
        failures = self.ledger.failures(worker.operation)
        assert len(failures) <= self.max_failed, "promise 5: a slot after too many failures"

    def step_cordon(self, worker: Worker, node: Node) -> bool:
        if not node.cordoned_by_us:
            node.cordoned_before, node.cordoned_by_us = node.cordoned, True
        node.cordoned = True
        node.phase = "reboot" if node.boot == node.boot_before else "ready"
        return True

    def step_reboot(self, worker: Worker, node: Node) -> bool:
        if node.boot != node.boot_before:
            return True
        if not node.ready:
            return self.give_up(worker, node, "not Ready before its reboot")
        node.boot += 1
        node.reboots[worker.operation] = node.reboots.get(worker.operation, 0) + 1
        node.phase = "ready"
        return True

    def step_ready(self, worker: Worker, node: Node) -> bool:
        return True if node.ready else self.give_up(worker, node, "did not come back")

    def step_uncordon(self, worker: Worker, node: Node) -> bool:
        self.uncordon(node)
        return True

    def step_release(self, worker: Worker, node: Node) -> bool:
        self.ledger = _ledger.release(self.ledger, node.name)
        return True

    def step_record(self, worker: Worker, node: Node) -> bool:
        # One write: a run that dies between the two would leave a claim on a node that nobody looks at again.
        node.result, node.claim = "rebooted", None
        return True

    def give_up(self, worker: Worker, node: Node, reason: str) -> bool:
        """What the role's failed.yml does."""
        if node.ready:
            self.uncordon(node)
        self.ledger = _ledger.fail(self.ledger, node.member(), worker.operation, reason)
        node.claim = None
        worker.done.add(node.name)
        return False

    def uncordon(self, node: Node) -> None:
        if node.cordoned_by_us:
            node.cordoned = node.cordoned_before
            node.cordoned_by_us = False

    # -- what must hold at every instant

    @invariant()
    def no_node_is_rebooted_twice(self) -> None:
        for node in getattr(self, "nodes", {}).values():
            assert all(times <= 1 for times in node.reboots.values()), f"promise 6: {node.name} {node.reboots}"

    @invariant()
    def what_we_take_down_has_a_slot(self) -> None:
        for node in getattr(self, "nodes", {}).values():
            if node.cordoned_by_us and not node.cordoned_before:
                assert node.name in self.ledger.slots or not node.ready or node.claim is None

    def teardown(self) -> None:
        """However it went: mend all nodes, let one more run do the rest, and look whether all is as it should be."""
        if not hasattr(self, "nodes"):
            return
        for worker in self.workers.values():
            worker.alive = False
        self.now += timedelta(seconds=DEAD_AFTER + 1)
        for node in self.nodes.values():
            self.node_is_mended(node.name)
        for name in self.foreign:
            if not self.nodes[name].cordoned_by_us:
                self.nodes[name].cordoned = False
            self.nodes[name].cordoned_before = False
        self.max_failed = len(NAMES)
        self.start_a_run()
        last = list(self.workers.values())[-1]
        for _round in range(len(NAMES) * len(STEPS) * 2):
            for node in self.nodes.values():
                if last.alive and node.name not in last.done:
                    self.step(last, node)
            self.no_node_is_rebooted_twice()
        for node in self.nodes.values():
            assert not node.cordoned_by_us, f"promise 3: {node.name} is left cordoned"
            assert node.claim is None or node.claim.operation != last.operation, f"{node.name} is left claimed"
        assert not [slot for slot in self.ledger.slots.values() if slot.operation == last.operation]


TestFleet = Fleet.TestCase
TestFleet.settings = settings(max_examples=150, stateful_step_count=50)
