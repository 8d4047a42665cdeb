# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines whose deletion waits for one of our hooks, for event consumers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import datetime

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import InvalidInput
from .._api.objects import Object
from .._api.runner import Context, Params
from .._capi import find as capi
from .._capi import rules
from .._capi.hook_info import describe
from .log_rules import Condition
from .source import Event


class WaitingMachine:
    """Machines that wait, for each hook and point."""

    def __init__(self, context: Context, params: Params) -> None:
        if not (params["hook"] or params["owner"]):
            raise InvalidInput("hook or owner is missing: without them, it is unknown which deletion hooks are yours.")
        self._context, self._params = context, params
        self._machines = ""

    def cluster(self) -> Cluster:
        return self._context.management

    def collection(self) -> str:
        self._machines = capi.machines_path(self.cluster(), None)
        return capi.machines_path(self.cluster(), self._params["namespace"])

    def selectors(self) -> dict[str, str]:
        return {"label_selector": self._params["selector"] or ""}

    def path(self, item: Object) -> str:
        group_version = self._machines.strip("/").rpartition("/")[0]
        metadata = item["metadata"]
        return paths.one(paths.namespaced(group_version, metadata["namespace"], "machines"), metadata["name"])

    def conditions(self, item: Object) -> Collection[Condition]:
        return [Condition(_key(item, hook)) for hook in self._waited_for(item)]

    def event(self, item: Object, condition: Condition, now: datetime) -> Event:
        hook = next(found for found in self._waited_for(item) if _key(item, found) == condition.key)
        return {"machine": {**describe(item), "uid": item["metadata"]["uid"]}, "hook": hook.shown()}

    def forget(self, is_gone: Callable[[str], bool]) -> None:
        """Forget nothing, because nothing is stored for any object."""

    def _waited_for(self, item: Object) -> Iterator[rules.Hook]:
        """Return our hooks that its deletion waits for now."""
        for hook in rules.hooks_of(item):
            if self._is_ours(hook) and rules.waits_for(item, hook.point, hook.annotation):
                yield hook

    def _is_ours(self, hook: rules.Hook) -> bool:
        name, owner = self._params["hook"], self._params["owner"]
        return (not name or name == hook.name) and (not owner or owner == hook.owner)


def _key(item: Object, hook: rules.Hook) -> str:
    return f"{item['metadata']['uid']}/{hook.point}/{hook.name}"
