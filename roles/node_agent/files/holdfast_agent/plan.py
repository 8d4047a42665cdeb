# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one rule that decides what is done next.

It is asked again after each act, with what is known then, so that it does not matter in which order news comes or which
act fails. What it keeps, at every instant:

- a hold that stands is locked before an old lock is let go;
- the condition names a hold only while it is locked and on disk, and stops naming it before its lock goes;
- what may be named on the server is on disk, so that it is locked again after a loss of power;
- until the API server has spoken, and while it is away, nothing is let go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from .bounds import cut, some
from .condition import Condition, condition_for
from .holds import Hold, merged


@dataclass
class Facts:
    """What is known."""

    enforcement: str
    # Units to mask while anything holds, if masks are wanted at all.
    units: frozenset[str] = frozenset()
    # Those that stand: by the API, or by the disk until the API has spoken.
    holds: tuple[Hold, ...] = ()
    synced: bool = False
    # Why the API server does not answer; empty while it does. The plan does not depend on it.
    api_error: str = ""
    shutting_down: bool = False
    # Keys of the locks that logind has, whether wanted or not; and what went wrong with others.
    locks: frozenset[str] = frozenset()
    failed_locks: dict[str, str] = field(default_factory=dict)
    # Units that are masked; those of them, or others, that are masked by us; and those that could not be.
    masked: frozenset[str] = frozenset()
    our_masks: frozenset[str] = frozenset()
    failed_masks: dict[str, str] = field(default_factory=dict)
    # What is on disk.
    stored: tuple[Hold, ...] = ()
    store_failed: str = ""
    # The condition on the server as far as known, whether a write of it is under way, or has to wait.
    published: Condition | None = None
    publishing: bool = False
    publish_waits: bool = False
    # The server said that it will never take it: the Node is gone, or we have no right to.
    publish_refused: bool = False

    @property
    def observes(self) -> bool:
        return self.enforcement == "observe"

    @property
    def wanted_units(self) -> frozenset[str]:
        return self.units if self.enforcement == "strict" and self.holds else frozenset()


@dataclass(frozen=True)
class Lock:
    """Take these locks."""

    holds: tuple[Hold, ...]


@dataclass(frozen=True)
class Mask:
    """Mask these units, for this boot."""

    units: frozenset[str]


@dataclass(frozen=True)
class Store:
    """Write these holds to disk."""

    holds: tuple[Hold, ...]


@dataclass(frozen=True)
class Publish:
    """Write the condition."""

    condition: Condition


@dataclass(frozen=True)
class Unlock:
    """Let these locks go."""

    keys: frozenset[str]


@dataclass(frozen=True)
class Unmask:
    """Take these masks away; they are ours."""

    units: frozenset[str]


Act = Union[Lock, Mask, Store, Publish, Unlock, Unmask]


def secured(facts: Facts) -> frozenset[str]:
    """Keys of the holds that may be named: locked now, and again after a loss of power."""
    return facts.locks & {hold.key for hold in facts.stored} & {hold.key for hold in facts.holds}


def wanted_condition(facts: Facts) -> Condition:
    """What the condition is to say as things are."""
    return condition_for(facts.holds, secured(facts), problems(facts), observe=facts.observes)


def problems(facts: Facts) -> list[str]:
    """What falls short while something holds, in words."""
    unlocked = [
        f"{hold.entry} ({cut(facts.failed_locks[hold.key])})" for hold in facts.holds if hold.key in facts.failed_locks
    ]
    found = [f"no lock for {some(unlocked, 5)}"] if unlocked else []
    failed = sorted(unit for unit in facts.failed_masks if unit in facts.wanted_units)
    if failed:
        found.append("not masked: " + ", ".join(f"{unit} ({facts.failed_masks[unit]})" for unit in failed))
    if facts.store_failed:
        found.append(f"not on disk ({facts.store_failed})")
    return found


def next_act(facts: Facts) -> Act | None:
    """What to do next, or nothing until there is news."""
    if facts.shutting_down:
        # Leases matter again after the boot; what is locked and masked stays so to the end.
        return None
    return _secure(facts) or _confirm(facts) or _let_go(facts)


def _secure(facts: Facts) -> Act | None:
    if not facts.observes:
        missing = tuple(hold for hold in facts.holds if hold.key not in facts.locks | facts.failed_locks.keys())
        if missing:
            return Lock(missing)
    bare = facts.wanted_units - facts.masked - facts.failed_masks.keys()
    if bare:
        return Mask(bare)
    both = merged(facts.stored, facts.holds)
    if both != facts.stored and not facts.store_failed:
        return Store(both)
    return None


def _confirm(facts: Facts) -> Act | None:
    if not facts.synced or facts.publishing or facts.publish_waits:
        return None
    wanted = wanted_condition(facts)
    return Publish(wanted) if wanted != facts.published else None


def _let_go(facts: Facts) -> Act | None:
    confirmed = facts.published == wanted_condition(facts) or facts.publish_refused
    if not facts.synced or facts.publishing or not confirmed:
        return None
    wanted = frozenset() if facts.observes else frozenset(hold.key for hold in facts.holds)
    if not wanted <= facts.locks:
        # An old lock is better than none.
        return None
    if facts.locks - wanted:
        return Unlock(facts.locks - wanted)
    if facts.our_masks - facts.wanted_units:
        return Unmask(facts.our_masks - facts.wanted_units)
    if facts.stored != facts.holds and not facts.store_failed:
        return Store(facts.holds)
    return None
