# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the journey of a node ends: what its record and the report say, and what a refusal by a hold means."""

from __future__ import annotations

from collections import Counter
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


def entry_of(host: Mapping[str, Any], *, check_mode: bool) -> Mapping[str, Any] | None:
    """A host's entry in the report; ``None`` if it dropped out before it had a result.

    Args:
        host: Its name, what it was told last (``turn``), and why its variables don't fit (``misfit``).
        check_mode: The entry is of a plan.
    """
    if host["turn"].get("result"):
        return dict(host["turn"]["result"])
    if host.get("misfit"):
        result = "failed" if check_mode else "stopped"
        return result_of(host["host"], result, host["misfit"], record=None, before=None, after=None)
    return None


RESULTS = ("rebooted", "skipped", "postponed", "stopped", "lost", "failed")


def summary_of(
    nodes: Sequence[Mapping[str, Any]], silent: Sequence[str], *, operation: str, check_mode: bool
) -> dict[str, Any]:
    """The nodes by their results, and the hosts without one."""
    by_result = {result: [node["name"] for node in nodes if node["result"] == result] for result in RESULTS}
    return {"operation": operation, "check_mode": check_mode, **by_result, "not_reported": list(silent)}


def stats_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the next job of a workflow gets."""
    counts = {f"rolling_reboot_{result}": len(summary[result]) for result in RESULTS}
    failed = ",".join(summary["failed"])
    return {"rolling_reboot_operation": summary["operation"], **counts, "rolling_reboot_failed_nodes": failed}


def traffic_of(traffic: Mapping[str, Mapping[str, int]], *names: str) -> dict[str, int]:
    """The requests and bytes of these nodes together."""
    return {key: sum(traffic.get(name, {}).get(key, 0) for name in names) for key in ("requests", "bytes")}


def traffic_words(api: Mapping[str, int]) -> str:
    """Requests and bytes in words."""
    return f"{api['requests']} requests, {api['bytes'] / 1000:.0f} kB" if api.get("requests") else ""


def plan_words(nodes: Sequence[Mapping[str, Any]], api: Mapping[str, int]) -> str:
    """How many nodes have which verdict."""
    verdicts = Counter(node.get("verdict") or node["result"] for node in nodes)
    many = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    words = traffic_words(api)
    return f"{many}: {', '.join(f'{count} {name}' for name, count in verdicts.items())}{f'; {words}' if words else ''}"


def line_of(node: Mapping[str, Any]) -> str:
    """A node's result in one line."""
    kept = [f"{pod['namespace']}/{pod['name']}" for pod in node.get("leftovers") or [] if not pod["removed"]]
    left = f", its shutdown left {', '.join(kept)}" if kept else ""
    if node.get("verdict"):
        return f"Node {node['name']}: {node['verdict']} ({node['detail']})"
    words = traffic_words(node.get("api") or {})
    return f"{node['name']}: {node['result']} ({node['detail']}){left}{f'; {words}' if words else ''}"


def left_over(silent: Sequence[str], lost: Mapping[str, str]) -> str:
    """What is left to do, in one message; empty if nothing is."""
    parts = []
    if silent:
        parts.append(
            f"No result of {', '.join(silent)}: these hosts dropped out, for example because they could not be reached "
            "in one of the user's own tasks. Look at them, then run this again."
        )
    if lost:
        parts.append(
            f"The failure of {', '.join(lost)} could not be counted: {' '.join(dict.fromkeys(lost.values()))} Run "
            "holdfast.kubernetes.doctor, or this again, when the API server is back: the nodes keep their slots until "
            "then."
        )
    return " ".join(parts)


def unended(operation: str, why: str) -> str:
    """What to do where a run can't leave its operation."""
    return (
        f"OPERATION {operation} COULD NOT BE ENDED: {why} Run holdfast.kubernetes.doctor, or this again, when the API "
        "server is back: either ends it. Until then the next run resumes it, and reboots no node that this one has "
        "rebooted."
    )
