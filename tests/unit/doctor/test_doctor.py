# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor writes and reports, on an API server in memory."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.doctor import doctor

CORDON = {"owner": "rolling_reboot", "reason": "reboot", "since": "2026-11-21T08:00:00Z"}


@pytest.fixture
def cluster():
    found = MemoryCluster()
    found.objects["/api/v1/namespaces/holdfast"] = {"metadata": {"name": "holdfast"}}
    return found


def clear(cluster):
    params = {"state": "cleared", "release": [], "nodes": None, "group": None}
    context = Context(params)
    context.__dict__.update(cluster=cluster, management=cluster)
    return doctor(context, params)


def test_if_nothing_is_stale_nothing_is_written(cluster):
    cluster.node()

    assert clear(cluster)["stale"] == 0
    assert cluster.writes == []


def test_if_the_api_server_fails_the_report_says_what_was_cleared(cluster):
    for name in ("node-1", "node-2"):
        cluster.node(name, unschedulable=True, cordon=CORDON)

    def fails(_verb, path, _body):
        if path.endswith("/nodes/node-2"):
            raise Unreachable("The API server did not answer.")

    cluster.hooks.append(fails)
    with pytest.raises(Unreachable) as caught:
        clear(cluster)

    cleared = {item["node"]: item["cleared"] for item in caught.value.fields["findings"] if item["kind"] == "cordon"}
    assert cleared == {"node-1": True, "node-2": False}
    assert any(line.startswith("cleared") for line in caught.value.fields["report"])
