# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Prometheus, Alertmanager or push gateway for one test. They are not part of a lab that is up."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .commands import direct_environment
from .errors import LabError
from .patience import PATIENCE
from .ports import free_port

PACKAGE = "prometheus"
# Short, because a test waits for it; the usual interval is a minute.
EVALUATED_EVERY = "200ms"


class Server:
    """One server on a free loopback port, below a path, with its files in its own folder."""

    PACKAGE: str
    PATH = ""

    def __init__(self, binary: Path, folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self._address}{self.PATH}"
        # A proxy of the machine can't reach it.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def _options(self) -> list[str]:
        raise NotImplementedError

    def _wrapped(self) -> list[str]:
        """A command that runs the program."""
        return []

    def start(self) -> None:
        """Start it, at the same address as before."""
        if self._process:
            return
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    # It ends when the tests are killed.
                    "setpriv",
                    "--pdeathsig=KILL",
                    *self._wrapped(),
                    str(self._binary),
                    f"--web.listen-address={self._address}",
                    *self._options(),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=direct_environment(),
            )
        self._until("it is ready", self._ready)

    def stop(self) -> None:
        """End it and keep its data."""
        if self._process:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None

    def ask(self, path: str, body: Any = None) -> Any:
        """Return the JSON that the server answers; with a body, post it."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": "application/json"})
        with self._opener.open(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def _ready(self) -> bool:
        with self._opener.open(f"{self.url}/-/ready", timeout=PATIENCE):
            return True

    def _until(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if condition():
                    return
            except (OSError, urllib.error.URLError) as error:
                if self._process and self._process.poll() is not None:
                    log = (self._folder / "log").read_text(errors="replace")[-2000:]
                    raise LabError(f"{self._binary.name} ended, the last of its log is:\n{log}") from error
            if time.monotonic() > deadline:
                raise LabError(f"{self._binary.name}: after {PATIENCE} s not yet: {what}")
            time.sleep(0.05)


class Alertmanager(Server):
    """An Alertmanager without receivers. It keeps alerts and silences in its folder."""

    PACKAGE = "prometheus-alertmanager"
    PATH = "/alertmanager"

    def _options(self) -> list[str]:
        configuration = {"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}
        (self._folder / "alertmanager.yml").write_text(json.dumps(configuration))
        return [
            f"--config.file={self._folder / 'alertmanager.yml'}",
            f"--storage.path={self._folder / 'data'}",
            f"--web.route-prefix={self.PATH}",
            "--cluster.listen-address=",
        ]

    def _wrapped(self) -> list[str]:
        """It reads templates below /usr/share. If the package is not installed, only this process sees them there."""
        share = self._binary.parents[1] / "share"
        if share == Path("/usr/share"):
            return []
        mount = f"mount -t overlay overlay -o lowerdir={shlex.quote(str(share))}:/usr/share /usr/share"
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{mount} && exec "$@"', "sh"]

    def silences(self) -> list[dict[str, Any]]:
        """The silences that have not expired."""
        return [item for item in self.ask("/api/v2/silences") if item["status"]["state"] != "expired"]

    def alert(self, **labels: str) -> None:
        """Send an alert, as a Prometheus would."""
        self.ask("/api/v2/alerts", [{"labels": labels}])

    def firing(self, name: str) -> list[str]:
        """The state of the alerts with this name, for example ``active`` or ``suppressed``."""
        return [item["status"]["state"] for item in self.ask("/api/v2/alerts") if item["labels"]["alertname"] == name]


class Pushgateway(Server):
    """A push gateway."""

    PACKAGE = "prometheus-pushgateway"

    def _options(self) -> list[str]:
        return []

    def metrics(self) -> str:
        """Its metrics, as a Prometheus reads them."""
        with self._opener.open(f"{self.url}/metrics", timeout=PATIENCE) as answer:
            return str(answer.read().decode())


class Prometheus(Server):
    PACKAGE = PACKAGE
    PATH = "/team/prometheus"

    def __init__(self, binary: Path, folder: Path, **configuration: Any) -> None:
        super().__init__(binary, folder)
        known = {"global": {"evaluation_interval": EVALUATED_EVERY}, "rule_files": ["rules.yml"]}
        (folder / "prometheus.yml").write_text(json.dumps({**known, **configuration}))
        self._write([], EVALUATED_EVERY)

    def _options(self) -> list[str]:
        return [
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.route-prefix={self.PATH}",
            "--web.enable-lifecycle",
        ]

    def alerts(self, *rules: Mapping[str, Any], every: str = EVALUATED_EVERY) -> None:
        """Set exactly these alert rules; return when each one was evaluated.

        Args:
            rules: As in a file of rules, for example ``{"alert": "DiskFull", "expr": "vector(1)", "for": "1h"}``.
            every: How often they are evaluated. With a long interval, rules say nothing for a long time.
        """
        self._write([dict(rule) for rule in rules], every)
        if not self._process:
            return
        with self._opener.open(urllib.request.Request(f"{self.url}/-/reload", method="POST"), timeout=PATIENCE):
            pass
        if every == EVALUATED_EVERY:
            self._until("its rules are evaluated", lambda: self._evaluated([rule["alert"] for rule in rules]))

    def _write(self, rules: list[dict[str, Any]], every: str) -> None:
        groups = [{"name": "test", "interval": every, "rules": rules}] if rules else []
        (self._folder / "rules.yml").write_text(json.dumps({"groups": groups}))

    def _evaluated(self, names: list[str]) -> bool:
        with self._opener.open(f"{self.url}/api/v1/rules", timeout=PATIENCE) as answer:
            groups = json.load(answer)["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return sorted(rule["name"] for rule in rules) == sorted(names) and all(rule["health"] == "ok" for rule in rules)
