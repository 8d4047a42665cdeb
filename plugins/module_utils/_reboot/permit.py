# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate directly before the user's own tasks reboot a node."""

from __future__ import annotations

from .._api.errors import Held, HoldfastError
from .._api.runner import Context, Params, Result
from .._budget.node_operation import record_phase
from .._budget.node_operation_rules import phase_of
from .._fencing import last_look
from .plan_rules import why_held


def reboot_gate(context: Context, params: Params) -> Result:
    """Check a last time whether a node may go down, and record its reboot; see the module of the same name."""
    name = params["name"]

    def look() -> last_look.Look:
        return last_look.look(
            context.cluster,
            name,
            run=params["run"],
            override_holds=params["override_holds"],
            boot_id=params["boot_id"],
        )

    def record(found: last_look.Look) -> list[str]:
        record_phase(context.cluster, name, phase_of(params, "reboot"), overridden_holds=found.overridden)
        return found.overridden

    def recent_look() -> last_look.Look:
        found = look()
        if set(found.overridden) - set(recorded):
            recorded.extend(record(found))
        found.check()
        return found

    try:
        first = look()
        try:
            # The write may wait for the API server, so the look that counts comes after it.
            recorded = record(first)
            found = last_look.repeat(recent_look)
        except HoldfastError as error:
            # The record may say that the reboot has begun. The cleanup has to know that nothing was sent.
            error.fields["gate"] = True
            raise
    except Held as error:
        inhibited_by = error.fields["shutdown_inhibited"]
        why = "; ".join(why_held(error.fields["holds"], inhibited_by, inhibited=bool(inhibited_by)))
        return {"changed": False, "step": "held", "why": why, "overridden_holds": []}
    return {"changed": True, "step": "go", "why": "", "overridden_holds": found.seen.overridden}
