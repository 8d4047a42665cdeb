# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let mutmut change the pure rules everywhere, and list the changes that no unit test notices.

tests/mutants/rules.py [--table] [PART OF A MODULE'S NAME ...]

mutmut.toml names the modules and the tests. mutmut works on a copy in build/mutants and stores its results there; a
change of the code or of the tests makes a new copy. With --table, nothing runs: the table in docs/mutants.md is written
from the stored results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tools"))

import workingtree  # noqa: E402

WORK = CHECKOUT / "build/mutants"
SURVIVORS = CHECKOUT / "build/logs/mutants/survivors.diff"
PAGE = CHECKOUT / "docs/mutants.md"
AT_ONCE = 2
NOTICED = ("killed", "timeout", "segfault", "caught by type check")


def prepare() -> None:
    """Bring the copy up to date, and remove results of an older one."""
    root = workingtree.copy(WORK, keep=("mutants",))
    shutil.copy(CHECKOUT / "tests/mutants/mutmut.toml", WORK / "pyproject.toml")
    # By Python's path of the module, because mutmut names its mutants by paths.
    shutil.copytree(root / "roles/node_agent/files/holdfast_agent", WORK / "holdfast_agent", dirs_exist_ok=True)
    digest = hashlib.sha256()
    for folder in ("plugins/module_utils", "roles/node_agent/files", "tests/unit", "tests/mutants/mutmut.toml"):
        path = CHECKOUT / folder
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    made_from = WORK / "made-from"
    if not made_from.exists() or made_from.read_text() != digest.hexdigest():
        shutil.rmtree(WORK / "mutants", ignore_errors=True)
        made_from.write_text(digest.hexdigest())


def run(modules: list[str]) -> None:
    # mutmut reads its settings from the directory where it is imported.
    import libcst
    from mutmut.__main__ import _run
    from mutmut.mutation import mutators
    from mutmut.mutation.file_mutation import MutationVisitor

    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    sys.dont_write_bytecode = True
    # Tests check what is refused and why, not the wording: texts, and what is raised, stay as they are.
    mutators.mutation_operators[:] = [
        (node, operator) for node, operator in mutators.mutation_operators if operator is not mutators.operator_string
    ]
    skips = MutationVisitor._skip_node_and_children
    MutationVisitor._skip_node_and_children = lambda self, node: isinstance(node, libcst.Raise) or skips(self, node)
    _run([f"*{module}*.x*" for module in modules], AT_ONCE)


def results() -> Iterator[tuple[str, str, str]]:
    """Module, mutant and its result."""
    from mutmut.stats import status_by_exit_code

    for path in sorted((WORK / "mutants").rglob("*.py.meta")):
        for name, code in json.loads(path.read_text())["exit_code_by_key"].items():
            yield f"{path.parent.name}.{path.name.removesuffix('.py.meta')}", name, status_by_exit_code[code]


def table() -> str:
    counted: dict[str, Counter[str]] = {}
    for module, _name, status in results():
        if status != "not checked":
            counted.setdefault(module, Counter())[status] += 1
    lines = ["| module | mutants | noticed | survived | no test | score |", "|---|--:|--:|--:|--:|--:|"]
    total: Counter[str] = Counter()
    for module, counts in [*sorted(counted.items()), ("**all**", total)]:
        noticed, tried = sum(counts[status] for status in NOTICED), counts.total()
        score = f"{100 * noticed / tried:.0f} %" if tried else ""
        name = module if counts is total else f"`{module}`"
        lines.append(f"| {name} | {tried} | {noticed} | {counts['survived']} | {counts['no tests']} | {score} |")
        if counts is not total:
            total.update(counts)
    return "\n".join(lines)


def write_survivors() -> None:
    from mutmut.__main__ import get_diff_for_mutant

    SURVIVORS.parent.mkdir(parents=True, exist_ok=True)
    with SURVIVORS.open("w") as file:
        for _module, name, status in results():
            if status in ("survived", "no tests"):
                file.write(f"# {name}: {status}\n{get_diff_for_mutant(name)}\n\n")


def write_table() -> None:
    before = PAGE.read_text()
    PAGE.write_text(
        re.sub(r"(?<=<!-- scores -->\n).*(?=\n<!-- end -->)", lambda _found: table(), before, flags=re.DOTALL)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Change the pure rules everywhere, and see what no test notices.")
    parser.add_argument("modules", nargs="*", help="parts of the modules' names; all of them by default")
    parser.add_argument("--table", action="store_true", help="only write the table in docs/mutants.md again")
    options = parser.parse_args()
    if not options.table:
        prepare()
    os.chdir(WORK)
    if options.table:
        write_table()
        return 0
    run(options.modules)
    print(f"\n{table()}")
    write_survivors()
    print(f"\nSurvivors: {SURVIVORS.relative_to(CHECKOUT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
