# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The begin of a rolling reboot leaves nothing behind if it fails."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import MemoryCluster
from unit.reboot.variables import settings

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import lease_name
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import controller, own_pod_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.begin import enter, reboot_begin

PARAMS = {
    "settings": settings(pause_health_checks=True, run="me", operation="kernel"),
    "who": {"job": "", "host": "laptop", "person": "jo"},
    "play": "begin",
    "inventory_host": "worker-1",
    "hosts": {"worker-1": "node-1"},
    "forks": 5,
}


def test_a_controller_that_is_not_found_pauses_nothing(monkeypatch):
    cluster, context = MemoryCluster(), Context(PARAMS)
    cluster.node()
    context.cluster = cluster
    monkeypatch.setattr(controller, "own_traces", lambda *_arguments: own_pod_rules.Traces(uid="0-1-2", pod="runner"))
    cluster.broken.append("/pods")

    with pytest.raises(HoldfastError, match="/pods"):
        reboot_begin(context, PARAMS)

    assert cluster.writes == []


def begun(cluster, settings):
    context = Context(PARAMS)
    context.cluster = cluster
    return enter(context, {**PARAMS, "settings": settings}, {"worker-1": "node-1"})


def test_the_id_of_a_live_run_is_refused():
    cluster = MemoryCluster()
    cluster.node()
    cluster.lives("nightly")
    before = dict(cluster.objects)
    with pytest.raises(Refused, match=r"^Run nightly of nightly is active.* set another rolling_reboot_run, or none"):
        begun(cluster, settings(run="nightly"))
    assert cluster.objects == before

    # The id of a dead run may be used again.
    path = paths.lease("holdfast", lease_name("nightly"))
    cluster.objects[path]["spec"]["renewTime"] = "2026-11-21T08:58:20.000000Z"
    assert begun(cluster, settings(run="nightly"))["run"] == "nightly"
