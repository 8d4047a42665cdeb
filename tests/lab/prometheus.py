# Copyright (c) 2026 holdfast contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""A real Prometheus for one test, with the alerts that the test sets. It is not part of a lab that is up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .commands import direct_environment, run
from .errors import LabError
from .patience import PATIENCE
from .ports import free_port
from .progress import step

PACKAGE = "prometheus"
# Short, because a test waits for it; the usual interval is a minute.
EVALUATED_EVERY = "200ms"


def program(cache: Path) -> Path:
    """Return the program. Unpack it from Debian's package if needed: an installed package would start a service."""
    if found := shutil.which(PACKAGE):
        return Path(found)
    unpacked = cache / PACKAGE
    path = unpacked / "usr/bin/prometheus"
    if path.exists():
        return path
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise LabError(f"the tests of alerts need what Debian calls {PACKAGE}; install it")
    with step(f"unpack {PACKAGE}"):
        # Another process may do the same: the first one to finish renames the whole directory into place.
        temporary = cache / f"{PACKAGE}.{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        try:
            _download(temporary)
            run(["dpkg-deb", "-x", next(temporary.glob("*.deb")), temporary])
            next(temporary.glob("*.deb")).unlink()
            if not path.exists():
                shutil.rmtree(unpacked, ignore_errors=True)
                temporary.rename(unpacked)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return path


def _download(folder: Path) -> None:
    try:
        run(["apt-get", "download", PACKAGE], cwd=folder)
    except LabError:
        # A fresh machine has no package lists.
        run(["apt-get", "update", "-q"])
        run(["apt-get", "download", PACKAGE], cwd=folder)


class Prometheus:
    """One server on a free loopback port, below a path, with its files in its own folder."""

    PATH = "/team/prometheus"

    def __init__(self, binary: Path, folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self._address}{self.PATH}"
        # A proxy of the machine can't reach it.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        configuration = {"global": {"evaluation_interval": EVALUATED_EVERY}, "rule_files": ["rules.yml"]}
        (folder / "prometheus.yml").write_text(json.dumps(configuration))
        self._write([], EVALUATED_EVERY)

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
                    str(self._binary),
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address={self._address}",
                    f"--web.route-prefix={self.PATH}",
                    "--web.enable-lifecycle",
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

    def _ready(self) -> bool:
        with self._opener.open(f"{self.url}/-/ready", timeout=PATIENCE):
            return True

    def _evaluated(self, names: list[str]) -> bool:
        with self._opener.open(f"{self.url}/api/v1/rules", timeout=PATIENCE) as answer:
            groups = json.load(answer)["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return sorted(rule["name"] for rule in rules) == sorted(names) and all(rule["health"] == "ok" for rule in rules)

    def _until(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if condition():
                    return
            except (OSError, urllib.error.URLError) as error:
                if self._process and self._process.poll() is not None:
                    log = (self._folder / "log").read_text(errors="replace")[-2000:]
                    raise LabError(f"Prometheus ended, the last of its log is:\n{log}") from error
            if time.monotonic() > deadline:
                raise LabError(f"Prometheus: after {PATIENCE} s not yet: {what}")
            time.sleep(0.05)
