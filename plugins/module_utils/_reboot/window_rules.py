# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maintenance windows: whether one is open, until when, and when the next one opens.

A window is wall-clock time, and wall clocks jump. Here a time of day means the first moment at which the clock has
reached it: the moment of the jump if the clock jumps over the time, the first of two if the time occurs twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from typing import Any

from .._api.errors import InvalidInput

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_MIDNIGHT = 24 * 60
_TIME = re.compile(r"([01]?[0-9]|2[0-4]):([0-5][0-9])", re.ASCII)
# Days to look back. A window of the day before yesterday is still open if the clock has gone back a day since.
_BEFORE = 2
# Days to look ahead. In one of two weeks, a clock jump may remove the only window, or the only break between two.
_AHEAD = 32
_ENDLESS = timedelta(days=15)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Window:
    """A weekly window; ``start`` and ``end`` are minutes since the midnight before it, ``end`` up to 48 hours."""

    days: frozenset[int]
    start: int
    end: int


@dataclass(frozen=True)
class Span:
    """A period in which maintenance is allowed without a break."""

    begin: datetime
    end: datetime


@dataclass(frozen=True)
class Outlook:
    """The state of the windows.

    Attributes:
        open: Whether a window is open, with enough time left.
        opens: When the next window opens that is long enough; ``None`` if one is open, or if none ever opens.
        closes: When the open window, or else the next one, closes; ``None`` if it never closes.
    """

    open: bool
    opens: datetime | None = None
    closes: datetime | None = None


def read_windows(entries: Sequence[Mapping[str, Any]]) -> tuple[Window, ...]:
    """Read the windows from a task's options.

    Raises:
        InvalidInput: A window is wrong; the message names it and the mistake.
    """
    found = []
    for number, entry in enumerate(entries, start=1):
        try:
            found.append(_window(entry))
        except InvalidInput as error:
            raise InvalidInput(f"windows, entry {number}: {error.message}", option="windows", entry=number) from error
    return tuple(found)


def look(windows: Sequence[Window], zone: tzinfo, now: datetime, margin: timedelta = timedelta(0)) -> Outlook:
    """The state of the windows at a moment. Without windows, maintenance is always allowed.

    Args:
        now: A time with any time zone.
        margin: A window with less time left than this does not count.
    """
    if not windows:
        return Outlook(open=True)
    now = now.astimezone(timezone.utc)
    for span in _spans(windows, zone, now):
        if span.end - span.begin > _ENDLESS:
            closes = None
        elif span.end - max(span.begin, now) < margin:
            continue
        else:
            closes = span.end
        is_open = span.begin <= now
        return Outlook(is_open, None if is_open else span.begin, closes)
    return Outlook(open=False)


def _window(entry: Mapping[str, Any]) -> Window:
    if unknown := sorted(entry.keys() - {"days", "start", "end"}):
        # Without its days, a window would open every day.
        raise InvalidInput(f"{', '.join(map(str, unknown))} is not known. A window has days, start and end.")
    start, end = _minutes(entry, "start", "23:59"), _minutes(entry, "end", "24:00")
    return Window(_days(entry.get("days")), start, end if end > start else end + _MIDNIGHT)


def _minutes(entry: Mapping[str, Any], key: str, latest: str) -> int:
    value = entry.get(key)
    if value is None:
        raise InvalidInput(f'{key} is missing. Give a time of day such as "22:00".')
    found = _TIME.fullmatch(str(value).strip())
    minutes = int(found[1]) * 60 + int(found[2]) if found else -1
    if 0 <= minutes < _MIDNIGHT or (minutes == _MIDNIGHT and latest == "24:00"):
        return minutes
    raise InvalidInput(
        f'{key} "{value}" is not a time of day between 00:00 and {latest}. Write HH:MM in quotes: YAML reads 22:00 '
        "without quotes as the number 1320."
    )


def _days(value: Any) -> frozenset[int]:
    if value is None:
        return frozenset(range(7))
    if not value:
        raise InvalidInput("days is empty, so the window would never open. Omit days for every day.")
    return frozenset(_day(item) for item in value)


def _day(value: Any) -> int:
    text = str(value).strip().lower()
    for number, name in enumerate(DAYS):
        if text in (name, name[:3]):
            return number
    known = ", ".join(name[:3] for name in DAYS)
    raise InvalidInput(f'"{value}" is not a day. Use {known}, or the full English names.')


def _spans(windows: Iterable[Window], zone: tzinfo, now: datetime) -> Iterator[Span]:
    """The spans that end after ``now``, in order; windows that touch are merged into one span."""
    merged: Span | None = None
    for span in sorted(_occurrences(windows, zone, now), key=lambda item: item.begin):
        if merged and span.begin <= merged.end:
            merged = Span(merged.begin, max(merged.end, span.end))
            continue
        if merged:
            yield merged
        merged = span
    if merged:
        yield merged


def _occurrences(windows: Iterable[Window], zone: tzinfo, now: datetime) -> Iterator[Span]:
    today = now.astimezone(zone).date()
    for window in windows:
        for ahead in range(-_BEFORE, _AHEAD + 1):
            day = today + timedelta(days=ahead)
            if day.weekday() not in window.days:
                continue
            span = Span(_reached(day, window.start, zone), _reached(day, window.end, zone))
            # A window that the clock jumps over completely has no length.
            if span.begin < span.end and span.end > now:
                yield span


def _reached(day: date, minutes: int, zone: tzinfo) -> datetime:
    """The first moment at which a wall clock shows ``minutes`` after the midnight of a day, or more."""
    wall = datetime.combine(day, time()) + timedelta(minutes=minutes)
    found = wall.replace(tzinfo=zone, fold=0).astimezone(timezone.utc)
    if _wall(found, zone) == wall:
        return found
    # The clock jumps over this time. With the offset before the jump, the time is after the jump; with the offset after
    # the jump, it is before the jump.
    early, late = wall.replace(tzinfo=zone, fold=1).astimezone(timezone.utc), found
    while late - early > _SECOND:
        middle = early + timedelta(seconds=(late - early) // _SECOND // 2)
        if _wall(middle, zone) >= wall:
            late = middle
        else:
            early = middle
    return late


def _wall(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)
