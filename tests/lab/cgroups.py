# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's own control groups: a process joins one before it starts, so even after a crash we know that it is ours."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .errors import LabError
from .patience import PATIENCE

MOUNTS = Path("/sys/fs/cgroup")
# The kernel schedules a group like one process, however many it contains. Among the many processes of a busy machine a
# control plane would starve, and mark healthy nodes as dead. In v1 a process has 1024 shares, in v2 100.
WEIGHTS = {"cpu.shares": "32768", "cpu.weight": "3200"}
JOIN = 'for procs in $0; do echo $$ > "$procs"; done; exec "$@"'


def hierarchies(root: Path = MOUNTS) -> list[Path]:
    """Every hierarchy once: one on a machine with cgroup v2, one for each controller with v1."""
    if (root / "cgroup.procs").exists():
        return [root]
    found = {path.resolve() for path in root.iterdir() if (path / "cgroup.procs").exists()}
    return sorted(found)


class Cgroup:
    """A group of the same name in every hierarchy."""

    def __init__(self, name: str, roots: Sequence[Path] | None = None) -> None:
        self.name = name
        self.paths = [root / name for root in (hierarchies() if roots is None else roots)]

    def make(self) -> None:
        """Make it and its parents. In v1 a group without CPUs and memory nodes accepts no process."""
        for path in self.paths:
            root = path.parents[len(Path(self.name).parts) - 1]
            missing = [path, *path.parents][: len(Path(self.name).parts)]
            for directory in reversed(missing):
                directory.mkdir(exist_ok=True)
                for name in ("cpuset.cpus", "cpuset.mems"):
                    file = directory / name
                    if directory.parent == root or file.exists():
                        with contextlib.suppress(FileNotFoundError):
                            if not file.read_text().strip():
                                file.write_text((directory.parent / name).read_text())
            _favour(missing[-1])

    def command(self, argv: Iterable[str | Path]) -> list[str]:
        """The command that joins the group and becomes argv, so the process is never outside of it."""
        procs = " ".join(str(path / "cgroup.procs") for path in self.paths)
        return ["/bin/sh", "-ec", JOIN, procs, *(str(word) for word in argv)]

    def processes(self) -> set[int]:
        """All processes in it and below."""
        return {pid for path in self.paths for pid in _processes(path)}

    def kill(self, timeout: float = PATIENCE) -> None:
        """Kill everything in it at once, as a power failure does."""
        deadline = time.monotonic() + timeout
        while pids := self.processes():
            if time.monotonic() > deadline:
                raise LabError(f"processes {sorted(pids)} in the cgroup {self.name} do not end")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def remove(self, *, keep_top: bool = False) -> None:
        """Remove it with all groups below it; groups in use stay."""
        for path in self.paths:
            for directory in _below(path):
                if not (keep_top and directory == path):
                    with contextlib.suppress(OSError):
                        directory.rmdir()


def _favour(top: Path) -> None:
    """Give a group its share. In v2 that works only where the machine enables the controller for its groups."""
    for name, weight in WEIGHTS.items():
        if (top / name).exists():
            (top / name).write_text(weight)


def _below(path: Path) -> Iterator[Path]:
    """The groups below, deepest first, as rmdir requires."""
    for directory, _names, _files in os.walk(path, topdown=False):
        yield Path(directory)


def _processes(path: Path) -> Iterator[int]:
    for directory in _below(path):
        try:
            words = (directory / "cgroup.procs").read_text().split()
        except OSError:
            continue
        # 0 stands for a process of another pid namespace, which is not ours.
        yield from (pid for pid in map(int, words) if pid)
