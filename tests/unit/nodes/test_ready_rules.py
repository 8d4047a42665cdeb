# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a node is back."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.rules import Pod
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.ready_rules import (
    daemon_pods_not_ready,
    is_back,
)


def node(ready="True", boot_id="boot-2"):
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {"metadata": {"name": "node-1"}, "status": {"conditions": conditions, "nodeInfo": {"bootID": boot_id}}}


@pytest.mark.parametrize(
    ("seen", "old", "back"),
    [
        (node(), "boot-1", True),
        (node(), "", True),
        (node(), "boot-2", False),
        (node(boot_id=""), "boot-1", False),
        (node("False"), "boot-1", False),
        (node("Unknown"), "", False),
        (node(None), "", False),
        ({"metadata": {"name": "node-1"}}, "", False),
        (None, "", False),
    ],
)
def test_is_back(seen, old, back):
    assert is_back(seen, old) is back


def test_daemonset_pods_that_are_waited_for():
    pods = [
        Pod("kube-system", "proxy", "1", controller="DaemonSet"),
        Pod("kube-system", "cni", "2", controller="DaemonSet", ready=False),
        Pod("kube-system", "csi", "3", controller="DaemonSet", terminating="2026-11-21T09:00:00Z"),
        Pod("shop", "web", "4", controller="ReplicaSet", ready=False),
        Pod("shop", "bare", "5", ready=False),
    ]

    assert daemon_pods_not_ready({pod.uid: pod for pod in pods}) == ["kube-system/cni", "kube-system/csi"]
