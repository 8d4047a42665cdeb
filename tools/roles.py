# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that the roles whose journey is a module decide nothing themselves."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROLES = Path(__file__).resolve().parents[1] / "roles"
JOURNEYS = ("rolling_reboot", "failover", "machine_guard")
MOST_VARIABLES = 10
# A module's answer: the steps that are left, or the step that it took.
_ON_A_STEP = r"(?:'\w+' in __\w+\.steps|__\w+\.step [=!]= '\w+')"
CONDITION = re.compile(rf"{_ON_A_STEP}(?: and {_ON_A_STEP})*")
VARIABLE = re.compile(r"(?<!\w)__[a-z]\w+")


def tasks_of(value: Any) -> Iterator[dict[str, Any]]:
    """Every task and block below a list of tasks."""
    for task in value:
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks_of(task.get(part) or [])


def complaints(role: Path) -> list[str]:
    found = []
    for path in sorted(role.glob("tasks/*.yml")):
        for task in tasks_of(yaml.safe_load(path.read_text())):
            for condition in (str(task[key]) for key in ("when", "failed_when") if key in task):
                if not CONDITION.fullmatch(condition):
                    where = f"roles/{role.name}/tasks/{path.name}: {task.get('name')}"
                    found.append(f"{where}: a condition that is not on the step of a module: {condition}")
    files = [*role.glob("tasks/*.yml"), *role.glob("vars/*.yml"), *role.glob("defaults/*.yml")]
    names = {name for path in files for name in VARIABLE.findall(path.read_text())}
    if len(names) > MOST_VARIABLES:
        found.append(f"roles/{role.name}: {len(names)} internal variables, at most {MOST_VARIABLES}: {sorted(names)}")
    return found


def main() -> int:
    found = [complaint for name in JOURNEYS for complaint in complaints(ROLES / name)]
    print("\n".join(found) or "No role decides anything.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
