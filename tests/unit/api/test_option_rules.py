# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of options that can't work are refused before the API is asked."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.option_rules import as_texts, check_numbers
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_operation
from ansible_collections.holdfast.kubernetes.plugins.modules import (
    lease_hold_info,
    node_condition_info,
    node_info,
    node_ready,
    reboot_slot,
)
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._arguments import validated

NO_CLUSTER = {"host": "https://127.0.0.1:1", "api_key": "none", "api_timeout": 0}
SLOT = {"operation": "kernel"}
CONDITION = {"condition": "Ready"}


def run(module, *, check_mode=False, **options):
    params = validated(module.SPEC, {**NO_CLUSTER, **options}).validated_parameters
    return run_operation(module.OPERATION, params, check_mode=check_mode, warn=lambda message: None)


@pytest.mark.parametrize(
    ("module", "options", "name"),
    [
        (lease_hold_info, {}, "wait_timeout"),
        (node_condition_info, {"name": "node-1", **CONDITION}, "wait_timeout"),
        (node_ready, {"name": "node-1"}, "timeout"),
        (reboot_slot, {"name": "node-1", **SLOT}, "wait_timeout"),
    ],
)
@pytest.mark.parametrize(
    ("value", "words"),
    [(-1, "must not be negative, it is -1."), (10**10, "must be at most 3000000000 (about 100 years)")],
)
def test_times_that_can_not_be_waited_for(module, options, name, value, words):
    result = run(module, **options, **{name: value})

    assert result["error"] == "invalid_input"
    assert result["msg"].startswith(f"{name} {words}")


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_wait_for_no_node(check_mode):
    result = run(lease_hold_info, check_mode=check_mode, wait_for="free")

    assert result["error"] == "invalid_input"
    assert "wait_for: free needs node" in result["msg"]


def test_a_node_by_its_name_and_by_a_selector():
    with pytest.raises(AnsibleActionFail, match="mutually exclusive: name\\|selector"):
        run(node_info, name="node-1", selector="pool=db")


def test_variables_of_a_role_count_too():
    with pytest.raises(InvalidInput, match="drain_timeout must be at most"):
        check_numbers({"settings": {"drain_timeout": 10**12}})
    check_numbers({"settings": {"drain_timeout": 600, "force": True, "when": "always"}, "max_failed": -1})


def test_labels_become_texts():
    assert as_texts({"a": 1, "b": True, "c": "x", "d": None}, "labels") == {"a": "1", "b": "true", "c": "x", "d": ""}
    with pytest.raises(InvalidInput, match="labels must have a text as the value of a"):
        as_texts({"a": [1]}, "labels")
