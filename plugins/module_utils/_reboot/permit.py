# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last checks of a node before the user's own tasks, or the annotation of its host, reboot it."""

from __future__ import annotations

from functools import partial

from .._api.errors import Held, HoldfastError
from .._api.runner import Context, Params, Result
from .._fencing import last_look
from .._fencing.annotation import reboot_annotation
from .._shared.bounds import plain
from .plan_rules import why_held
from .quorum import require_quorum


def annotate(context: Context, params: Params) -> Result:
    """Set or remove a reboot annotation, and check etcd's quorum directly before it; see ``reboot_annotation``."""
    selector = params.get("etcd_selector")
    check = partial(require_quorum, selector=selector) if selector else None
    return reboot_annotation(context, params, check)


def reboot_gate(context: Context, params: Params) -> Result:
    """Check a last time whether a node may go down, and record its reboot; see the module of the same name."""
    record = last_look.RebootRecord(context, params["name"], params)

    def attempt() -> last_look.Look:
        found = last_look.look(
            context.cluster,
            params["name"],
            run=params["run"],
            override_holds=params["override_holds"],
            boot_id=params["boot_id"],
        )
        if params.get("etcd_selector"):
            # The run may have been paused since it waited for the quorum.
            require_quorum(context.cluster, params["name"], params["etcd_selector"])
        found.check(record)
        return found

    try:
        found = last_look.repeat(attempt)
    except Held as error:
        inhibited_by = error.fields["shutdown_inhibited"]
        why = plain("; ".join(why_held(error.fields["holds"], inhibited_by, inhibited=bool(inhibited_by))))
        return {"changed": False, "step": "held", "why": why, "overridden_holds": []}
    except HoldfastError as error:
        # The record may say that the reboot has begun. The cleanup has to know that nothing was sent.
        error.fields["gate"] = True
        raise
    return {"changed": True, "step": "go", "why": "", "overridden_holds": found.seen.overridden}
