# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about events: what is to be sent, when, and what was sent already.

A condition is something about an object that is worth an event once it has lasted for a while: a Machine that waits, a
node that is silent, a hold. Each is sent once, and again only where it lasts and a reminder is wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Condition:
    """Something about an object.

    Attributes:
        key: What it is. Whatever begins anew has another one.
        since: Since when, by a clock of the cluster; ``None`` where only seeing it shows this.
    """

    key: str
    since: datetime | None = None


@dataclass
class _Entry:
    due: datetime | None
    sent: int = 0


@dataclass(frozen=True)
class Due:
    """A condition that is to be sent now.

    Attributes:
        name: The object.
        key: The condition.
        sent: How often it was sent before.
    """

    name: str
    key: str
    sent: int


class EventLog:
    """The conditions of all objects. What does not last is forgotten, so it is as large as what is amiss.

    Args:
        after: Seconds that a condition has to last without interruption.
        repeat: Seconds after which one that was sent and lasts is sent again; 0 for never.
    """

    def __init__(self, *, after: float, repeat: float) -> None:
        self._after = timedelta(seconds=after)
        self._repeat = timedelta(seconds=repeat) if repeat else None
        self._open: dict[str, dict[str, _Entry]] = {}

    def __len__(self) -> int:
        return sum(len(entries) for entries in self._open.values())

    def listed(self, found: Mapping[str, Collection[Condition]], now: datetime) -> None:
        """Take over what all objects are now; those that are not there are gone."""
        for name in [known for known in self._open if known not in found]:
            del self._open[name]
        for name, conditions in found.items():
            self.see(name, conditions, now)

    def see(self, name: str, conditions: Collection[Condition], now: datetime) -> None:
        """Take over what one object is now; without conditions nothing is amiss with it, or it is gone."""
        before = self._open.pop(name, {})
        entries = {
            condition.key: before.get(condition.key) or _Entry(_begun(condition, now, bool(before)) + self._after)
            for condition in conditions
        }
        if entries:
            self._open[name] = entries

    def due(self, now: datetime) -> list[Due]:
        """What is to be sent, the longest due first."""
        found = [
            (entry.due, Due(name, key, entry.sent))
            for name, entries in self._open.items()
            for key, entry in entries.items()
            if entry.due is not None and entry.due <= now
        ]
        return [due for _moment, due in sorted(found, key=lambda item: item[0])]

    def next(self) -> datetime | None:
        """When there will be something to send; ``None`` where nothing is coming."""
        moments = [entry.due for entries in self._open.values() for entry in entries.values() if entry.due]
        return min(moments, default=None)

    def sent(self, due: Due, now: datetime) -> None:
        """It was sent."""
        if entry := self._find(due):
            entry.sent += 1
            entry.due = now + self._repeat if self._repeat else None

    def later(self, due: Due, moment: datetime) -> None:
        """It is to be looked at again, because it was interrupted, or nobody could say."""
        if entry := self._find(due):
            entry.due = moment

    def _find(self, due: Due) -> _Entry | None:
        return self._open.get(due.name, {}).get(due.key)


def _begun(condition: Condition, now: datetime, instead: bool) -> datetime:
    """Since when a new condition lasts; one that took the place of another was interrupted, whatever it says itself."""
    if condition.since is None:
        return now
    return max(condition.since, now) if instead else condition.since
