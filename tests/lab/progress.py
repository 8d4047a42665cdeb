# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress messages for the person who waits."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

TICK = 20.0


@dataclass
class Step:
    """One step of the work, and its progress."""

    text: str
    detail: str = ""

    def line(self, seconds: float) -> str:
        """The progress line that is printed after some seconds."""
        return f"lab: {self.text}{f': {self.detail},' if self.detail else ' ...'} {seconds:.0f} s"


def say(text: str) -> None:
    """Print one line at once, to standard error: standard output is for results."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text: str, *, quiet_below: float = 0.0) -> Iterator[Step]:
    """Announce a step, print its progress while it lasts, and say how long it took."""
    start = time.monotonic()
    if not quiet_below:
        say(f"lab: {text} ...")
    made = Step(text)
    done = threading.Event()
    threading.Thread(target=_tick, args=(made, start, done), daemon=True).start()
    try:
        yield made
    except BaseException:
        done.set()
        say(f"lab: {text}: failed after {time.monotonic() - start:.1f} s")
        raise
    done.set()
    seconds = time.monotonic() - start
    if seconds >= quiet_below:
        say(f"lab: {text}: done in {seconds:.1f} s")


def _tick(made: Step, start: float, done: threading.Event) -> None:
    while not done.wait(TICK):
        say(made.line(time.monotonic() - start))
