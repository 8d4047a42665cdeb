# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users get: the artefact that is built, installed where nothing else is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
TOP = {
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "COPYING",
    "FILES.json",
    "LICENSE",
    "MANIFEST.json",
    "README.md",
    "SECURITY.md",
    "changelogs",
    "docs",
    "environments",
    "extensions",
    "meta",
    "playbooks",
    "plugins",
    "roles",
}
# There is no artefact without them.
NEEDED = {
    "CHANGELOG.md",
    "LICENSE",
    "changelogs/changelog.yaml",
    "meta/ee-bindep.txt",
    "meta/ee-requirements.txt",
    "meta/execution-environment.yml",
    "meta/runtime.yml",
}
MODULES = sorted(path.stem for path in (CHECKOUT / "plugins/modules").glob("*.py"))
PLAYBOOKS = sorted(path.stem for path in (CHECKOUT / "playbooks").glob("*.yml"))
ROLES = sorted(path.parent.parent.name for path in (CHECKOUT / "roles").glob("*/meta/argument_specs.yml"))


class Installed:
    """The collection as a user has it, and Ansible's programs there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.collection = folder / "collections/ansible_collections/holdfast/kubernetes"

    def run(self, program: str, *arguments: str) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        env |= {
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.folder / "collections"),
            # Not the checkout, which the virtual environment links to.
            "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "false",
            "ANSIBLE_NOCOLOR": "1",
        }
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        done = subprocess.run(
            [str(BIN / program), *arguments], cwd=empty, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def artefact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("artefact")
    Installed(folder).run("ansible-galaxy", "collection", "build", "--output-path", str(folder), str(CHECKOUT))
    return next(folder.glob("holdfast-kubernetes-*.tar.gz"))


@pytest.fixture(scope="module")
def contents(artefact):
    with tarfile.open(artefact) as archive:
        return {member.name: member for member in archive.getmembers() if not member.isdir()}


@pytest.fixture(scope="module")
def installed(artefact, tmp_path_factory):
    installed = Installed(tmp_path_factory.mktemp("installed"))
    installed.run(
        "ansible-galaxy",
        "collection",
        "install",
        "--offline",
        "-p",
        str(installed.folder / "collections"),
        str(artefact),
    )
    return installed


def test_holds_what_users_need_and_no_more(contents):
    assert {name.split("/")[0] for name in contents} <= TOP
    assert set(contents) >= NEEDED


def test_holds_every_plugin_role_playbook_and_rulebook(contents):
    wanted = {
        str(path.relative_to(CHECKOUT))
        for folder in ("plugins", "roles", "playbooks", "extensions/eda", "meta")
        for path in (CHECKOUT / folder).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__" and not path.name.startswith(".")
    }

    assert set(contents) >= wanted


def test_holds_no_tests_caches_or_hidden_files(contents):
    unwanted = {"tests", "molecule", "fragments", "benchmarks", "build", "tools", "__pycache__", "node_modules"}

    assert not [name for name in contents if unwanted & set(name.split("/")) or "/." in f"/{name}"]


def test_the_agent_has_the_rules_of_the_collection(installed):
    """Links may become files on the way."""
    shared = installed.collection / "plugins/module_utils/_shared"
    rules = {path.name: path.read_bytes() for path in shared.glob("[!_]*.py")}
    agent = installed.collection / "roles/node_agent/files/holdfast_agent"

    assert "hold_rules.py" in rules
    assert {name: (agent / name).read_bytes() for name in rules} == rules


def test_is_small(artefact):
    assert artefact.stat().st_size < 2 * 1024 * 1024


def test_manifest(contents, artefact):
    with tarfile.open(artefact) as archive:
        manifest = json.load(archive.extractfile("MANIFEST.json"))["collection_info"]

    assert (manifest["namespace"], manifest["name"]) == ("holdfast", "kubernetes")
    assert manifest["license"] == ["GPL-3.0-or-later"]
    assert manifest["dependencies"] == {}
    assert manifest["readme"] in contents


def test_documentation_is_found_in_an_empty_folder(installed):
    documented = json.loads(
        installed.run("ansible-doc", "--json", *(f"holdfast.kubernetes.{module}" for module in MODULES))
    )

    assert set(documented) == {f"holdfast.kubernetes.{module}" for module in MODULES}
    for name, found in documented.items():
        assert found["doc"]["filename"].startswith(str(installed.collection)), name
        assert found["examples"], name


@pytest.mark.skipif(not ROLES, reason="no roles yet")
def test_roles_are_documented(installed):
    documented = json.loads(
        installed.run("ansible-doc", "-t", "role", "--json", *(f"holdfast.kubernetes.{role}" for role in ROLES))
    )

    assert set(documented) == {f"holdfast.kubernetes.{role}" for role in ROLES}


def test_playbooks_are_found_by_their_names(installed):
    output = installed.run(
        "ansible-playbook", "--syntax-check", "-i", "localhost,", *(f"holdfast.kubernetes.{name}" for name in PLAYBOOKS)
    )

    assert output.count("playbook: ") == len(PLAYBOOKS)
