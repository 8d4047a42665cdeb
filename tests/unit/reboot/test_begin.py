# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The begin of a rolling reboot leaves nothing behind if it fails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unit.reboot.memory_cluster import AT, MemoryCluster
from unit.reboot.variables import settings

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import EXCLUDE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger, Slot
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
    monkeypatch.setattr(controller, "own_traces", lambda: own_pod_rules.Traces(uid="0-1-2", pod="runner"))
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


HOSTS = {"web1": "node-1", "web2": "node-2", "web3": "node-3"}


@pytest.fixture
def fleet():
    cluster = MemoryCluster()
    for name in HOSTS.values():
        cluster.node(name)
    return cluster


def fleet_begun(cluster, *, said=None, hosts=None, play="begin", **options):
    hosts = hosts or HOSTS
    usual = {"run": "me", "operation": "kernel", "controller_node": "elsewhere", "node_name": "node-1"}
    given = settings(**{**usual, **options})
    params = {**PARAMS, "settings": given, "hosts": hosts, "inventory_host": next(iter(hosts)), "play": play}
    context = Context(params)
    context.cluster = cluster
    if said is not None:
        context.warn = said.append
    return reboot_begin(context, params)


class TestCanaries:
    def test_a_number_takes_the_first_hosts(self, fleet):
        found = fleet_begun(fleet, canary=["2"])

        assert (found["canaries"], found["canary_nodes"]) == (["web1", "web2"], ["node-1", "node-2"])
        assert found["hosts"] == "web1\nweb2\nweb3"

    def test_a_number_does_not_count_the_node_of_the_controller(self, fleet):
        assert fleet_begun(fleet, canary=["1"], controller_node="node-1")["canaries"] == ["web2"]

    def test_a_number_does_not_count_excluded_nodes(self, fleet):
        """No run reboots them, so the other nodes would wait for ever."""
        fleet.node("node-1", labels={EXCLUDE: ""})

        assert fleet_begun(fleet, canary=["1"])["canaries"] == ["web2"]

    def test_hosts_and_nodes_can_be_named(self, fleet):
        found = fleet_begun(fleet, canary=["web1", "node-2", "node-of-another-slice"])

        assert found["canaries"] == ["web1", "web2", "node-of-another-slice"]
        assert found["canary_nodes"] == ["node-1", "node-2", "node-of-another-slice"]

    def test_the_node_of_the_controller_is_none_and_that_is_said(self, fleet):
        said = []

        assert fleet_begun(fleet, canary=["node-1"], controller_node="node-1", said=said)["canaries"] == []
        assert "Host web1 is no canary" in said[0]

    def test_without_the_playbook_each_host_has_the_same(self, fleet):
        found = fleet_begun(fleet, canary=["1"], play="only")

        assert found["canaries"] == ["web1"]


class TestNodesThatAnEarlierRunHasBegun:
    @pytest.mark.parametrize("group", ["default", "control-plane"])
    def test_they_come_first(self, fleet, group):
        """Control-plane nodes have their slots in a ledger of their own."""
        claim = {"run": "dead", "operation": "kernel", "purpose": "rolling_reboot", "since": AT}
        fleet.node("node-3", claim=claim)
        fleet.ledger(group, ledger=Ledger(slots={"node-3": Slot("node-3", "kernel", "dead", AT)}))

        found = fleet_begun(fleet)

        assert found["resumes"] == ["web3"]

    @pytest.mark.parametrize("group", ["default", "default.control-plane"])
    @pytest.mark.parametrize(("node", "counts"), [({"ready": False}, True), ({"boot_id": "boot-2"}, False)])
    def test_a_failure_counts_until_its_node_is_back(self, fleet, group, node, counts):
        """A failed control-plane node has its slot in a ledger of its own, and stops the workers."""
        fleet.node("node-3", **node)
        failed = Ledger(slots={"node-3": Slot("node-3", "kernel", "dead", AT, state="failed", boot_id="boot-1")})
        entry = {"id": "kernel", "failures": {"node-3": "it is down"}, "runs": [], "seen": AT, "unfinished": True}
        fleet.ledger(group, ledger=failed)
        fleet.ledger(ledger=replace(fleet.ledger(), operations=(entry,)))

        fleet_begun(fleet)

        assert fleet.ledger().failures("kernel") == ({"node-3": "it is down"} if counts else {})

    def test_a_failure_of_a_node_that_no_longer_exists_still_counts(self, fleet):
        """The next slice of a job would reboot its nodes into the same bad kernel."""
        entry = {"id": "kernel", "failures": {"node-4": "it is down"}, "runs": [], "seen": AT, "unfinished": True}
        fleet.ledger(ledger=Ledger(operations=(entry,)))

        fleet_begun(fleet)

        assert fleet.ledger().failures("kernel") == {"node-4": "it is down"}

    def test_a_slot_of_another_operation_is_none(self, fleet):
        fleet.ledger(ledger=Ledger(slots={"node-3": Slot("node-3", "old", "dead", AT)}))
        fleet.node("node-3", claim={"run": "dead", "operation": "old", "purpose": "rolling_reboot", "since": AT})

        assert fleet_begun(fleet)["resumes"] == []
