# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do with a node whose reboot failed: uncordon it, leave it as it is, or leave it to the other run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._budget.claim_rules import ClaimLost

FAILED, STOPPED, LOST = "failed", "stopped", "lost"


@dataclass(frozen=True)
class Failure:
    """The facts about a failure.

    Attributes:
        run: Id of the run.
        operation: Id of its operation; empty if the run failed before it had one.
        error: Kind of the error; empty if it is not an error of this collection.
        done: The node was already done; one of the user's tasks failed after that.
        untouched: The run had not started work on the node.
        switched_off: The node may be off, whatever the API reports.
        unseen: The API did not answer, so the state of the node is unknown: the node counts as unhealthy.
    """

    run: str
    operation: str
    error: str = ""
    done: bool = False
    untouched: bool = False
    switched_off: bool = False
    unseen: bool = False


def judge(node: Mapping[str, Any] | None, failure: Failure) -> dict[str, Any]:
    """Decide what to do after a failure.

    Args:
        node: An entry of ``node_info`` after the failure; ``None`` if the node could not be read.
        failure: What failed.

    Returns:
        ``state`` (failed; stopped: no work was started; lost: another run has the node), ``healthy``, and what to do:
        ``give_back`` (uncordon it), ``count`` (as a failure of the operation) and ``release`` (give the slot back).
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
    """Whether another run has the claim on the node or, without a claim, its slot.

    The run with the claim works on the node, even if its slot has passed to another run for a moment.
    """
    claim, slot = ((node or {}).get(kind) or {} for kind in ("claim", "slot"))
    return bool((claim or slot).get("run", run) != run)


def _healthy(node: Mapping[str, Any] | None, failure: Failure) -> bool:
    if node is None or not node.get("ready"):
        return False
    record = node.get("operation") or {}
    if record.get("id") != failure.operation:
        return True
    # A node that failed its check after the reboot, or never reached it, is unhealthy, whatever its kubelet says.
    unchecked = record.get("phase") == "reboot" and node.get("boot_id") != record.get("boot_id_before")
    return record.get("phase") != "ready" and not unchecked and not failure.switched_off
