# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role, read from its own YAML: which tasks a run comes to, in which order, with which options.

Only what these files need of Ansible is here. A task that the model does not know is an error.
"""

from __future__ import annotations

import importlib
import json
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import yaml
from ansible.module_utils.common.arg_spec import ModuleArgumentSpecValidator
from model import api
from model.continuation import constant
from model.programs import Call, Program, Result, Tasks

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Held, HoldfastError, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.read_node import read_node
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import gate, runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation import record_phase
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation_rules import (
    boot_to_end,
    phase_of,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import last_look
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.ready import wait_until_back
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.turn import reboot_turn
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _settings

ROLE = Path(__file__).resolve().parents[2] / "roles/rolling_reboot"
_OURS, _MODULES = "holdfast.kubernetes.", "ansible_collections.holdfast.kubernetes.plugins.modules"
# Tasks that touch neither a node nor the API.
_SILENT = {f"ansible.builtin.{name}" for name in ("set_fact", "set_stats", "debug", "copy", "assert")}
_INCLUDES = {"ansible.builtin.include_tasks", "ansible.builtin.import_tasks"}
_ROLE = "ansible.builtin.include_role"
_KEYWORDS = {"name", "register", "when", "loop", "loop_control", "module_defaults", "no_log", "changed_when"}
_KEYWORDS |= {"check_mode", "delegate_to", "connection", "block", "rescue", "always", "vars", "timeout"}
_OMIT = object()
_WHO = {"job": "", "host": "model", "person": "model"}
# The role gives up on a node that was too late this often, see the action plugin.
_LATE_AT_MOST = 3
# Seconds after the last look in which the command is good, as in the action plugin.
_ACT_WITHIN = 30
Variables = dict[str, Any]


class UnknownTask(Exception):
    """The role has a task that the model can't play."""


class Failed(Exception):
    """A task has failed, and nothing in the role rescued it."""

    def __init__(self, task: str, result: Result) -> None:
        super().__init__(f"{task}: {result.get('msg')}")
        self.task, self.result = task, result


@dataclass(frozen=True)
class Role:
    """The files of the role, or of a changed copy.

    Attributes:
        given: Options that come from the inventory, and that replace those of the tasks of a module.
    """

    settings: Mapping[str, Any]
    path: Path = ROLE
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def play(self, file: str, variables: Variables) -> Tasks:
        """The tasks of one of the files. Variables that tasks register are added."""
        yield from self._tasks(file, _read(self.path / "tasks" / file), variables)

    def _tasks(self, file: str, tasks: Sequence[Mapping[str, Any]], variables: Variables) -> Tasks:
        done = 0
        # The same task may be there several times, so the position counts as well.
        while done < len(tasks):
            task, done = tasks[done], done + 1
            if "block" in task:
                yield from self._block(file, task, variables)
                continue
            loop = _value(task["loop"], variables) if "loop" in task else [None]
            results = []
            for item in loop:
                named = {task["loop_control"]["loop_var"]: item} if item is not None else {}
                variables.update(named)
                variables.update(_value(task.get("vars", {}), variables))
                if all(_expression(text)(**variables) for text in _listed(task.get("when", []))):
                    yield from self._task(file, task, variables)
                    results.append({**named, **variables.get(task.get("register"), {})})
                elif "register" in task:
                    variables[task["register"]] = {"skipped": True}
            if "loop" in task and "register" in task:
                variables[task["register"]] = {"results": results}

    def _block(self, file: str, task: Mapping[str, Any], variables: Variables) -> Tasks:
        broken: Failed | None = None
        # Options of the cluster make no difference here.
        usual = {name.removeprefix(_OURS): value for name, value in task.get("module_defaults", {}).items()}
        variables["__usual"] = {**variables.get("__usual", {}), **usual}
        try:
            yield from self._tasks(file, task["block"], variables)
        except Failed as failure:
            broken = failure
        if broken and "rescue" in task:
            variables.update(ansible_failed_result=broken.result, ansible_failed_task={"name": broken.task})
            try:
                broken = None
                yield from self._tasks(file, task["rescue"], variables)
            except Failed as failure:
                broken = failure
        yield from self._tasks(file, task.get("always", []), variables)
        if broken:
            raise broken

    def _task(self, file: str, task: Mapping[str, Any], variables: Variables) -> Tasks:
        name = task["name"]
        (action,) = (key for key in task if key not in _KEYWORDS)
        if action in _SILENT:
            return
        options = task[action]
        if action in _INCLUDES:
            included = str(_value(options["file"] if isinstance(options, dict) else options, variables))
            if (self.path / "tasks" / included).exists():
                yield from self.play(included, variables)
                return
            # A file of the user.
            turn = variables[f"__{self.path.name}_turn"]
            where = {key: turn[key] for key in ("node", "machine", "point") if key in turn}
            result = yield Call(name, _user_tasks, {"step": included, **where})
        elif action == _ROLE and options["name"] == f"{_OURS}{self.path.name}":
            yield from self.play(f"{options['tasks_from']}.yml", variables)
            return
        elif action == "ansible.builtin.fail":
            raise Failed(name, _value(options, variables))
        elif action == f"{_OURS}role_settings":
            result = {"settings": dict(self.settings), "who": _WHO}
        else:
            module = action.removeprefix(_OURS)
            if not action.startswith(_OURS):
                raise UnknownTask(
                    f"{file}: the model does not know {action} of the task {name!r}. Add it to _SILENT in {__name__} "
                    "if it touches neither a node nor the API, or else say in _task what it does."
                )
            options = {**variables.get("__usual", {}).get(module, {}), **options, **self.given.get(module, {})}
            values = {key: _value(value, variables) for key, value in options.items()}
            params = {key: value for key, value in values.items() if value is not _OMIT}
            result = yield Call(name, *operation(module, params), registers="register" in task)
        if "register" in task:
            variables[task["register"]] = result
        if result.get("failed"):
            raise Failed(name, result)


def operation(
    module: str, params: Mapping[str, Any]
) -> tuple[Callable[[Context, Mapping[str, Any]], Result], Variables]:
    """The operation of a module, and its validated options."""
    found, validator = _module(module)
    checked = validator.validate(dict(params))
    assert not checked.error_messages, f"{module}: {checked.error_messages}"
    valid = {key: value for key, value in checked.validated_parameters.items() if value is not None}
    played = {"reboot": reboot, "reboot_turn": turn}.get(module) or found.OPERATION
    return played, {**dict.fromkeys(found.SPEC["argument_spec"]), **valid}


@lru_cache(None)
def _module(name: str) -> tuple[Any, ModuleArgumentSpecValidator]:
    found = importlib.import_module(f"{_MODULES}.{name}")
    return found, ModuleArgumentSpecValidator(found.SPEC["argument_spec"])


def _user_tasks(context: Context, params: Mapping[str, Any]) -> Result:
    """The user's own tasks succeed, or fail."""
    said = context.cluster.ask("USER", params["node"], {key: params[key] for key in params if key != "node"})
    return {} if said is api.OK else {"failed": True, "msg": f"{params['step']} failed"}


def turn(context: Context, params: Mapping[str, Any]) -> Result:
    """What the action plugin of the module does. Each node answers that it needs no reboot."""
    found = reboot_turn(context, params)
    if found["step"] != "ask":
        return found
    return reboot_turn(context, {**params, "last": found, "answer": {"needed": ""}})


def reboot(context: Context, params: Mapping[str, Any]) -> Result:
    """What the action plugin of the module does: look, record, look again and act, wait.

    The command says itself in which boot it is meant, and until when.
    """
    cluster, name, run, sent = context.cluster, params["node"], params["run"], False

    def look() -> gate.Pass:
        return gate.check(cluster, name, override_holds=params["override_holds"], run=run)

    def act() -> bool:
        """Send the command, unless the reboot that an earlier run requested has happened."""
        for _time in range(1 + _LATE_AT_MOST):
            until = last_look.steady() + _ACT_WITHIN
            if look().boot_id != boot_id:
                if earlier:
                    return False
                raise Refused(f"Node {name} has another boot ID: someone else has rebooted it.")
            in_time = last_look.steady() <= until
            said = cluster.ask("REBOOT", name, {"run": run, "boot_id": boot_id}) if in_time else api.LATE
            # A node that does not answer, or that answers in another boot, counts as told.
            if said is not api.LATE:
                return True
        raise Refused(f"Node {name} did not reboot: {said.kind}.")

    try:
        with runs.heartbeat(cluster, run):
            earlier = boot_to_end(read_node(cluster, name), params["operation"] or "")
            found = look()
            boot_id = earlier or found.boot_id
            if found.boot_id == boot_id:
                record_phase(cluster, name, phase_of(params, "reboot"))
                sent = act()
            wait_until_back(cluster, name, boot_id, Deadline(params["ready_timeout"]))
            record_phase(cluster, name, phase_of(params, "ready"))
    except Held as error:
        return {**error.fields, "changed": False, "step": "held", "why": error.message, "sent": sent}
    except HoldfastError as error:
        return {**error.as_result(), "sent": sent}
    return {"changed": True, "step": "rebooted", "sent": sent, "overridden_holds": []}


# -- the programs of a run


@dataclass(frozen=True)
class Plan:
    """A run: its id, its nodes, and the variables of the role."""

    run: str
    nodes: tuple[str, ...]
    variables: Mapping[str, Any] = field(default_factory=dict)
    path: Path = ROLE
    number: int = 0

    @property
    def key(self) -> str:
        return json.dumps([self.run, self.nodes, dict(self.variables), str(self.path)], sort_keys=True)

    def _role(self, node: str = "", **given: Mapping[str, Any]) -> Role:
        usual = {"when": "always", "graceful_shutdown": "ignore", "opt_outs": False, "controller_node": "elsewhere"}
        own = {**usual, "hold_attempts": 2, "run": self.run, "node_name": node, **self.variables}
        return Role(settings(self.path, own), self.path, given)

    def check_mode(self) -> Program:
        """The plan, in which each node has answered that it needs no reboot."""
        turn = {"answer": {"needed": ""}, "needed": ""}
        hosts = [{"host": name, "turn": turn, "settings": self._role(name).settings} for name in self.nodes]
        params = {"settings": hosts[0]["settings"], "who": _WHO, "hosts": hosts}
        call = replace(Call("Plan", *operation("reboot_plan", params)), check_mode=True)

        def tasks() -> Tasks:
            return (yield call)

        return Program(f"plan {self.key}", tasks, self.number)

    def begin(self) -> Program:
        def tasks() -> Tasks:
            given = {"hosts": {node: node for node in self.nodes}, "forks": 0}
            variables = _variables("begin", self.nodes[0])
            try:
                yield from self._role(reboot_begin=given).play("begin.yml", variables)
            except Failed:
                return None
            return variables["__rolling_reboot_begun"]

        return Program(f"begin {self.key}", tasks, self.number)

    def host(self, node: str, begun: Result) -> Program:
        """The passes of the playbook. No node starts one before all nodes are through the one before."""

        def tasks() -> Tasks:
            variables = {**_variables("", node), "__rolling_reboot_begun": begun}
            if node in begun["resumes"]:
                yield from self._pass("resume", node, variables)
            if begun["resumes"]:
                yield Call("Wait for the other nodes", None)
            if _turn(variables).get("step") in (None, "put_off"):
                yield from self._pass("first", node, variables)
            if _turn(variables).get("step") == "put_off":
                yield Call("Wait for the other nodes", None)
                yield from self._pass("last", node, variables)
            return _turn(variables)

        return Program(f"host {node} {self.key} {json.dumps(begun, sort_keys=True)}", tasks, self.number)

    def _pass(self, name: str, node: str, variables: Variables) -> Tasks:
        variables["__rolling_reboot_pass"] = name
        try:
            yield from self._role(node).play("node.yml", variables)
        except Failed as failure:
            variables["__rolling_reboot_unrescued"] = str(failure)

    def end(self, begun: Result, turns: Mapping[str, Result]) -> Program:
        own = {name: begun.get(name) for name in ("operation", "run", "group")}
        hosts = [
            {"host": name, "turn": turn, "settings": self._role(name).settings, "settings_error": ""}
            for name, turn in turns.items()
        ]

        def tasks() -> Tasks:
            given = {"names": list(turns), "pattern": "all", "limit": "", "management": _OMIT, "hosts": hosts, **own}
            variables = _variables("end", "localhost")
            try:
                yield from self._role(reboot_report=given).play("report.yml", variables)
            except Failed as failure:
                return str(failure)
            return ""

        return Program(f"end {self.key} {json.dumps(hosts, sort_keys=True)}", tasks, self.number)


def whole(role: Role, file: str, variables: Variables, number: int) -> Program:
    """A run that plays a file of a role on one host, from the beginning to the end."""

    def tasks() -> Tasks:
        try:
            yield from role.play(file, {**variables, "omit": _OMIT})
        except Failed:
            return

    told = json.dumps([str(role.path), file, dict(role.settings)], sort_keys=True)
    return Program(f"whole {told}", tasks, number)


def settings(path: Path, given: Mapping[str, Any], entry_point: str = "main") -> Mapping[str, Any]:
    """What role_settings answers. The model's nodes have no connection that could be asked."""
    return _settled(path, json.dumps(given, sort_keys=True), entry_point)


@lru_cache(None)
def _settled(path: Path, given: str, entry_point: str) -> Mapping[str, Any]:
    options = _read(path / "meta/argument_specs.yml")["argument_specs"][entry_point]["options"]
    prefix = f"{path.name}_"
    named = {f"{prefix}{name}": value for name, value in json.loads(given).items()}
    found = _settings.answer(options, named, prefix)
    assert not found.problems, found.problems
    return constant(dict(found.settings), json.dumps(found.settings, sort_keys=True))


def _variables(play: str, host: str) -> Variables:
    secrets = {"auth": {}, "management": {}, "block_alerts": {}}
    return {
        "__rolling_reboot_pass": play,
        "__rolling_reboot_secrets": secrets,
        "__rolling_reboot_artifacts": [],
        "inventory_hostname": host,
        "ansible_forks": 0,
        "omit": _OMIT,
    }


def _turn(variables: Variables) -> Result:
    return dict(variables.get("__rolling_reboot_turn") or {})


# -- what the files need of Ansible


@lru_cache(None)
def _read(path: Path) -> Any:
    return _with_names(yaml.safe_load(path.read_text()), str(path))


def _with_names(value: Any, name: str) -> Any:
    """The content of a file. All its parts stay as they are, so a name stands for each."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        _with_names(part, f"{name}/{key}")
    return constant(value, name) if isinstance(value, dict | list) else value


_jinja = jinja2.Environment(undefined=jinja2.ChainableUndefined, autoescape=False)
_jinja.filters["intersect"] = lambda these, those: [item for item in these if item in those]
_jinja.filters["dict2items"] = lambda known: [{"key": key, "value": value} for key, value in known.items()]
_jinja.filters["combine"] = lambda *given: dict(ChainMap(*reversed(given if len(given) > 1 else given[0])))


@lru_cache(None)
def _expression(text: str) -> Callable[..., Any]:
    return _jinja.compile_expression(text, undefined_to_none=False)


_template = lru_cache(None)(_jinja.from_string)


def _value(value: Any, variables: Variables) -> Any:
    """A value with its templates filled in. One that is a single expression keeps its type."""
    if isinstance(value, dict):
        return {key: _value(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item, variables) for item in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    inner = value.strip()
    if inner.startswith("{{") and inner.endswith("}}") and inner.count("{{") == 1:
        found = _expression(inner[2:-2].strip())(**variables)
        return None if isinstance(found, jinja2.Undefined) else list(found) if hasattr(found, "__next__") else found
    return _template(value).render(**variables)


def _listed(value: Any) -> Iterator[str]:
    yield from value if isinstance(value, list) else [value]
