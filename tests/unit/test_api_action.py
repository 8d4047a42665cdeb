# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the results of tasks show of their options."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from types import SimpleNamespace

import pytest
from ansible.module_utils import basic
from ansible.parsing.dataloader import DataLoader

from ansible_collections.holdfast.kubernetes.plugins.action import bare_metal_host_info, failover_turn, out_of_service
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module

COMMAND = "ipmitool -P hunter2 chassis power status"
EVIDENCE = {"kind": "Command", "node": "worker-1", "password": "pa55", "timeout": 2}
CASES = [
    (out_of_service, {"name": "worker-1", "evidence": {**EVIDENCE, "command": COMMAND}}),
    (out_of_service, {"name": "worker-1", "evidence": {**EVIDENCE, "argv": ["check", "hunter2", "off", "1"]}}),
    (failover_turn, {"name": "worker-1", "proof": {"command": COMMAND, "password": "pa55"}}),
]
# A word of a command is a word of the result, too.
OUTCOME = {"changed": True, "power_state": "off", "why": "check", "seconds": 1}


@pytest.mark.parametrize(("plugin", "arguments"), CASES)
def test_a_result_does_not_show_the_command_of_the_user(plugin, arguments, monkeypatch):
    task = SimpleNamespace(args=arguments, check_mode=True)
    action = plugin.ActionModule(task, None, None, None, None, None)
    given = []
    monkeypatch.setattr(action, "operate", lambda params: given.append(params) or dict(OUTCOME))

    result = action._run_here()

    assert {name: result[name] for name in OUTCOME} == OUTCOME
    assert result["invocation"]["module_args"]["name"] == "worker-1"
    assert "hunter2" not in json.dumps(result)
    assert "pa55" not in json.dumps(result)
    # The operation has it.
    assert "hunter2" in json.dumps(given)


@pytest.mark.parametrize(("plugin", "arguments"), CASES)
def test_nor_does_the_module_itself(plugin, arguments, monkeypatch):
    module = plugin.ActionModule.module
    given = {"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_no_log": True}}
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps(given).encode())
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    printed = io.StringIO()

    with redirect_stdout(printed), pytest.raises(SystemExit):
        run_module(lambda context, params: dict(OUTCOME), module.SPEC, module.UNSHOWN)

    result = json.loads(printed.getvalue())
    assert {name: result[name] for name in OUTCOME} == OUTCOME
    assert "hunter2" not in printed.getvalue()
    assert "pa55" not in printed.getvalue()


NEVER = "/not/there/kubeconfig"
CONTENT = {"users": [{"name": "me", "user": {"token": "hunter2"}}], "current-context": "none"}
AS_YAML = "current-context: none\nusers:\n- {name: me, user: {token: hunter2}}\n"


@pytest.fixture(params=["in the controller", "as a module"])
def run(request, monkeypatch):
    """Run a task as its action plugin or as a module, and return its result."""

    def act(arguments):
        plugin = bare_metal_host_info
        if request.param == "in the controller":
            task = SimpleNamespace(args=arguments, check_mode=True, no_log=False, action="x", resolved_action="x")
            action = plugin.ActionModule(task, None, None, DataLoader(), None, None)
            action._task_vars = {}
            return action._run_here()
        given = {"ANSIBLE_MODULE_ARGS": arguments}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps(given).encode())
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        printed = io.StringIO()
        with redirect_stdout(printed), pytest.raises(SystemExit):
            run_module(plugin.ActionModule.module.OPERATION, plugin.ActionModule.module.SPEC)
        return json.loads(printed.getvalue())

    return act


@pytest.mark.parametrize("given", [NEVER, [NEVER]])
def test_a_path_that_can_not_be_read_is_named(run, given):
    for options in ({"kubeconfig": given}, {"management": {"kubeconfig": given}}):
        result = run(options)

        assert result["failed"]
        assert f"No cluster can be reached with {NEVER}: " in result["msg"]


@pytest.mark.parametrize("given", [CONTENT, json.dumps(CONTENT), AS_YAML], ids=["dictionary", "JSON", "YAML"])
def test_the_content_of_a_kubeconfig_stays_hidden(run, given):
    result = run({"kubeconfig": given})

    assert result["error"] == "invalid_input"
    assert "hunter2" not in json.dumps(result)
