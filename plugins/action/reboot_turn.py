# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for a node's turn. The operation runs in the controller, and asks the node over the node's connection."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.facts_rules import ALWAYS, Settings
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_turn
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _run_hosts
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._answer_within import (
    NoAnswer,
    answer_within,
    clean_up,
)
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._api_action import ActionModule as ApiAction

_SIGN = "reboot_required.sh"
# Seconds. Package managers may read their metadata again for the answer.
_ANSWER_WITHIN = 600


class ActionModule(ApiAction):
    """Asks the node what the operation needs to know, such as whether it needs a reboot."""

    module = reboot_turn

    def operate(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["play"] == "plan":
            return {"changed": False, **self._ask(params)}
        alone = params["play"] == "only"
        params = {**params, **_run_hosts.others(self._task_vars, params["canary_hosts"], alone=alone)}
        asked: list[str] = []
        while True:
            outcome = super().operate(params)
            if outcome.get("step") != "ask":
                return {**outcome, "asked": asked}
            question = outcome["steps"][0]
            asked.append(question)
            answer = self._shutdown(params) if question == "shutdown" else self._needed(params)
            # Keep the earlier answers, and replace the one to this question.
            params = {**params, "last": outcome, "answer": outcome["answer"], "shutdown": outcome["shutdown"]}
            params["shutdown" if question == "shutdown" else "answer"] = answer

    def cleanup(self, force: bool = False) -> None:
        clean_up(super().cleanup, force=force)

    def _ask(self, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the questions that a plan may need. The plan itself comes later, for all nodes together."""
        settings = params["settings"]
        always = settings["when"] == ALWAYS
        answer = {} if always else self._needed(params)
        asks = always or answer.get("needed")
        known = Settings(
            params["name"], "", "", method=settings["method"], graceful_shutdown=settings["graceful_shutdown"]
        )
        return {"answer": answer, "shutdown": self._shutdown(params) if asks and known.asks_shutdown else None}

    def _needed(self, params: dict[str, Any]) -> dict[str, str]:
        """Ask whether the node needs a reboot.

        Returns:
            ``needed``: why it needs one, empty if it needs none; or ``trouble``: why there is no answer.
        """
        name, by_command = params["name"], params["settings"]["when"] == "command"
        try:
            with answer_within(_ANSWER_WITHIN):
                return self._by_command(params) if by_command else self._by_sign(name)
        except NoAnswer:
            return {
                "trouble": f"Node {name} has not said within {_ANSWER_WITHIN} s whether it needs a reboot. Find out "
                "what hangs on the node, or leave the host out."
            }
        except AnsibleConnectionFailure as error:
            why = str(error).strip().rstrip(".")
            return {
                "trouble": f"Ansible can't reach node {name} over its connection: {why}. Fix the connection, or leave "
                "the host out."
            }

    def _by_sign(self, name: str) -> dict[str, str]:
        """Ask the distribution whether a reboot is required."""
        script = Path(self._find_needle("files", _SIGN)).read_text(encoding="utf-8")
        command = f"{self._compute_environment_string()} sh -c {shlex.quote(script)}".strip()
        done = self._low_level_execute_command(command, sudoable=True)
        output = str(done["stdout"]).strip()
        # On a terminal, sudo writes lines before the output.
        answer = output.splitlines()[-1] if output else ""
        if done["rc"] != 0 or not (answer == "no" or answer.startswith("yes: ")):
            output = output or str(done["stderr"]).strip() or f"{_SIGN} exited {done['rc']}"
            return {
                "trouble": f"It is unknown whether node {name} needs a reboot ({output}). Set rolling_reboot_when to "
                "always, or to command with rolling_reboot_when_command."
            }
        return {"needed": answer.removeprefix("yes: ") if answer != "no" else ""}

    def _by_command(self, params: dict[str, Any]) -> dict[str, str]:
        """Run the user's command, also in check mode."""
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
            # Leave out the output: it may have secrets, and this text is stored on the Node.
            why = f"exited {done['rc']}" if "rc" in done else f"could not run: {done.get('msg')}"
            return {
                "trouble": f"rolling_reboot_when_command of node {params['name']} {why}; 0 means yes, 1 means no. "
                "Correct the command, or set rolling_reboot_when to required or always."
            }
        return {"needed": "rolling_reboot_when_command exited 0" if done["rc"] == 0 else ""}

    def _shutdown(self, params: dict[str, Any]) -> dict[str, Any]:
        """Ask whether the node's shutdown is graceful. If it can't answer, return the reason."""
        options = {name: value for name, value in params["shutdown_options"].items() if value}
        try:
            with answer_within(_ANSWER_WITHIN):
                done: dict[str, Any] = self._execute_module(
                    module_name="holdfast.kubernetes.graceful_shutdown_info",
                    module_args=options,
                    task_vars=self._task_vars,
                )
        except AnsibleConnectionFailure as error:
            return {"msg": str(error)}
        return {name: done[name] for name in ("in_effect", "enabled", "problems", "msg") if name in done}
