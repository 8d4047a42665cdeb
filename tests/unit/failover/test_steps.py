# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a failover begins, or is resumed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from unit.reboot.memory_cluster import AT, NOW, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import steps
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.rules import FENCE, STOP
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.turn import _STEP

RECORD = {
    **dict.fromkeys(("holder", "reason", "detail"), ""),
    **dict.fromkeys(("started", "since"), AT),
    "id": "op",
    "run": "dead",
    "phases": {},
    "boot_id": "boot-1",
    "facts": {},
}
RECORDS = [
    None,
    {**RECORD, "phase": "claim", "result": ""},
    {**RECORD, "phase": "claim", "result": "failed"},
    # Nothing says that a power-off was sent.
    {**RECORD, "phase": "fence", "result": ""},
]


def silent_node(record, since):
    cluster = MemoryCluster()
    cluster.node(ready=False, **({"failover": record} if record else {}))
    condition = {"type": "Ready", "status": "Unknown", "lastTransitionTime": f"{NOW - timedelta(seconds=since):%FT%TZ}"}
    cluster.objects[paths.node("node-1")]["status"]["conditions"] = [condition]
    return cluster


def step(cluster):
    options = {"name": "node-1", "run": "r2", "direction": "failover", "holder": "me", "quorum_asked": False}
    context = Context({})
    context.cluster = cluster
    return steps.failover_step(context, {**_STEP, "max_unhealthy": "100%", "claim_timeout": 0, **options})


@pytest.mark.parametrize("record", RECORDS)
class TestConfirm:
    """A node that has just become silent is watched first, whatever an earlier run has seen."""

    def test_one_that_comes_back_is_left_alone(self, record, monkeypatch):
        cluster, waits = silent_node(record, since=5), []

        def comes_back(api, _collection, _name, until, deadline):
            waits.append(deadline.seconds)
            cluster.objects[paths.node("node-1")]["status"]["conditions"][0]["status"] = "True"
            found = api.find(paths.node("node-1"))
            assert until(found)
            return found

        monkeypatch.setattr(steps, "wait_for", comes_back)
        if record:
            # What the earlier run did is undone.
            assert step(cluster)["step"] == STOP
        else:
            with pytest.raises(Refused, match="is Ready"):
                step(cluster)
        assert waits == [25]

    def test_one_that_has_been_silent_for_so_long_is_not_waited_for(self, record, monkeypatch):
        monkeypatch.setattr(steps, "wait_for", lambda *_arguments: pytest.fail("it waits"))
        assert step(silent_node(record, since=60))["step"] == FENCE
