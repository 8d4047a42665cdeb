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

# Seconds by which the clocks of several API servers behind one address may differ.
_TOLERANCE = 5.0


class ServerClock:
    """Follows the server's clock from the ``Date`` headers seen, also where it is set; good to about a second.

    The server wrote the header between request and answer, and drops fractions. So its clock is at least that far ahead
    of ours when the answer is here, and less than a second further when the request was sent. The estimate is the
    largest of the first. An answer that was delayed, on its way or by a pause of this process, says less, and nothing
    that is too old looks fresh then. Only an answer whose second bound lies below the estimate shows a clock set back.
    """

    def __init__(self) -> None:
        self._offset: float | None = None

    def observe(self, date_header: str | None, sent: float) -> None:
        """Learn from one answer. A header that can't be read teaches nothing.

        Args:
            sent: Monotonic time before the request was sent, in seconds.
        """
        if not date_header:
            return
        try:
            seen = parsedate_to_datetime(date_header).timestamp()
        except (TypeError, ValueError):
            return
        least, most = seen - time.monotonic(), seen + 1 - sent
        if self._offset is None or least > self._offset or most < self._offset - _TOLERANCE:
            self._offset = least

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
