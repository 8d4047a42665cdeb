# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection and the node agent share: how holds are named, and that both ship the same files."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._shared.hold_rules import (
    entry_of,
    forms,
    reason_of,
    short_entry,
)

CHECKOUT = Path(__file__).resolve().parents[3]
AGENT = CHECKOUT / "roles/node_agent/files/holdfast_agent"
FILES = sorted((CHECKOUT / "plugins/module_utils/_shared").glob("[!_]*.py"))
HOLDERS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400)


def test_the_agent_has_each_file_as_a_link_and_no_other_link():
    links = {path.name: path.resolve() for path in AGENT.glob("*.py") if path.is_symlink()}

    assert links == {path.name: path.resolve() for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_node_can_run_each_file(path):
    """Nodes have Python 3.9, and nothing of Ansible."""
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    relative = {node.module for node in imports if isinstance(node, ast.ImportFrom) and node.level}
    absolute = {
        name.partition(".")[0]
        for node in imports
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module])
    }

    assert relative <= {other.stem for other in FILES}
    assert absolute - relative <= sys.stdlib_module_names


@given(st.lists(HOLDERS, max_size=40, unique=True), st.integers(0, 2000))
def test_each_hold_is_named_and_no_other(holders, room):
    entries = [entry_of("app", holder) for holder in holders]
    reason, short = reason_of(entries, room)
    named = reason.split(",") if reason else []

    assert len(named) == len(entries)
    assert all(forms(entry) & {name} for entry, name in zip(entries, named))
    assert not forms(entry_of("app", "".join(holders) + "x")) & set(named)
    assert short == len([name for name in named if "/" not in name])
    assert sum(len(name) + 1 for name in named if "/" in name) <= room


def test_two_hundred_long_holders_leave_a_short_one_its_whole_name():
    long = [entry_of(f"tenant-{number}", str(number) * 300) for number in range(200)]
    # Neither the first by name nor the first in the list.
    mine = "work/migration-0"
    reason, short = reason_of([*long, mine], 32768)

    assert reason.rsplit(",", maxsplit=1)[-1] == mine
    assert short == len([entry for entry in long if short_entry(entry) in reason])
    assert 0 < short < 200
    assert len(reason) < 40000


def test_names_that_just_fit_stay_whole():
    entries = [entry_of("app", "one"), entry_of("app", "three")]
    room = len(",".join(entries)) + 1

    assert reason_of(entries, room) == ("app/one,app/three", 0)
    assert reason_of(entries, room - 1) == (f"app/one,{short_entry(entries[1])}", 1)
