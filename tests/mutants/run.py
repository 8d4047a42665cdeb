# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Break one rule at a time, and see that the test which guards it turns red.

tests/mutants/run.py [PART OF A NAME ...]

Each patch in this directory begins with lines that say what it is about:

    # test: tests/unit/test_budget.py::test_never_over_the_budget
    # promise: 2
    # breaks: A slot is granted without looking at those that are taken.

All named tests must be green without any patch. Then each patch is put on a copy of the working tree, and its test
must fail there: not to be found, or not to be collected, is no failure. Tests against the lab find it by
HOLDFAST_LAB; it is started if need be, and then removed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
sys.path.insert(0, str(CHECKOUT / "tools"))

import stages  # noqa: E402
import workingtree  # noqa: E402

LOGS = CHECKOUT / "build/logs/mutants"
# A test that a mutant makes hang has noticed, too.
TIMEOUT = 600
PYTEST_FAILED = 1


class BadPatchError(Exception):
    """A patch that is not what it should be."""


@dataclass(frozen=True)
class Mutant:
    """A patch, and what its head says."""

    path: Path
    test: str
    promise: str
    breaks: str

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def on_the_lab(self) -> bool:
        return not self.test.startswith("tests/unit/")


def read(path: Path) -> Mutant:
    head = path.read_text().split("\ndiff ", 1)[0].split("\n--- ", 1)[0]
    said = dict(re.findall(r"^# (test|promise|breaks): *(.+?) *$", head, re.MULTILINE))
    if missing := {"test", "promise", "breaks"} - set(said):
        raise BadPatchError(f"{path.name} does not say its {', '.join(sorted(missing))}")
    if not (CHECKOUT / said["test"].split("::")[0]).is_file():
        raise BadPatchError(f"{path.name}: there is no {said['test'].split('::')[0]}")
    return Mutant(path, said["test"], said["promise"], said["breaks"])


def mutants(wanted: list[str]) -> list[Mutant]:
    paths = sorted(HERE.glob("*.patch"))
    return [read(path) for path in paths if not wanted or any(part in path.stem for part in wanted)]


class Copy:
    """A copy of the working tree, which Ansible and Python find before the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = workingtree.copy(folder, repository=True)
        self._git("add", "--all", "--force", ".")
        self.env = stages.environment(
            PYTHONPATH=os.pathsep.join([str(folder), str(self.root / "tests")]),
            ANSIBLE_COLLECTIONS_PATH=str(folder),
            # Two versions of a file within one second look the same to Python's cache.
            PYTHONDONTWRITEBYTECODE="1",
            HOLDFAST_LAB_CACHE=os.environ.get("HOLDFAST_LAB_CACHE") or str(CHECKOUT / "build/cache"),
            # The same examples each time.
            HYPOTHESIS_PROFILE="ci",
        )
        del self.env["PYTHONPYCACHEPREFIX"]
        self._check_imports()

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *arguments], cwd=self.root, check=False, capture_output=True, text=True)

    def _check_imports(self) -> None:
        program = (
            "import ansible_collections.holdfast.kubernetes.plugins.module_utils as m; print(list(m.__path__)[0]);"
            "from ansible.plugins.loader import init_plugin_loader; init_plugin_loader();"
            "import ansible_collections.holdfast.kubernetes as m; print(list(m.__path__)[0])"
        )
        found = subprocess.run(
            [sys.executable, "-c", program], cwd=self.root, env=self.env, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.split()
        if not all(Path(path).resolve().is_relative_to(self.root.resolve()) for path in found):
            raise SystemExit(f"The copy in {self.root} is not what is imported, but {found}.")

    def apply(self, mutant: Mutant) -> str:
        """What is wrong with the patch, if anything."""
        done = self._git("apply", "-C1", "--recount", "--whitespace=nowarn", str(mutant.path))
        return done.stderr.strip() if done.returncode else ""

    def restore(self) -> None:
        for command in (["checkout", "--quiet", "--", "."], ["clean", "-fdxq"]):
            done = self._git(*command)
            if done.returncode:
                raise SystemExit(done.stderr)

    def test(self, log: str, *tests: str) -> int:
        """pytest's exit status; 124 after the time-out."""
        command = [sys.executable, "-m", "pytest", "--maxfail=1", *tests]
        if not log.startswith("green"):
            command = ["timeout", "--kill-after=30", str(TIMEOUT), *command]
        return stages.run(command, LOGS / f"{log}.log", cwd=self.root, env=self.env)


def try_one(copy: Copy, mutant: Mutant) -> tuple[bool, str]:
    if complaint := copy.apply(mutant):
        copy.restore()
        return False, f"does not apply: {complaint}"
    try:
        status = copy.test(mutant.name, mutant.test)
    finally:
        copy.restore()
    if status == PYTEST_FAILED:
        return True, "red"
    if status == 124:
        return True, "red (hangs)"
    if status == 0:
        return False, "STILL GREEN"
    return False, f"pytest ended with {status}, see build/logs/mutants/{mutant.name}.log"


def green_without(copy: Copy, chosen: list[Mutant]) -> dict[str, bool]:
    """Which of the tests pass on the tree as it is."""
    tests = sorted({mutant.test for mutant in chosen})
    if copy.test("green", *tests) == 0:
        return dict.fromkeys(tests, True)
    return {test: copy.test(f"green-{number}", test) == 0 for number, test in enumerate(tests)}


def work(chosen: list[Mutant]) -> int:
    passed = failed = 0
    width = max(len(mutant.name) for mutant in chosen)
    with tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as folder:
        copy = Copy(Path(folder))
        started = time.monotonic()
        green = green_without(copy, chosen)
        print(f"{sum(green.values())} of {len(green)} tests are green as they are, {time.monotonic() - started:.1f} s")
        print(f"\n{'mutant':<{width}}  promise  seconds  result", flush=True)
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
    try:
        chosen = mutants(sys.argv[1:])
    except BadPatchError as error:
        print(f"{error}\n0 passed, 1 failed")
        return 1
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
