# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failovers with the hosts in a management cluster, found by Machine and Metal3Machine, with the documented rights."""

from __future__ import annotations

import pytest
from integration.support.metal3 import bound, management
from integration.support.rights import Account, of_machines

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths

KEY = "reboot.metal3.io/holdfast-failover"
NOWHERE = {"K8S_AUTH_KUBECONFIG": "/nowhere"}


@pytest.fixture
def victim(failovers):
    found = failovers.victim()
    failovers.world.nodes(2)
    return found


@pytest.fixture
def elsewhere(lab, world):
    with management(lab, world) as found:
        yield found


@pytest.fixture
def host(world, lab, tmp_path, elsewhere, victim):
    """The host of the node, by its Machine alone: it has no provider ID."""
    with bound(world, lab, tmp_path, elsewhere) as hosts:
        found = hosts.add(victim.name)
        hosts.chain(found)
        hosts.start()
        yield found


@pytest.fixture
def access(world, lab, tmp_path, elsewhere):
    """Variables that reach each cluster with only the rights that concern it."""
    cluster, kubeconfig = elsewhere
    name = f"controller-{world.namespace}"
    here = Account(world.cluster, name, lambda rule: not of_machines(rule))
    world.made.objects += here.objects
    there = Account(cluster, name, of_machines)
    return {
        "auth": {"kubeconfig": str(here.kubeconfig(lab.kubeconfig, tmp_path))},
        "management": {"kubeconfig": str(there.kubeconfig(kubeconfig, tmp_path))},
        # Variables that do not name a cluster reach none.
        "environment": NOWHERE,
    }


@pytest.mark.long
def test_failover_and_recovery_with_the_documented_rights(failovers, victim, host, access):
    world = victim.world
    world.workload("statefulsets", "db", 3)
    on_it = [name for name, pod in world.pods().items() if pod["spec"]["nodeName"] == victim.name]
    world.owned("goes", victim.name)
    before = victim.boot_id
    victim.hang()

    done = failovers.run(victim.name, soft_timeout=0, **access).good()

    (entry,) = done.report["nodes"]
    assert (entry["result"], entry["evidence"]["kind"]) == ("moved", "BareMetalHost")
    assert (entry["evidence"]["host"], entry["evidence"]["node"]) == (host.name, victim.name)
    assert {item["name"] for item in entry["pods"] if item["state"] == "gone"} >= {"goes", *on_it}
    assert (host.powered, host.commands, victim.taint) == (False, ["off"], "nodeshutdown")
    assert world.cluster.find(host.path) is None, "it is in the other cluster"
    failovers.until_ready("db", 3)

    back = failovers.recover(victim.name, **access).good()
    assert back.results == {victim.name: "recovered"}
    assert (host.powered, host.commands) == (True, ["off", "on"])
    assert KEY not in host.annotations
    assert victim.boot_id != before
    assert victim.untouched


@pytest.mark.long
def test_without_the_management_cluster_no_host_is_found(failovers, victim, host):
    victim.hang()

    done = failovers.run(victim.name, auth={"kubeconfig": victim.world.kubeconfig}, environment=NOWHERE)

    assert done.results == {victim.name: "refused"}
    assert "failover_management" in done.detail(victim.name)
    assert victim.untouched
    assert KEY not in host.annotations


@pytest.mark.long
def test_a_node_that_was_deleted_during_the_failover_gets_its_host_back(failovers, victim, host, access):
    victim.world.owned("goes", victim.name)
    victim.hang()
    failovers.run(victim.name, soft_timeout=0, **access).good()
    before = victim.boot_id
    victim.world.cluster.delete(paths.node(victim.name))

    planned = failovers.recover(victim.name, arguments=("--check",), **access).good()
    assert planned.results == {victim.name: "planned"}
    assert KEY in host.annotations

    done = failovers.recover(victim.name, **access).good()

    assert done.results == {victim.name: "recovered"}
    assert "was deleted" in done.detail(victim.name)
    assert KEY not in host.annotations
    assert (host.powered, host.commands) == (True, ["off", "on"])
    kept = failovers.audit()[done.entry(victim.name)["operation"]]
    assert (kept["result"], kept["steps"][-1]["step"], len(kept["runs"])) == ("recovered", "recovered", 2)
    # Its kubelet has made the Node again.
    assert victim.boot_id != before
    assert victim.untouched

    again = failovers.recover(victim.name, **access).good()
    assert again.results == {victim.name: "skipped"}
    assert host.commands == ["off", "on"]
