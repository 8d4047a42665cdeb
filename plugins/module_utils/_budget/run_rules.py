# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about runs: what their Leases say, and whether they are alive."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from .._api.names import RUN
from .._api.objects import Object
from .._api.times import from_text, seconds_between
from .._shared.bounds import moment

# Seconds without a sign of life after which a run counts as dead.
DEAD_AFTER = 90.0
# Seconds after a run's death in which other runs of its operation wait for its slots: one of them takes them over.
PASSING_FOR = 60.0
# Characters and sequences that a Lease's name can't have.
_UNSAFE = re.compile(r"[^a-z0-9]{2,}|[^a-z0-9.-]")


@dataclass(frozen=True)
class Run:
    """A run as its Lease describes it."""

    id: str
    holder: str
    renewed: str
    ended: bool = False
    began: str = ""

    def age(self, now: datetime) -> float:
        """Seconds since its last sign of life."""
        return seconds_between(from_text(self.renewed), now)

    def alive(self, now: datetime) -> bool:
        # Without abs(), a time in the future would keep the run alive until it has passed.
        return not self.ended and abs(self.age(now)) < DEAD_AFTER


def lease_name(run: str) -> str:
    """Name of the Lease of a run. An id that is not a valid name gets one that stays distinct."""
    plain = _UNSAFE.sub("-", run.lower())[:180].strip("-.")
    if plain == run:
        return f"run.{plain}"
    return f"run.{plain}-{hashlib.sha256(run.encode()).hexdigest()[:8]}".replace("run.-", "run.")


def read(lease: Object) -> Run:
    """Read a run from its Lease. An invalid time counts as the Lease's creation time, which the API server set."""
    spec, metadata = lease.get("spec") or {}, lease["metadata"]
    annotations, made = metadata.get("annotations") or {}, metadata["creationTimestamp"]
    renewed, began = (spec[key] if moment(spec.get(key)) else made for key in ("renewTime", "acquireTime"))
    return Run(
        id=annotations.get(RUN) or metadata["name"][len("run.") :],
        holder=spec.get("holderIdentity") or "",
        renewed=renewed,
        ended=not spec.get("holderIdentity"),
        began=began,
    )


def silent_since(run: str, runs: Collection[Run], now: datetime) -> list[str]:
    """Live runs without a sign of life since this run began: they were killed just before, or are about to give one."""
    mine = next((other for other in runs if other.id == run), None)
    if mine is None:
        return []
    began = from_text(mine.began)
    return [other.id for other in runs if other.id != run and other.alive(now) and from_text(other.renewed) <= began]
