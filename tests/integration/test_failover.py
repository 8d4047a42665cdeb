# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failover and the way back, by the playbooks, on a real API server with its controllers and the lab's metal3."""

from __future__ import annotations

import pytest
from integration.failovers import Failovers
from integration.metal3 import bound

from ansible_collections.holdfast.kubernetes.plugins.module_utils import _paths as paths

KEY = "reboot.metal3.io/holdfast-failover"
OTHER = "reboot.metal3.io/somebody-else"
TOLERANT = [{"operator": "Exists"}]


@pytest.fixture
def failovers(world, ansible):
    found = Failovers(world, ansible)
    yield found
    found.close()


@pytest.fixture
def victim(failovers):
    found = failovers.victim()
    # With others beside it, one that is down is no storm.
    failovers.world.nodes(2)
    return found


@pytest.fixture
def hosts(world, lab, tmp_path):
    with bound(world, lab, tmp_path) as found:
        yield found


@pytest.fixture
def host(hosts, victim):
    """With a metal3 that runs, and found by the node's provider ID."""
    found = hosts.add(victim.name)
    provider = f"metal3://{found.namespace}/{found.name}/m"
    victim.world.cluster.merge(paths.node(victim.name), {"spec": {"providerID": provider}})
    hosts.start()
    return found


# -- there and back ---------------------------------------------------------------------------------------------------


def test_by_command_there_and_back(failovers, victim):
    world = victim.world
    world.owned("goes", victim.name)
    world.owned("stays", victim.name, tolerations=TOLERANT)
    variables = failovers.by_command()
    before = victim.boot_id
    victim.hang()

    done = failovers.run(victim.name, reason="its disk has failed", **variables).good()

    (entry,) = done.report["nodes"]
    assert (entry["result"], entry["evidence"]["kind"]) == ("moved", "Command")
    assert "Chassis Power is off" in entry["evidence"]["output"]
    assert f"{world.namespace}/stays" in entry["detail"]
    assert set(world.pods(victim.name)) == {"stays"}
    assert set(entry["seconds"]) == {"confirm", "claim", "fence", "taint", "move"}
    assert failovers.commands == ["off"]
    assert (victim.taint, world.cordoned(victim.name), victim.claim) == ("nodeshutdown", True, {})
    assert done.stats["failover_moved"] == 1
    kept = failovers.audit()[entry["operation"]]
    assert (kept["node"], kept["reason"], kept["result"]) == (victim.name, "its disk has failed", "moved")
    assert kept["evidence"]["kind"] == "Command"
    assert [step["step"] for step in kept["steps"]] == ["claim", "fence", "taint", "move", "moved"]
    assert all(step["resource_versions"]["node"] for step in kept["steps"])

    again = failovers.run(victim.name, **variables).good()
    assert again.report["nodes"][0]["result"] == "skipped"
    assert failovers.commands == ["off"]

    back = failovers.recover(victim.name, **variables).good()
    (entry,) = back.report["nodes"]
    assert entry["result"] == "recovered", back.output
    assert failovers.commands == ["off", "on"]
    assert victim.ready
    assert entry["boot_id_before"] == before != entry["boot_id_after"] == victim.boot_id
    assert victim.untouched
    kept = failovers.audit()[entry["operation"]]
    assert kept["result"] == "recovered"
    assert len(kept["runs"]) == 2
    assert failovers.recover(victim.name, **variables).good().report["nodes"][0]["result"] == "skipped"
