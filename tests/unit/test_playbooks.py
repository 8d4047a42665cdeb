# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the user's Ansible that must not change what the playbooks and the roles do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
PLAYBOOKS = sorted(path for path in CHECKOUT.glob("playbooks/**/*.yml") if path.parent.name != "vars")
FILES = [*PLAYBOOKS, *sorted(CHECKOUT.glob("roles/*/tasks/*.yml"))]


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(CHECKOUT)) for path in paths]


def tasks(items: Any) -> Iterator[dict[str, Any]]:
    for item in items or []:
        yield item
        for part in ("tasks", "pre_tasks", "post_tasks", "block", "rescue", "always"):
            yield from tasks(item.get(part))


@pytest.mark.parametrize("path", PLAYBOOKS, ids=names(PLAYBOOKS))
def test_a_play_over_several_hosts_names_its_strategy(path):
    """Strategies other than linear ignore run_once, and ansible.cfg or the environment can set any strategy."""
    for play in yaml.safe_load(path.read_text()):
        if "hosts" in play and play.get("connection") != "local":
            assert play.get("strategy", "").startswith("ansible.builtin."), play["name"]


@pytest.mark.parametrize("path", FILES, ids=names(FILES))
def test_no_task_on_the_controller_becomes_another_user(path):
    """With --become, such a task would need sudo on the controller. Modules of this collection ignore it.

    The keyword is not enough: an ansible_become in the inventory's variables has precedence.
    """
    for task in tasks(yaml.safe_load(path.read_text())):
        options = next(
            (value["apply"] for value in task.values() if isinstance(value, dict) and "apply" in value), task
        )
        ours = any(key.startswith("holdfast.kubernetes.") for key in task)
        if options.get("delegate_to") == "localhost" and not ours:
            assert options.get("vars", {}).get("ansible_become") is False, task["name"]
