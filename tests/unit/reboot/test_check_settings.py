# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of the role's variables that have the right types, and can't work."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.check_settings import problems

SPECS = yaml.safe_load(
    (Path(__file__).resolve().parents[3] / "roles/rolling_reboot/meta/argument_specs.yml").read_text()
)
DEFAULTS = {
    name.removeprefix("rolling_reboot_"): option["default"]
    for name, option in SPECS["argument_specs"]["main"]["options"].items()
    if "default" in option
}


def test_the_defaults_can_work():
    assert problems(DEFAULTS) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"when": "command"}, "rolling_reboot_when: command needs rolling_reboot_when_command"),
        ({"method": "command"}, "rolling_reboot_method: command needs rolling_reboot_command_tasks"),
        ({"hold_attempts": 0}, "rolling_reboot_hold_attempts must be 1 or more, it is 0"),
        ({"quorum_timeout": 0}, "rolling_reboot_quorum_timeout must be 1 or more, it is 0"),
        ({"soak": -1}, "rolling_reboot_soak must be 0 or more"),
        ({"window_margin": -1}, "rolling_reboot_window_margin must be 0 or more"),
        ({"pause": -1}, "pause must be 0 or more"),
        ({"pause": 600, "slot_timeout": 600}, "less than rolling_reboot_slot_timeout (600 s)"),
        ({"windows": [{"start": "25:00", "end": "03:00"}]}, "rolling_reboot_windows: windows, entry 1"),
        ({"window_time_zone": "Europe/Berln"}, 'rolling_reboot_window_time_zone: time_zone "Europe/Berln" is unknown'),
        ({"max_unavailable": "lots"}, 'max_unavailable must be a whole number or a share such as "10%", it is "lots"'),
        ({"max_domains": 1}, "max_domains need topology_key"),
        (
            {"control_plane_group": "none", "max_unavailable": "2"},
            "none needs rolling_reboot_max_unavailable 1 or 0, because",
        ),
        ({"control_plane_group": "none", "max_unavailable": "10%"}, "because control-plane nodes are rebooted one at"),
        (
            {"group": "control-plane"},
            "rolling_reboot_group and rolling_reboot_control_plane_group must differ, both are control-plane",
        ),
        ({"max_failed": -1}, "max_failed must be 0 or more"),
        ({"drain_timeout": 0}, "timeout must be positive, it is 0"),
        ({"delete_after": 600, "drain_timeout": 600}, "delete_after must be above 0 and below timeout (600)"),
        ({"delete_selector": "app=web"}, "delete_selector needs delete_after"),
        ({"grace_period": -1}, "grace_period must not be negative"),
        ({"labels": {"holdfast.dev/exclude": ""}}, "rolling_reboot_labels must not have holdfast.dev/exclude"),
        ({"annotations": {"x": []}}, "rolling_reboot_annotations must have a text as the value of x"),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
def test_what_can_not_work_is_named(wrong, said):
    (problem,) = problems({**DEFAULTS, **wrong})
    assert said in problem


def test_control_plane_nodes_may_share_a_budget_of_one_node():
    for number in (0, 1, "1", "01", " 1 "):
        assert problems({**DEFAULTS, "control_plane_group": "none", "max_unavailable": number}) == []


def test_all_problems_are_named():
    assert len(problems({**DEFAULTS, "when": "command", "soak": -1, "drain_timeout": 0})) == 3
