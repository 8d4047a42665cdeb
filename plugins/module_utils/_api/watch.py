# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List, then watch: the one loop behind every wait.

It survives expired resource versions (410), servers that end the watch, and servers that are away for a while.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Callable

from .cluster import Cluster
from .connection import IMPORT_ERROR
from .errors import ApiFailure, NotFound, Outdated, Unreachable
from .objects import Object

if not IMPORT_ERROR:
    from kubernetes.client.exceptions import ApiException
    from kubernetes.watch import Watch
    from urllib3.exceptions import HTTPError

_LONGEST = 240
# A watch that ends sooner, and without news, is not opened again at once.
_SHORT = 1.0
# So often at least a compare-and-swap is tried, however long one attempt takes.
_ATTEMPTS = 3
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass
class Deadline:
    """A point in monotonic time. ``seconds`` may be ``None``: never."""

    seconds: float | None
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds left; 0 when it passed."""
        return float("inf") if self.seconds is None else max(0.0, self.seconds - self.elapsed)

    @property
    def passed(self) -> bool:
        return self.left <= 0


@dataclass(frozen=True)
class Listed:
    """All objects as they are now; what was known before is to be forgotten."""

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

    It lists at least once, even after the deadline: silence is never taken for an empty collection.

    Args:
        cluster: Where.
        path: The collection.
        deadline: When to end.
        keep: Which parts of each object to keep in memory; all by default.
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
        self._watch: Any = None

    def stop(self) -> None:
        """End the following from another thread; unblocks a read that waits."""
        self._stopped = True
        if self._watch is not None:
            self._watch.stop()

    def __iter__(self) -> Iterator[Listed | Changed]:
        failures = 0
        listed = False
        while not self._stopped and not (listed and self._deadline.passed):
            try:
                # Where nothing is known yet there is nothing to go on with; later this loop asks again itself.
                items, version = self._list(patient=not listed)
                listed = True
                yield Listed(items)
                for change in self._changes(version):
                    failures = 0
                    yield change
            except (Unreachable, ApiFailure) as error:
                if isinstance(error, ApiFailure) and not passing(error.status) and error.status != 410:
                    raise
                if self._deadline.passed and not listed:
                    raise
            if self._over:
                continue
            # Also after a watch that expired: where each expires at once, the lists are many.
            self._pause(failures)
            failures += 1

    @property
    def _over(self) -> bool:
        return self._stopped or self._deadline.passed

    def _pause(self, failures: int) -> None:
        time.sleep(min(_PAUSES[min(failures, len(_PAUSES) - 1)], self._deadline.left))

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
        failures = 0
        while not self._over:
            self._watch = Watch(return_type="object")
            news = False
            opened = time.monotonic()
            try:
                for event in self._watch.stream(
                    self._open,
                    self._path,
                    resource_version=version,
                    timeout_seconds=max(1, min(_LONGEST, _whole_seconds(self._deadline.left))),
                    field_selector=self._field_selector,
                    label_selector=self._label_selector,
                ):
                    if event is None:
                        # A line that is no JSON, from whatever sits between the server and us.
                        continue
                    news = True
                    version = event["raw_object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield Changed(event["type"], self._keep(event["raw_object"]))
                    if self._over:
                        return
                if news or time.monotonic() - opened > _SHORT:
                    failures = 0
                    continue
            except ApiException as error:
                if error.status == 410:
                    return
                if not passing(error.status or 0):
                    raise _denied(self._path, error) from error
            except (HTTPError, OSError, ValueError, KeyError, Unreachable):
                # A stopped watch has its socket shut under it; the library then reports whatever it was doing.
                pass
            if self._over:
                return
            failures = 0 if news else failures + 1
            self._pause(failures)

    def _open(self, path: str, *, watch: bool = True, **more: Any) -> Any:
        answer = self._cluster.open_watch(path, watch=watch, **more)
        if self._stopped:
            # Stopped while it was opened, when the library had nothing yet to shut.
            answer.close()
            raise Unreachable(f"WATCH {path}: stopped")
        return answer


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
        until: Gets the object, or ``None`` where it does not exist.

    Returns:
        The object as it was when the condition became true or, when the deadline passed first, as last seen;
        the caller asks ``until`` again to tell one from the other.
    """
    last: Object | None = None
    for news in Follower(cluster, collection, deadline, field_selector=f"metadata.name={name}"):
        if isinstance(news, Listed):
            last = news.items[0] if news.items else None
        else:
            last = None if news.deleted else news.object
        if until(last):
            return last
    return last


def retry_conflicts(attempt: Callable[[], Any], *, seconds: float = 30) -> Any:
    """Call ``attempt`` (read, decide, compare-and-swap) again while someone else was faster or the server was away.

    The pauses are random, so that those who collide with each other part, and stay short, so that a free moment between
    two writes of somebody busy is hit.
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
            # Time in which an attempt only waited for the API server leaves others.
            if error.status != 409 or (time.monotonic() - started >= limit and failures >= _ATTEMPTS):
                raise
            # A server that is overloaded gets more and more time.
            longest = _PAUSES[min(failures, len(_PAUSES)) - 1] if isinstance(error, Outdated) else 0.2
            time.sleep(random.uniform(0, longest))  # noqa: S311 - no secret


def passing(status: int) -> bool:
    """Whether an answer of this status may be another one a moment later."""
    return status in (0, 429) or status >= 500


def _whole_seconds(seconds: float) -> int:
    return _LONGEST if seconds == float("inf") else int(seconds + 0.999)


def _denied(path: str, error: Any) -> ApiFailure | NotFound:
    if error.status == 404:
        return NotFound(f"WATCH {path}: not found", path=path)
    return ApiFailure(
        f"The API server refused to watch {path} ({error.status}): {error.reason}", status=error.status or 0
    )
