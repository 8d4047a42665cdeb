# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather the results of a rolling reboot from its hosts."""

from __future__ import annotations

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_report
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _run_hosts, _traffic
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._api_action import ActionModule as ApiAction


class ActionModule(ApiAction):
    """Adds what the role registered for each host."""

    module = reboot_report

    def operate(self, params: dict[str, Any]) -> dict[str, Any]:
        names = params["names"]
        if params.get("limit"):
            names = [name for name in names if name in self._task_vars["ansible_play_hosts_all"]]
        traffic = _traffic.totals()
        return super().operate({**params, **_run_hosts.all_of(self._task_vars, names), "traffic": traffic})
