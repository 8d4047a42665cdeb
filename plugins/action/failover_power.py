# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.holdfast.kubernetes.plugins.modules import failover_power
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._api_action import ApiActionModule


class ActionModule(ApiActionModule):
    """Runs M(holdfast.kubernetes.failover_power) in the controller's process."""

    module = failover_power
