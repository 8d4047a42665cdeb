# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the files of a folder of packages import, and why one of them is not pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# Modules without a client, a clock, a process or a file. Any other one makes a file impure.
PURE = {
    "__future__",
    "base64",
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "html",
    "ipaddress",
    "itertools",
    "json",
    "math",
    "posixpath",
    "re",
    "shlex",
    "traceback",
    "typing",
    "unicodedata",
    "urllib.parse",
    "uuid",
    "yaml",
    "zoneinfo",
}
# Calls that ask a clock, a file or chance, whatever the object.
_IMPURE_CALLS = {"input", "now", "open", "print", "today", "utcnow", "uuid1", "uuid4"}


class House:
    """A folder of packages: ``root/PACKAGE/FILE.py``, imported as ``name.PACKAGE.FILE`` or by relative imports."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self._name = root, name
        self._looks: dict[Path, tuple[set[Path], list[str]]] = {}
        self.files = sorted(path for path in root.glob("*/*.py") if path.name != "__init__.py")

    def why_impure(self, file: Path) -> list[str]:
        """The files from this one to one that is impure, and what makes it so; empty for a pure file."""
        return self._why(file, set())

    def _why(self, file: Path, seen: set[Path]) -> list[str]:
        seen.add(file)
        inner, reasons = self._look(file)
        if reasons:
            return [self._short(file), reasons[0]]
        for path in sorted(inner - seen):
            why = self._why(path, seen)
            if why:
                return [self._short(file), *why]
        return []

    def cycle(self) -> list[str]:
        """Packages that import each other in a circle; empty where none do."""
        graph: dict[str, set[str]] = {}
        for file in self.files:
            package = file.parent.name
            graph.setdefault(package, set()).update({path.parent.name for path in self._look(file)[0]} - {package})
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def _look(self, file: Path) -> tuple[set[Path], list[str]]:
        """The files of the folder that a file imports, and what in itself is impure."""
        if file not in self._looks:
            self._looks[file] = self._read(file)
        return self._looks[file]

    def _read(self, file: Path) -> tuple[set[Path], list[str]]:
        inner, reasons = set(), []
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                reasons += [f"calls {called}()"] if called in _IMPURE_CALLS else []
            for module, name in _imports(node, [self._name, file.parent.name]):
                found = self._file(module, name)
                if found is not None:
                    inner.add(found)
                elif module not in PURE:
                    reasons.append(f"imports {module}")
        return inner, reasons

    def _file(self, module: str, name: str) -> Path | None:
        """The file that ``from module import name`` reads: the module itself, or a file of the package."""
        if not f"{module}.".startswith(f"{self._name}."):
            return None
        path = self.root.joinpath(*module.removeprefix(self._name).strip(".").split("."))
        candidates = (path.with_suffix(".py"), path / f"{name}.py", path / "__init__.py")
        return next((candidate for candidate in candidates if candidate.is_file()), None)

    def _short(self, file: Path) -> str:
        return str(file.relative_to(self.root))


def _imports(node: ast.AST, package: list[str]) -> Iterator[tuple[str, str]]:
    """Module and name of what a statement imports; relative imports in full."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) + 1 - node.level] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        yield from ((module, alias.name) for alias in node.names)
