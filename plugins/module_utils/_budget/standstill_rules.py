# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a state that is observed now and then has not changed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

# Seconds. If two observations are further apart, the state may have changed in between: the API server was down, or
# this process was paused.
_LONGEST_GAP = 90.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 2.0, 30.0


class Standstill:
    """How long a state has been observed without a change, on a monotonic clock."""

    def __init__(self) -> None:
        self._state: Hashable = None
        self.since = self._observed = float("-inf")

    def seconds(self, state: Hashable, now: float) -> float:
        """Observe ``state`` now. Return the seconds since it was first observed without a change in between."""
        if state != self._state or now - self._observed > _LONGEST_GAP:
            self._state, self.since = state, now
        self._observed = now
        return now - self.since

    def to_data(self) -> list[Any]:
        """Data for another process of this machine, which has the same monotonic clock."""
        return [self._state, self.since, self._observed]

    def resume(self, data: Any) -> None:
        """Continue with the data of another process; do nothing if it is not valid."""
        if isinstance(data, list) and len(data) == 3:
            state, self.since, self._observed = data
            self._state = tuple(state) if isinstance(state, list) else state


def pause(unchanged: float, grace: float) -> float:
    """Seconds until the next observation of a state that has not changed for ``unchanged`` seconds.

    The pauses grow with that time. The last one ends just after the grace time.
    """
    return min(max(_SHORTEST_PAUSE, unchanged / 3), _LONGEST_PAUSE, max(0.0, grace - unchanged) + 0.1)
