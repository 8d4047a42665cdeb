# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule that decides which act is next.

The agent applies it again after each act, to the facts of that moment. So neither the order of news nor a failed act
breaks what it guarantees at every moment:

- While the node is held, an old lock is released only if a current hold is locked.
- The condition names a hold only while it is locked and on disk, and stops naming it before its lock is released.
- A hold that the condition may name on the server is on disk, so that it is locked again after a power cut.
- Nothing is released before the first answer of the API server, and nothing that the condition may name while the
  server is unavailable.
- A lock, and a hold on disk, that is neither current nor named is released at once. So a Lease whose holder changes
  faster than the API server answers keeps a few locks, and does not delay other holders.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from .bounds import cut, some
from .condition import Condition, condition_for
from .holds import Hold, merged


@dataclass
class Facts:
    """The state of the node, its holds and the API server, as far as the agent knows it."""

    enforcement: str
    # Units to mask while the node is held, if enforcement is strict.
    units: frozenset[str] = frozenset()
    # The current holds: from the disk until the first list from the API (synced).
    holds: tuple[Hold, ...] = ()
    synced: bool = False
    # Why the API server does not answer; empty while it does. The plan does not depend on it.
    api_error: str = ""
    shutting_down: bool = False
    # Keys of the locks that logind has, needed or not; and the causes why others failed.
    locks: frozenset[str] = frozenset()
    failed_locks: dict[str, str] = field(default_factory=dict)
    # Units that are masked, units that the agent masked, and the causes why others failed.
    masked: frozenset[str] = frozenset()
    own_masks: frozenset[str] = frozenset()
    failed_masks: dict[str, str] = field(default_factory=dict)
    # Units whose mask could not be removed.
    failed_unmasks: frozenset[str] = frozenset()
    # The holds on disk.
    stored: tuple[Hold, ...] = ()
    store_failed: str = ""
    # The condition on the server if it is known; whether a write is under way; whether writes wait for the next try.
    published: Condition | None = None
    publishing: bool = False
    publish_waits: bool = False
    # Keys of the holds that the condition on the server may name: a write that is under way, or whose answer was lost,
    # may have succeeded. Empty after a write was refused for good: the Node is gone, or the agent has no right.
    named: frozenset[str] = frozenset()

    def adopt(self, locks: frozenset[str]) -> None:
        """Begin with the locks that the previous process left. Its condition may name all that is locked or on disk."""
        self.locks = locks
        self.named = locks | {hold.key for hold in self.stored}

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
    # Keys of the holds that it names.
    named: frozenset[str]


@dataclass(frozen=True)
class Unlock:
    """Release these locks."""

    keys: frozenset[str]


@dataclass(frozen=True)
class Unmask:
    """Remove these masks, which the agent made."""

    units: frozenset[str]


Act = Union[Lock, Mask, Store, Publish, Unlock, Unmask]


def secured(facts: Facts) -> frozenset[str]:
    """Keys of the holds that the condition may name: locked now, and again after a power cut."""
    return facts.locks & {hold.key for hold in facts.stored} & {hold.key for hold in facts.holds}


def needed_on_disk(facts: Facts) -> tuple[Hold, ...]:
    """The current holds, and those that the condition may still name."""
    return merged((hold for hold in facts.stored if hold.key in facts.named), facts.holds)


def wanted_condition(facts: Facts) -> Condition:
    """The condition that fits the facts."""
    return condition_for(facts.holds, secured(facts), problems(facts), observe=facts.observes)


def problems(facts: Facts) -> list[str]:
    """What does not work while the node is held, as phrases for the message."""
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
    """The next act; None until there is news."""
    if facts.shutting_down:
        # Leases matter again after the boot. Locks and masks stay until the end.
        return None
    return _secure(facts) or _confirm(facts) or _release(facts)


def _secure(facts: Facts) -> Act | None:
    if not facts.observes:
        missing = tuple(hold for hold in facts.holds if hold.key not in facts.locks | facts.failed_locks.keys())
        if missing:
            return Lock(missing)
    bare = facts.wanted_units - facts.masked - facts.failed_masks.keys()
    if bare:
        return Mask(bare)
    if not set(facts.holds) <= set(facts.stored) and not facts.store_failed:
        return Store(needed_on_disk(facts))
    return None


def _confirm(facts: Facts) -> Act | None:
    if not facts.synced or facts.publishing or facts.publish_waits:
        return None
    wanted = wanted_condition(facts)
    if wanted == facts.published:
        return None
    return Publish(wanted, secured(facts) if wanted.status == "True" else frozenset())


def _release(facts: Facts) -> Act | None:
    if not facts.synced:
        return None
    wanted = frozenset() if facts.observes else frozenset(hold.key for hold in facts.holds)
    if wanted and not wanted & facts.locks:
        # An old lock is better than no lock.
        return None
    unneeded = facts.locks - wanted - facts.named
    if unneeded:
        return Unlock(unneeded)
    bare = facts.own_masks - facts.wanted_units - facts.failed_unmasks
    # Without a hold to protect, the masks wait until the condition names none.
    if bare and (wanted or not facts.named):
        return Unmask(bare)
    if facts.stored != needed_on_disk(facts) and not facts.store_failed:
        return Store(needed_on_disk(facts))
    return None
