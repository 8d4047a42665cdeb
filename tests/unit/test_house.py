# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to agree with something else in the collection, and would be forgotten otherwise."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from unit.house import House

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import VERSION

CHECKOUT = Path(__file__).resolve().parents[2]
PLUGINS = CHECKOUT / "plugins"
# These work on the node, over D-Bus: no API, no action plugin, not in the group.
NODE_SIDE = {"graceful_shutdown", "graceful_shutdown_info", "inhibitor_lock", "inhibitor_lock_info"}


@functools.cache
def read_yaml(path: str) -> Any:
    return yaml.safe_load((CHECKOUT / path).read_text())


def names(kind: str) -> set[str]:
    return {path.stem for path in (PLUGINS / kind).glob("*.py") if path.stem != "__init__"}


MODULES = names("modules")
# These work in the controller, on the variables of a play: no API, not in the group.
CONTROLLER_SIDE = {"role_settings", "run_report"}
# These extend the action plugin of ansible.builtin.reboot, or the one of the API modules.
OWN_ACTION = {"reboot", "reboot_turn", "reboot_report", "reboot_plan"}
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


@pytest.mark.parametrize("module", sorted(API_MODULES - OWN_ACTION))
def test_module_runs_by_the_one_action_plugin(module):
    assert (PLUGINS / f"action/{module}.py").readlink() == Path("../plugin_utils/_api_action.py")


@pytest.mark.parametrize("module", sorted(API_MODULES))
def test_module_says_that_it_is_in_the_group(module):
    fragments = documentation(module).get("extends_documentation_fragment", [])

    assert any(fragment.endswith(".actiongroup_all") for fragment in fragments), fragments


@pytest.mark.parametrize("module", sorted(API_MODULES))
def test_module_that_records_its_phase_does_not_say_that_it_changes_nothing(module):
    found = documentation(module)
    fragments = {fragment.removeprefix("holdfast.kubernetes.") for fragment in found["extends_documentation_fragment"]}

    if fragments >= {"shared.phase", "attributes.info_module"}:
        assert found.get("attributes", {}).keys() >= {"check_mode", "diff_mode", "idempotent"}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_changelog_names_the_module(module):
    releases = read_yaml("changelogs/changelog.yaml")["releases"].values()

    assert module in {entry["name"] for release in releases for entry in release.get("modules", [])}, "make changelog"


def test_changelog_is_that_of_this_version():
    assert read_yaml("galaxy.yml")["version"] in read_yaml("changelogs/changelog.yaml")["releases"]
    assert read_yaml("galaxy.yml")["version"] == VERSION


def test_changelog_says_what_its_fragments_say():
    release = read_yaml("changelogs/changelog.yaml")["releases"][VERSION]
    fragments = [read_yaml(f"changelogs/fragments/{name}") for name in release["fragments"]]

    def texts(changes):
        return {text.strip() for entries in changes for text in ([entries] if isinstance(entries, str) else entries)}

    said = texts(entries for fragment in fragments for entries in fragment.values())
    assert texts(release["changes"].values()) == said, "make changelog"


HOUSE = House(PLUGINS / "module_utils", "ansible_collections.holdfast.kubernetes.plugins.module_utils")
ARCHITECTURE = (CHECKOUT / "docs/architecture.md").read_text()


def short(path: Path) -> str:
    return str(path.relative_to(HOUSE.root))


def is_rules(path: Path) -> bool:
    return path.name == "rules.py" or path.name.endswith("_rules.py")


@pytest.mark.parametrize("path", HOUSE.files, ids=short)
def test_only_runners_and_plugins_know_ansible(path):
    runner = path.name == "runner.py"
    assert runner or not {name for name in imported(path) if name.endswith((".AnsibleModule", ".ActionBase"))}
    assert not {name for name in imported(path) if name.startswith(("ansible.plugins", "ansible.utils"))}


def test_every_file_is_in_a_package_that_says_what_it_is_for():
    assert not list(HOUSE.root.glob("*.py"))
    for package in {path.parent for path in HOUSE.files}:
        assert ast.get_docstring(ast.parse((package / "__init__.py").read_text())), package.name


@pytest.mark.parametrize("path", [path for path in HOUSE.files if is_rules(path)], ids=short)
def test_rules_are_pure(path):
    assert " -> ".join(HOUSE.why_impure(path)) == ""


@pytest.mark.parametrize("path", [path for path in HOUSE.files if not is_rules(path)], ids=short)
def test_pure_files_are_called_rules(path):
    # The words of the API are no rules: names, paths, errors. All files that the agent shares are pure.
    assert path.parent.name in {"_api", "_shared"} or HOUSE.why_impure(path)


def test_packages_import_each_other_in_one_direction():
    assert HOUSE.cycle() == []


def test_the_architecture_lists_packages_after_those_that_they_import():
    listed = re.findall(r"^\| `(_\w+)` \|", ARCHITECTURE, re.MULTILINE)
    assert sorted(listed) == sorted({path.parent.name for path in HOUSE.files})
    for path in HOUSE.files:
        used = {name.split(".")[2] for name in imported(path) if name.startswith(".._")}
        assert {package for package in used if listed.index(package) > listed.index(path.parent.name)} == set(), path


# Where the files are that docs/architecture.md names.
FOLDERS = ("", "plugins/module_utils", "playbooks", "roles/node_agent/files", "roles/rolling_reboot", "roles/failover")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w/]+/[\w/]+\.(?:py|yml))`", ARCHITECTURE))))
def test_the_files_that_the_architecture_names_exist(name):
    parts = name.replace("NAME", "cordon")
    assert any((CHECKOUT / folder / parts).exists() for folder in FOLDERS)


class TestHouse:
    """The check itself, on a small folder of packages."""

    @pytest.fixture
    def house(self, tmp_path):
        def build(**files):
            texts = {
                "_api.client": "import kubernetes\n",
                "_holds.leases": "from .._api.client import Client\n",
                **files,
            }
            for name, text in texts.items():
                path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
                (path.parent / "__init__.py").touch()
            return House(tmp_path, "root.utils")

        return build

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("import json\n", []),
            ("from .leases import take\n", ["_holds/leases.py", "_api/client.py", "imports kubernetes"]),
            ("from . import leases\n", ["_holds/leases.py", "_api/client.py", "imports kubernetes"]),
            ("from .._api import client\n", ["_api/client.py", "imports kubernetes"]),
            ("def f():\n    from root.utils._api.client import g\n", ["_api/client.py", "imports kubernetes"]),
            ("import time\n", ["imports time"]),
            ("from importlib import import_module\n", ["imports importlib"]),
            ("from datetime import datetime\ndatetime.now()\n", ["calls now()"]),
            ("open('/etc/hosts')\n", ["calls open()"]),
        ],
    )
    def test_says_why_a_rule_is_not_pure(self, house, text, why):
        found = house(**{"_holds.rules": text})

        assert found.why_impure(found.root / "_holds/rules.py") == ["_holds/rules.py"] * bool(why) + why

    def test_sees_a_cycle_of_packages_without_a_cycle_of_files(self, house):
        assert house().cycle() == []
        assert set(house(**{"_api.other": "from .._holds import rules\n", "_holds.rules": ""}).cycle()) == {
            "_api",
            "_holds",
        }


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
