# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operation: read the Nodes of a cluster as hosts."""

from __future__ import annotations

from typing import Any

from .._api import paths
from .._api.cluster import Cluster
from .._holds.leases import holds_by_node
from .rules import facts, hold_fact


def read_hosts(cluster: Cluster, *, selector: str, holds: bool) -> list[dict[str, Any]]:
    """Return the facts of each Node, from one list of Nodes and one of Leases.

    Args:
        selector: Label selector of the Nodes; empty for all.
        holds: Whether to read the Leases.

    Raises:
        ApiFailure: The server refused, for example because the right to list is missing.
        Unreachable: The server did not answer.
    """
    found = [facts(node) for node in cluster.items(paths.NODES, label_selector=selector)]
    if not holds:
        return found
    held = holds_by_node(cluster, {item["name"] for item in found})
    return [{**item, "holds": [hold_fact(hold) for hold in held[item["name"]]]} for item in found]
