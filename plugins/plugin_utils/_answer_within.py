# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A limit for the answer of a node. ssh waits forever for a node that accepts a connection and then hangs."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ansible.errors import AnsibleConnectionFailure

# Seconds for the removal of what modules left on a node.
_CLEANUP = 60


class NoAnswer(AnsibleConnectionFailure):
    """The node has not answered in time."""


class _Over(BaseException):
    """The time is over. The ssh plugin would try again after any Exception."""


@contextmanager
def answer_within(seconds: int) -> Iterator[None]:
    """Interrupt the body after so many seconds.

    Ansible runs a task in the main thread of a process, so a signal reaches it. Ansible uses the same signal for the
    timeout of a task. That one continues afterwards, and if it comes first, it is the only one.

    Raises:
        NoAnswer: The body has not ended in time.
    """
    started, left = time.monotonic(), signal.alarm(0)
    if 0 < left <= seconds:
        signal.alarm(left)
        yield
        return

    def end(_number: int, _frame: Any) -> None:
        raise _Over

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.alarm(seconds)
        yield
    except _Over:
        raise NoAnswer(f"it has not answered for {seconds} s") from None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.alarm(max(1, left - int(time.monotonic() - started)))


def clean_up(cleanup: Callable[[bool], None], *, force: bool) -> None:
    """Remove what modules left on the node, if it is reachable.

    Ansible does this after the task, and outside of its timeout. A failure would replace the result.
    """
    with suppress(AnsibleConnectionFailure), answer_within(_CLEANUP):
        cleanup(force)
