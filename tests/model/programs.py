# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs: the operations of the collection, as the role calls them, one request after the other.

Where a program is, is plain data: the results of the tasks behind it and, in the task that it is in, the answers to its
requests so far. To take a step, the task runs again from its start with these answers, until it asks for more. Each
step is taken once: a program in the same place that gets the same answer comes to the same place again.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from itertools import count
from types import FrameType, SimpleNamespace
from typing import Any

from model import api
from model.api import Answer, Request, Stored
from model.continuation import Form, constant

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules, paths, watch
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import taint
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import command, last_look
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.command import CommandResult
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import begin as guard_begin
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import finish as guard_finish
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import journey
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import ready
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import begin

START = datetime(2026, 11, 21, tzinfo=timezone.utc)
# Of the user's files. They need not exist.
FOLDER = "/srv"
# Seconds, more than any wait of the role.
_LONG = 10.0**7
# Seconds that a pause takes.
_PAUSE = 100.0
Result = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A task that a program has come to.

    Attributes:
        operation: What it does; ``None`` for a wait until all programs of the run are here.
        registers: Whether a later task depends on its result.
        check_mode: Whether it changes nothing.
    """

    name: str
    operation: Callable[[Context, Mapping[str, Any]], Result] | None
    params: Mapping[str, Any] = field(default_factory=dict)
    registers: bool = True
    check_mode: bool = False


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

    requests = received = 0

    def __init__(self, log: tuple[Answer, ...], number: int, until: FrameType, *, dry_run: bool = False) -> None:
        self._log, self._next, self._until, self.dry_run = log, 0, until, dry_run
        self.number, self.clock = number, 0.0
        self.asked: Request | None = None
        self.form = Form()
        self.last: tuple[Stored, ...] = ()
        self.read_last: tuple[Stored, ...] = ()
        self.followed: list[dict[str, Stored]] = []
        self._leases: list[int] = []

    @property
    def form_parts(self) -> Any:
        """What of it a program can still use."""
        followed = [[item.number for item in known.values()] for known in self.followed]
        return self.number, self.clock, self._leases, followed

    def ask(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        while self._log[self._next : self._next + 1] == (api.PAUSED,):
            self._next, self.clock = self._next + 1, self.clock + _PAUSE
        if self._next == len(self._log):
            # What a finally asks for, on the way out, is not asked for.
            if self.asked is None:
                self.asked = api.request(verb, path, body)
                if not api.versions_grow:
                    self.form.of_frames(sys._getframe(1), self._until)
            raise Asks
        answer = self._log[self._next]
        self._next += 1
        if answer is api.NOT_FOUND:
            raise NotFound(f"{verb} {path}: not found", path=path)
        if answer is api.CONFLICT:
            raise ApiFailure(f"{verb} {path}: conflict", status=409, reason="Conflict")
        if answer is api.UNREACHABLE:
            raise Unreachable(f"{verb} {path}: the API server is unavailable")
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
        if path == paths.NODES and not field_selector and not label_selector.startswith("node-role"):
            self.read_last = self.last
        if path.endswith("/namespaces/holdfast/leases"):
            self._leases = [item.number for item in self.last]
        return [item.shown for item in self.last]

    def pages(self, path: str, **selectors: Any) -> list[dict[str, Any]]:
        """All of a collection is on one page."""
        return [{"items": self.items(path), "metadata": {}}]

    def rows(self, path: str, *, label_selector: str = "", limit: int = 0) -> list[dict[str, str]]:
        """The table of the Nodes."""
        given = {"label_selector": label_selector, "limit": limit, "as": "table"}
        found = self.ask("LIST", path, {key: value for key, value in given.items() if value}).value
        self.read_last = self.read_last if limit else found
        return [_row(item.shown) for item in found]

    def create(self, path: str, body: Any, **_how: Any) -> Any:
        return self.ask("POST", path, body).value[0].shown

    def replace(self, path: str, body: Any) -> Any:
        answer = self.ask("PUT", path, body)
        # The decision over the signs of life of the runs is made.
        self._leases = []
        return answer.value[0].shown

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
        self._leases = []
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
    cluster.followed.append(known)
    try:
        yield Listed([keep(item) for item in items])
        while not deadline.passed:
            for item in cluster.news(self._path, selectors, known, deadline.left):
                yield Changed(item.kind, keep(item.object))
    finally:
        cluster.followed.remove(known)


def _deadline(self: Any, seconds: float | None, started: float | None = None) -> None:
    self.seconds, self.started = seconds, _current[-1].clock if started is None else started


@contextmanager
def _heartbeat(cluster: Any, run: str, holder: str = "", *, required: bool = True) -> Iterator[None]:
    """Later renewals are events of the fleet."""
    try:
        if run and not cluster.dry_run:
            runs.renew(cluster, run, holder)
    except HoldfastError:
        if required:
            raise
    yield


def _evict(self: Any) -> Result:
    """In place of the threads that follow pods and budgets: all pods leave at once, or some never do."""
    if self._cluster.ask("DRAIN", self._name) is not api.OK:
        raise TimedOut(f"Node {self._name} was not drained.", blocked=[], evicted=[])
    return {"evicted": [], "left": [], "requests": 0, "duration": 0.0}


def _command(argv: list[str], environment: Mapping[str, str], _seconds: float, *, stdin: str = "") -> CommandResult:
    """A command of the user: its last word says whether it switches a machine, or tells its state."""
    said = _current[-1].ask("POWER", environment["HOLDFAST_NODE"], {"wanted": argv[-1]}).kind
    return CommandResult(0 if said in ("on", "off") else 1, said)


def _sleep(seconds: float) -> None:
    _current[-1].clock += seconds


def _replace(item: Any, **changes: Any) -> Any:
    """What dataclasses.replace does. The clusters of a context stay."""
    found = replace(item, **changes)
    if isinstance(item, Context):
        found.__dict__.update(cluster=item.cluster, management=item.management)
    return found


def _clock() -> float:
    return _current[-1].clock


_TIME = SimpleNamespace(monotonic=_clock, time=_clock, sleep=lambda _seconds: None)
_NOW = SimpleNamespace(now=lambda _zone: START + timedelta(seconds=_current[-1].number))
# What works with threads, or with a clock of its own.
_REPLACED: list[tuple[Any, str, Any]] = [
    (Follower, "__iter__", _follow),
    (watch.Deadline, "__init__", _deadline),
    (runs, "heartbeat", _heartbeat),
    (drain._DrainRun, "run", _evict),
    *((module, "time", _TIME) for module in (watch, runs, slots, ready, drain, guard_begin, journey)),
    (guard_begin, "random", SimpleNamespace(randrange=lambda _below: 0)),
    (guard_finish, "replace", _replace),
    (begin, "datetime", _NOW),
    (taint, "time", SimpleNamespace(sleep=_sleep)),
    (last_look, "steady", _clock),
    (command, "run", _command),
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


def _run(call: Call, log: tuple[Answer, ...], number: int) -> tuple[Recorder, Result]:
    """The task up to its next request, or its result."""
    recorder = Recorder(log, number, sys._getframe(), dry_run=call.check_mode)
    context = Context(call.params, call.check_mode)
    context.__dict__.update(cluster=recorder, management=recorder)
    with _in_the_model(recorder):
        try:
            if call.operation is None:
                recorder.ask("BARRIER", "")
                return recorder, {}
            result = call.operation(context, call.params)
        except Asks:
            return recorder, {}
        except HoldfastError as error:
            result = error.as_result()
    if not (call.registers or result.get("failed")):
        return recorder, {}
    return recorder, {key: value for key, value in result.items() if key != "diff"}


@dataclass(frozen=True)
class History:
    """One way to a place: the results of the tasks before, also as text, and the answers in the task that it is in."""

    results: tuple[Result, ...] = ()
    done: str = "[]"
    log: tuple[Answer, ...] = ()
    call: Call | None = None


@dataclass(eq=False)
class Place:
    """Where a program is: before a request, or at its end.

    Attributes:
        history: How it came here. What comes after does not depend on it, see :mod:`model.continuation`.
        asked: The request.
        value: The result, at its end.
        read: The nodes that it read last. That is the same in all histories where it writes to the ledger.
        came: The place before it, and the answer that led here; empty at the start.
    """

    program: Program
    history: History
    asked: Request | None
    value: Any
    number: int
    read: tuple[Stored, ...] = ()
    came: Came = ()
    _next: dict[Answer | str, Place] = field(default_factory=dict)
    _other: History | None = None

    @property
    def call(self) -> Call | None:
        """The task that it is in; ``None`` at its end."""
        return self.history.call

    def after(self, answer: Answer) -> Place:
        """The place after an answer."""
        return self._then(answer)

    def aged(self, path: str) -> Place:
        """The same place, after someone has written an object."""
        return self if api.versions_grow else self._then(path)

    def _then(self, what: Answer | str) -> Place:
        if what not in self._next:
            self._next[what] = _after(self, self.history, what)
            self._check(what)
        return self._next[what]

    def also_by(self, history: History) -> None:
        """Another way here."""
        if not api.versions_grow and self._other is None and history != self.history:
            self._other = history
            for what in list(self._next):
                self._check(what)

    def _check(self, what: Answer | str) -> None:
        """What follows is the same by both ways."""
        if self._other is not None and (found := _after(self, self._other, what)) is not self._next[what]:
            raise AssertionError(
                f"Two histories of {self.call and self.call.name!r} were taken for the same at {self.asked}, and are "
                f"not: {self._next[what].asked} and {found.asked} follow on {str(what)[:200]}."
            )


Came = tuple[Place, Answer] | tuple[()]
_places: dict[Any, Place] = {}
_calls: dict[Any, tuple[Call | None, Any, str]] = {}
_numbers = count()


def forget() -> None:
    """Forget all steps."""
    _places.clear()
    _calls.clear()


def first_place(program: Program) -> Place:
    return _place(program, History())


def _after(place: Place, history: History, what: Answer | str) -> Place:
    if isinstance(what, Answer):
        return _place(place.program, replace(history, log=(*history.log, what)), (place, what))
    log = tuple(api.with_older(answer, what) for answer in history.log)
    if log == history.log:
        return place
    # It comes from the place before, which is older, too. That is the same place if it no longer uses the object.
    came: Came = (place.came[0].aged(what), api.with_older(place.came[1], what)) if place.came else ()
    return _place(place.program, replace(history, log=log), came)


def _place(program: Program, history: History, came: Came = ()) -> Place:
    while True:
        call, value, form = _come_to(program, history)
        recorder, result = _run(call, history.log, program.number) if call else (None, {})
        if recorder is None or recorder.asked is not None:
            break
        results = (*history.results, result)
        history = History(results, json.dumps(results, sort_keys=True, default=str))
    history = replace(history, call=call)
    if api.versions_grow:
        key: Any = (program.key, history.done, history.log)
    elif recorder is None:
        key = (program.key, form)
    else:
        # Where values are not visible, the place before counts as well. The promises speak of what was read last.
        before = (came[0].number, came[1]) if came else ()
        more = before if recorder.form.incomplete else recorder.read_last if recorder.asked.verb == "PUT" else ()
        key = (program.key, form, recorder.asked, _digest(recorder.form), more)
    if key in _places:
        _places[key].also_by(history)
    else:
        asked, read = (recorder.asked, recorder.read_last) if recorder else (None, ())
        _places[key] = Place(program, history, asked, value, next(_numbers), read, came)
    return _places[key]


def _digest(form: Any) -> str:
    return hashlib.blake2b(str(form).encode(), digest_size=16).hexdigest()


def _come_to(program: Program, history: History) -> tuple[Call | None, Any, str]:
    """The task after some results, or the result, and the form of what follows."""
    key = (program.key, history.done)
    if key not in _calls:
        tasks, form = program.tasks(), Form()
        try:
            call = next(tasks)
            for result in history.results:
                call = tasks.send(result)
            constant(call.params, _digest(json.dumps(call.params, sort_keys=True, default=str)))
            form.of_generator(tasks)
            form.of(call.name)
            _calls[key] = call, None, _digest(form)
        except StopIteration as end:
            form.of(end.value)
            _calls[key] = None, end.value, _digest(form)
    return _calls[key]
