# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import NAMES
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_operation
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _keeper
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._api_action import ApiActionModule


class ActionModule(ApiActionModule):
    """Runs M(holdfast.kubernetes.reboot_operation) in the controller's process, and keeps the run's sign of life up."""

    module = reboot_operation

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        params = self.params
        if params and params["state"] == "begun" and not result.get("failed") and not self._task.check_mode:
            _keeper.start({name: params.get(name) for name in NAMES}, params["run"])
        return result
