# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes one Event for each overdue hold, also across restarts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from . import alerts
from .holds import Hold
from .loop import Timer, post, report
from .publisher import AWAY, REFUSED, Outcome, Publisher
from .store import State

LOG = logging.getLogger(__name__)

# Clocks can be set, so the agent looks at them at least this often.
_LONGEST_SECONDS = 3600


class OverdueHolds:
    """Writes the Events when they are due, by the API server's clock."""

    def __init__(self, publisher: Publisher, state: State, now: Callable[[], datetime], timeout: int) -> None:
        self._publisher = publisher
        self._state = state
        self._now = now
        self._timeout = timeout
        self._holds: tuple[Hold, ...] = ()
        self._away = False
        self._sent = state.alerts()
        self._sending: set[str] = set()
        self._timer = Timer(lambda: report(self._look_again))

    def look(self, holds: tuple[Hold, ...], away: bool) -> None:
        """Write the Events that are due, and schedule the next look."""
        self._holds, self._away = holds, away
        self._look_again()

    def _look_again(self) -> None:
        self._timer.stop()
        if not self._timeout:
            return
        now = self._now()
        for hold in alerts.overdue(self._holds, now, self._timeout):
            self._send(hold)
        left = alerts.next_due(self._holds, now, self._timeout)
        if left is not None:
            self._timer.start(int(min(left, _LONGEST_SECONDS)) + 1)

    def _send(self, hold: Hold) -> None:
        mark = alerts.mark(hold)
        if mark in self._sent or mark in self._sending or self._away:
            return
        self._sending.add(mark)
        self._publisher.event(hold, lambda outcome: post(report, self._on_answer, hold, outcome))

    def _on_answer(self, hold: Hold, outcome: Outcome) -> None:
        mark = alerts.mark(hold)
        self._sending.discard(mark)
        if outcome.kind == AWAY:
            # The next news repeats this, at the latest the next heartbeat.
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
