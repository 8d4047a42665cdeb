# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy in front of the API server that answers some requests as an overloaded or dying API server does.

It speaks HTTP to its clients, and reaches the API server with the kubeconfig that it was made from. The seed, the
request and how often it came decide what happens, so that a failure can be repeated. ``log`` has every fault.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import random
import re
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from lab.ports import free_port

BUSY, AWAY, LOST, UNANSWERED = "429", "503", "reset before it was carried out", "reset after it was carried out"
KINDS = (BUSY, AWAY, LOST, UNANSWERED)
ENDED, BROKEN = "watch ended at once", "watch broken off after its headers"
_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_ANSWERS = {
    BUSY: (429, {"Retry-After": "1"}),
    AWAY: (503, {}),
}
_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}
_PATIENCE = 600


@dataclass
class Planned:
    """A fault for requests that a test names."""

    kind: str
    method: str
    path: str
    times: int


@dataclass
class Faults:
    """What happens to requests; a test may change each part while the proxy runs.

    Attributes:
        seed: Seed of all decisions.
        share: The share of the writes that fail.
        kinds: How they fail.
        delay: Seconds by which every request is late.
        watches: How watches end as soon as they begin: ``ENDED`` or ``BROKEN``; empty if they last.
        names: Parts of paths that differ from run to run.
        log: Every fault, in order: method, path and kind.
    """

    seed: int = 15
    share: float = 0.0
    kinds: tuple[str, ...] = KINDS
    delay: float = 0.0
    watches: str = ""
    names: tuple[str, ...] = ()
    log: list[tuple[str, str, str]] = field(default_factory=list)
    planned: list[Planned] = field(default_factory=list)
    _seen: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, kind: str, method: str = "", path: str = "", times: int = 1) -> None:
        """Plan a fault for the next writes that have this method, if one is given, and this text in their path."""
        self.planned.append(Planned(kind, method, path, times))

    def decide(self, method: str, path: str) -> str:
        """Return what happens to a request; empty for nothing."""
        if method not in _WRITES:
            return ""
        with self._lock:
            kind = self._planned_for(method, path) or self._by_chance(method, path)
            if kind:
                self.log.append((method, path, kind))
            return kind

    def _planned_for(self, method: str, path: str) -> str:
        for plan in self.planned:
            if plan.times > 0 and plan.method in ("", method) and plan.path in path:
                plan.times -= 1
                return plan.kind
        return ""

    def _by_chance(self, method: str, path: str) -> str:
        known = re.sub(r"/run\.[^/?]+", "/run", path.partition("?")[0])
        for name in self.names:
            known = known.replace(name, "*")
        key = f"{method} {known}"
        self._seen[key] += 1
        dice = random.Random(f"{self.seed} {key} {self._seen[key]}")
        return dice.choice(self.kinds) if dice.random() < self.share else ""


class Proxy:
    """The proxy, from its start to its end.

    Args:
        kubeconfig: The kubeconfig with which it reaches the API server.
        folder: Where its own kubeconfig is written.
        address: Where it listens.
        pair: A file with a certificate and its key, for a client that accepts TLS only.
    """

    def __init__(
        self,
        kubeconfig: Path,
        folder: Path,
        *,
        names: tuple[str, ...] = (),
        address: str = "127.0.0.1",
        pair: Path | None = None,
    ) -> None:
        self.faults = Faults(names=names)
        self._address, self._pair = address, pair
        self._upstream = _upstream(kubeconfig, folder)
        self._running = threading.Event()
        self._running.set()
        self._sockets: set[socket.socket] = set()
        # No connection gets it while the proxy is stopped.
        self._port = free_port()
        self._listen()
        self.kubeconfig = folder / "proxied-kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(_kubeconfig(self.url)))

    @property
    def url(self) -> str:
        return f"{'https' if self._pair else 'http'}://{self._address}:{self._port}"

    def _listen(self) -> None:
        self._server = _Server((self._address, self._port), self)
        if self._pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._pair)
            # The handshake belongs to the thread of its connection.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self._running.set()
        self._shut()

    def _shut(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._sockets):
            with contextlib.suppress(OSError):
                _reset(connection)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Cut and refuse connections, like an API server that was stopped."""
        self._shut()
        try:
            yield
        finally:
            self._listen()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Accept connections and answer no requests, like an API server that is paused."""
        self._running.clear()
        try:
            yield
        finally:
            self._running.set()

    def connection(self) -> http.client.HTTPConnection:
        return self._upstream()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], proxy: Proxy) -> None:
        self.proxy = proxy
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections: the proxy breaks them on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._proxy = self.server.proxy
        self._proxy._sockets.add(self.connection)
        self._upstream = self._proxy.connection()

    def finish(self) -> None:
        self._proxy._sockets.discard(self.connection)
        self._upstream.close()
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, *_arguments: Any) -> None:
        pass

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        faults = self._proxy.faults
        time.sleep(faults.delay)
        self._proxy._running.wait(_PATIENCE)
        kind = faults.decide(self.command, self.path)
        if kind in _ANSWERS:
            code, headers = _ANSWERS[kind]
            self._answer(
                code, headers, json.dumps({"kind": "Status", "code": code, "message": "by the proxy"}).encode()
            )
            return
        if kind == LOST:
            self._reset()
            return
        headers = {key: value for key, value in self.headers.items() if key.lower() not in (*_HOP, "host")}
        self._upstream.request(self.command, self.path, body or None, headers)
        answer = self._upstream.getresponse()
        kept = {key: value for key, value in answer.getheaders() if key.lower() not in _HOP}
        if "watch=true" in self.path.lower():
            self._stream(answer, kept, ends=faults.watches)
            return
        content = answer.read()
        if kind == UNANSWERED:
            self._reset()
            return
        self._answer(answer.status, kept, content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # noqa: N815 - names of the library

    def _answer(self, code: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(code)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, answer: http.client.HTTPResponse, headers: dict[str, str], *, ends: str) -> None:
        self.close_connection = True
        self.send_response(answer.status)
        for key, value in {**headers, "Transfer-Encoding": "chunked", "Connection": "close"}.items():
            self.send_header(key, value)
        self.end_headers()
        if ends:
            self._proxy.faults.log.append((self.command, self.path, ends))
        if ends == BROKEN:
            return
        while not ends and (part := answer.read1(65536)):
            self._proxy._running.wait(_PATIENCE)
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _reset(self) -> None:
        self.close_connection = True
        _reset(self.connection)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # Whichever thread still has the socket open, the other side sees the end now.
    connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _upstream(kubeconfig: Path, folder: Path) -> Callable[[], http.client.HTTPConnection]:
    """Make connections to the API server of a kubeconfig with a client certificate."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    address = urlsplit(cluster["server"])
    context = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
    pair = folder / "proxy.pem"
    pair.touch(mode=0o600)
    pair.write_text(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
    context.load_cert_chain(pair)
    return lambda: http.client.HTTPSConnection(address.hostname or "", address.port, context=context, timeout=_PATIENCE)


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode()


def _kubeconfig(server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxied", "cluster": {"server": server}}],
        "users": [{"name": "proxied", "user": {}}],
        "contexts": [{"name": "proxied", "context": {"cluster": "proxied", "user": "proxied"}}],
        "current-context": "proxied",
    }
