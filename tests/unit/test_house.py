# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to agree with something else in the collection, and would be forgotten otherwise."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._names import VERSION

CHECKOUT = Path(__file__).resolve().parents[2]
PLUGINS = CHECKOUT / "plugins"
# These work on the node, over D-Bus: no API, no action plugin, not in the group.
NODE_SIDE = {"graceful_shutdown", "graceful_shutdown_info", "inhibitor_lock", "inhibitor_lock_info"}


def read_yaml(path: str) -> Any:
    return yaml.safe_load((CHECKOUT / path).read_text())


def names(kind: str) -> set[str]:
    return {path.stem for path in (PLUGINS / kind).glob("*.py") if path.stem != "__init__"}


MODULES = names("modules")
# This works on the variables of a play, in the controller: no API, not in the group.
CONTROLLER_SIDE = {"role_settings"}
API_MODULES = MODULES - NODE_SIDE - CONTROLLER_SIDE
ROLES = sorted(path.parent.parent for path in (CHECKOUT / "roles").glob("*/tasks/main.yml"))


def documentation(module: str) -> dict[str, Any]:
    tree = ast.parse((PLUGINS / f"modules/{module}.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION":
            return yaml.safe_load(ast.literal_eval(node.value))
    pytest.fail(f"{module} has no DOCUMENTATION")


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names}
    return found


def test_there_are_modules():
    assert API_MODULES


def test_action_group_is_all_api_modules():
    group = read_yaml("meta/runtime.yml")["action_groups"]["all"]

    assert set(group) == API_MODULES
    assert group == sorted(group)


def test_what_runs_in_the_controller_has_an_action_plugin_and_no_other_has():
    assert names("action") == API_MODULES | CONTROLLER_SIDE


@pytest.mark.parametrize("module", sorted(API_MODULES))
def test_module_says_that_it_is_in_the_group(module):
    fragments = documentation(module).get("extends_documentation_fragment", [])

    assert any(fragment.endswith(".actiongroup_all") for fragment in fragments), fragments


@pytest.mark.parametrize("module", sorted(MODULES))
def test_changelog_names_the_module(module):
    releases = read_yaml("changelogs/changelog.yaml")["releases"].values()

    assert module in {entry["name"] for release in releases for entry in release.get("modules", [])}, "make changelog"


def test_changelog_is_that_of_this_version():
    assert read_yaml("galaxy.yml")["version"] in read_yaml("changelogs/changelog.yaml")["releases"]
    assert read_yaml("galaxy.yml")["version"] == VERSION


@pytest.mark.parametrize("path", sorted((PLUGINS / "module_utils").rglob("*.py")), ids=lambda path: path.stem)
def test_only_faces_know_ansible(path):
    assert not {name for name in imported(path) if name.endswith((".AnsibleModule", ".ActionBase"))}
    assert not {name for name in imported(path) if name.startswith(("ansible.plugins", "ansible.utils"))}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
class TestRole:
    def test_has_its_files(self, role):
        for name in ("defaults/main.yml", "meta/argument_specs.yml", "README.md"):
            assert (role / name).is_file(), name

    def test_variables_are_those_of_its_argument_specs(self, role):
        specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
        options = {name for spec in specs.values() for name in spec.get("options") or {}}
        defaults = set(yaml.safe_load((role / "defaults/main.yml").read_text()) or {})

        assert defaults <= options, "without a specification"
        assert not {name for name in options if not name.startswith(f"{role.name}_")}, "without the role's prefix"

    def test_every_entry_point_exists(self, role):
        specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]

        assert not {entry for entry in specs if not (role / f"tasks/{entry}.yml").is_file()}


def test_molecule_installs_no_copy_of_the_collection():
    # Its prerun would put one into ~/.ansible/collections, where it hides the checkout ever after.
    configuration = CHECKOUT / "extensions/molecule/config.yml"
    if not configuration.exists():
        pytest.skip("no scenarios yet")

    assert yaml.safe_load(configuration.read_text())["prerun"] is False
