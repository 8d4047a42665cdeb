# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Node says, and what it says if parts of it are missing."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules

INFO = {
    "bootID": "boot",
    "systemUUID": "uuid",
    "kernelVersion": "6.1",
    "kubeletVersion": "v1.34.1",
    "osImage": "Debian 12",
    "containerRuntimeVersion": "containerd://2.1",
    "architecture": "amd64",
}
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "well"}
INHIBITED = {"type": "ShutdownInhibited", "status": "True", "reason": "a/b"}
NODE = {
    "metadata": {"name": "n", "labels": {"pool": "a"}, "annotations": {"key": "value"}, "managedFields": [{}]},
    "spec": {"unschedulable": True},
    "status": {"nodeInfo": INFO, "conditions": [INHIBITED, READY], "images": [{}], "addresses": [{}]},
}
# The least that the API gives, and empty parts.
LITTLE = [{"metadata": {"name": "n"}}, {"metadata": {"name": "n"}, "spec": {}, "status": {"nodeInfo": {}}}]


def test_what_a_node_says():
    assert node_rules.name(NODE) == "n"
    assert node_rules.labels_of(NODE) == {"pool": "a"}
    assert node_rules.annotations_of(NODE) == {"key": "value"}
    assert node_rules.ready(NODE)
    assert node_rules.unschedulable(NODE)
    assert node_rules.refuses_shutdown(NODE)
    assert (node_rules.boot_id(NODE), node_rules.system_uuid(NODE)) == ("boot", "uuid")
    assert node_rules.versions(NODE) == {
        "kernel_version": "6.1",
        "kubelet_version": "v1.34.1",
        "os_image": "Debian 12",
        "container_runtime_version": "containerd://2.1",
    }


@pytest.mark.parametrize("node", LITTLE)
def test_what_a_node_does_not_say(node):
    assert (node_rules.labels_of(node), node_rules.annotations_of(node)) == ({}, {})
    assert not node_rules.ready(node)
    assert not node_rules.unschedulable(node)
    assert not node_rules.refuses_shutdown(node)
    assert (node_rules.boot_id(node), node_rules.system_uuid(node), node_rules.versions(node)) == ("", "", {})
    assert node_rules.not_ready_why(node) == "it has no Ready condition"


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_only_true_is_true(status):
    items = [{**item, "status": status} for item in (READY, INHIBITED)]
    node = {**NODE, "status": {"conditions": items}}
    assert not node_rules.ready(node)
    assert not node_rules.refuses_shutdown(node)
    assert node_rules.not_ready_why(node) == f"Ready is {status} (KubeletReady: well)"


def test_long_texts_are_cut():
    node = {**NODE, "status": {"nodeInfo": {"osImage": "x" * 5000}, "conditions": [{**READY, "message": "x" * 5000}]}}
    assert len(node_rules.versions(node)["os_image"]) < 300
    assert len(node_rules.not_ready_why(node)) < 400


@pytest.mark.parametrize(
    ("text", "record"),
    [('{"a": 1}', {"a": 1}), ("", None), ("[1]", None), ('"a"', None), ("{", None), ("[" * 100_000, None)],
    ids=["object", "empty", "list", "text", "broken", "deep"],
)
def test_a_record_is_an_object(text, record):
    item = {"metadata": {"name": "n", "annotations": {"holdfast.dev/claim": text}}}
    assert node_rules.record(item, "holdfast.dev/claim") == record
    assert node_rules.record(item, "holdfast.dev/other") is None


def test_a_slim_node_has_all_that_the_rules_read():
    slim = node_rules.slim(NODE)
    assert slim == {
        "metadata": {key: value for key, value in NODE["metadata"].items() if key != "managedFields"},
        "spec": NODE["spec"],
        "status": {"nodeInfo": INFO, "conditions": [INHIBITED, READY]},
    }
    assert node_rules.slim(LITTLE[0]) == {**LITTLE[0], "status": {}}


def test_another_object_keeps_its_status():
    machine = {"metadata": {"name": "m", "managedFields": [{}]}, "status": {"phase": "Running"}}
    assert node_rules.slim(machine) == {"metadata": {"name": "m"}, "status": {"phase": "Running"}}


@pytest.mark.parametrize(("levels", "is_read"), [(1, True), (20, True), (21, False), (900, False), (100_000, False)])
def test_a_record_that_a_node_has_nested_is_not_read(levels, is_read):
    text = '{"a":' * levels + "1" + "}" * levels
    listed = '{"a":' + "[" * levels + "]" * levels + "}"
    node = {"metadata": {"name": "n", "annotations": {"key": text, "list": listed}}}
    assert (node_rules.record(node, "key") is not None) is is_read
    assert (node_rules.record(node, "list") is not None) is (is_read and levels < 20)
