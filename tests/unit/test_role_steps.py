# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role shows the order of the steps. Which of them are left is the answer of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]


def tasks_of(value: Any) -> Iterator[dict[str, Any]]:
    """Every task and block below a list of tasks."""
    for task in value:
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks_of(task.get(part) or [])


def test_no_task_of_a_failover_waits_or_keeps_anything():
    for path in (CHECKOUT / "roles/failover/tasks").glob("*.yml"):
        assert "set_fact" not in path.read_text(), path.name
        assert not any("until" in task for task in tasks_of(yaml.safe_load(path.read_text()))), path.name


@pytest.mark.parametrize(
    ("path", "result", "task", "shown"),
    [
        ("node.yml", {"msg": "m", "stderr": "s"}, {}, "m"),
        ("node.yml", {"stderr": "s"}, {"no_log": False}, "s"),
        ("node.yml", {"msg": "secret", "_ansible_no_log": True}, {}, "hidden (no_log)"),
        ("node.yml", {"msg": "secret"}, {"no_log": True}, "hidden (no_log)"),
        ("notify.yml", {"msg": "secret"}, {"no_log": True}, "hidden (no_log)"),
    ],
)
def test_the_message_of_a_task_with_no_log_goes_nowhere(path, result, task, shown):
    """The result of a user's task becomes an option of a module, which appears in the output and in the report."""
    (rescue,) = (
        item["rescue"][0]
        for item in tasks_of(yaml.safe_load((CHECKOUT / "roles/rolling_reboot/tasks" / path).read_text()))
        if "rescue" in item
    )
    options = next(value for key, value in rescue.items() if "." in key)
    assert "ansible_failed_result }}" not in str(options)
    text = options["failed"]["msg"] if "failed" in options else options["msg"]
    found = jinja2.Template(text).render(ansible_failed_result=result, ansible_failed_task=task, holdfast_phase="end")
    assert found.endswith(shown)
