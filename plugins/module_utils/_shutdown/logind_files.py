# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files systemd-logind reads, and which of them sets how long delay locks may delay.

Sources: logind.conf(5), systemd.syntax(7), systemd.time(7), and the answers of systemd 252 and 257. An empty or
invalid value changes nothing: the previous one stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from .._api.errors import Refused
from .logind_rules import Candidate, LogindFiles, delay

# In the order in which they are searched.
DIRECTORIES = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd")
OUR_NAME = "zz-holdfast.conf"
_MAIN, _DROP_INS, _SUFFIX = "logind.conf", "logind.conf.d", ".conf"
# From this version on, the main file is searched for in all of the directories.
_MAIN_ANYWHERE = 256
_LONGEST_NAME = 255
# Sorts after the dot of the suffix, so that "NAME_x.conf" comes after "NAME.conf".
_OUR_END = "_holdfast.conf"


def read(version: int, root: str | Path = "/") -> LogindFiles:
    """Return what the files say to a logind of this version of systemd.

    Args:
        version: The major version of systemd.
        root: Directory that replaces the root of the file system.
    """
    base = Path(root)
    found = _drop_ins(base)
    candidates = []
    for path in [*_main(version, base), *found]:
        if path.is_dir():
            # logind stops at this file and reads none of those after it.
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
    """Return the drop-ins in the order of their names. A name in an earlier directory hides it in later ones."""
    found: dict[str, Path] = {}
    for place in DIRECTORIES:
        folder = base / place.lstrip("/") / _DROP_INS
        for name in os.listdir(folder) if folder.is_dir() else ():
            if name.endswith(_SUFFIX) and not name.startswith("."):
                found.setdefault(name, folder / name)
    return [found[name] for name in sorted(found, key=os.fsencode)]


def _text(path: Path) -> str:
    """Return the text of a file. A dangling link is like an empty file: it hides others and sets nothing."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except FileNotFoundError:
        return ""


def is_ours(name: str) -> bool:
    """Return whether a drop-in has a name from :func:`winning_name`."""
    return name == OUR_NAME or name.endswith(_OUR_END)


def winning_name(names: Iterable[str]) -> str:
    """Return a name for our drop-in that sorts after all others.

    Args:
        names: Names of the existing drop-ins; ours do not count.

    Raises:
        Refused: The last name is so long that no name sorts after it.
    """
    last = max((name for name in names if not is_ours(name)), key=os.fsencode, default="")
    if os.fsencode(last) < os.fsencode(OUR_NAME):
        return OUR_NAME
    name = last[: -len(_SUFFIX)] + _OUR_END
    if len(os.fsencode(name)) > _LONGEST_NAME:
        raise Refused(
            f"No drop-in of logind can sort after {last}: that name is too long to extend. Rename that file.", file=last
        )
    return name
