# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List, then watch: the one loop behind every wait.

It survives expired resource versions (410), servers that end the watch, and servers that are unavailable for a while.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Callable, TypeVar

from .cluster import Cluster
from .connection import IMPORT_ERROR
from .errors import ApiFailure, Outdated, Unreachable, passing
from .event_stream import EventStream
from .objects import Object
from .patience import DENIED, MAY_DENY

if not IMPORT_ERROR:
    from urllib3.exceptions import HTTPError

_LONGEST = 240
# Seconds. A watch that ends sooner, and without any change, proves nothing.
_SHORT = 1.0
# A compare-and-swap gets at least this many attempts, however long each one takes.
_ATTEMPTS = 3
# Seconds. The last one bounds how late a change is seen behind a proxy that ends each watch at once.
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)

_Result = TypeVar("_Result")


@dataclass
class Deadline:
    """A point in monotonic time, ``seconds`` after ``started``; never if ``seconds`` is ``None``."""

    seconds: float | None
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds left; 0 after the deadline."""
        return float("inf") if self.seconds is None else max(0.0, self.seconds - self.elapsed)

    @property
    def passed(self) -> bool:
        return self.left <= 0


@dataclass(frozen=True)
class Listed:
    """All objects as they are now; they replace everything known before."""

    items: list[Any]


@dataclass(frozen=True)
class Changed:
    """One object was added, modified or deleted."""

    kind: str
    object: Any

    @property
    def deleted(self) -> bool:
        return self.kind == "DELETED"


class Follower:
    """Follows a collection until a deadline or until it is stopped.

    It lists at least once, even after the deadline, so that a missing answer never counts as an empty collection.

    Args:
        cluster: The cluster that has the collection.
        path: Path of the collection.
        deadline: When to stop.
        keep: Returns the part of each object to keep in memory; by default the whole object.
    """

    def __init__(
        self,
        cluster: Cluster,
        path: str,
        deadline: Deadline,
        *,
        field_selector: str = "",
        label_selector: str = "",
        keep: Callable[[Object], Any] | None = None,
    ) -> None:
        self._cluster = cluster
        self._path = path
        self._deadline = deadline
        self._field_selector, self._label_selector = field_selector, label_selector
        self._keep = keep or (lambda item: item)
        self._stopped = False
        self._watch: EventStream | None = None
        # Requests in a row without news. A list does not reset this: lists succeed even if each watch ends at once.
        self._failures = 0
        # When the server answered the last watch.
        self._opened = float("inf")
        # Whether it has allowed both list and watch, and since when it denies them.
        self._allowed = False
        self._denied_since: float | None = None

    def stop(self) -> None:
        """Stop from another thread; unblocks a read that waits."""
        self._stopped = True
        if self._watch is not None:
            self._watch.stop()

    def __iter__(self) -> Iterator[Listed | Changed]:
        listed = False
        while not self._stopped and not (listed and self._deadline.passed):
            try:
                # The first list waits for the server, because there is nothing to report yet. Later this loop retries.
                items, version = self._list(patient=not listed)
                listed = True
                yield Listed(items)
                yield from self._changes(version)
            except (Unreachable, ApiFailure) as error:
                if isinstance(error, ApiFailure) and not self._may_pass(error.status):
                    raise
                if self._deadline.passed and not listed:
                    raise
            if not self._over:
                # Also after a watch that expired: if every watch expires at once, there would be too many lists.
                self._pause()

    @property
    def _over(self) -> bool:
        return self._stopped or self._deadline.passed

    def _may_pass(self, status: int) -> bool:
        if status not in DENIED or not self._allowed:
            return passing(status) or status == 410
        self._denied_since = self._denied_since or time.monotonic()
        return time.monotonic() - self._denied_since < MAY_DENY

    def _pause(self) -> None:
        time.sleep(min(_PAUSES[min(self._failures, len(_PAUSES) - 1)], self._deadline.left))
        self._failures += 1

    def _list(self, *, patient: bool) -> tuple[list[Any], str]:
        items: list[Any] = []
        version = ""
        for page in self._cluster.pages(
            self._path, field_selector=self._field_selector, label_selector=self._label_selector, patient=patient
        ):
            items.extend(self._keep(item) for item in page.get("items") or [])
            version = page["metadata"]["resourceVersion"]
        return items, version

    def _changes(self, version: str) -> Iterator[Changed]:
        """Changes since ``version``; returns when a new list is needed."""
        while not self._over:
            self._opened = float("inf")
            news = ended = False
            try:
                for event in self._open(version):
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        news = True
                        yield Changed(event["type"], self._keep(event["object"]))
                    if self._over:
                        return
                ended = True
            except ApiFailure as error:
                if error.status == 410:
                    return
                if not passing(error.status):
                    raise
            except (HTTPError, OSError, ValueError, KeyError, Unreachable):
                # stop() closes the socket of a watch; urllib3 then raises one of several errors.
                pass
            if news or time.monotonic() - self._opened > _SHORT:
                self._failures = 0
                if ended:
                    continue
            # Lists may work where watches don't.
            if ended or self._failures >= len(_PAUSES) or self._over:
                return
            self._pause()

    def _open(self, version: str) -> EventStream:
        stream = self._watch = self._cluster.open_watch(
            self._path,
            resource_version=version,
            timeout_seconds=max(1, min(_LONGEST, _whole_seconds(self._deadline.left))),
            field_selector=self._field_selector,
            label_selector=self._label_selector,
        )
        if self._stopped:
            # stop() came while the watch was being opened, when there was nothing to close yet.
            stream.stop()
        self._opened = time.monotonic()
        self._allowed, self._denied_since = True, None
        return stream


def only_object(news: Listed | Changed) -> Object | None:
    """The object of a watch on one name; ``None`` if it does not exist."""
    if isinstance(news, Listed):
        return news.items[0] if news.items else None
    return None if news.deleted else news.object


def wait_for(
    cluster: Cluster,
    collection: str,
    name: str,
    until: Callable[[Object | None], bool],
    deadline: Deadline,
) -> Object | None:
    """Watch one object until a condition is true.

    Args:
        collection: Path of its collection; the watch is narrowed by the field selector metadata.name.
        until: Gets the object, or ``None`` if it does not exist.

    Returns:
        The object when the condition became true or, if the deadline passed first, the object as last seen. The
        caller calls ``until`` again to tell the two cases apart.
    """
    last: Object | None = None
    for news in Follower(cluster, collection, deadline, field_selector=f"metadata.name={name}"):
        last = only_object(news)
        if until(last):
            return last
    return last


def retry_conflicts(attempt: Callable[[], _Result], *, seconds: float = 30) -> _Result:
    """Call ``attempt`` (read, decide, compare-and-swap) again after a conflict, or if the server was unavailable.

    The pauses are random, so that writers that conflict do not conflict again. After a conflict they stay short, so
    that an attempt fits between two writes of a busy writer.

    Args:
        seconds: Stop after this time, but not before the third attempt. Waits for the API server extend it.

    Raises:
        ApiFailure: The last conflict when the time has passed, or any other failure of ``attempt`` at once.
    """
    started = time.monotonic()
    limit, failures = seconds, 0
    while True:
        try:
            return attempt()
        except ApiFailure as error:
            failures += 1
            if isinstance(error, Outdated):
                limit = max(limit, seconds + error.patience)
            # The time that an attempt only waited for the API server does not count.
            if error.status != 409 or (time.monotonic() - started >= limit and failures >= _ATTEMPTS):
                raise
            # An overloaded server gets longer and longer pauses.
            longest = _PAUSES[min(failures, len(_PAUSES)) - 1] if isinstance(error, Outdated) else 0.2
            time.sleep(random.uniform(0, longest))  # noqa: S311 - no secret


def _whole_seconds(seconds: float) -> int:
    return _LONGEST if seconds == float("inf") else int(seconds + 0.999)
