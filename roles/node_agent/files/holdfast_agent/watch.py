# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The thread that lists and watches the Leases of this node."""

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
# Short enough to notice a server that keeps its connections open and sends nothing.
_WATCH_SECONDS = 120
_GRACE = 10
_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# A watch that ends sooner does not count as a success, however it ends.
_LASTS = 10
# Seconds. Versions expire for many nodes at once, so their new lists are spread.
_SPREAD = 1.0
_PAGE = "100"


class Expired(Exception):
    """The resource version is too old to resume from."""


class Watcher:
    """Reports the holds whenever they change. Other changes of Leases stay in this thread.

    Args:
        on_holds: Receives the current holds after each list and each change.
        on_error: Receives an error while the server is unavailable, and an empty text when it is back.
        sleep: Waits between two requests.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        api: Api,
        config: Config,
        on_holds: Callable[[tuple[Hold, ...]], None],
        on_error: Callable[[str], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._namespaces = config.namespaces
        self._on_holds = on_holds
        self._on_error = on_error
        self._selector = f"metadata.name={config.node_name},{FIELD_SELECTOR}"
        self._holds: dict[str, Hold] = {}
        # Namespaces whose Leases do not count, and that a warning has named.
        self._left_out: set[str] = set()
        self._sleep = sleep
        self._clock = clock
        # Requests in a row without news. A list does not reset this: lists succeed even if each watch ends at once.
        self._failures = 0
        self._away = False
        self._last_activity = self._last_line = clock()
        self.last_contact: datetime | None = None

    def start(self) -> None:
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def _run(self) -> None:
        version = ""
        while True:
            self._last_activity = self._clock()
            try:
                version = self._follow(version) if version else self._list()
            except Expired:
                version = ""
                self._pause(_SPREAD)
            except Refused as error:
                version = ""
                self._failed(str(error))
            except Away as error:
                self._failed(str(error), error.retry_after)

    @property
    def quiet_seconds(self) -> float:
        """How long the thread has neither received anything nor started a request or a pause."""
        return self._clock() - self._last_activity

    def _failed(self, error: str, retry_after: float = 0.0) -> None:
        self._away = True
        self._on_error(error)
        self._pause(least=retry_after)

    def _pause(self, spread: float = 0.0, least: float = 0.0) -> None:
        """Wait before the next request, longer after each one that brought no news."""
        longest = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
        self._failures += 1
        # Random, so that not all nodes reach a returning server at once.
        pause = longest * random.uniform(0.5, 1)  # noqa: S311 - not a secret
        # What the server asks for is the same for all nodes, so the pause comes on top of it.
        self._sleep(least + pause + random.uniform(0, spread))  # noqa: S311 - not a secret

    def _contact(self) -> None:
        self._last_activity = self._clock()
        self.last_contact = self._api.clock.now()

    def _back(self) -> None:
        if self._away:
            self._away = False
            self._on_error("")

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
                raise Away(f"the answer is not a list of Leases ({error!r})") from error
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        self._holds = found
        self._last_line = self._clock()
        self._contact()
        self._back()
        self._on_holds(ordered(found.values()))
        return version

    def _follow(self, version: str) -> str:
        """Watch until the server ends it. Returns the version to resume from, or nothing if a new list is needed."""
        query = {
            "fieldSelector": self._selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
            "resourceVersion": version,
        }
        opened, started, changed = self._clock(), False, False
        try:
            for line in self._api.lines(LEASES, _WATCH_SECONDS + _GRACE, **query):
                self._contact()
                started = True
                if line:
                    self._last_line = self._clock()
                    version, is_change = self._handle(line)
                    changed = changed or is_change
                    self._back()
        except Refused as error:
            if error.status == 410:
                raise Expired from error
            raise
        except Away as error:
            if not started:
                raise
            # The server answered. If it is unavailable now, the next request fails.
            LOG.debug("A watch broke off: %s", error)
        lasted = self._clock() - opened >= _LASTS
        if changed or lasted:
            self._failures = 0
            self._back()
        if not lasted:
            if self._failures == len(_PAUSES):
                LOG.warning("Watches end at once without events, so the agent lists the Leases again and again.")
            self._pause()
        # A server sends a bookmark about each minute. After a restore of etcd, it sends nothing until it comes to this
        # version again.
        silent = self._clock() - self._last_line >= _WATCH_SECONDS
        return version if (changed or lasted) and not silent else ""

    def _handle(self, line: bytes) -> tuple[str, bool]:
        """The version to resume from, and whether a Lease changed since the previous version."""
        try:
            event = json.loads(line)
            kind, item = str(event["type"]), event["object"]
            if kind == "ERROR":
                LOG.info("The watch starts again: %s", item.get("message"))
                raise Expired
            version = str(item["metadata"]["resourceVersion"])
            is_change = kind != "BOOKMARK"
            holds_changed = is_change and self._apply(kind, item)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # A proxy between the server and the agent can send anything.
            LOG.warning("A line of the watch is invalid: %r", error)
            raise Expired from error
        if holds_changed:
            self._on_holds(ordered(self._holds.values()))
        return version, is_change

    def _apply(self, kind: str, item: dict[str, Any]) -> bool:
        """Apply an event. Returns whether it changed the holds."""
        namespace = item["metadata"]["namespace"]
        before = self._holds.pop(namespace, None)
        if kind != "DELETED":
            self._take(self._holds, item)
        return before != self._holds.get(namespace)

    def _take(self, into: dict[str, Hold], item: dict[str, Any]) -> None:
        hold, namespace = hold_of(item, self._namespaces), item["metadata"]["namespace"]
        if hold:
            into[hold.namespace] = hold
        elif self._namespaces and hold_of(item) and namespace not in self._left_out:
            # A holder may renew its Lease every few seconds.
            self._left_out.add(namespace)
            LOG.warning(
                "A Lease in %s does not hold this node: the setting namespaces leaves its namespace out.", namespace
            )
