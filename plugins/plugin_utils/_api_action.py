# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin of every module that asks the API: it runs the module's operation in the controller's process.

Each link to this file in plugins/action is the action plugin of the module with the same name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import NAMES
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import invocation, run_operation
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import (
    _delegated,
    _kubeconfig,
    _lease_renewer,
    _progress_file,
    _traffic,
)
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._arguments import validated
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._parent_death import end_with_parent


def _node_of(options: Mapping[str, Any]) -> str:
    """Return the Node that a task is about: its own option, or the node of the last answer of its journey."""
    turn = options.get("turn")
    known = turn if isinstance(turn, Mapping) else {}
    return options.get("name") or options.get("node") or known.get("node") or ""


class ActionModule(ActionBase):
    """Runs the operation of :attr:`module` in the controller's process.

    If the task is delegated to a host whose connection is not local, it runs the module on that host. Use this if only
    a bastion reaches the API.
    """

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    #: The module that this plugin runs. It has SPEC (its options) and OPERATION (its function). It may also have
    #: kept_run (the run whose Lease is renewed after the task), RUN_LASTS (that run ends with the controller) and
    #: UNSHOWN (suboptions that results hide).
    #: Ansible imports a link to this file as plugins.action.NAME, so this line imports plugins.modules.NAME. A plugin
    #: with a file of its own imports this file as plugin_utils._api_action, where this line finds only the file itself,
    #: and sets the attribute to its module.
    module: Any = importlib.import_module(__name__.replace(".action.", ".modules."))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        # Ansible's workers outlive a controller that is killed.
        end_with_parent()
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._task_vars, self._copies = task_vars or {}, 0
        self._unshown: set[str] = set()
        if self._task.delegate_to and self._connection.transport != "local":
            result.update(self._run_there(task_vars))
        else:
            result.update(self._run_here())
        return result

    def operate(self, params: dict[str, Any]) -> dict[str, Any]:
        """Run the operation of the module with validated options. Plugins with a file of their own extend this."""
        with _progress_file.telling(self._task, self._task_vars, params, self._unshown) as task:
            task.outcome = run_operation(
                self.module.OPERATION,
                params,
                check_mode=self._task.check_mode,
                warn=self._display.warning,
                say=self._display.display,
                count=partial(_traffic.add, _node_of(params)),
                folder=_traffic.folder(),
                tell=task.tell,
            )
        return task.outcome

    def _run_here(self) -> dict[str, Any]:
        arguments = self._with_kubeconfig(_kubeconfig.decrypted)
        validation = validated(self.module.SPEC, arguments)
        params, self._unshown = validation.validated_parameters, validation._no_log_values
        outcome = self.operate(params)
        if not outcome.get("failed") and not self._task.check_mode:
            self._keep_run(params, outcome)
        outcome.setdefault("invocation", invocation(params, getattr(self.module, "UNSHOWN", {})))
        cleaned: dict[str, Any] = remove_values(outcome, self._unshown)
        return cleaned

    def _keep_run(self, params: dict[str, Any], outcome: dict[str, Any]) -> None:
        """If the run outlives the task, renew its Lease in each of its clusters until the controller process ends."""
        run = self.module.kept_run(params, outcome) if hasattr(self.module, "kept_run") else ""
        if run:
            lasts = getattr(self.module, "RUN_LASTS", False)
            # Without a Node, the run of a guard has no Lease in the workload cluster, which may be gone.
            if not (params.get("management") and outcome.get("node") == ""):
                options = {name: params.get(name) for name in NAMES}
                _lease_renewer.start(options, run, params.get("alertmanager"), lasts=lasts)
            if params.get("management"):
                _lease_renewer.start(dict(params["management"]), run, lasts=lasts)

    def _run_there(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        spec = self.module.SPEC["argument_spec"]
        arguments = self._with_kubeconfig(_kubeconfig.whole)
        arguments = _delegated.with_environment(spec, arguments, self._loader, self._task.environment or ())
        arguments = _delegated.with_files(spec, arguments, self._copy_there)
        outcome: dict[str, Any] = self._execute_module(
            module_name=self._task.action, module_args=arguments, task_vars=task_vars
        )
        _traffic.add(_node_of(arguments), outcome.pop("api", {}))
        return outcome

    def _copy_there(self, path: str) -> str:
        """Copy a file to the folder that Ansible removes from the host after the task; return its path there."""
        shell = self._connection._shell
        folder = shell.tmpdir or self._make_tmp_path()
        self._copies += 1
        target: str = self._transfer_file(path, shell.join_path(folder, f"holdfast-{self._copies}"))
        self._fixup_perms2((folder, target))
        return target

    def _with_kubeconfig(self, convert: Callable[[Any, Any], Any]) -> dict[str, Any]:
        """Return the task's options. ``convert`` is applied to the kubeconfig of the cluster and of ``management``."""
        arguments = dict(self._task.args)
        if "kubeconfig" in arguments:
            arguments["kubeconfig"] = _kubeconfig.as_text(convert(self._loader, arguments["kubeconfig"]))
        management = arguments.get("management")
        if isinstance(management, dict) and "kubeconfig" in management:
            content = _kubeconfig.as_text(convert(self._loader, management["kubeconfig"]))
            arguments["management"] = {**management, "kubeconfig": content}
        return arguments
