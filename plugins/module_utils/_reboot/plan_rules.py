# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node is not rebooted now, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._holds.rules import sentence
from .._shared.bounds import some

NOT_NEEDED = "not needed"
EXCLUDED = "it has the label holdfast.dev/exclude"
NOT_REQUIRED = "no reboot is required"
DONE = "it was already rebooted in operation"


def why_held(holds: Sequence[Mapping[str, Any]], inhibited_by: Sequence[str], *, inhibited: bool) -> list[str]:
    """Why holds forbid the reboot of a node: the Leases or, if there are none, the node's own condition."""
    if holds:
        return [f"held by {sentence([dict(hold) for hold in holds])}"]
    return [f"the node refuses a shutdown for {some(inhibited_by)}"] if inhibited else []


def why_blocked(blockers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why pods and alerts forbid the reboot of a node."""
    return [f"blocked by {item['kind']} {_full_name(item)}: {item['reason']}" for item in blockers]


def done_words(operation: str) -> str:
    """Why a node is not rebooted again."""
    return f"{DONE} {operation}"


def _full_name(blocker: Mapping[str, Any]) -> str:
    return "/".join(part for part in (blocker.get("namespace"), blocker["name"]) if part)
