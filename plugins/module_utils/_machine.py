# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of Cluster API, in the management cluster."""

from __future__ import annotations

from dataclasses import dataclass

from . import _node
from . import _paths as paths
from ._cluster import Cluster, Object
from ._names import MACHINE, MACHINE_NAMESPACE

GROUP = "cluster.x-k8s.io"
_VERSIONS = ("v1beta2", "v1beta1")


@dataclass(frozen=True)
class Machine:
    """A Machine as it is, and where."""

    path: str
    object: Object


def name_of(node: Object) -> tuple[str, str] | None:
    """Namespace and name of the Machine that a Node is; ``None`` where Cluster API did not make it."""
    marks = _node.annotations_of(node)
    namespace, name = marks.get(MACHINE_NAMESPACE), marks.get(MACHINE)
    return (namespace, name) if namespace and name else None


def served_versions(management: Cluster) -> list[str]:
    """The API's versions that we know, newest first; none where it is not installed."""
    group = management.find(f"/apis/{GROUP}") or {}
    served = {item["version"] for item in group.get("versions") or []}
    return [version for version in _VERSIONS if version in served]


def find(management: Cluster, versions: list[str], namespace: str, name: str) -> Machine | None:
    """A Machine, ``None`` where there is none of that name."""
    for version in versions:
        path = paths.one(paths.namespaced(f"apis/{GROUP}/{version}", namespace, "machines"), name)
        found = management.find(path)
        if found is not None:
            return Machine(path, found)
    return None
