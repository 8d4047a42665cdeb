# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pause medik8s' NodeHealthChecks while a run works, and resume them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import HoldfastError, NotFound
from .._api.objects import Object
from .._api.runner import Context
from .._api.watch import retry_conflicts
from .._budget import runs
from .health_check_rules import dead, paused, requests_of, resumed, runs_of

PATH = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks"


def listed(cluster: Cluster) -> list[Object]:
    """The NodeHealthChecks of a cluster; none if their API is not installed."""
    try:
        return list(cluster.items(PATH))
    except NotFound:
        return []


def pause(context: Context, run: str) -> None:
    """Pause all NodeHealthChecks, and end the pauses of dead runs."""
    cluster = context.cluster
    checks = listed(cluster)
    if not checks:
        context.warn(
            "There is no NodeHealthCheck to pause in this cluster. Set rolling_reboot_pause_health_checks to false."
        )
    try:
        for check in checks:
            # A run has its Lease before its entry. So the Leases are read after the entries.
            _change(cluster, check, lambda now: paused(now, run, runs.live_ids(cluster)))
    except HoldfastError:
        # A run that fails here does not reach its end, which resumes them.
        with suppress(HoldfastError):
            resume(cluster, run)
        raise


def resume(cluster: Cluster, run: str) -> None:
    """Remove the entry of a run from all NodeHealthChecks, then the entries of dead runs."""
    checks = listed(cluster)
    for check in checks:
        if run in runs_of(check):
            _change(cluster, check, lambda now: resumed(now, [run]))
    for check in checks:
        if set(runs_of(check)) - {run}:
            _change(cluster, check, lambda now: resumed(now, dead(now, runs.live_ids(cluster))))


def resume_one(cluster: Cluster, name: str, run: str) -> bool:
    """Remove the entry of a dead run from one NodeHealthCheck; return whether the entry is gone."""
    check = cluster.find(paths.one(PATH, name))
    if check is None:
        return True
    if run in runs.live_ids(cluster):
        return False
    _change(cluster, check, lambda now: resumed(now, [run]))
    return True


def _change(cluster: Cluster, seen: Object, change: Callable[[Object], list[str]]) -> None:
    """Change the entries of a NodeHealthCheck by compare-and-swap, unless it is deleted meanwhile."""
    path = paths.one(PATH, node_rules.name(seen))

    def attempt() -> None:
        check = cluster.find(path)
        if check is None:
            return
        wanted = change(check)
        if wanted != requests_of(check):
            version = {"resourceVersion": check["metadata"]["resourceVersion"]}
            cluster.merge(path, {"metadata": version, "spec": {"pauseRequests": wanted or None}})

    retry_conflicts(attempt)
