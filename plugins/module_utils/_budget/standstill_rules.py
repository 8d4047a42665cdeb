# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a state has not changed, according to repeated looks."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

# Seconds. If the time between two looks is longer, the state may have changed in between: the API server was down, or
# this process was paused.
_BLIND = 90.0
_SHORTEST, _LONGEST = 2.0, 30.0


class Standstill:
    """Follows the state that each look shows, on a monotonic clock."""

    def __init__(self) -> None:
        self._what: Hashable = None
        self.since = self._seen = float("-inf")

    def seconds(self, what: Hashable, now: float) -> float:
        """Seconds for which each look has shown ``what``."""
        if what != self._what or now - self._seen > _BLIND:
            self._what, self.since = what, now
        self._seen = now
        return now - self.since

    def to_data(self) -> list[Any]:
        """Data with which another process continues: all processes of a machine share the monotonic clock."""
        return [self._what, self.since, self._seen]

    def resume(self, data: Any) -> None:
        """Continue from the data of another process; start from the beginning if there is none."""
        if isinstance(data, list) and len(data) == 3:
            what, self.since, self._seen = data
            self._what = tuple(what) if isinstance(what, list) else what


def pause(stood: float, grace: float) -> float:
    """Seconds until the next look at a state that is ``stood`` seconds old: short at first, then longer."""
    return min(max(_SHORTEST, stood / 3), _LONGEST, max(0.0, grace - stood) + 0.1)
