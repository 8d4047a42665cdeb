# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run an operation on a node, over its D-Bus and without the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Callable

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.respawn import has_respawned, probe_interpreters_for_module, respawn_module

from .._api.errors import HoldfastError
from .bus import IMPORT_ERROR, NodeBus

Params = Mapping[str, Any]
Result = dict[str, Any]
# The distribution's own Python, which has its packages.
_PYTHONS = ("/usr/bin/python3", "/usr/libexec/platform-python")


@dataclass
class Context:
    """What an operation gets: the bus of the node, and how to work.

    Attributes:
        check_mode: The operation must not change anything.
    """

    check_mode: bool = False

    @cached_property
    def bus(self) -> NodeBus:
        return NodeBus()


Operation = Callable[[Context, Params], Result]


def go_where_dbus_is() -> None:
    """Run the module again with the distribution's Python if this Python has no dbus and that one has it."""
    if IMPORT_ERROR and not has_respawned():
        found = probe_interpreters_for_module(_PYTHONS, "dbus")
        if found:
            respawn_module(found)


def run_operation(operation: Operation, params: Params, *, check_mode: bool) -> Result:
    """Run an operation and return what the task returns; errors become ``failed``, ``msg``, ``error`` and fields."""
    try:
        return operation(Context(check_mode), params)
    except HoldfastError as error:
        return error.as_result()


def run_module(operation: Operation, spec: Mapping[str, Any]) -> None:
    """Run an operation as a module, with options from Ansible and the result to Ansible. Ends the process.

    Args:
        operation: The operation that the module runs.
        spec: Keyword arguments of ``AnsibleModule``.
    """
    module = AnsibleModule(**spec)
    go_where_dbus_is()
    result = run_operation(operation, module.params, check_mode=module.check_mode)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)
