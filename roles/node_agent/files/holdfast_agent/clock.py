# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server's clock, for all times that the agent writes or compares: the node's clock may be wrong."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Callable

# Seconds by which the clocks of several API servers behind one address may differ.
_TOLERANCE = 2.0


class ServerClock:
    """Follows the ``Date`` headers of answers, to about a second."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, local: Callable[[], float] = time.time) -> None:
        self._monotonic = monotonic
        self._local = local
        self._offset: float | None = None

    def monotonic(self) -> float:
        """Seconds, to be taken before a request is sent."""
        return self._monotonic()

    def observe(self, date_header: str | None, sent: float) -> None:
        """Learn from one answer. A header that can't be read teaches nothing.

        The server wrote the header after ``sent``, and drops fractions: of a clock that is right, the largest offset is
        the closest. An answer that was delayed says less. Only one with a time from before ``sent`` shows a clock that
        was set back.
        """
        try:
            seen = parsedate_to_datetime(date_header or "").timestamp()
        except (TypeError, ValueError):
            return
        least, most = seen - self._monotonic(), seen + 1 - sent
        if self._offset is None or least > self._offset or most < self._offset - _TOLERANCE:
            self._offset = least

    def now(self) -> datetime:
        """The server's time in UTC; before its first answer, the node's time."""
        seconds = self._local() if self._offset is None else self._monotonic() + self._offset
        return datetime.fromtimestamp(seconds, timezone.utc)

    def text(self) -> str:
        """The time as a Kubernetes Time."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
