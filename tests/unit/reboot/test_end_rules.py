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


def test_the_statistics_of_a_run():
    results = {"a": "rebooted", "b": "failed", "c": "failed", "d": "skipped"}
    nodes = [{"name": name, "result": result, "detail": f"why {name}"} for name, result in results.items()]
    summary = end_rules.summary_of(nodes, ["e"], operation="kernel", check_mode=False)
    assert summary == {
        "operation": "kernel",
        "check_mode": False,
        "rebooted": ["a"],
        "skipped": ["d"],
        "postponed": [],
        "stopped": [],
        "lost": [],
        "failed": ["b", "c"],
        "not_reported": ["e"],
    }

    stats = end_rules.stats_of(summary, nodes)

    assert (stats["rolling_reboot_operation"], stats["rolling_reboot_ended_operation"]) == ("kernel", "")
    ended = end_rules.stats_of(summary, nodes, complete=True)
    assert (ended["rolling_reboot_operation"], ended["rolling_reboot_ended_operation"]) == ("", "kernel")
    assert (stats["rolling_reboot_rebooted"], stats["rolling_reboot_failed"], stats["rolling_reboot_lost"]) == (1, 2, 0)
    assert stats["rolling_reboot_failed_nodes"] == "b,c"
    # What someone has to look at comes first.
    assert list(stats["rolling_reboot_results"]) == ["b", "c", "e", "a", "d"]
    assert stats["rolling_reboot_results"]["b"] == "failed: why b"
    assert stats["rolling_reboot_results"]["e"].startswith("not reported")


@pytest.mark.parametrize(
    ("turn", "error", "check_mode", "result"),
    [
        ({"result": {"name": "n", "result": "rebooted"}}, "", False, "rebooted"),
        ({"result": {"name": "n", "result": "rebooted"}}, "wrong", False, "rebooted"),
        ({}, "wrong", False, "stopped"),
        ({}, "wrong", True, "failed"),
        ({}, "", False, None),
        ({"result": {}}, "", False, None),
    ],
)
def test_the_entry_of_a_host(turn, error, check_mode, result):
    entry = end_rules.entry_of({"host": "n", "turn": turn, "settings_error": error}, check_mode=check_mode)
    assert (entry and (entry["name"], entry["result"])) == (result and ("n", result))
    if result in ("stopped", "failed"):
        assert entry["detail"] == "wrong"
        assert (entry["boot_id_before"], entry["boot_id_after"], entry["phases"]) == (None, None, {})


TRAFFIC = {"requests": 10, "bytes": 2600}


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({"notify": "", "notify_phases": ["report"], "report": "", "html": ""}, []),
        ({"notify": "n.yml", "notify_phases": ["drain"], "report": "", "html": ""}, []),
        ({"notify": "n.yml", "notify_phases": ["drain", "report"], "report": "", "html": ""}, ["notify"]),
        ({"notify": "", "notify_phases": ["report"], "report": "r.json", "html": ""}, ["write"]),
        ({"notify": "n.yml", "notify_phases": ["report"], "report": "", "html": "r.html"}, ["notify", "write"]),
    ],
)
def test_what_the_role_does_with_the_results(settings, steps):
    assert end_rules.report_steps(settings) == steps


def test_the_line_of_a_node():
    node = {"name": "n", "result": "rebooted", "detail": "a kernel", "api": TRAFFIC}
    pods = [
        {"namespace": "shop", "name": "kept", "removed": False},
        {"namespace": "shop", "name": "gone", "removed": True},
    ]
    assert end_rules.line_of(node) == "n: rebooted (a kernel); 10 requests, 3 kB"
    left = end_rules.line_of({**node, "api": None, "leftovers": pods})
    assert left == "n: rebooted (a kernel), pods left over from its shutdown: shop/kept"
    assert end_rules.line_of({**node, "verdict": "later", "detail": "held"}) == "Node n: later (held)"
    assert (
        end_rules.line_of({**node, "api": None, "detail": "a\nm: rebooted \x1b[2J"})
        == "n: rebooted (a m: rebooted  [2J)"
    )


def test_the_words_of_a_plan():
    nodes = [{"verdict": "now"}, {"verdict": "later"}, {"verdict": "now"}, {"result": "failed"}]
    assert end_rules.plan_words(nodes, TRAFFIC) == "4 nodes: 2 now, 1 later, 1 failed; 10 requests, 3 kB"
    assert end_rules.plan_words(nodes[:1], {}) == "1 node: 1 now"


def test_what_is_left_to_do():
    assert end_rules.left_over([], {}) == ""
    silent = end_rules.left_over(["a", "b"], {})
    assert silent.startswith("No result for a, b: ")
    assert "could not be counted" not in silent
    both = end_rules.left_over(["a"], {"b": "No answer.", "c": "No answer."})
    assert "No result for a: " in both
    assert "The failure of b, c could not be counted: No answer. When" in both
