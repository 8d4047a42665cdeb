# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a watch to events, where the API is unavailable, refuses, or has changed since."""

from __future__ import annotations

import queue
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Changed, Listed
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events import source as source_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.log_rules import Condition, EventLog
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.source import EventSource, Later

# Long enough for a busy machine; a test that gets there has failed.
PATIENCE = 600


class Server:
    """Objects by path, each a list of the conditions it has; and a watch that is fed by the test."""

    def __init__(self):
        self.objects = {}
        self.watch = queue.Queue()
        self.asked = queue.Queue()
        self.refusals = []

    def get(self, path):
        self.asked.put(path)
        if self.refusals:
            raise self.refusals.pop(0)
        if path not in self.objects:
            raise NotFound(f"{path}: gone")
        return {"path": path, "conditions": self.objects[path]}

    def now(self):
        return datetime.now(timezone.utc)

    def lists(self):
        self.watch.put(Listed(list(self.objects.items())))

    def changes(self, path, *keys, kind="MODIFIED", known=True):
        """What the watch says; where it is behind, not what is so."""
        conditions = [Condition(key) for key in keys]
        if known:
            self.objects[path] = conditions
        self.watch.put(Changed(kind, (path, conditions)))


class Subject:
    def __init__(self, server):
        self.server = server
        self.later = []
        self.failures = []
        self.kept = set()

    def cluster(self):
        return self.server

    def collection(self):
        if self.failures:
            raise self.failures.pop(0)
        return "/things"

    def selectors(self):
        return {"label_selector": "a=b"}

    def path(self, item):
        return item["path"]

    def conditions(self, item):
        return item["conditions"]

    def event(self, item, condition, now):
        if self.later:
            raise Later(now + timedelta(seconds=self.later.pop()))
        self.kept.add(item["path"])
        return {"thing": item["path"]}

    def forget(self, is_gone):
        self.kept = {path for path in self.kept if not is_gone(path)}


class Following:
    """In the Follower's place."""

    def __init__(self, server, _path, _deadline, *, keep, label_selector):
        assert label_selector == "a=b"
        assert keep({"path": "p", "conditions": []}) == ("p", [])
        self._watch = server.watch

    def stop(self):
        self._watch.put(None)

    def __iter__(self):
        while news := self._watch.get(timeout=PATIENCE):
            if isinstance(news, Exception):
                raise news
            yield news


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def source(server):
    return Subject(server)


class Telling:
    """A source at work; ``next`` is the next event."""

    def __init__(self, source, *, after=0, repeat=0):
        self.events = queue.Queue()
        self.failure = None
        self.source = EventSource(source, EventLog(after=after, repeat=repeat), self.events.put)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        try:
            self.source.run()
        except Exception as error:  # noqa: BLE001 - each test says which one it expects
            self.failure = error

    def next(self):
        return self.events.get(timeout=PATIENCE)

    def ended(self):
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        return self.failure

    def stop(self):
        self.source.stop()
        assert self.ended() is None


@pytest.fixture
def send(source, monkeypatch):
    monkeypatch.setattr(source_module, "Follower", Following)
    monkeypatch.setattr(source_module, "_AGAIN", 0.01)
    started = []

    def start(**settings):
        started.append(Telling(source, **settings))
        return started[-1]

    yield start
    for one in started:
        one.source.stop()
        one.ended()


def test_sends_what_is_listed_and_what_changes(server, send):
    server.objects = {"/things/a": [Condition("k")], "/things/b": []}
    server.lists()
    sending = send()

    assert sending.next() == {"key": "k", "told": 0, "thing": "/things/a"}
    server.changes("/things/b", "l")
    assert sending.next() == {"key": "l", "told": 0, "thing": "/things/b"}


def test_sends_once_whatever_the_watch_repeats(server, send):
    server.objects = {"/things/a": [Condition("k")]}
    server.lists()
    sending = send()
    sending.next()
    for _time in range(3):
        server.changes("/things/a", "k")
        server.lists()
    server.changes("/things/z", "marker")

    assert sending.next()["key"] == "marker"


def test_sends_nothing_that_is_not_so_any_more(server, send):
    """The watch may be behind, above all where the API was unavailable."""
    server.objects = {"/things/a": [], "/things/z": [Condition("marker")]}
    sending = send()
    server.changes("/things/a", "k", known=False)
    server.changes("/things/gone", "k", known=False)
    server.changes("/things/z", "marker")

    assert sending.next()["key"] == "marker"
    assert {server.asked.get_nowait() for _time in range(2)} == {"/things/a", "/things/gone"}


def test_objects_that_are_gone_are_forgotten(server, send):
    server.objects = {"/things/a": [Condition("k")]}
    server.lists()
    sending = send()
    sending.next()
    server.changes("/things/a", kind="DELETED")
    server.changes("/things/a", "k", kind="ADDED")

    assert sending.next() == {"key": "k", "told": 0, "thing": "/things/a"}


@pytest.mark.parametrize("how", ["deleted", "not listed", "not found"])
def test_a_source_forgets_objects_that_are_gone(server, source, send, how):
    server.objects = {"/things/a": [Condition("k")], "/things/b": [Condition("l")]}
    server.lists()
    sending = send()
    for _time in range(2):
        sending.next()
    del server.objects["/things/a"]
    if how == "deleted":
        server.changes("/things/a", kind="DELETED", known=False)
    elif how == "not listed":
        server.lists()
    else:
        server.changes("/things/a", "another", known=False)
    server.changes("/things/z", "marker")

    assert sending.next()["key"] == "marker"
    assert source.kept == {"/things/b", "/things/z"}


@pytest.mark.parametrize("refusal", [Unreachable("away"), ApiFailure("busy", status=503)])
def test_asks_again_while_the_api_is_away(server, source, send, refusal):
    source.failures = [refusal]
    server.refusals = [refusal, refusal]
    server.objects = {"/things/a": [Condition("k")]}
    server.lists()

    assert send().next()["key"] == "k"


@pytest.mark.parametrize("where", ["collection", "look", "watch"])
def test_ends_with_what_will_not_pass(server, source, send, where):
    refusal = ApiFailure("forbidden", status=403)
    server.objects = {"/things/a": [Condition("k")]}
    server.lists()
    if where == "collection":
        source.failures = [refusal]
    elif where == "look":
        server.refusals = [refusal]
    else:
        server.watch.put(refusal)

    assert send().ended() is refusal


def test_an_answer_that_can_not_be_read_ends_it_with_an_error(server, send):
    """ansible-rulebook takes a source that ends without an error for one that was stopped."""
    server.watch.put(KeyError("metadata"))

    assert isinstance(send().ended(), KeyError)


def test_a_postponed_object_is_checked_again(server, source, send):
    source.later = [0.05]
    server.objects = {"/things/a": [Condition("k")]}
    server.lists()

    assert send().next()["key"] == "k"
    assert source.later == []
    assert server.asked.qsize() == 2


@pytest.mark.parametrize("seconds", [-3600, 0])
def test_an_object_that_is_postponed_to_the_past_is_not_requested_without_a_pause(
    server, source, send, monkeypatch, seconds
):
    monkeypatch.setattr(source_module, "_AGAIN", PATIENCE)
    source.later = [seconds] * 1000
    server.objects = {"/things/a": [Condition("k")]}
    sending = send()
    server.lists()
    server.asked.get(timeout=PATIENCE)
    # The object is postponed a moment after the request.
    deadline = time.monotonic() + PATIENCE
    while len(source.later) == 1000:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for _time in range(3):
        server.lists()
    source.later = []
    server.changes("/things/z", "marker")

    assert sending.next()["key"] == "marker"
    assert server.asked.get_nowait() == "/things/z"


def test_text_of_users_is_not_evaluated_as_a_template(server, source, send):
    source.event = lambda item, _matter, _now: {"hold": {"reason": "{{ lookup('pipe', 'id') }}"}}
    server.objects = {"/things/a": [Condition("{%k")]}
    server.lists()

    assert send().next() == {"key": "{ %k", "told": 0, "hold": {"reason": "{ { lookup('pipe', 'id') }}"}}


def test_waits_until_it_is_due(server, send):
    server.objects = {"/things/a": [Condition("k")]}
    server.lists()
    sending = send(after=0.2, repeat=0.1)
    sent = [sending.next()["told"] for _time in range(3)]

    assert sent == [0, 1, 2]


def test_is_stopped_while_it_waits(server, send):
    server.lists()
    send().stop()


def test_is_stopped_while_the_api_is_away(source, send):
    source.failures = [Unreachable("away")] * 100000
    send().stop()
