# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on claims: take a claim, wait while another run has it, and return it."""

from __future__ import annotations

from contextlib import suppress

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import HoldfastError, InvalidInput, TimedOut
from .._api.names import CLAIM
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline, Follower, Listed
from .._progress.event_rules import waits
from . import claim_rules, claims, runs, slots
from .claim_rules import Claimed
from .lifecycle import Report
from .lifecycle_rules import ENDS, STARTS, Work


def node_claim(context: Context, params: Params) -> Result:
    """Take or return the right to work on one node."""
    if not params["run"].strip():
        raise InvalidInput("run must not be empty. Name the run that claims the node.")
    deadline = Deadline(params["wait_timeout"])
    with runs.heartbeat(context.cluster, params["run"], params.get("holder") or ""):
        if params["state"] == "absent":
            before, after = claims.give_back(context.cluster, params["name"], run=params["run"], context=context)
        else:
            before, after = _take(context, params, deadline)
    if params["state"] == "absent" and params["keep"] and not context.cluster.dry_run:
        runs.end(context.cluster, params["run"])
    old = node_rules.record(before, CLAIM) if before else None
    new = node_rules.record(after, CLAIM) if after else None
    return {
        "changed": before is not after,
        "claim": new,
        "taken_from": old.get("run") if old and new and old.get("run") != new.get("run") else None,
        "waited": round(deadline.elapsed, 3),
        "diff": {"before": {"claim": old}, "after": {"claim": new}},
    }


def _take(context: Context, params: Params, deadline: Deadline) -> tuple[Object, Object]:
    cluster = context.cluster
    while True:
        try:
            return _attempt(context, params)
        except Claimed as error:
            if not error.fields.get("run_alive"):
                raise
            if deadline.passed:
                words = f"{error.message} The wait ended after {params['wait_timeout']} s."
                # pylint does not follow the import of its base class.
                raise TimedOut(words, **error.fields) from error  # pylint: disable=bad-exception-cause
            if context.check_mode:
                context.warn(f"{error.message} The task would wait for it, for up to {params['wait_timeout']} s.")
                return claims.after_the_wait(
                    cluster,
                    params["name"],
                    run=params["run"],
                    operation=params["operation"],
                    purpose=params["purpose"],
                )
            context.tell(waits(params["name"], "claim", error.message))
        _await_change(cluster, params["name"], deadline)


def _attempt(context: Context, params: Params) -> tuple[Object, Object]:
    cluster, name, run, operation = context.cluster, params["name"], params["run"], params["operation"]
    purpose = params["purpose"]
    work = Work(purpose.replace("_", " "), operation, run)
    taken = claims.take(
        cluster,
        name,
        run=run,
        operation=operation,
        purpose=purpose,
        restart=params["restart"],
        # Without the conditions, it removes only what a run has shown while the node waited.
        report=Report(context, STARTS if params.get("lifecycle_conditions") else ENDS, work),
    )
    if params.get("group") and not cluster.dry_run:
        try:
            slots.claim(cluster, params["group"], name, run=run, operation=operation)
        except HoldfastError:
            # No work starts under a slot that does not count the claim.
            with suppress(HoldfastError):
                claims.give_back(cluster, name, run=run, context=context)
            raise
    return taken


def _await_change(cluster: Cluster, name: str, deadline: Deadline) -> None:
    """Wait until no run has the claim, or the run that has it may be dead."""
    pause = Deadline(min(deadline.left, runs.until_one_may_be_dead(cluster)))
    for news in Follower(cluster, paths.NODES, pause, field_selector=f"metadata.name={name}"):
        nodes = news.items if isinstance(news, Listed) else [news.object]
        if not nodes or claim_rules.claim_of(nodes[0]) is None:
            return
