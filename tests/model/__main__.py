# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Try many histories on the rules, on all processors.

    python -m model --histories 10000 [--seed N]

Each portion comes from one seed, which is printed with its findings: the same seed gives the same histories.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import random
import sys
import time
import traceback
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from model.machine import Machine

PORTION = 250
STEPS = 40


@dataclass
class Told:
    """The result of a portion."""

    seed: int
    histories: int = 0
    instants: int = 0
    failure: str = ""


def play(portion: tuple[int, int]) -> Told:
    """One portion, in its own process."""
    number, histories = portion
    told = Told(number)

    class Counted(Machine):
        def teardown(self) -> None:
            super().teardown()
            if hasattr(self, "fleet"):
                told.histories += 1
                told.instants += self.fleet.judge.instants

    said = io.StringIO()
    how = settings(
        max_examples=histories,
        stateful_step_count=STEPS,
        phases=[Phase.generate, Phase.shrink],
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with contextlib.redirect_stdout(said):
        try:
            run_state_machine_as_test(seed(number)(Counted), settings=how)
        except Exception:  # noqa: BLE001 - any error is a finding
            told.failure = said.getvalue() + traceback.format_exc()
    return told


def main() -> int:
    parser = argparse.ArgumentParser(prog="model", description="Try histories on the rules.")
    parser.add_argument("--histories", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    sizes = [min(PORTION, options.histories - begun) for begun in range(0, options.histories, PORTION)]
    portions = [(options.seed + number, size) for number, size in enumerate(sizes)]
    started = time.monotonic()
    histories = instants = broken = 0
    with multiprocessing.Pool(min(len(portions), os.cpu_count() or 1)) as pool:
        for told in pool.imap_unordered(play, portions):
            histories += told.histories
            instants += told.instants
            broken += bool(told.failure)
            print(f"seed {told.seed}: {told.histories} histories, {'BROKEN' if told.failure else 'ok'}", flush=True)
            if told.failure:
                print(told.failure, flush=True)
    seconds = time.monotonic() - started
    print(f"{histories} histories, {instants} instants judged, {seconds:.0f} s; promises broken: {broken}")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
