# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The turn of one node: wait for it or, in check mode, plan it."""

from __future__ import annotations

from .._api.errors import HoldfastError
from .._api.runner import Context, Params, Result
from .._budget import operations
from .admit import admit
from .planned import plan_failed, plan_turn
from .snapshot import Snapshot, planning


def reboot_turn(context: Context, params: Params) -> Result:
    """Wait until a node may be rebooted, and take its slot and its claim; see the module of the same name."""
    if not context.check_mode:
        return admit(context, params)
    snapshot = Snapshot(context.cluster, {params["name"]})
    plan = planning(context, params, snapshot)
    try:
        _enter(plan, params)
    except HoldfastError as error:
        return plan_failed(plan, params, snapshot, error)
    return plan_turn(plan, params, snapshot)


def _enter(plan: Context, params: Params) -> None:
    """Enter the operation. The task that began it has stored nothing, and what a run stores then counts."""
    settings = params["settings"]
    options = {
        "group": params.get("operation_group") or settings["group"],
        "operation": params["operation"],
        "run": params["run"],
        "nodes": [params["name"]],
        "restart": settings["restart"],
        "adopt_within": settings["adopt_within"],
        "forks": None,
    }
    operations.enter(plan, options)
