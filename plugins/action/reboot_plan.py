# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan a rolling reboot of all hosts in one task: a plan of a few nodes fits on a screen."""

from __future__ import annotations

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_operation
from ansible_collections.holdfast.kubernetes.plugins.module_utils._metrics.publish import metrics
from ansible_collections.holdfast.kubernetes.plugins.module_utils._report import content_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._report.write import write
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_plan
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _report_files, _run_hosts
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._api_action import ActionModule as ApiAction


class ActionModule(ApiAction):
    """Adds what the role registered for each host, writes report and metrics, and tells the next job of a workflow."""

    module = reboot_plan

    def operate(self, params: dict[str, Any]) -> dict[str, Any]:
        run = _run_hosts.all_of(self._task_vars, params["names"])
        outcome = super().operate({**params, "hosts": run["hosts"]})
        if outcome.get("failed"):
            return outcome
        try:
            if params["report"] or params["html"]:
                self._write(params, outcome, run["hosts"])
        except HoldfastError as error:
            return {**outcome, **error.as_result()}
        self._publish(params, outcome)
        return {**outcome, "ansible_stats": {"data": outcome["stats"], "per_host": False, "aggregate": True}}

    def _write(self, params: dict[str, Any], outcome: dict[str, Any], hosts: list[dict[str, Any]]) -> None:
        content = {key: outcome[key] for key in ("summary", "nodes", "api")}
        about = {"kind": content_rules.PLAN, "group": params["settings"].get("group")}
        report = _report_files.complete(content, self._task_vars, _run_hosts.settings_of(hosts), **about)
        write(report, as_json=params["report"], as_html=params["html"])

    def _publish(self, params: dict[str, Any], outcome: dict[str, Any]) -> None:
        """Publish the metrics in this task, so that a plan stays short on the screen."""
        own = {"file": params["metrics_file"], "results": outcome["nodes"], "best_effort": True}
        ids = {"operation": outcome["summary"]["operation"], "run": ""}
        # Metrics are for the outside, so a plan publishes them although it changes nothing in the cluster.
        run_operation(metrics, {**params, **own, **ids}, check_mode=True, warn=self._display.warning)
