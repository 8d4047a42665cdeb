# A stub stands for the API server here, because a real one can not be made to expire, cut and refuse on demand.
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List, then watch, whatever the server and the network do."""

from __future__ import annotations

import gzip
import itertools
import json
import queue
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from unit.serving import reserved_address, serving

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import watch as watching
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import (
    Changed,
    Deadline,
    Follower,
    Listed,
    retry_conflicts,
    wait_for,
)
from lab.patience import PATIENCE

THINGS = "/api/v1/things"


def thing(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, **more}


def event(kind: str, item: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def status(code: int) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": "Because", "message": f"status {code}"}


class Api(ThreadingHTTPServer):
    """Answers lists and watches from two scripts; the last line of each is used again and again."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        super().__init__(address, Handler)
        self.lists: list[Any] = [[]]
        self.watches: list[Any] = [[]]
        self.requests: queue.Queue[tuple[str, dict[str, str]]] = queue.Queue()
        self.counts = {"list": 0, "watch": 0}
        self.ended = threading.Event()
        self.compresses = False

    def next(self, kind: str) -> Any:
        script = self.lists if kind == "list" else self.watches
        self.counts[kind] += 1
        return script.pop(0) if len(script) > 1 else script[0]


class Handler(BaseHTTPRequestHandler):
    server: Api
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        kind = "watch" if query.get("watch") else "list"
        self.server.requests.put((kind, query))
        script = self.server.next(kind)
        if isinstance(script, tuple):
            self.answer(script[0], json.dumps(status(script[0])).encode(), script[1])
        elif kind == "list":
            page = script if isinstance(script, dict) else {"items": script, "metadata": {"resourceVersion": "10"}}
            self.answer(200, json.dumps({"kind": "ThingList", **page}).encode(), {})
        else:
            self.stream(script)

    def answer(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        # As the API server answers, but also a short answer.
        if self.server.compresses and "gzip" in self.headers.get("Accept-Encoding", ""):
            body, headers = gzip.compress(body), {**headers, "Content-Encoding": "gzip"}
        for key, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, script: list[Any]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in script:
            if part == "cut":
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            if part == "stay":
                self.wfile.flush()
                self.server.ended.wait(PATIENCE)
                return
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")


@pytest.fixture
def api() -> Iterator[Api]:
    with serving(Api()) as server:
        yield server
        server.ended.set()


def cluster_of(api: Api) -> Cluster:
    # The patience of single requests is not what is tried here, and would make it slow.
    return Cluster({"host": f"http://127.0.0.1:{api.server_address[1]}", "api_key": "x", "api_timeout": 0})


@pytest.fixture
def cluster(api: Api) -> Cluster:
    return cluster_of(api)


@pytest.fixture(autouse=True)
def pauses(monkeypatch) -> list[float]:
    """How long was waited; without waiting for real."""
    taken: list[float] = []

    def sleep(seconds: float) -> None:
        taken.append(seconds)
        threading.Event().wait(min(seconds, 0.01))

    monkeypatch.setattr(watching.time, "sleep", sleep)
    # A watch that ends at once is a short one, also if this process is paused in the middle of it.
    monkeypatch.setattr(watching, "_SHORT", 3600.0)
    return taken


def follow(cluster: Cluster, count: int, **more: Any) -> list[Any]:
    """The first ``count`` pieces of news, in short."""
    follower = Follower(cluster, THINGS, Deadline(PATIENCE), **more)
    found = []
    for news in itertools.islice(follower, count):
        if isinstance(news, Listed):
            found.append([item["metadata"]["name"] for item in news.items])
        else:
            found.append((news.kind, news.object["metadata"]["name"]))
    return found


def test_list_then_watch(api, cluster):
    api.lists = [[thing("a", 1)]]
    api.watches = [
        [event("ADDED", thing("b", 11)), event("MODIFIED", thing("a", 12)), event("DELETED", thing("b", 13))]
    ]

    assert follow(cluster, 4) == [["a"], ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


def test_watch_begins_at_the_end_of_the_list_and_resumes_at_its_last_event(api, cluster):
    api.watches = [[event("ADDED", thing("b", 11))], [event("ADDED", thing("c", 12)), "stay"]]

    assert follow(cluster, 3) == [[], ("ADDED", "b"), ("ADDED", "c")]
    watches = [query["resourceVersion"] for kind, query in list(api.requests.queue) if kind == "watch"]
    assert watches == ["10", "11"]


def test_selectors_go_with_both(api, cluster):
    api.watches = [[event("ADDED", thing("b", 11)), "stay"]]
    follow(cluster, 2, field_selector="metadata.name=b", label_selector="app=x")

    for _kind, query in list(api.requests.queue):
        assert (query["fieldSelector"], query["labelSelector"]) == ("metadata.name=b", "app=x")


def test_pages(api, cluster):
    api.lists = [
        {"items": [thing("a", 1)], "metadata": {"resourceVersion": "10", "continue": "more"}},
        {"items": [thing("b", 2)], "metadata": {"resourceVersion": "10"}},
    ]

    assert follow(cluster, 1) == [["a", "b"]]


def test_lists_are_compressed_and_counted_as_they_came(api, cluster):
    api.compresses = True
    api.lists = [[thing("a" * 10_000, 1)]]
    assert [item["metadata"]["name"] for item in cluster.items("/api/v1/nodes")] == ["a" * 10_000]
    assert cluster.received < 1_000


def test_page_that_expired_begins_the_list_again(api, cluster):
    api.lists = [
        {"items": [thing("old", 1)], "metadata": {"resourceVersion": "10", "continue": "more"}},
        (410, {}),
        [thing("new", 2)],
    ]

    assert follow(cluster, 1) == [["new"]]


@pytest.mark.parametrize("expired", [(410, {}), [event("ERROR", status(410))]], ids=["as an answer", "as an event"])
def test_expired_watch_lists_again(api, cluster, expired):
    api.lists = [[thing("a", 1)], [thing("b", 2)]]
    api.watches = [expired, ["stay"]]

    assert follow(cluster, 2) == [["a"], ["b"]]


def test_bookmark_is_no_news_but_moves_on(api, cluster):
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "77"}})
    api.watches = [[bookmark, "cut"], [event("ADDED", thing("b", 78)), "stay"]]

    assert follow(cluster, 2) == [[], ("ADDED", "b")]
    assert [query["resourceVersion"] for kind, query in list(api.requests.queue) if kind == "watch"] == ["10", "77"]


def test_connection_cut_in_the_middle_of_a_line(api, cluster):
    whole = event("ADDED", thing("b", 11))
    api.watches = [[event("ADDED", thing("a", 11)), whole[:20], "cut"], [event("ADDED", thing("b", 12)), "stay"]]

    assert follow(cluster, 3) == [[], ("ADDED", "a"), ("ADDED", "b")]
    assert api.counts["list"] == 1


@pytest.mark.parametrize("noise", [b"\n", b"<html>busy</html>\n", b'{"type": "ERROR", "object": {}}\n'])
def test_a_line_that_is_not_an_event(api, cluster, noise):
    api.watches = [[noise, "cut"], [noise, event("ADDED", thing("b", 12)), "stay"]]
    if b"ERROR" in noise:
        api.watches[1].remove(noise)

    assert follow(cluster, 2) == [[], ("ADDED", "b")]


@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.parametrize("kind", ["lists", "watches"])
def test_trouble_that_passes(api, cluster, kind, code):
    good = [thing("a", 1)] if kind == "lists" else [event("ADDED", thing("b", 11)), "stay"]
    setattr(api, kind, [(code, {}), (code, {}), good])
    if kind == "lists":
        api.watches = [["stay"]]

    assert follow(cluster, 1 if kind == "lists" else 2)


def test_trouble_reported_in_the_stream(api, cluster):
    api.watches = [[event("ERROR", status(500))], [event("ADDED", thing("b", 11)), "stay"]]

    assert follow(cluster, 2) == [[], ("ADDED", "b")]


@pytest.mark.parametrize("kind", ["lists", "watches"])
@pytest.mark.parametrize(("code", "error"), [(403, ApiFailure), (401, ApiFailure), (404, NotFound)])
def test_trouble_that_stays_is_reported(api, cluster, kind, code, error):
    setattr(api, kind, [(code, {})])

    with pytest.raises(error):
        follow(cluster, 2)


@pytest.mark.parametrize("code", [401, 403])
def test_a_server_that_has_just_started_may_deny_what_it_allowed(api, cluster, code):
    api.lists = [[], (code, {}), (code, {}), [thing("b", 12)]]
    api.watches = [[event("ADDED", thing("a", 11)), event("ERROR", status(410))], (code, {}), ["stay"]]

    assert follow(cluster, 3) == [[], ("ADDED", "a"), ["b"]]


def test_a_right_that_is_taken_away_is_reported(api, cluster, monkeypatch):
    monkeypatch.setattr(watching, "MAY_DENY", 0.5)
    api.lists = [[], (403, {})]
    api.watches = [[event("ADDED", thing("a", 11)), event("ERROR", status(410))]]

    with pytest.raises(ApiFailure):
        follow(cluster, 3)


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    with reserved_address() as address:
        yield address


def test_server_that_is_away_for_a_while(pauses, address):
    with serving(Api(address)) as first:
        first.watches = [[event("ADDED", thing("b", 11)), "cut"], ["stay"]]
        follower = iter(Follower(cluster_of(first), THINGS, Deadline(PATIENCE)))
        assert isinstance(next(follower), Listed)
        assert isinstance(next(follower), Changed)
    back: list[Api] = []

    def come_back() -> None:
        while len(pauses) < 3:
            time.monotonic()
            threading.Event().wait(0.01)
        second = Api(address)
        second.watches = [[event("ADDED", thing("c", 12)), "stay"]]
        back.append(second)
        second.serve_forever(0.01)

    thread = threading.Thread(target=come_back)
    thread.start()
    try:
        # If it took long, it begins with a list.
        news = next(item for item in follower if isinstance(item, Changed))
        assert news.object["metadata"]["name"] == "c"
    finally:
        back[0].ended.set()
        back[0].shutdown()
        back[0].server_close()
        thread.join()


def test_pauses_grow_while_it_fails(api, cluster, pauses):
    api.lists = [(500, {})] * 8 + [[thing("a", 1)]]
    follow(cluster, 1)

    assert pauses == sorted(pauses)
    assert pauses[-1] == 5.0


@pytest.mark.parametrize("watch", [[], (410, {}), [event("ERROR", status(410))]], ids=["ends", "expired", "error"])
def test_watches_that_end_at_once_are_not_opened_in_a_tight_loop(api, cluster, pauses, watch):
    api.watches = [watch]
    follower = Follower(cluster, THINGS, Deadline(PATIENCE))
    thread = threading.Thread(target=lambda: list(follower))
    thread.start()
    while api.counts["watch"] < 6:
        threading.Event().wait(0.01)
    follower.stop()
    thread.join(PATIENCE)

    assert not thread.is_alive()
    assert len(pauses) >= api.counts["watch"] - 2
    assert max(pauses) >= 1.0


@pytest.mark.parametrize(
    "watch",
    [[], [event("BOOKMARK", {"metadata": {"resourceVersion": "11"}})], ["cut"], (503, {}), (429, {"Retry-After": "1"})],
    ids=["ends", "bookmark", "breaks off", "503", "429"],
)
def test_lists_say_what_watches_do_not(api, cluster, pauses, watch):
    """A proxy may end each watch at once, or refuse them all, while lists succeed."""
    api.lists = [[thing("a", 1)], [thing("a", 1)], [thing("b", 2)]]
    api.watches = [watch]

    assert follow(cluster, 3) == [["a"], ["a"], ["b"]]
    assert max(pauses) <= 5.0
    assert api.counts["watch"] < 10


@pytest.mark.parametrize("watch", [[], ["cut"], (503, {})], ids=["ends", "breaks off", "503"])
def test_watches_that_never_work_are_asked_for_seldom(api, cluster, pauses, watch):
    """By the pauses: a list and a watch at most for each of the longest, and a dozen before they grow to it."""
    api.watches = [watch]
    follow(cluster, 20)

    assert api.counts["list"] + api.counts["watch"] < 2 * (sum(pauses) / 5 + 12)


def test_stop_unblocks_a_read_that_waits(api, cluster):
    api.watches = [[event("ADDED", thing("b", 11)), "stay"]]
    follower = Follower(cluster, THINGS, Deadline(None))
    seen = threading.Event()

    def run() -> None:
        for news in follower:
            if isinstance(news, Changed):
                seen.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert seen.wait(PATIENCE)
    follower.stop()
    thread.join(PATIENCE)

    assert not thread.is_alive()


def test_stopped_while_the_watch_is_opened(api, cluster, monkeypatch):
    api.watches = [["stay"]]
    follower = Follower(cluster, THINGS, Deadline(None))
    really = cluster.open_watch

    def slow(*arguments: Any, **more: Any) -> Any:
        answer = really(*arguments, **more)
        follower.stop()
        return answer

    monkeypatch.setattr(cluster, "open_watch", slow)
    thread = threading.Thread(target=lambda: list(follower))
    thread.start()
    thread.join(PATIENCE)

    assert not thread.is_alive()


class TestDeadline:
    def test_passed_already_looks_once(self, api, cluster):
        api.lists = [[thing("a", 1)]]

        assert wait_for(cluster, THINGS, "a", lambda item: item is not None, Deadline(0)) == thing("a", 1)
        assert api.counts == {"list": 1, "watch": 0}

    def test_silence_is_not_taken_for_an_empty_collection(self, api, cluster):
        api.lists = [(500, {})]

        with pytest.raises(ApiFailure):
            list(Follower(cluster, THINGS, Deadline(0)))

    def test_nobody_there(self):
        cluster = Cluster({"host": "http://127.0.0.1:1", "api_key": "x", "api_timeout": 0})

        with pytest.raises(Unreachable, match="did not answer"):
            list(Follower(cluster, THINGS, Deadline(0)))

    def test_of_none_never_passes(self):
        assert not Deadline(None).passed
        assert Deadline(None).left == float("inf")


class TestWaitFor:
    def test_until_it_is_gone(self, api, cluster):
        api.lists = [[thing("a", 1)]]
        api.watches = [[event("MODIFIED", thing("a", 11)), event("DELETED", thing("a", 12)), "stay"]]

        assert wait_for(cluster, THINGS, "a", lambda item: item is None, Deadline(PATIENCE)) is None

    def test_until_it_comes(self, api, cluster):
        api.watches = [[event("ADDED", thing("a", 11)), "stay"]]

        found = wait_for(cluster, THINGS, "a", lambda item: item is not None, Deadline(PATIENCE))

        assert found == thing("a", 11)


class TestRetryConflicts:
    def test_tries_again_until_no_other_client_was_faster(self):
        failures = iter([ApiFailure("conflict", status=409)] * 5)

        def attempt() -> str:
            for failure in failures:
                raise failure
            return "done"

        assert retry_conflicts(attempt, seconds=PATIENCE) == "done"

    def test_gives_up_in_the_end(self):
        tries = []

        def attempt() -> None:
            tries.append(1)
            raise ApiFailure("conflict", status=409)

        with pytest.raises(ApiFailure):
            retry_conflicts(attempt, seconds=0.05)
        assert len(tries) > 1

    def test_other_failures_are_not_tried_again(self):
        tries = []

        def attempt() -> None:
            tries.append(1)
            raise ApiFailure("no", status=403)

        with pytest.raises(ApiFailure):
            retry_conflicts(attempt)
        assert len(tries) == 1
