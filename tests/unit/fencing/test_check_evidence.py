# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence by a BareMetalHost: it has to be of this node, and of its present boot."""

from __future__ import annotations

import json

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import check_evidence, find_host
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import host_rules as hosts
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.host_rules import Off

EVIDENCE = {"kind": "BareMetalHost", "host": "h", "namespace": "metal", "key": "ours", "node": "n"}


def node(boot_id):
    return {"metadata": {"name": "n", "uid": "u"}, "status": {"nodeInfo": {"bootID": boot_id}}}


def host(boot_id="b"):
    record = {"ours": {"since": "2026-05-04T00:00:00Z", "node": "n", "boot_id": boot_id, "powered_on": True}}
    return {
        "metadata": {
            "name": "h",
            "namespace": "metal",
            "uid": "host",
            "annotations": {"reboot.metal3.io/ours": "", "holdfast.dev/reboot-keys": json.dumps(record)},
        }
    }


def machine(uid):
    return {
        "metadata": {"name": "m", "namespace": "metal", "annotations": {}},
        "spec": {},
        "status": {"nodeRef": {"name": "n", **({"uid": uid} if uid else {})}},
    }


def test_the_words_of_a_command_are_expanded_as_those_of_the_fence_command(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    program = tmp_path / "power"
    program.write_text('#!/bin/sh\n[ "$1" = n ] && echo off\n')
    program.chmod(0o755)

    found = check_evidence.confirm(None, node("b"), {"kind": "Command", "command": "~/power $HOLDFAST_NODE"})

    assert found == {"program": str(program), "output": "off"}


@pytest.fixture
def look(monkeypatch):
    """Looks at a host that is off and does not say which Node it is; its Machine names a Node."""

    def nothing_known(_management, _node):
        raise NotFound("Node n leads to no BareMetalHost.")

    def act(node, evidence, owner=None):
        monkeypatch.setattr(find_host, "find", lambda *_arguments: host())
        monkeypatch.setattr(find_host, "host_of", nothing_known)
        monkeypatch.setattr(find_host, "claimed_by", lambda *_arguments: ("n" if owner else "", owner))
        monkeypatch.setattr(hosts, "off", lambda *_arguments: Off(proven=True, datable=True, why="off"))
        return check_evidence.confirm(None, node, evidence)

    return act


@pytest.mark.parametrize("known", ["", "b"])
def test_of_this_boot(look, known):
    assert look(node("b"), {**EVIDENCE, "boot_id": known})["seen"] == "off"


@pytest.mark.parametrize("known", ["", "b", "other"])
def test_a_key_of_another_boot(look, known):
    with pytest.raises(Refused, match="was written for another boot") as refused:
        look(node("other"), {**EVIDENCE, "boot_id": known})
    assert refused.value.fields["why"] == "new_boot"


@pytest.mark.parametrize("uid", ["u", ""])
def test_a_host_whose_machine_may_be_the_node_s(look, uid):
    assert look(node("b"), EVIDENCE, machine(uid))["seen"] == "off"


def test_a_host_of_another_node_of_the_same_name(look):
    with pytest.raises(Refused, match="another Node of the same name") as refused:
        look(node("b"), EVIDENCE, machine("another"))
    assert refused.value.fields["why"] == "other_host"
