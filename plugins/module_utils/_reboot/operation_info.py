# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read from the cluster what a rolling reboot has done, over all of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._api import artifact_rules, node_rules, paths
from .._api.runner import Context, Params, Result
from .._budget import ledger_store as store
from .._budget.node_operation_rules import record_of
from .end_rules import line_of, stats_of, summary_of
from .operation_info_rules import latest, left_of, newest, runs_of, why_not


def reboot_operation_info(context: Context, params: Params) -> Result:
    """Show an operation; see the module of the same name."""
    cluster = context.cluster
    group = params.get("group")
    if group:
        store.check_group(group)
        ledgers = [store.ledger_of(store.load(cluster, group))]
    else:
        ledgers = [ledger for _group, ledger in store.all_ledgers(cluster)]
    operation = params.get("operation") or latest(ledgers)
    # A node that needs no reboot has no record. An earlier job may have reported it.
    nodes: dict[str, Mapping[str, Any]] = dict(artifact_rules.read(params["results"]))
    left, unnamed = left_of(ledgers, operation)
    for node in cluster.items(paths.NODES) if operation else []:
        name = node_rules.name(node)
        entry = newest(nodes.get(name), record_of(node, operation), left.get(name), name)
        if entry:
            nodes[name] = entry
    entries = [nodes[name] for name in sorted(nodes)]
    runs = runs_of(ledgers, operation)
    summary = summary_of(entries, [], operation=operation, check_mode=False)
    why = why_not(operation, runs, entries, unnamed=unnamed) if operation else ""
    return {
        "changed": False,
        "operation": operation,
        "runs": runs or [],
        "nodes": entries,
        "summary": summary,
        "stats": stats_of(summary, entries, complete=not why),
        "lines": [line_of(entry) for entry in entries],
        "why": why,
    }
