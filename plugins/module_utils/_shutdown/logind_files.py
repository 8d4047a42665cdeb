# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files systemd-logind reads, and which of them says how long delay locks may delay.

Sources: logind.conf(5), systemd.syntax(7), systemd.time(7), and the answers of systemd 252 and 257. An empty or
wrong value changes nothing: the one before it stays.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from pathlib import Path

from .._api.errors import Refused

# From the first to the last that is looked into.
DIRECTORIES = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd")
OUR_NAME = "zz-holdfast.conf"
DEFAULT = 5.0
_MAIN, _DROP_INS, _SUFFIX = "logind.conf", "logind.conf.d", ".conf"
_SECTION, _KEY = "Login", "InhibitDelayMaxSec"
# Since then the main file is looked for in all of the directories.
_MAIN_ANYWHERE = 256
_LONGEST_NAME = 255
# D-Bus has a number for what has no end, the largest of 64 bits, in microseconds.
_ENDLESS = 2**63 / 1_000_000
# Sorts after the dot of the suffix, so that "NAME_x.conf" comes after "NAME.conf".
_OUR_END = "_holdfast.conf"

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
    """What logind's files say.

    Attributes:
        candidates: Those that set the delay, in the order in which they are read: the last wins.
        drop_ins: Names of all drop-ins, whatever they set.
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
    """Seconds as a result can hold them: JSON knows no infinity, which becomes null."""
    return None if seconds == inf else seconds


def effective(seconds: float) -> float:
    """The seconds that D-Bus tells (InhibitDelayMaxUSec), with infinity for what has no end."""
    return inf if seconds > _ENDLESS else seconds


def read(version: int, root: str | Path = "/") -> LogindFiles:
    """What the files say that a logind of this version of systemd reads.

    Args:
        version: The major number of systemd's version.
        root: Directory that stands for the root of the file system.
    """
    base = Path(root)
    found = _drop_ins(base)
    candidates = []
    for path in [*_main(version, base), *found]:
        if path.is_dir():
            # logind gives up on it, and what comes after is not read.
            break
        value = delay(_text(path))
        if value is not None:
            candidates.append(Candidate(f"/{path.relative_to(base)}", value))
    return LogindFiles(tuple(candidates), tuple(path.name for path in found))


def _main(version: int, base: Path) -> list[Path]:
    places = DIRECTORIES if version >= _MAIN_ANYWHERE else DIRECTORIES[:1]
    files = (base / place.lstrip("/") / _MAIN for place in places)
    return [path for path in files if path.exists()][:1]


def _drop_ins(base: Path) -> list[Path]:
    """The drop-ins in the order of their names. A name that an earlier directory has hides it in the later ones."""
    found: dict[str, Path] = {}
    for place in DIRECTORIES:
        folder = base / place.lstrip("/") / _DROP_INS
        for name in os.listdir(folder) if folder.is_dir() else ():
            if name.endswith(_SUFFIX) and not name.startswith("."):
                found.setdefault(name, folder / name)
    return [found[name] for name in sorted(found, key=os.fsencode)]


def _text(path: Path) -> str:
    """A link that leads nowhere is like an empty file: it hides others and says nothing."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except FileNotFoundError:
        return ""


def delay(text: str) -> float | None:
    """The seconds that the text of a file sets, ``None`` where it sets none."""
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
    """Lines that say something; one that ends in a backslash goes on in the next that is no comment."""
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
    """Seconds of a time span of systemd: ``90``, ``1min 30s``, ``infinity``; ``None`` where it is none."""
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


def is_ours(name: str) -> bool:
    """Whether a drop-in has a name that :func:`winning_name` gives."""
    return name == OUR_NAME or name.endswith(_OUR_END)


def winning_name(names: Iterable[str]) -> str:
    """A name for a drop-in of ours that is read after all others.

    Args:
        names: Names of the drop-ins that are there; ours among them don't count.

    Raises:
        Refused: The last name is so long that none comes after it.
    """
    last = max((name for name in names if not is_ours(name)), key=os.fsencode, default="")
    if os.fsencode(last) < os.fsencode(OUR_NAME):
        return OUR_NAME
    name = last[: -len(_SUFFIX)] + _OUR_END
    if len(os.fsencode(name)) > _LONGEST_NAME:
        raise Refused(
            f"No drop-in of logind can be read after {last}: its name is too long to be extended. Rename it.", file=last
        )
    return name
