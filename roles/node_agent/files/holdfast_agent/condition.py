# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the Node's condition ShutdownInhibited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .bounds import some
from .hold_rules import CONDITION, reason_of
from .holds import Hold, ordered


@dataclass(frozen=True)
class Condition:
    """The condition without its times, which :func:`patch_for` adds."""

    status: str
    reason: str
    message: str


# The exact words of the proposal, which applications may compare.
ALLOWED = Condition("False", "KubeletShutdownAllowed", "kubelet allows shutdown node shutdown")
INHIBITED = "kubelet inhibited node shutdown"
# Characters. The API limits only the Node as a whole, but every client that watches Nodes receives each change.
ROOM = 32768


def condition_for(
    holds: Iterable[Hold], secured: Iterable[str], problems: Iterable[str] = (), *, observe: bool = False
) -> Condition:
    """The condition that fits the facts.

    Args:
        holds: The current holds.
        secured: Keys of the holds that are locked and on disk. The reason names no other hold.
        problems: Additions to the message.
        observe: The agent enforces nothing, so it confirms nothing.
    """
    current = ordered(holds)
    if not current:
        return ALLOWED
    if observe:
        names = some([hold.entry for hold in current], separator=",")
        return Condition("False", "ObserveOnly", f"held by {names}, but the agent only observes: nothing is inhibited")
    known = frozenset(secured)
    held = [hold for hold in current if hold.key in known]
    added = "".join(f"; {problem}" for problem in problems)
    if not held:
        return Condition("False", "InhibitorFailed", f"the shutdown could not be inhibited{added}")
    reason, short = reason_of([hold.entry for hold in held], ROOM)
    if short:
        added += f"; {short} of {len(held)} holds are named by a hash of their entries, because the list is long"
    return Condition("True", reason, INHIBITED + added)


def of_node(node: dict[str, Any]) -> dict[str, Any] | None:
    """The condition of a Node; None if the Node has none."""
    for item in (node.get("status") or {}).get("conditions") or []:
        if item.get("type") == CONDITION:
            return dict(item)
    return None


def patch_for(wanted: Condition, before: dict[str, Any] | None, now: str) -> dict[str, Any]:
    """A strategic merge patch of a Node's status that changes this condition alone.

    Args:
        before: The current condition.
        now: The API server's time.
    """
    item = {
        "type": CONDITION,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastHeartbeatTime": now,
    }
    kept = (before or {}).get("lastTransitionTime") if (before or {}).get("status") == wanted.status else None
    item["lastTransitionTime"] = kept or now
    return {"status": {"conditions": [item]}}
