# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the work on a node ends: what is done after a failure, its result, and the report of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._api import artifact_rules
from .facts_rules import ATTESTATION, COMMAND, FENCE_AGENT, REDFISH, Progress
from .journey_rules import SKIPPED, Step
from .rules import CONFIRM, FAIL_OVER, FAILED, FENCE, MOVED, PHASES, RECOVERED, STOP, STOPPED, TAINT

PLANNED, REFUSED = "planned", "refused"
# The results after which the run fails.
_BAD = (REFUSED, STOPPED, FAILED)
# Failures that occur before anything is written.
NOTHING_WRITTEN = ("refused", "held", "claimed", "claim_lost", "came_back", "invalid_input", "not_found")
# Reasons of refusals that show that a node is on.
_SIGNS_OF_LIFE = ("ready", "new_boot", "alive")
# The phases in their order.
_PHASES = (CONFIRM, *PHASES)


@dataclass(frozen=True)
class Failure:
    """The task that failed, as it answered.

    Attributes:
        task: Its name; empty if failover_turn itself refused the node.
        why: In words.
        reason: As one word, for example ``alive``; empty where it has none.
        sent: Whether the machine was requested to switch off; ``None`` if the task does not say.
        back: The node came back, but still has the taint.
        output: The output of a command or a BMC. It may contain secrets: it is shown, but not recorded.
    """

    task: str = ""
    why: str = "unknown"
    error: str = ""
    reason: str = ""
    sent: bool | None = None
    back: bool = False
    blockers: tuple[Mapping[str, Any], ...] = ()
    output: str = ""


def failure_of(result: Mapping[str, Any], task: str) -> Failure:
    """The failure, from what the task answered."""
    return Failure(
        task=task,
        why=str(result.get("msg") or "unknown"),
        error=str(result.get("error") or ""),
        reason=str(result.get("why") or ""),
        sent=result.get("sent"),
        back=bool(result.get("back")),
        blockers=tuple(result.get("blockers") or ()),
        output=str(result.get("output") or ""),
    )


def was_sent(progress: Progress, failure: Failure) -> bool:
    """Whether the machine was requested to switch off, or may have been.

    A refusal means that nothing was sent. After any other failure, that is unknown.
    """
    if progress.sent or FENCE not in progress.doing:
        return progress.sent
    return failure.sent if failure.sent is not None else failure.error not in NOTHING_WRITTEN


@dataclass(frozen=True)
class Ending:
    """What is done with a node after a failure.

    Attributes:
        result: How the failover ended, if all that is to be undone can be undone.
        advice: What the user has to do, as more sentences of the reason.
        record: The result is recorded, and the claim returned with it.
        undo: The key is removed from the host, and the role's cordon undone.
        remove_key: There is a key to remove.
    """

    result: str = REFUSED
    advice: str = ""
    record: bool = False
    undo: bool = False
    remove_key: bool = False


# Without any answer of the run: the node may be as it was, or its machine may be off.
LOST = Ending(
    FAILED,
    " How far the run came is lost. The machine may be off. Start the same playbook again: it resumes from the record "
    "on the Node.",
)


def after_failure(progress: Progress, failure: Failure) -> Ending:
    """What is done with a node.

    A node that came back is released at once. A node that was requested to switch off keeps its record and its key, so
    that the same command, started again, resumes. Otherwise nothing is left. A node that came back with the taint, or
    whose machine may still switch off, must be recovered.
    """
    if not progress.claimed:
        return Ending()
    sent, back = was_sent(progress, failure), _is_back(progress, failure)
    advice = _advice(progress, failure, sent=sent) if back else ""
    ours = failure.error != "claim_lost"
    # After an attestation, nothing is sent, but the taint stays, and the cordon with it. A task that failed may have
    # set the taint before.
    may_have_tainted = TAINT in progress.doing and failure.error not in NOTHING_WRITTEN
    tainted = progress.tainted or progress.step == TAINT or may_have_tainted
    return Ending(
        result=STOPPED if back and not advice else FAILED,
        advice=advice,
        # A deleted Node has no record and no claim. Its entry in the history stays as it is.
        record=ours and progress.exists,
        undo=ours and (back or not (sent or tainted)) and not advice and progress.direction == FAIL_OVER,
        remove_key=sent and bool(progress.facts.get("key")),
    )


def _is_back(progress: Progress, failure: Failure) -> bool:
    found = progress.step == STOP or failure.error == "came_back" or failure.reason in _SIGNS_OF_LIFE or failure.back
    return found and progress.direction == FAIL_OVER


def _advice(progress: Progress, failure: Failure, *, sent: bool) -> str:
    if progress.step == TAINT or progress.tainted or failure.back:
        return (
            " It is back, but still has the taint: run the playbook recover, with failover_force if its boot ID is "
            "still the same. Its record, its cordon and the taint stay until then."
        )
    vouched = progress.facts.get("fence") == ATTESTATION
    fence = progress.facts.get("requested_by" if vouched else "fence")
    where = {
        REDFISH: f"at {progress.facts.get('uri')}",
        FENCE_AGENT: f"of fence agent {progress.facts.get('agent')}",
        COMMAND: "of failover_fence_command",
    }.get(str(fence), "")
    if not sent or not where:
        return ""
    other = ", and it is probably the machine of another node: find out which one" if failure.reason == "alive" else ""
    on = "asks you to switch it on" if vouched else "switches it on again"
    return (
        f" The machine {where} was requested to switch off and may be off{other}. Run the playbook recover, "
        f"which {on} and undoes the cordon."
    )


# -- the result of one node -------------------------------------------------------------------------------------------


def result_of(progress: Progress, result: str, detail: str, entry: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What the report says of one node.

    Args:
        entry: Its entry in the history of failovers, where it was changed.
    """
    known = entry or {}
    return {
        "name": progress.node,
        "result": result,
        "detail": detail,
        "operation": progress.operation,
        "resumed": progress.resumed,
        "attempts": [dict(item) for item in progress.attempts],
        "boot_id_before": progress.record_boot_id,
        "boot_id_after": progress.boot_id_after if known.get("result") == RECOVERED else None,
        "seconds": known.get("seconds") or {},
        "evidence": known.get("evidence"),
        "maintained_by": progress.maintained_by,
        "entry": dict(known),
    }


def result_of_step(progress: Progress, step: Step) -> dict[str, Any]:
    """The result of a node with which nothing was done."""
    return {
        **result_of(progress, SKIPPED if step.name == SKIPPED else PLANNED, step.why),
        "pods": [],
        "volume_attachments": [],
    }


@dataclass(frozen=True)
class Undone:
    """How the ending went; each text is empty if all is well.

    Attributes:
        why_not: Why what was done could not be undone.
        unrecorded: Why the result could not be recorded.
        entry: The entry in the history.
    """

    why_not: str = ""
    unrecorded: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict)


def result_of_failure(progress: Progress, failure: Failure, ending: Ending, undone: Undone) -> dict[str, Any]:
    """The result of a node after a failure."""
    where = f"{failure.task}: " if failure.task else ""
    detail = f"{where}{failure.why}{ending.advice}"
    if undone.why_not:
        detail += f" The changes could not be undone: {undone.why_not} Run it again to retry that."
    if undone.unrecorded:
        detail += f" THIS COULD NOT BE RECORDED: {undone.unrecorded} Run it again, or holdfast.kubernetes.doctor."
    recorded = ending.record and not (undone.why_not or undone.unrecorded)
    result = ending.result if recorded or not progress.claimed else FAILED
    return {
        **result_of(progress, result, detail, undone.entry),
        "boot_id_after": None,
        "blockers": list(failure.blockers),
        "output": failure.output,
    }


# -- the report of the run --------------------------------------------------------------------------------------------


def report_of(run: str, nodes: list[dict[str, Any]], *, check_mode: bool, delete_node: bool) -> dict[str, Any]:
    """The report of a run over these results."""

    def named(*results: str) -> list[str]:
        return [node["name"] for node in nodes if node["result"] in results]

    ended = {
        MOVED: named(MOVED),
        RECOVERED: named(RECOVERED),
        SKIPPED: named(SKIPPED, PLANNED),
        REFUSED: named(REFUSED),
        STOPPED: named(STOPPED),
        FAILED: named(FAILED),
    }
    bad = [name for result in _BAD for name in ended[result]]
    return {
        "content": {"summary": {"run": run, "check_mode": check_mode, **ended}, "nodes": nodes},
        "stats": {
            **{f"failover_{result}": len(names) for result, names in ended.items()},
            "failover_failed_nodes": ",".join(bad),
            **artifact_rules.results("failover", nodes, _BAD),
        },
        "lines": [line for node in nodes for line in _lines(node, delete_node=delete_node)],
        "why": " ".join(
            f"Node {node['name']} {node['result']}: {node['detail']}" for node in nodes if node["name"] in bad
        ),
    }


def _lines(node: Mapping[str, Any], *, delete_node: bool) -> list[str]:
    name, seconds = node["name"], node["seconds"]
    spent = ", ".join(f"{phase} {seconds[phase]}" for phase in _PHASES if phase in seconds)
    # Why a node failed or was refused is said once, by the task that fails.
    detail = "see below" if node["result"] in _BAD else node["detail"]
    lines = [f"{name}: {item['method']} failed: {item['why']}" for item in node.get("attempts") or ()]
    lines.append(f"{name}: {node['result']} ({detail}){f', seconds: {spent}' if spent else ''}")
    if node.get("maintained_by"):
        lines.append(f"{name}: {node['maintained_by']}. A failover does not wait for it")
    if node.get("output"):
        lines.append(f"{name}: its output was: {node['output']}")
    if node["result"] == MOVED and not delete_node:
        lines.append(
            f"{name} stays off, cordoned and out of service. To bring it back, with the same variables: "
            f"ansible-playbook holdfast.kubernetes.recover -e failover_node={name}"
        )
    return lines
