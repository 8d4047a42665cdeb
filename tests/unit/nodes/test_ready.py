# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which DaemonSets the wait for a node leaves out if nothing says which were Ready before."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import QuietCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, TimedOut
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.ready import node_ready

DAEMONSET = "/apis/apps/v1/namespaces/tenant/daemonsets/broken"


class Cluster(QuietCluster):
    """A node that is back, with a pod of a DaemonSet that is not Ready."""

    def __init__(self, *statuses):
        super().__init__()
        self.statuses = list(statuses)
        self.node()
        owner = {"kind": "DaemonSet", "name": "broken", "controller": True}
        metadata = {"name": "broken-1", "namespace": "tenant", "uid": "p1", "ownerReferences": [owner]}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
        pod = {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": status}
        self._store("TEST", "/api/v1/namespaces/tenant/pods/broken-1", pod)

    def find(self, path):
        if path != DAEMONSET:
            return super().find(path)
        status = self.statuses.pop(0)
        if status == 403:
            raise ApiFailure("daemonsets.apps is forbidden", status=403)
        return status and {"status": dict(zip(("desiredNumberScheduled", "numberReady"), status))}


def wait(*statuses):
    warnings = []
    options = {"name": "node-1", "timeout": 0, "sign_of_life": False, "daemonset_pods": True, "boot_id_before": None}
    context = Context(options, warn=warnings.append)
    context.cluster = Cluster(*statuses)
    return node_ready(context, options), warnings


@pytest.mark.parametrize(
    "statuses",
    [
        [(3, 0)],
        # It has no Ready pod any more at the end of the wait.
        [(3, 3), (3, 0)],
    ],
)
def test_one_that_is_ready_nowhere_is_only_named(statuses):
    found, warnings = wait(*statuses)
    assert found["ready"] is True
    assert "1 DaemonSet pods are not Ready, and their DaemonSets have no Ready pod on any node" in warnings[0]
    assert "tenant/broken-1" in warnings[0]


@pytest.mark.parametrize("status", [(3, 2), (1, 0), (0, 0), 403, None])
def test_others_are_waited_for(status):
    with pytest.raises(TimedOut, match="tenant/broken-1"):
        wait(status, status)
