# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Try each mutant in a fork of one pytest that has collected the tests."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import pytest

AT_ONCE = 2
# CPU time counts: on a busy machine, a mutant that waits for its turn does not hang.
LEAST_CPU_SECONDS = 5
TIMES_AS_LONG = 10
# A mutant that only sleeps uses no CPU time: it ends after so many times the seconds of CPU time that it may use.
TIMES_BY_THE_CLOCK = 5
NOT_RUN = (
    # It tries every minute of weeks, and takes longer than all others together.
    "tests/unit/reboot/test_window_rules.py::test_agrees_with_the_oracle",
    # It refuses the imports that mutmut adds to a file.
    "tests/unit/shared/test_hold_rules.py::test_a_node_can_run_each_file",
)


def noticed(items: Sequence[pytest.Item]) -> bool:
    """Whether one of the tests fails."""
    from _pytest.runner import runtestprotocol

    return any(report.failed for item in items for report in runtestprotocol(item, log=False, nextitem=None))


class Trials:
    """A pytest plugin that runs the tests once without a mutant, and then those that call a mutant's function."""

    def __init__(
        self, mutants: Collection[str], allowed: Mapping[str, Sequence[str]], report: Callable[[str, str], None]
    ) -> None:
        self._mutants = mutants
        self._allowed = allowed
        self._report = report
        self._seconds: dict[pytest.Item, float] = {}
        self._callers: dict[str, list[pytest.Item]] = defaultdict(list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        from mutmut.mutation import trampoline

        self._learn(session.items, trampoline)
        self._check_green(session.items, trampoline)
        running: dict[int, str] = {}
        for mutant in self._mutants:
            items = self._tests_of(mutant)
            if not items:
                self._report(mutant, "no tests")
                continue
            if len(running) == AT_ONCE:
                self._wait(running)
            running[self._start(mutant, items, trampoline)] = mutant
        while running:
            self._wait(running)
        return True

    def _learn(self, items: Sequence[pytest.Item], trampoline: object) -> None:
        hits: set[str] = set()
        trampoline.record_trampoline_hit = lambda name, **_caller: hits.add(name)  # type: ignore[attr-defined]
        trampoline.set_mutant_under_test("stats")  # type: ignore[attr-defined]
        for item in items:
            hits.clear()
            started = time.process_time()
            if noticed([item]):
                raise pytest.UsageError(f"{item.nodeid} fails without a mutant.")
            self._seconds[item] = time.process_time() - started
            for name in hits:
                self._callers[name].append(item)

    def _check_green(self, items: Sequence[pytest.Item], trampoline: object) -> None:
        """A test that fails in a fork for another reason would notice every mutant."""
        _pid, status = os.waitpid(self._start("", items, trampoline), 0)
        if status:
            raise pytest.UsageError("A test that is run again in a fork fails without a mutant.")

    def _tests_of(self, mutant: str) -> list[pytest.Item]:
        module, _dot, function = mutant.partition("__mutmut_")[0].rpartition(".")
        files = {f"tests/unit/{test}" for test in self._allowed[module]}
        callers = [item for item in self._callers[f"{module}.{function}"] if item.nodeid.split("::")[0] in files]
        return sorted(callers, key=self._seconds.__getitem__)

    def _start(self, mutant: str, items: Sequence[pytest.Item], trampoline: object) -> int:
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            limit = LEAST_CPU_SECONDS + int(TIMES_AS_LONG * sum(self._seconds[item] for item in items))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            signal.alarm(TIMES_BY_THE_CLOCK * limit)
            trampoline.set_mutant_under_test(mutant)  # type: ignore[attr-defined]
            status = int(noticed(items))
        finally:
            # pytest must not end a second time.
            os._exit(status)

    def _wait(self, running: dict[int, str]) -> None:
        pid, status = os.wait()
        while pid not in running:
            pid, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        stopped = -code in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL)
        self._report(running.pop(pid), "timeout" if stopped else "killed" if code else "survived")


def run(
    tests: Sequence[str],
    mutants: Collection[str],
    allowed: Mapping[str, Sequence[str]],
    report: Callable[[str, str], None],
) -> int:
    """Report each mutant's result, and return pytest's status. ``allowed`` has the tests of each module."""
    without = [f"--deselect={test}" for test in NOT_RUN]
    return int(pytest.main(["-q", *without, *tests], plugins=[Trials(mutants, allowed, report)]))
