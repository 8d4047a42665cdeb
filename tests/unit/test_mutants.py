# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutants fit the code as it is. `make mutants` tries them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
from mutants import rules
from mutants.by_hand import MUTANTS
from mutants.edit import Code, EditError, Task

CHECKOUT = Path(__file__).resolve().parents[2]


@functools.cache
def known_tests(file: str) -> set[str]:
    """The tests of a file as pytest names them, without parameters."""

    def below(tree: ast.AST, prefix: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(tree):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
                yield f"{prefix}::{child.name}"
            if isinstance(child, ast.ClassDef):
                yield from below(child, f"{prefix}::{child.name}")

    return set(below(ast.parse((CHECKOUT / file).read_text()), file))


def test_names_differ():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_every_promise_has_mutants():
    assert {mutant.promise for mutant in MUTANTS} == set(range(1, 10))


def test_every_module_of_rules_has_tests_that_mutants_are_tried_on():
    modules = {module.path: module.tests for module in rules.known()}

    assert {path.relative_to(CHECKOUT) for path in CHECKOUT.glob("plugins/module_utils/*/*rules.py")} <= set(modules)
    assert all((CHECKOUT / "tests/unit" / test).is_file() for tests in modules.values() for test in tests)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
class TestMutant:
    def test_names_a_test(self, mutant):
        test = mutant.test.split("[")[0]

        assert test in known_tests(test.split("::")[0])

    def test_fits(self, mutant):
        path, text = mutant.edit.changed(CHECKOUT)

        if path.suffix == ".py":
            compile(text, str(path), "exec")


class TestCode:
    @pytest.fixture
    def root(self, tmp_path):
        (tmp_path / "plugins").mkdir()
        (tmp_path / "plugins/one.py").write_text(
            "class A:\n    def f(self, x):\n        if x > (\n            1\n        ):  # why\n            return x\n"
            "        y = x\n        return y + y\n\n\ndef g():\n    h()\n"
        )
        (tmp_path / "plugins/two.py").write_text("def g():\n    return 2\n")
        return tmp_path

    @pytest.mark.parametrize(
        ("edit", "shown"),
        [
            pytest.param(Code("A.f", "x>1", "x >= 1"), "if x >= 1:", id="expression"),
            pytest.param(Code("A.f", "y = x", "y = 3"), "y = 3", id="statement"),
            pytest.param(Code("A.f", "y = x; return y + y", "return 0"), "return x\n        return 0", id="statements"),
            pytest.param(Code("g", "h()"), "def g():\n    pass", id="nothing is left"),
            pytest.param(Code("g", "return 2", "return 3"), "return 3", id="one of two by what it contains"),
        ],
    )
    def test_changes(self, root, edit, shown):
        assert shown in edit.changed(root)[1]

    @pytest.mark.parametrize(
        ("edit", "words"),
        [
            (Code("A.g", "x", "y"), "there is no A.g"),
            (Code("f", "x", "y"), "there is no f"),
            (Code("A.f", "x < 1", "y"), "no A.f contains 'x < 1'; candidates: plugins/one.py"),
            (Code("A.f", "y", "z"), "A.f contains 'y' 2 times"),
        ],
    )
    def test_refuses_what_does_not_fit(self, root, edit, words):
        with pytest.raises(EditError) as error:
            edit.changed(root)

        assert str(error.value) == words

    def test_refuses_what_fits_twice(self, root):
        (root / "plugins/three.py").write_text("def g():\n    h()\n")

        with pytest.raises(EditError, match=r"more than one g .* candidates: plugins/one.py, plugins/three.py"):
            Code("g", "h()").changed(root)


class TestTask:
    @pytest.fixture
    def root(self, tmp_path):
        (tmp_path / "roles/r/tasks").mkdir(parents=True)
        (tmp_path / "roles/r/tasks/main.yml").write_text(
            "- name: Both\n  when: x\n  block:\n    - name: One\n      command: {cmd: a}\n"
            "  rescue:\n    - name: Twice\n- name: Twice\n"
        )
        return tmp_path

    @pytest.mark.parametrize(
        ("edit", "there", "gone"),
        [
            (Task("r", "One"), "Twice", "One"),
            (Task("r", "One", ("command", "cmd"), "b"), "cmd: b", "cmd: a"),
            (Task("r", "Both", ("when",), value=False), "when: false", "when: x"),
            (Task("r", "Both", ("when",)), "block:", "when"),
        ],
    )
    def test_changes(self, root, edit, there, gone):
        _path, text = edit.changed(root)

        assert there in text
        assert gone not in text

    @pytest.mark.parametrize(
        ("edit", "words"),
        [
            (Task("r", "None"), 'role r has no task "None"'),
            (Task("r", "Twice"), 'role r has more than one task "Twice"; candidates: roles/r/tasks/main.yml'),
            (Task("r", "One", ("shell", "cmd"), "b"), 'task "One" of role r has no shell'),
            (Task("r", "One", ("when",)), "when of task"),
        ],
    )
    def test_refuses_what_does_not_fit(self, root, edit, words):
        with pytest.raises(EditError) as error:
            edit.changed(root)

        assert words in str(error.value)
