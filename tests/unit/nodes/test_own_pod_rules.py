# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process can tell of its own pod, and which pod of the API is believed to be that."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import controller
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.controller import own_traces
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.own_pod_rules import (
    Traces,
    addresses,
    claims_of_token,
    evidence,
    uid_of_mounts,
)

UID = "ef9b20d3-0c82-427a-a053-7ea10ab3df50"
OTHER = "0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53"
HOSTS = f"1318 1301 0:45 /var/lib/kubelet/pods/{UID}/etc-hosts /etc/hosts rw,relatime - ext4 /dev/sda1 rw"
LOG = f"1319 1303 0:45 /var/lib/kubelet/pods/{UID}/containers/app/7bbd30b5 /dev/termination-log rw - ext4 /dev/sda1 rw"
# Its own file system under /var/lib/kubelet, and a node that is a container itself.
SHORT = f"1318 1301 0:45 /pods/{UID}/etc-hosts /etc/hosts rw,relatime - ext4 /dev/sdb1 rw"
NESTED = f"1 2 0:45 /docker/volumes/8f/_data/lib/kubelet/pods/{UID}/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw"
# On a node, outside of any pod.
VOLUME = f"90 29 0:60 / /var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~projected/kube-api rw - tmpfs tmpfs rw"
SUBPATH = (
    f"91 29 8:1 /var/lib/kubelet/pods/{UID}/volumes/x /var/lib/kubelet/pods/{UID}/volume-subpaths/x rw - ext4 a rw"
)
PODMAN = "12 11 0:50 /containers/overlay-containers/12ab/userdata/hosts /etc/hosts rw - tmpfs tmpfs rw"

FIB_TRIE = """Main:
  +-- 0.0.0.0/1 2 0 2
        |-- 0.0.0.0
           /0 universe UNICAST
           +-- 10.214.2.0/30 2 0 1
              |-- 10.214.2.1
                 /32 link UNICAST
              |-- 10.214.2.2
                 /32 host LOCAL
           |-- 10.214.2.255
              /32 link BROADCAST
        |-- 127.0.0.1
           /32 host LOCAL
        |-- 169.254.7.7
           /32 host LOCAL
"""
IF_INET6 = """fe80000000000000a803fdfffe40e2dc 02 40 20 c0     eth0
fd000000000000000000000000000a02 02 40 20 c0     eth0
00000000000000000000000000000001 01 80 10 80       lo
"""


def token(said):
    def part(content):
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(said)}.signature"


OWN_TOKEN = token({"kubernetes.io": {"namespace": "awx", "pod": {"name": "job-1", "uid": UID}, "node": {"name": "n"}}})


class TestUidOfMounts:
    @pytest.mark.parametrize("line", [HOSTS, LOG, SHORT, NESTED])
    def test_in_a_pod(self, line):
        assert uid_of_mounts(f"{VOLUME.replace(UID, OTHER)}\n{line}\n") == UID

    @pytest.mark.parametrize("text", ["", "nonsense", VOLUME, SUBPATH, PODMAN, f"1 2 0:4 / {HOSTS} / rw"])
    def test_in_none(self, text):
        assert uid_of_mounts(text) == ""


class TestClaimsOfToken:
    def test_of_a_pod(self):
        assert claims_of_token(f"{OWN_TOKEN}\n") == {"namespace": "awx", "pod": "job-1", "uid": UID}

    @pytest.mark.parametrize(
        "said",
        [
            {},
            [],
            {"kubernetes.io": None},
            {"kubernetes.io": {"namespace": "awx", "serviceaccount": {"name": "default"}}},
            {"kubernetes.io": {"namespace": "awx", "pod": "job-1"}},
        ],
    )
    def test_of_none(self, said):
        assert claims_of_token(token(said)) == {}

    @given(st.text())
    def test_of_anything(self, text):
        assert claims_of_token(text) == {}
        assert claims_of_token(f"a.{text}.b") == {}


def test_addresses_are_those_that_not_every_machine_has():
    assert addresses(FIB_TRIE, IF_INET6) == {"10.214.2.2", "fd00::a02"}
    assert addresses("", "") == addresses("", "no address\n") == frozenset()


def pod(name="job-1", uid=UID, *ips):
    return {"metadata": {"name": name, "uid": uid}, "status": {"podIPs": [{"ip": ip} for ip in ips]}}


class TestEvidence:
    def test_the_uid_is_believed_whatever_the_name(self):
        assert evidence(pod("job-1"), Traces(uid=UID, pod="a-host-name")) == "uid"

    def test_another_uid_is_another_pod_whatever_else_is_the_same(self):
        own = Traces(uid=OTHER, pod="job-1", namespace="awx", addresses=frozenset({"10.0.0.1"}))

        assert evidence(pod("job-1", UID, "10.0.0.1"), own) == ""

    @pytest.mark.parametrize(
        ("seen", "expected"),
        [
            (pod("job-1", UID, "10.0.0.1"), "address"),
            (pod("job-1", UID, "fd00::1", "10.0.0.1"), "address"),
            (pod("job-1", UID, "10.0.0.2"), ""),
            (pod("job-2", UID, "10.0.0.1"), ""),
            (pod("job-1", UID), ""),
            ({"metadata": {"name": "job-1"}}, ""),
        ],
    )
    def test_without_a_uid_name_and_address_have_to_be_the_same(self, seen, expected):
        assert evidence(seen, Traces(pod="job-1", addresses=frozenset({"10.0.0.1"}))) == expected


PATHS = {
    "token": "var/run/secrets/kubernetes.io/serviceaccount/token",
    "namespace": "var/run/secrets/kubernetes.io/serviceaccount/namespace",
    "mounts": "proc/self/mountinfo",
    "boot_id": "proc/sys/kernel/random/boot_id",
    "four": "proc/net/fib_trie",
    "six": "proc/net/if_inet6",
}


class TestTraces:
    @pytest.fixture
    def root(self, tmp_path, monkeypatch):
        """A system of one's own: files by their paths."""

        def make(**files):
            for name, content in files.items():
                path = tmp_path / PATHS[name]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)

        monkeypatch.setattr(controller, "_ROOT", tmp_path)
        monkeypatch.setattr(controller.socket, "gethostname", lambda: "the-host-name")
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        return make

    def test_with_a_token(self, root):
        root(token=OWN_TOKEN, namespace="awx", mounts=HOSTS, boot_id=f"{OTHER}\n", four=FIB_TRIE, six=IF_INET6)

        assert own_traces() == Traces(UID, "job-1", "awx", frozenset({"10.214.2.2", "fd00::a02"}), OTHER)

    def test_without_one(self, root):
        root(mounts=f"{PODMAN}\n{LOG}")

        assert own_traces() == Traces(uid=UID, pod="the-host-name")

    def test_in_a_sandbox(self, root, monkeypatch):
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
        root(namespace="awx\n")

        assert own_traces() == Traces(pod="the-host-name", namespace="awx")

    def test_in_no_pod_the_host_name_is_no_pod_s(self, root):
        root(boot_id=OTHER, mounts=VOLUME)

        assert own_traces() == Traces(boot_id=OTHER)

    def test_without_proc(self, root):
        assert own_traces() == Traces()
