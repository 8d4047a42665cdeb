# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Base of the action plugins that run an operation in the controller's process."""

from __future__ import annotations

import os
from typing import Any

import yaml
from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ModuleArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.holdfast.kubernetes.plugins.module_utils._face import execute

display = Display()

_CONSTRAINTS = ("mutually_exclusive", "required_together", "required_one_of", "required_if", "required_by")


class ApiActionModule(ActionBase):
    """Runs the operation of :attr:`module` here, or the module itself where the task is delegated to.

    A bastion that alone reaches the API is a host that the task is delegated to with a connection other than local.
    """

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    module: Any

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.delegate_to and self._connection.transport != "local":
            result.update(self._run_there(task_vars))
        else:
            result.update(self._run_here())
        return result

    def _run_here(self) -> dict[str, Any]:
        arguments = dict(self._task.args)
        if isinstance(arguments.get("kubeconfig"), (str, list)):
            arguments["kubeconfig"] = self._decrypted(arguments["kubeconfig"])
        spec = self.module.SPEC
        validation = ModuleArgumentSpecValidator(
            spec["argument_spec"], **{key: spec[key] for key in _CONSTRAINTS if key in spec}
        ).validate(arguments)
        if validation.error_messages:
            raise AnsibleActionFail("; ".join(validation.error_messages))
        params = validation.validated_parameters
        outcome = execute(self.module.OPERATION, params, check_mode=self._task.check_mode, warn=display.warning)
        outcome.setdefault("invocation", {"module_args": params})
        cleaned: dict[str, Any] = remove_values(outcome, validation._no_log_values)
        return cleaned

    def _run_there(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        arguments = dict(self._task.args)
        for name, option in self.module.SPEC["argument_spec"].items():
            variables = option["fallback"][1] if "fallback" in option else []
            known = {name, *option.get("aliases", [])} & arguments.keys()
            value = next((os.environ[key] for key in variables if key in os.environ), None)
            if not known and value is not None:
                arguments[name] = value
        kubeconfig = arguments.get("kubeconfig")
        if isinstance(kubeconfig, str) and self._loader.path_exists(os.path.expanduser(kubeconfig)):
            # The file lies here; the far host gets what is in it.
            with open(self._loader.get_real_file(os.path.expanduser(kubeconfig)), encoding="utf-8") as file:
                arguments["kubeconfig"] = yaml.safe_load(file)
        outcome: dict[str, Any] = self._execute_module(
            module_name=self._task.action, module_args=arguments, task_vars=task_vars
        )
        return outcome

    def _decrypted(self, kubeconfig: str | list[Any]) -> list[str]:
        """Paths as they are, or paths of decrypted copies (removed with the task) where a file is a vault."""
        paths = kubeconfig.split(os.pathsep) if isinstance(kubeconfig, str) else [str(path) for path in kubeconfig]
        expanded = [os.path.expanduser(path) for path in paths if path]
        return [str(self._loader.get_real_file(path)) if os.path.isfile(path) else path for path in expanded]
