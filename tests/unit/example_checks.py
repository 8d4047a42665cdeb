# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with an example: a command, a task, a play, an inventory, a rulebook, a manifest, or variables.

Each check returns a list of problems. It compares options with argument specs and documentation, in this process:
`ansible-playbook --syntax-check` knows neither.
"""

from __future__ import annotations

import ast
import functools
import importlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import yaml
from ansible.cli.adhoc import AdHocCLI
from ansible.cli.doc import DocCLI
from ansible.cli.galaxy import GalaxyCLI
from ansible.cli.inventory import InventoryCLI
from ansible.cli.playbook import PlaybookCLI
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.splitter import parse_kv
from guide_blocks import CHECKOUT, Block
from packaging.requirements import InvalidRequirement, Requirement

from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _settings

PREFIX = "holdfast.kubernetes."
ROLES = {path.parents[1].name: path for path in sorted(CHECKOUT.glob("roles/*/meta/argument_specs.yml"))}
OF_PLAYBOOKS = CHECKOUT / "playbooks/vars/argument_specs.yml"
TEMPLATE = re.compile(r"\{\{|\{%")
Options = dict[str, Any]


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


# --- variables


@functools.cache
def specs(path: Path) -> dict[str, Any]:
    return dict(load(path)["argument_specs"])


def options_in(path: Path, *entries: str) -> Options:
    """The options of these entry points, or of all."""
    found = specs(path)
    return {name: option for entry in entries or found for name, option in (found[entry].get("options") or {}).items()}


@functools.cache
def all_options() -> Options:
    """Every variable of the collection, also by its aliases."""
    found = {name: option for path in [*ROLES.values(), OF_PLAYBOOKS] for name, option in options_in(path).items()}
    return {alias: option for name, option in found.items() for alias in [name, *option.get("aliases", [])]}


# A variable with one of these prefixes is the collection's.
OURS = re.compile(r"(?:doctor|hold|report|status|" + "|".join(ROLES) + r")_\w+")


def variables(given: Mapping[str, Any], known: Options | None = None) -> list[str]:
    """Problems of variables of the collection; other ones are the reader's own."""
    known = all_options() if known is None else known
    found = []
    for name, value in given.items():
        if name not in known:
            found += [f"unknown variable {name}"] if OURS.fullmatch(name) else []
            continue
        option = with_inner(name, known[name])
        try:
            _settings.typed(filled(value, option), option)
        except _settings.Unfit as error:
            found.append(f"{name} {error}: {value!r}")
    return found


# The modules that get the dictionaries whose content a role's argument spec leaves to them.
INNER = {
    "windows": ("maintenance_window", "windows"),
    "block_pods": ("node_blockers", "pods"),
    "block_alerts": ("node_blockers", "alerts"),
    "pushgateway": ("metrics", "pushgateway"),
    "alertmanager": ("reboot_begin", "alertmanager"),
    "management": ("doctor", "management"),
    "auth": ("doctor", "management"),
}


def with_inner(name: str, option: Mapping[str, Any]) -> Mapping[str, Any]:
    for ending, (called, inner) in INNER.items():
        spec = module_spec(PREFIX + called)
        if name.endswith(f"_{ending}") and spec:
            return {**option, "options": spec["argument_spec"][inner]["options"]}
    return option


def filled(value: Any, option: Mapping[str, Any]) -> Any:
    """The value with something of the option's type in the place of each template."""
    below = option.get("options") or option.get("suboptions") or {}
    kind = option.get("type", "str")
    if isinstance(value, str) and TEMPLATE.search(value):
        if kind == "dict":
            return {key: filled("{{ }}", inner) for key, inner in below.items() if inner.get("required")}
        choices = list(option.get("choices") or [])
        return choices[0] if choices else {"int": 1, "float": 1.0, "bool": True, "list": []}.get(kind, "x")
    if isinstance(value, dict):
        return {key: filled(item, below.get(key, {})) for key, item in value.items()}
    if isinstance(value, list):
        element = {"type": option.get("elements", "str"), "options": below}
        return [filled(item, element) for item in value]
    return value


@functools.cache
def options_of_playbook(name: str) -> Options:
    """The variables that a playbook reads, also by their aliases."""
    found: Options = {}
    for node in walk([load(path) for path in plays_of(name)]):
        role = node.get("ansible.builtin.include_role") or node.get("ansible.builtin.import_role")
        if role:
            found |= options_in(ROLES[role["name"].removeprefix(PREFIX)])
        if reads := node.get("holdfast.kubernetes.role_settings"):
            found |= options_in(OF_PLAYBOOKS, reads["entry_point"])
    return {alias: option for key, option in found.items() for alias in [key, *option.get("aliases", [])]}


def plays_of(name: str) -> list[Path]:
    """The files of a playbook: its own, and those that it imports by a template."""
    path = CHECKOUT / f"playbooks/{name}.yml"
    imported = [node.get("ansible.builtin.import_playbook") for node in walk(load(path))]
    return [
        path,
        *(found for item in imported if item for found in path.parent.glob(re.sub(r"\{\{.*?\}\}", "*", item))),
    ]


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Every dictionary in a value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from walk(item)


# --- tasks and plays


@functools.cache
def documentation(path: Path) -> Options:
    """The options of a plugin, with those of its fragments."""
    text = constant(path, "DOCUMENTATION")
    document = yaml.safe_load(text)
    fragments = document.get("extends_documentation_fragment") or []
    found: Options = {}
    for fragment in [fragments] if isinstance(fragments, str) else fragments:
        file, _dot, part = fragment.removeprefix(PREFIX).partition(".")
        root = CHECKOUT / "plugins/doc_fragments" if fragment.startswith(PREFIX) else _BUILTIN / "plugins/doc_fragments"
        extended = yaml.safe_load(constant(root / f"{file}.py", (part or "documentation").upper())) or {}
        found |= extended.get("options") or {}
    return found | (document.get("options") or {})


_BUILTIN = Path(importlib.import_module("ansible").__file__).parent


def constant(path: Path, name: str) -> str:
    """A text that a Python file assigns to a name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == name for target in node.targets):
            return str(ast.literal_eval(node.value))
    raise AssertionError(f"{path} has no {name}")


def _argument_spec(options: Options) -> Options:
    spec = {}
    for name, option in options.items():
        taken = {key: option[key] for key in ("type", "elements", "required", "aliases") if key in option}
        if option.get("choices"):
            taken["choices"] = list(option["choices"])
        if option.get("suboptions"):
            taken["options"] = _argument_spec(option["suboptions"])
        spec[name] = taken
    return spec


@functools.cache
def module_spec(name: str) -> dict[str, Any] | None:
    """What a module accepts, as arguments of the validator; ``None`` if there is no such module."""
    short = name.rpartition(".")[2]
    if name.startswith(PREFIX):
        if not (CHECKOUT / f"plugins/modules/{short}.py").exists():
            return None
        full = f"ansible_collections.holdfast.kubernetes.plugins.modules.{short}"
        return {key: value for key, value in importlib.import_module(full).SPEC.items() if key != "supports_check_mode"}
    path = _BUILTIN / f"modules/{short}.py"
    if not name.startswith("ansible.builtin.") or not path.exists():
        return None
    return {"argument_spec": _argument_spec(documentation(path))}


# Collections whose documentation is not on the machines that test this one.
ABSENT = ("awx.awx.",)
# Their arguments are not fixed.
FREE = {"ansible.builtin.set_fact", "ansible.builtin.set_stats", "ansible.builtin.command"}


def module(name: str, arguments: Any) -> list[str]:
    """Problems of the arguments of a module."""
    if name.startswith(ABSENT):
        return []
    spec = module_spec(name)
    if spec is None:
        return [f"there is no module {name}"]
    if isinstance(arguments, str):
        arguments = parse_kv(arguments)
    if name in FREE:
        return []
    known = spec["argument_spec"]
    given = {key: filled(value, known.get(key, {})) for key, value in (arguments or {}).items()}
    return [f"{name}: {message}" for message in ArgumentSpecValidator(**spec).validate(given).error_messages]


def task(item: Mapping[str, Any]) -> list[str]:
    inner = [below for key in ("block", "rescue", "always") for below in item.get(key, [])]
    found = [problem for below in inner for problem in task(below)] + variables(item.get("vars") or {})
    called = [key for key in item if "." in key]
    if len(called) != (0 if inner else 1):
        return [*found, f"a task has to have one module, by its full name: {sorted(item)}"]
    for name in called:
        if name in ("ansible.builtin.include_role", "ansible.builtin.import_role"):
            found += role(item[name]["name"], {}, item[name].get("tasks_from", "main"))
        else:
            found += module(name, item[name])
    return found


def role(name: str, given: Mapping[str, Any], entry: str = "main") -> list[str]:
    short = name.removeprefix(PREFIX)
    if short not in ROLES or entry not in specs(ROLES[short]):
        return [f"there is no role {name} with the entry point {entry}"]
    return variables(given)


def play(item: Mapping[str, Any]) -> list[str]:
    if wanted := item.get("import_playbook") or item.get("ansible.builtin.import_playbook"):
        return playbook(wanted) + variables(item.get("vars") or {})
    found = variables(item.get("vars") or {})
    for each in item.get("roles", []):
        found += role(each["role"], {**each, **each.get("vars", {})})
    for section in ("pre_tasks", "tasks", "post_tasks", "handlers"):
        found += [problem for each in item.get(section, []) for problem in task(each)]
    return found


def playbook(name: str) -> list[str]:
    known = name.startswith(PREFIX) and (CHECKOUT / f"playbooks/{name.removeprefix(PREFIX)}.yml").exists()
    return [] if known else [f"there is no playbook {name}"]


# --- other YAML

VERBS = {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "hold"}
ACTIONS = {"run_playbook", "run_job_template", "run_workflow_template", "run_module", "debug", "print_event"}


def document(loaded: Any) -> list[str]:
    """Problems of a YAML document of a known kind."""
    if isinstance(loaded, list) and all(isinstance(item, dict) for item in loaded):
        return [problem for item in loaded for problem in _item(item)]
    if not isinstance(loaded, dict):
        return ["this is neither a list of plays or tasks nor a dictionary"]
    if "plugin" in loaded:
        return inventory_plugin(loaded)
    if "apiVersion" in loaded:
        return manifest(loaded)
    if set(loaded) == {"action"}:
        return action(loaded["action"])
    if all(isinstance(group, dict) and set(group) <= {"hosts", "vars", "children"} for group in loaded.values()):
        return [problem for group in loaded.values() for problem in variables(group.get("vars") or {})]
    if all(OURS.fullmatch(name) for name in loaded):
        return variables(loaded)
    return [f"unknown kind of YAML with {', '.join(loaded)}: add it to tests/unit/example_checks.py"]


def _item(item: dict[str, Any]) -> list[str]:
    if "sources" in item:
        return rulebook(item)
    return play(item) if item.keys() & {"hosts", "import_playbook", "ansible.builtin.import_playbook"} else task(item)


def inventory_plugin(loaded: Mapping[str, Any]) -> list[str]:
    if loaded["plugin"] != f"{PREFIX}nodes":
        return [f"there is no inventory plugin {loaded['plugin']}"]
    spec = _argument_spec(documentation(CHECKOUT / "plugins/inventory/nodes.py"))
    return list(ArgumentSpecValidator(spec).validate(dict(loaded)).error_messages)


def manifest(loaded: Mapping[str, Any]) -> list[str]:
    found = [problem for item in loaded.get("items", []) for problem in manifest(item)]
    if "items" not in loaded and not (loaded.get("metadata") or {}).get("name"):
        found.append(f"a {loaded.get('kind')} without a name")
    for rule in loaded.get("rules") or []:
        if loaded["kind"] in ("Role", "ClusterRole"):
            found += [f"unknown verb {verb}" for verb in rule["verbs"] if verb not in VERBS]
            found += [f"{key} is empty" for key in ("apiGroups", "resources") if not rule.get(key)]
    return found


def rulebook(item: Mapping[str, Any]) -> list[str]:
    found = []
    for source in item["sources"]:
        for name, arguments in source.items():
            path = CHECKOUT / f"extensions/eda/plugins/event_source/{name.removeprefix(PREFIX)}.py"
            if not path.exists():
                found.append(f"there is no event source {name}")
                continue
            unknown = set(arguments or {}) - set(documentation(path))
            found += [f"{name} has no option {option}" for option in sorted(unknown)]
    return found + [problem for rule in item["rules"] for problem in action(rule["action"])]


def action(item: Mapping[str, Any]) -> list[str]:
    found = [f"unknown action {name}" for name in item if name not in ACTIONS]
    for node in walk(dict(item)):
        found += variables(node.get("extra_vars") or {})
        if str(node.get("name", "")).startswith(PREFIX):
            found += playbook(node["name"])
    return found


# --- commands

# What Kubernetes' client does with which kinds in the guides.
KUBECTL = {"apply", "create", "get", "wait", "delete", "label", "annotate", "describe"}
# Programs whose arguments are the reader's own, or that only read their input.
OTHERS = {"jq", "date", ".", "systemctl", "systemd-inhibit", "export"}


def commands(block: Block) -> list[str]:
    """Problems of the commands of a block, and of the documents that they read."""
    found = [problem for text in block.documents for problem in document(yaml.safe_load(text))]
    for words in block.commands:
        found += command(words, block)
    return found


def command(words: list[str], block: Block) -> list[str]:
    program, arguments = words[0], words[1:]
    if program == "-e":
        return extra_variables(given_by(words), all_options(), block)
    if check := PROGRAMS.get(program):
        return check(arguments, block)
    return [] if program in OTHERS else [f"unknown program {program}: add it to tests/unit/example_checks.py"]


def _parsed(cli: type[Any], arguments: list[str]) -> Any:
    """The arguments as Ansible's own command line takes them, or the error."""
    program = cli([cli.__name__, *arguments])
    program.init_parser()
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return program.parser.parse_args(arguments)
    except SystemExit:
        return said.getvalue().strip().splitlines()[-1]


def given_by(words: list[str]) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words) if word == "-e"]


def extra_variables(given: list[str], known: Options, block: Block) -> list[str]:
    found = []
    for text in given:
        if text.startswith("@"):
            page, name = (CHECKOUT / block.where.rpartition(":")[0]).read_text(), Path(text).name
            found += (
                []
                if re.search(rf"^ *# {re.escape(name)}\b", page, re.MULTILINE)
                else [f"the page does not show {name}"]
            )
            continue
        values = json.loads(text) if text.startswith("{") else parse_kv(text)
        # A value with spaces needs its own quotes; Ansible ignores its other words.
        found += [f"only a part of this is a variable: {text}"] if "_raw_params" in values else []
        values.pop("_raw_params", None)
        found += [f"the playbook has no variable {name}" for name in values if name not in known]
        found += variables(values, known)
    return found


def ansible_playbook(arguments: list[str], block: Block) -> list[str]:
    parsed = _parsed(PlaybookCLI, arguments)
    if isinstance(parsed, str):
        return [parsed]
    found = []
    for name in parsed.args:
        found += playbook(name) or extra_variables(
            list(parsed.extra_vars or []), options_of_playbook(name.removeprefix(PREFIX)), block
        )
    return found


def ansible(arguments: list[str], _block: Block) -> list[str]:
    parsed = _parsed(AdHocCLI, arguments)
    if isinstance(parsed, str):
        return [parsed]
    return module(parsed.module_name, parsed.module_args)


def of_ansible(cli: type[Any]) -> Callable[[list[str], Block], list[str]]:
    def check(arguments: list[str], _block: Block) -> list[str]:
        parsed = _parsed(cli, arguments)
        return [parsed] if isinstance(parsed, str) else []

    return check


def ansible_rulebook(arguments: list[str], _block: Block) -> list[str]:
    name = arguments[arguments.index("--rulebook") + 1]
    path = CHECKOUT / f"extensions/eda/rulebooks/{name.removeprefix(PREFIX)}.yml"
    return [] if path.exists() else [f"there is no rulebook {name}"]


def kubectl(arguments: list[str], _block: Block) -> list[str]:
    found = [] if KUBECTL & set(arguments) else [f"kubectl does none of {', '.join(sorted(KUBECTL))}: {arguments}"]
    for at, word in enumerate(arguments):
        # A name without a folder is a file of the reader.
        if word == "--filename" and "/" in arguments[at + 1] and not (CHECKOUT / arguments[at + 1]).exists():
            found.append(f"there is no {arguments[at + 1]}")
    return found


def make(arguments: list[str], _block: Block) -> list[str]:
    text = (CHECKOUT / "Makefile").read_text()
    found = []
    for word in arguments:
        name, equals, _value = word.partition("=")
        known = re.search(rf"^{re.escape(name)} [?:]=" if equals else rf"^{re.escape(name)}:", text, re.MULTILINE)
        found += [] if known else [f"the Makefile has no {name}"]
    return found


def pip(arguments: list[str], _block: Block) -> list[str]:
    found = [] if arguments[:1] == ["install"] else [f"pip {arguments}"]
    for text in arguments[1:]:
        try:
            Requirement(text)
        except InvalidRequirement as error:
            found.append(f"{text}: {error}")
    return found


def python(arguments: list[str], _block: Block) -> list[str]:
    found = []
    if "-m" in arguments:
        name = arguments[arguments.index("-m") + 1]
        found += [] if importlib.util.find_spec(name) else [f"Python has no module {name}"]
    paths = [word for word in arguments if word.startswith("tests/")]
    return found + [f"there is no {path}" for path in paths if not (CHECKOUT / path).exists()]


PROGRAMS: dict[str, Callable[[list[str], Block], list[str]]] = {
    "ansible": ansible,
    "ansible-doc": of_ansible(DocCLI),
    "ansible-galaxy": of_ansible(GalaxyCLI),
    "ansible-inventory": of_ansible(InventoryCLI),
    "ansible-playbook": ansible_playbook,
    "ansible-rulebook": ansible_rulebook,
    "kubectl": kubectl,
    "make": make,
    "pip": pip,
    "python3": python,
    "/usr/bin/python3": python,
    "build/venv/bin/python": python,
}
