# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role rolling_reboot shows the order of the steps, and decides nothing."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.journey_rules import ROLE_STEPS

ROLE = Path(__file__).resolve().parents[2] / "roles/rolling_reboot"


def test_the_order_of_the_tasks_is_that_of_the_rules():
    """The first task that a step is a condition of takes it."""
    _settings, block = yaml.safe_load((ROLE / "tasks/node.yml").read_text())
    conditions = [f"{task.get('when', '')} {task.get('loop', '')}" for task in block["block"]]
    named = [name for text in conditions for name in re.findall(r"'(\w+)'", text) if name in ROLE_STEPS]
    assert tuple(dict.fromkeys(named)) == ROLE_STEPS


def test_a_node_is_one_file_that_sets_no_fact():
    text = (ROLE / "tasks/node.yml").read_text()
    assert "set_fact" not in text
    assert set(re.findall(r"include_tasks: (.+)", text)) == {
        '"method_{{ __rolling_reboot_turn.method }}.yml"',
        "finish.yml",
        "node.yml",
    }
