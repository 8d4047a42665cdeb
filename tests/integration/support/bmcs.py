# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Management controllers that speak Redfish, for nodes of the lab. Needs sushy-tools."""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from integration.support.metal3 import environment

from lab import Lab
from lab.certificates import Authority
from lab.metal3.redfish import system_id
from lab.metal3.settings import Settings
from lab.metal3.switches import Switch, switch
from lab.patience import PATIENCE
from lab.ports import free_port


@contextlib.contextmanager
def redfish(world: Any, lab: Lab, folder: Path, *nodes: str) -> Iterator[Bmcs]:
    """Run one service for these nodes; switch real ones on again afterwards."""
    found = Bmcs(world, lab, folder, nodes)
    found.start()
    try:
        yield found
    finally:
        found.stop()
        for node in nodes:
            if node in lab.nodes:
                found.machine(node).on()
        lab.wait_ready({*nodes} & {*lab.nodes})


@contextlib.contextmanager
def gateway(lab: Lab, folder: Path, services: dict[str, Bmcs]) -> Iterator[str]:
    """Put one origin in front of several services, each behind a path prefix that the service does not see."""
    Authority(lab.paths.pki).server("gateway", [], ["127.0.0.1"]).write(folder, "gateway")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._forward(None)

        def do_POST(self) -> None:
            self._forward(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        def _forward(self, body: bytes | None) -> None:
            prefix = max((each for each in services if self.path.startswith(f"{each}/redfish/")), key=len)
            service = services[prefix]
            headers = {name: self.headers[name] for name in ("Authorization", "Content-Type") if self.headers[name]}
            request = urllib.request.Request(service.url + self.path[len(prefix) :], data=body, headers=headers)
            try:
                with service.open(request) as answer:
                    status, content = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, content = error.code, error.read()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "gateway.crt", folder / "gateway.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Bmcs:
    """One Redfish service, at ``url``, with a system for each node.

    It serves HTTPS with a certificate of the lab's authority (``ca``), to one user, as BMCs do.
    """

    USER, PASSWORD = "admin", "let-me-in"

    def __init__(self, world: Any, lab: Lab, folder: Path, nodes: tuple[str, ...]) -> None:
        self.lab = lab
        self._folder = folder / "redfish"
        self._folder.mkdir()
        self._settings = {node: Settings(node) for node in nodes}
        self._machines = {node: switch(lab, world.cluster, node) for node in nodes}
        for node in nodes:
            self.faults(node)
        self._port = free_port()
        self.url = f"https://127.0.0.1:{self._port}"
        self.ca = lab.paths.pki / "ca.crt"
        Authority(lab.paths.pki).server("bmc", [], ["127.0.0.1"]).write(self._folder, "tls")
        # Comes with sushy-tools.
        bcrypt = importlib.import_module("bcrypt")
        digest = bcrypt.hashpw(self.PASSWORD.encode(), bcrypt.gensalt(rounds=4)).decode()
        (self._folder / "users").write_text(f"{self.USER}:{digest}\n")
        self._process: subprocess.Popen[bytes] | None = None
        # A proxy of the machine can't reach it.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(self.ca))),
        )
        token = base64.b64encode(f"{self.USER}:{self.PASSWORD}".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}

    def faults(self, node: str, **faults: Any) -> None:
        """Set what goes wrong from now on; without faults, all works again: see ``lab.metal3.settings.Faults``."""
        self._settings[node] = self._settings[node].but(**faults)
        self._settings[node].save(self._folder / f"{node}.json")

    def system(self, node: str) -> str:
        """The id of a node's system."""
        return system_id(node)

    def options(self, node: str, url: str = "") -> dict[str, Any]:
        """The options with which modules reach a node's system; behind another URL where that is given."""
        # No firmware gave the node its UUID.
        return {
            "uri": f"{url or self.url}/redfish/v1/Systems/{self.system(node)}",
            "uuid": self.system(node),
            "username": self.USER,
            "password": self.PASSWORD,
            "ca_cert": str(self.ca),
        }

    def variables(self, node: str) -> dict[str, Any]:
        """The variables with which the role failover reaches a node's system."""
        return {"fence": "redfish", **{f"redfish_{name}": value for name, value in self.options(node).items()}}

    def machine(self, node: str) -> Switch:
        """The machine's real power."""
        return self._machines[node]

    def commands(self, node: str) -> list[str]:
        """The kinds of reset that the service accepted so far."""
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / f"{node}.commands").read_text().splitlines()
        return []

    def start(self) -> None:
        if self._process:
            return
        words = ["--settings", self._folder, "--port", self._port, "--pki", self._folder]
        words += ["--auth-file", self._folder / "users"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", "lab", "redfish", *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(self.lab),
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with self._opener.open(f"{self.url}/redfish/v1", timeout=5):
                    return
            except (OSError, urllib.error.URLError):
                log_text = (self._folder / "log").read_text()
                assert self._process.poll() is None, log_text
                assert time.monotonic() < deadline, log_text
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the BMCs: connections are refused."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def open(self, request: urllib.request.Request) -> Any:
        return self._opener.open(request, timeout=PATIENCE)

    def get(self, node: str) -> dict[str, Any]:
        """A node's system, as the service describes it."""
        request = urllib.request.Request(self._path(node), headers=self._headers)
        with self._opener.open(request, timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def reset(self, node: str, kind: str) -> None:
        """Ask for a change of power."""
        request = urllib.request.Request(
            f"{self._path(node)}/Actions/ComputerSystem.Reset",
            data=json.dumps({"ResetType": kind}).encode(),
            headers=self._headers,
        )
        with self._opener.open(request, timeout=PATIENCE):
            pass

    def _path(self, node: str) -> str:
        return f"{self.url}/redfish/v1/Systems/{self.system(node)}"
