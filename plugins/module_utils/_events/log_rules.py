# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about events: what to send, when, and what was already sent.

A condition is a state of an object that is worth an event if it lasts for a while: a Machine that waits, a silent
node, a hold. Each condition is sent once, and again only if it lasts and a reminder is wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Condition:
    """A state of an object that is worth an event.

    Attributes:
        key: Its identity. A condition that begins again has another key.
        since: Since when, by a clock of the cluster; ``None`` if only observation shows this.
    """

    key: str
    since: datetime | None = None


@dataclass
class _Entry:
    due: datetime | None
    sent: int = 0


@dataclass(frozen=True)
class Due:
    """A condition to send now.

    Attributes:
        name: The object.
        key: The condition.
        sent: How often it was sent before.
    """

    name: str
    key: str
    sent: int


class EventLog:
    """The conditions of all objects. It forgets those that do not last, so it has only present ones.

    Args:
        after: Seconds that a condition must last without interruption.
        repeat: Seconds after which a condition that was sent and still lasts is sent again; 0 for never.
    """

    def __init__(self, *, after: float, repeat: float) -> None:
        self._after = timedelta(seconds=after)
        self._repeat = timedelta(seconds=repeat) if repeat else None
        self._open: dict[str, dict[str, _Entry]] = {}

    def __len__(self) -> int:
        return sum(len(entries) for entries in self._open.values())

    def listed(self, found: Mapping[str, Collection[Condition]], now: datetime) -> None:
        """Record the present conditions of all objects; objects that are not listed are gone."""
        for name in [known for known in self._open if known not in found]:
            del self._open[name]
        for name, conditions in found.items():
            self.see(name, conditions, now)

    def see(self, name: str, conditions: Collection[Condition], now: datetime) -> None:
        """Record the present conditions of one object; none means that nothing is wrong with it, or that it is gone."""
        before = self._open.pop(name, {})
        entries = {
            condition.key: before.get(condition.key) or _Entry(_begun(condition, now, bool(before)) + self._after)
            for condition in conditions
        }
        if entries:
            self._open[name] = entries

    def due(self, now: datetime) -> list[Due]:
        """Return what to send, the longest due first."""
        found = [
            (entry.due, Due(name, key, entry.sent))
            for name, entries in self._open.items()
            for key, entry in entries.items()
            if entry.due is not None and entry.due <= now
        ]
        return [due for _moment, due in sorted(found, key=lambda item: item[0])]

    def next(self) -> datetime | None:
        """Return when the next event is due; ``None`` if none is."""
        moments = [entry.due for entries in self._open.values() for entry in entries.values() if entry.due]
        return min(moments, default=None)

    def sent(self, due: Due, now: datetime) -> None:
        """Record that a condition was sent."""
        if entry := self._find(due):
            entry.sent += 1
            entry.due = now + self._repeat if self._repeat else None

    def later(self, due: Due, moment: datetime) -> None:
        """Look at a condition again later, because it was interrupted, or its state is unknown."""
        if entry := self._find(due):
            entry.due = moment

    def _find(self, due: Due) -> _Entry | None:
        return self._open.get(due.name, {}).get(due.key)


def _begun(condition: Condition, now: datetime, instead: bool) -> datetime:
    """Return since when a new condition lasts; one that replaces another was interrupted: its own time does not count.

    A time in the future, which a tenant can write, must not delay the event until then.
    """
    return now if instead or condition.since is None else min(condition.since, now)
