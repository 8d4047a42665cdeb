# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a task whose action plugin runs the module itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ModuleArgumentSpecValidator, ValidationResult

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import kubeconfig_paths

_CONSTRAINTS = ("mutually_exclusive", "required_together", "required_one_of", "required_if", "required_by")


def validated(spec: Mapping[str, Any], arguments: Mapping[str, Any]) -> ValidationResult:
    """Return the options of a task, with their types and defaults.

    Args:
        spec: What the module gives to ``AnsibleModule``.
        arguments: The options as the task has them.

    Raises:
        AnsibleActionFail: They do not fit the spec.
    """
    constraints = {name: spec[name] for name in _CONSTRAINTS if name in spec}
    validation: ValidationResult = ModuleArgumentSpecValidator(spec["argument_spec"], **constraints).validate(
        dict(arguments)
    )
    if validation.error_messages:
        raise AnsibleActionFail("; ".join(validation.error_messages))
    validation._no_log_values -= kubeconfig_paths(validation.validated_parameters)
    return validation
