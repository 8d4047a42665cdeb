# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims: a run's exclusive right to work on a node, whatever the purpose.

An annotation on the Node, changed by compare-and-swap only. Rules first, then the operations.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from .._api import node_rules, paths
from .._api.clock import to_text
from .._api.cluster import Cluster, Object
from .._api.errors import Refused
from .._api.names import CLAIM
from .._api.read_node import read_node
from .._api.watch import retry_conflicts
from . import runs

# What a claim under a slot is for.
PURPOSE = "rolling_reboot"


@dataclass(frozen=True)
class Claim:
    """Who works on a node and what for."""

    run: str
    operation: str
    purpose: str
    since: str

    def words(self) -> str:
        return f"run {self.run} ({self.purpose}, operation {self.operation}, since {self.since})"


class ClaimLost(Refused):
    """The claim passed to somebody else: this run stops before its next act."""

    kind = "claim_lost"


class Claimed(Refused):
    """Somebody else works on the node."""

    kind = "claimed"


def claim_of(node: Object) -> Claim | None:
    record = node_rules.record(node, CLAIM)
    if record is None:
        return None
    return Claim(
        run=str(record.get("run") or ""),
        operation=str(record.get("operation") or ""),
        purpose=str(record.get("purpose") or ""),
        since=str(record.get("since") or ""),
    )


def may_take(present: Claim | None, wanted: Claim, live: Collection[str], *, restart: bool = False) -> bool:
    """Whether a claim may be taken: nobody has it, we have it, or it is that of a dead run.

    A dead run's claim passes to a run of the same operation; with ``restart`` to any run.
    """
    if present is None or present.run == wanted.run:
        return True
    return present.run not in live and (restart or present.operation == wanted.operation)


def check(node: Object, run: str) -> None:
    """Stop a run whose claim passed to another.

    Args:
        run: Who is about to act; empty for a module used alone, which may work where nobody has a claim.

    Raises:
        ClaimLost: The claim is another run's, or is gone.
        Claimed: Used alone, and somebody has a claim.
    """
    present, name = claim_of(node), node_rules.name(node)
    if run and (present is None or present.run != run):
        whose = f"it belongs to {present.words()} now" if present else "it was taken away"
        raise ClaimLost(
            f"Run {run} has lost its claim on node {name}: {whose}. Nothing more is done to the node; the run that has "
            "it goes on.",
            node=name,
            claim=vars(present) if present else None,
        )
    if not run and present is not None:
        raise Claimed(
            f"Node {name} is worked on by {present.words()}. Wait until it is done; playbooks/doctor clears claims of "
            "runs that are dead.",
            node=name,
            claim=vars(present),
        )


def ours(node: Object, run: str) -> Object:
    """The node itself, where ``run`` may act on it; for a module used without a run, always.

    Raises:
        ClaimLost: The claim of this run passed to another.
    """
    if run:
        check(node, run)
    return node


def take(
    cluster: Cluster, name: str, *, run: str, operation: str, purpose: str, restart: bool = False
) -> tuple[Object, Object]:
    """Take the claim; the Node before and after, the same object where it was ours already.

    Raises:
        Claimed: Another run has it and lives, or is of another operation.
    """

    def attempt() -> tuple[Object, Object]:
        node = read_node(cluster, name)
        present = claim_of(node)
        wanted = Claim(run, operation, purpose, to_text(cluster.now()))
        if present is not None and present.run == run and present.operation == operation:
            return node, node
        live = runs.live_ids(cluster) if present is not None and present.run != run else frozenset()
        if not may_take(present, wanted, live, restart=restart):
            raise _claimed(name, present, live)
        return node, _write(cluster, node, wanted)

    pair: tuple[Object, Object] = retry_conflicts(attempt)
    return pair


def give_back(cluster: Cluster, name: str, *, run: str) -> tuple[Object | None, Object | None]:
    """Give our own claim back; another run's stays."""

    def attempt() -> tuple[Object | None, Object | None]:
        node = cluster.find(paths.node(name))
        present = claim_of(node) if node else None
        if node is None or present is None or present.run != run:
            return node, node
        return node, _write(cluster, node, None)

    pair: tuple[Object | None, Object | None] = retry_conflicts(attempt)
    return pair


def _claimed(name: str, present: Claim | None, live: Collection[str]) -> Claimed:
    words = present.words() if present else "nobody"
    dead = present is not None and present.run not in live
    way_out = (
        "That run is dead and its operation another one: run playbooks/doctor, or set rolling_reboot_restart."
        if dead
        else "Wait until it is done."
    )
    return Claimed(
        f"Node {name} is claimed by {words}. {way_out}",
        node=name,
        claim=vars(present) if present else None,
        run_alive=not dead,
    )


def _write(cluster: Cluster, node: Object, claim: Claim | None) -> Object:
    value: Any = json.dumps(vars(claim), sort_keys=True) if claim else None
    metadata = {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {CLAIM: value}}
    return cluster.merge(paths.node(node_rules.name(node)), {"metadata": metadata})
