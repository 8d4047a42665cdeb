# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server's clock.

Controllers differ in their idea of the time; what is written to the cluster and compared with what stands there
follows one clock, the ``Date`` header of the API server's answers.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

# Seconds by which the time of an answer may differ.
_TOLERANCE = 5.0


class ServerClock:
    """Follows the server's clock from the ``Date`` headers seen, also where it is set; good to about a second."""

    def __init__(self) -> None:
        self._offset: float | None = None
        self._lower: float | None = None

    def observe(self, date_header: str | None) -> None:
        """Learn from one answer. A header that can't be read teaches nothing."""
        if not date_header:
            return
        try:
            seen = parsedate_to_datetime(date_header).timestamp()
        except (TypeError, ValueError):
            return
        offset = seen - time.monotonic()
        if self._offset is None or offset > self._offset - _TOLERANCE:
            # The header drops fractions, so the truth is never before it: the largest offset is the closest.
            self._offset, self._lower = max(offset, self._offset or offset), None
        elif self._lower is not None and abs(offset - self._lower) <= _TOLERANCE:
            self._offset, self._lower = offset, None
        else:
            # The server's clock was set back; or this process was paused while the answer waited for it, and nothing
            # that is too old must look fresh then. The next answer tells one from the other.
            self._lower = offset

    @property
    def known(self) -> bool:
        return self._offset is not None

    def now(self) -> datetime:
        """The server's time, in UTC.

        Raises:
            RuntimeError: No answer was observed yet.
        """
        if self._offset is None:
            raise RuntimeError("no answer of the API server was observed yet")
        return datetime.fromtimestamp(time.monotonic() + self._offset, timezone.utc)
