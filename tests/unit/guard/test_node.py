# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Node belongs to a Machine, and which cluster is its own."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import node as nodes

GROUP = "cluster.x-k8s.io"


def machine(node="n", provider_id="p://1"):
    return {
        "metadata": {"name": "m", "namespace": "metal"},
        "spec": {"clusterName": "c", **({"providerID": provider_id} if provider_id else {})},
        "status": {"nodeRef": {"name": node}} if node else {},
    }


def node(name="n", of="metal/m", cluster="c", provider_id="p://1"):
    marks = dict(zip((f"{GROUP}/cluster-namespace", f"{GROUP}/machine"), of.split("/"), strict=False)) if of else {}
    if cluster:
        marks[f"{GROUP}/cluster-name"] = cluster
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": name, "annotations": marks},
        "spec": {"providerID": provider_id} if provider_id else {},
        "status": {"conditions": [ready]},
    }


class Nodes:
    """A cluster that has these and nothing else."""

    def __init__(self, *found):
        self.found = {paths.node(item["metadata"]["name"]): item for item in found}

    def find(self, path):
        return self.found.get(path)

    def items(self, path):
        assert path == paths.NODES
        return iter(self.found.values())


@pytest.mark.parametrize(
    ("found", "ours"),
    [
        (node(), True),
        (node(provider_id=""), True),
        (node(cluster=""), True),
        (node(of="", cluster=""), True),
        (node(of="", cluster="", provider_id=""), False),
        (node(of="", cluster="", provider_id="p://2"), False),
        (node(of="other/m"), False),
        (node(of="metal/other"), False),
        (node(cluster="other"), False),
    ],
    ids=lambda item: str(item["metadata"]["annotations"]) if isinstance(item, dict) else "",
)
def test_a_node_of_the_right_name(found, ours):
    """What Cluster API wrote on it counts; a provider's id that is made of a name is equal in every cluster."""
    assert nodes.is_node_of(found, machine()) is ours
    answer = nodes.look(Nodes(found), machine())
    assert (answer.state, answer.node) == (("ready", found) if ours else ("foreign", None))
    if ours:
        answer.check(machine())
    else:
        with pytest.raises(nodes.WrongCluster, match="Machine metal/m of Cluster c is Node n"):
            answer.check(machine())


def test_two_without_any_id():
    assert not nodes.is_node_of(node(of="", cluster="", provider_id=""), machine(provider_id=None))


@pytest.mark.parametrize(
    ("others", "seen", "state"),
    [
        ([], False, "foreign"),
        ([node("x", "metal/x", "other")], False, "foreign"),
        ([node("x", "other/x")], False, "foreign"),
        ([node("x", "", "c")], False, "foreign"),
        ([node("x", "metal/x", "other"), node("y", "metal/y")], False, "gone"),
        ([], True, "gone"),
    ],
    ids=str,
)
def test_a_node_that_is_not_there(others, seen, state):
    """It is gone only where the cluster is the Machine's: in another one it never was."""
    answer = nodes.look(Nodes(*others), machine(), seen=seen)
    assert (answer.state, bool(answer.foreign)) == (state, state == "foreign")


def test_a_machine_that_never_had_one():
    assert nodes.look(Nodes(node()), machine(node=None)).state == "none"
