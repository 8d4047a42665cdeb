# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the role failover: a node is switched off by a command or by metal3, and brought back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model.programs import Program
from model.role import ROLE, Role, settings, whole

FAILOVER = ROLE.parent / "failover"
COMMAND, METAL3 = "command", "metal3"
# The last word says what a command does, see model.programs.
_COMMANDS = {"fence_command": "power off", "verify_command": "power state", "power_on_command": "power on"}
_SECRETS = {
    "redfish_uri": "",
    "redfish_password": "",
    "quorum_command": "",
    "proof": {"metal3": {}, "redfish": {}, "fence_agent": {}, "command": {"command": _COMMANDS["verify_command"]}},
    **_COMMANDS,
}


@dataclass(frozen=True)
class FailoverPlan:
    """A run that fails a node over, or brings it back.

    Attributes:
        run: The id under which it works on the node, which ends with the name of the node.
        back: Whether it brings the node back.
        ways: How it switches the machine off, in this order: ``command`` and ``metal3``.
        patience: Seconds for which it waits for the machine. In a few seconds, metal3 may do nothing.
    """

    run: str
    node: str
    back: bool = False
    ways: tuple[str, ...] = (COMMAND,)
    patience: int = 5
    variables: Mapping[str, Any] = field(default_factory=dict)
    path: Path = FAILOVER
    number: int = 0

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)

    def begin(self) -> Program:
        """All of it; nothing comes after it."""
        usual = {"max_unhealthy": "100%", "confirm_seconds": 0, "fence_timeout": self.patience}
        own = {"run": self.run.rpartition("/")[0], "node": [self.node], "power_on_timeout": self.patience}
        if not self.back:
            own |= {**usual, "fence": list(self.ways), "soft_timeout": 0}
        entry_point = "recover" if self.back else "main"
        role = Role(settings(self.path, {**own, **self.variables}, entry_point), self.path)
        variables = {"__failover_secrets": _SECRETS, "__failover_auth": {}, "__failover_management": {}}
        return whole(role, f"{entry_point}.yml", variables, self.number)
