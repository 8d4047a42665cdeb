# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a Node that must exist, or the names of all Nodes."""

from __future__ import annotations

from . import paths
from .cluster import Cluster
from .errors import NotFound
from .objects import Object


def read_node(cluster: Cluster, name: str) -> Object:
    """The Node of this name.

    Raises:
        NotFound: There is no such Node.
    """
    node = cluster.find(paths.node(name))
    if node is None:
        raise NotFound(
            f"There is no Node {name}. Use the Node's name as the API has it (kubectl get nodes).", node=name
        )
    return node


def node_names(cluster: Cluster) -> set[str]:
    """The names of all Nodes."""
    return {str(row["Name"]) for row in cluster.rows(paths.NODES)}
