# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims: a run's exclusive right to work on a node, for any purpose.

An annotation on the Node, changed by compare-and-swap only.
"""

from __future__ import annotations

import json
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.names import CLAIM
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.times import to_text
from .._api.watch import retry_conflicts
from . import runs
from .claim_rules import Claim, claim_of, may_take, taken_by_another


def take(
    cluster: Cluster, name: str, *, run: str, operation: str, purpose: str, restart: bool = False
) -> tuple[Object, Object]:
    """Take the claim. Return the Node before and after; both are the same object if the run already had the claim.

    Raises:
        Claimed: Another run has it, and is alive or, without ``restart``, belongs to another operation.
    """

    def attempt() -> tuple[Object, Object]:
        node = read_node(cluster, name)
        present = claim_of(node)
        wanted = Claim(run, operation, purpose, to_text(cluster.now()))
        if present is not None and present.run == run and present.operation == operation:
            return node, node
        live = runs.live_ids(cluster) if present is not None and present.run != run else frozenset()
        if not may_take(present, wanted, live, restart=restart):
            raise taken_by_another(name, present, live)
        return node, _write(cluster, node, wanted)

    pair: tuple[Object, Object] = retry_conflicts(attempt)
    return pair


def give_back(cluster: Cluster, name: str, *, run: str) -> tuple[Object | None, Object | None]:
    """Give back the claim of ``run``; the claim of another run stays."""

    def attempt() -> tuple[Object | None, Object | None]:
        node = cluster.find(paths.node(name))
        present = claim_of(node) if node else None
        if node is None or present is None or present.run != run:
            return node, node
        return node, _write(cluster, node, None)

    pair: tuple[Object | None, Object | None] = retry_conflicts(attempt)
    return pair


def _write(cluster: Cluster, node: Object, claim: Claim | None) -> Object:
    value: Any = json.dumps(vars(claim), sort_keys=True) if claim else None
    metadata = {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {CLAIM: value}}
    return cluster.merge(paths.node(node_rules.name(node)), {"metadata": metadata})
