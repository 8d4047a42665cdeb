# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Return the variables of a role, or of a playbook without a role, with the types of the argument spec."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import check_settings
from ansible_collections.holdfast.kubernetes.plugins.modules.role_settings import SPEC
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _settings, _task_files
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._arguments import validated

# What the types of a role's variables can't express.
_CHECKS = {("rolling_reboot_", "main"): check_settings.problems}
_PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks/vars/argument_specs.yml"


class ActionModule(ActionBase):
    """Reads the spec, the variables and the defaults of the role; the rules interpret them."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False
    _VALID_ARGS = frozenset(SPEC["argument_spec"])

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        params = validated(SPEC, self._task.args).validated_parameters
        specs, prefix = self._specs(params)
        entry = params["entry_point"]
        if entry not in specs:
            raise AnsibleActionFail(f"There is no entry point {entry} in the argument spec of {prefix[:-1]}.")
        options = dict(specs[entry].get("options") or {})
        known = {name for spec in specs.values() for name in spec.get("options") or {}} | set(params["known"])
        problems = _settings.unknown(variables, known, prefix)
        if params["only"]:
            options = {name: option for name, option in options.items() if name in params["only"]}
        found = _settings.answer(options, self._given(options, variables, problems), prefix)
        problems += found.problems
        if self._task._role is not None:
            problems += _task_files.problems(self._files(options, found.settings, prefix), self._loader, self._task)
        check = _CHECKS.get((prefix, entry))
        if check and not problems and not params["only"]:
            problems += check(found.settings)
        if problems:
            result.update(failed=True, error="invalid_input", problems=problems)
            result["msg"] = f"Some variables are invalid, so nothing was done. {' '.join(problems)}"
            return result
        result.update(changed=False, settings=found.settings, who=self._who(variables))
        return result

    def _specs(self, params: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the spec of every entry point, and the prefix of the variables."""
        role = self._task._role
        if params["prefix"]:
            return dict(self._load(_PLAYBOOKS)), f"{params['prefix']}_"
        if role is None:
            raise AnsibleActionFail("Outside a role, role_settings needs prefix, the start of the variables' names.")
        return dict(self._load(Path(role._role_path) / "meta/argument_specs.yml")), f"{role.get_name(False)}_"

    def _load(self, path: Path) -> Any:
        return _settings.plain(self._loader.load_from_file(os.fspath(path)))["argument_specs"]

    def _given(self, options: dict[str, Any], variables: dict[str, Any], problems: list[str]) -> dict[str, Any]:
        """Return the values that are not blank. A template is evaluated once, here."""
        role = self._task._role
        defaults = role.get_default_vars() if role else {}
        given: dict[str, Any] = {}
        for name, option in options.items():
            sources = [(variables, key) for key in (name, *option.get("aliases", []))] + [(defaults, name)]
            for source, key in sources:
                if key not in source:
                    continue
                try:
                    value = self._templar.template(source[key])
                except AnsibleError as error:
                    why = "" if option.get("no_log") else f": {error}"
                    problems.append(f"{key} can't be evaluated{why}.")
                    break
                if not _settings.is_blank(value):
                    given[name] = value
                    break
        return given

    def _files(self, options: dict[str, Any], settings: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
        """Yield the user's files of tasks, each with the name of its variable."""
        for name in _task_files.names(options, prefix):
            given = settings.get(name[len(prefix) :]) or []
            yield from ((name, file) for file in (given if isinstance(given, list) else [given]))

    def _who(self, variables: dict[str, Any]) -> dict[str, str]:
        """Return who runs this: the job, the person and the controller."""
        host = socket.gethostname()
        user = self._first(variables, "awx_user_name", "tower_user_name") or os.environ.get("USER") or "unknown"
        return {"job": self._first(variables, "awx_job_id", "tower_job_id"), "person": f"{user}@{host}", "host": host}

    def _first(self, variables: dict[str, Any], *names: str) -> str:
        values = (self._templar.template(variables[name]) for name in names if name in variables)
        return next((str(_settings.plain(value)) for value in values if not _settings.is_blank(value)), "")
