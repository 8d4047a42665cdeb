# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs: who is at work, and whether they still live.

A run is one ansible-playbook process or AWX job. Its sign of life is a Lease ``run.ID`` in the namespace ``holdfast``,
renewed by whatever of ours is working; a run that has not renewed it for :data:`DEAD_AFTER` seconds is dead.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, HoldfastError, NotFound
from .._api.names import MANAGED_BY, NAMESPACE, RUN
from .._api.objects import Object
from .._api.times import to_text
from .._api.watch import retry_conflicts
from .ledger_store import ensure_namespace
from .run_rules import DEAD_AFTER, PASSING_FOR, Run, lease_name, read

RENEW_EVERY = 15.0
# After a sign of life that failed, so that a run is heard soon after the API server came back.
RENEW_AGAIN = 2.0


def all_runs(cluster: Cluster) -> list[Run]:
    """Every run that left a sign of life."""
    leases = cluster.items(paths.leases(NAMESPACE), label_selector=f"{MANAGED_BY}=holdfast.kubernetes")
    return [read(lease) for lease in leases if lease["metadata"]["name"].startswith("run.")]


def live_ids(cluster: Cluster) -> frozenset[str]:
    """Ids of the runs that live now, by the API server's clock."""
    runs = all_runs(cluster)
    now = cluster.now()
    return frozenset(run.id for run in runs if run.alive(now))


def live_and_passing(cluster: Cluster) -> tuple[frozenset[str], frozenset[str]]:
    """Ids of the runs that live now, and of those that died a short while ago."""
    runs = all_runs(cluster)
    now = cluster.now()
    live = frozenset(run.id for run in runs if run.alive(now))
    recent = frozenset(run.id for run in runs if abs(run.age(now)) < DEAD_AFTER + PASSING_FOR)
    return live, recent - live


def until_one_may_be_dead(cluster: Cluster) -> float:
    """Seconds until what is thought of the first run changes, if it gives no more sign; infinity without any."""
    runs = all_runs(cluster)
    now = cluster.now()
    limits = (limit - run.age(now) for run in runs for limit in (DEAD_AFTER, DEAD_AFTER + PASSING_FOR))
    return min((left + 1.0 for left in limits if left > 0), default=float("inf"))


def touch(cluster: Cluster, run: str, *, patient: bool = True) -> Object:
    """Give a sign of life for a run that has begun and not ended.

    One that is not ``patient`` fails at once where the API server is away. Each try has the time of then: an old one,
    sent late, would be written over that of another process of the run.

    Raises:
        NotFound: It has not, or it has.
    """

    def attempt() -> Object:
        body = {"spec": {"renewTime": to_text(cluster.now())}}
        return cluster.merge(paths.lease(NAMESPACE, lease_name(run)), body, patient=patient, once=True)

    touched: Object = retry_conflicts(attempt)
    return touched


def renew(cluster: Cluster, run: str, holder: str, *, patient: bool = True) -> Object:
    """Give a sign of life; the first makes the Lease."""
    try:
        return touch(cluster, run, patient=patient)
    except NotFound:
        return _begin(cluster, run, holder, to_text(cluster.now()))


def _begin(cluster: Cluster, run: str, holder: str, now: str) -> Object:
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": lease_name(run),
            "namespace": NAMESPACE,
            "labels": {MANAGED_BY: "holdfast.kubernetes"},
            "annotations": {RUN: run},
        },
        "spec": {
            "holderIdentity": holder or run,
            "acquireTime": now,
            "renewTime": now,
            "leaseDurationSeconds": int(DEAD_AFTER),
        },
    }
    ensure_namespace(cluster)
    try:
        return cluster.create(paths.leases(NAMESPACE), body)
    except ApiFailure as error:
        if error.status != 409:
            raise
        return cluster.get(paths.lease(NAMESPACE, lease_name(run)))


def end(cluster: Cluster, run: str) -> bool:
    """Take the Lease of a run away; whether there was one."""
    try:
        cluster.delete(paths.lease(NAMESPACE, lease_name(run)))
    except NotFound:
        return False
    return True


@contextmanager
def heartbeat(cluster: Cluster, run: str, holder: str = "") -> Iterator[None]:
    """Renew a run's Lease while the body works or waits; without a run do nothing.

    An API server that does not answer is asked again: whether the run is dead is for others to judge by what they see.
    """
    if not run or cluster.dry_run:
        yield
        return
    stop = threading.Event()

    def beat() -> None:
        pause = RENEW_EVERY
        while not stop.wait(pause):
            pause = RENEW_AGAIN
            # Not made again where it is gone: this may come after the end of the run.
            with suppress(HoldfastError):
                touch(cluster, run, patient=False)
                pause = RENEW_EVERY

    renew(cluster, run, holder)
    threading.Thread(target=beat, daemon=True, name=f"heartbeat {run}").start()
    try:
        yield
    finally:
        stop.set()
