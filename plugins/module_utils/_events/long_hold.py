# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds that last long, for event consumers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta

from .._api import paths
from .._api.cluster import Cluster
from .._api.objects import Object
from .._api.runner import Context, Params
from .._holds.rules import describe, holds
from .._shared.bounds import cut, moment
from .._shared.hold_rules import FIELD_SELECTOR
from .log_rules import Condition
from .source import Event, Later


class LongHold:
    """Leases that hold a node."""

    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._params = context, params

    def cluster(self) -> Cluster:
        return self._context.cluster

    def collection(self) -> str:
        namespace = self._params["namespace"]
        return paths.leases(namespace) if namespace else paths.LEASES

    def selectors(self) -> dict[str, str]:
        return {"field_selector": FIELD_SELECTOR}

    def path(self, item: Object) -> str:
        return paths.lease(item["metadata"]["namespace"], item["metadata"]["name"])

    def conditions(self, item: Object) -> Collection[Condition]:
        if not holds(item):
            return ()
        spec = item["spec"]
        acquired = str(spec["acquireTime"])
        key = "/".join([item["metadata"]["uid"], cut(str(spec["holderIdentity"])), acquired])
        return (Condition(key, moment(acquired)),)

    def event(self, item: Object, condition: Condition, now: datetime) -> Event:
        if self.cluster().find(paths.node(item["metadata"]["name"])) is None:
            # A leader election, or a node that does not exist yet.
            raise Later(now + timedelta(seconds=max(1, self._params["after"])))
        return {"hold": describe(item, now)}

    def forget(self, is_gone: Callable[[str], bool]) -> None:
        """Forget nothing, because nothing is stored for any object."""
