# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One line of the plan: now, later, never or not needed, and why."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.holdfast.kubernetes.plugins.filter.reboot_verdict import FilterModule
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.plan_rules import judge

HOLD = {
    "node": "a",
    "namespace": "db",
    "holder": "backup",
    "acquired": "2026-01-02T03:04:05Z",
    "held_seconds": 60,
    "reason": "nightly",
}


def node(**more: Any) -> dict[str, Any]:
    return {
        "name": "a",
        "excluded": False,
        "operation": None,
        "holds": [],
        "shutdown_inhibited": False,
        "inhibited_by": [],
        "drain": {"verdict": "now", "blockers": []},
        **more,
    }


def blocker(name: str, verdict: str) -> dict[str, Any]:
    return {"namespace": "db", "name": name, "verdict": verdict, "reason": f"budget of {name}"}


def verdict(of: dict[str, Any] | None, **more: Any) -> tuple[str, str]:
    options = {"needed": "kernel", "done_in": "", "override_holds": False, "drain": True, **more}
    line = judge(of, **options)
    assert set(line) == {"verdict", "why", "held", "blocked"}
    return line["verdict"], line["why"]


def test_now_says_why_the_reboot_is_needed():
    assert verdict(node()) == ("now", "kernel")


def test_a_node_that_does_not_exist_names_the_variable():
    said, why = verdict(None)
    assert said == "never"
    assert "rolling_reboot_node_name" in why


def test_an_excluded_node_is_never_rebooted_even_if_held_or_done():
    done = {"id": "op", "result": "rebooted"}
    assert verdict(node(excluded=True, holds=[HOLD], operation=done), done_in="op") == (
        "never",
        "it is labelled holdfast.dev/exclude",
    )


def test_done_in_this_operation_is_not_needed():
    done = {"id": "op", "result": "rebooted"}
    said, why = verdict(node(operation=done), done_in="op")
    assert said == "not needed"
    assert "op" in why


@pytest.mark.parametrize(
    "record",
    [
        {"id": "other", "result": "rebooted"},
        {"id": "op", "result": "failed"},
        {"id": "op", "result": ""},
        {"id": "", "result": "rebooted"},
    ],
)
def test_only_a_reboot_in_this_operation_counts_as_done(record):
    assert verdict(node(operation=record), done_in="op")[0] == "now"


def test_without_an_operation_nothing_counts_as_done():
    assert verdict(node(operation={"id": "", "result": "rebooted"}), done_in="")[0] == "now"


def test_not_needed_wins_over_held():
    assert verdict(node(holds=[HOLD]), needed="") == ("not needed", "no reboot is required")


def test_a_hold_is_waited_for_and_named():
    said, why = verdict(node(holds=[HOLD]))
    assert said == "later"
    assert "db/backup" in why
    assert "2026-01-02T03:04:05Z" in why


def test_a_condition_alone_holds_too():
    said, why = verdict(node(shutdown_inhibited=True, inhibited_by=["db/backup"]))
    assert said == "later"
    assert "db/backup" in why


def test_the_condition_of_a_known_hold_is_not_told_twice():
    _said, why = verdict(node(holds=[HOLD], shutdown_inhibited=True, inhibited_by=["db/backup"]))
    assert why.count("db/backup") == 1


POD = {"kind": "pod", "namespace": "db", "name": "migration", "reason": "it runs"}
ALERT = {"kind": "alert", "namespace": None, "name": "DiskFull", "reason": "it fires"}


def test_pods_and_alerts_are_waited_for_and_named():
    said, why = verdict(node(), blockers=[POD, ALERT])
    assert said == "later"
    assert why == "blocked by pod db/migration: it runs; blocked by alert DiskFull: it fires"


@pytest.mark.parametrize("holds", [[], [HOLD]])
@pytest.mark.parametrize("blockers", [[], [POD]])
@pytest.mark.parametrize("override", [False, True])
def test_holds_alone_can_be_overridden(holds, blockers, override):
    line = judge(node(holds=holds), needed="kernel", done_in="", override_holds=override, drain=True, blockers=blockers)
    assert line["held"] == (bool(holds) and not override)
    assert line["blocked"] == bool(blockers)
    assert (line["verdict"] == "later") == (line["held"] or line["blocked"])


def test_holds_can_be_overridden():
    assert verdict(node(holds=[HOLD], shutdown_inhibited=True), override_holds=True)[0] == "now"


@pytest.mark.parametrize("said", ["later", "never"])
def test_the_drain_s_verdict_with_the_pods_that_cause_it(said):
    blockers = [blocker("web", said), blocker("other", "later" if said == "never" else "now")]
    assert verdict(node(drain={"verdict": said, "blockers": blockers})) == (said, "db/web: budget of web")


def test_no_more_than_five_pods_are_named():
    blockers = [blocker(f"web-{number}", "never") for number in range(9)]
    _said, why = verdict(node(drain={"verdict": "never", "blockers": blockers}))
    assert why.count("db/web-") == 5


def test_a_hold_counts_before_the_drain():
    blocked = {"verdict": "never", "blockers": [blocker("web", "never")]}
    assert verdict(node(holds=[HOLD], drain=blocked))[0] == "later"


def test_deleted_pods_ask_no_budget():
    blocked = {"verdict": "never", "blockers": [blocker("web", "never")]}
    assert verdict(node(drain=blocked), drain=False)[0] == "now"


def test_the_filter_judges_the_same():
    judged = FilterModule().filters()["reboot_verdict"]
    assert judged({}, needed="kernel")["verdict"] == "never"
    assert judged(node(), needed="kernel") == {"verdict": "now", "why": "kernel", "held": False, "blocked": False}
    assert judged(node(holds=[HOLD]), needed="kernel", override_holds=True)["verdict"] == "now"
    assert judged(node(operation={"id": "op", "result": "rebooted"}), needed="kernel", operation="op")["verdict"] == (
        "not needed"
    )
