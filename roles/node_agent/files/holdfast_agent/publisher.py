# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The thread that writes the condition and Events to the API server, one after another, and the condition first."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import alerts
from .api import MERGE, Api, Away, Refused
from .condition import Condition, of_node, patch_for
from .config import Config
from .holds import Hold

LOG = logging.getLogger(__name__)
EVENTS = "/api/v1/namespaces/default/events"
DONE, AWAY, REFUSED = "done", "away", "refused"
# Holders wait for the condition, and nobody for an Event.
_CONDITION, _EVENT = 0, 1
# Seconds for which an API server that has just started may deny what it allowed before (issue 101422 of Kubernetes).
_MAY_DENY = 60.0


@dataclass(frozen=True)
class Outcome:
    """The result of a write.

    Attributes:
        kind: DONE, AWAY or REFUSED.
        error: Why it failed.
        retry_after: Seconds that the server asks to wait before the next try.
    """

    kind: str
    error: str = ""
    retry_after: float = 0.0


Done = Callable[[Outcome], None]


class Publisher:
    """Writes in its own thread, then calls ``done`` with the outcome."""

    def __init__(self, api: Api, config: Config) -> None:
        self._api = api
        self._config = config
        self._node = f"/api/v1/nodes/{config.node_name}"
        # Ordered by the first two: what is urgent, then what came first.
        self._queue: queue.PriorityQueue[tuple[int, int, Callable[[], None], Done]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._current: dict[str, Any] | None = None
        self._has_looked = False
        self._busy_since: float | None = None
        # Since when each write of the condition is denied.
        self._denied_since: float | None = None

    @property
    def busy_seconds(self) -> float:
        """How long the current write has taken."""
        since = self._busy_since
        return time.monotonic() - since if since is not None else 0.0

    def start(self) -> None:
        threading.Thread(target=self._run, name="publish", daemon=True).start()

    def _run(self) -> None:
        while True:
            _urgency, _number, work, done = self._queue.get()
            self._busy_since = time.monotonic()
            outcome = _outcome(work)
            self._busy_since = None
            done(outcome)

    def condition(self, condition: Condition, done: Done) -> None:
        self._queue.put((_CONDITION, next(self._numbers), lambda: self._write_condition(condition), done))

    def event(self, hold: Hold, done: Done) -> None:
        self._queue.put((_EVENT, next(self._numbers), lambda: self._write_event(hold), done))

    def write_condition(self, condition: Condition) -> None:
        """Write the condition, and nothing else of the Node's status."""
        if not self._has_looked:
            self.look()
        patch = patch_for(condition, self._current, self._api.clock.text())
        self._current = of_node(self._api.ask("PATCH", f"{self._node}/status", patch, kind=MERGE))

    def _write_condition(self, condition: Condition) -> None:
        denied_since, self._denied_since = self._denied_since, None
        try:
            self.write_condition(condition)
        except Refused as error:
            if error.status == 403:
                self._denied_since = denied_since or time.monotonic()
            # Only these are final: the Node is gone, or the agent has no right to write it.
            if error.status != 404 and not self._is_denied_for_good():
                raise Away(str(error)) from error
            raise

    def _is_denied_for_good(self) -> bool:
        return self._denied_since is not None and time.monotonic() - self._denied_since >= _MAY_DENY

    def look(self) -> dict[str, Any] | None:
        """Read the current condition, whose transition time has to be kept."""
        self._current = of_node(self._api.ask("GET", self._node))
        self._has_looked = True
        return self._current

    def _write_event(self, hold: Hold) -> None:
        body = alerts.event(hold, self._config.node_name, self._api.clock.text(), self._config.alert_timeout)
        try:
            self._api.ask("POST", EVENTS, body)
        except Refused as error:
            # The agent wrote this Event before.
            if error.status != 409:
                raise


def _outcome(work: Callable[[], None]) -> Outcome:
    try:
        work()
    except Away as error:
        return Outcome(AWAY, str(error), error.retry_after)
    except Refused as error:
        return Outcome(REFUSED, str(error))
    except Exception as error:
        LOG.exception("This is a bug in the agent.")
        return Outcome(AWAY, repr(error))
    return Outcome(DONE)
