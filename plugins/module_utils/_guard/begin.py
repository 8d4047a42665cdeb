# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a guard: check its settings, set or remove its hooks, and name its run."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .._api.errors import HoldfastError, InvalidInput
from .._api.runner import Context, Params, Result
from .._capi.find import MACHINE
from .._capi.hook_info import deletion_hook_info
from .._capi.hooks import deletion_hook
from .._capi.rules import NOT_DELETING
from .._progress import last_answer
from . import begin_rules as rules
from .journey import answer_key, selection_of
from .steps import take_machine

_TRIES, _PAUSE = 30, 10.0


def machine_guard_begin(context: Context, params: Params) -> Result:
    """Set the hooks of a guard, or remove them, and answer how it continues; see the module of the same name."""
    return _Begin(context, params).run()


class _Begin:
    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._params = context, params
        self._given: Mapping[str, Any] = params["settings"]
        self._changed = False
        self._hooks: list[dict[str, Any]] = []
        self._refused: list[dict[str, Any]] = []

    def run(self) -> Result:
        given, params = self._given, self._params
        self._check()
        machines = self._machines()
        unknown = rules.unknown(machines, given)
        if unknown:
            self._context.warn(
                f"there is no Machine {', '.join(unknown)} in the namespace {given['namespace']}. If it is not gone "
                "already, check machine_guard_machines, and that machine_guard_management names the cluster of the "
                "Machines."
            )
        if rules.changes_hooks(given):
            for template in given["templates"]:
                self._change(template["kind"], template["name"], given["namespace"])
            for machine in rules.chosen(machines, given):
                self._change(MACHINE, machine["name"], machine["namespace"])
        if self._refused:
            names = ", ".join(dict.fromkeys(item["machine"] for item in self._refused))
            self._context.warn(f"the hooks could not be set on, or removed from, {names}: {self._refused[0]['detail']}")
        steps = rules.steps(given, check_mode=self._context.check_mode)
        who = params["who"]
        run = given.get("run") or who["job"] or f"{who['host']}/{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        run = f"{run}/{random.randrange(1000000)}"  # noqa: S311 - an id, no secret
        # A worker whose first task fails has done nothing. Without the playbook, its number is 0.
        for worker in range(given["parallel"] + 1):
            last_answer.keep(self._context.folder, answer_key(run, str(worker)), {"begun": run})
        return {
            "changed": self._changed,
            "steps": steps,
            "workers": list(range(1, given["parallel"] + 1)) if rules.SERVE in steps else [],
            "waiting": self._waiting() if rules.PLAN in steps else [],
            "begun": {
                "settings": dict(given),
                "playbook_dir": params["playbook_dir"],
                "run": run,
                "holder": given.get("holder") or who["person"],
                "ends": int(time.time()) + given["timeout"],
                "serves": rules.SERVE in steps,
                "check_mode": self._context.check_mode,
                "hooks": self._hooks,
                "refused": self._refused,
                "unknown": unknown,
            },
        }

    def _check(self) -> None:
        """Refuse invalid settings before anything is changed."""
        files = rules.files_of(self._given, self._params["playbook_dir"])
        why = rules.problem(self._given, files)
        if why:
            raise InvalidInput(why)

    def _machines(self) -> list[dict[str, Any]]:
        if not rules.selects(self._given):
            return []
        options = {
            "namespace": self._given["namespace"] or None,
            "selector": self._given["selector"] or None,
            "wait_for": "none",
            "wait_timeout": 0,
        }
        found: list[dict[str, Any]] = deletion_hook_info(self._context, options)["machines"]
        return found

    def _change(self, kind: str, name: str, namespace: str) -> None:
        """Set or remove the hooks of one object. If one Machine can't have them, the others still do."""
        state = self._given["state"]
        for point in self._given["points"]:
            options = {
                "kind": kind,
                "machine": name,
                "namespace": namespace,
                "point": point,
                "hook": self._given["hook"],
                "owner": self._given["owner"],
                "state": state,
                # Its deletion may start after the list.
                "unless_deleting": kind == MACHINE and state == rules.ABSENT,
                "wait_for": "none",
                "wait_timeout": 0,
            }
            try:
                found = self._answered(partial(deletion_hook, self._context, options))
                self._changed |= found["changed"]
            except HoldfastError as error:
                if kind != MACHINE or not rules.is_reported(error):
                    raise
                self._report(error, name, namespace, point)

    def _report(self, error: HoldfastError, name: str, namespace: str, point: str) -> None:
        if rules.is_refused(error):
            self._refused.append({"machine": f"{namespace}/{name}", "detail": error.message})
        elif error.kind != "not_found":
            self._hooks.append(
                {
                    "name": name,
                    "namespace": namespace,
                    "point": point,
                    "error": error.kind,
                    "why": error.fields.get("why", error.kind),
                    "detail": error.message,
                }
            )

    def _answered(self, act: Callable[[], Result]) -> Result:
        """Act, and try again while the API server is unavailable: Machines with a hook have no worker yet."""
        for _try in range(_TRIES):
            try:
                return act()
            except HoldfastError as error:
                if rules.is_answered(error):
                    raise
                self._context.warn_now(
                    f"The hooks are not all set yet; trying again in {_PAUSE:.0f} s: {error.message}"
                )
                time.sleep(_PAUSE)
        return act()

    def _waiting(self) -> list[str]:
        """Return which Machines wait, one line each."""
        options = {**selection_of(self._given), "run": "plan", "holder": "", "worker": "plan", "set_points": []}
        options |= {"stop": "deadline", "retry_seconds": 0, "wait_timeout": 0}
        left = take_machine(self._context, options)["left"]
        return [
            f"{item['namespace']}/{item['name']}: {item['phase']}"
            + (f" since {item['waiting_since']}" if item["waiting_since"] else "")
            for item in left
            if item["phase"] != NOT_DELETING
        ]
