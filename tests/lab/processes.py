# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that outlive the command that started them, and how to find them again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError
from .patience import PATIENCE


def start_time(pid: int) -> str | None:
    """When a process started, in ticks since the machine booted; None if there is no such process.

    It tells our process from a later one with the same pid.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    state, threads, started = fields[0], int(fields[17]), fields[19]
    # The first thread of a process that was killed can end before the others, which still have its ports.
    return None if state in "ZX" and threads <= 1 else started


def machine_boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True)
class Process:
    """A background process with a record on disk."""

    name: str
    record: Path
    log: Path

    def pid(self) -> int | None:
        """The pid, only while it still belongs to the process that we started."""
        try:
            data = json.loads(self.record.read_text())
        except (FileNotFoundError, ValueError):
            return None
        if data["boot"] != machine_boot() or start_time(data["pid"]) != data["start"]:
            return None
        return int(data["pid"])

    def start(self, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
        """Start it unless it runs. It has no terminal, so it survives the process that started it."""
        if self.pid() is not None:
            return
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                [str(word) for word in argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=None if env is None else dict(env),
                cwd="/",
                start_new_session=True,
            )
        data = {"pid": child.pid, "start": start_time(child.pid), "boot": machine_boot()}
        temporary = self.record.with_suffix(".new")
        temporary.write_text(json.dumps(data))
        temporary.rename(self.record)
        # This process reaps it while it runs; afterwards PID 1 does. Without this, Popen warns.
        child.returncode = 0

    def stop(self, timeout: float = 10.0) -> None:
        """End it, by force after a while, and remove its record."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + timeout
            while self.pid() is not None and time.monotonic() < deadline:
                time.sleep(0.02)
        self.kill()

    def kill(self) -> None:
        """Kill it at once and remove its record."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            deadline = time.monotonic() + PATIENCE
            while self.pid() is not None:
                if time.monotonic() > deadline:
                    raise LabError(f"{self.name} (pid {pid}) does not end")
                time.sleep(0.01)
        self.record.unlink(missing_ok=True)

    def tail(self, lines: int = 15) -> str:
        """The end of its log, for an error message."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
