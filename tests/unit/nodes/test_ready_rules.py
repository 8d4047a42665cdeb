# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a node is back."""

from __future__ import annotations

from dataclasses import replace

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


class TestDaemonSetPods:
    PODS = (
        Pod("kube-system", "proxy-1", "1", controller="DaemonSet", controller_name="proxy"),
        Pod("kube-system", "cni-1", "2", controller="DaemonSet", controller_name="cni", ready=False),
        Pod("kube-system", "csi-1", "3", controller="DaemonSet", controller_name="csi", terminating="2026-11-21"),
        Pod("shop", "web", "4", controller="ReplicaSet", controller_name="cni", ready=False),
        Pod("shop", "bare", "5", ready=False),
    )

    def test_are_all_waited_for(self):
        assert daemon_pods_not_ready(self.PODS) == ["kube-system/cni-1", "kube-system/csi-1"]

    @pytest.mark.parametrize(
        ("daemonsets", "waited_for"),
        [
            ({}, []),
            ({"kube-system/proxy": "", "shop/cni": ""}, []),
            ({"kube-system/cni": "", "kube-system/gone": ""}, ["kube-system/cni-1"]),
        ],
    )
    def test_only_those_of_some_daemonsets_are_waited_for(self, daemonsets, waited_for):
        assert daemon_pods_not_ready(self.PODS, daemonsets) == waited_for

    @pytest.mark.parametrize(
        ("container", "ended", "waited_for"),
        [("1f", "1f", ["kube-system/proxy-1"]), ("2f", "1f", []), ("1f", "", []), ("", "", [])],
    )
    def test_a_status_from_before_the_reboot_is_not_believed(self, container, ended, waited_for):
        pod = replace(self.PODS[0], container=container)
        assert daemon_pods_not_ready([pod], {"kube-system/proxy": ended}) == waited_for
