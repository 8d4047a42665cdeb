# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the role machine_guard: one worker serves the Machine of a node. There is a file of tasks for each point.

No node is silent for so long that the role would fail it over: the model has no such step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model import deletion
from model.programs import FOLDER, Program
from model.role import ROLE, Role, settings, whole

GUARD = ROLE.parent / "machine_guard"
_FILES = {f"{point}_tasks": [f"{FOLDER}/{point}.yml"] for point in ("pre_drain", "pre_terminate")}
# As in the variables of the role, for one worker.
_WORKERS = "{{ [__machine_guard_turn] | selectattr('kept', 'defined') | map(attribute='kept') | list }}"


@dataclass(frozen=True)
class GuardPlan:
    """A run that serves a Machine.

    Attributes:
        run: The id with which the ids of its works begin.
        node: Name of the Machine, and of its Node.
    """

    run: str
    node: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    path: Path = GUARD
    number: int = 0

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)

    def begin(self) -> Program:
        """All of it; nothing comes after it."""
        own = {"run": self.run, "namespace": deletion.NAMESPACE, "machines": [self.node], **_FILES, **self.variables}
        role = Role(settings(self.path, own), self.path, {"machine_guard_finish": {"workers": _WORKERS}})
        variables = {"playbook_dir": FOLDER, "__machine_guard_dropped": []}
        return whole(role, "main.yml", {**variables, **{name: {} for name in _SECRETS}}, self.number)


_SECRETS = ("__machine_guard_auth", "__machine_guard_management")
