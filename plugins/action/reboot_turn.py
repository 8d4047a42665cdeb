# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for a node's turn: the operation in the controller's process, and its questions over the node's connection."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.facts_rules import ALWAYS, Settings
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_turn
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _run_hosts
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._api_action import ActionModule as ApiAction

_SIGN = "reboot_required.sh"


class ActionModule(ApiAction):
    """Answers what the admission asks: only the node knows whether it needs a reboot."""

    module = reboot_turn

    def operate(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["play"] == "plan":
            return {"changed": False, **self._ask(params)}
        params = {**params, **_run_hosts.others(self._task_vars, params["canary_hosts"])}
        asked: list[str] = []
        while True:
            outcome = super().operate(params)
            if outcome.get("step") != "ask":
                return {**outcome, "asked": asked}
            question = outcome["steps"][0]
            asked.append(question)
            answer = self._shutdown(params) if question == "shutdown" else self._needed(params)
            params = {**params, "last": outcome, "answer": outcome["answer"], "shutdown": outcome["shutdown"]}
            params["shutdown" if question == "shutdown" else "answer"] = answer

    def _ask(self, params: dict[str, Any]) -> dict[str, Any]:
        """Ask what a plan may need to know. Whether it does is decided later, from one look at the whole cluster."""
        settings = params["settings"]
        always = settings["when"] == ALWAYS
        answer = {} if always else self._needed(params)
        asks = always or answer.get("needed")
        known = Settings(
            params["name"], "", "", method=settings["method"], graceful_shutdown=settings["graceful_shutdown"]
        )
        return {"answer": answer, "shutdown": self._shutdown(params) if asks and known.asks_shutdown else None}

    def _needed(self, params: dict[str, Any]) -> dict[str, str]:
        """Why the node needs a reboot, or why it does not say."""
        name, by_command = params["name"], params["settings"]["when"] == "command"
        try:
            return self._by_command(params) if by_command else self._by_sign(name)
        except AnsibleConnectionFailure as error:
            said = str(error).strip().rstrip(".")
            return {
                "trouble": f"Node {name} can't be reached over its connection: {said}. Mend the connection, or leave "
                "the host out."
            }

    def _by_sign(self, name: str) -> dict[str, str]:
        """Ask by the distribution's own sign."""
        script = Path(self._find_needle("files", _SIGN)).read_text(encoding="utf-8")
        command = f"{self._compute_environment_string()} sh -c {shlex.quote(script)}".strip()
        done = self._low_level_execute_command(command, sudoable=True)
        said = str(done["stdout"]).strip()
        if done["rc"] != 0 or not said.startswith(("yes: ", "no")):
            said = said or str(done["stderr"]).strip() or f"{_SIGN} exited {done['rc']}"
            return {
                "trouble": f"Whether node {name} needs a reboot can't be told ({said}). Set rolling_reboot_when to "
                "always, or to command with rolling_reboot_when_command."
            }
        return {"needed": said.removeprefix("yes: ") if said.startswith("yes: ") else ""}

    def _by_command(self, params: dict[str, Any]) -> dict[str, str]:
        """Ask by the user's command. A plan asks, too."""
        task = self._task.copy()
        task.args = {"_raw_params": params["settings"]["when_command"]}
        task.check_mode = False
        action = self._shared_loader_obj.action_loader.get(
            "ansible.legacy.command",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        done = action.run(task_vars=self._task_vars)
        if done.get("rc") not in (0, 1):
            # Its output may have secrets, and this is written on the Node.
            said = f"exited {done['rc']}" if "rc" in done else f"could not run: {done.get('msg')}"
            return {"trouble": f"rolling_reboot_when_command of node {params['name']} {said}; 0 means yes, 1 means no."}
        return {"needed": "rolling_reboot_when_command said so" if done["rc"] == 0 else ""}

    def _shutdown(self, params: dict[str, Any]) -> dict[str, Any]:
        """Ask whether the node's shutdown is graceful. That it can't say is one more thing to be told."""
        options = {name: value for name, value in params["shutdown_options"].items() if value}
        try:
            done: dict[str, Any] = self._execute_module(
                module_name="holdfast.kubernetes.graceful_shutdown_info", module_args=options, task_vars=self._task_vars
            )
        except AnsibleConnectionFailure as error:
            return {"msg": str(error)}
        return {name: done[name] for name in ("in_effect", "enabled", "problems", "msg") if name in done}
