# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of all nodes asks the cluster once, and says of each what a plan of that node alone says."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from hypothesis import given
from hypothesis import strategies as st
from unit.reboot.memory_cluster import AT, MemoryCluster
from unit.reboot.variables import settings

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import (
    Ledger,
    Member,
    Slot,
    fail,
    operation_entry,
    with_entry,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import Policy
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.begin import enter
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.plan import reboot_plan
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.turn import reboot_turn
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_plan as module
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_turn as turn_module

SETTINGS = {"method": "metal3", "operation": "kernel", "run": "me", "when": "required"}
WHO = {"job": "", "host": "bastion", "person": "alice"}
RECORD = {"id": "kernel", "run": "dead", "started": AT, "since": AT, "phases": {}, "boot_id_before": "boot-1"}


def checked(spec, options):
    found = ArgumentSpecValidator(spec["argument_spec"]).validate(options)
    assert not found.error_messages
    return found.validated_parameters


def plan(cluster, hosts, said=None, **more):
    params = {**checked(module.SPEC, {"settings": settings(**SETTINGS), "who": WHO, **more}), "hosts": hosts}
    context = Context(params, True, say=(said if said is not None else []).append)
    cluster.dry_run = True
    context.cluster = cluster
    return reboot_plan(context, params)


def host(name, answer=None, **more):
    known = settings(**{**SETTINGS, **more}, node_name=name)
    return {
        "host": f"host-{name}",
        "turn": {"answer": answer or {}, "shutdown": None},
        "settings": known,
        "settings_error": "",
    }


def test_two_hosts_of_one_node_are_refused():
    cluster = MemoryCluster()
    cluster.node("a")
    first, second = host("a"), {**host("a"), "host": "typo"}
    with pytest.raises(
        InvalidInput, match=r"Several hosts are the same Node: host-a and typo are Node a. Nothing was done"
    ):
        plan(cluster, [first, second])
    assert cluster.writes == []


def test_jobs_of_the_same_number_are_different_runs():
    cluster = MemoryCluster()
    cluster.dry_run = True
    context = Context({}, True)
    context.cluster = cluster
    params = {"settings": settings(method="metal3"), "who": {**WHO, "job": "57"}, "forks": 5}
    ids = {enter(context, params, {"a": "a"})["run"] for _time in range(20)}
    assert len(ids) > 1
    assert all(name.startswith("57-") for name in ids)


def alone(cluster, one):
    """The plan of a node by itself, as a role without the playbook makes it."""
    given = {"name": one["settings"]["node_name"], "settings": one["settings"], "operation": "kernel", "run": "me"}
    more = {"answer": one["turn"]["answer"], "inventory_host": one["host"], "pods": one["settings"]["block_pods"]}
    params = checked(turn_module.SPEC, {**given, **more})
    context = Context(params, True)
    context.cluster = cluster
    return reboot_turn(context, params)["result"]


def pod(cluster, name, node, *, controller="ReplicaSet", labels=None, volumes=()):
    owners = [{"kind": controller, "name": "owner", "controller": True}] if controller else []
    body = {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": owners, "labels": labels or {}},
        "spec": {"nodeName": node, "volumes": list(volumes)},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    cluster._store("TEST", paths.pod("shop", name), body)


def budget(cluster, allowed):
    status = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 3}
    body = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": status,
    }
    cluster._store("TEST", f"{paths.namespaced('apis/policy/v1', 'shop', 'poddisruptionbudgets')}/web", body)


class Counting(MemoryCluster):
    """Counts what is asked, by its path and selectors."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def find(self, path):
        self.asked.append(("find", path))
        return super().find(path)

    def pages(self, path, **selectors):
        self.asked.append(("pages", path, *sorted(map(str, selectors.values()))))
        return super().pages(path, **selectors)

    def items(self, path, **selectors):
        self.asked.append(("items", path, *sorted(map(str, selectors.values()))))
        return super().items(path, **selectors)


FEATURES = {
    "held": lambda cluster, name: cluster.hold(name),
    "lone": lambda cluster, name: pod(cluster, f"lone-{name}", name, controller=""),
    "data": lambda cluster, name: pod(cluster, f"data-{name}", name, volumes=[{"emptyDir": {}}]),
    "web": lambda cluster, name: pod(cluster, f"web-{name}", name, labels={"app": "web"}),
    "batch": lambda cluster, name: pod(cluster, f"batch-{name}", name, labels={"job": "yes"}),
    "agent": lambda cluster, name: pod(cluster, f"agent-{name}", name, controller="DaemonSet"),
}
STATES = {
    "plain": {},
    "excluded": {"labels": {"holdfast.dev/exclude": ""}},
    "done": {"operation": {**RECORD, "phase": "uncordon", "result": "rebooted"}},
    "midway": {"operation": {**RECORD, "phase": "drain", "result": ""}},
    "sent": {"operation": {**RECORD, "phase": "reboot", "result": ""}, "ready": False},
    "back": {"operation": {**RECORD, "phase": "reboot", "result": ""}, "boot_id": "boot-2"},
    "down": {"ready": False},
    "control plane": {"labels": {"node-role.kubernetes.io/control-plane": ""}},
}
ANSWERS = [{"needed": "a kernel"}, {"needed": ""}, {"trouble": "It can't be reached."}]


@given(data=st.data())
def test_the_plan_of_all_is_the_plan_of_each(data):
    cluster, hosts = MemoryCluster(), []
    cluster.node("other")
    budget(cluster, data.draw(st.sampled_from([0, 1])))
    for name in [f"node-{number}" for number in range(data.draw(st.integers(1, 5)))]:
        cluster.node(name, **STATES[data.draw(st.sampled_from(list(STATES)))])
        for feature in data.draw(st.sets(st.sampled_from(list(FEATURES)))):
            FEATURES[feature](cluster, name)
        more = {"force": data.draw(st.booleans()), "when": data.draw(st.sampled_from(["required", "always"]))}
        more["block_pods"] = data.draw(st.sampled_from([[], [{"selector": "job=yes"}]]))
        hosts.append(host(name, data.draw(st.sampled_from(ANSWERS)), **more))
    hosts.append(host("nowhere", data.draw(st.sampled_from(ANSWERS))))
    before = json.dumps(cluster.objects, sort_keys=True)

    found = plan(cluster, hosts)

    # Whether a reboot is required is a fact about the plan's entry, which has no place in the journey.
    entries = [{key: value for key, value in entry.items() if key != "required"} for entry in found["nodes"]]
    assert entries == [alone(cluster, one) for one in hosts]
    assert json.dumps(cluster.objects, sort_keys=True) == before


@pytest.mark.parametrize("count", [3, 30])
def test_the_cluster_is_asked_once_for_all_nodes(count):
    cluster = Counting()
    hosts = [
        host(f"node-{number}", {"needed": "a kernel"}, block_pods=[{"selector": "job=yes"}]) for number in range(count)
    ]
    for number, _host in enumerate(hosts):
        cluster.node(f"node-{number}")
        pod(cluster, f"web-{number}", f"node-{number}", labels={"app": "web"})
    said = []

    plan(cluster, hosts, said)

    assert len(cluster.asked) == len(set(cluster.asked)) <= 17, cluster.asked
    assert not [asked for asked in cluster.asked if "node-1" in str(asked)]
    assert said[-1].startswith(f"{count} nodes: {count} now")
    assert len(said) == count + 1


def test_a_few_nodes_of_many_are_asked_for_one_by_one():
    cluster = Counting()
    for number in range(50):
        cluster.node(f"node-{number}")
        pod(cluster, f"web-{number}", f"node-{number}", controller="")

    found = plan(cluster, [host("node-7", {"needed": "a kernel"})])

    assert found["nodes"][0]["verdict"] == "never"
    assert "shop/web-7" in found["nodes"][0]["detail"]
    assert ("find", "/api/v1/nodes/node-7") in cluster.asked
    assert "spec.nodeName!=" not in str(cluster.asked)


def verdicts(found):
    return {entry["name"]: entry["verdict"] for entry in found["nodes"]}


def test_failures_count_in_the_group_of_the_operation():
    """The hosts of a run may have different groups."""
    cluster, hosts = MemoryCluster(), []
    for name in ("node-1", "node-2"):
        cluster.node(name, labels={"pool": name})
        hosts.append(host(name, {"needed": "a kernel"}, group=name, selector=f"pool={name}"))
    broken = fail(Ledger(), Member("node-2", ready=True, unschedulable=False), "kernel", "it broke")
    cluster.ledger("node-2", broken)
    assert verdicts(plan(cluster, hosts, settings=hosts[0]["settings"])) == {"node-1": "now", "node-2": "now"}

    cluster.node("down", ready=False)
    down = Member("down", ready=False, unschedulable=False, boot_id="boot-1")
    cluster.ledger("node-1", fail(Ledger(), down, "kernel", "it broke"))
    assert verdicts(plan(cluster, hosts, settings=hosts[0]["settings"])) == {"node-1": "never", "node-2": "never"}


def test_the_policy_may_change_when_the_nodes_that_are_resumed_are_done():
    cluster = MemoryCluster()
    cordon = {"owner": "rolling_reboot", "unschedulable_before": False}
    cluster.node("node-1", unschedulable=True, cordon=cordon, operation={**RECORD, "phase": "drain", "result": ""})
    cluster.node("node-2")
    slots = {"node-1": Slot("node-1", "kernel", "dead", AT, boot_id="boot-1", claims=1)}
    ledger = Ledger(policy=Policy(selector="!node-role.kubernetes.io/control-plane"), slots=slots)
    cluster.ledger(ledger=with_entry(ledger, {**operation_entry(ledger, "kernel"), "runs": ["dead"], "seen": AT}))
    hosts = [host(name, {"needed": "a kernel"}, max_unavailable="2") for name in ("node-1", "node-2")]
    assert verdicts(plan(cluster, hosts)) == {"node-1": "now", "node-2": "now"}


def test_a_slot_that_a_run_returns_first_does_not_count():
    """Its reboot has not begun. Then the node gets no other slot while the group has another policy."""
    cluster = MemoryCluster()
    for name in ("node-1", "node-2"):
        cluster.node(name)
    cluster.lives("other")
    dead = Slot("node-1", "kernel", "dead", AT, boot_id="boot-1")
    slots = {"node-1": dead, "node-2": Slot("node-2", "another", "other", AT, boot_id="boot-1")}
    ledger = Ledger(policy=Policy(selector="!node-role.kubernetes.io/control-plane"), slots=slots)
    cluster.ledger(ledger=with_entry(ledger, {**operation_entry(ledger, "kernel"), "runs": ["dead"], "seen": AT}))
    cluster.node("node-1", claim={"run": "dead", "operation": "kernel", "purpose": "rolling_reboot", "since": AT})
    found = plan(cluster, [host("node-1", {"needed": "a kernel"}, max_unavailable="2")])
    assert verdicts(found) == {"node-1": "never"}
    assert "the group has another policy" in found["nodes"][0]["detail"]


def test_every_selected_pod_counts():
    cluster = MemoryCluster()
    cluster.node("node-1")
    cluster.node("node-2")
    for number in range(6):
        pod(cluster, f"a-{number}", "node-1", controller="", labels={"app": "other"})
    pod(cluster, "z", "node-1", controller="", labels={"app": "mine"})
    found = plan(cluster, [host("node-1", {"needed": "a kernel"}, pod_selector="app=mine")])
    assert verdicts(found) == {"node-1": "never"}


def test_a_node_without_a_plan_is_a_failure():
    cluster = MemoryCluster()
    cluster.node()
    silent = {**host("node-2"), "turn": {}}
    misfit = {"host": "host-3", "turn": {}, "settings": {}, "settings_error": "rolling_reboot_forks is odd."}
    deaf = host("node-1", {"trouble": "It can't be reached."})

    found = plan(cluster, [deaf, silent, misfit])

    assert found["failures"].keys() == {"host-node-1", "host-node-2", "host-3"}
    assert "can't be reached" in found["failures"]["host-node-1"]
    assert "No result for host-node-2" in found["failures"]["host-node-2"]
    assert "is odd" in found["failures"]["host-3"]
    assert found["summary"]["not_reported"] == ["host-node-2"]


def test_a_plan_of_no_host_is_refused():
    with pytest.raises(InvalidInput, match="There is no host to plan"):
        plan(MemoryCluster(), [])
