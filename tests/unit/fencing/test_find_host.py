# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a Node to its BareMetalHost, where the two say different things."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import find_host

HOSTS = "/apis/metal3.io/v1alpha1/namespaces/metal/baremetalhosts"
HOST = {
    "metadata": {"name": "host-b", "namespace": "metal", "uid": "u-b"},
    "spec": {"consumerRef": {"kind": "Metal3Machine", "namespace": "metal", "name": "m3m-b"}},
}
METAL3_MACHINE = {
    "metadata": {
        "name": "m3m-b",
        "namespace": "metal",
        "uid": "u-m3m",
        "ownerReferences": [{"kind": "Machine", "name": "machine-b"}],
    }
}


class Management:
    """A host whose Machine names Node b."""

    def __init__(self, machine):
        self._objects = {
            f"{HOSTS}/host-b": HOST,
            "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/metal/metal3machines/m3m-b": METAL3_MACHINE,
        }
        if machine:
            self._objects["/apis/cluster.x-k8s.io/v1beta2/namespaces/metal/machines/machine-b"] = machine

    def find(self, path):
        return self._objects.get(path)

    def items(self, path, **_more):
        raise NotFound(path)


def node(name):
    return {"metadata": {"name": name, "uid": f"u-{name}"}, "spec": {"providerID": "metal3://metal/host-b"}}


MACHINE = {
    "metadata": {"name": "machine-b", "namespace": "metal", "uid": "u-mb"},
    "spec": {"clusterName": "c"},
    "status": {"nodeRef": {"name": "b", "uid": "u-b"}},
}


def test_a_provider_id_that_names_the_host_of_another_node_is_refused():
    with pytest.raises(
        Refused, match="metal/host-b by its provider ID, but the host is node b of Cluster c by its Machine"
    ):
        find_host.host_of(Management(MACHINE), node("a"))
    assert find_host.host_of(Management(MACHINE), node("b")) is HOST


def test_without_a_machine_the_provider_id_counts():
    assert find_host.host_of(Management(None), node("a")) is HOST


def test_a_node_of_the_same_name_in_another_cluster_is_another_node():
    other = {**MACHINE, "status": {"nodeRef": {"name": "b", "uid": "u-elsewhere"}}}
    with pytest.raises(Refused, match="of Cluster c"):
        find_host.host_of(Management(other), node("b"))
