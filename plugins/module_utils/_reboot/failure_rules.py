# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a node whose reboot failed somewhere: given back, left as it is, or left to whoever works on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._budget.claim_rules import ClaimLost

FAILED, STOPPED, LOST = "failed", "stopped", "lost"


@dataclass(frozen=True)
class Failure:
    """What is known of a failure.

    Attributes:
        run: Id of the run.
        operation: Id of its operation; empty where it failed before it had one.
        error: Kind of the error, empty where it was not one of ours.
        done: The node was done already; one of the user's tasks after it failed.
        untouched: The run had not begun to work on the node.
        switched_off: The node may be off, whatever the API still says of it.
        unseen: The API did not answer, so that nothing is known of the node: it counts as a node that is not healthy.
    """

    run: str
    operation: str
    error: str = ""
    done: bool = False
    untouched: bool = False
    switched_off: bool = False
    unseen: bool = False


def judge(node: Mapping[str, Any] | None, failure: Failure) -> dict[str, Any]:
    """What is to be done.

    Args:
        node: An entry of ``node_info`` as the failure left it; ``None`` where nothing is known of it.
        failure: What failed.

    Returns:
        ``state`` (failed; stopped: nothing was begun; lost: another run has it), ``healthy``, and what follows:
        ``give_back`` (uncordon it), ``count`` (as a failure of the operation) and ``release`` (give our slot back).
    """
    state = _state(node, failure)
    healthy = _healthy(node, failure)
    known = bool(failure.operation) and (node is not None or failure.unseen)
    at_work = state == FAILED and not failure.done and known
    return {
        "state": state,
        "healthy": healthy,
        "give_back": at_work and healthy,
        "count": at_work,
        "release": state == STOPPED and known,
    }


def _state(node: Mapping[str, Any] | None, failure: Failure) -> str:
    if failure.error == ClaimLost.kind:
        return LOST
    if failure.done:
        return FAILED
    return STOPPED if failure.untouched or _others_work(node, failure.run) else FAILED


def _others_work(node: Mapping[str, Any] | None, run: str) -> bool:
    """Whether the node is claimed by another run or, while nobody has claimed it, its slot is another's.

    Who has the claim is at work, though the slot may have passed on and be about to come back.
    """
    claim, slot = ((node or {}).get(kind) or {} for kind in ("claim", "slot"))
    return bool((claim or slot).get("run", run) != run)


def _healthy(node: Mapping[str, Any] | None, failure: Failure) -> bool:
    if node is None or not node.get("ready"):
        return False
    record = node.get("operation") or {}
    if record.get("id") != failure.operation:
        return True
    # One that failed its check after the reboot, or never got to it, is not healthy, whatever its kubelet says.
    unchecked = record.get("phase") == "reboot" and node.get("boot_id") != record.get("boot_id_before")
    return record.get("phase") != "ready" and not unchecked and not failure.switched_off
