# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The thread that follows this node's Leases: list, then watch, for ever."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from .api import Api, Away, Refused
from .config import Config
from .hold_rules import FIELD_SELECTOR
from .holds import Hold, hold_of, ordered

LOG = logging.getLogger(__name__)
LEASES = "/apis/coordination.k8s.io/v1/leases"
# Short enough to notice a server that keeps its connections open and says nothing.
_WATCH_SECONDS = 120
_GRACE = 10
_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# A stream that ends sooner has not lasted, however it ends.
_LASTS = 10
# The server forgets for many nodes at once: their lists spread over so many seconds.
_SPREAD = 1.0
_PAGE = "100"


class Expired(Exception):
    """What is known is too old to go on from."""


class Watcher:
    """Tells what holds whenever that changes; what does not matter never leaves the thread.

    Args:
        tell: Gets the holds that stand, after each list and each change of them.
        tell_away: Gets what is wrong when the server is away, and nothing when it is back.
        sleep: Waits between two requests.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        api: Api,
        config: Config,
        tell: Callable[[tuple[Hold, ...]], None],
        tell_away: Callable[[str], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._namespaces = config.namespaces
        self._tell = tell
        self._tell_away = tell_away
        self._selector = f"metadata.name={config.node_name},{FIELD_SELECTOR}"
        self._holds: dict[str, Hold] = {}
        self._sleep = sleep
        self._clock = clock
        # Tries in a row that brought nothing. A list does not end them: where each stream ends at once, lists go well.
        self._failures = 0
        self._away = False
        self._stirred = clock()
        self.last_contact: datetime | None = None

    def start(self) -> None:
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def _run(self) -> None:
        version = ""
        while True:
            self._stirred = self._clock()
            try:
                version = self._follow(version) if version else self._list()
            except Expired:
                version = ""
                self._pause(_SPREAD)
            except Refused as error:
                version = ""
                self._failed(str(error))
            except Away as error:
                self._failed(str(error))

    @property
    def quiet_seconds(self) -> float:
        """Since the thread last did anything, be it to wait for its next try."""
        return self._clock() - self._stirred

    def _failed(self, error: str) -> None:
        self._away = True
        self._tell_away(error)
        self._pause()

    def _pause(self, spread: float = 0.0) -> None:
        """Wait before the next try, the longer the more of them brought nothing."""
        longest = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
        self._failures += 1
        # Each node for itself: a server that comes back should not meet all at once.
        self._sleep(longest * random.uniform(0.5, 1) + random.uniform(0, spread))  # noqa: S311 - no secret

    def _contact(self) -> None:
        self._stirred = self._clock()
        self.last_contact = self._api.clock.now()

    def _back(self) -> None:
        if self._away:
            self._away = False
            self._tell_away("")

    def _list(self) -> str:
        found: dict[str, Hold] = {}
        query = {"fieldSelector": self._selector, "limit": _PAGE}
        while True:
            page = self._api.ask("GET", LEASES, **query)
            try:
                for item in page.get("items") or []:
                    self._take(found, item)
                metadata = page["metadata"]
                version = str(metadata["resourceVersion"])
            except (KeyError, TypeError, AttributeError) as error:
                raise Away(f"an answer that is no list of Leases ({error!r})") from error
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        self._holds = found
        self._contact()
        self._back()
        self._tell(ordered(found.values()))
        return version

    def _follow(self, version: str) -> str:
        """Watch until the server ends it; the version to go on from, or nothing where a list has to tell what is so."""
        query = {
            "fieldSelector": self._selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
            "resourceVersion": version,
        }
        opened, began, told = self._clock(), False, False
        try:
            for line in self._api.lines(LEASES, _WATCH_SECONDS + _GRACE, **query):
                self._contact()
                began = True
                if line:
                    version, news = self._handle(line)
                    told = told or news
                    self._back()
        except Refused as error:
            if error.status == 410:
                raise Expired from error
            raise
        except Away as error:
            if not began:
                raise
            # The server is there, or the next request says that it is not.
            LOG.debug("A watch broke off: %s", error)
        lasted = self._clock() - opened >= _LASTS
        if told or lasted:
            self._failures = 0
            self._back()
        if not lasted:
            if self._failures == len(_PAUSES):
                LOG.warning("Watches end at once and tell nothing, so the Leases are listed again and again.")
            self._pause()
        return version if told or lasted else ""

    def _handle(self, line: bytes) -> tuple[str, bool]:
        """The version to go on from, and whether something has happened since the last one."""
        try:
            event = json.loads(line)
            kind, item = str(event["type"]), event["object"]
            if kind == "ERROR":
                LOG.info("The watch is begun anew: %s", item.get("message"))
                raise Expired
            version = str(item["metadata"]["resourceVersion"])
            news = kind != "BOOKMARK"
            changed = news and self._changed(kind, item)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # From whatever sits between the server and us.
            LOG.warning("A line of the watch was not understood: %r", error)
            raise Expired from error
        if changed:
            self._tell(ordered(self._holds.values()))
        return version, news

    def _changed(self, kind: str, item: dict[str, Any]) -> bool:
        namespace = item["metadata"]["namespace"]
        before = self._holds.pop(namespace, None)
        if kind != "DELETED":
            self._take(self._holds, item)
        return before != self._holds.get(namespace)

    def _take(self, into: dict[str, Hold], item: dict[str, Any]) -> None:
        hold = hold_of(item, self._namespaces)
        if hold:
            into[hold.namespace] = hold
        elif self._namespaces and hold_of(item):
            LOG.warning("A Lease in %s does not hold: namespaces allows others only.", item["metadata"]["namespace"])
