# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the journey of a node ends: its record, its entry in the report, and the answer to a refusal by a hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .._api import artifact_rules, node_rules
from .._budget.node_operation_rules import DELETED_PODS, OVERRIDDEN_HOLDS, noted, phases_of
from .._progress import traffic_rules
from .._shared.bounds import cut, plain, some
from .journey_rules import PUT_BACK, STOP, Step
from .plan_rules import DONE, EXCLUDED, NOT_NEEDED

# What a record names that happened despite a hold or a budget.
_OVERRIDES = {OVERRIDDEN_HOLDS: "holds were overridden", DELETED_PODS: "pods were deleted despite their budgets"}


def after_hold(name: str, why: str, *, ready: bool, sent_before: bool = False) -> Step:
    """The next step of a node that a hold refused at the last moment: the holder is not disturbed.

    A node whose reboot an earlier run started keeps its slot: it is down, or may still go down.

    Args:
        ready: Whether the node is Ready.
        sent_before: An earlier run may have sent the reboot.
    """
    if ready and not sent_before:
        return Step(PUT_BACK, why, record="hold")
    left = "midway and not Ready" if not ready else "midway, so it may still go down"
    way_out = "Bring the node back or have the hold released" if not ready else "Have the hold released"
    return Step(
        STOP,
        f"An earlier run left node {name} {left}, and now a hold refuses its reboot: {why}. {way_out}, then run this "
        "again.",
        error="held",
    )


def steps_after(steps: Sequence[str], done: str) -> list[str]:
    """The remaining steps of the role after the step `done`."""
    return list(steps[steps.index(done) + 1 :]) if done in steps else []


def overrides_of(record: Mapping[str, Any] | None, operation: str) -> dict[str, list[str]]:
    """The holds that the reboot overrides, and the pods that its drains deleted despite their budgets, in all runs."""
    found = {what: noted(record, operation, what) for what in _OVERRIDES}
    return {what: names for what, names in found.items() if names}


def _clauses(overrides: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{words}: {some(overrides[what])}" for what, words in _OVERRIDES.items() if what in overrides]


def detail_of(needed: str, overrides: Mapping[str, Sequence[str]]) -> str:
    """Why a node was rebooted, and despite which holds and budgets."""
    return "; ".join([needed, *_clauses(overrides)])


def detail_of_failure(
    where: str,
    why: str,
    *,
    overrides: Mapping[str, Sequence[str]],
    uncordoned: bool,
    cordoned: bool,
    stays: str,
    unwritten: Sequence[str],
    lost: bool,
) -> str:
    """The report's text about a failure.

    Args:
        where: The task that failed.
        why: Its message.
        overrides: The holds that the reboot overrode, or was about to, and the pods that were deleted.
        uncordoned: The node was uncordoned.
        cordoned: A rolling reboot's cordon is still on the node.
        stays: Why the node stays cordoned without that cordon.
        unwritten: The errors of writes that failed.
        lost: The count of this failure is one of those writes, so it does not count.
    """
    left = "".join(f" {clause[0].upper()}{clause[1:]}." for clause in _clauses(overrides))
    if uncordoned:
        left += " The node was uncordoned."
    elif cordoned:
        left += " The node stays cordoned: fix its problem, then run this again to continue."
    elif stays:
        left += f" The node stays cordoned: {stays}."
    note = ""
    if unwritten:
        what = "Not everything could be undone: "
        if lost:
            what = "THIS FAILURE COULD NOT BE COUNTED, so the operation may continue past max_failed: "
        errors = " ".join(dict.fromkeys(unwritten))
        note = f" {what}{errors} Run holdfast.kubernetes.doctor, or run this again: either fixes it."
    return f"{where}: {why}{left}{note}" if where else f"{why}{left}{note}"


def result_of(
    name: str, result: str, detail: str, *, record: Mapping[str, Any] | None, before: str | None, after: str | None
) -> dict[str, Any]:
    """A node's entry in the report."""
    known = record or {}
    return {
        "name": name,
        "result": result,
        "detail": detail,
        "boot_id_before": before or None,
        "boot_id_after": after or None,
        **_versions(known),
        **overrides_of(known, str(known.get("id") or "")),
        "phases": phases_of(known),
    }


def _versions(record: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The versions in a record, which the node's kubelet may have changed."""
    known = {name: record.get(name) for name in ("versions_before", "versions_after")}
    names = node_rules.VERSIONS.values()
    return {
        when: {name: cut(str(found[name])) for name in names if name in found}
        for when, found in known.items()
        if found and isinstance(found, Mapping)
    }


def entry_of(host: Mapping[str, Any], *, check_mode: bool) -> Mapping[str, Any] | None:
    """A host's entry in the report; ``None`` if it dropped out before it had a result.

    Args:
        host: Its name, its last answer (``turn``), and why its variables are invalid (``settings_error``).
        check_mode: The entry is of a plan.
    """
    if host["turn"].get("result"):
        return dict(host["turn"]["result"])
    if host.get("settings_error"):
        result = "failed" if check_mode else "stopped"
        return result_of(host["host"], result, host["settings_error"], record=None, before=None, after=None)
    return None


def required_of(entry: Mapping[str, Any], needed: str) -> bool | None:
    """Whether a node still requires a reboot after a run or a plan; ``None`` if that is unknown.

    Args:
        entry: The node's entry in the report.
        needed: Why the node required a reboot; empty if it did not, or was not asked.
    """
    if str(entry["detail"]).startswith(DONE):
        # It was not asked.
        return True if needed else None
    before, after = entry.get("boot_id_before"), entry.get("boot_id_after")
    if entry["result"] == "rebooted" or entry.get("verdict") == NOT_NEEDED or (before and after and before != after):
        return False
    if needed:
        return True
    return False if entry["result"] == "skipped" and entry["detail"] != EXCLUDED else None


RESULTS = ("rebooted", "skipped", "postponed", "stopped", "lost", "failed")
# Of results and verdicts, those that someone has to look at first.
_ORDER = ("failed", "lost", "stopped", "not reported", "unfinished", "never", "later", "postponed", "now", "rebooted")


def summary_of(
    nodes: Sequence[Mapping[str, Any]], silent: Sequence[str], *, operation: str, check_mode: bool
) -> dict[str, Any]:
    """The nodes by result, and the hosts without a result."""
    by_result = {result: [node["name"] for node in nodes if node["result"] == result] for result in RESULTS}
    return {"operation": operation, "check_mode": check_mode, **by_result, "not_reported": list(silent)}


def headline_of(summary: Mapping[str, Any]) -> str:
    """The summary in one line. Of the nodes that need attention, it has the names."""
    parts = [f"{len(summary[result])} {result}" for result in RESULTS if summary[result]]
    troubled = [name for result in ("failed", "stopped", "lost", "not_reported") for name in summary[result]]
    named = f" ({some(troubled)})" if troubled else ""
    silent = [f"{len(summary['not_reported'])} not reported"] if summary["not_reported"] else []
    return f"Rolling reboot {summary['operation']}: {', '.join([*parts, *silent]) or 'nothing to do'}{named}"


def stats_of(
    summary: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], *, complete: bool = False
) -> dict[str, Any]:
    """The statistics for the next job of a workflow: the numbers, and the result or the verdict of each node.

    Args:
        complete: Nothing of the operation is left to do. AWX passes the statistics to the next job as variables, and a
            later rolling reboot of the same workflow must not join this operation, in which each node is done.
    """
    counts = {f"rolling_reboot_{result}": len(summary[result]) for result in RESULTS}
    silent = [{"name": host, "result": "not reported", "detail": ""} for host in summary["not_reported"]]
    return {
        "rolling_reboot_operation": "" if complete else summary["operation"],
        "rolling_reboot_ended_operation": summary["operation"] if complete else "",
        **counts,
        "rolling_reboot_failed_nodes": ",".join(summary["failed"]),
        **artifact_rules.results("rolling_reboot", [*nodes, *silent], _ORDER),
    }


def report_steps(settings: Mapping[str, Any]) -> list[str]:
    """The tasks of the role that the user's settings ask for after the results are gathered."""
    wanted = {
        "notify": settings.get("notify") and "report" in settings["notify_phases"],
        "write": settings.get("report") or settings.get("html"),
    }
    return [step for step, is_wanted in wanted.items() if is_wanted]


def plan_words(nodes: Sequence[Mapping[str, Any]], api: Mapping[str, int]) -> str:
    """The number of nodes for each verdict, as text."""
    verdicts = Counter(node.get("verdict") or node["result"] for node in nodes)
    many = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    words = traffic_rules.words(api)
    return f"{many}: {', '.join(f'{count} {name}' for name, count in verdicts.items())}{f'; {words}' if words else ''}"


def line_of(node: Mapping[str, Any]) -> str:
    """A node's result in one line."""
    kept = [f"{pod['namespace']}/{pod['name']}" for pod in node.get("leftovers") or [] if not pod["removed"]]
    left = f", pods left over from its shutdown: {', '.join(kept)}" if kept else ""
    if node.get("verdict"):
        return plain(f"Node {node['name']}: {node['verdict']} ({node['detail']})")
    words = traffic_rules.words(node.get("api") or {})
    return plain(f"{node['name']}: {node['result']} ({node['detail']}){left}{f'; {words}' if words else ''}")


def left_over(silent: Sequence[str], lost: Mapping[str, str]) -> str:
    """One message about everything that is left to do; empty if there is nothing."""
    parts = []
    if silent:
        parts.append(
            f"No result for {', '.join(silent)}: these hosts dropped out, for example because Ansible could not reach "
            "them in one of the user's own tasks. Check them, then run this again."
        )
    if lost:
        parts.append(
            f"The failure of {', '.join(lost)} could not be counted: {' '.join(dict.fromkeys(lost.values()))} When the "
            "API server is back, run holdfast.kubernetes.doctor, or run this again. Until then the nodes keep their "
            "slots."
        )
    return " ".join(parts)


def unended(operation: str, why: str) -> str:
    """The message for a run that could not leave its operation."""
    return (
        f"OPERATION {operation} COULD NOT BE ENDED: {why} When the API server is back, run holdfast.kubernetes.doctor, "
        "or run this again: either ends it. Until then the next run resumes the operation, and does not reboot nodes "
        "that this run has rebooted."
    )
