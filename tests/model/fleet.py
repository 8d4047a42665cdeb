# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet: runs of the role over some nodes in a world, and everything that may happen to either.

Every event consists of plain values, so a history is a list of them and can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from model.acts import READS, WAITS, Act, Outcome
from model.judge import Judge
from model.role import NEXT_PASS, OWNER, Host, Play, Program, work

# What a step may meet besides the rules: a node that takes long, a drain or a check that fails.
FATES = ("well", "slow", "bad")


class World(Protocol):
    """The world that carries out acts."""

    def perform(self, act: Act) -> Outcome: ...
    def picture(self) -> dict[str, Any]: ...
    def runs(self) -> list[str]: ...
    def pass_time(self, seconds: float) -> None: ...
    def beat(self, run: str) -> None: ...
    def report(self, name: str, *, ready: bool, boot_id: str = "") -> None: ...
    def hold(self, name: str, *, held: bool) -> None: ...
    def exclude(self, name: str, *, excluded: bool) -> None: ...
    def person_cordons(self, name: str, *, cordoned: bool, keep: bool) -> None: ...
    def doctor(self, release: list[str]) -> list[str]: ...


@dataclass
class Worker:
    """One ansible-playbook: a program for each of its nodes, and the next act of each."""

    play: Play
    operation: str = ""
    paused: bool = False
    ended: bool = False
    hosts: dict[str, Host] = field(default_factory=dict)
    programs: dict[str, Program] = field(default_factory=dict)
    next: dict[str, Act] = field(default_factory=dict)

    def todo(self) -> list[str]:
        """Names of the nodes with which it can continue; the empty name for the run itself."""
        if self.ended:
            return []
        if not self.operation:
            return [""]
        ready = [name for name, act in self.next.items() if act is not NEXT_PASS]
        return ready or list(self.next) or [""]

    def results(self) -> dict[str, str]:
        return {name: host.result for name, host in self.hosts.items()}


class Fleet:
    """Runs, nodes and people, in one world."""

    def __init__(self, world: World, nodes: list[str], prefix: str = "", *, brief: bool = False) -> None:
        self.world = world
        self.nodes = nodes
        self.prefix = prefix
        # Where acts take long: at the end each run works as far as it can, and soon stops waiting.
        self.brief = brief
        self.workers: dict[str, Worker] = {}
        self.judge = Judge()
        self.judge.begin(world.picture())
        self.boots = dict.fromkeys(nodes, 1)
        # Nodes that came back by themselves: the run that works on one finds it rebooted by someone else.
        self.astray: set[str] = set()
        self.history: list[str] = []

    def alive(self) -> list[Worker]:
        return [worker for worker in self.workers.values() if not worker.ended]

    def tell(self, text: str) -> None:
        self.history.append(text)

    # -- runs

    def start(self, **options: Any) -> Worker:
        run = f"{self.prefix}run-{len(self.workers) + 1}"
        worker = Worker(Play(run=run, **options))
        self.workers[run] = worker
        self.tell(f"{worker.play} starts")
        return worker

    def step(self, worker: Worker, name: str, *, patient: bool = True, fate: str = "well") -> bool:
        """Carry out one act of a run; return whether it had an effect."""
        act = self._act(worker, name)
        if act is NEXT_PASS:
            # All the others are here.
            for node in [node for node, item in worker.next.items() if item is NEXT_PASS]:
                self._go_on(worker, node, Outcome())
            return True
        before = self.judge.last
        outcome = self.world.perform(act)
        if act.name in ("drain", "check") and fate == "bad" and not outcome.error:
            outcome = Outcome("timed_out")
        waits = act.name in WAITS and outcome.error == "timed_out" and (patient or act.name == "end")
        if not waits:
            self.tell(f"{act} -> {outcome.error or 'ok'}{'' if fate == 'well' else ', ' + fate}")
        went = act.name == "reboot" and not outcome.error and not outcome.facts["held"]
        if act.name not in READS:
            self.judge.see(self.world.picture(), act=act)
        self.judge.act(worker.play, worker.operation, act, outcome, before)
        if went:
            self._sent(act.node, fate)
        if waits:
            return False
        if act.name == "back" and outcome.error:
            # A run that gives up has waited longer than the API server takes to notice.
            self._notice()
        self._go_on(worker, name, outcome)
        return True

    def _act(self, worker: Worker, name: str) -> Act:
        if name:
            return worker.next[name]
        play = worker.play
        if not worker.operation:
            options = {"operation": play.operation, "fresh": f"operation-{play.run}", "restart": play.restart}
            return Act("begin", "", {"run": play.run, "nodes": self.nodes, **options})
        left = any(result in ("failed", "stopped", "lost") for result in worker.results().values())
        return Act("end", "", {"run": play.run, "operation": worker.operation, "complete": not left})

    def _go_on(self, worker: Worker, name: str, outcome: Outcome) -> None:
        if name:
            try:
                worker.next[name] = worker.programs[name].send(outcome)
            except StopIteration:
                del worker.next[name]
        elif worker.operation:
            worker.ended = True
        else:
            worker.operation = outcome.facts["operation"]
            for node in self.nodes:
                worker.hosts[node] = Host(worker.play, worker.operation, node)
                worker.programs[node] = work(worker.hosts[node])
                worker.next[node] = next(worker.programs[node])

    def _sent(self, name: str, fate: str) -> None:
        """The node goes down; it is back at once, or later, or someone must repair it."""
        self.judge.down.add(name)
        if fate == "well":
            self.comes_back(name)
        elif fate == "bad":
            self.fails(name)

    def kill(self, worker: Worker) -> None:
        self.tell(f"{worker.play.run} is killed")
        worker.ended = True

    def pause(self, worker: Worker) -> None:
        worker.paused = not worker.paused
        self.tell(f"{worker.play.run} {'is paused' if worker.paused else 'wakes'}")
        self._beat()
        self._look()

    def pass_time(self, seconds: float) -> None:
        self.tell(f"{seconds} s pass")
        self.world.pass_time(seconds)
        self._beat()
        # The API server sees that a node is down before any run counts as dead.
        self._notice()

    def _notice(self) -> None:
        for name in sorted(self.judge.down):
            self.world.report(name, ready=False)
        self._look()

    def _beat(self) -> None:
        for worker in self.alive():
            if not worker.paused:
                self.world.beat(worker.play.run)

    # -- nodes and people

    def fails(self, name: str) -> None:
        self.tell(f"{name} fails")
        self.world.report(name, ready=False)
        self._look()

    def is_ready_again(self, name: str) -> None:
        """It was not Ready for a while, and has not been rebooted."""
        if name not in self.judge.down:
            self.tell(f"{name} is Ready again")
            self.world.report(name, ready=True)
            self._look()

    def comes_back(self, name: str) -> None:
        """With a new boot ID: by itself, or repaired."""
        if name not in self.judge.down:
            self.astray.add(name)
        self.boots[name] += 1
        self.tell(f"{name} comes back, boot {self.boots[name]}")
        self.world.report(name, ready=True, boot_id=f"{name}-{self.boots[name]}")
        self.judge.down.discard(name)
        self._look()

    def hold(self, name: str, *, held: bool) -> None:
        self.tell(f"{name} is {'held' if held else 'free'}")
        self.world.hold(name, held=held)
        self._look()

    def exclude(self, name: str, *, excluded: bool) -> None:
        self.tell(f"{name} is {'excluded' if excluded else 'included'}")
        self.world.exclude(name, excluded=excluded)
        self._look()

    def person_cordons(self, name: str, *, cordoned: bool) -> None:
        """On a node that we have cordoned, a person must say that the node is to stay cordoned."""
        keep = cordoned and self.judge.last["nodes"][name]["cordon"] is not None
        self.tell(f"a person {'cordons' if cordoned else 'uncordons'} {name}{', to be kept' if keep else ''}")
        self.world.person_cordons(name, cordoned=cordoned, keep=keep)
        (self.judge.cordoned.add if cordoned else self.judge.cordoned.discard)(name)
        self._look()

    def doctor(self, release: list[str]) -> None:
        found = self.world.doctor(release)
        self.tell(f"the doctor, told to release {release}, clears {found}")
        self._look(cleared=True)

    def _look(self, *, cleared: bool = False) -> None:
        self.judge.see(self.world.picture(), cleared=cleared)

    # -- the end

    def finish(self, rounds: int = 400) -> None:
        """Every live run works until nothing is left to do; a run that waits in vain gives up in the end."""
        for worker in self.alive():
            if worker.paused:
                self.pause(worker)
        idle = 0
        for _round in range(rounds):
            busy = [(worker, name) for worker in self.alive() for name in worker.todo()]
            if not busy:
                break
            patient = idle < (1 if self.brief else 6)
            went_on = [self._go_on_with(worker, name, patient) for worker, name in busy]
            idle = 0 if any(went_on) else idle + 1
            if idle:
                self.pass_time(35)
                self._mend()
        left = {worker.play.run: [str(act) for act in worker.next.values()] for worker in self.alive()}
        assert not left, f"these runs never end: {left}"
        for worker in self.workers.values():
            if worker.operation and not worker.next:
                assert all(worker.results().values()), f"not named: {worker.results()}"

    def _go_on_with(self, worker: Worker, name: str, patient: bool) -> bool:
        went_on = False
        while name in worker.todo() and self.step(worker, name, patient=patient):
            went_on = True
            if not self.brief:
                break
        return went_on

    def _mend(self) -> None:
        """A repair includes a reboot; a node that failed counts as repaired only then."""
        for name, node in self.judge.last["nodes"].items():
            failed = (node["slot"] or {}).get("state") == "failed"
            if name in self.judge.down or failed or not node["ready"]:
                self.comes_back(name)

    def calm(self) -> None:
        """Holders and people release the nodes, and what is broken is repaired."""
        for name, node in self.judge.last["nodes"].items():
            if node["held"]:
                self.hold(name, held=False)
            if node["excluded"]:
                self.exclude(name, excluded=False)
        self._mend()

    def last_run(self) -> Worker:
        """One more run, the only live one, does the rest. It starts over where it must."""
        for worker in self.alive():
            self.kill(worker)
        self._mend()
        self.pass_time(175)
        ledger = self.judge.last["ledger"]
        open_ones = [name for name, entry in ledger["operations"].items() if entry["runs"] or entry["unfinished"]]
        marks = [mark for node in self.judge.last["nodes"].values() for mark in (node["slot"], node["claim"]) if mark]
        others = {mark["operation"] for mark in marks} - set(open_ones[-1:])
        policy = ledger["policy"] if ledger["slots"] else {"max_unavailable": "1"}
        options = {"max_failed": len(self.nodes), "count_others": False}
        worker = self.start(policy=policy, restart=bool(others), **options)
        self.finish()
        return worker

    def end(self) -> None:
        """Whatever happened: live runs end, and one more run leaves everything as it should be."""
        self.calm()
        self.finish()
        worker = self.last_run()
        failed = {name for name, result in worker.results().items() if result == "failed"}
        if failed and failed <= self.astray:
            worker = self.last_run()
        self._judge_the_end(worker)

    def _judge_the_end(self, worker: Worker) -> None:
        """What must hold after an undisturbed run."""
        picture = self.world.picture()
        assert set(worker.results().values()) <= {"rebooted", "skipped"}, f"promise 6: {worker.results()}"
        for name, node in picture["nodes"].items():
            record = node["record"]
            assert (record["id"], record["result"]) == (worker.operation, "rebooted"), f"promise 6: {name} {record}"
            assert not node["claim"], f"{name} is left claimed: {node['claim']}"
            assert not node["cordon"], f"promise 3: {name} is left cordoned by {OWNER}"
            assert node["unschedulable"] == (name in self.judge.cordoned), f"promise 3: {name} {node}"
        assert not picture["ledger"]["slots"], f"slots are left: {picture['ledger']['slots']}"
        assert worker.play.run not in self.world.runs(), "the run's Lease is left"
