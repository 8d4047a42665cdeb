# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Break one rule at a time, and check that the test that guards it fails.

tests/mutants/run.py [--unit] [PART OF A NAME ...]

The mutants are in by_hand.py. All their tests must pass without them. Then each mutant is put into a copy of the
working tree, and its test must fail there. An edit that does not fit, or a test that does not exist, is a failure.

Tests against the lab find it by HOLDFAST_LAB; it is started if needed, and removed afterwards. With --unit, only those
mutants run whose test needs no lab.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT / "tests"), str(CHECKOUT / "tools")]

import stages  # noqa: E402
import workingtree  # noqa: E402
from mutants.by_hand import MUTANTS, Mutant  # noqa: E402
from mutants.edit import EditError  # noqa: E402

LOGS = CHECKOUT / "build/logs/mutants"
# Seconds. A test that hangs with a mutant has noticed it, too. All of them together take less without a mutant.
TIMEOUT = 240
PYTEST_FAILED = 1
TIMED_OUT = 124


class Copy:
    """A copy of the working tree, which Ansible and Python find before the checkout."""

    def __init__(self, folder: Path) -> None:
        self.root = workingtree.copy(folder, repository=True)
        self._env = stages.environment(
            PYTHONPATH=os.pathsep.join([str(folder), str(self.root / "tests")]),
            ANSIBLE_COLLECTIONS_PATH=str(folder),
            # Python's cache can't tell two versions of a file within one second apart.
            PYTHONDONTWRITEBYTECODE="1",
            # The same examples each time.
            HYPOTHESIS_PROFILE="ci",
        )
        del self._env["PYTHONPYCACHEPREFIX"]
        self._check_imports()

    def _check_imports(self) -> None:
        program = (
            "import ansible_collections.holdfast.kubernetes.plugins.module_utils as m; print(list(m.__path__)[0]);"
            "from ansible.plugins.loader import init_plugin_loader; init_plugin_loader();"
            "import ansible_collections.holdfast.kubernetes as m; print(list(m.__path__)[0])"
        )
        found = subprocess.run(
            [sys.executable, "-c", program], cwd=self.root, env=self._env, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.split()
        if not all(Path(path).resolve().is_relative_to(self.root.resolve()) for path in found):
            raise SystemExit(f"Python imports {found}, not the copy in {self.root}.")

    def test(self, log: str, *tests: str, limit: bool = True) -> int:
        """pytest's exit status; 124 after the timeout."""
        command = [sys.executable, "-m", "pytest", "--maxfail=1", *tests]
        if limit:
            command = ["timeout", "--kill-after=30", str(TIMEOUT), *command]
        return stages.run(command, LOGS / f"{log}.log", cwd=self.root, env=self._env)


def try_one(copy: Copy, mutant: Mutant) -> tuple[bool, str]:
    try:
        path, text = mutant.edit.changed(copy.root)
    except EditError as error:
        return False, f"does not fit: {error}"
    before = path.read_bytes()
    path.write_text(text)
    try:
        status = copy.test(mutant.name, mutant.test)
    finally:
        path.write_bytes(before)
    results = {PYTEST_FAILED: (True, "red"), TIMED_OUT: (True, "red (hangs)"), 0: (False, "STILL GREEN")}
    return results.get(status, (False, f"pytest ended with {status}, see build/logs/mutants/{mutant.name}.log"))


def green_without(copy: Copy, chosen: list[Mutant]) -> dict[str, bool]:
    """The tests that pass on the unchanged tree."""
    tests = sorted({mutant.test for mutant in chosen})
    if copy.test("green", *tests, limit=False) == 0:
        return dict.fromkeys(tests, True)
    return {test: copy.test(f"green-{number}", test, limit=False) == 0 for number, test in enumerate(tests)}


def work(chosen: list[Mutant]) -> int:
    passed = failed = 0
    width = max(len(mutant.name) for mutant in chosen)
    with tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as folder:
        copy = Copy(Path(folder))
        started = time.monotonic()
        green = green_without(copy, chosen)
        print(f"{sum(green.values())} of {len(green)} tests are green without mutants", end=", ")
        print(f"{time.monotonic() - started:.1f} s\n\n{'mutant':<{width}}  promise  seconds  result", flush=True)
        for mutant in chosen:
            started = time.monotonic()
            if green[mutant.test]:
                good, result = try_one(copy, mutant)
            else:
                good, result = False, f"{mutant.test} is red without it, see build/logs/mutants"
            passed += good
            failed += not good
            seconds = time.monotonic() - started
            print(f"{mutant.name:<{width}}  {mutant.promise:<7}  {seconds:7.1f}  {result}", flush=True)
            if not good:
                print(f"{'':<{width}}  {mutant.breaks}\n{'':<{width}}  {mutant.test}", flush=True)
    print(f"\n{passed} passed, {failed} failed")
    return int(failed > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description="Break one rule at a time, and see that a test notices.")
    parser.add_argument("names", nargs="*", help="parts of the mutants' names; all of them by default")
    parser.add_argument("--unit", action="store_true", help="only those whose test needs no lab")
    options = parser.parse_args()
    chosen = [
        mutant
        for mutant in MUTANTS
        if (not options.names or any(part in mutant.name for part in options.names))
        and not (options.unit and mutant.on_the_lab)
    ]
    if not chosen:
        print("There is no such mutant.")
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    if not any(mutant.on_the_lab for mutant in chosen):
        return work(chosen)
    lab = stages.Lab()
    try:
        with stages.signals():
            if status := lab.up():
                return status
            return work(chosen)
    except stages.Interrupted as interrupted:
        return 128 + int(interrupted.args[0])
    finally:
        lab.down()


if __name__ == "__main__":
    sys.exit(main())
