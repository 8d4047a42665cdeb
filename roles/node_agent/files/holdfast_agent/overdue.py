# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes one Event for each overdue hold, also across restarts, and few for a Lease whose holder changes often."""

from __future__ import annotations

import logging

from . import alerts
from .clock import ServerClock
from .holds import Hold
from .loop import Timer, post, report
from .publisher import AWAY, REFUSED, Outcome, Publisher
from .store import State

LOG = logging.getLogger(__name__)

# Clocks can be set, so the agent looks at them at least this often.
_LONGEST_SECONDS = 3600
# Until an Event that was not written is tried again.
_AGAIN_SECONDS = 30


class OverdueHolds:
    """Writes the Events when they are due, by the API server's clock.

    A holder can write any ``acquireTime``, and change its Lease at any rate. With times that are right, the Lease of a
    namespace is overdue at most once in ``timeout`` seconds, so it gets no more Events than that.
    """

    def __init__(self, publisher: Publisher, state: State, clock: ServerClock, timeout: int) -> None:
        self._publisher = publisher
        self._state = state
        self._clock = clock
        self._timeout = timeout
        self._holds: tuple[Hold, ...] = ()
        self._away = False
        self._sent = state.alerts()
        # Namespaces whose Event is under way; when, in monotonic seconds, others may have their next; and those that
        # wait for that, and were logged.
        self._sending: set[str] = set()
        self._not_before: dict[str, float] = {}
        self._left_out: set[str] = set()
        self._timer = Timer(lambda: report(self._look_again))

    def look(self, holds: tuple[Hold, ...], away: bool) -> None:
        """Write the Events that are due, and schedule the next look."""
        self._holds, self._away = holds, away
        self._look_again()

    def _look_again(self) -> None:
        self._timer.stop()
        if not self._timeout:
            return
        now = self._clock.now()
        for hold in alerts.overdue(self._holds, now, self._timeout):
            self._send(hold)
        left = alerts.next_due(self._holds, now, self._timeout)
        if left is not None:
            self._timer.start(int(min(left, _LONGEST_SECONDS)) + 1)

    def _send(self, hold: Hold) -> None:
        namespace = hold.namespace
        if alerts.mark(hold) in self._sent or namespace in self._sending or self._away:
            return
        if self._clock.monotonic() < self._not_before.get(namespace, 0.0):
            if namespace not in self._left_out:
                self._left_out.add(namespace)
                LOG.warning("%s is overdue, and gets no Event yet: its Lease had one a short time ago.", hold.entry)
            return
        self._sending.add(namespace)
        self._left_out.discard(namespace)
        self._publisher.event(hold, lambda outcome: post(report, self._on_answer, hold, outcome))

    def _on_answer(self, hold: Hold, outcome: Outcome) -> None:
        mark, now = alerts.mark(hold), self._clock.monotonic()
        self._sending.discard(hold.namespace)
        self._not_before = {namespace: time for namespace, time in self._not_before.items() if time > now}
        self._not_before[hold.namespace] = now + (_AGAIN_SECONDS if outcome.kind == AWAY else self._timeout)
        if outcome.kind == AWAY:
            # The news after the pause repeats this, at the latest the next heartbeat.
            self._left_out.add(hold.namespace)
            LOG.warning("The Event for %s was not written: %s", hold.entry, outcome.error)
            return
        LOG.warning("%s has held this node since %s, too long.", hold.entry, hold.acquired)
        if outcome.kind == REFUSED:
            LOG.error("The API server refused the Event for it: %s", outcome.error)
        self._sent = frozenset({mark, *self._sent} & {alerts.mark(item) for item in self._holds})
        try:
            self._state.write_alerts(self._sent)
        except OSError as failure:
            LOG.error("The Event can't be recorded on disk: %s", failure)
