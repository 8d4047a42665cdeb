# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests while the API server is unavailable or overloaded: tried again, and what became of a write is found out."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from unit.serving import reserved_address, serving

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import cluster as api_cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import patience
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    NotFound,
    Outdated,
    Unreachable,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import retry_conflicts
from lab.patience import PATIENCE

THING = "/api/v1/things/one"


class Api(ThreadingHTTPServer):
    """One object, with compare-and-swap; ``faults`` are used up one by one, by requests of the named methods."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        super().__init__(address, Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.lock = threading.Lock()
        self.thing: Any = {"kind": "Thing", "metadata": {"name": "one", "resourceVersion": "1"}, "data": {}}
        self.faults: list[tuple[str, Any]] = []
        self.seen: list[str] = []

    def fault_for(self, method: str) -> Any:
        for entry in self.faults:
            if entry[0] == method:
                self.faults.remove(entry)
                return entry[1]
        return None

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: Any) -> None:
        pass

    def handle_one(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        api: Api = self.server  # type: ignore[assignment]
        with api.lock:
            api.seen.append(self.command)
            fault = api.fault_for(self.command)
            if isinstance(fault, tuple):
                self.reply(fault[0], {"message": "not now"}, fault[1])
                return
            if fault == "reset before":
                self.reset()
                return
            code, found = self.carry_out(api, body)
            if fault == "reset after":
                self.reset()
                return
            if callable(fault):
                fault(api)
                self.reset()
                return
            self.reply(code, found, {})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one  # noqa: N815 - names of the library

    def carry_out(self, api: Api, body: Any) -> tuple[int, Any]:
        if self.command == "POST":
            if api.thing is not None:
                return 409, {"reason": "AlreadyExists"}
            api.thing = {"kind": "Thing", **body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
            return 201, api.thing
        if api.thing is None:
            return 404, {}
        if self.command == "DELETE":
            api.thing = None
            return 200, {"kind": "Status"}
        if self.command in ("PUT", "PATCH"):
            version = body["metadata"].pop("resourceVersion", None)
            if version not in (None, api.thing["metadata"]["resourceVersion"]):
                return 409, {"reason": "Conflict"}
            merged = body["data"] if self.command == "PUT" else {**api.thing["data"], **body["data"]}
            api.thing = {**api.thing, "data": {key: value for key, value in merged.items() if value is not None}}
            bump(api)
        return 200, api.thing

    def reply(self, code: int, content: Any, headers: dict[str, str]) -> None:
        data = json.dumps(content).encode()
        self.send_response(code)
        for key, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


def bump(api: Api) -> None:
    metadata = api.thing["metadata"]
    api.thing = {**api.thing, "metadata": {**metadata, "resourceVersion": str(int(metadata["resourceVersion"]) + 1)}}


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    with serving(server):
        yield server


@pytest.fixture
def cluster(api):
    return Cluster({"host": api.url, "api_key": "abc", "api_timeout": PATIENCE})


@pytest.fixture(autouse=True)
def _long_decisions(monkeypatch):
    """A busy machine must not end a decision or a request early, or make credentials old."""
    monkeypatch.setattr(api_cluster, "_DECISION", PATIENCE)
    monkeypatch.setattr(api_cluster, "_CREDENTIALS_EVERY", PATIENCE)
    monkeypatch.setattr(api_cluster, "Timeout", lambda **_seconds: PATIENCE)


@pytest.fixture
def short_decisions(monkeypatch, _long_decisions):
    """A change that fails is decided again soon."""
    monkeypatch.setattr(api_cluster, "_DECISION", 0.3)


def write(cluster: Cluster, method: str) -> Any:
    """One write of each kind; the object as it is then."""
    if method == "POST":
        return cluster.create("/api/v1/things", {"metadata": {"name": "one"}, "data": {"mine": "x"}})
    if method == "DELETE":
        return cluster.delete(THING)
    if method == "PUT":
        return cluster.replace(THING, {**cluster.get(THING), "data": {"mine": "x"}})
    version = cluster.get(THING)["metadata"]["resourceVersion"]
    return cluster.merge(THING, {"metadata": {"resourceVersion": version}, "data": {"mine": "x"}})


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_has_just_started_may_deny(api, cluster, status, monkeypatch):
    """Its authorizer has not read the roles yet."""
    monkeypatch.setattr(patience, "MAY_DENY", PATIENCE)
    api.faults = [("GET", (503, {})), ("GET", (status, {})), ("GET", (status, {}))]

    assert cluster.get(THING)["data"] == {}
    assert api.seen == ["GET"] * 4


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("before", [[], [("GET", (429, {"Retry-After": "0"}))]])
def test_a_denial_of_a_running_server_is_final(api, cluster, status, before):
    api.faults = [*before, ("GET", (status, {}))]

    with pytest.raises(ApiFailure) as caught:
        cluster.get(THING)
    assert caught.value.status == status
    assert api.seen == ["GET"] * (1 + len(before))


METHODS = ["POST", "PUT", "PATCH", "DELETE"]
FAULTS = [(429, {"Retry-After": "0"}), (503, {}), (504, {}), "reset before", "reset after"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_write_gets_through_once(api, cluster, method, fault):
    if method == "POST":
        api.thing = None
    api.faults = [(method, fault)]

    result = write(cluster, method)

    if method == "DELETE":
        assert api.thing is None
    else:
        assert api.thing["data"] == {"mine": "x"}
        assert result == api.thing
        assert api.thing["metadata"]["resourceVersion"] == ("1" if method == "POST" else "2"), "written twice"
    assert not api.faults


def test_retry_after_is_kept_to(api, cluster, monkeypatch):
    waits = []
    monkeypatch.setattr(patience.time, "sleep", waits.append)
    monkeypatch.setattr("urllib3.util.retry.time.sleep", waits.append)
    api.faults = [("GET", (429, {"Retry-After": "3"}))]

    cluster.get(THING)

    assert 2.5 < max(waits) <= 3


def test_a_refused_connection_is_tried_again(monkeypatch):
    with reserved_address() as address, ExitStack() as started:
        late: list[Api] = []

        def sleep(_seconds: float) -> None:
            if not late:
                late.append(started.enter_context(serving(Api(address))))

        monkeypatch.setattr("urllib3.util.retry.time.sleep", sleep)
        cluster = Cluster({"host": "http://{}:{}".format(*address), "api_key": "abc", "api_timeout": PATIENCE})
        assert cluster.get(THING) == late[0].thing


def test_a_webhook_that_does_not_answer_is_waited_for():
    away = 'Internal error occurred: failed calling webhook "x.example": connect: connection refused'
    assert patience.overloaded(500, away)
    assert not patience.overloaded(500, "Internal error occurred: no kind is registered")
    assert not patience.overloaded(403, 'admission webhook "x.example" denied the request')


def test_it_ends_with_the_time_and_says_what_it_met(api):
    cluster = Cluster({"host": "http://127.0.0.1:1", "api_key": "abc", "api_timeout": 1})
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1.*refused"):
        cluster.get(THING)
    busy = Cluster({"host": api.url, "api_key": "abc", "api_timeout": 3})
    api.faults = [("GET", (503, {}))] * 1000
    with pytest.raises(ApiFailure, match=r"503.*not now"):
        busy.get(THING)


@pytest.mark.parametrize("method", METHODS)
def test_a_caller_with_a_loop_of_its_own_gets_the_failure_at_once(api, cluster, method):
    api.faults = [(method, (429, {"Retry-After": "30"}))]
    calls = {
        "POST": lambda: cluster.create("/api/v1/things", {"metadata": {"name": "one"}}, patient=False),
        "DELETE": lambda: cluster.delete(THING, patient=False),
        "PATCH": lambda: cluster.merge(THING, {"metadata": {}, "data": {}}, patient=False),
    }
    if method not in calls:
        return
    with pytest.raises(ApiFailure) as caught:
        calls[method]()
    assert (caught.value.status, caught.value.retry_after) == (429, 30)
    assert api.seen == [method]


def test_a_redirect_is_not_followed_but_reported(api, cluster):
    api.faults = [("GET", (301, {"Location": "/elsewhere"}))]
    with pytest.raises(ApiFailure) as caught:
        cluster.get(THING)
    assert (caught.value.status, api.seen) == (301, ["GET"])


def test_a_permanent_error_is_reported_at_once(api, cluster):
    api.faults = [("PUT", (500, {}))]
    with pytest.raises(ApiFailure) as caught:
        write(cluster, "PUT")
    assert (caught.value.status, api.seen.count("PUT")) == (500, 1)


def test_someone_else_s_object_is_not_taken_for_ours(api, cluster):
    """The POST was lost, and another one came first."""

    def other(api: Api) -> None:
        api.thing = {"kind": "Thing", "metadata": {"name": "one", "resourceVersion": "1"}, "data": {"theirs": "y"}}

    api.thing = None
    api.faults = [("POST", other)]
    with pytest.raises(ApiFailure) as caught:
        write(cluster, "POST")
    assert caught.value.status == 409


@pytest.mark.usefixtures("short_decisions")
@pytest.mark.parametrize("place", ["data", "annotations"])
def test_an_annotation_that_should_be_gone_shows_that_the_write_failed(api, cluster, place):
    """The answers to the PUT that releases were lost, and it was not carried out."""
    known = api.thing["data"] if place == "data" else api.thing["metadata"].setdefault("annotations", {})
    known.update(holder="me")
    released = cluster.get(THING)
    (released["data"] if place == "data" else released["metadata"]["annotations"]).pop("holder")
    api.faults = [("PUT", (503, {}))] * 1000
    with pytest.raises(Outdated):
        cluster.replace(THING, released)


@pytest.mark.usefixtures("short_decisions")
def test_what_was_removed_is_gone(api, cluster):
    api.thing["data"]["holder"] = "me"
    released = {**cluster.get(THING), "data": {}}
    api.faults = [("PUT", "reset after"), *[("PUT", (503, {}))] * 1000]
    assert cluster.replace(THING, released)["data"] == {}


def test_a_certain_conflict_is_raised(api, cluster):
    stale = cluster.get(THING)
    bump(api)
    with pytest.raises(ApiFailure) as caught:
        cluster.replace(THING, {**stale, "data": {}})
    assert (caught.value.status, isinstance(caught.value, Outdated)) == (409, False)
    assert api.seen == ["GET", "PUT"]


class Counter:
    """A count that is read, decided and swapped, as slots and failures are."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.decided = 0

    def attempt(self) -> str:
        self.decided += 1
        present = self.cluster.get(THING)
        count = str(int(present["data"].get("count", "0")) + 1)
        return str(self.cluster.replace(THING, {**present, "data": {"count": count}})["data"]["count"])


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_count_goes_up_by_one(api, cluster, fault):
    api.faults = [("PUT", fault)]
    assert retry_conflicts(Counter(cluster).attempt) == "1"
    assert api.thing["data"] == {"count": "1"}


@pytest.mark.usefixtures("short_decisions")
def test_after_a_longer_outage_it_is_decided_again(api, cluster):
    counter = Counter(cluster)
    # For longer than a decision lasts, and then another one was faster.
    api.faults = [("PUT", (503, {}))] * 6

    def other(api: Api) -> None:
        api.thing = {**api.thing, "data": {"count": "41"}}
        bump(api)

    api.faults.append(("PUT", other))
    assert retry_conflicts(counter.attempt) == "42"
    assert counter.decided > 1


@pytest.mark.usefixtures("short_decisions")
def test_a_change_that_is_lost_for_good_is_outdated(api, cluster):
    api.faults = [("PUT", (503, {}))] * 1000
    with pytest.raises(Outdated, match=r"503.*decided again") as caught:
        write(cluster, "PUT")
    assert (caught.value.status, caught.value.patience) == (409, PATIENCE)


def once(cluster: Cluster, version: str = "1") -> Any:
    return cluster.merge(THING, {"metadata": {"resourceVersion": version}, "data": {"mine": "x"}}, once=True)


@pytest.mark.parametrize("fault", [(429, {"Retry-After": "0"}), (503, {}), "reset before"], ids=str)
def test_what_is_sent_once_is_decided_again(api, cluster, fault):
    api.faults = [("PATCH", fault)]
    with pytest.raises(Outdated):
        once(cluster)
    assert (api.seen, api.thing["data"]) == (["PATCH", "GET"], {})


def test_a_change_without_metadata_is_decided_again(api, cluster):
    """As signs of life are."""
    api.faults = [("PATCH", (503, {}))]
    with pytest.raises(Outdated):
        cluster.merge(THING, {"data": {"mine": "x"}}, once=True)


def test_what_is_sent_once_and_carried_out_is_done(api, cluster):
    api.faults = [("PATCH", "reset after")]
    assert once(cluster)["data"] == {"mine": "x"}
    assert api.seen == ["PATCH", "GET"]


@pytest.mark.usefixtures("short_decisions")
def test_the_answer_that_came_too_late_still_counts(api, cluster):
    """Sent, carried out, its answer lost, and the server overloaded for longer than a decision lasts."""
    api.faults = [("PUT", "reset after"), *[("PUT", (503, {}))] * 1000]
    assert write(cluster, "PUT")["data"] == {"mine": "x"}


def test_conflicts_end(api, cluster):
    tries = []

    def attempt() -> None:
        tries.append(1)
        raise ApiFailure("faster", status=409)

    with pytest.raises(ApiFailure):
        retry_conflicts(attempt, seconds=0)
    assert len(tries) == 3


def test_nothing_else_is_tried_again():
    def attempt() -> None:
        raise NotFound("gone")

    with pytest.raises(NotFound):
        retry_conflicts(attempt)


@pytest.mark.parametrize(
    ("found", "wanted", "result"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": {"b": "x", "c": 1}}, {"a": {"b": "x"}}, True),
        ({}, {"a": None}, True),
        ({"a": "x"}, {"a": None}, False),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({}, {"a": {}}, True),
        (None, {"a": 1}, False),
    ],
)
def test_contains(found, wanted, result):
    assert patience.contains(found, wanted) is result
