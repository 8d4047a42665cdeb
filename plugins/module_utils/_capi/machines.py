# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of Cluster API, in the management cluster."""

from __future__ import annotations

from dataclasses import dataclass

from .._api import paths
from .._api.cluster import Cluster
from .._api.objects import Object
from .machine_rules import GROUP

_VERSIONS = ("v1beta2", "v1beta1")


@dataclass(frozen=True)
class Machine:
    """A Machine, and its path in the API."""

    path: str
    object: Object


def served_versions(management: Cluster) -> list[str]:
    """Return which of the supported versions of the API are served, newest first; none if it is not installed."""
    group = management.find(f"/apis/{GROUP}") or {}
    served = {item["version"] for item in group.get("versions") or []}
    return [version for version in _VERSIONS if version in served]


def find(management: Cluster, versions: list[str], namespace: str, name: str) -> Machine | None:
    """Return the Machine of this name in the first version that has it; ``None`` if there is none."""
    for version in versions:
        path = paths.one(paths.namespaced(f"apis/{GROUP}/{version}", namespace, "machines"), name)
        found = management.find(path)
        if found is not None:
            return Machine(path, found)
    return None
