# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the time of the tests goes: write tables of the last run into docs/testing.md.

tools/measure.py            write the tables into docs/testing.md
tools/measure.py --print    print the time of every test file instead

Reads build/logs/stages.json and the JUnit reports next to it, which tools/stages.py and pytest write. Uses the standard
library only.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
LOGS = CHECKOUT / "build/logs"
PAGE = CHECKOUT / "docs/testing.md"
SLOWEST = 40


@dataclass(frozen=True)
class Test:
    """One test of the last run, with its setup and its teardown."""

    stage: str
    file: str
    name: str
    seconds: float
    cpu_seconds: float


def tests() -> list[Test]:
    found = []
    for report in sorted(LOGS.glob("*.xml")):
        for case in ET.parse(report).getroot().iter("testcase"):
            cpu = next((item.get("value") for item in case.iter("property") if item.get("name") == "cpu_seconds"), "0")
            file = (case.get("classname") or "").rpartition(".")[2]
            seconds = float(case.get("time") or 0)
            found.append(Test(report.stem, file, case.get("name") or "", seconds, float(cpu or 0)))
    return found


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; numbers are right-aligned."""
    columns = list(header)
    body = [[f"{cell:,.1f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    right = [bool(body) and all(re.fullmatch(r"[\d,.]+", row[index]) for row in body) for index in range(len(columns))]
    lines = [columns, ["---:" if is_right else "---" for is_right in right], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def stages() -> str:
    run = json.loads((LOGS / "stages.json").read_text())
    rows = [
        (stage["name"], stage["passed"] + stage["failed"], float(stage["seconds"]), float(stage["cpu_seconds"]))
        for stage in run["stages"]
    ]
    return table(("stage", "tests", "seconds", "CPU seconds"), [*rows, ("all, by the clock", "", run["seconds"], "")])


def slowest(found: list[Test]) -> str:
    worst = sorted(found, key=lambda test: test.seconds, reverse=True)[:SLOWEST]
    rows = [(f"`{test.file}::{test.name}`", test.stage, test.seconds, test.cpu_seconds) for test in worst]
    return table(("test", "stage", "seconds", "CPU seconds"), rows)


def by_file(found: list[Test]) -> str:
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for test in found:
        entry = sums[test.stage, test.file]
        entry[0] += 1
        entry[1] += test.seconds
        entry[2] += test.cpu_seconds
    rows = [(stage, file, *entry) for (stage, file), entry in sorted(sums.items(), key=lambda item: -item[1][2])]
    return table(("stage", "file", "tests", "seconds", "CPU seconds"), rows)


def put(page: str, name: str, text: str) -> str:
    """Return the page with ``text`` between the markers of ``name``."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    head, found, rest = page.partition(start)
    _old, found_end, tail = rest.partition(end)
    if not (found and found_end):
        raise SystemExit(f"{PAGE.relative_to(CHECKOUT)} lacks the markers {start} and {end}")
    return f"{head}{start}\n{text}\n{end}{tail}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Tables of where the time of the last test run went.")
    parser.add_argument("--print", action="store_true", help="print the time of every test file, write nothing")
    options = parser.parse_args()
    found = tests()
    if not found:
        print("There is no report in build/logs: run `make test` first.", file=sys.stderr)
        return 1
    if options.print:
        print(by_file(found))
        return 0
    PAGE.write_text(put(put(PAGE.read_text(), "stages", stages()), "slowest", slowest(found)))
    print(f"Wrote the tables of {PAGE.relative_to(CHECKOUT)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
