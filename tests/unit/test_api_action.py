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

from ansible_collections.holdfast.kubernetes.plugins.action import failover_turn, out_of_service
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
