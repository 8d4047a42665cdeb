# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather the results of a rolling reboot, and clean up nodes of hosts that dropped out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._api.errors import HoldfastError, InvalidInput
from .._api.runner import Context, Params, Result
from .._progress import traffic_rules
from .end_rules import (
    entry_of,
    headline_of,
    left_over,
    line_of,
    report_steps,
    required_of,
    stats_of,
    summary_of,
)
from .finish import UNREACHABLE, reboot_finish
from .turn_rules import DROPPED_OUT
from .work import Work

Host = Mapping[str, Any]


def reboot_report(context: Context, params: Params) -> Result:
    """Gather the results; see the module of the same name."""
    hosts: Sequence[Host] = params["hosts"]
    if not hosts:
        raise InvalidInput(
            f"There is no host to reboot: rolling_reboot_hosts is {params.get('pattern')}, and --limit is "
            f"{params.get('limit') or 'not set'}. Nothing was done."
        )
    operation, run, group = (params.get(name) or "" for name in ("operation", "run", "group"))
    entries: dict[str, Mapping[str, Any]] = {}
    uncounted = [failure for host in hosts for failure in host["turn"].get("uncounted") or []]
    for host in hosts:
        entry = entry_of(host, check_mode=context.check_mode)
        if entry is None and host["turn"].get("node") and not context.check_mode:
            entry, still_uncounted = _clean_up(context, host)
            uncounted += still_uncounted
        if entry is not None:
            required = required_of(entry, host["turn"].get("needed") or "")
            api = traffic_rules.total(params["traffic"], entry["name"])
            entries[host["host"]] = {**entry, "required": required, "api": api}
    silent = [host["host"] for host in hosts if host["host"] not in entries]
    nodes = list(entries.values())
    summary = summary_of(nodes, silent, operation=operation, check_mode=context.check_mode)
    complete = not (summary["failed"] or summary["stopped"] or summary["postponed"] or silent)
    lost = {} if context.check_mode else _count(context, uncounted, operation, run)
    return {
        "changed": False,
        "nodes": nodes,
        "summary": summary,
        "api": traffic_rules.total(params["traffic"], *params["traffic"]),
        "steps": report_steps(params["settings"]),
        # Another run still works on a lost node.
        "stats": stats_of(summary, nodes, complete=complete and not summary["lost"]),
        "headline": headline_of(summary),
        "lines": [line_of(node) for node in nodes],
        "left": left_over(silent, lost),
        "complete": complete,
        "done": [*summary["rebooted"], *summary["skipped"]],
        "undone": _undone(hosts, entries),
        "postponed": summary["postponed"],
        "operation": operation,
        "run": run,
        "group": group,
        "paused": params["paused"],
    }


def _undone(hosts: Sequence[Host], entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The Nodes that are not done; none if one of them is unknown, because the host's variables are invalid.

    A lost node is in the names of the run that works on it.
    """
    results = {name: entry["result"] for name, entry in entries.items()}
    left = [host for host in hosts if results.get(host["host"]) not in ("rebooted", "skipped", "lost")]
    names = [str(host["turn"].get("node") or host["settings"].get("node_name") or "") for host in left]
    return names if all(names) else []


def _clean_up(context: Context, host: Host) -> tuple[Mapping[str, Any] | None, list[dict[str, Any]]]:
    """The result of a node whose host dropped out, and the failures that could not be counted."""
    params = {
        "name": host["turn"]["node"],
        "turn": host["turn"],
        "settings": host["settings"],
        "rebooted": {},
        "failed": {"msg": DROPPED_OUT, "error": UNREACHABLE},
        "dropped": True,
        "alertmanager": context.params.get("alertmanager"),
    }
    try:
        found = reboot_finish(context, params)
    except HoldfastError as error:
        context.warn(f"Node {params['name']} could not be cleaned up: {error.message} Run holdfast.kubernetes.doctor.")
        return None, []
    return found["result"], found["uncounted"]


def _count(context: Context, uncounted: Sequence[Mapping[str, Any]], operation: str, run: str) -> dict[str, str]:
    """Count failures that could not be counted before; return those that still can't be, and why."""
    lost = {}
    for failure in uncounted:
        work = Work(context, failure["name"], operation, failure.get("run") or run)
        try:
            work.slot(failure["group"], "failed", reason=failure["reason"], healthy=failure["healthy"])
        except HoldfastError as error:
            lost[str(failure["name"])] = error.message
    return lost
