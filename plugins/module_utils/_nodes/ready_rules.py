# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about a node that should come back: its boot ID, Ready, and its DaemonSet pods."""

from __future__ import annotations

from .._api import node_rules
from .._api.objects import Object
from .._drain.rules import Pod


def is_back(node: Object | None, old_boot_id: str) -> bool:
    """Whether the node is Ready and, if the old boot ID is known, has a new one."""
    if node is None or not node_rules.ready(node):
        return False
    return not old_boot_id or node_rules.boot_id(node) not in ("", old_boot_id)


def daemon_pods_not_ready(pods: dict[str, Pod]) -> list[str]:
    daemons = (pod for pod in pods.values() if pod.controller == "DaemonSet")
    return sorted(pod.full_name for pod in daemons if not pod.ready or pod.terminating)
