# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for metal3's requests for power to Ironic: when it asks, waits, fails or is done. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field

from .ironic import OFF, ON, REBOOT, SOFT_OFF, SOFT_REBOOT, Answer, Node
from .reboot_keys import SOFT
from .settings import Faults, Times

_EVENTS = {
    ON: ("PowerOn", "Host powered on"),
    OFF: ("PowerOff", "Host powered off"),
    SOFT_OFF: ("PowerOff", "Host soft powered off"),
}


@dataclass(frozen=True)
class Result:
    """What metal3's controller gets back.

    Args:
        dirty: A change is under way.
        after: When to ask again, in seconds.
        error: The change failed.
        trouble: The request to Ironic failed.
        events: Reason and message of each event to record.
    """

    dirty: bool = False
    after: float = 0.0
    error: str = ""
    trouble: str = ""
    events: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Provisioner:
    """One host's node in Ironic, at one moment."""

    node: Node
    now: float
    faults: Faults = field(default_factory=Faults)
    times: Times = field(default_factory=Times)

    def powered_on(self) -> bool | None:
        """Return None where Ironic does not know."""
        return None if self.node.power_state is None else self.node.power_state == ON

    @property
    def power_failure(self) -> bool:
        return self.faults.unreachable

    def power_on(self, *, force: bool) -> Result:
        if self.node.power_state == ON:
            return Result()
        if self.node.target == ON:
            return Result(dirty=True, after=self.times.short_retry)
        if self.node.last_error and not force:
            return Result(error=f"PowerOn operation failed: {self.node.last_error}")
        return self._change(ON)

    def power_off(self, mode: str, *, force: bool, disabled: bool) -> Result:
        """Where power-off is disabled, Ironic reboots the machine instead."""
        node = self.node
        if node.power_state == OFF:
            return Result()
        if node.target in (OFF, SOFT_OFF):
            return Result(dirty=True, after=self.times.short_retry)
        if not node.target and node.last_error and not force:
            return Result(error=node.last_error)
        if mode == SOFT and not force:
            result = self._try(SOFT_REBOOT if disabled else SOFT_OFF)
            if result is not None:
                return result
        return self._change(REBOOT if disabled else OFF)

    def _change(self, target: str) -> Result:
        return self._try(target) or Result(trouble=f"failed to {target} node")

    def _try(self, target: str) -> Result | None:
        """Return None where the BMC does not support such a change."""
        answer = self.node.request(target, self.now, self.faults)
        if answer is Answer.UNSUPPORTED:
            return None
        if answer is Answer.LOCKED:
            return Result(dirty=True, after=self.times.short_retry)
        # Reported as soon as Ironic accepted it: no proof of anything.
        return Result(dirty=True, events=[_EVENTS[target]] if target in _EVENTS else [])
