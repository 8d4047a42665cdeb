# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples in README and guides parse, and name only playbooks, modules, rulebooks and variables that exist."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from ansible.parsing.splitter import parse_kv

CHECKOUT = Path(__file__).resolve().parents[2]
GUIDES = [
    *CHECKOUT.glob("*.md"),
    *CHECKOUT.glob("docs/*.md"),
    *CHECKOUT.glob("roles/*/README.md"),
    CHECKOUT / "tests/lab/README.md",
]
FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
# Blocks without a language are commands, except those that begin with one of these: they are output.
OUTPUT = ("TASK [", "# systemd-inhibit")
# In these places, a name of this collection is the name of a file in the folder.
PLACES = {
    r"ansible-playbook\b.*?": "playbooks",
    r"\s-m ": "plugins/modules",
    r"--rulebook ": "extensions/eda/rulebooks",
}
SPECS = [*CHECKOUT.glob("roles/*/meta/argument_specs.yml"), CHECKOUT / "playbooks/vars/argument_specs.yml"]


class Block(NamedTuple):
    where: str
    language: str
    text: str


def blocks() -> list[Block]:
    found = []
    for path in sorted(GUIDES):
        content = path.read_text()
        for match in FENCED.finditer(content):
            line = content.count("\n", 0, match.start()) + 1
            found.append(Block(f"{path.relative_to(CHECKOUT)}:{line}", match[1], textwrap.dedent(match[2])))
    return found


def commands(block: Block) -> str:
    """The shell text of a block: all of it or, if it shows a session, what follows each prompt."""
    if "$ " not in {line[:2] for line in block.text.splitlines()}:
        return block.text
    return "".join(found + "\n" for found in re.findall(r"^\$ ((?:.*\\\n)*.*)", block.text, re.MULTILINE))


def of(language: str) -> Any:
    chosen = [block for block in blocks() if block.language == language and not block.text.startswith(OUTPUT)]
    return pytest.mark.parametrize("block", [pytest.param(block, id=block.where) for block in chosen])


def variables() -> set[str]:
    """The names of all variables of the collection, and their aliases."""
    names: set[str] = set()
    for path in SPECS:
        for spec in yaml.safe_load(path.read_text())["argument_specs"].values():
            for name, option in (spec.get("options") or {}).items():
                names |= {name, *option.get("aliases", [])}
    return names


KNOWN = variables()
OURS = re.compile(r"(?:doctor|hold|playbook|" + "|".join(path.parent.parent.name for path in SPECS[:-1]) + r")_\w+")


def assert_known(names: set[str]) -> None:
    assert {name for name in names if OURS.fullmatch(name)} <= KNOWN


@of("")
def test_commands(block):
    text = commands(block)
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    joined = text.replace("\\\n", " ")
    for place, folder in PLACES.items():
        for name in re.findall(place + r"holdfast\.kubernetes\.(\w+)", joined):
            assert list((CHECKOUT / folder).glob(f"{name}.*")), f"{folder} has no {name}"


@of("")
def test_extra_variables(block):
    for line in commands(block).replace("\\\n", " ").splitlines():
        if " -e " not in f" {line}":
            continue
        words = shlex.split(line, comments=True)
        for given in [words[at + 1] for at, word in enumerate(words) if word == "-e"]:
            if given.startswith("@"):
                continue
            values = json.loads(given) if given.startswith("{") else parse_kv(given)
            # A value with spaces needs its own quotes; Ansible ignores its other words.
            assert "_raw_params" not in values, given
            assert_known(set(values))


@of("yaml")
def test_yaml(block):
    for document in yaml.safe_load_all(block.text):
        if isinstance(document, dict):
            assert_known(set(document))


@of("json")
def test_json(block):
    json.loads(block.text)


@of("python")
def test_python(block):
    ast.parse(block.text)


def test_ansible_accepts_the_plays_and_tasks(tmp_path):
    plays: list[Any] = []
    for block in blocks():
        loaded = next(yaml.safe_load_all(block.text)) if block.language == "yaml" else None
        items = [item for item in loaded if "sources" not in item] if isinstance(loaded, list) else []
        tasks = [item for item in items if not item.keys() & {"hosts", "import_playbook"}]
        plays += [item for item in items if item not in tasks]
        plays += [{"name": block.where, "hosts": "localhost", "tasks": tasks}] if tasks else []
    assert len(plays) > 10
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(yaml.safe_dump(plays, sort_keys=False))
    program = Path(sys.executable).parent / "ansible-playbook"
    done = subprocess.run(
        [program, "--syntax-check", playbook], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tests_that_the_page_on_reliability_names_exist():
    named = re.findall(
        r"`((?:tests/[\w/]+/)?test_\w+\.py)((?:::\w+)*)`", (CHECKOUT / "docs/reliability.md").read_text()
    )
    assert len(named) > 40
    for file, parts in named:
        content = (CHECKOUT / file if "/" in file else CHECKOUT / "tests/integration" / file).read_text()
        for part in filter(None, parts.split("::")):
            assert re.search(rf"\b(def|class) {part}\b", content), f"{file}{parts}"
