# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows objects of a cluster, and sends an event for each condition that has lasted long enough.

Two threads: one follows the watch, the other waits for its events or for the moment at which a condition is due.
Neither polls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any, Protocol

from .._api.cluster import Cluster
from .._api.errors import ApiFailure, NotFound, Unreachable, passing
from .._api.objects import Object
from .._api.times import seconds_between
from .._api.watch import Changed, Deadline, Follower, Listed
from .log_rules import Condition, Due, EventLog
from .text_rules import plain

# Seconds until the next request to an API that gave no answer, or to an object that is not due yet, or while nothing
# is known at all.
_AGAIN = 5.0

Event = dict[str, Any]


class Later(Exception):
    """The event is not due yet: look again at this moment."""

    def __init__(self, moment: datetime) -> None:
        super().__init__(moment)
        self.moment = moment


class Subject(Protocol):
    """What to follow, and which of its conditions are worth an event."""

    def cluster(self) -> Cluster:
        """Return the cluster of the objects."""

    def collection(self) -> str:
        """Return the path of the collection; may ask the cluster."""

    def selectors(self) -> dict[str, str]:
        """Return ``field_selector`` and ``label_selector``, as a Follower takes them."""

    def path(self, item: Object) -> str:
        """Return the path of one object."""

    def conditions(self, item: Object) -> Collection[Condition]:
        """Return the conditions that are worth an event if they last."""

    def event(self, item: Object, condition: Condition, now: datetime) -> Event:
        """Return the event to send.

        Raises:
            Later: It is not due yet.
        """

    def forget(self, is_gone: Callable[[str], bool]) -> None:
        """Forget objects that are gone: those for whose path ``is_gone`` is true."""


class EventSource:
    """Sends an event for each condition of a subject that lasts, until it is stopped.

    Args:
        log: What was sent.
        send: Takes an event; returns when there is room for the next.
    """

    def __init__(self, subject: Subject, log: EventLog, send: Callable[[Event], None]) -> None:
        self._subject = subject
        self._log = log
        self._send = send
        self._news = _Handover()
        self._follower: Follower | None = None
        self._failure: Exception | None = None

    def stop(self) -> None:
        """Stop it, from another thread."""
        self._news.close()
        if self._follower is not None:
            self._follower.stop()

    def run(self) -> None:
        """Follow and send until it is stopped.

        Raises:
            HoldfastError: The API server refuses for good, or the options lead to no cluster.
            Exception: An answer could not be read.
        """
        collection = self._collection()
        if collection is None:
            return
        cluster = self._subject.cluster()
        self._follower = Follower(cluster, collection, Deadline(None), keep=self._keep, **self._subject.selectors())
        threading.Thread(target=self._follow, args=(self._follower,), name="holdfast-follower", daemon=True).start()
        while not self._news.is_closed():
            self._take_over(self._news.get(self._seconds_left(cluster)), cluster)
            for due in self._log.due(cluster.now()) if not self._news.is_closed() else []:
                self._look(cluster, due)
        if self._failure is not None:
            raise self._failure

    def _collection(self) -> str | None:
        """Return where the objects are, as soon as the cluster says so; ``None`` if stopped meanwhile."""
        while not self._news.is_closed():
            try:
                return self._subject.collection()
            except (Unreachable, ApiFailure) as error:
                if isinstance(error, ApiFailure) and not passing(error.status):
                    raise
                self._news.get(_AGAIN)
        return None

    def _keep(self, item: Object) -> tuple[str, Collection[Condition]]:
        """Reduce an object to what is stored of it: there may be thousands."""
        return self._subject.path(item), self._subject.conditions(item)

    def _follow(self, follower: Follower) -> None:
        try:
            for news in follower:
                self._news.put(news)
        except Exception as error:  # noqa: BLE001 - a source that ends without an error looks as if it were stopped
            self._failure = error
        finally:
            self._news.close()

    def _take_over(self, news: Listed | Changed | None, cluster: Cluster) -> None:
        if isinstance(news, Listed):
            found = dict(news.items)
            self._log.listed(found, cluster.now())
            self._subject.forget(lambda path: path not in found)
        elif news is not None:
            name, conditions = news.object
            self._log.see(name, () if news.deleted else conditions, cluster.now())
            if news.deleted:
                self._subject.forget(lambda path: path == name)

    def _seconds_left(self, cluster: Cluster) -> float | None:
        moment = self._log.next()
        return None if moment is None else max(0.0, seconds_between(cluster.now(), moment))

    def _look(self, cluster: Cluster, due: Due) -> None:
        """Read the object itself, because the watch may be behind; send the event if the condition is still there."""
        now = cluster.now()
        try:
            item = cluster.get(due.name)
            conditions = self._subject.conditions(item)
            condition = next((found for found in conditions if found.key == due.key), None)
            if condition is None:
                self._log.see(due.name, conditions, now)
                return
            event = self._subject.event(item, condition, now)
        except NotFound:
            self._log.see(due.name, (), now)
            self._subject.forget(lambda path: path == due.name)
        except Later as later:
            self._log.later(due, max(later.moment, _again(cluster)))
        except (Unreachable, ApiFailure) as error:
            if isinstance(error, ApiFailure) and not passing(error.status):
                raise
            self._log.later(due, _again(cluster))
        else:
            self._send(plain({"key": due.key, "told": due.sent, **event}))
            self._log.sent(due, cluster.now())


def _again(cluster: Cluster) -> datetime:
    """Return the earliest moment for another look, so that requests never follow each other without a pause."""
    return cluster.now() + timedelta(seconds=_AGAIN)


class _Handover:
    """Room for one item: the next producer waits, so that a list is never in memory twice."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._item: Any = None
        self._closed = False

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def put(self, item: Any) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._item is None)
            self._item = item
            self._changed.notify_all()

    def get(self, timeout: float | None) -> Any:
        """Return the item; ``None`` after the timeout, or if it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._item is not None, timeout)
            item, self._item = self._item, None
            self._changed.notify_all()
            return item
