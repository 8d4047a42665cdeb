# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which finished pods a shutdown left behind."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._leftovers import describe, is_leftover

BY_KUBELET = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}


def pod(phase="Failed", *, owner="ReplicaSet", reason=None, conditions=()):
    owners = [{"kind": owner, "controller": True}] if owner else []
    return {
        "metadata": {"namespace": "shop", "name": "web-0", "uid": "u-1", "ownerReferences": owners},
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
        pytest.param(pod(owner="DaemonSet", reason="Terminated"), id="of a DaemonSet"),
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
        pytest.param(pod(owner="Job", reason="Terminated", conditions=[BY_KUBELET]), id="counted by its Job"),
        pytest.param({"metadata": {"namespace": "shop", "name": "web-0", "uid": "u-1"}}, id="without a status"),
    ],
)
def test_others_are_not_ours_to_sweep(other):
    assert not is_leftover(other)


def test_described_for_people():
    expected = {"namespace": "shop", "name": "web-0", "uid": "u-1", "phase": "Failed", "reason": "Terminated"}

    assert describe(pod(reason="Terminated")) == expected
    assert describe(pod("Succeeded", conditions=[BY_KUBELET]))["reason"] == "TerminationByKubelet"
