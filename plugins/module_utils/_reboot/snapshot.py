# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster for the plans of many nodes: it sends each query once for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

from .._api import paths
from .._api.cluster import Cluster
from .._api.objects import Object
from .._api.runner import Context, Params
from .._drain import cordon_rules
from .._drain.drain import budgets_of
from .._drain.rules import Drains, Options

# Field of a selector for one node -> path of the node's name in an object.
_OF_A_NODE = {"spec.nodeName": ("spec", "nodeName"), "metadata.name": ("metadata", "name")}
# Number of blockers to keep of each kind. A plan names no more.
_NAMED = 5
# Read the objects of all Nodes if the plan has at least one in this many of the cluster's Nodes.
_PART = 4


class Snapshot:
    """A :class:`Cluster` that sends each read query once. Everything else goes to the cluster itself.

    It keeps only objects that belong to the nodes of the plan, and no pods that a drain can evict.

    Args:
        cluster: The cluster.
        names: The nodes of the plan.
    """

    def __init__(self, cluster: Cluster, names: Collection[str]) -> None:
        self._cluster, self._names = cluster, frozenset(names)
        self._answers: dict[tuple[str, ...], list[Any]] = {}
        self._of_nodes: dict[tuple[str, ...], dict[str, list[Object]]] = {}
        self._drains: dict[tuple[Options, int | None], Drains] = {}
        # What dry runs would have written: collection -> name -> object.
        self._written: dict[str, dict[str, Object]] = defaultdict(dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def find(self, path: str) -> Object | None:
        name = path.rpartition("/")[2]
        if path.startswith(f"{paths.NODES}/") and self._whole and name in self._names:
            return next(iter(self._all_of(paths.NODES, "metadata.name", "", "").get(name, ())), None)
        return next(iter(self._answer(("find", path), lambda: [self._cluster.find(path)])), None)

    def items(self, path: str, *, field_selector: str = "", label_selector: str = "") -> Iterator[Object]:
        parts = [part for part in field_selector.split(",") if part]
        mine = next((part for part in parts if part.partition("=")[0] in _OF_A_NODE and "!" not in part), "")
        field, _equal, name = mine.partition("=")
        if mine and self._whole and name in self._names:
            rest = ",".join(part for part in parts if part != mine)
            return iter(self._all_of(path, field, rest, label_selector).get(name, ()))
        selectors = {"field_selector": field_selector, "label_selector": label_selector}
        key = ("items", path, field_selector, label_selector)
        found = self._answer(key, lambda: list(self._cluster.items(path, **selectors)))
        written = self._written.get(path)
        return (written.get(item["metadata"]["name"], item) for item in found) if written else iter(found)

    def replace(self, path: str, body: Object) -> Object:
        """Send a dry run. After it, the plan reads what a run would have written."""
        # After a conflict, the next attempt must read it again.
        self._answers.pop(("find", path), None)
        found = self._cluster.replace(path, body)
        self._answers["find", path] = [found]
        folder, _slash, name = path.rpartition("/")
        self._written[folder][name] = found
        return found

    def rows(self, path: str, *, label_selector: str = "", limit: int = 0) -> Iterator[Mapping[str, Any]]:
        key = ("rows", path, label_selector, str(limit))
        more = {"limit": limit} if limit else {}
        return iter(
            self._answer(key, lambda: _first(self._cluster.rows(path, label_selector=label_selector, **more), limit))
        )

    def drain(self, name: str, options: Options, *, every: bool = False) -> dict[str, Any]:
        """The drain of a node: its ``verdict`` and the worst of its ``blockers``, or every blocker."""
        key = (options, None if every else _NAMED)
        if key not in self._drains:
            self._drains[key] = self._all_drains(*key)
        return self._drains[key].of(name)

    @cached_property
    def _whole(self) -> bool:
        """Whether one query over all nodes is cheaper than one for each node of the plan."""
        page = next(iter(self._cluster.pages(paths.NODES, limit=1)))
        total = len(page.get("items") or []) + int(page["metadata"].get("remainingItemCount") or 0)
        return len(self._names) * _PART >= total

    def _answer(self, key: tuple[str, ...], ask: Any) -> list[Any]:
        if key not in self._answers:
            self._answers[key] = [item for item in ask() if item is not None]
        return self._answers[key]

    def _all_of(self, path: str, field: str, rest: str, label_selector: str) -> dict[str, list[Object]]:
        """The objects of a collection that belong to a node of the plan, by the node's name."""
        key = (path, field, rest, label_selector)
        if key not in self._of_nodes:
            part, place = _OF_A_NODE[field]
            found: dict[str, list[Object]] = defaultdict(list)
            for item in self._cluster.items(path, field_selector=rest, label_selector=label_selector):
                name = (item.get(part) or {}).get(place)
                if name in self._names:
                    found[name].append(cordon_rules.slim(item))
            self._of_nodes[key] = found
        return self._of_nodes[key]

    def _all_drains(self, options: Options, named: int | None) -> Drains:
        found = Drains(budgets_of(self._cluster), options, named)
        for item in self._pods():
            found.add(item)
        return found

    def _pods(self) -> Iterator[Object]:
        if not self._whole:
            for name in sorted(self._names):
                yield from self._cluster.items(paths.PODS, field_selector=f"spec.nodeName={name}")
            return
        for item in self._cluster.items(paths.PODS, field_selector="spec.nodeName!="):
            if item["spec"].get("nodeName") in self._names:
                yield item


def planning(context: Context, params: Params, snapshot: Snapshot) -> Context:
    """The context of a plan, which asks the snapshot."""
    found = Context(params, True, context.warn, context.say)
    vars(found)["cluster"] = snapshot
    return found


def _first(rows: Iterator[Any], limit: int) -> list[Any]:
    """The rows, up to the limit if there is one."""
    return [row for _number, row in zip(range(limit), rows)] if limit else list(rows)
