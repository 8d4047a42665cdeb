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
# The roles, and the variables that have the answer of a module.
JOURNEYS = {
    "rolling_reboot": ("turn", "rebooted", "ended"),
    "failover": ("turn",),
    "machine_guard": ("begun", "turn", "end"),
}
CONDITIONS = ("when", "failed_when", "changed_when")
MOST_VARIABLES = 10
VARIABLE = re.compile(r"(?<!\w)__[a-z]\w+")


def tasks_of(value: Any) -> Iterator[dict[str, Any]]:
    """Every task and block below a list of tasks."""
    for task in value:
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks_of(task.get(part) or [])


def condition_of(role: str) -> re.Pattern[str]:
    """A condition on the answer of a module: the steps that are left, or the step that it took."""
    answer = rf"__{role}_(?:{'|'.join(JOURNEYS[role])})"
    on_a_step = rf"(?:'\w+' in {answer}\.steps|{answer}\.step [=!]= '\w+')"
    return re.compile(rf"{on_a_step}(?: and {on_a_step})*")


def complaints(role: Path) -> list[str]:
    found, allowed = [], condition_of(role.name)
    for path in sorted(role.glob("tasks/*.yml")):
        for task in tasks_of(yaml.safe_load(path.read_text())):
            for condition in (task.get(key, False) for key in CONDITIONS):
                if condition is not False and not allowed.fullmatch(str(condition)):
                    where = f"roles/{role.name}/tasks/{path.name}: {task.get('name')}"
                    found.append(f"{where}: a condition that is not on the step of a module: {condition}")
    names = {name for path in role.rglob("*.yml") for name in VARIABLE.findall(path.read_text())}
    if len(names) > MOST_VARIABLES:
        found.append(f"roles/{role.name}: {len(names)} internal variables, at most {MOST_VARIABLES}: {sorted(names)}")
    return found


def main() -> int:
    found = [complaint for name in JOURNEYS for complaint in complaints(ROLES / name)]
    print("\n".join(found) or "No role decides anything.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
