# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server's clock.

The clocks of Ansible controllers differ. Times that are written to the cluster, or compared with times in it, follow
one clock: the ``Date`` header of the API server's answers.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

# Seconds by which the clocks of several API servers behind one address may differ.
_TOLERANCE = 5.0


class ServerClock:
    """Estimates the server's clock from ``Date`` headers, to about a second; also follows a clock that is set.

    The server writes the header between request and answer, and drops fractions of a second. Each answer therefore
    gives two bounds for the offset of the server's clock from the local monotonic clock. The lower bound is the header
    minus the time at which the answer arrived. The upper bound is the header plus one second minus the time at which
    the request was sent. The estimate is the largest lower bound. A delayed answer, in the network or by a pause of
    this process, only has a smaller lower bound, so it never makes an old time look recent. The server's clock was set
    back only if the upper bound of an answer is below the estimate.
    """

    def __init__(self) -> None:
        self._offset: float | None = None

    def observe(self, date_header: str | None, sent: float) -> None:
        """Update the estimate from one answer. A header that can't be read is ignored.

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
            RuntimeError: No answer has been observed yet.
        """
        if self._offset is None:
            raise RuntimeError("no answer of the API server has been observed yet")
        return datetime.fromtimestamp(time.monotonic() + self._offset, timezone.utc)
