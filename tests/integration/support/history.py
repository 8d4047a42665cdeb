# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server saw of a group: every change of its Nodes and of its ledger, in the server's own order.

    with History(lab.kubeconfig, group="workers", selector="pool=a") as history:
        ...
    assert history.most_slots <= 3, history.worst_slots

Nothing here reads the collection's logs or uses its code. A watch from an earlier resource version delivers every
change stored since, and resource versions order changes of Nodes and ConfigMaps. Where the server has forgotten a part
(410), the history has a gap and is no proof: it raises.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import urllib3
from kubernetes import config

from lab.patience import PATIENCE

NODES = "/api/v1/nodes"
CONFIG_MAPS = "/api/v1/namespaces/holdfast/configmaps"
# How long one watch lasts, in seconds. Before it ends, the server sends a bookmark.
_WATCH = 240
_CATCH_UP = PATIENCE


class Gap(Exception):
    """A part of the history was lost."""


@dataclass(frozen=True)
class Event:
    """One change, or one object as it was at the beginning."""

    version: int
    kind: str
    object: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])


@dataclass(frozen=True)
class Moment:
    """The state of the group between two changes."""

    version: int
    slots: frozenset[str]
    unavailable: frozenset[str]

    @property
    def busy(self) -> frozenset[str]:
        """Nodes with a slot, and nodes that are not Ready or are cordoned."""
        return self.slots | self.unavailable


@dataclass
class _Stream:
    """The changes of one collection since a resource version."""

    path: str
    query: dict[str, str]
    kubeconfig: str
    version: str = ""
    events: list[Event] = field(default_factory=list)
    error: Exception | None = None
    _stopped: bool = False
    _answer: Any = None

    def start(self) -> None:
        self._api = config.new_client_from_config(self.kubeconfig)
        listed = self._get({**self.query})
        self.version = listed["metadata"]["resourceVersion"]
        self.events = [
            Event(int(item["metadata"]["resourceVersion"]), "ADDED", item) for item in listed.get("items") or []
        ]
        self._thread = threading.Thread(target=self._follow, daemon=True, name=f"history of {self.path}")
        self._thread.start()

    def _get(self, query: dict[str, str]) -> Any:
        return json.loads(self._request(query, timeout=PATIENCE).data)

    def _request(self, query: dict[str, str], *, timeout: float, preload: bool = True) -> Any:
        configuration = self._api.configuration
        pool = self._api.rest_client.pool_manager
        answer = pool.request(
            "GET",
            configuration.host + self.path,
            fields=query,
            headers={"Accept": "application/json"},
            preload_content=preload,
            timeout=timeout,
        )
        if answer.status >= 300:
            raise Gap(f"{self.path} from {query.get('resourceVersion')}: {answer.status} {answer.data!r}")
        return answer

    def _follow(self) -> None:
        try:
            while not self._stopped:
                self._watch(_WATCH)
        except Exception as error:  # noqa: BLE001 - raised by end(), in its caller's thread
            self.error = error

    def _watch(self, seconds: int) -> None:
        query = {
            **self.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.version,
            "timeoutSeconds": str(seconds),
        }
        try:
            self._answer = self._request(query, timeout=seconds + 30, preload=False)
        except urllib3.exceptions.HTTPError:
            # The server is unavailable for a while; the changes before and after are still in its history.
            time.sleep(0.2)
            return
        try:
            for line in _lines(self._answer):
                self._take(json.loads(line))
                if self._stopped:
                    return
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            # The connection broke: the next watch continues from the last version seen.
            return
        finally:
            self._answer.close()

    def _take(self, change: dict[str, Any]) -> None:
        item = change["object"]
        if change["type"] == "ERROR":
            raise Gap(f"{self.path}: {item.get('message')}")
        self.version = item["metadata"]["resourceVersion"]
        if change["type"] != "BOOKMARK":
            self.events.append(Event(int(self.version), change["type"], item))

    def end(self) -> None:
        """Stop as soon as everything up to this moment has arrived."""
        until = int(self._get({**self.query, "limit": "1"})["metadata"]["resourceVersion"])
        self._stopped = True
        deadline = time.monotonic() + _CATCH_UP
        while self._thread.is_alive():
            # The thread may be between two watches, so close its connection until the thread has ended.
            with contextlib.suppress(AttributeError, OSError, RuntimeError, ValueError):
                self._answer.shutdown()
            self._thread.join(0.2)
            if time.monotonic() > deadline:
                raise Gap(f"{self.path}: the watch does not end")
        self._stopped = False
        # Short watches that begin where the long one ended: a bookmark at their end shows that nothing is left.
        while self.error is None and int(self.version) < until:
            if time.monotonic() > deadline:
                raise Gap(f"{self.path}: the server did not send everything up to {until}, only up to {self.version}")
            self._watch(3)
        if self.error is not None:
            raise Gap(f"{self.path}: {self.error}") from self.error


def _lines(answer: Any) -> Iterator[bytes]:
    rest = b""
    for chunk in answer.stream(amt=None, decode_content=False):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line)


class History:
    """Watches a group while a ``with`` block runs.

    Args:
        kubeconfig: The cluster's kubeconfig.
        group: The group whose ledger is read; the ConfigMap is ``group.GROUP``.
        selector: Label selector of its Nodes.
    """

    def __init__(self, kubeconfig: Path | str, group: str, selector: str = "") -> None:
        self._group = group
        nodes = {"labelSelector": selector} if selector else {}
        ledger = {"fieldSelector": f"metadata.name=group.{group}"}
        self._nodes = _Stream(NODES, nodes, str(kubeconfig))
        self._ledger = _Stream(CONFIG_MAPS, ledger, str(kubeconfig))
        self.moments: list[Moment] = []

    def __enter__(self) -> History:  # noqa: PYI034 - Self comes with Python 3.11
        self._nodes.start()
        self._ledger.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (self._nodes, self._ledger):
            stream.end()
        self.moments = list(moments(self._nodes.events, self._ledger.events))

    @property
    def changes(self) -> int:
        return len(self.moments)

    @property
    def worst_slots(self) -> Moment:
        return max(self.moments, key=lambda moment: len(moment.slots))

    @property
    def worst_unavailable(self) -> Moment:
        return max(self.moments, key=lambda moment: len(moment.unavailable))

    @property
    def worst(self) -> Moment:
        """The moment when most nodes had a slot, were not Ready or were cordoned."""
        return max(self.moments, key=lambda moment: len(moment.busy))

    @property
    def most_slots(self) -> int:
        return len(self.worst_slots.slots)

    @property
    def most_unavailable(self) -> int:
        return len(self.worst_unavailable.unavailable)

    @property
    def boot_ids(self) -> dict[str, list[str]]:
        """Every boot ID that each Node had, in order."""
        found: dict[str, list[str]] = {}
        for event in sorted(self._nodes.events, key=lambda event: event.version):
            boot_id = ((event.object.get("status") or {}).get("nodeInfo") or {}).get("bootID")
            known = found.setdefault(event.name, [])
            if boot_id and (not known or known[-1] != boot_id):
                known.append(boot_id)
        return found

    def conditions(self, *types: str) -> dict[str, list[tuple[str, ...]]]:
        """Which of these conditions were True on each Node, each combination in order."""

        def true(node: dict[str, Any]) -> tuple[str, ...]:
            present = (node.get("status") or {}).get("conditions") or []
            found = {item["type"] for item in present if item["status"] == "True"}
            return tuple(kind for kind in types if kind in found)

        return self.course(true)

    def course(self, read: Callable[[dict[str, Any]], Any]) -> dict[str, list[Any]]:
        """What was read from each Node, in order, and each value once until the next one."""
        found: dict[str, list[Any]] = {}
        for event in sorted(self._nodes.events, key=lambda event: event.version):
            now, known = read(event.object), found.setdefault(event.name, [])
            if known[-1:] != [now]:
                known.append(now)
        return found

    @property
    def ledgers(self) -> list[dict[str, Any]]:
        """The contents of the ledger, in order."""
        events = sorted(self._ledger.events, key=lambda event: event.version)
        return [{key: json.loads(text) for key, text in (event.object.get("data") or {}).items()} for event in events]


def moments(nodes: list[Event], ledgers: list[Event]) -> Iterator[Moment]:
    """One moment after each change, in the order in which the server stored them."""
    slots: frozenset[str] = frozenset()
    down: set[str] = set()
    yield Moment(0, slots, frozenset())
    changes = [(event, False) for event in nodes] + [(event, True) for event in ledgers]
    for event, is_ledger in sorted(changes, key=lambda item: item[0].version):
        if is_ledger:
            slots = frozenset() if event.kind == "DELETED" else _slots(event.object)
        elif event.kind != "DELETED" and _is_unavailable(event.object):
            down.add(event.name)
        else:
            down.discard(event.name)
        yield Moment(event.version, slots, frozenset(down))


def _slots(config_map: dict[str, Any]) -> frozenset[str]:
    return frozenset(json.loads((config_map.get("data") or {}).get("slots") or "{}"))


def _is_unavailable(node: dict[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return not ready or bool((node.get("spec") or {}).get("unschedulable"))
