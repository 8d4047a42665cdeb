# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about logind's files: the text of a file, and how long delay locks may delay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf

DEFAULT = 5.0
# logind counts in microseconds.
PRECISION = 0.000001
_SECTION, _KEY = "Login", "InhibitDelayMaxSec"
# D-Bus encodes infinity as the largest number of 64 bits, in microseconds.
_ENDLESS = 2**63 / 1_000_000
_UNITS = {
    Fraction(1): ("seconds", "second", "sec", "s", ""),
    Fraction(60): ("minutes", "minute", "min", "m"),
    Fraction(3600): ("hours", "hour", "hr", "h"),
    Fraction(86400): ("days", "day", "d"),
    Fraction(7 * 86400): ("weeks", "week", "w"),
    Fraction(2_629_800): ("months", "month", "M"),
    Fraction(31_557_600): ("years", "year", "y"),
    Fraction(1, 1000): ("msec", "ms"),
    Fraction(1, 10**6): ("usec", "us", "µs", "μs"),
}
_FACTORS = {name: factor for factor, names in _UNITS.items() for name in names}
_NAMES = "|".join(sorted(_FACTORS, key=len, reverse=True))
_SPAN = re.compile(rf"\+?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*({_NAMES})\s*")


@dataclass(frozen=True)
class Candidate:
    """A file that sets the delay, and the seconds that it sets."""

    file: str
    seconds: float

    def to_data(self) -> dict[str, object]:
        return {"file": self.file, "seconds": finite(self.seconds)}


@dataclass(frozen=True)
class LogindFiles:
    """The content of logind's files.

    Attributes:
        candidates: Those that set the delay, in the order in which they are read: the last wins.
        drop_ins: Names of all drop-ins, also of those that do not set the delay.
    """

    candidates: tuple[Candidate, ...] = ()
    drop_ins: tuple[str, ...] = ()

    @property
    def winner(self) -> Candidate | None:
        return self.candidates[-1] if self.candidates else None

    @property
    def seconds(self) -> float:
        return self.winner.seconds if self.winner else DEFAULT


def finite(seconds: float) -> float | None:
    """Return seconds as a result can hold them: JSON has no infinity, so it becomes null."""
    return None if seconds == inf else seconds


def effective(seconds: float) -> float:
    """Return the seconds that D-Bus gives (InhibitDelayMaxUSec), with infinity for no limit."""
    return inf if seconds > _ENDLESS else seconds


def same(one: float, other: float) -> bool:
    """Return whether two numbers of seconds are the same for logind."""
    return one == other or abs(one - other) < PRECISION


def delay(text: str) -> float | None:
    """Return the seconds that the text of a file sets, ``None`` if it sets none."""
    section, found = "", None
    for line in _lines(text):
        if line.startswith("["):
            section = line[1:-1] if line.endswith("]") else ""
        elif section == _SECTION and "=" in line:
            key, value = (part.strip() for part in line.split("=", 1))
            seconds = parse_span(value) if key == _KEY else None
            found = found if seconds is None else seconds
    return found


def _lines(text: str) -> Iterator[str]:
    """Return lines with content; one that ends in a backslash continues in the next line that is no comment."""
    begun = ""
    for line in text.split("\n"):
        if line.strip()[:1] in ("#", ";"):
            continue
        ends = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        begun += f"{line[:-1]} " if ends else line
        if not ends:
            if begun.strip():
                yield begun.strip()
            begun = ""
    if begun.strip():
        yield begun.strip()


def parse_span(text: str) -> float | None:
    """Return the seconds of a systemd time span: ``90``, ``1min 30s``, ``infinity``; ``None`` if it is none."""
    text = text.strip()
    if text == "infinity":
        return inf
    amount, place = Fraction(0), 0
    while place < len(text):
        part = _SPAN.match(text, place)
        if not part:
            return None
        amount += Fraction(part[1]) * _FACTORS[part[2]]
        place = part.end()
    return float(amount) if text else None
