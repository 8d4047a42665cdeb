# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's configuration: each wrong value is named, with what is allowed."""

from __future__ import annotations

import logging

import pytest

from holdfast_agent import cli
from holdfast_agent.config import Config, ConfigError, parse

DIRECT = {
    "server": "https://api:6443",
    "certificate_authority": "/ca.crt",
    "client_certificate": "/client.pem",
    "client_key": "/client.pem",
}


def mistakes(**content):
    with pytest.raises(ConfigError) as caught:
        parse({"node_name": "worker-1", **content})
    return caught.value.mistakes


def test_only_the_name_is_needed():
    assert parse({"node_name": "worker-1"}) == Config(node_name="worker-1")


def test_everything_given_is_kept():
    found = parse(
        {
            "node_name": "worker-1",
            "enforcement": "inhibitor",
            "masked_targets": ["reboot", "reboot", "halt"],
            "alert_timeout": 0,
            "namespaces": ["default"],
            "textfile": "/var/lib/node_exporter/holdfast.prom",
            "state_directory": "/srv/agent",
            "heartbeat_interval": 60,
            "log_level": "debug",
            **DIRECT,
        }
    )
    assert found.masked_targets == ("reboot", "halt")
    assert (found.alert_timeout, found.namespaces, found.kubeconfig) == (0, ("default",), "")
    assert (found.server, found.client_key) == ("https://api:6443", "/client.pem")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ({"node_name": None}, ["node_name", "not given", "kubectl get nodes"]),
        ({"node_name": "Worker 1"}, ["node_name", "'Worker 1'"]),
        ({"node_name": 7}, ["node_name", "7"]),
        ({"enforcement": "Strict"}, ["enforcement", "'Strict'", "strict, inhibitor, observe"]),
        ({"masked_targets": "reboot"}, ["masked_targets", "'reboot'", "a list of reboot, poweroff"]),
        ({"masked_targets": ["reboot", "suspend"]}, ["masked_targets", "'suspend'", "soft-reboot"]),
        ({"alert_timeout": "4h"}, ["alert_timeout", "'4h'", "seconds"]),
        ({"alert_timeout": -1}, ["alert_timeout", "-1", "at least 0"]),
        ({"alert_timeout": True}, ["alert_timeout", "True"]),
        ({"heartbeat_interval": 1}, ["heartbeat_interval", "at least 10"]),
        ({"namespaces": ["kube-node-lease"]}, ["namespaces", "'kube-node-lease'", "other than"]),
        ({"namespaces": ["A"]}, ["namespaces", "'A'"]),
        ({"namespaces": {"a": "b"}}, ["namespaces", "a list of names"]),
        ({"textfile": "/var/lib/holdfast.txt"}, ["textfile", ".prom"]),
        ({"textfile": "holdfast.prom"}, ["textfile", "absolute"]),
        ({"state_directory": "state"}, ["state_directory", "'state'"]),
        ({"log_level": "loud"}, ["log_level", "'loud'", "debug, info"]),
        ({"kubeconfig": "kubelet.conf"}, ["kubeconfig", "absolute"]),
        ({**DIRECT, "kubeconfig": "/etc/kubernetes/kubelet.conf"}, ["kubeconfig and server", "only one of them"]),
        ({"server": "https://api:6443"}, ["certificate_authority, client_certificate, client_key", "server"]),
        ({**DIRECT, "server": "http://api:6443"}, ["server", "'http://api:6443'", "https://"]),
        ({**DIRECT, "client_key": "key"}, ["client_key", "'key'", "absolute"]),
        ({"enforcment": "strict"}, ["'enforcment'", "enforcement"]),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(content, parts):
    (mistake,) = mistakes(**content)
    for part in parts:
        assert part in mistake


def test_all_mistakes_are_reported_at_once():
    assert len(mistakes(enforcement="x", alert_timeout="y", log_level="z")) == 3


@pytest.mark.parametrize("content", [None, [], "node_name: worker-1"])
def test_an_invalid_mapping_is_refused(content):
    with pytest.raises(ConfigError, match="mapping"):
        parse(content)


def test_check_says_what_is_wrong_and_where(tmp_path, capsys):
    path = tmp_path / "agent.yaml"
    path.write_text("node_name: worker-1\nenforcement: hard\n")
    assert cli.main(["--check", str(path)]) == 1
    assert f"{path}: enforcement must be one of strict" in capsys.readouterr().err
    path.write_text("node_name: worker-1\n")
    assert cli.main(["--check", str(path)]) == 0
    path.write_text("node_name: [")
    assert cli.main(["--check", str(path)]) == 1
    assert "not YAML" in capsys.readouterr().err
    assert cli.main(["--check", str(tmp_path / "none")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_version_is_the_collection_s(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out.strip()


def test_a_holder_writes_no_line_of_its_own_to_the_journal():
    text = "shop/x\n<6>The condition says False\x1b[2J"
    record = logging.LogRecord("agent", logging.WARNING, __file__, 1, "%s holds this node.", (text,), None)

    assert cli._Formatter().format(record) == "<4>shop/x <6>The condition says False [2J holds this node."
