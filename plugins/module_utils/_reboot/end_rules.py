# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the journey of a node ends: what its record and the report say, and what a refusal by a hold means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._api import node_rules
from .._api.names import OPERATION
from .._api.objects import Object
from .journey_rules import PUT_BACK, STOP, Step


def after_hold(name: str, why: str, *, ready: bool) -> Step:
    """What becomes of a node that a hold refused at the last moment: its holder goes on undisturbed.

    No slot is given back for a node that is not Ready: an earlier run sent it down, and it is off still.
    """
    if ready:
        return Step(PUT_BACK, why, record="hold")
    return Step(
        STOP,
        f"Node {name} was left midway and is not Ready, and now it is held: {why}. Bring it back, or have the hold "
        "released, and run this again.",
        error="held",
    )


def steps_after(steps: Sequence[str], done: str) -> list[str]:
    """The steps of the role that are left after one of them."""
    return list(steps[steps.index(done) + 1 :]) if done in steps else []


def detail_of(needed: str, overridden: Sequence[Mapping[str, Any] | str]) -> str:
    """Why a node was rebooted, and which holds did not count."""
    names = [item if isinstance(item, str) else f"{item['namespace']}/{item['holder']}" for item in overridden]
    return f"{needed}; holds were overridden: {', '.join(names)}" if names else needed


def detail_of_failure(
    where: str, why: str, *, uncordoned: bool, cordoned: bool, unwritten: Sequence[str], lost: bool
) -> str:
    """What a report says of a failure.

    Args:
        where: The task that failed.
        why: What it said.
        uncordoned: The node was given back.
        cordoned: It is cordoned by a rolling reboot still.
        unwritten: What could not be written, and why.
        lost: The failure is among it, so it does not count.
    """
    left = ""
    if uncordoned:
        left = " The node was uncordoned."
    elif cordoned:
        left = " The node stays cordoned: see what is wrong with it, then run this again to continue."
    loud = ""
    if unwritten:
        what = "Not everything could be put back: "
        if lost:
            what = "THIS FAILURE COULD NOT BE COUNTED, so others of the operation may go on past max_failed: "
        told = " ".join(dict.fromkeys(unwritten))
        loud = f" {what}{told} Run holdfast.kubernetes.doctor, or this again: either puts it right."
    return f"{where}: {why}{left}{loud}" if where else f"{why}{left}{loud}"


def result_of(
    name: str, result: str, detail: str, *, record: Mapping[str, Any] | None, before: str | None, after: str | None
) -> dict[str, Any]:
    """A node's entry in the report."""
    return {
        "name": name,
        "result": result,
        "detail": detail,
        "boot_id_before": before or None,
        "boot_id_after": after or None,
        "phases": dict((record or {}).get("phases") or {}),
    }


def record_of(node: Object | None) -> dict[str, Any]:
    """The record of an operation that a Node carries; empty where it has none."""
    return (node_rules.record(node, OPERATION) if node else None) or {}
