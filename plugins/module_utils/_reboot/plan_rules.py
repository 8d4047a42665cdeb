# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node could be rebooted now, later or never, and why: the plan that check mode prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._drain.rules import LATER, NEVER, NOW
from .._holds.rules import sentence
from .._shared.bounds import some

NOT_NEEDED = "not needed"
EXCLUDED = "it is labelled holdfast.dev/exclude"
NOT_REQUIRED = "no reboot is required"


def judge(
    node: Mapping[str, Any] | None,
    *,
    needed: str,
    done_in: str,
    override_holds: bool,
    drain: bool,
    blockers: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """One line of the plan.

    Args:
        node: An entry of ``node_info``; ``None`` if there is no such Node.
        needed: Why the reboot is needed; empty if it is not needed.
        done_in: Id of the operation; a node that it has already rebooted is not rebooted again.
        override_holds: Whether to reboot in spite of holds.
        drain: Whether the node is drained first.
        blockers: Entries of ``node_blocks``: pods and alerts that block the reboot.

    Returns:
        ``verdict`` (now, later, never or not needed), ``why``, and whether the node is ``held`` by an application or
        ``blocked`` by a pod or an alert.
    """
    held = [] if node is None or override_holds else _held(node)
    verdict, why = _verdict(node, needed=needed, done_in=done_in, drain=drain, later=[*held, *why_blocked(blockers)])
    return {"verdict": verdict, "why": why, "held": bool(held), "blocked": bool(blockers)}


def why_held(holds: Sequence[Mapping[str, Any]], inhibited_by: Sequence[str], *, inhibited: bool) -> list[str]:
    """Why the holds on a node forbid its reboot: the Leases, or the node's own condition where it names others."""
    if holds:
        return [f"held by {sentence([dict(hold) for hold in holds])}"]
    return [f"the node refuses a shutdown for {some(inhibited_by)}"] if inhibited else []


def why_blocked(blockers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why pods and alerts forbid the reboot of a node."""
    return [f"blocked by {item['kind']} {_full_name(item)}: {item['reason']}" for item in blockers]


def done_words(operation: str) -> str:
    """Why a node is not rebooted again."""
    return f"it was rebooted in operation {operation} already"


def _verdict(
    node: Mapping[str, Any] | None, *, needed: str, done_in: str, drain: bool, later: Sequence[str]
) -> tuple[str, str]:
    if node is None:
        return NEVER, "there is no Node of this name (rolling_reboot_node_name)"
    if node["excluded"]:
        return NEVER, EXCLUDED
    record = node["operation"] or {}
    if done_in and record.get("id") == done_in and record.get("result") == "rebooted":
        return NOT_NEEDED, done_words(done_in)
    if not needed:
        return NOT_NEEDED, NOT_REQUIRED
    if later:
        return LATER, "; ".join(later)
    if drain and node["drain"]["verdict"] != NOW:
        blockers = node["drain"]["blockers"]
        worst = [item for item in blockers if item["verdict"] == node["drain"]["verdict"]]
        pods = "; ".join(f"{item['namespace']}/{item['name']}: {item['reason']}" for item in worst[:5])
        return node["drain"]["verdict"], pods
    return NOW, needed


def _held(node: Mapping[str, Any]) -> list[str]:
    return why_held(node["holds"], node.get("inhibited_by") or [], inhibited=bool(node["shutdown_inhibited"]))


def _full_name(blocker: Mapping[str, Any]) -> str:
    return "/".join(part for part in (blocker.get("namespace"), blocker["name"]) if part)
