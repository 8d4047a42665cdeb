# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server's clock, for all times that the agent writes or compares: the node's clock may be wrong."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Callable

# Seconds. If an answer differs by more, one of the clocks was set.
_TOLERANCE = 2.0


class ServerClock:
    """Follows the ``Date`` headers of answers, to about a second."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, local: Callable[[], float] = time.time) -> None:
        self._monotonic = monotonic
        self._local = local
        self._offset: float | None = None

    def observe(self, date_header: str | None) -> None:
        """Use the header of an answer. An invalid header changes nothing."""
        try:
            seen = parsedate_to_datetime(date_header or "").timestamp()
        except (TypeError, ValueError):
            return
        offset = seen - self._monotonic()
        if self._offset is None or abs(offset - self._offset) > _TOLERANCE:
            self._offset = offset
        else:
            # The header has no fractions of a second, so the largest offset is the most precise.
            self._offset = max(self._offset, offset)

    def now(self) -> datetime:
        """The server's time in UTC; before its first answer, the node's time."""
        seconds = self._local() if self._offset is None else self._monotonic() + self._offset
        return datetime.fromtimestamp(seconds, timezone.utc)

    def text(self) -> str:
        """The time as a Kubernetes Time."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
