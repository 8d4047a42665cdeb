# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate directly before the user's own tasks reboot a node."""

from __future__ import annotations

from .._api.errors import Held, Refused
from .._api.runner import Context, Params, Result
from .._budget import gate
from .._budget.node_operation import record_phase
from .._budget.node_operation_rules import phase_of
from .plan_rules import why_held


def reboot_gate(context: Context, params: Params) -> Result:
    """Check a last time whether a node may go down, and record its reboot; see the module of the same name."""
    name, boot_id = params["name"], params["boot_id"]
    try:
        passed = gate.check(context.cluster, name, override_holds=params["override_holds"], run=params["run"])
    except Held as error:
        inhibited_by = error.fields["shutdown_inhibited"]
        why = "; ".join(why_held(error.fields["holds"], inhibited_by, inhibited=bool(inhibited_by)))
        return {"changed": False, "step": "held", "why": why, "overridden_holds": []}
    if passed.boot_id != boot_id:
        raise Refused(
            f"Someone else has rebooted node {name} (its boot ID was {boot_id} and is now {passed.boot_id}). Run this "
            "again if the node still needs a reboot.",
            node=name,
            boot_id=passed.boot_id,
        )
    record_phase(context.cluster, name, phase_of(params, "reboot"))
    return {"changed": True, "step": "go", "why": "", "overridden_holds": passed.overridden}
