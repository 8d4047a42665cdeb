# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do with a node whose reboot failed: uncordon it, leave it as it is, or leave it to the other run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._budget.claim_rules import ClaimLost
from .._budget.node_operation_rules import reboot_began
from .seen_rules import WORK

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
        switched_off: The node may be off, or may still go off, even if the API reports it as Ready.
        unseen: The API did not answer, so the state of the node is unknown: the node counts as unhealthy.
        claimed: The run had the claim on the node. If the Node is gone, nothing else shows that the run worked on it.
    """

    run: str
    operation: str
    error: str = ""
    done: bool = False
    untouched: bool = False
    switched_off: bool = False
    unseen: bool = False
    claimed: bool = False


def resumes_reboot(steps: Sequence[str]) -> bool:
    """Whether the reboot may have begun before this turn: then the turn does not begin with the cordon.

    Args:
        steps: The steps of the turn; empty if it failed before it had any.
    """
    return "cordon" not in steps


def may_go_down(
    node: Mapping[str, Any],
    operation: str,
    *,
    sent: bool | None,
    refused: bool,
    steps: Sequence[str],
    method: str,
    at_the_gate: bool = False,
) -> bool:
    """Whether a node that is in the boot before its reboot may be off, or may still go off.

    The API may still report a node as Ready after it went down. And metal3, a BMC or a cloud may act on a request long
    after the run that sent it died. So the recorded phase counts, unless this turn recorded it, and its reboot was
    refused before anything was sent.

    Args:
        node: An entry of ``node_info`` after the failure.
        sent: Whether the failed task told the node to reboot; ``None`` if it does not say.
        refused: The kind of its error says that it sent nothing.
        steps: The steps of the turn.
        method: How the role reboots nodes. With ``command``, what fails may be one of the user's tasks, and an earlier
            one may have sent the reboot.
        at_the_gate: The last check before the user's tasks failed, so none of them ran.
    """
    if sent:
        return True
    refused = at_the_gate or ((sent is False or refused) and method != "command")
    nothing_sent = refused and not resumes_reboot(steps)
    same_boot = node.get("boot_id") == (node.get("operation") or {}).get("boot_id_before")
    return reboot_began(node.get("operation"), operation) and same_boot and not nothing_sent


def judge(node: Mapping[str, Any] | None, failure: Failure) -> dict[str, Any]:
    """Decide what to do after a failure.

    Args:
        node: An entry of ``node_info`` after the failure; ``None`` if the Node does not exist or could not be read.
        failure: What failed.

    Returns:
        ``state`` (failed; stopped: no work was started; lost: another run has the node), ``healthy``, and what to do:
        ``uncordon`` (if this operation may have cordoned it), ``count`` (as a failure of the operation)
        and ``return_slot``.
    """
    state = _state(node, failure)
    healthy = _healthy(node, failure)
    known = bool(failure.operation) and (node is not None or failure.unseen or failure.claimed)
    at_work = state == FAILED and not failure.done and known
    # Without its Node, or if its Node was created again, no run works on the node, so its slot must not block others.
    # The ledger keeps the slot of a node that is cordoned.
    gone = node is None or (state == LOST and not node.get("claim"))
    return {
        "state": state,
        "healthy": healthy,
        "uncordon": at_work and healthy and _worked_on(node or {}, failure),
        "count": at_work,
        "return_slot": bool(failure.operation) and (state == STOPPED or (gone and not failure.unseen)),
    }


def _state(node: Mapping[str, Any] | None, failure: Failure) -> str:
    if failure.error == ClaimLost.kind:
        return STOPPED if _is_nobodys(node, failure) else LOST
    if failure.done:
        return FAILED
    return STOPPED if failure.untouched or _others_work(node or {}, failure) else FAILED


def _is_nobodys(node: Mapping[str, Any] | None, failure: Failure) -> bool:
    """Whether no run took the node over: the Node was created again, or a person removed the claim."""
    if node is None or node.get("claim"):
        return False
    return bool((node.get("operation") or {}).get("run", failure.run) == failure.run)


def _others_work(node: Mapping[str, Any], failure: Failure) -> bool:
    """Whether another run has the claim on the node or, without a claim, its slot; or has finished the node by now.

    The run with the claim works on the node, even if its slot has passed to another run for a moment.
    """
    claim, slot, record = (node.get(kind) or {} for kind in ("claim", "slot", "operation"))
    if not claim and (record.get("id"), record.get("result")) == (failure.operation, "rebooted"):
        return bool(record.get("run", failure.run) != failure.run)
    return bool((claim or slot).get("run", failure.run) != failure.run)


def _worked_on(node: Mapping[str, Any], failure: Failure) -> bool:
    """Whether this operation may have cordoned the node: this run has the claim, or a run recorded a phase of work.

    Otherwise an earlier operation left the cordon, for example because the node failed its check.
    """
    record = node.get("operation") or {}
    claimed = (node.get("claim") or {}).get("run") == failure.run
    return claimed or (record.get("id") == failure.operation and record.get("phase") in WORK)


def _healthy(node: Mapping[str, Any] | None, failure: Failure) -> bool:
    if node is None or not node.get("ready"):
        return False
    record = node.get("operation") or {}
    if record.get("id") != failure.operation:
        return True
    # A node that failed its check after the reboot, or never reached it, is unhealthy, even if its kubelet is Ready.
    unchecked = record.get("phase") == "reboot" and node.get("boot_id") != record.get("boot_id_before")
    return record.get("phase") != "ready" and not unchecked and not failure.switched_off
