# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims: a run's exclusive right to work on a node, for any purpose.

An annotation on the Node, changed by compare-and-swap only.
"""

from __future__ import annotations

import json

from .._api import paths
from .._api.cluster import Cluster
from .._api.names import CLAIM
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context
from .._api.times import to_text
from .._api.watch import retry_conflicts
from . import runs
from .claim_rules import Claim, claim_of, may_take, taken_by_another
from .lifecycle import Report, write_marks
from .lifecycle_rules import ENDS, Work, run_of


def take(
    cluster: Cluster,
    name: str,
    *,
    run: str,
    operation: str,
    purpose: str,
    restart: bool = False,
    report: Report | None = None,
) -> tuple[Object, Object]:
    """Take the claim. Return the Node before and after; both are the same object if the run already had the claim.

    Args:
        report: The lifecycle conditions to set with it.

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
        marks = _marks(wanted)
        return node, report.write(node, marks) if report else write_marks(cluster, node, marks)

    return retry_conflicts(attempt)


def after_the_wait(cluster: Cluster, name: str, *, run: str, operation: str, purpose: str) -> tuple[Object, Object]:
    """In check mode, the Node before and after the claim, as if the live run that has it had given it back."""

    def attempt() -> tuple[Object, Object]:
        node = read_node(cluster, name)
        free = {key: value for key, value in (node["metadata"].get("annotations") or {}).items() if key != CLAIM}
        wanted = Claim(run, operation, purpose, to_text(cluster.now()))
        before = {**node, "metadata": {**node["metadata"], "annotations": free}}
        return before, write_marks(cluster, node, _marks(wanted))

    return retry_conflicts(attempt)


def give_back(
    cluster: Cluster, name: str, *, run: str, context: Context | None = None, waits: bool = False
) -> tuple[Object | None, Object | None]:
    """Give back the claim of ``run``; the claim of another run stays.

    Args:
        context: Also remove the lifecycle conditions that the run has set.
        waits: The node waits for another turn, so the conditions that say so stay.
    """

    def attempt() -> tuple[Object | None, Object | None]:
        node = cluster.find(paths.node(name))
        present = claim_of(node) if node else None
        if node is None:
            return node, node
        marks = {CLAIM: None} if present is not None and present.run == run else {}
        if context is not None and not waits and run_of(node) == run:
            return node, Report(context, ENDS, Work("", run=run)).write(node, marks)
        return node, write_marks(cluster, node, marks)

    return retry_conflicts(attempt)


def _marks(claim: Claim) -> dict[str, str | None]:
    return {CLAIM: json.dumps(vars(claim), sort_keys=True)}
