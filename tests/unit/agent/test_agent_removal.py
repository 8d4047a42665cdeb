# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which the role removes the agent: the controller may be paused between any two tasks."""

from __future__ import annotations

from pathlib import Path

import yaml

TASKS = Path(__file__).resolve().parents[3] / "roles/node_agent/tasks"
INCLUDE, SERVICE = "ansible.builtin.include_tasks", "ansible.builtin.systemd_service"


def looks_at_holds(task):
    return task.get(INCLUDE) == "held.yml" or any(looks_at_holds(item) for item in task.get("block", []))


def test_the_holds_are_looked_at_before_the_agent_stops_and_before_the_release():
    tasks = yaml.safe_load((TASKS / "absent.yml").read_text())
    names = [task["name"] for task in tasks]
    stop, release = names.index("Stop the agent"), names.index("Release locks, masks and holds")

    assert any(map(looks_at_holds, tasks[:stop]))
    # No hold is confirmed after the stop, so this look is the last that is needed.
    again = next(task for task in tasks[stop:release] if looks_at_holds(task))
    started, failed = again["rescue"]
    assert (started[SERVICE]["state"], started[SERVICE]["enabled"]) == ("started", True)
    assert "ansible.builtin.fail" in failed
