# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about a node that should come back: its boot ID, Ready, and its DaemonSet pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._api import node_rules
from .._api.objects import Object
from .._drain.rules import Pod


def is_back(node: Object | None, old_boot_id: str) -> bool:
    """Whether the node is Ready and, if the old boot ID is known, has a new one."""
    if node is None or not node_rules.ready(node):
        return False
    return not old_boot_id or node_rules.boot_id(node) not in ("", old_boot_id)


def daemon_pods_not_ready(pods: Iterable[Pod], daemonsets: Mapping[str, str] | None = None) -> list[str]:
    """The DaemonSet pods that are not Ready.

    A pod whose container has ended with the last boot is not Ready, even if its status says so: after a short reboot,
    the status is from the time before it, until the kubelet writes it.

    Args:
        daemonsets: Only the pods of these DaemonSets, each with the container that has ended; ``None`` for all.
    """
    known = daemonsets or {}
    daemons = (pod for pod in pods if pod.daemonset and (daemonsets is None or pod.daemonset in known))
    return sorted(pod.full_name for pod in daemons if not pod.serves or _has_ended(pod, known.get(pod.daemonset)))


def is_ready_nowhere(daemonset: Object) -> bool:
    """Return whether a DaemonSet that is not Ready on one node has pods on others, too, and none is Ready."""
    status = daemonset.get("status") or {}
    return (status.get("desiredNumberScheduled") or 0) > 1 and not status.get("numberReady")


def _has_ended(pod: Pod, container: str | None) -> bool:
    return bool(container) and pod.container == container
