# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stop processes for a while, as when a laptop is closed or a container is paused."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[list[int]]:
    """Stop a process and everything that it started; yield their ids. They continue afterwards."""
    stopped: list[int] = []
    try:
        # A stopped process starts nothing, so this loop ends.
        while news := [found for found in (pid, *descendants(pid)) if found not in stopped]:
            for found in news:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(found, signal.SIGSTOP)
                stopped.append(found)
        yield stopped
    finally:
        for found in reversed(stopped):
            with contextlib.suppress(ProcessLookupError):
                os.kill(found, signal.SIGCONT)


def descendants(pid: int) -> list[int]:
    """The children of a process, and their children."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = list(parents.get(pid, []))
    for child in found:
        found.extend(parents.get(child, []))
    return found
