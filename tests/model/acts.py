# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run asks for, one act at a time, and the outcome: plain data that any world can carry out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Acts that a run repeats until they succeed, or until it has waited long enough.
WAITS = {"slot", "claim", "free", "back", "end"}
# Acts that only read.
READS = {"look", "peek", "free", "back", "check"}


@dataclass(frozen=True)
class Act:
    """One act of a run; a world has a method of this name."""

    name: str
    node: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        short = {key: value for key, value in self.options.items() if key not in ("run", "policy", "nodes") and value}
        told = [self.node, *(f"{key}={value}" for key, value in short.items())]
        return f"{self.options.get('run', 'a run')}: {self.name}({', '.join(filter(None, told))})"


@dataclass(frozen=True)
class Outcome:
    """The outcome of an act: the kind of its error, as modules report it, and the facts that the run uses."""

    error: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
