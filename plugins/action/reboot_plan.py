# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan a rolling reboot of all hosts in one task: a plan of a few nodes fits on a screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_plan
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _run_hosts
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._api_action import ActionModule as ApiAction


class ActionModule(ApiAction):
    """Adds what the role registered for each host, writes the report, and tells the next job of a workflow."""

    module = reboot_plan

    def operate(self, params: dict[str, Any]) -> dict[str, Any]:
        outcome = super().operate({**params, "hosts": _run_hosts.all_of(self._task_vars, params["names"])["hosts"]})
        if outcome.get("failed"):
            return outcome
        if params["report"]:
            trouble = _write(
                Path(params["report"]).expanduser(), {key: outcome[key] for key in ("summary", "nodes", "api")}
            )
            if trouble:
                return {**outcome, "failed": True, "msg": trouble}
        return {**outcome, "ansible_stats": {"data": outcome["stats"], "per_host": False, "aggregate": True}}


def _write(path: Path, report: dict[str, Any]) -> str:
    """Write the report; why it could not be written, or nothing."""
    try:
        path.write_text(json.dumps(report, indent=4, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        return (
            f"The report could not be written to {path}: {error.strerror}. Set rolling_reboot_report to another file."
        )
    return ""
