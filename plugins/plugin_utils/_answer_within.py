# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A limit for the answer of a node. ssh waits forever for a node that accepts a connection and then hangs."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ansible.errors import AnsibleConnectionFailure


class _Silent(BaseException):
    """The time is over. The ssh plugin would try again after any Exception."""


@contextmanager
def answer_within(seconds: int) -> Iterator[None]:
    """Interrupt the body after so many seconds.

    Ansible runs a task in the main thread of a process, so a signal reaches it. Ansible uses the same signal for the
    timeout of a task, which continues afterwards.

    Raises:
        AnsibleConnectionFailure: The body has not ended in time.
    """

    def end(_number: int, _frame: Any) -> None:
        raise _Silent

    started, before = time.monotonic(), signal.signal(signal.SIGALRM, end)
    left = signal.alarm(seconds)
    try:
        yield
    except _Silent:
        raise AnsibleConnectionFailure(f"it has not answered for {seconds} s") from None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.alarm(max(1, left - int(time.monotonic() - started)))
