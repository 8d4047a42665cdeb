# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits that name code by what it is, not by where it is.

They fit after a file was moved or formatted. They fail when they fit nowhere, or in more than one place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import yaml

_PYTHON = ("plugins", "roles", "extensions")
_BLOCKS = ("block", "rescue", "always")
_Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class EditError(Exception):
    """An edit that does not fit the code."""


@dataclass(frozen=True)
class Code:
    """Replace an expression, or whole statements, in a function, a method or a class.

    Attributes:
        symbol: Its qualified name: ``decide``, ``Drain.saw``, ``outer.inner``. If several files have a symbol of that
            name, only one of them may contain the code to replace.
        find: The code to replace. Compared as code: spaces, quotes and line breaks don't matter.
        replace: The new code; empty to remove statements.
    """

    symbol: str
    find: str
    replace: str = ""

    def changed(self, root: Path) -> tuple[Path, str]:
        """The file, and its text after the edit."""
        candidates = [(path, tree) for path, tree in self._modules(root) if any(self._definitions(tree))]
        if not candidates:
            raise EditError(f"there is no {self.symbol}")
        found = [(path, tree) for path, tree in candidates if self._apply(tree)]
        if len(found) == 1:
            path, tree = found[0]
            return path, ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        names = ", ".join(str(path.relative_to(root)) for path, _tree in found or candidates)
        count = "more than one" if found else "no"
        raise EditError(f"{count} {self.symbol} contains {self.find!r}; candidates: {names}")

    def _modules(self, root: Path) -> Iterator[tuple[Path, ast.Module]]:
        name = self.symbol.rsplit(".", 1)[-1]
        pattern = rf"\b(def|class) {name}\b"
        for folder in _PYTHON:
            for path in sorted((root / folder).rglob("*.py")):
                # It takes a second to parse all files, and a tenth of it to search them by the pattern.
                if not path.is_symlink() and name in (text := path.read_text()) and re.search(pattern, text):
                    yield path, ast.parse(text)

    def _definitions(self, tree: ast.AST, prefix: str = "") -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(tree):
            name = f"{prefix}{child.name}." if isinstance(child, _Definition) else prefix
            if name == f"{self.symbol}." and name != prefix:
                yield child
            yield from self._definitions(child, name)

    def _apply(self, tree: ast.Module) -> bool:
        edit = self._edit()
        for definition in list(self._definitions(tree)):
            edit.visit(definition)
        if edit.count > 1:
            raise EditError(f"{self.symbol} contains {self.find!r} {edit.count} times")
        return edit.count == 1

    def _edit(self) -> _Expression | _Statements:
        try:
            old, new = (ast.parse(text, mode="eval").body for text in (self.find, self.replace))
        except SyntaxError:
            return _Statements(ast.parse(self.find).body, ast.parse(self.replace).body)
        return _Expression(old, new)


class _Expression(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self._old, self._new = ast.dump(old), new
        self.count = 0

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and ast.dump(node) == self._old:
            self.count += 1
            return self._new
        return self.generic_visit(node)


class _Statements(ast.NodeTransformer):
    def __init__(self, old: list[ast.stmt], new: list[ast.stmt]) -> None:
        self._old, self._new = [ast.dump(statement) for statement in old], new
        self.count = 0

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            present = getattr(node, name, None)
            if isinstance(present, list):
                setattr(node, name, self._replaced(present) or [ast.Pass()] * bool(present))
        return node

    def _replaced(self, present: list[ast.stmt]) -> list[ast.stmt]:
        dumped, length = [ast.dump(statement) for statement in present], len(self._old)
        for start in range(len(present) - length + 1):
            if dumped[start : start + length] == self._old:
                self.count += 1
                return [*present[:start], *self._new, *self._replaced(present[start + length :])]
        return present


@dataclass(frozen=True)
class Task:
    """Remove a task of a role, or change one of its keys.

    Attributes:
        role: The role.
        name: The task's name, in any file and any block of the role; only one task may have it.
        key: The path of the key that changes, from the task down: ``("when",)``. Without one the task is removed.
        value: The key's new value; ``None`` removes it.
    """

    role: str
    name: str
    key: tuple[str, ...] = ()
    value: Any = None

    def changed(self, root: Path) -> tuple[Path, str]:
        """The file, and its text after the edit."""
        found = [
            (path, content, tasks, task)
            for path in sorted((root / "roles" / self.role / "tasks").rglob("*.yml"))
            for content in [yaml.safe_load(path.read_text())]
            for tasks, task in _tasks(content or [])
            if task.get("name") == self.name
        ]
        if len(found) != 1:
            names = ", ".join(str(path.relative_to(root)) for path, *_others in found)
            count = "more than one" if found else "no"
            raise EditError(
                f'role {self.role} has {count} task "{self.name}"' + (f"; candidates: {names}" * bool(found))
            )
        path, content, tasks, task = found[0]
        if self.key:
            self._set(task)
        else:
            tasks.remove(task)
        return path, yaml.safe_dump(content, sort_keys=False, width=10_000)

    def _set(self, task: dict[str, Any]) -> None:
        *above, last = self.key
        for key in above:
            if not isinstance(task.get(key), dict):
                raise EditError(f'task "{self.name}" of role {self.role} has no {key}')
            task = task[key]
        if task.get(last) == self.value:
            raise EditError(f'{last} of task "{self.name}" of role {self.role} is {self.value!r} already')
        if self.value is None:
            del task[last]
        else:
            task[last] = self.value


Edit = Union[Code, Task]


def _tasks(tasks: list[dict[str, Any]]) -> Iterable[tuple[list[dict[str, Any]], dict[str, Any]]]:
    for task in tasks:
        yield tasks, task
        for block in _BLOCKS:
            yield from _tasks(task.get(block) or [])
