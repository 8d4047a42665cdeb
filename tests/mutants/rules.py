# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let mutmut change the pure rules everywhere, and list the changes that no unit test notices.

tests/mutants/rules.py [--table] [PART OF A MODULE'S NAME ...]

mutmut makes the mutants. trials.py collects an area's tests once, and tries each mutant in a fork of that process: a
new pytest for each of thousands of mutants would take hours. A module is tried again only when its code or its tests
have changed, and continues where it was interrupted. With --table, nothing runs: the stored results are written into
the table in docs/mutants.md. A row without stored results stays as it is.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import importlib
import json
import multiprocessing
import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT / "tests"), str(CHECKOUT / "tools")]

import workingtree  # noqa: E402
from mutants import trials  # noqa: E402

WORK = CHECKOUT / "build/mutants"
RESULTS = WORK / "results"
SURVIVORS = CHECKOUT / "build/logs/mutants/survivors.diff"
PAGE = CHECKOUT / "docs/mutants.md"
SAVED_EVERY = 25
COLLECTION = "ansible_collections.holdfast.kubernetes."

# An area's modules and their tests have the same folder. These are exceptions.
TESTS = {
    "_api/node_rules.py": ["holds/test_rules.py"],
    "_budget/ledger_rules.py": ["budget/test_slots.py", "budget/test_front.py"],
    "_budget/node_operation_rules.py": [
        "budget/test_node_operation.py",
        "budget/test_lifecycle.py",
        "drain/test_cordon.py",
        "reboot/test_admit.py",
        "reboot/test_finish.py",
    ],
    "_budget/policy_rules.py": ["budget/test_slots.py", "reboot/test_check_settings.py"],
    "_budget/run_rules.py": ["budget/test_runs.py", "budget/test_claim_rules.py"],
    "_budget/standstill_rules.py": ["budget/test_slots.py"],
    "_capi/label_rules.py": ["guard/test_rules.py"],
    "_capi/rules.py": ["guard/test_rules.py"],
    "_doctor/advice_rules.py": ["doctor/test_rules.py"],
    "_doctor/snapshot_rules.py": ["doctor/test_rules.py", "status/test_rules.py"],
    "_drain/cordon_rules.py": ["drain/test_cordon.py", "drain/test_send.py"],
    "_failover/audit_rules.py": ["failover/test_rules.py"],
    "_failover/facts_rules.py": ["failover/test_journey_rules.py", "failover/test_ending_rules.py"],
    "_failover/rules.py": ["failover/test_steps.py", "failover/test_turn.py"],
    "_fencing/evidence_rules.py": [
        "fencing/test_check_evidence.py",
        "failover/test_power.py",
        "failover/test_taint.py",
    ],
    "_fencing/still_down_rules.py": ["fencing/test_annotation.py", "failover/test_rules.py"],
    "_guard/begin_rules.py": ["guard/test_begin_and_finish.py"],
    "_guard/journey_rules.py": ["guard/test_journey.py", "guard/test_killed.py"],
    "_guard/replacement_rules.py": ["guard/test_rules.py"],
    "_guard/report_rules.py": ["guard/test_begin_and_finish.py"],
    "_guard/rules.py": ["guard/test_earlier_records.py"],
    "_nodes/health_check_rules.py": ["nodes/test_health_checks.py"],
    "_nodes/optout_rules.py": ["nodes/test_opt_outs.py", "doctor/test_rules.py"],
    "_progress/board_rules.py": ["status/test_rules.py"],
    "_reboot/end_rules.py": [
        "reboot/test_end_rules.py",
        "reboot/test_refusal_rules.py",
        "reboot/test_finish.py",
    ],
    "_reboot/operation_info_rules.py": ["reboot/test_operation_info.py"],
    "_report/chart_rules.py": ["report/test_page_rules.py"],
    "_report/content_rules.py": ["report/test_page_rules.py"],
    "_report/page_rules.py": ["report/test_page_rules.py"],
    "_report/style_rules.py": ["report/test_page_rules.py"],
    "_report/timeline_rules.py": ["report/test_timeline_rules.py"],
    "_reboot/facts_rules.py": ["reboot/test_journey_rules.py", "reboot/test_admit.py"],
    "_reboot/journey_rules.py": [
        "reboot/test_admit.py",
        "reboot/test_planned.py",
        "reboot/test_plan.py",
        "reboot/test_end_rules.py",
    ],
    "_reboot/once_rules.py": ["test_reboot_action.py"],
    "_reboot/refusal_rules.py": ["reboot/test_admit.py"],
    "_reboot/seen_rules.py": ["reboot/test_journey_rules.py", "reboot/test_admit.py"],
    "_reboot/turn_rules.py": ["reboot/test_refusal_rules.py", "reboot/test_journey_rules.py"],
    "_shared/hold_rules.py": ["holds/test_rules.py"],
    "_status/text_rules.py": ["status/test_rules.py"],
    "_shutdown/kubelet_rules.py": ["shutdown/test_kubelet_files.py"],
    "_shutdown/logind_rules.py": ["shutdown/test_logind_files.py"],
}
AGENT = {
    "condition": ["agent/test_agent_rules.py"],
    "holds": ["agent/test_agent_rules.py"],
    "plan": ["agent/test_agent_plan.py", "agent/test_agent_rules.py"],
}


class Module(NamedTuple):
    """A module of pure rules. The path is relative to the checkout, the tests to tests/unit."""

    path: Path
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}.{self.path.stem}"

    @property
    def area(self) -> str:
        return self.path.parent.name

    @property
    def imported(self) -> str:
        if self.area == "holdfast_agent":
            return self.name
        return COLLECTION + ".".join(self.path.with_suffix("").parts)

    def made_from(self, root: Path) -> str:
        files = [self.path, Path("tests/conftest.py"), *(Path("tests/unit") / test for test in self.tests)]
        return hashlib.sha256(b"".join((root / file).read_bytes() for file in files)).hexdigest()


def known() -> list[Module]:
    found = []
    unit = CHECKOUT / "tests/unit"
    utils = CHECKOUT / "plugins/module_utils"
    for path in sorted([*utils.glob("*/*rules.py"), utils / "_api/selector.py"]):
        area = path.parent.name.removeprefix("_")
        tests = [test.relative_to(unit).as_posix() for test in sorted((unit / area).glob(f"test_{path.stem}.py"))]
        tests += TESTS.get(path.relative_to(utils).as_posix(), [])
        if tests:
            found.append(Module(path.relative_to(CHECKOUT), tuple(tests)))
    agent = Path("roles/node_agent/files/holdfast_agent")
    return [*found, *(Module(agent / f"{name}.py", tuple(tests)) for name, tests in AGENT.items())]


class Results:
    """The results of a module's mutants, and the diffs of those that no test notices."""

    def __init__(self, module: Module, root: Path = CHECKOUT) -> None:
        self._path = RESULTS / f"{module.name}.json"
        self._made_from = module.made_from(root)
        self.status: dict[str, str] = {}
        self.diffs: dict[str, str] = {}
        self.complete = False
        stored = json.loads(self._path.read_text()) if self._path.exists() else {}
        if stored.get("made_from") == self._made_from:
            self.status, self.diffs, self.complete = stored["status"], stored["diffs"], stored["complete"]

    def save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        values = {"made_from": self._made_from, "status": self.status, "diffs": self.diffs, "complete": self.complete}
        self._path.write_text(json.dumps(values, indent=1))


def mutate(path: Path) -> tuple[dict[str, str], str]:
    """The mutants' names with their diffs, and the code that has them all."""
    import libcst
    from mutmut.mutation import mutators
    from mutmut.mutation.file_mutation import MutationVisitor, mutate_file_contents

    # Tests check what is refused and why, not the wording: texts, and what is raised, stay as they are.
    mutators.mutation_operators[:] = [
        (node, operator) for node, operator in mutators.mutation_operators if operator is not mutators.operator_string
    ]
    skips = MutationVisitor._skip_node_and_children
    MutationVisitor._skip_node_and_children = lambda self, node: isinstance(node, libcst.Raise) or skips(self, node)
    try:
        mutated = mutate_file_contents(str(path), path.read_text())
    finally:
        MutationVisitor._skip_node_and_children = skips
    lines = mutated.code.splitlines()
    spans = {name: lines[span.start - 1 : span.end] for name, span in mutated.line_span_by_function_name.items()}
    diffs = {}
    for name in mutated.mutant_names:
        before = spans[name.partition("__mutmut_")[0] + "__mutmut_orig"]
        diffs[name] = "\n".join(list(difflib.unified_diff(before, spans[name], n=2, lineterm=""))[2:])
    return diffs, mutated.code


def prepare() -> Path:
    """Bring the copy up to date, and load what all areas need before they fork."""
    root = workingtree.copy(WORK)
    # mutmut reads its settings from the current directory.
    (WORK / "pyproject.toml").write_text('[tool.mutmut]\nsource_paths = ["ansible_collections"]\n')
    os.chdir(WORK)
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    sys.path.insert(0, str(WORK))
    for name in ("hypothesis", "mutmut.mutation.file_mutation", "mutmut.mutation.trampoline", "pytest"):
        importlib.import_module(name)
    return root


def try_area(root: Path, modules: list[Module]) -> None:
    """Run in a process of its own: the tests import the mutated modules."""
    results, wanted = {}, {}
    for module in modules:
        results[module] = Results(module, root)
        diffs, code = mutate(root / module.path)
        (root / module.path).write_text(code)
        results[module].diffs = diffs
        for name in diffs.keys() - results[module].status.keys():
            wanted[f"{module.imported}.{name}"] = module
    os.chdir(root)
    tests = sorted({f"tests/unit/{test}" for module in modules for test in module.tests})

    def report(mutant: str, status: str) -> None:
        result = results[wanted[mutant]]
        result.status[mutant.rpartition(".")[2]] = status
        if len(result.status) % SAVED_EVERY == 0:
            result.save()

    if status := trials.run(tests, sorted(wanted), {module.imported: module.tests for module in modules}, report):
        sys.exit(status)
    for module, result in results.items():
        result.complete = True
        result.save()
        print(f"{module.name}: {dict(Counter(result.status.values()))}", flush=True)


def rows() -> dict[str, tuple[int, int, int, int]]:
    """By module: mutants, noticed, survived, no test."""
    found = {}
    for line in PAGE.read_text().splitlines():
        if row := re.fullmatch(r"\| `(\S+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| .*", line):
            found[row[1]] = (int(row[2]), int(row[3]), int(row[4]), int(row[5]))
    modules = {module.name: module for module in known()}
    for name, module in modules.items():
        results = Results(module)
        if results.complete:
            counts = Counter(results.status.values())
            noticed = counts["killed"] + counts["timeout"]
            found[name] = (counts.total(), noticed, counts["survived"], counts["no tests"])
    return {name: found[name] for name in sorted(found) if name in modules}


def table() -> str:
    lines = ["| module | mutants | noticed | survived | no test | score |", "|---|--:|--:|--:|--:|--:|"]
    counted = rows()
    total = tuple(map(sum, zip(*counted.values(), strict=True)))
    for name, counts in [*((f"`{name}`", counts) for name, counts in counted.items()), ("**all**", total)]:
        score = f"{100 * counts[1] // counts[0]} %" if counts[0] else ""
        lines.append(f"| {name} | {' | '.join(map(str, counts))} | {score} |")
    return "\n".join(lines)


def write_survivors() -> None:
    SURVIVORS.parent.mkdir(parents=True, exist_ok=True)
    with SURVIVORS.open("w") as file:
        for module in known():
            results = Results(module)
            for name, status in results.status.items():
                if status in ("survived", "no tests"):
                    file.write(f"# {module.name} {name}: {status}\n{results.diffs[name]}\n\n")


def write_table() -> None:
    before = PAGE.read_text()
    written = table()
    PAGE.write_text(re.sub(r"(?<=<!-- scores -->\n).*(?=\n<!-- end -->)", lambda _: written, before, flags=re.DOTALL))


def main() -> int:
    parser = argparse.ArgumentParser(description="Change the pure rules everywhere, and see what no test notices.")
    parser.add_argument("modules", nargs="*", help="parts of the modules' names; all of them by default")
    parser.add_argument("--table", action="store_true", help="only write the table in docs/mutants.md again")
    options = parser.parse_args()
    if options.table:
        write_table()
        return 0
    parts = options.modules or [""]
    chosen = dict.fromkeys(module for part in parts for module in known() if part in module.name)
    areas: dict[str, list[Module]] = {}
    for module in chosen:
        if not Results(module).complete:
            areas.setdefault(module.area, []).append(module)
    status = 0
    root = prepare()
    for modules in areas.values():
        process = multiprocessing.get_context("fork").Process(target=try_area, args=(root, modules))
        process.start()
        process.join()
        status |= process.exitcode or 0
        for module in modules:
            shutil.copy2(CHECKOUT / module.path, root / module.path)
    print(f"\n{table()}")
    write_survivors()
    print(f"\nSurvivors: {SURVIVORS.relative_to(CHECKOUT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
