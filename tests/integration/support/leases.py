# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Leases of the runs of one world, as the API server sees them."""

from __future__ import annotations

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound

_PATH = paths.leases("holdfast")


class Leases:
    """Watches the Leases of runs.

    Args:
        world: The world whose API is watched.
        holder: The holder of the Leases that the runs start with; a run may make its Lease again with another one.
    """

    def __init__(self, world: Any, holder: str) -> None:
        self._cluster = world.cluster
        self._holder = holder
        self._recorder = world.record(_PATH)

    @property
    def names(self) -> list[str]:
        """Every Lease that there was, in order."""
        objects = (change.object for change in list(self._recorder.changes))
        return list(dict.fromkeys(item["metadata"]["name"] for item in objects if self._is_ours(item)))

    def left(self) -> list[str]:
        """The Leases that still exist."""
        return [name for name in self.names if self._cluster.find(paths.one(_PATH, name))]

    def renewed(self, name: str) -> str:
        """When a run last renewed its Lease; empty where the Lease is gone."""
        try:
            return str(self._cluster.get(paths.one(_PATH, name))["spec"]["renewTime"])
        except NotFound:
            return ""

    def last_sign(self, name: str) -> str:
        """The last renewal of a run that there was, also where its Lease is gone."""
        objects = (change.object for change in list(self._recorder.changes))
        return max(item["spec"]["renewTime"] for item in objects if item["metadata"]["name"] == name)

    def _is_ours(self, lease: dict[str, Any]) -> bool:
        return bool((lease.get("spec") or {}).get("holderIdentity") == self._holder)
