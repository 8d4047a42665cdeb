# Copyright (c) 2026 holdfast contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""Progress for the person who waits."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator


def say(text: str) -> None:
    """Print one line at once; standard error keeps standard output free for results."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text: str, *, quiet_below: float = 0.0) -> Iterator[None]:
    """Announce a step, then say how long it took."""
    start = time.monotonic()
    if not quiet_below:
        say(f"lab: {text} ...")
    try:
        yield
    except BaseException:
        say(f"lab: {text}: failed after {time.monotonic() - start:.1f} s")
        raise
    seconds = time.monotonic() - start
    if seconds >= quiet_below:
        say(f"lab: {text}: {seconds:.1f} s")
