# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report says in addition to the result: whether a reboot is still required, and one line for people."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import end_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.journey_rules import NOTIFICATION, user_files
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.plan_rules import (
    EXCLUDED,
    NOT_NEEDED,
    NOT_REQUIRED,
    done_words,
)


@pytest.mark.parametrize(
    ("entry", "needed", "expected"),
    [
        ({"result": "rebooted"}, "a kernel", False),
        ({"result": "failed", "boot_id_before": "1", "boot_id_after": "1"}, "a kernel", True),
        ({"result": "failed", "boot_id_before": "1", "boot_id_after": "2"}, "a kernel", False),
        ({"result": "failed", "boot_id_before": None, "boot_id_after": "2"}, "a kernel", True),
        ({"result": "failed", "boot_id_before": "1", "boot_id_after": None}, "a kernel", True),
        ({"result": "failed"}, "", None),
        ({"result": "postponed"}, "a kernel", True),
        ({"result": "skipped", "detail": NOT_REQUIRED}, "", False),
        ({"result": "skipped", "detail": EXCLUDED}, "", None),
        ({"result": "skipped", "detail": done_words("kernel")}, "", None),
        ({"result": "planned", "verdict": NOT_NEEDED, "detail": done_words("kernel")}, "", None),
        ({"result": "planned", "verdict": NOT_NEEDED, "detail": done_words("kernel")}, "a kernel", True),
        ({"result": "planned", "verdict": "later"}, "a kernel", True),
        ({"result": "planned", "verdict": "never"}, "", None),
        ({"result": "planned", "verdict": NOT_NEEDED}, "", False),
    ],
)
def test_whether_a_reboot_is_still_required(entry, needed, expected):
    assert end_rules.required_of({"detail": "", **entry}, needed) is expected


@pytest.mark.parametrize(
    ("results", "silent", "expected"),
    [
        ({}, [], "Rolling reboot kernel: nothing to do"),
        ({"a": "rebooted", "b": "rebooted"}, [], "Rolling reboot kernel: 2 rebooted"),
        (
            {"a": "rebooted", "b": "failed", "c": "stopped"},
            ["d"],
            "Rolling reboot kernel: 1 rebooted, 1 stopped, 1 failed, 1 not reported (b, c, d)",
        ),
    ],
)
def test_one_line_about_a_run(results, silent, expected):
    nodes = [{"name": name, "result": result} for name, result in results.items()]
    summary = end_rules.summary_of(nodes, silent, operation="kernel", check_mode=False)

    assert end_rules.headline_of(summary) == expected


class TestUserFiles:
    """The files that the role includes at the user's steps."""

    def test_none(self):
        assert user_files({"notify_phases": ["cordon"], "notify": "", "check_tasks": ""}) == {}

    def test_of_the_user(self):
        assert user_files({"check_tasks": "/srv/check.yml"}) == {"check": ["/srv/check.yml"]}

    def test_a_notification_comes_first(self):
        phases = ["cordon", "drain", "reboot", "ready", "end", "report"]
        found = user_files({"notify": "x.yml", "notify_phases": phases, "after_tasks": "/srv/after.yml"})

        steps = ["before_cordon", "before_drain", "before_reboot", "before_ready"]
        assert found == {**{step: [NOTIFICATION] for step in steps}, "after": [NOTIFICATION, "/srv/after.yml"]}

    def test_only_of_the_chosen_phases(self):
        assert user_files({"notify": "x.yml", "notify_phases": ["end", "report"]}) == {"after": [NOTIFICATION]}
