# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster API's objects: where they are, which Machine a Node is, what a Machine is part of."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput, NotFound, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi import find as capi
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.find import KINDS, Place
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.rules import Around

GROUP = "cluster.x-k8s.io"
NODE = "/api/v1/nodes/n"
BASE = f"/apis/{GROUP}/v1beta2/namespaces/metal"
MARKS = {f"{GROUP}/machine": "m", f"{GROUP}/cluster-namespace": "metal", f"{GROUP}/cluster-name": "c"}
THEN = "2026-05-04T01:02:03Z"


class Server:
    """The part of an API server that is asked."""

    def __init__(self, versions=("v1beta2", "v1beta1")):
        self.objects = {f"/apis/{GROUP}": {"versions": [{"version": version} for version in versions]}}

    def find(self, path):
        return self.objects.get(path)

    def items(self, path, *, field_selector="", label_selector=""):
        found = []
        for where, item in self.objects.items():
            metadata = item.get("metadata", {})
            inside = where.startswith(f"{path}/") or (path.endswith("/machines") and "namespaces" not in path)
            if "/machines/" in where and inside:
                labels = metadata.get("labels", {})
                if all(self._has(labels, term) for term in label_selector.split(",") if term):
                    found.append(item)
        return iter(found)

    @staticmethod
    def _has(labels, term):
        key, equals, value = term.partition("=")
        return labels.get(key) == value if equals else key in labels

    def machine(self, name="m", namespace="metal", *, node=None, going=False, control_plane=False, cluster="c"):
        labels = {f"{GROUP}/cluster-name": cluster, **({f"{GROUP}/control-plane": ""} if control_plane else {})}
        metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}", "labels": labels}
        if going:
            metadata["deletionTimestamp"] = THEN
        item = {"metadata": metadata, "spec": {"clusterName": cluster}, "status": {}}
        if node:
            item["status"]["nodeRef"] = {"name": node}
        self.objects[f"/apis/{GROUP}/v1beta2/namespaces/{namespace}/machines/{name}"] = item
        return item

    def node(self, marks=None):
        metadata = {"name": "n", "uid": "node", "annotations": MARKS if marks is None else marks}
        self.objects[NODE] = {"metadata": metadata, "spec": {}}

    def cluster(self, *, going=False, **spec):
        metadata = {"name": "c", "namespace": "metal", **({"deletionTimestamp": THEN} if going else {})}
        self.objects[f"{BASE}/clusters/c"] = {"metadata": metadata, "spec": spec}

    def control_plane(self, *, going=False, **status):
        """An object of a kind that only its own API says the plural of."""
        group, version = "controlplane.example.org", "controlplane.example.org/v7"
        self.objects[f"/apis/{group}"] = {"preferredVersion": {"groupVersion": version}}
        kinds = [("fancies/status", "Fancy"), ("others", "Other"), ("fancies", "Fancy")]
        self.objects[f"/apis/{version}"] = {"resources": [{"name": name, "kind": kind} for name, kind in kinds]}
        metadata = {"name": "cp", **({"deletionTimestamp": THEN} if going else {})}
        self.objects[f"/apis/{version}/namespaces/metal/fancies/cp"] = {"metadata": metadata, "status": status}
        return group


def context(workload, management=None):
    found = Context({})
    found.__dict__.update(cluster=workload, management=management or workload)
    return found


class TestVersions:
    @pytest.mark.parametrize(
        ("served", "expected"),
        [(["v1beta1", "v1beta2"], "v1beta2"), (["v1beta1"], "v1beta1"), (["v1alpha4"], None), ([], None)],
    )
    def test_the_newest_that_we_know(self, served, expected):
        assert capi.version_of(Server(served), GROUP) == expected

    def test_without_cluster_api(self):
        with pytest.raises(NotFound, match="management"):
            capi.place(Server([]), KINDS["Machine"], "metal", "m")

    def test_a_kind_has_its_place(self):
        assert capi.place(Server(), KINDS["MachineSet"], "metal", "s").path == f"{BASE}/machinesets/s"
        assert capi.place(Server(["v1beta1"]), KINDS["Machine"], "a", "m").path == (
            f"/apis/{GROUP}/v1beta1/namespaces/a/machines/m"
        )


class TestPatches:
    def test_nothing_but_these_annotations(self):
        item = {"metadata": {"resourceVersion": "7", "annotations": {"a": "b"}}}
        assert KINDS["Machine"].patch(item, {"k": "v"}) == {
            "metadata": {"resourceVersion": "7", "annotations": {"k": "v"}}
        }
        assert KINDS["MachineDeployment"].patch(item, {"k": None}) == {
            "metadata": {"resourceVersion": "7"},
            "spec": {"template": {"metadata": {"annotations": {"k": None}}}},
        }
        assert "machineTemplate" in KINDS["KubeadmControlPlane"].patch(item, {})["spec"]

    def test_a_template_without_any(self):
        for kind in KINDS.values():
            assert kind.annotations({"metadata": {}, "spec": {}}) == {}


class TestOfNode:
    PLACE = Place(f"{BASE}/machines", "m")

    def test_the_machine_that_the_node_names(self):
        server = Server()
        server.node()
        server.machine(node="n")
        assert capi.of_node(context(server), "n", None) == self.PLACE
        assert capi.of_node(context(server), "n", "metal") == self.PLACE

    def test_in_two_clusters(self):
        workload, management = Server([]), Server()
        workload.node()
        management.machine(node="n")
        assert capi.of_node(context(workload, management), "n", None) == self.PLACE

    def test_the_node_says_another_namespace(self):
        server = Server()
        server.node()
        server.machine(node="n")
        with pytest.raises(InvalidInput, match="metal/m"):
            capi.of_node(context(server), "n", "elsewhere")

    def test_the_machine_says_another_node(self):
        server = Server()
        server.node()
        server.machine(node="another")
        with pytest.raises(Refused, match="another"):
            capi.of_node(context(server), "n", None)

    def test_the_machine_does_not_say_so(self):
        server = Server()
        server.node()
        server.machine()
        with pytest.raises(Refused, match="nothing proves"):
            capi.of_node(context(server), "n", None)

    def test_the_machine_of_another_cluster(self):
        """It has the name and the namespace that the Node says, in another management cluster."""
        server = Server()
        server.node()
        server.machine(node="n", cluster="other")
        with pytest.raises(Refused, match="of another Node"):
            capi.of_node(context(server), "n", None)

    def test_the_machine_of_another_cluster_whose_node_has_the_same_name(self):
        server = Server()
        server.node({})
        server.machine(node="n", cluster="other")
        with pytest.raises(Refused, match="nothing proves"):
            capi.of_node(context(server), "n", None)

    def test_a_node_that_is_gone(self):
        server = Server()
        server.machine(node="n")
        server.machine("other", node="o")
        assert capi.of_node(context(server), "n", None) == self.PLACE
        assert capi.of_node(context(server), "n", "elsewhere") is None
        assert capi.of_node(context(server), "nobody", None) is None
        server.machine("third", "else", node="o", cluster="other")
        with pytest.raises(Refused, match="several Clusters"):
            capi.of_node(context(server), "n", None)
        assert capi.of_node(context(server), "n", "metal") == self.PLACE

    def test_a_node_that_says_nothing(self):
        server = Server()
        server.node({})
        machine = server.machine(node="n")
        machine["status"]["nodeRef"]["uid"] = "node"
        assert capi.of_node(context(server), "n", None) == self.PLACE

        machine["status"]["nodeRef"].pop("uid")
        for provider_id, proven in (("metal3://host-uid", True), ("docker:////n", False)):
            machine["spec"]["providerID"] = server.objects[NODE]["spec"]["providerID"] = provider_id
            if proven:
                assert capi.of_node(context(server), "n", None) == self.PLACE
                continue
            with pytest.raises(Refused, match="nothing proves"):
                capi.of_node(context(server), "n", None)

    def test_nodes_of_one_name_in_several_clusters(self):
        server = Server()
        mine = server.machine(node="n")
        server.machine(namespace="other", node="n")
        with pytest.raises(Refused, match="metal/m, other/m"):
            capi.of_node(context(server), "n", None)
        assert capi.of_node(context(server), "n", "metal") == self.PLACE
        server.node({})
        mine["status"]["nodeRef"]["uid"] = "node"
        assert capi.of_node(context(server), "n", None) == self.PLACE


class TestAround:
    @pytest.fixture
    def server(self):
        found = Server()
        found.cluster()
        found.machine("cp-1", control_plane=True)
        return found

    def test_nothing_is_amiss(self, server):
        assert capi.around(server, server.machine()) == Around()

    def test_the_cluster_is_deleted(self, server):
        server.cluster(going=True)
        assert capi.around(server, server.machine()).cluster_deleting

    def test_the_last_of_the_control_plane_does_not_count_for_itself(self, server):
        last = server.machine("cp-1", control_plane=True)
        assert not capi.around(server, last).control_plane
        server.machine("cp-2", control_plane=True, going=True)
        assert not capi.around(server, last).control_plane
        server.machine("cp-3", control_plane=True)
        assert capi.around(server, last).control_plane

    @pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
    @pytest.mark.parametrize(
        ("how", "expected"),
        [
            ({"going": True}, Around(control_plane_deleting=True)),
            ({"externalManagedControlPlane": True}, Around()),
            ({}, Around(control_plane=False)),
        ],
    )
    def test_what_makes_the_control_plane(self, version, how, expected):
        server = Server()
        if how.get("going"):
            server.machine("cp-1", control_plane=True)
        group = server.control_plane(**how)
        named = {"apiGroup": group} if version == "v1beta2" else {"apiVersion": f"{group}/v7"}
        server.cluster(controlPlaneRef={**named, "kind": "Fancy", "name": "cp"})
        assert capi.around(server, server.machine()) == expected

    @pytest.mark.parametrize(
        "reference",
        [
            {"apiGroup": "nowhere.example.org", "kind": "Fancy", "name": "cp"},
            {"apiGroup": "controlplane.example.org", "kind": "Unknown", "name": "cp"},
            {"apiGroup": "controlplane.example.org", "kind": "Fancy", "name": "gone"},
        ],
    )
    def test_the_object_that_makes_the_control_plane_is_missing(self, server, reference):
        """Cluster API then counts Machines, and so do we."""
        server.control_plane(going=True)
        server.cluster(controlPlaneRef=reference)
        assert capi.around(server, server.machine()) == Around()

    def test_there_is_no_cluster(self):
        server = Server()
        assert capi.around(server, server.machine()) == Around()
