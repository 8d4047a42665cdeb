# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells of holds that are held too long: one Event for each, over restarts too."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from . import alerts
from .holds import Hold
from .loop import Timer, post, report
from .publisher import AWAY, REFUSED, Publisher
from .store import State

LOG = logging.getLogger(__name__)

# Clocks are set now and then; so long at most is an alert computed ahead.
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
        self._told = state.alerts()
        self._telling: set[str] = set()
        self._timer = Timer(lambda: report(self._look_again))

    def look(self, holds: tuple[Hold, ...], away: bool) -> None:
        """Tell of those that are due, and come back for the next."""
        self._holds, self._away = holds, away
        self._look_again()

    def _look_again(self) -> None:
        self._timer.stop()
        if not self._timeout:
            return
        now = self._now()
        for hold in alerts.overdue(self._holds, now, self._timeout):
            self._tell(hold)
        left = alerts.next_due(self._holds, now, self._timeout)
        if left is not None:
            self._timer.start(int(min(left, _LONGEST_SECONDS)) + 1)

    def _tell(self, hold: Hold) -> None:
        mark = alerts.mark(hold)
        if mark in self._told or mark in self._telling or self._away:
            return
        self._telling.add(mark)
        self._publisher.event(hold, lambda outcome, said: post(report, self._on_told, hold, outcome, said))

    def _on_told(self, hold: Hold, outcome: str, said: str) -> None:
        mark = alerts.mark(hold)
        self._telling.discard(mark)
        if outcome == AWAY:
            # Tried again with the next news, at the latest with the next sign of life.
            LOG.warning("The Event for %s was not written: %s", hold.entry, said)
            return
        LOG.warning("%s has held this node since %s, too long.", hold.entry, hold.acquired)
        if outcome == REFUSED:
            LOG.error("The API server refused the Event for it: %s", said)
        self._told = frozenset({mark, *self._told} & {alerts.mark(item) for item in self._holds})
        try:
            self._state.write_alerts(self._told)
        except OSError as error:
            LOG.error("It can't be noted on disk: %s", error)
