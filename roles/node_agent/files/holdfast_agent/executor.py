# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries out the acts of the plan, and records in the facts what each act changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import dbus

from .bounds import cut
from .condition import Condition
from .holds import Hold
from .logind import Locks
from .loop import post
from .masks import Masks
from .plan import Act, Facts, Lock, Mask, Publish, Store, Unlock, Unmask
from .publisher import DONE, REFUSED, Outcome, Publisher
from .store import State

LOG = logging.getLogger(__name__)


class Executor:
    """Carries out acts on one node.

    Args:
        shutting_down: Asks PID 1 whether it shuts the node down.
        published: Called after the API server answered to a write of the condition.
    """

    def __init__(
        self,
        facts: Facts,
        locks: Locks,
        masks: Masks,
        state: State,
        publisher: Publisher,
        *,
        shutting_down: Callable[[], bool],
        published: Callable[[], None],
    ) -> None:
        self._facts = facts
        self._locks = locks
        self._masks = masks
        self._state = state
        self._publisher = publisher
        self._shutting_down = shutting_down
        self._published = published
        # Monotonic seconds.
        self._publish_after = 0.0
        self._logged: Condition | None = None

    @property
    def failed(self) -> bool:
        """Whether an act failed and may succeed later."""
        facts = self._facts
        return bool(facts.failed_locks or facts.store_failed or facts.publish_waits or self._masks.worth_retrying)

    def forget_failures(self, *, of_writes: bool = True) -> None:
        """Let the plan try again what failed, except a write that the server asked not to repeat yet.

        Args:
            of_writes: Whether this includes writes of the condition.
        """
        self._facts.failed_locks.clear()
        self._facts.store_failed = ""
        if of_writes and time.monotonic() >= self._publish_after:
            self._facts.publish_waits = False
        self._masks.forget_failures()

    def carry_out(self, act: Act) -> None:
        LOG.debug("%s", act)
        if isinstance(act, (Lock, Mask)) and self._is_too_late():
            return
        if isinstance(act, Lock):
            self._lock(act.holds)
        elif isinstance(act, Mask):
            self._masks.mask(act.units)
        elif isinstance(act, Store):
            self._store(act.holds)
        elif isinstance(act, Publish):
            self._publish(act)
        elif isinstance(act, Unlock):
            self._locks.release(act.keys)
            self._facts.locks = self._locks.keys
        elif isinstance(act, Unmask):
            self._masks.unmask(act.units)

    def verify_locks(self) -> frozenset[str]:
        """The keys of the locks that logind does not list any more.

        Raises:
            dbus.DBusException: logind does not answer.
        """
        lost = self._locks.lost(self._facts.holds)
        if lost:
            LOG.warning("%d locks were lost and are taken again.", len(lost))
        self._facts.locks = self._locks.keys
        return lost

    def _lock(self, holds: tuple[Hold, ...]) -> None:
        failed = self._locks.take(holds)
        self._facts.failed_locks.update(failed)
        for key, cause in failed.items():
            LOG.error("No lock for %s: %s", next(hold.entry for hold in holds if hold.key == key), cause)
        self._facts.locks = self._locks.keys

    def _store(self, holds: tuple[Hold, ...]) -> None:
        try:
            self._state.write_holds(holds)
        except OSError as error:
            LOG.error("The holds can't be written to disk: %s", error)
            self._facts.store_failed = str(error)
        else:
            self._facts.stored = holds

    def _publish(self, act: Publish) -> None:
        if act.named and not self._still_locked():
            return
        self._facts.publishing = True
        self._facts.named |= act.named
        self._publisher.condition(act.condition, lambda outcome: post(self._record_published, act, outcome))

    def _still_locked(self) -> bool:
        """Check the locks once more before a holder relies on them."""
        try:
            lost, down = self.verify_locks(), self._goes_down()
        except dbus.DBusException as error:
            LOG.error("logind does not list its locks, or systemd does not list its units: %s", error)
            self._facts.publish_waits = True
            return False
        if down:
            return False
        # A lock that logind never lists would otherwise be taken again in an endless loop.
        self._facts.failed_locks.update(dict.fromkeys(lost, "logind does not list it"))
        return not lost

    def _is_too_late(self) -> bool:
        """Whether the node already goes down. A lock has no effect then, and a mask would stop the shutdown halfway."""
        try:
            return self._goes_down()
        except dbus.DBusException as error:
            LOG.warning("systemd does not say whether it shuts the node down: %s", error)
            return False

    def _goes_down(self) -> bool:
        if self._shutting_down():
            LOG.info("PID 1 shuts the node down: Leases matter again after the boot.")
            self._facts.shutting_down = True
        return self._facts.shutting_down

    def _record_published(self, act: Publish, outcome: Outcome) -> None:
        facts = self._facts
        facts.publishing = False
        if outcome.kind == REFUSED:
            facts.named = frozenset()
        if outcome.kind == DONE:
            facts.published, facts.named = act.condition, act.named
            if act.condition != self._logged:
                # The condition is written again from time to time, although nothing has changed.
                self._logged = act.condition
                LOG.info("The condition says %s: %s", act.condition.status, cut(act.condition.reason, 1000))
        else:
            # The write may have succeeded although its answer was lost.
            facts.published = None
            facts.publish_waits = True
            self._publish_after = time.monotonic() + outcome.retry_after
            LOG.log(
                logging.DEBUG if facts.api_error else logging.WARNING,
                "The condition was not written: %s",
                outcome.error,
            )
        self._published()
