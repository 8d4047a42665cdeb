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

# Of Cluster API and of its metal3 provider alike, newest first.
VERSIONS = ["v1beta2", "v1beta1"]


@dataclass(frozen=True)
class Machine:
    """A Machine, and its path in the API."""

    path: str
    object: Object


def served_versions(management: Cluster, group: str = GROUP) -> list[str]:
    """Return which of the supported versions of an API are served, newest first; none if it is not installed."""
    found = management.find(f"/apis/{group}") or {}
    served = {item["version"] for item in found.get("versions") or []}
    return [version for version in VERSIONS if version in served]


def find(management: Cluster, versions: list[str], namespace: str, name: str) -> Machine | None:
    """Return the Machine of this name in the first version that has it; ``None`` if there is none."""
    for version in versions:
        path = paths.one(paths.namespaced(f"apis/{GROUP}/{version}", namespace, "machines"), name)
        found = management.find(path)
        if found is not None:
            return Machine(path, found)
    return None
