# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task that runs on another host gets from the controller's environment and files."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from ansible_collections.holdfast.kubernetes.plugins.action import bare_metal_host_info, node_info

CONTENT = {"clusters": [{"name": "one", "cluster": {"server": "https://one.example"}}], "current-context": "one"}


@pytest.fixture
def run(monkeypatch):
    """Run a task on another host; return the options that the module gets there."""
    monkeypatch.delenv("KUBECONFIG", raising=False)

    def act(arguments, *, plugin=node_info, environment=()):
        task = SimpleNamespace(args=arguments, check_mode=False, action="module", environment=list(environment))
        shell = SimpleNamespace(tmpdir=None, join_path=lambda *parts: "/".join(parts))
        action = plugin.ActionModule(task, SimpleNamespace(_shell=shell), None, DataLoader(), None, None)
        action._task_vars, action._copies, sent = {}, 0, {}
        files = {}

        def execute(module_name, module_args, task_vars):
            sent.update(module_args)
            return {}

        def put(local, remote):
            files[remote] = Path(local).read_text()
            return remote

        def folder():
            shell.tmpdir = "/remote"
            return shell.tmpdir

        monkeypatch.setattr(action, "_execute_module", execute)
        monkeypatch.setattr(action, "_make_tmp_path", folder)
        monkeypatch.setattr(action, "_transfer_file", put)
        monkeypatch.setattr(action, "_fixup_perms2", lambda paths: None)
        action._run_there({})
        return sent, files

    return act


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(CONTENT))
    return path


def test_kubeconfig_of_the_environment_goes_along(run, kubeconfig, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", f"/not/there:{kubeconfig}")

    found = json.loads(run({})[0]["kubeconfig"])

    assert {key: found[key] for key in CONTENT} == CONTENT


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        ({"kubeconfig": "/of/the/host"}, []),
        ({"host": "https://one.example", "api_key": "token"}, []),
        ({}, [{"KUBECONFIG": "/of/the/host"}]),
    ],
    ids=["kubeconfig", "host", "environment of the task"],
)
def test_what_the_task_says_wins(run, kubeconfig, monkeypatch, arguments, environment):
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    assert run(arguments, environment=environment)[0] == arguments


def test_proxy_headers_of_the_environment_go_along(run, monkeypatch):
    monkeypatch.setenv("K8S_AUTH_PROXY_HEADERS_USER_AGENT", "holdfast")
    monkeypatch.setenv("K8S_AUTH_PROXY_HEADERS_BASIC_AUTH", "me:secret")

    assert run({})[0] == {"proxy_headers": {"basic_auth": "me:secret", "user_agent": "holdfast"}}
    given = {"proxy_headers": {"user_agent": "mine"}}
    assert run(given)[0] == {"proxy_headers": {"basic_auth": "me:secret", "user_agent": "mine"}}


def test_certificates_of_the_controller_go_along(run, tmp_path, monkeypatch):
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"the {name}")
    monkeypatch.setenv("K8S_AUTH_SSL_CA_CERT", str(tmp_path / "ca"))

    found, files = run({"cert_file": str(tmp_path / "cert"), "client_key": str(tmp_path / "key")})

    texts = {name: files[path] for name, path in found.items()}
    assert texts == {"ca_cert": "the ca", "cert_file": "the cert", "client_key": "the key"}


def test_so_do_those_of_the_management_cluster(run, tmp_path):
    (tmp_path / "ca").write_text("the ca")

    found, files = run({"management": {"ca_cert": str(tmp_path / "ca")}}, plugin=bare_metal_host_info)

    assert files[found["management"]["ca_cert"]] == "the ca"


def test_a_path_that_only_the_host_has_stays(run):
    assert run({"ca_cert": "/of/the/host"}) == ({"ca_cert": "/of/the/host"}, {})
