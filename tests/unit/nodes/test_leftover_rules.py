# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which finished pods a shutdown left behind."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.leftover_rules import (
    describe,
    is_leftover,
    why_kept,
)

BY_KUBELET = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}


def pod(phase="Failed", *, owner="apps/v1 ReplicaSet", controller=True, reason=None, conditions=(), **annotations):
    version, _space, kind = (owner or "").partition(" ")
    owners = [{"apiVersion": version, "kind": kind, "name": "web", "controller": controller}] if owner else []
    metadata = {"namespace": "shop", "name": "web-0", "uid": "u-1", "ownerReferences": owners}
    return {
        "metadata": {**metadata, "annotations": annotations},
        "status": {"phase": phase, "conditions": list(conditions), **({"reason": reason} if reason else {})},
    }


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(pod(reason="Terminated", conditions=[BY_KUBELET]), id="ended by the shutdown"),
        pytest.param(pod("Succeeded", conditions=[BY_KUBELET]), id="ended well in the shutdown"),
        pytest.param(pod(reason="Terminated"), id="by its reason alone"),
        pytest.param(pod(reason="NodeShutdown"), id="refused during the shutdown"),
        pytest.param(pod(owner=None, reason="Terminated"), id="without an owner"),
        pytest.param(pod(owner="apps/v1 DaemonSet", reason="Terminated"), id="of a DaemonSet"),
        pytest.param(pod(owner="batch/v1 Job", reason="Terminated", conditions=[BY_KUBELET]), id="of a Job"),
    ],
)
def test_left_by_a_shutdown(left):
    assert is_leftover(left)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod("Running", conditions=[BY_KUBELET]), id="still runs"),
        pytest.param(pod("Pending"), id="has not begun"),
        pytest.param(pod(), id="failed by itself"),
        pytest.param(pod("Succeeded"), id="completed by itself"),
        pytest.param(pod(reason="Evicted"), id="evicted by the kubelet"),
        pytest.param(
            pod(conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]),
            id="evicted by the API",
        ),
        pytest.param(
            pod(owner="v1 Node", reason="Terminated", **{"kubernetes.io/config.mirror": "x"}),
            id="of a file of the node",
        ),
        pytest.param({"metadata": {"namespace": "shop", "name": "web-0", "uid": "u-1"}}, id="without a status"),
    ],
)
def test_others_are_not_ours_to_sweep(other):
    assert not is_leftover(other)


@pytest.mark.parametrize(
    "owner", ["apps/v1 ReplicaSet", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "v1 ReplicationController"]
)
def test_pods_that_are_made_again_are_not_kept(owner):
    assert why_kept(pod(owner=owner)) is None


def test_pods_that_a_controller_counts_or_no_one_creates_again_are_kept():
    assert why_kept(pod(owner="batch/v1 Job")) == "Job web may count its pods"
    assert why_kept(pod(owner="argoproj.io/v1alpha1 Workflow")) == "Workflow web may count its pods"
    assert "it has no owner" in why_kept(pod(owner=None))
    assert "it has no owner" in why_kept(pod(controller=False))


def test_described_for_people():
    expected = {"namespace": "shop", "name": "web-0", "uid": "u-1", "phase": "Failed", "reason": "Terminated"}

    assert describe(pod(reason="Terminated")) == {**expected, "kept": None}
    assert describe(pod("Succeeded", conditions=[BY_KUBELET]))["reason"] == "TerminationByKubelet"
