# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that need a failover, for event consumers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.objects import Object
from .._api.runner import Context, Params
from .._shared.hold_rules import NODE_LEASES
from . import dead_node_rules as rules
from .log_rules import Condition
from .source import Event, Later


class DeadNode:
    """Nodes that have given no sign of life for a while."""

    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._params = context, params
        # By the paths of silent nodes: the silence, and the sign of life that was found in it.
        self._signs: dict[str, tuple[str, rules.Sign]] = {}

    def cluster(self) -> Cluster:
        return self._context.cluster

    def collection(self) -> str:
        return paths.NODES

    def selectors(self) -> dict[str, str]:
        return {"label_selector": self._params["selector"] or ""}

    def path(self, item: Object) -> str:
        return paths.node(node_rules.name(item))

    def conditions(self, item: Object) -> Collection[Condition]:
        found = rules.silence(item, reporting=self._params["reporting"])
        if not found:
            self._signs.pop(self.path(item), None)
        return (found,) if found else ()

    def event(self, item: Object, condition: Condition, now: datetime) -> Event:
        lease = self.cluster().find(paths.lease(NODE_LEASES, node_rules.name(item)))
        over = self._over(self.path(item), lease, condition, now)
        if over and over > now:
            raise Later(over)
        return {"node": rules.describe(item), "evidence": rules.evidence(item, lease, now)}

    def forget(self, is_gone: Callable[[str], bool]) -> None:
        # The thread that follows the Nodes may remove one meanwhile.
        for path in [path for path in list(self._signs) if is_gone(path)]:
            self._signs.pop(path, None)

    def _over(self, path: str, lease: Object | None, condition: Condition, now: datetime) -> datetime | None:
        """Return when the last sign of life will be long enough ago; ``None`` if there is none to measure from."""
        if condition.since is None:
            return None
        silence, before = self._signs.get(path, ("", None))
        sign = rules.sign_of_life(lease, condition.since, now, before if silence == condition.key else None)
        if not sign:
            return None
        self._signs[path] = condition.key, sign
        return sign.moment + timedelta(seconds=self._params["after"])
