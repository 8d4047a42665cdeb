# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples in README, guides and documentation work, links lead somewhere, and quoted messages exist."""

from __future__ import annotations

import ast
import configparser
import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible import constants
from guide_blocks import CHECKOUT, GUIDES, Block, blocks
from markdown_it import MarkdownIt
from unit import example_checks as checks

ALL = blocks()
# Sphinx reads the last one.
LANGUAGES = {"", "yaml", "json", "python", "go", "ini", "text", "{toctree}"}
MARKDOWN = MarkdownIt("commonmark").enable("table")


def of(language: str) -> Any:
    chosen = [block for block in ALL if block.language == language and not block.why]
    return pytest.mark.parametrize("block", [pytest.param(block, id=block.where) for block in chosen])


def test_every_block_has_a_language_that_is_tested_or_says_why_it_is_not():
    assert {block.where: block.language for block in ALL if block.language not in LANGUAGES} == {}
    assert [block.where for block in ALL if block.language == "go" and not block.why] == []


# --- commands


@of("")
def test_commands(block):
    done = subprocess.run(["bash", "-n"], input=block.shell, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert block.commands
    assert checks.commands(block) == []


@pytest.mark.parametrize("path", sorted(CHECKOUT.glob("playbooks/*.yml")), ids=lambda path: path.stem)
def test_the_command_in_the_header_of_a_playbook(path):
    for line in re.findall(r"^# (ansible-playbook [^;.\n]*(?:\.[^;.\s][^;.\n]*)*)", path.read_text(), re.MULTILINE):
        assert checks.commands(Block(str(path), "", line, "")) == []


def test_the_guides_name_only_what_the_collection_has():
    known = {"all"}
    for pattern in ("playbooks/*.yml", "roles/*", "plugins/*/*.py", "plugins/filter/*.yml", "plugins/test/*.yml"):
        known |= {path.stem for path in CHECKOUT.glob(pattern)}
    known |= {path.stem for path in CHECKOUT.glob("extensions/eda/**/*.*")}
    for path in GUIDES:
        named = set(re.findall(r"(?<![\w/.-])holdfast\.kubernetes\.(\w+)", path.read_text()))
        assert named - known == set(), path


# --- data


@of("yaml")
def test_yaml(block):
    for loaded in yaml.safe_load_all(block.text):
        assert checks.document(loaded) == []


@pytest.mark.parametrize(
    "path",
    [
        *sorted(CHECKOUT.glob("plugins/modules/*.py")),
        *sorted(CHECKOUT.glob("plugins/inventory/*.py")),
        *sorted(CHECKOUT.glob("plugins/filter/*.yml")),
    ],
    ids=lambda path: path.stem,
)
def test_the_examples_in_the_documentation_of_plugins(path):
    in_yaml = path.suffix == ".yml"
    text = yaml.safe_load(path.read_text())["EXAMPLES"] if in_yaml else checks.constant(path, "EXAMPLES")
    for loaded in yaml.safe_load_all(text):
        assert checks.document(loaded) == []


@pytest.mark.parametrize("path", sorted(CHECKOUT.glob("docs/*.yml")), ids=lambda path: path.stem)
def test_the_manifests_beside_the_guides(path):
    for loaded in yaml.safe_load_all(path.read_text()):
        assert "apiVersion" not in loaded or checks.document(loaded) == []


@of("json")
def test_json(block):
    json.loads(block.text)


@of("python")
def test_python(block):
    ast.parse(block.text)


@of("ini")
def test_settings_of_ansible(block):
    parser = configparser.ConfigParser()
    parser.read_string(block.text)
    known = {
        (entry["section"], entry["key"])
        for setting in constants.config.get_configuration_definitions().values()
        for entry in setting.get("ini", [])
    }
    assert {(section, key) for section in parser.sections() for key in parser[section]} <= known


def test_ansible_accepts_the_plays_and_tasks(tmp_path):
    plays: list[Any] = []
    for block in ALL:
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


# --- the checks themselves


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("ansible-playbook holdfast.kubernetes.reboot_all", "there is no playbook"),
        ("ansible-playbook holdfast.kubernetes.doctor -e hold_node=a", "no variable hold_node"),
        ("ansible-playbook holdfast.kubernetes.doctor -e doctor_groups=a", "no variable doctor_groups"),
        ("ansible-playbook holdfast.kubernetes.rolling_reboot -e rolling_reboot_force=maybe", "true or false"),
        ("ansible-playbook holdfast.kubernetes.rolling_reboot -e rolling_reboot_when=never", "has to be one of"),
        ("ansible-playbook holdfast.kubernetes.rolling_reboot -e rolling_reboot_operation=a b", "unrecognized"),
        ("ansible-playbook holdfast.kubernetes.status --chek", "unrecognized arguments: --chek"),
        ("ansible-playbook holdfast.kubernetes.status -e @x.yml", "does not show x.yml"),
        ("ansible localhost -m holdfast.kubernetes.cordon -a 'node=worker-1'", "node. Supported parameters"),
        ("echo $(ansible localhost -m holdfast.kubernetes.hold_info)", "no module"),
        ("true && kubectl apply --filename docs/no.yml", "unknown program true"),
        ("kubectl apply --filename docs/no.yml", "there is no docs/no.yml"),
        ("make tests", "the Makefile has no tests"),
        ("make lab NODE=3", "the Makefile has no NODE"),
        ("pip install 'ansible-core=2.19'", "ansible-core=2.19"),
    ],
)
def test_a_wrong_command_is_found(line, problem):
    assert problem in " ".join(checks.commands(Block("README.md:1", "", line, "")))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[{holdfast.kubernetes.drain: {name: a, timout: 5}}]", "timout"),
        ("[{holdfast.kubernetes.drain: {name: a, timeout: soon}}]", "timeout"),
        ("[{holdfast.kubernetes.cordon: {name: a, state: closed}}]", "state"),
        ("[{holdfast.kubernetes.cordon: {state: cordoned}}]", "missing required arguments: name"),
        ("[{block: [{ansible.builtin.uri: {adress: a}}]}]", "adress"),
        ("[{hosts: all, roles: [{role: holdfast.kubernetes.rolling}]}]", "no role"),
        ("[{hosts: all, tasks: [{debug: {}}]}]", "full name"),
        ("{plugin: holdfast.kubernetes.nodes, selectr: a}", "selectr"),
        ("{rolling_reboot_maximum: 1}", "unknown variable rolling_reboot_maximum"),
        ("{rolling_reboot_block_alerts: {adress: a}}", "rolling_reboot_block_alerts"),
        ("{workers: {vars: {failover_fence: sledgehammer}}}", "failover_fence"),
        ("{surprise: 1}", "unknown kind of YAML"),
        ("{apiVersion: v1, kind: Role, metadata: {name: a}, rules: [{resources: [pods], verbs: [read]}]}", "read"),
    ],
)
def test_wrong_yaml_is_found(text, problem):
    assert problem in " ".join(checks.document(yaml.safe_load(text)))


def test_a_reason_is_read(tmp_path):
    path = CHECKOUT / "docs/holds.md"
    assert [block.language for block in blocks(path) if block.why] == ["go"]


# --- links


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = unicodedata.normalize("NFC", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    tokens = MARKDOWN.parse(path.read_text())
    found = set(re.findall(r'<a id="([^"]+)"', path.read_text()))
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            found.add(slug("".join(part.content for part in tokens[at + 1].children or [])))
    return found


def links(path: Path) -> Iterator[str]:
    for token in MARKDOWN.parse(path.read_text()):
        for part in token.children or []:
            if part.type in ("link_open", "image"):
                yield str(part.attrGet("href") or part.attrGet("src"))


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_links(path):
    # The copy of the first page of the site is in the root.
    folder = CHECKOUT if path.name == "index.md" else path.parent
    for link in links(path):
        if "://" in link:
            assert re.fullmatch(r"https://[\w.-]+\.\w+(:\d+)?(/[\w./#%?=&+~-]*)?", link), link
            continue
        name, _hash, anchor = link.partition("#")
        target = (folder / name).resolve() if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_guide_is_in_the_table_of_contents_of_the_site_and_of_the_readme():
    site, readme = (CHECKOUT / "tools/docsite/index.md").read_text(), set(links(CHECKOUT / "README.md"))
    for path in sorted((CHECKOUT / "docs").glob("*.md")):
        assert re.search(rf"^docs/{path.stem}$", site, re.MULTILINE), path.name
        # The guide to tests is for contributors.
        assert path.stem in ("testing", "mutants", "reliability") or f"docs/{path.name}" in readme, path.name


# --- messages

PIECE = "…"


def messages() -> list[str]:
    """All texts in the code, with … for what is filled in."""
    found = []
    for folder in ("plugins", "roles", "extensions/eda"):
        for path in (CHECKOUT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    parts = [str(part.value) if isinstance(part, ast.Constant) else PIECE for part in node.values]
                    found.append("".join(parts))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    for folder in ("roles", "playbooks"):
        for path in (CHECKOUT / folder).rglob("*.yml"):
            # A text with {{ }} in it, and one that an expression joins with ~.
            text = re.sub(r"\s+", " ", path.read_text())
            joined = re.sub(r"' ~ [^']*? ~ '", PIECE, text.replace("' ~ ~ '", "").replace("' ~ '", ""))
            found += [re.sub(r"\{\{.*?\}\}", PIECE, text), joined]
    return found


def test_the_messages_that_the_faq_quotes_exist():
    known = messages()
    quoted = [
        line
        for block in blocks(CHECKOUT / "docs/faq.md")
        if block.language == "text"
        for line in block.text.splitlines()
    ]
    assert len(quoted) > 30
    for line in quoted:
        pieces = [re.escape(piece) for piece in line.strip(f"{PIECE} ").split(PIECE)]
        wanted = re.compile(f"{PIECE}.*?".join(pieces)) if len(pieces) > 1 else re.compile(pieces[0])
        assert any(wanted.search(text) for text in known), line


def test_the_tests_that_the_page_on_reliability_names_exist():
    named = re.findall(
        r"`((?:tests/[\w/]+/)?test_\w+\.py)((?:::\w+)*)`", (CHECKOUT / "docs/reliability.md").read_text()
    )
    assert len(named) > 40
    for file, parts in named:
        content = (CHECKOUT / file if "/" in file else CHECKOUT / "tests/integration" / file).read_text()
        for part in filter(None, parts.split("::")):
            assert re.search(rf"\b(def|class) {part}\b", content), f"{file}{parts}"
