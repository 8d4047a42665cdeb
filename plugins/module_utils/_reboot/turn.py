# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The turn of one node: wait for it or, in check mode, plan it."""

from __future__ import annotations

from .._api.runner import Context, Params, Result
from .._budget import operations
from .admit import admit
from .snapshot import Snapshot, planning


def reboot_turn(context: Context, params: Params) -> Result:
    """Wait until a node may be rebooted, and take its slot and its claim; see the module of the same name."""
    if not context.check_mode:
        return admit(context, params)
    settings, snapshot = params["settings"], Snapshot(context.cluster, {params["name"]})
    plan = planning(context, params, snapshot)
    # The task that began the operation has stored nothing. What a run stores then counts here, too.
    ids = {"operation": params["operation"], "run": params["run"], "nodes": [params["name"]], "forks": None}
    operations.enter(plan, {**{name: settings[name] for name in ("group", "restart", "adopt_within")}, **ids})
    return admit(plan, params, drain=snapshot.drain)
