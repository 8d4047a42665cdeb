# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._inventory import rules

CHECKOUT = Path(__file__).resolve().parents[3]
ADDRESSES = [
    {"type": "Hostname", "address": "node-1"},
    {"type": "ExternalIP", "address": "198.51.100.1"},
    {"type": "InternalIP", "address": "192.0.2.1"},
    {"type": "InternalIP", "address": "2001:db8::1"},
]


def node(*, labels=None, annotations=None, spec=None, ready="True", **status):
    return {
        "metadata": {"name": "node-1", "labels": labels or {}, "annotations": annotations or {}},
        "spec": spec or {},
        "status": {"conditions": [{"type": "Ready", "status": ready}], "addresses": ADDRESSES, **status},
    }


def facts(**more):
    return rules.facts(node(**more))


class TestFacts:
    def test_of_a_node_that_was_just_made(self):
        found = rules.facts({"metadata": {"name": "node-1"}})

        assert (found["name"], found["ready"], found["boot_id"]) == ("node-1", False, "")
        assert (found["addresses"], found["conditions"], found["kubelet_version"]) == ([], {}, "")
        assert (found["zone"], found["machine"], found["bare_metal_host"]) == (None, None, None)

    def test_versions(self):
        found = facts(nodeInfo={"bootID": "b", "kubeletVersion": "v1.36.3", "kernelVersion": "6.12", "osImage": "D"})

        assert (found["boot_id"], found["kubelet_version"], found["kernel_version"]) == ("b", "v1.36.3", "6.12")
        assert (found["os_image"], found["architecture"]) == ("D", "")

    def test_conditions(self):
        conditions = [
            {"type": "Ready", "status": "Unknown"},
            {"type": "DiskPressure", "status": "False"},
        ]

        assert facts(conditions=conditions)["conditions"] == {"Ready": "Unknown", "DiskPressure": "False"}

    def test_machine(self):
        marks = {"cluster.x-k8s.io/machine": "worker-1", "cluster.x-k8s.io/cluster-namespace": "clusters"}

        assert facts(annotations=marks)["machine"] == {"namespace": "clusters", "name": "worker-1"}
        assert facts(annotations={"cluster.x-k8s.io/machine": "worker-1"})["machine"] is None

    @pytest.mark.parametrize(
        ("provider_id", "host"),
        [
            ("metal3://metal/host-1/machine-1", {"namespace": "metal", "name": "host-1"}),
            ("metal3://3b7c0a5e-7b1f-4a3b-8a53-0c4d6d2b6f11", None),
            ("aws:///eu-central-1a/i-0123", None),
            ("", None),
        ],
    )
    def test_bare_metal_host(self, provider_id, host):
        assert facts(spec={"providerID": provider_id})["bare_metal_host"] == host

    @pytest.mark.parametrize(
        ("labels", "roles"),
        [
            ({}, ["worker"]),
            ({"node-role.kubernetes.io/": ""}, ["worker"]),
            (
                {"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/etcd": "x"},
                ["control-plane", "etcd"],
            ),
            ({"kubernetes.io/role": "gpu"}, ["gpu"]),
        ],
    )
    def test_roles(self, labels, roles):
        assert facts(labels=labels)["roles"] == roles

    def test_a_hold_has_no_age(self):
        hold = {"node": "n", "namespace": "shop", "holder": "db", "acquired": "t", "held_seconds": 5, "reason": "r"}

        assert rules.hold_fact(hold) == {"namespace": "shop", "holder": "db", "acquired": "t", "reason": "r"}


class TestAddress:
    @pytest.mark.parametrize(
        ("types", "address"),
        [
            (["InternalIP", "ExternalIP", "Hostname"], "192.0.2.1"),
            (["ExternalIP", "InternalIP"], "198.51.100.1"),
            (["ExternalDNS", "Hostname"], "node-1"),
            (["ExternalDNS"], None),
            ([], None),
        ],
    )
    def test_first_of_the_first_type(self, types, address):
        assert rules.address(facts(), types) == address

    @pytest.mark.parametrize("text", ["", "-oProxyCommand=touch /tmp/x", "a b", "a;b", "{{ 1 }}", "a\n"])
    def test_what_is_no_address_is_left_out(self, text):
        found = facts(addresses=[{"type": "InternalIP", "address": text}, {"type": "Hostname", "address": "n"}])

        assert rules.address(found, ["InternalIP"]) is None
        assert rules.address(found, ["InternalIP", "Hostname"]) == "n"

    def test_an_address_that_another_node_reports_is_left_out(self):
        nodes = [
            facts(addresses=[{"type": "InternalIP", "address": "10.0.0.2"}, {"type": "Hostname", "address": "n"}]),
            facts(addresses=[{"type": "ExternalIP", "address": "10.0.0.2"}] * 2),
            facts(addresses=[{"type": "InternalIP", "address": "10.0.0.3"}] * 2),
        ]
        shared = rules.shared_addresses(nodes)

        assert shared == {"10.0.0.2"}
        assert rules.address(nodes[0], ["InternalIP", "Hostname"], shared) == "n"
        assert rules.address(nodes[1], ["ExternalIP"], shared) is None
        found = rules.variables(nodes[0], prefix="node_", host="n", types=["InternalIP"], shared=shared)
        assert "ansible_host" not in found

    @pytest.mark.parametrize("text", ["10.2", "0x0a000002", "167772162", "::ffff:10.0.0.2", "10.0.0.0x2"])
    def test_no_other_spelling_of_the_address_of_another_node_is_used(self, text):
        nodes = [facts(addresses=[{"type": "InternalIP", "address": each}]) for each in ("10.0.0.2", text)]
        shared = rules.shared_addresses(nodes)

        assert rules.address(nodes[1], ["InternalIP"], shared) is None

    @pytest.mark.parametrize(("one", "other"), [("fd00::1", "FD00:0::1"), ("Node.Example.org", "node.example.org.")])
    def test_spellings_are_compared(self, one, other):
        nodes = [facts(addresses=[{"type": "InternalIP", "address": each}]) for each in (one, other)]

        assert rules.address(nodes[0], ["InternalIP"]) == one
        assert [rules.address(node, ["InternalIP"], rules.shared_addresses(nodes)) for node in nodes] == [None, None]

    @pytest.mark.parametrize("text", ["10.0.0.1", "2001:db8::1", "::1", "node-1.rack_2.example.org"])
    def test_every_form_of_an_address(self, text):
        assert rules.address(facts(addresses=[{"type": "InternalIP", "address": text}]), ["InternalIP"]) == text


class TestGroups:
    @staticmethod
    def of(by=(), **more):
        holds = more.pop("holds", [])
        return set(rules.groups({**facts(**more), "holds": holds}, by))

    def test_of_an_idle_worker(self):
        assert self.of() == {"role_worker", "nodes_ready"}

    @pytest.mark.parametrize("ready", ["False", "Unknown"])
    def test_not_ready(self, ready):
        assert "nodes_not_ready" in self.of(ready=ready)
        assert "nodes_ready" not in self.of(ready=ready)

    def test_of_every_state_and_place(self):
        labels = {
            "node-role.kubernetes.io/control-plane": "",
            "topology.kubernetes.io/zone": "eu-1a",
            "holdfast.dev/exclude": "",
        }

        assert self.of(labels=labels, spec={"unschedulable": True}, holds=[{"holder": "db"}]) == {
            "role_control_plane",
            "zone_eu_1a",
            "nodes_ready",
            "nodes_cordoned",
            "nodes_held",
            "nodes_excluded",
        }

    def test_holds_that_were_not_read(self):
        assert "nodes_held" not in set(rules.groups(facts(), []))

    def test_of_labels(self):
        found = {**facts(labels={"example.com/pool": "gpu-a", "spot": "", "other": "x"})}

        assert {"pool_gpu_a", "spot"} <= set(rules.groups(found, ["example.com/pool", "spot", "absent"]))
        assert not {name for name in rules.groups(found, ["absent"]) if name.startswith(("other", "absent"))}

    def test_every_state_has_a_group_from_the_start(self):
        labels, unready = {"holdfast.dev/exclude": ""}, self.of(ready="False")
        found = self.of(labels=labels, spec={"unschedulable": True}, holds=[{}]) | unready

        assert {name for name in found if name.startswith("nodes_")} == {rules.state(name) for name in rules.STATES}


class TestVariables:
    @staticmethod
    def of(**more):
        return rules.variables(facts(), **{"prefix": "node_", "host": "node-1", "types": ["InternalIP"], **more})

    def test_have_the_prefix(self):
        assert self.of()["node_name"] == self.of(prefix="")["name"] == "node-1"
        assert self.of()["ansible_host"] == "192.0.2.1"
        assert "ansible_host" not in self.of(types=[])

    def test_a_host_with_another_name_names_its_node_for_the_roles(self):
        assert not {name for name in self.of() if name in rules.NODE_OF_HOST}
        assert {name: value for name, value in self.of(host="a-node-1").items() if name in rules.NODE_OF_HOST} == (
            dict.fromkeys(rules.NODE_OF_HOST, "node-1")
        )

    def test_every_role_gets_the_node_of_its_host(self):
        """A role that starts to map hosts to Nodes must not be forgotten."""
        defaults = [yaml.safe_load(path.read_text()) or {} for path in CHECKOUT.glob("roles/*/defaults/main.yml")]
        own = {name for file in defaults for name, value in file.items() if value == "{{ inventory_hostname }}"}

        assert own == set(rules.NODE_OF_HOST)
