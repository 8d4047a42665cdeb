# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for a replacement, on an API server in memory."""

from __future__ import annotations

from unit.guard.test_rules import machine, waiting
from unit.reboot.memory_cluster import MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import TimedOut
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import wait
from lab.patience import PATIENCE

METAL = "/apis/cluster.x-k8s.io/v1beta2/namespaces/metal"
POOL = {"cluster.x-k8s.io/set-name": "s"}


class Counted(MemoryCluster):
    """It counts what it reads of Nodes."""

    nodes_read = 0

    def find(self, path):
        self.nodes_read += path.startswith(f"{paths.NODES}/")
        return super().find(path)

    def rows(self, path, **selectors):
        self.nodes_read += path == paths.NODES
        return super().rows(path, **selectors)


def look(*machines, not_ready=(), seconds=0):
    """Wait for the replacement of Machine ``m`` of a MachineSet of 30. Returns the result and the reads of Nodes."""
    cluster = Counted()
    owner = {"ownerReferences": [{"kind": "MachineSet", "name": "s"}]}
    for item in (waiting(labels=POOL), *machines):
        item["metadata"].update(owner)
        cluster._store("TEST", f"{METAL}/machines/{item['metadata']['name']}", item)
        if node := (item["status"].get("nodeRef") or {}).get("name"):
            cluster.node(node, ready=node not in not_ready)
    cluster._store("TEST", f"{METAL}/machinesets/s", {"metadata": {"name": "s"}, "spec": {"replicas": 30}})
    cluster.objects["/apis/cluster.x-k8s.io"] = {"versions": [{"version": "v1beta2"}]}
    params = {"wait_for": "replacement", "namespace": "metal", "machine": "m", "wait_timeout": seconds, "run": ""}
    context = Context(params, check_mode=not seconds)
    context.__dict__.update(cluster=cluster, management=cluster)
    try:
        return wait.machine_guard_wait(context, params), cluster.nodes_read
    except TimedOut as error:
        return error.as_result(), cluster.nodes_read


def test_one_look_reads_the_nodes_once():
    others = [machine(name=f"m-{number:02}", node=f"n-{number:02}", labels=POOL) for number in range(29)]

    result, reads = look(*others, not_ready=("n-03",))

    assert (result["wanted"], len(result["ready"]), reads) == (29, 28, 1)
    assert "m-03" not in result["ready"]


def test_many_changes_cause_one_look(monkeypatch):
    deadlines = []

    def deadline(seconds):
        deadlines.append(Deadline(seconds))
        return deadlines[-1]

    def many(*_arguments, **_options):
        yield from [None] * 100
        # The time of the whole wait is over.
        deadlines[0].started = float("-inf")

    monkeypatch.setattr(wait, "Deadline", deadline)
    monkeypatch.setattr(wait, "Follower", many)
    monkeypatch.setattr(wait, "_GLANCE", PATIENCE)
    result, reads = look(machine(name="m-00", node="n-00", labels=POOL), seconds=PATIENCE)

    assert (result["error"], result["ready"]) == ("timed_out", ["m-00"])
    assert reads == 2, "one before the watch, one for its first event"


def test_no_node_is_read_before_another_machine_has_one():
    result, reads = look(machine(name="m-00", node=None, labels=POOL))

    assert (result["wanted"], result["ready"], reads) == (29, [], 0)
