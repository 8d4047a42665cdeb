# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure ours against others, side by side.

benchmarks/run.py [--pairs N] [CASE ...]

Each comparison is a warm-up pair and then N pairs, ours and the peer's in turn, so that a machine that is busy for a
while is so for both. build/bench/results.json has the medians, build/bench/samples.json every run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
OUTPUT = CHECKOUT / "build/bench"
sys.path[:0] = [str(CHECKOUT / folder) for folder in ("benchmarks", "tests", "tools")]

import stages  # noqa: E402
from cases import CASES, SECONDS, Rival  # noqa: E402
from measure import Took  # noqa: E402

from lab import Lab  # noqa: E402


@dataclass
class Series:
    """All pairs of one comparison."""

    rival: Rival
    floor: float
    ours: list[Took] = field(default_factory=list)
    peer: list[Took] = field(default_factory=list)

    def result(self) -> dict[str, Any]:
        ours, peer = (statistics.median(took.step for took in runs) for runs in (self.ours, self.peer))
        return {
            "case": self.rival.case,
            "ours": round(ours, 3),
            "peer": round(peer, 3),
            "peer_name": self.rival.peer_name,
            "ratio": round(ours / peer, 3),
            "unit": SECONDS,
            "floor": round(self.floor, 3),
        }

    def samples(self) -> dict[str, Any]:
        return {
            "case": self.rival.case,
            "peer_name": self.rival.peer_name,
            "ours": [asdict(took) for took in self.ours],
            "peer": [asdict(took) for took in self.peer],
        }


def measure(rival: Rival, pairs: int) -> Series:
    series = Series(rival, rival.floor())
    for number in range(-1, pairs):
        for name, run, runs in (("ours", rival.ours, series.ours), ("peer", rival.peer, series.peer)):
            rival.prepare()
            took = run()
            said = "warm-up" if number < 0 else f"pair {number + 1}"
            print(f"  {rival.case} {said} {name}: {took.step:.2f} s (process {took.process:.2f} s)", flush=True)
            if number >= 0:
                runs.append(took)
    return series


def spread(values: list[float]) -> str:
    return f"{min(values):6.2f} {statistics.median(values):6.2f} {max(values):6.2f}"


def table(measured: list[Series]) -> str:
    width = max(len(series.rival.peer_name) for series in measured)
    lines = [
        f"{'':<13} {'':<{width}}  {'min':>6} {'median':>6} {'max':>6} {'process':>8} {'floor':>6} {'ratio':>6}",
    ]
    for series in measured:
        result = series.result()
        for name, runs in (("ours", series.ours), (result["peer_name"], series.peer)):
            first = name == "ours"
            process = statistics.median(took.process for took in runs)
            lines.append(
                f"{result['case'] if first else '':<13} {name:<{width}}  {spread([took.step for took in runs])} "
                f"{process:8.2f} " + (f"{result['floor']:6.2f} {result['ratio']:6.2f}" if first else "")
            )
    return "\n".join(lines)


def run(chosen: list[str], pairs: int) -> list[Series]:
    lab = Lab.default()
    measured = []
    for name in chosen:
        print(f"== {name}", flush=True)
        with CASES[name](lab) as rivals:
            measured += [measure(rival, pairs) for rival in rivals]
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure ours against others.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all by default")
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    lab = stages.Lab()
    try:
        with stages.signals():
            if status := lab.up():
                return status
            measured = run(options.cases or list(CASES), options.pairs)
    except stages.Interrupted as interrupted:
        return 128 + int(interrupted.args[0])
    finally:
        lab.down()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for file, content in (
        ("results.json", [series.result() for series in measured]),
        ("samples.json", [series.samples() for series in measured]),
    ):
        (OUTPUT / file).write_text(json.dumps(content, indent=1) + "\n")
    print(f"\nSeconds. Ours is the step in a running play; see benchmarks/cases.py.\n{table(measured)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
