# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about manual locks: what logind accepts, which unit holds a lock, and how a lock replaces another one.

Each name has two units. The second one is for replacing a lock with a different one: the new lock exists before the old
one goes. If a module dies in between, the next module reaches the same end.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._api.errors import InvalidInput, Refused
from .inhibitor_rules import AGENT, Inhibitor

BLOCK, DELAY = "block", "delay"
MODES = (BLOCK, DELAY)
# In logind's order.
WHAT = (
    "shutdown",
    "sleep",
    "idle",
    "handle-power-key",
    "handle-reboot-key",
    "handle-suspend-key",
    "handle-hibernate-key",
    "handle-lid-switch",
)
_DELAYED = ("shutdown", "sleep")
_SINCE = {"handle-reboot-key": 248}

# A unit's name has at most 255 characters, and the names of its drop-in directories are longer.
LONGEST_NAME = 200
LONGEST_WHY = 1024
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Lock:
    """A wanted lock."""

    name: str
    what: tuple[str, ...]
    why: str
    mode: str

    def is_held_by(self, found: Inhibitor | None) -> bool:
        """Whether ``found``, as logind lists it, is this lock."""
        return found is not None and (
            set(found.what.split(":")) == set(self.what)
            and (found.who, found.why, found.mode) == (self.name, self.why, self.mode)
        )


@dataclass(frozen=True)
class Slot:
    """The current state of one of the two units of a name.

    Attributes:
        unit: Name of the unit.
        ours: Whether it is a lock unit of this collection; None if there is no such unit.
        lock: The lock that logind lists for it.
        state: Its state, for messages.
    """

    unit: str
    ours: bool | None = None
    lock: Inhibitor | None = None
    state: str = ""


@dataclass(frozen=True)
class Plan:
    """What to do, in this order.

    Attributes:
        clear: Units to stop first, to free a unit's name for the start.
        start: Unit to start; None if none is needed.
        holder: Unit that holds the lock in the end; None if the lock is released.
        release: Units to stop once logind lists the lock.
    """

    clear: tuple[str, ...] = ()
    start: str | None = None
    holder: str | None = None
    release: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        return bool(self.clear or self.start or self.release)


def check_name(name: str) -> None:
    """Refuse a name that can't be part of a unit's name, or that the node agent uses.

    Raises:
        InvalidInput: The name is refused.
    """
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise InvalidInput(
            f"name {name!r} can't be part of a systemd unit's name. Use letters of ASCII, digits, '_', '-' and '.', at "
            f"most {LONGEST_NAME} characters, and start with a letter, a digit or '_'.",
            name=name,
        )
    if name == AGENT:
        raise InvalidInput(
            f'The name "{name}" belongs to the node agent, and other tools treat its locks as holds. Use another name.',
            name=name,
        )


def wanted(name: str, what: Sequence[str], why: str, mode: str, systemd_version: int) -> Lock:
    """The wanted lock, if logind would accept it.

    Raises:
        InvalidInput: logind would refuse it.
    """
    check_name(name)
    unknown = [item for item in what if item not in WHAT]
    if unknown or not what:
        found = f"has {', '.join(map(repr, unknown))}" if unknown else "is empty"
        raise InvalidInput(f"what {found}. logind knows {', '.join(WHAT)}.", what=list(what))
    for item in what:
        if systemd_version < _SINCE.get(item, 0):
            raise InvalidInput(
                f"what has {item}, which systemd knows since {_SINCE[item]}; this node has {systemd_version}.",
                what=list(what),
            )
    if mode not in MODES:
        raise InvalidInput(f"mode is {mode!r}; it has to be one of {', '.join(MODES)}.", mode=mode)
    if mode == DELAY and not set(what) <= set(_DELAYED):
        raise InvalidInput(
            f"logind delays only {' and '.join(_DELAYED)}, and what has "
            f"{', '.join(item for item in what if item not in _DELAYED)}. Use mode: block, or two locks.",
            what=list(what),
            mode=mode,
        )
    return Lock(name, tuple(item for item in WHAT if item in what), _checked(why), mode)


def _checked(why: str) -> str:
    """The text without spaces at its ends: logind drops them when it restarts."""
    why = why.strip()
    if not why:
        raise InvalidInput("why must not be empty. It tells people why the node stays up.")
    if len(why) > LONGEST_WHY:
        raise InvalidInput(f"why has {len(why)} characters; at most {LONGEST_WHY} are allowed.")
    # Tested with systemd 252 and 257: a lock whose reason ends in a backslash is gone after a restart of logind.
    if "\\" in why:
        raise InvalidInput(
            "why has a backslash, which logind does not read back correctly when it restarts. Leave it out."
        )
    for character in why:
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise InvalidInput(f"why has the character {character!r}, which no list of locks can show. Leave it out.")
    return why


def units(name: str) -> tuple[str, str]:
    """The units that may hold the lock of a name. A name has no colon, so no two names share a unit."""
    return f"holdfast-lock-{name}.service", f"holdfast-lock-{name}:2.service"


def plan(slots: Sequence[Slot], lock: Lock | None) -> Plan:
    """How to get from the current units to one lock, or to none.

    Raises:
        Refused: A unit of that name does not belong to this collection.
    """
    for slot in slots:
        if slot.ours is False:
            raise Refused(
                f"The unit {slot.unit} already exists and is not a lock of this module ({slot.state}). Nothing was "
                "changed. Use another name, or remove the unit.",
                unit=slot.unit,
            )
    mine = [slot for slot in slots if slot.ours]
    if lock is None:
        return Plan(release=tuple(slot.unit for slot in mine))
    held = next((slot.unit for slot in mine if lock.is_held_by(slot.lock)), None)
    if held:
        return Plan(holder=held, release=tuple(slot.unit for slot in mine if slot.unit != held))
    free = next((slot.unit for slot in slots if slot.ours is None), None)
    if free:
        return Plan(start=free, holder=free, release=tuple(slot.unit for slot in mine))
    # One unit must go first, and it must not be the only one with a lock.
    first = min(mine, key=lambda slot: slot.lock is not None).unit
    return Plan((first,), first, first, tuple(slot.unit for slot in mine if slot.unit != first))


def describe(lock: Inhibitor, unit: str | None) -> dict[str, Any]:
    """A lock as results show it."""
    return {**vars(lock), "what": lock.what.split(":"), "unit": unit}


def predict(lock: Lock, unit: str | None) -> dict[str, Any]:
    """A lock as results show it in check mode: its process and its start are not known yet."""
    return describe(Inhibitor(":".join(lock.what), lock.name, lock.why, lock.mode, 0, 0), unit) | {"pid": None}


def lasting(lock: dict[str, Any] | None) -> dict[str, Any] | None:
    """The fields of a lock that a diff shows."""
    return lock and {key: lock[key] for key in ("who", "what", "why", "mode", "unit")}
