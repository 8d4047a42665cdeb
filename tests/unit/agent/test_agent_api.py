# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom the agent believes, who it says it is, and what it makes of answers: a real server, over TLS."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
import urllib3
import yaml

from holdfast_agent import access
from holdfast_agent.api import MERGE, Api, Away, Refused, _failure
from holdfast_agent.clock import ServerClock
from holdfast_agent.condition import Condition
from holdfast_agent.config import Config
from holdfast_agent.holds import Hold
from holdfast_agent.publisher import AWAY, DONE, REFUSED, Outcome, Publisher, _outcome
from holdfast_agent.watch import Watcher
from lab.certificates import Authority
from lab.patience import PATIENCE


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass

    def _answer(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        subject = dict(item for part in self.connection.getpeercert()["subject"] for item in part)
        self.server.seen.append(
            (self.command, self.path, subject["commonName"], self.headers.get("Content-Type"), body)
        )
        status, content, *headers = self.server.answers.pop(0) if self.server.answers else (200, {})
        if status == 0:
            # As a server that shuts a connection which it had kept open.
            self.close_connection = True
            return
        if isinstance(content, list):
            self.send_response(status)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in content:
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
            return
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self._answer()

    def do_PATCH(self):
        self._answer()

    def do_POST(self):
        self._answer()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, _request, _client_address):
        """A client that does not believe us is what some tests want."""


@pytest.fixture
def authority(tmp_path):
    (tmp_path / "ca").mkdir()
    return Authority(tmp_path / "ca")


@pytest.fixture
def serve(authority, tmp_path, monkeypatch):
    """Starts a server with a certificate for these addresses."""
    # On a busy machine, a handshake may take longer than the agent waits for it.
    monkeypatch.setattr(urllib3, "Timeout", lambda **_seconds: PATIENCE)
    servers = []

    def start(addresses=("127.0.0.1",), signer=authority):
        pair = signer.server("api", ["api.example"], list(addresses))
        path = tmp_path / f"server-{len(servers)}.pem"
        path.write_bytes(pair.certificate + pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.directory / "ca.crt")
        server = Server(("127.0.0.1", 0), Handler)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.seen, server.answers = [], []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def identity(authority, tmp_path):
    """Writes a client certificate, and gives its path."""
    path = tmp_path / "client.pem"

    def write(user="system:node:worker-1"):
        pair = authority.client(user, ["system:nodes"])
        fresh = tmp_path / "client.new"
        fresh.write_bytes(pair.certificate + pair.key)
        fresh.replace(path)
        return str(path)

    write()
    return write


def config_for(at, tmp_path, **cluster):
    """A kubeconfig as kubeadm writes it, and the agent's configuration with it."""
    path = tmp_path / "kubelet.conf"
    authority = base64.b64encode((tmp_path / "ca/ca.crt").read_bytes()).decode()
    where = {
        "server": f"https://127.0.0.1:{at.server_port}",
        "certificate-authority-data": authority,
        **cluster,
    }
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": where}],
        "users": [{"name": "u", "user": {"client-certificate": "client.pem", "client-key": "client.pem"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return Config(node_name="worker-1", kubeconfig=str(path))


def test_a_request_is_made_as_the_kubelet(serve, identity, tmp_path):
    server = serve()
    api = Api(config_for(server, tmp_path), ServerClock())
    server.answers = [(200, {"kind": "Node"})]
    assert api.ask("PATCH", "/x", {"a": 1}, kind=MERGE, b="c d") == {"kind": "Node"}
    assert server.seen == [("PATCH", "/x?b=c+d", "system:node:worker-1", MERGE, {"a": 1})]


def test_four_values_do_as_well_as_a_kubeconfig(serve, identity, tmp_path):
    server = serve()
    found = Config(
        node_name="worker-1",
        kubeconfig="",
        server=f"https://127.0.0.1:{server.server_port}",
        certificate_authority=str(tmp_path / "ca/ca.crt"),
        client_certificate=identity(),
        client_key=identity(),
    )
    assert Api(found, ServerClock()).ask("GET", "/x") == {}


def test_a_server_of_another_authority_is_not_believed(serve, identity, tmp_path):
    (tmp_path / "other").mkdir()
    server = serve(signer=Authority(tmp_path / "other"))
    with pytest.raises(Away, match="CERTIFICATE_VERIFY_FAILED"):
        Api(config_for(server, tmp_path), ServerClock()).ask("GET", "/x")
    assert server.seen == []


def test_a_server_with_another_one_s_certificate_is_not_believed(serve, identity, tmp_path):
    server = serve(addresses=("127.0.0.2",))
    with pytest.raises(Away, match=r"127\.0\.0\.1"):
        Api(config_for(server, tmp_path), ServerClock()).ask("GET", "/x")
    assert server.seen == []
    named = config_for(server, tmp_path, **{"tls-server-name": "api.example"})
    assert Api(named, ServerClock()).ask("GET", "/x") == {}
    with pytest.raises(Away, match=r"other\.example"):
        Api(config_for(server, tmp_path, **{"tls-server-name": "other.example"}), ServerClock()).ask("GET", "/x")


def test_a_rotated_certificate_is_used_from_the_next_request_on(serve, identity, tmp_path):
    server = serve()
    api = Api(config_for(server, tmp_path), ServerClock())
    api.ask("GET", "/x")
    identity("system:node:rotated")
    api.ask("GET", "/x")
    assert [subject for _method, _path, subject, *_rest in server.seen] == [
        "system:node:worker-1",
        "system:node:rotated",
    ]


def test_a_certificate_that_was_replaced_is_read_again(serve, identity, tmp_path):
    server = serve()
    api = Api(config_for(server, tmp_path), ServerClock())
    server.answers = [(401, {"message": "Unauthorized"})]
    assert api.ask("GET", "/x") == {}
    server.answers = [(401, {}), (401, {"message": "Unauthorized"})]
    with pytest.raises(Away, match="401 Unauthorized"):
        api.ask("GET", "/x")


def test_what_is_not_there_yet_is_waited_for(tmp_path):
    api = Api(Config(node_name="worker-1", kubeconfig=str(tmp_path / "kubelet.conf")), ServerClock())
    with pytest.raises(Away, match="has not joined"):
        api.ask("GET", "/x")
    (tmp_path / "kubelet.conf").write_text("current-context: x\n")
    with pytest.raises(Away, match="can't be used as a kubeconfig"):
        api.ask("GET", "/x")


@pytest.mark.parametrize(
    ("key", "value"), [("server", "http://x"), ("insecure-skip-tls-verify", True), ("proxy-url", "http://x")]
)
def test_what_the_agent_does_not_do_is_reported(serve, identity, tmp_path, key, value):
    with pytest.raises(Away, match=key):
        Api(config_for(serve(), tmp_path, **{key: value}), ServerClock()).ask("GET", "/x")


def test_a_certificate_in_the_kubeconfig_itself(serve, identity, tmp_path, monkeypatch):
    monkeypatch.setattr(access, "RUNTIME_DIRECTORY", tmp_path)
    server = serve()
    found = config_for(server, tmp_path)
    content = yaml.safe_load((tmp_path / "kubelet.conf").read_text())
    data = base64.b64encode((tmp_path / "client.pem").read_bytes()).decode()
    content["users"][0]["user"] = {"client-certificate-data": data, "client-key-data": data}
    (tmp_path / "kubelet.conf").write_text(yaml.safe_dump(content))
    assert Api(found, ServerClock()).ask("GET", "/x") == {}


def test_answers(serve, identity, tmp_path):
    server = serve()
    api = Api(config_for(server, tmp_path), ServerClock())
    server.answers = [(0, None)]
    assert api.ask("GET", "/x") == {}, "a closed connection is opened again"
    server.answers = [(403, {"message": "no right"})]
    with pytest.raises(Refused, match="403 no right") as caught:
        api.ask("GET", "/x")
    assert caught.value.status == 403
    for status in (429, 500, 503):
        server.answers = [(status, {"message": "later"})]
        with pytest.raises(Away, match="later"):
            api.ask("GET", "/x")
    server.answers = [(302, {"message": "elsewhere"})]
    with pytest.raises(Refused):
        api.ask("GET", "/x")


def test_an_error_whose_text_breaks_off_passes():
    def broken():
        raise urllib3.exceptions.ProtocolError("Connection broken: IncompleteRead")

    answer = SimpleNamespace(status=503, data=None, headers={"Retry-After": "7"}, read=broken)

    found = _failure("GET", "/x", answer)

    assert isinstance(found, Away)
    assert found.retry_after == 7
    assert "503" in str(found)


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7), ("86400", 60), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("-1", 0), ("²", 0)]
)
def test_the_time_for_which_the_server_asks_is_read_and_has_a_limit(serve, identity, tmp_path, value, seconds):
    server = serve()
    found = config_for(server, tmp_path)
    publisher = Publisher(Api(found, ServerClock()), found)
    server.answers = [(429, {"message": "later"}, ("Retry-After", value.encode().decode("latin-1")))]
    outcome = _outcome(lambda: publisher.write_condition(Condition("True", "a/b", "c")))
    assert (outcome.kind, outcome.retry_after) == (AWAY, seconds)


def test_lines_come_whole_however_they_are_cut(serve, identity, tmp_path):
    server = serve()
    api = Api(config_for(server, tmp_path), ServerClock())
    server.answers = [(200, [b'{"a": 1}\n{"b"', b": 2}\n", b'{"c": 3}\n\n'])]
    assert list(api.lines("/x", 5)) == [b"", b'{"a": 1}', b'{"b": 2}', b'{"c": 3}']


def test_the_condition_is_written_with_its_transition_time(serve, identity, tmp_path):
    server = serve()
    found = config_for(server, tmp_path)
    publisher = Publisher(Api(found, ServerClock()), found)
    before = {"type": "ShutdownInhibited", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    server.answers = [(200, {"status": {"conditions": [before]}}), (200, {"status": {"conditions": [before]}})]
    publisher.write_condition(Condition("True", "a/b", "c"))
    method, path, _who, kind, body = server.seen[1]
    assert (method, path, kind) == ("PATCH", "/api/v1/nodes/worker-1/status", MERGE)
    (item,) = body["status"]["conditions"]
    assert item["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert item["lastHeartbeatTime"] != item["lastTransitionTime"]


def test_a_write_of_the_condition_is_refused_for_good_only_if_the_denial_lasts(serve, identity, tmp_path, monkeypatch):
    """An API server that has just started may deny what it allowed before."""
    server = serve()
    found = config_for(server, tmp_path)
    publisher = Publisher(Api(found, ServerClock()), found)
    now = 1.0
    monkeypatch.setattr("holdfast_agent.publisher.time", SimpleNamespace(monotonic=lambda: now))

    def write(status):
        server.answers = [(status, {})]
        return _outcome(lambda: publisher._write_condition(Condition("True", "a/b", "c"))).kind

    for other, outcome in ((200, DONE), (503, AWAY), (422, AWAY), (404, REFUSED)):
        assert write(403) == AWAY
        now += 59
        assert write(403) == AWAY
        assert write(other) == outcome
        now += 59
    assert write(403) == AWAY
    now += 60
    assert [write(403), write(403)] == [REFUSED, REFUSED], "the rights are gone"
    assert write(200) == DONE
    assert write(403) == AWAY


def test_an_event_that_is_there_already_is_written(serve, identity, tmp_path):
    server = serve()
    found = config_for(server, tmp_path)
    publisher = Publisher(Api(found, ServerClock()), found)
    hold = Hold("default", "me", "2026-01-02T03:04:05.000000Z")
    server.answers = [(409, {"message": "exists"})]
    assert _outcome(lambda: publisher._write_event(hold)) == Outcome(DONE)
    server.answers = [(403, {"message": "no"})]
    assert _outcome(lambda: publisher._write_event(hold)).kind == REFUSED
    server.answers = [(503, {"message": "no"})]
    assert _outcome(lambda: publisher._write_event(hold)).kind == AWAY


def test_the_condition_is_written_before_the_events_that_wait(monkeypatch):
    publisher = Publisher(None, Config("worker-1"))
    written = []
    monkeypatch.setattr(publisher, "_write_event", lambda hold: written.append(hold.holder))
    monkeypatch.setattr(publisher, "_write_condition", lambda condition: written.append(condition.reason))
    done = threading.Semaphore(0)
    for holder in "abc":
        publisher.event(Hold("default", holder, "2026-01-02T03:04:05.000000Z"), lambda _outcome: done.release())
    publisher.condition(Condition("True", "shop/alice", "c"), lambda _outcome: done.release())
    publisher.start()
    for _write in range(4):
        assert done.acquire(timeout=PATIENCE)
    assert written == ["shop/alice", "a", "b", "c"]


def test_a_server_that_ends_each_watch_at_once_is_asked_seldom(serve, identity, tmp_path):
    """By the pauses that the thread asks for: a minute of them."""
    server = serve()
    found = config_for(server, tmp_path)
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if sum(pauses) > 60:
            raise EndOfMinute

    server.answers = [
        (200, {"metadata": {"resourceVersion": "5"}, "items": []}),
        (200, []),
    ] * 100
    watcher = Watcher(Api(found, ServerClock()), found, lambda _holds: None, lambda _error: None, sleep=sleep)
    with pytest.raises(EndOfMinute):
        watcher._run()
    assert len(server.seen) == 2 * len(pauses)
    assert len(server.seen) < 40


class EndOfMinute(BaseException):
    """Enough was seen."""


def test_an_exception_during_a_write_ends_no_process():
    assert _outcome(lambda: {}["no"]).kind == AWAY
