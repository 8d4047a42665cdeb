# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan a rolling reboot: find out what a run would do with each node, with one query for all nodes where possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._api.errors import InvalidInput
from .._api.runner import Context, Params, Result
from .begin import enter
from .end_rules import entry_of, left_over, line_of, plan_words, required_of, stats_of, summary_of
from .planned import plan_turn
from .snapshot import Snapshot, planning


def reboot_plan(context: Context, params: Params) -> Result:
    """Plan a rolling reboot; see the module of the same name."""
    hosts = [host for host in params["hosts"] if host["settings"]]
    names = {host["host"]: str(host["settings"]["node_name"]) for host in hosts}
    if not params["hosts"]:
        raise InvalidInput("There is no host to plan. Check rolling_reboot_hosts and --limit.")
    snapshot = Snapshot(context.cluster, set(names.values()))
    within = planning(context, params, snapshot)
    begun = enter(within, params, names) if hosts else {"operation": "", "run": ""}
    entries: dict[str, Mapping[str, Any]] = {}
    for host in params["hosts"]:
        turn = host["turn"]
        entry = entry_of(host, check_mode=True)
        if entry is None and host["settings"] and "answer" in turn:
            entry = _plan(within, params, host, begun, snapshot)
        if entry is not None:
            entries[host["host"]] = entry
    silent = [host["host"] for host in params["hosts"] if host["host"] not in entries]
    nodes = list(entries.values())
    summary = summary_of(nodes, silent, operation=begun["operation"], check_mode=True)
    api = context.traffic()
    for node in nodes:
        context.say(line_of(node))
    context.say(plan_words(nodes, api))
    failures = {
        host: f"Node {node['name']}: {node['detail']}" for host, node in entries.items() if node["result"] == "failed"
    }
    return {
        "changed": False,
        "nodes": nodes,
        "summary": summary,
        "api": api,
        "stats": stats_of(summary, nodes),
        "failures": {**failures, **{host: left_over([host], {}) for host in silent}},
    }


def _plan(context: Context, params: Params, host: Mapping[str, Any], begun: Params, snapshot: Snapshot) -> Any:
    settings, turn = host["settings"], host["turn"]
    options = {
        "name": settings["node_name"],
        "settings": settings,
        "operation": begun["operation"],
        "operation_group": begun["group"],
        "run": begun["run"],
        "inventory_host": host["host"],
        "play": "first",
        "answer": turn["answer"],
        "shutdown": turn.get("shutdown"),
        "hosts": [],
        "uncounted": [],
        "canaries": [],
        "pods": settings["block_pods"],
        "alerts": params.get("alerts"),
    }
    turn = plan_turn(context, options, snapshot)
    return {**turn["result"], "required": required_of(turn["result"], turn["needed"])}
