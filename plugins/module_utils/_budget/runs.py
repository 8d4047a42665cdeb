# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs and their Leases: which runs work, and whether they are alive.

A run is one ansible-playbook process or AWX job. Its sign of life is a Lease ``run.ID`` in the namespace ``holdfast``.
Each part of the collection that works for the run renews it. A run that has not renewed its Lease for
:data:`DEAD_AFTER` seconds is dead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, HoldfastError, NotFound, Refused
from .._api.names import COLLECTION, MANAGED_BY, NAMESPACE, RUN
from .._api.objects import Object, only_as_seen
from .._api.times import to_text
from .._api.watch import retry_conflicts
from .ledger_store import ensure_namespace
from .run_rules import DEAD_AFTER, PASSING_FOR, Run, lease_name, read

# Seconds between two signs of life.
RENEW_EVERY = 15.0
# Seconds after a sign of life that failed, so that the run gives one soon after the API server is back.
RENEW_AGAIN = 2.0


def all_runs(cluster: Cluster) -> list[Run]:
    """Every run that has a Lease."""
    leases = cluster.items(paths.leases(NAMESPACE), label_selector=f"{MANAGED_BY}={COLLECTION}")
    return [read(lease) for lease in leases if lease["metadata"]["name"].startswith("run.")]


def live_ids(cluster: Cluster) -> frozenset[str]:
    """Ids of the runs that are alive now, by the API server's clock."""
    runs = all_runs(cluster)
    now = cluster.now()
    return frozenset(run.id for run in runs if run.alive(now))


def refuse_live(cluster: Cluster, run: str, option: str) -> None:
    """Refuse the id that a user gave to a new run if a live run has it. Both would own the same claims and slots.

    Raises:
        Refused: A live run has this id.
    """
    lease = cluster.find(paths.lease(NAMESPACE, lease_name(run)))
    found = read(lease) if lease else None
    if found is not None and found.alive(cluster.now()):
        raise Refused(
            f"Run {run} of {found.holder} is active: it gave a sign of life at {found.renewed}. Each run needs its own "
            f"id, so set another {option}, or none. A run that died counts as active for {DEAD_AFTER:.0f} s."
        )


@dataclass(frozen=True)
class Look:
    """One look at all runs.

    Attributes:
        live: Ids of the runs that are alive.
        passing: Ids of those that died a short time ago.
        until: Monotonic time until which no run of ``live`` can be dead; infinity if there is none.
    """

    live: frozenset[str]
    passing: frozenset[str]
    until: float

    def tells_of(self, runs: Iterable[str]) -> bool:
        """Whether this look still shows that all these runs are alive. If not, look again."""
        return time.monotonic() < self.until and set(runs) <= self.live


def look(cluster: Cluster) -> Look:
    """Read all runs once."""
    runs = all_runs(cluster)
    now = cluster.now()
    live = frozenset(run.id for run in runs if run.alive(now))
    recent = frozenset(run.id for run in runs if abs(run.age(now)) < DEAD_AFTER + PASSING_FOR)
    return Look(live, recent - live, time.monotonic() + _until_one_may_be_dead(runs, now))


def until_one_may_be_dead(cluster: Cluster) -> float:
    """Seconds until the first run that stays silent counts as dead, or as dead for long; infinity if there is none."""
    runs = all_runs(cluster)
    return _until_one_may_be_dead(runs, cluster.now())


def _until_one_may_be_dead(runs: Iterable[Run], now: datetime) -> float:
    limits = (limit - run.age(now) for run in runs for limit in (DEAD_AFTER, DEAD_AFTER + PASSING_FOR))
    return min((left + 1.0 for left in limits if left > 0), default=float("inf"))


def touch(cluster: Cluster, run: str, *, patient: bool = True) -> Object:
    """Renew the Lease of a run that has begun and not ended.

    If not ``patient``, fail at once when the API server is unavailable. Each try sends the current time: an old time
    that arrives late would overwrite the time of another process of the run.

    Raises:
        NotFound: The run has not begun, or has ended.
    """

    def attempt() -> Object:
        body = {"spec": {"renewTime": to_text(cluster.now())}}
        return cluster.merge(paths.lease(NAMESPACE, lease_name(run)), body, patient=patient, once=True)

    return retry_conflicts(attempt)


def renew(cluster: Cluster, run: str, holder: str, *, patient: bool = True) -> Object:
    """Renew the Lease of a run; the first call creates it."""
    try:
        return touch(cluster, run, patient=patient)
    except NotFound:
        return _begin(cluster, run, holder, to_text(cluster.now()), patient=patient)


def _begin(cluster: Cluster, run: str, holder: str, now: str, *, patient: bool) -> Object:
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": lease_name(run),
            "namespace": NAMESPACE,
            "labels": {MANAGED_BY: COLLECTION},
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
        return cluster.create(paths.leases(NAMESPACE), body, patient=patient)
    except ApiFailure as error:
        if error.status != 409:
            raise
        return cluster.get(paths.lease(NAMESPACE, lease_name(run)))


def end(cluster: Cluster, run: str) -> bool:
    """Delete the Lease of a run. Return whether there was one."""
    try:
        cluster.delete(paths.lease(NAMESPACE, lease_name(run)))
    except NotFound:
        return False
    return True


def end_dead(cluster: Cluster, run: str) -> bool:
    """Delete the Lease of a dead run. Return whether it is gone; it stays if the run gives a sign of life meanwhile."""
    path = paths.lease(NAMESPACE, lease_name(run))
    lease = cluster.find(path)
    if lease is None:
        return True
    if read(lease).alive(cluster.now()):
        return False
    try:
        cluster.delete(path, only_as_seen(lease))
    except NotFound:
        return True
    except ApiFailure as error:
        if error.status != 409:
            raise
        return False
    return True


@contextmanager
def heartbeat(cluster: Cluster, run: str, holder: str = "", *, required: bool = True) -> Iterator[None]:
    """Renew a run's Lease while the body works or waits; without a run do nothing.

    If the API server does not answer, try again. Other runs judge from the Lease whether this run is dead. If it is
    gone, create it again: this process was paused for so long that others took the run for dead, and the body still
    works for it.

    Args:
        required: Do not start the body if the first sign of life fails.

    Raises:
        HoldfastError: The first sign of life failed, and is required.
    """
    if not run or cluster.dry_run:
        yield
        return
    stop, creating = threading.Event(), threading.Lock()

    def revive() -> None:
        # After the body the run may end. Its Lease must not come back then.
        with creating:
            if not stop.is_set():
                renew(cluster, run, holder, patient=False)

    def beat(pause: float) -> None:
        while not stop.wait(pause):
            pause = RENEW_AGAIN
            # Any error: without this thread, the run would count as dead although it works.
            with suppress(Exception):
                try:
                    touch(cluster, run, patient=False)
                except NotFound:
                    revive()
                pause = RENEW_EVERY

    pause = RENEW_EVERY
    try:
        renew(cluster, run, holder)
    except HoldfastError:
        if required:
            raise
        pause = RENEW_AGAIN
    threading.Thread(target=beat, args=(pause,), daemon=True, name=f"heartbeat {run}").start()
    try:
        yield
    finally:
        stop.set()
        with creating:
            pass
