# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""End a rolling reboot: leave the operation, and fail if something is left to do."""

from __future__ import annotations

from .._api.errors import ApiFailure, HoldfastError
from .._api.runner import Context, Params, Result
from .._budget import operations
from .._nodes import health_checks
from .end_rules import unended


class LeftOver(HoldfastError):
    """The rolling reboot has ended, and something is left to do."""

    kind = "left_over"


def reboot_end(context: Context, params: Params) -> Result:
    """Leave the operation; see the module of the same name."""
    left = [params["left"]] if params["left"] else []
    if params["operation"] and not context.check_mode:
        try:
            operations.leave(context.cluster, params)
        except HoldfastError as error:
            left.append(unended(params["operation"], error.message))
    if params["paused"] and params["run"] and not context.check_mode:
        # A silent run of the operation has counted as alive until now, and may have left its pause.
        left += _resume(context, params["run"])
    if left:
        raise LeftOver(" ".join(left))
    return {"changed": False}


def _resume(context: Context, run: str) -> list[str]:
    """End the pauses of NodeHealthChecks by this run and by dead runs; return what is left to do."""
    try:
        health_checks.resume(context.cluster, run)
    except HoldfastError as error:
        if isinstance(error, ApiFailure) and error.status == 403:
            # A run without the right to list NodeHealthChecks has paused none.
            return []
        return [f"NodeHealthChecks may still be paused: {error.message} Run holdfast.kubernetes.doctor."]
    return []
