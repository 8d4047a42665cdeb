# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that enter and leave an operation while another run is silent, on an API server in memory."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import operations, runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger, Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import lease_name

SILENT = paths.lease("holdfast", lease_name("silent"))
GIVEN = {"group": "default", "operation": "kernel", "run": "me", "nodes": ["node-1"]}


@pytest.fixture
def cluster():
    found = MemoryCluster()
    found.node()
    entry = {"id": "kernel", "failures": {}, "runs": ["silent"], "seen": AT, "unfinished": False}
    found.ledger(ledger=Ledger(slots={"node-1": Slot("node-1", "kernel", "silent", AT)}, operations=(entry,)))
    found.lives("silent")
    lease = found.objects[SILENT]
    lease["spec"]["renewTime"] = "2026-11-21T08:58:20.000000Z"
    found._store("TEST", SILENT, lease)
    return found


def begin(cluster):
    context = Context({})
    context.cluster = cluster
    operations.enter(context, {**GIVEN, "restart": False, "adopt_within": 100000})


def known(cluster):
    return cluster.ledger().operations[-1]["runs"]


def wakes_at(cluster, verb, kind):
    """Let the silent run give a sign of life directly before a write of another run."""
    cluster.hooks.append(
        lambda done, path, _body: (done, kind in path) == (verb, True) and runs.touch(cluster, "silent")
    )


def test_the_lease_of_a_silent_run_stays_so_that_it_is_alive_when_it_wakes(cluster):
    begin(cluster)
    runs.touch(cluster, "silent")

    assert runs.live_ids(cluster) == {"me", "silent"}
    assert known(cluster) == ["silent", "me"]


def test_at_the_end_of_the_operation_it_goes(cluster):
    begin(cluster)
    operations.leave(cluster, {**GIVEN, "complete": False})

    assert SILENT not in cluster.objects
    assert known(cluster) == []


def test_at_the_end_the_lease_of_a_run_that_wakes_just_then_stays(cluster):
    begin(cluster)
    wakes_at(cluster, "PUT", "configmaps")
    operations.leave(cluster, {**GIVEN, "complete": False})

    assert runs.live_ids(cluster) == {"silent"}
