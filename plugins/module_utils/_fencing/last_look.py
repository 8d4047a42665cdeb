# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last look at a node before its machine is told to go off, and how long that look counts.

The process may be paused between the look and the act: a closed laptop, a frozen pod. Meanwhile the node may recover,
or another run may finish with it. So the act checks the age of the look, on a clock that runs during the pause.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from .._api.cluster import Cluster
from .._api.errors import HoldfastError, Refused, TimedOut
from .._api.runner import Context, Params
from .._budget import gate
from .._budget.node_operation import record_phase
from .._budget.node_operation_rules import phase_of
from . import still_down_rules

# Seconds. With the timeouts of one request, it stays below the time after which a run counts as dead.
GOOD_FOR = 10.0
_TRIES = 5
# CLOCK_MONOTONIC stops while Linux is suspended. On systems without CLOCK_BOOTTIME, it does not.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_Result = TypeVar("_Result")


class Stale(HoldfastError):
    """The look is too old to act on."""

    kind = "stale"


def steady() -> float:
    """Return the seconds of a clock that is never set, and that runs while the process or the machine is suspended."""
    return time.clock_gettime(_CLOCK)


@dataclass(frozen=True)
class Look:
    """What was seen, and when the look began."""

    seen: gate.Pass
    began: float

    @property
    def boot_id(self) -> str:
        return self.seen.boot_id

    @property
    def overridden(self) -> list[str]:
        """The holds that were overridden, as namespace/holder."""
        return self.seen.overridden_names

    @property
    def until(self) -> float:
        """The time until which the look counts."""
        return self.began + GOOD_FOR

    def check(self, record: RebootRecord | None = None) -> None:
        """Check the age of the look, and that the holds it overrides are recorded. Call this directly before the act.

        Raises:
            Stale: The look is too old, or the record was written just now: that may take a while.
        """
        if record is not None and record.add(self.overridden):
            raise Stale("the reboot was recorded after it")
        check(self.began)


class RebootRecord:
    """Records a reboot in the operation that it is part of, and the holds that it overrides, before the act.

    Args:
        node: The Node's name; empty if it is unknown. Then nothing is recorded.
        params: The options ``operation`` and ``run``. Without an operation, nothing is recorded.
    """

    def __init__(self, context: Context, node: str, params: Params) -> None:
        self._context, self._node = context, node
        self._phase = phase_of(params, "reboot") if node else None
        self._written: set[str] | None = None

    def add(self, overridden: Collection[str] = ()) -> bool:
        """Record the reboot and the holds that it overrides; return whether that was written."""
        if self._phase is None or (self._written is not None and self._written.issuperset(overridden)):
            return False
        record_phase(self._context.cluster, self._node, self._phase, overridden_holds=overridden)
        self._written = {*overridden, *(self._written or ())}
        return True


def check(began: float) -> None:
    """Check the age of what an act was decided on. Call this directly before the act.

    Raises:
        Stale: ``began`` is too long ago.
    """
    if steady() > began + GOOD_FOR:
        raise Stale(f"it is older than {GOOD_FOR:.0f} s")


def look(cluster: Cluster, name: str, *, run: str, override_holds: bool, boot_id: str = "", down: bool = False) -> Look:
    """Check that the claim is ours, that nobody holds the node, and that it is still in the expected boot.

    Args:
        boot_id: The boot ID that the node must still have; any if empty.
        down: The node must not be Ready.

    Raises:
        ClaimLost, Claimed, Held, NotFound: As the gate raises them.
        CameBack: It must be down, and it is Ready or has booted.
        Refused: It has booted.
    """
    began = steady()
    seen = gate.check(cluster, name, override_holds=override_holds, run=run)
    if seen.node is not None and down:
        still_down_rules.check_still_down(seen.node, {"boot_id": boot_id or seen.boot_id})
    elif boot_id and seen.boot_id != boot_id:
        raise Refused(
            f"Node {name} was rebooted since this run checked it: its boot ID is {seen.boot_id or '-'}, it was "
            f"{boot_id}. Run this again if it still needs a reboot.",
            node=name,
            why="new_boot",
        )
    return Look(seen, began)


def repeat(attempt: Callable[[], _Result]) -> _Result:
    """Call ``attempt`` (look, then act) again as long as its look is too old at the time of the act.

    Raises:
        TimedOut: No look was recent enough.
    """
    why = ""
    for _try in range(_TRIES):
        try:
            return attempt()
        except Stale as error:
            why = error.message
    raise TimedOut(
        f"{_TRIES} times, the last check of the node did not count before the next step: {why}. Nothing was done. Find "
        "out why the API server or the BMC answers so slowly, and run it again.",
        why="slow",
        sent=False,
    )
