# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which Node the controller runs: a test or a real pod provides its traces, the API server is real."""

from __future__ import annotations

import secrets

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import controller
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.own_pod_rules import Traces


@pytest.fixture
def find(world, monkeypatch):
    """The name of the Node for certain traces."""

    def run(**traces):
        monkeypatch.setattr(controller, "own_traces", lambda: Traces(**traces))
        return controller.controller_node(world.cluster)

    return run


@pytest.fixture
def address():
    """An address that no other pod of the cluster has."""
    return f"fd00:{secrets.token_hex(2)}:{secrets.token_hex(2)}::a".replace(":0", ":1")


@pytest.fixture
def job(world, nodes, address):
    """A pod, with a node and an address."""
    (name,) = nodes()
    world.pod("job-1", name)
    return world.cluster.merge(
        paths.pod(world.namespace, "job-1") + "/status",
        {
            "status": {
                "podIP": address,
                "podIPs": [{"ip": address}],
                "hostIP": "10.0.0.1",
                "hostIPs": [{"ip": "10.0.0.1"}],
            }
        },
    )


def test_the_pod_of_our_uid(world, job, find):
    uid, node = job["metadata"]["uid"], job["spec"]["nodeName"]

    assert find(uid=uid, pod="job-1", namespace=world.namespace) == node
    assert find(uid=uid, pod="job-1") == node, "in any namespace"


def test_by_its_address_if_the_host_name_differs(job, find, address):
    traces = {"pod": "the-host-name", "addresses": frozenset({address, "10.99.99.99"})}

    assert find(uid=job["metadata"]["uid"], **traces) == job["spec"]["nodeName"]


def test_a_namesake_is_not_believed(world, job, find, address):
    other = "0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53"

    assert find(uid=other, pod="job-1", namespace=world.namespace, addresses=frozenset({address})) is None
    assert find(pod="job-1", namespace=world.namespace, addresses=frozenset({"10.99.99.99"})) is None
    assert find(pod="job-1", namespace="default", addresses=frozenset({address})) is None


def test_by_name_and_address_without_a_uid(world, job, find, address):
    found = find(pod="job-1", namespace=world.namespace, addresses=frozenset({address}))

    assert found == job["spec"]["nodeName"]


def test_the_kernel_s_boot_id(nodes, find, world):
    one, two = nodes(2)
    boot_id = secrets.token_hex(8)
    world.cluster.merge(f"{paths.node(one)}/status", {"status": {"nodeInfo": {"bootID": boot_id}}})

    assert find(boot_id=boot_id, pod="not-there") == one

    world.cluster.merge(f"{paths.node(two)}/status", {"status": {"nodeInfo": {"bootID": boot_id}}})
    assert find(boot_id=boot_id) is None, "nodes that share a kernel"


def test_outside_of_the_cluster(world):
    assert controller.controller_node(world.cluster) is None


@pytest.mark.nodes
@pytest.mark.parametrize("with_token", [True, False])
def test_as_a_real_pod_sees_itself(world, lab, monkeypatch, tmp_path, with_token):
    """The operation reads the pod's files. Nodes of the lab are containers: their boot IDs are not the kernel's."""
    world.pod("controller", "node-3", automountServiceAccountToken=with_token)
    files = ["/proc/self/mountinfo", "/proc/net/fib_trie", "/proc/net/if_inet6", "/proc/sys/kernel/random/boot_id"]
    if with_token:
        files += [f"/var/run/secrets/kubernetes.io/serviceaccount/{name}" for name in ("token", "namespace")]
    for name in files:
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lab.kubectl("exec", "--namespace", world.namespace, "controller", "--", "cat", name))
    monkeypatch.setattr(controller, "_ROOT", tmp_path)
    monkeypatch.setattr(controller.socket, "gethostname", lambda: "no-pod-s-name")

    assert controller.controller_node(world.cluster) == "node-3"
