# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a rolling reboot ends the pauses of this run and of the dead runs before it."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import operations
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import lease_name
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import health_checks
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.end import LeftOver, reboot_end

CHECK = f"{health_checks.PATH}/workers"
MINE, EARLIER, OTHERS = (f"holdfast.kubernetes run {run}" for run in ("me", "earlier", "other"))
PARAMS = {"operation": "kernel", "run": "me", "group": "default", "complete": True, "paused": True, "left": ""}


@pytest.fixture
def cluster():
    """Of the runs in the operation, the earlier one has been killed a short time ago."""
    found = MemoryCluster()
    for run in ("me", "earlier", "other"):
        found.lives(run)
    found.ledger(ledger=Ledger(operations=({"id": "kernel", "runs": ["me", "earlier"]},)))
    entries = {"pauseRequests": [EARLIER, MINE, OTHERS]}
    found._store("TEST", CHECK, {"metadata": {"name": "workers"}, "spec": entries})
    return found


def end(cluster):
    context = Context(PARAMS)
    context.cluster = cluster
    return reboot_end(context, PARAMS)


def entries(cluster):
    return cluster.objects[CHECK]["spec"].get("pauseRequests", [])


def test_the_pause_of_a_run_that_dies_during_the_end_ends_with_it(cluster, monkeypatch):
    def wait(*_args):
        lease = cluster.objects[paths.lease("holdfast", lease_name("earlier"))]
        lease["spec"]["renewTime"] = "2026-11-21T08:58:20.000000Z"

    monkeypatch.setattr(operations, "_await_silent", wait)
    end(cluster)
    assert entries(cluster) == [OTHERS]


def test_a_run_that_can_not_leave_its_operation_ends_its_pause(cluster):
    cluster.broken.append("/configmaps")
    with pytest.raises(LeftOver, match="COULD NOT BE ENDED"):
        end(cluster)
    assert entries(cluster) == [EARLIER, OTHERS]


def test_both_errors_are_reported(cluster):
    cluster.broken.append(".")
    with pytest.raises(LeftOver, match=r"COULD NOT BE ENDED: .* NodeHealthChecks may still be paused: "):
        end(cluster)
