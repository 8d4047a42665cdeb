# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs: the operations of the collection, as the role calls them, one request after the other.

Where a program is, is plain data: the results of the tasks behind it and, in the task that it is in, the answers to its
requests so far. To take a step, the task runs again from its start with these answers, until it asks for more. Each
step is taken once: a program in the same place that gets the same answer comes to the same place again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import count
from types import SimpleNamespace
from typing import Any

from model import api
from model.api import Answer, Request, Stored

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules, watch
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    HoldfastError,
    NotFound,
    TimedOut,
    Unreachable,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Changed, Follower, Listed
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import runs, slots
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain import drain
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import ready
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import begin

START = datetime(2026, 11, 21, tzinfo=timezone.utc)
# Seconds, more than any wait of the role.
_LONG = 10.0**7
Result = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A task that a program has come to.

    Attributes:
        operation: What it does; ``None`` for a wait until all programs of the run are here.
        registers: Whether a later task depends on its result.
    """

    name: str
    operation: Callable[[Context, Mapping[str, Any]], Result] | None
    params: Mapping[str, Any] = field(default_factory=dict)
    registers: bool = True


Tasks = Generator[Call, Result, Any]


@dataclass(frozen=True)
class Program:
    """What a run does with one node, or before and after all of them.

    Attributes:
        key: Tells it from all other programs.
        tasks: Its tasks. They start again and again, and depend on nothing but the results that they are sent.
        number: Of its run. Makes the ids of new operations differ.
    """

    key: str
    tasks: Callable[[], Tasks] = field(compare=False)
    number: int = 0


class Asks(BaseException):
    """A program has come to a request that has no answer yet. No handler for errors may catch this."""


class Recorder:
    """Stands in for the connection to an API server: gives the answers of a record, and asks after them."""

    dry_run = False
    requests = 0

    def __init__(self, log: tuple[Answer, ...], number: int) -> None:
        self._log, self._next = log, 0
        self.number, self.clock = number, 0.0
        self.asked: Request | None = None
        self.last: tuple[Stored, ...] = ()
        self._leases: list[int] = []

    def ask(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        if self._next == len(self._log):
            # What a finally asks for, on the way out, is not asked for.
            self.asked = self.asked or api.request(verb, path, body)
            raise Asks
        answer = self._log[self._next]
        self._next += 1
        if answer is api.NOT_FOUND:
            raise NotFound(f"{verb} {path}: not found", path=path)
        if answer is api.CONFLICT:
            raise ApiFailure(f"{verb} {path}: conflict", status=409, reason="Conflict")
        if answer is api.UNREACHABLE:
            raise Unreachable(f"{verb} {path}: the API server is away")
        return answer

    def now(self) -> datetime:
        """Always the same: time passes by making the Leases of runs older."""
        return START

    def get(self, path: str, **_query: Any) -> Any:
        return self.ask("GET", path).value[0].shown

    def find(self, path: str) -> Any:
        try:
            return self.get(path)
        except NotFound:
            return None

    def items(self, path: str, *, field_selector: str = "", label_selector: str = "") -> list[Any]:
        given = {"field_selector": field_selector, "label_selector": label_selector}
        self.last = self.ask("LIST", path, {key: value for key, value in given.items() if value}).value
        if path.endswith("/namespaces/holdfast/leases"):
            self._leases = [item.number for item in self.last]
        return [item.shown for item in self.last]

    def rows(self, path: str, *, label_selector: str = "", limit: int = 0) -> list[dict[str, str]]:
        """The table of the Nodes."""
        given = {"label_selector": label_selector, "limit": limit, "as": "table"}
        found = self.ask("LIST", path, {key: value for key, value in given.items() if value}).value
        return [_row(item.shown) for item in found]

    def create(self, path: str, body: Any, **_how: Any) -> Any:
        return self.ask("POST", path, body).value[0].shown

    def replace(self, path: str, body: Any) -> Any:
        return self.ask("PUT", path, body).value[0].shown

    def merge(self, path: str, body: Any, **_how: Any) -> Any:
        return self.ask("PATCH", path, body).value[0].shown

    def merge_conditions(self, path: str, metadata: Any, conditions: Any) -> Any:
        return (
            self.ask("PATCH", path, {"metadata": metadata, "status": {"conditions": list(conditions)}}).value[0].shown
        )

    def delete(self, path: str, options: Any = None, **_how: Any) -> None:
        self.ask("DELETE", path, options)

    def news(self, path: str, selectors: Mapping[str, str], known: dict[str, Stored], left: float) -> list[Changed]:
        """Wait for a change, or for the deadline."""
        body = {"known": {name: item.number for name, item in known.items()}, "left": left, "leases": self._leases}
        answer = self.ask("WATCH", path, {**selectors, **body})
        if answer in (api.TIME_IS_UP, api.LONG_AFTER):
            # A little more: the sum of such times must not fall short of the deadline.
            self.clock += left + 0.001 if answer is api.TIME_IS_UP else _LONG
            return []
        kind, item = answer.value
        known.pop(item.path, None)
        if kind != "DELETED":
            known[item.path] = item
        return [Changed(kind, item.shown)]


def _row(node: Any) -> dict[str, str]:
    status = "Ready" if node.get("status") and node_rules.ready(node) else "NotReady"
    cordoned = ",SchedulingDisabled" if node_rules.unschedulable(node) else ""
    return {"Name": node_rules.name(node), "Status": status + cordoned}


_current: list[Recorder] = []


def _follow(self: Any) -> Iterator[Listed | Changed]:
    """What a Follower does, without a clock of its own."""
    cluster, deadline, keep = self._cluster, self._deadline, self._keep
    selectors = {"field_selector": self._field_selector, "label_selector": self._label_selector}
    items = cluster.items(self._path, **selectors)
    known = {item.path: item for item in cluster.last}
    yield Listed([keep(item) for item in items])
    while not deadline.passed:
        for item in cluster.news(self._path, selectors, known, deadline.left):
            yield Changed(item.kind, keep(item.object))


def _deadline(self: Any, seconds: float | None, started: float | None = None) -> None:
    self.seconds, self.started = seconds, _current[-1].clock if started is None else started


@contextmanager
def _heartbeat(cluster: Any, run: str, holder: str = "") -> Iterator[None]:
    """Later renewals are events of the fleet."""
    if run:
        runs.renew(cluster, run, holder)
    yield


def _evict(self: Any) -> Result:
    """In place of the threads that follow pods and budgets: all pods leave at once, or some never do."""
    if self._cluster.ask("DRAIN", self._name) is not api.OK:
        raise TimedOut(f"Node {self._name} was not drained.", blocked=[], evicted=[])
    return {"evicted": [], "left": [], "requests": 0, "duration": 0.0}


_TIME = SimpleNamespace(monotonic=lambda: _current[-1].clock, sleep=lambda _seconds: None)
_NOW = SimpleNamespace(now=lambda _zone: START + timedelta(seconds=_current[-1].number))
# What works with threads, or with a clock of its own.
_REPLACED: list[tuple[Any, str, Any]] = [
    (Follower, "__iter__", _follow),
    (watch.Deadline, "__init__", _deadline),
    (runs, "heartbeat", _heartbeat),
    (drain._DrainRun, "run", _evict),
    *((module, "time", _TIME) for module in (watch, runs, slots, ready, drain)),
    (begin, "datetime", _NOW),
]


@contextmanager
def _in_the_model(recorder: Recorder) -> Iterator[None]:
    before = [(owner, name, getattr(owner, name)) for owner, name, _new in _REPLACED]
    _current.append(recorder)
    try:
        for owner, name, new in _REPLACED:
            setattr(owner, name, new)
        yield
    finally:
        _current.pop()
        for owner, name, old in before:
            setattr(owner, name, old)


def _run(call: Call, log: tuple[Answer, ...], number: int) -> tuple[Request | None, Result]:
    """The task up to its next request, or its result."""
    recorder = Recorder(log, number)
    context = Context(call.params)
    context.__dict__.update(cluster=recorder, management=recorder)
    with _in_the_model(recorder):
        try:
            if call.operation is None:
                recorder.ask("BARRIER", "")
                return None, {}
            result = call.operation(context, call.params)
        except Asks:
            return recorder.asked, {}
        except HoldfastError as error:
            result = error.as_result()
    if not (call.registers or result.get("failed")):
        return None, {}
    return None, {key: value for key, value in result.items() if key != "diff"}


@dataclass(eq=False)
class Place:
    """Where a program is: before a request, or at its end.

    Attributes:
        call: The task that it is in; ``None`` at its end.
        asked: The request.
        value: What came out, at its end.
        remembered: The versions of objects that it has seen in this task.
    """

    program: Program
    results: tuple[Result, ...]
    log: tuple[Answer, ...]
    call: Call | None
    asked: Request | None
    value: Any
    number: int
    remembered: frozenset[tuple[str, int]] = frozenset()
    _next: dict[Answer, Place] = field(default_factory=dict)

    def after(self, answer: Answer) -> Place:
        if answer not in self._next:
            self._next[answer] = _place(self.program, self.results, (*self.log, answer), self.call)
        return self._next[answer]


_places: dict[Any, Place] = {}
_calls: dict[Any, tuple[Call | None, Any]] = {}
_numbers = count()


def forget() -> None:
    """Forget all steps. Needed where the rules have changed."""
    _places.clear()
    _calls.clear()


def begin_of(program: Program) -> Place:
    return _place(program, (), (), None)


def _place(program: Program, results: tuple[Result, ...], log: tuple[Answer, ...], call: Call | None) -> Place:
    while True:
        done = json.dumps(results, sort_keys=True, default=str)
        call, value = (call, None) if call else _come_to(program, results, done)
        asked, result = _run(call, log, program.number) if call else (None, {})
        if call is None or asked is not None:
            break
        results, log, call = (*results, result), (), None
    key = (program.key, done, log)
    if key not in _places:
        seen = [item for answer in log for item in answer.value if isinstance(item, Stored)]
        remembered = frozenset((item.path, item.version) for item in seen)
        _places[key] = Place(program, results, log, call, asked, value, next(_numbers), remembered)
    return _places[key]


def _come_to(program: Program, results: tuple[Result, ...], done: str) -> tuple[Call | None, Any]:
    """The task after these results, or what came out."""
    key = (program.key, done)
    if key not in _calls:
        tasks = program.tasks()
        try:
            call = next(tasks)
            for result in results:
                call = tasks.send(result)
            _calls[key] = call, None
        except StopIteration as end:
            _calls[key] = None, end.value
    return _calls[key]
