# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that need a failover, for those who wait for events."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from . import _dead_node_rules as rules
from . import _node
from . import _paths as paths
from ._cluster import Cluster, Object
from ._event_book import Matter
from ._face import Context, Params
from ._teller import Event, Later

_LEASES = "kube-node-lease"


class DeadNode:
    """Nodes that have given no sign of life for a while."""

    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._params = context, params

    def cluster(self) -> Cluster:
        return self._context.cluster

    def collection(self) -> str:
        return paths.NODES

    def selectors(self) -> dict[str, str]:
        return {"label_selector": self._params["selector"] or ""}

    def path(self, item: Object) -> str:
        return paths.node(_node.name(item))

    def matters(self, item: Object) -> Collection[Matter]:
        found = rules.silence(item, reporting=self._params["reporting"])
        return (found,) if found else ()

    def event(self, item: Object, matter: Matter, now: datetime) -> Event:
        lease = self.cluster().find(paths.lease(_LEASES, _node.name(item)))
        sign = rules.sign_of_life(lease, matter.since, now)
        if sign:
            raise Later(sign + timedelta(seconds=self._params["after"]))
        return {"node": rules.describe(item), "evidence": rules.evidence(item, lease, now)}
