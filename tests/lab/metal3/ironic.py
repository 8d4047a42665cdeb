# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for Ironic's power API as metal3 uses it: one node's state, and what its conductor does. No I/O.

It answers a request at once and acts on it later. If the management controller refuses a change, or the change does not
happen, only ``last_error`` says so.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from .settings import Faults, Times

ON = "power on"
OFF = "power off"
SOFT_OFF = "soft power off"
REBOOT = "rebooting"
SOFT_REBOOT = "soft rebooting"


class Answer(enum.Enum):
    ACCEPTED = 202
    UNSUPPORTED = 400
    LOCKED = 409


class Command(enum.Enum):
    """A command to the management controller."""

    ON = "on"
    OFF = "off"
    SHUT_DOWN = "shut down"
    RESET = "reset"
    SHUT_DOWN_AND_ON = "shut down and on"
    NOTHING = "nothing"


_COMMANDS = {
    ON: Command.ON,
    OFF: Command.OFF,
    SOFT_OFF: Command.SHUT_DOWN,
    REBOOT: Command.RESET,
    SOFT_REBOOT: Command.SHUT_DOWN_AND_ON,
}


@dataclass
class Node:
    """``power_state`` is ON, OFF, or None where it is not known."""

    power_state: str | None = None
    target: str = ""
    last_error: str = ""
    accepted: float = 0.0
    commanded: bool = False
    failures: int = 0
    lockouts: int = 0

    def request(self, target: str, now: float, faults: Faults) -> Answer:
        """Ask for a change of power. ACCEPTED means that Ironic got the request, no more."""
        if self.target:
            return Answer.LOCKED
        if self.lockouts < faults.locked:
            self.lockouts += 1
            return Answer.LOCKED
        if target in (SOFT_OFF, SOFT_REBOOT) and faults.soft_unsupported:
            return Answer.UNSUPPORTED
        self.target, self.last_error, self.accepted, self.commanded = target, "", now, False
        return Answer.ACCEPTED

    def advance(self, now: float, powered: bool, faults: Faults, times: Times, *, busy: bool = False) -> Command | None:
        """Run one round of the conductor; return the command for the management controller, if there is one.

        Args:
            powered: The machine's real power.
            busy: The last command is still being carried out.
        """
        reading = self._reading(powered, faults)
        if not self.target:
            self.power_state = reading
            return None
        if not self.commanded:
            if now < self.accepted + faults.slow:
                return None
            return self._command(faults)
        if busy and self.target in (REBOOT, SOFT_REBOOT):
            # The machine is on before and after.
            return None
        if reading is not None and reading == (OFF if self.target in (OFF, SOFT_OFF) else ON):
            self.power_state, self.target = reading, ""
        elif self.target in (SOFT_OFF, SOFT_REBOOT) and now >= self.accepted + times.soft_timeout:
            self.fail(f"timed out after {times.soft_timeout:g} secs waiting for the machine to end")
        return None

    def _command(self, faults: Faults) -> Command | None:
        refused = self.target in faults.refused
        if faults.unreachable or refused or self.failures < faults.flaky:
            self.failures += not (refused or faults.unreachable)
            self.fail("the BMC does not answer" if faults.unreachable else "the BMC refused")
            return None
        self.commanded = True
        if faults.soft_ignored and self.target in (SOFT_OFF, SOFT_REBOOT):
            return Command.NOTHING
        return _COMMANDS[self.target]

    def fail(self, why: str) -> None:
        """Fail the change under way."""
        self.last_error = f"Failed to change power state to '{self.target}'. Error: {why}"
        self.target = ""

    def _reading(self, powered: bool, faults: Faults) -> str | None:
        if faults.unreachable:
            return None
        if faults.stale and self.power_state is not None:
            return self.power_state
        if faults.says:
            return ON if faults.says == "on" else OFF
        return ON if powered else OFF
