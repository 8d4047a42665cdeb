# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the status of all runs from the cluster. It only reads."""

from __future__ import annotations

import json
from dataclasses import replace

from .._api import paths
from .._api.runner import Context, Params, Result
from .._budget.ledger_rules import Member, member_of_row
from .._doctor import related_objects
from .._doctor.doctor import scope_of, take_snapshot
from .._holds import leases
from . import rules, text_rules


def status_info(context: Context, params: Params) -> Result:
    """Return the status, and show it; see the module of the same name."""
    snapshot = related_objects.seen(context, take_snapshot(context.cluster))
    snapshot = replace(snapshot, scope=scope_of(context, params, snapshot))
    members: dict[str, list[Member]] = {}
    for group, ledger in snapshot.ledgers.items():
        if ledger.policy is not None:
            rows = context.cluster.rows(paths.NODES, label_selector=ledger.policy.selector)
            members[group] = [member_of_row(row) for row in rows]
    status = rules.status_of(snapshot, leases.list_holds(context.cluster, None, None), members)
    data, lines = rules.to_data(status), text_rules.lines(status)
    if params["show"] == "json":
        context.say(json.dumps(data, indent=2, ensure_ascii=False))
    elif params["show"] == "text":
        for line in lines:
            context.say(line)
    return {"changed": False, **data, "lines": lines, "stats": rules.stats_of(status)}
