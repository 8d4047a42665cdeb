# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles use the answer of role_settings, never a variable as its user wrote it: the text "false" counts as true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from jinja2 import nodes

CHECKOUT = Path(__file__).resolve().parents[2]
ROLES = sorted(path.parent.parent for path in (CHECKOUT / "roles").glob("*/tasks/main.yml"))
# Those that only choose one of playbooks/plays have no plays of their own.
PLAYBOOKS = sorted(
    path
    for path in (CHECKOUT / "playbooks").glob("**/*.yml")
    if path.parent.name != "vars" and "ansible.builtin.import_playbook" not in yaml.safe_load(path.read_text())[0]
)
# Ansible takes these as expressions, without braces.
EXPRESSIONS = {"when", "until", "failed_when", "changed_when", "that"}
READS = "holdfast.kubernetes.role_settings"
JINJA = jinja2.Environment(extensions=["jinja2.ext.do"], autoescape=True)


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text()) or {}


def options(role: Path) -> dict[str, Any]:
    specs = load(role / "meta/argument_specs.yml")["argument_specs"].values()
    return {name: option for spec in specs for name, option in (spec.get("options") or {}).items()}


def texts(value: Any, key: str = "") -> Iterator[tuple[str, bool]]:
    """Every text below a value, and whether it is an expression."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from texts(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item, key)
    elif isinstance(value, str):
        yield value, key in EXPRESSIONS


def used(value: Any) -> set[str]:
    """Variables that are read in the templates and expressions below a value."""
    found: set[str] = set()
    for text, expression in texts(value):
        template = f"{{{{ {text} }}}}" if expression and "{{" not in text else text
        found |= names_in(template)
    return found


def names_in(template: str) -> set[str]:
    return {node.name for node in JINJA.parse(template).find_all(nodes.Name)}


def public(names: set[str], role: Path) -> set[str]:
    return {name for name in names if name.startswith(f"{role.name}_")}


def files(role: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(role.glob(pattern))


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
class TestRole:
    def test_no_task_reads_a_variable_of_the_user(self, role):
        found = {path.name: public(used(load(path)), role) for path in files(role, "tasks/*.yml")}

        # One task compares the name that the user may have set with the one that the role has set.
        if role.name == "failover":
            assert found.pop("run.yml") == {"failover_node_name"}
        assert not {name: names for name, names in found.items() if names}

    def test_no_template_reads_one(self, role):
        for path in files(role, "templates/*"):
            assert not public(names_in(path.read_text()), role), path.name

    def test_only_secrets_are_read_at_their_use(self, role):
        secrets = {name for name, option in options(role).items() if option.get("no_log")}

        for name, value in load(role / "vars/main.yml").items():
            read = public(used(value), role)
            assert read <= secrets, name
            assert not read or name == f"__{role.name}_secrets" or {name} == {f"__{secret}" for secret in read}

    def test_defaults_are_templates_and_secrets(self, role):
        """The others have theirs in the argument spec: a blank answer of a survey takes that."""
        specs = options(role)

        for name, value in load(role / "defaults/main.yml").items():
            secret = specs[name].get("no_log", False)
            assert secret or "{{" in value or name == "failover_node_name", name
            assert not secret or value == specs[name]["default"], name

    def test_every_entry_point_reads_the_settings_first(self, role):
        for entry in load(role / "meta/argument_specs.yml")["argument_specs"]:
            assert first_action(role, entry) == READS, entry


def first_action(role: Path, name: str) -> str:
    """The module of the first task, through files that are imported and blocks."""
    task = load(role / f"tasks/{name}.yml")[0]
    while True:
        if "block" in task:
            task = task["block"][0]
        elif "ansible.builtin.import_tasks" in task:
            task = load(role / "tasks" / task["ansible.builtin.import_tasks"])[0]
        else:
            return next(key for key in task if "." in key)


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_playbooks_leave_the_validation_to_the_role(path):
    """Ansible's own refuses blanks and JSON text, and says nothing of unknown names."""
    for play in load(path):
        for task in play["tasks"]:
            role = task.get("ansible.builtin.include_role") or task.get("ansible.builtin.import_role")
            assert role is None or role["rolespec_validate"] is False, task["name"]


def test_the_check_sees_every_place():
    task = {"when": ["a_b and x.a_c"], "m": {"o": "{{ a_d | default('a_e') }}", "l": ["text a_f", "{{ __a_g }}"]}}

    assert used(task) == {"a_b", "x", "a_d", "__a_g"}


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_a_limit_that_leaves_localhost_out_does_not_leave_a_playbook_out(path):
    """Ansible skips a play that has no hosts, and ends green."""
    assert load(path)[0]["hosts"] != "localhost"


@pytest.mark.parametrize("folder", ["roles", "playbooks"])
def test_no_program_of_the_controller_is_needed(folder):
    """A minimal image has no `hostname`; and a lookup in a default runs even where it is not used."""
    for path in (CHECKOUT / folder).rglob("*.yml"):
        assert "pipe'" not in path.read_text(), path
