# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the report of a run as JSON and as an HTML page, on the controller."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._report.write import write
from ansible_collections.holdfast.kubernetes.plugins.modules.run_report import SPEC
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _report_files, _run_hosts
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._arguments import validated


class ActionModule(ActionBase):
    """Adds what only this process knows of the run: the events of its tasks, and the variables of its hosts."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False
    _VALID_ARGS = frozenset(SPEC["argument_spec"])

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        params = validated(SPEC, self._task.args).validated_parameters
        report = params["content"]
        if params["kind"]:
            run = _run_hosts.all_of(variables, params["names"])
            settings = params["settings"] or _run_hosts.settings_of(run["hosts"])
            about = {"kind": params["kind"], "run": run["run"], "group": run["group"]}
            report = _report_files.complete(report, variables, settings, **about)
        try:
            write(report, as_json=params["json"], as_html=params["html"])
        except HoldfastError as error:
            return {**result, **error.as_result()}
        # The report describes changes; writing it is not one.
        return {**result, "changed": False}
