# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inhibitor locks, read from logind's answers on the node.

Source: org.freedesktop.login1(5). ``busctl`` prints an array of (what, who, why, mode, uid, pid) as one line. This
plain format is the same in every systemd since 221.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone

from .._api.errors import HoldfastError

_MANAGER = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
# The node agent takes its locks under this name, one for each hold.
AGENT = "holdfast"
_FIELDS = 6
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|[^\s"]+')
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_BOOT_ID = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=\s*$)", re.MULTILINE)

# The node agent's record of its masks.
_MASKS = "/run/holdfast-agent/masks.json"
_MASKED = "holdfast: masked"
# The files are logind's own, one for each lock. If they can't be read, "since" is unknown.
QUERY = (
    "cat /proc/sys/kernel/random/boot_id && "
    "cut -d' ' -f1 /proc/uptime && "
    f"busctl get-property {_MANAGER} PreparingForShutdown && "
    f"busctl call {_MANAGER} ListInhibitors && "
    '{ for f in /run/systemd/inhibit/*; do [ -f "$f" ] && '
    'stat -c %Y "$f" && cat "$f"; done; '
    f"grep -qs '\"reboot.target\"' {_MASKS} && echo '{_MASKED}'; true; }}"
)
# A command of the shell that succeeds if the node agent has no block lock. It fails if logind does not answer. busctl
# writes a quote in a string as \", so a string can't look like the end of one.
NO_HOLD = (
    f"locks=$(busctl call {_MANAGER} ListInhibitors) && ! printf '%s' \"$locks\" | "
    rf"""grep -qE '"[^"]*shutdown[^"]*" "{AGENT}" "([^"\\]|\\.)*" "block"'"""
)


@dataclass(frozen=True)
class Inhibitor:
    """One inhibitor lock of logind."""

    what: str
    who: str
    why: str
    mode: str
    uid: int
    pid: int
    # It is the same lock with another time: logind writes its files again when it starts.
    since: str | None = field(default=None, compare=False)

    @property
    def blocks_shutdown(self) -> bool:
        return self.mode == "block" and "shutdown" in self.what.split(":")


@dataclass(frozen=True)
class Logind:
    """State of a node as logind reports it.

    Attributes:
        uptime: In seconds; 0 if the node was not asked for it.
        masked: Whether the node agent has masked the reboot. Before systemd 254, its masks outlive a stop of the agent,
            and its locks do not.
    """

    boot_id: str
    preparing_for_shutdown: bool
    inhibitors: tuple[Inhibitor, ...]
    uptime: float = 0.0
    masked: bool = False

    def blocks(self) -> list[Inhibitor]:
        """Block locks on shutdown."""
        return [item for item in self.inhibitors if item.blocks_shutdown]


def boot_id(text: str) -> str:
    """Return the boot ID in the output of a command; empty if there is none.

    On a terminal, sudo writes lines before the output: a line break after the password, a warning, or its lecture.
    """
    found = _BOOT_ID.search(text)
    return found[0] if found else ""


def parse(text: str) -> Logind:
    """Read the answer to :data:`QUERY`. Lines before the boot ID are not part of it.

    Raises:
        HoldfastError: The text is not such an answer.
    """
    boot = boot_id(text)
    try:
        if not boot:
            raise ValueError("no boot ID")
        uptime, preparing, array, *rest = text.partition(boot)[2].lstrip().splitlines()
        words = _words(array)
        if words[0] != "a(ssssuu)":
            raise ValueError(words[0])
        since = lock_times(rest)
        fields = words[2:]
        rows = [fields[start : start + _FIELDS] for start in range(0, int(words[1]) * _FIELDS, _FIELDS)]
        inhibitors = tuple(
            Inhibitor(what, who, why, mode, int(uid), int(pid), since.get((pid, who, why)))
            for what, who, why, mode, uid, pid in rows
        )
        up = float(uptime)
        masked = _MASKED in map(str.strip, rest)
    except (ValueError, IndexError) as error:
        raise HoldfastError(
            f"logind's answer is invalid ({error}): {text!r}. The node needs systemd 239 or later with busctl."
        ) from error
    return Logind(boot, preparing.split()[-1:] == ["true"], inhibitors, up, masked)


def sentence(blocks: list[Inhibitor]) -> str:
    """Describe locks: who, why, since when."""
    return "; ".join(f'{item.who} ("{item.why}", since {item.since or "an unknown time"})' for item in blocks)


def _words(text: str) -> list[str]:
    """Split what busctl prints: bare words, and strings in double quotes with the escapes of C."""
    return [_unescape(found[1]) if found[1] is not None else found[0] for found in _WORD.finditer(text)]


def _unescape(text: str) -> str:
    """Undo systemd's cescape(), which writes each byte outside of ASCII in octal."""
    raw = re.sub(
        rb"\\([0-7]{3}|.)",
        lambda found: bytes([int(found[1], 8)]) if len(found[1]) == 3 else _ESCAPES.get(found[1], found[1]),
        text.encode(),
        flags=re.DOTALL,
    )
    return raw.decode("utf-8", "replace")


def lock_times(lines: Iterable[str]) -> dict[tuple[str, str, str], str]:
    """Return since when each lock has been held, by process id, who and why.

    Args:
        lines: For each file of logind, the seconds at which it was written, and the lines in it.
    """
    found: dict[tuple[str, str, str], str] = {}
    seconds = 0
    note: dict[str, str] = {}
    for line in lines:
        name, assigned, value = line.partition("=")
        if assigned:
            note[name] = value
        elif line.isdecimal():
            seconds, note = int(line), {}
        if seconds and name == "WHY" and note.keys() >= {"PID", "WHO"}:
            found[note["PID"], _noted(note["WHO"]), _noted(value)] = moment(seconds)
    return found


def _noted(text: str) -> str:
    """Undo how logind writes a text: escaped, and by new versions in quotes, with the escapes of the shell, too."""
    return _unescape(re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text)


def moment(seconds: float) -> str:
    """A time of the node's clock as text."""
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
