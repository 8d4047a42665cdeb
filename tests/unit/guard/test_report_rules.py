# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a guard, and whether the run failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import report_rules as rules

BEGUN = {
    "run": "r",
    "check_mode": False,
    "settings": {"state": "present", "hook": "backup"},
    "hooks": [],
    "refused": [],
    "unknown": [],
}
LEFT = {"name": "m", "namespace": "metal", "phase": "WaitingForPreDrainHook", "waiting_for": "pre-drain", "hooks": []}


def entry(name, result, run, detail="", point="pre-drain"):
    work = f"metal/{name}/{point}"
    known = {"name": name, "namespace": "metal", "point": point, "work": work}
    return {**known, "result": result, "run": run, "detail": detail}


def worker(*results, why="deadline", refused=(), failure=""):
    return {"results": list(results), "why": why, "refused": list(refused), "failure": failure}


def test_all_is_well():
    end = rules.ended(BEGUN, [worker(entry("m", "released", "r/1.1"), why="idle")], [])
    assert rules.failures(end) == []
    assert rules.lines(end) == ["m, pre-drain: released"]
    found = rules.summary(end)
    assert (found["released"], found["failed"], found["ended"]) == (["m"], [], ["idle"])
    assert rules.stats(found)["machine_guard_released"] == 1


def test_a_later_try_succeeds():
    end = rules.ended(BEGUN, [worker(entry("m", "failed", "r/1.1", "x"), entry("m", "released", "r/1.2"))], [])
    assert end.bad == []
    assert rules.summary(end)["failed"] == []


def test_a_failure():
    end = rules.ended(BEGUN, [worker(entry("m", "failed", "r/1.1", "Back up: full"))], [])
    assert rules.failures(end) == ["Machine m at pre-drain failed: Back up: full"]
    assert rules.stats(rules.summary(end))["machine_guard_failed_machines"] == "m"


def test_work_of_a_worker_that_dropped_out_is_reported_once():
    lost = entry("m", "failed", "r/1.1", "unreachable")
    end = rules.ended(BEGUN, [worker(why="")], [lost, dict(lost)])
    assert end.results == [lost]
    assert end.why == []


@pytest.mark.parametrize(
    ("why", "check_mode", "looks"),
    [("deadline", False, True), ("idle", False, False), ("gone", False, False), ("deadline", True, False)],
)
def test_whether_machines_may_be_left(why, check_mode, looks):
    assert rules.ended({**BEGUN, "check_mode": check_mode}, [worker(why=why)], []).looks_for_left is looks


def test_a_machine_that_is_left():
    end = rules.ended(BEGUN, [worker()], [])
    end = replace(end, waiting=[{**LEFT, "why": end.unserved}])
    (why,) = rules.failures(end)
    waits = "Machine m is being deleted (WaitingForPreDrainHook), has the hook, and is not served: the run ended"
    assert why.startswith(waits)
    assert rules.lines(end) == ["m: waits, but is not served (WaitingForPreDrainHook)"]


def test_a_machine_that_is_left_when_hooks_are_removed():
    begun = {**BEGUN, "settings": {"state": "absent", "hook": "backup"}}
    assert "machine_guard_state is absent" in rules.ended(begun, [], []).unserved


def test_hooks_that_are_refused():
    odd = {"machine": "metal/odd", "detail": "not here"}
    end = rules.ended({**BEGUN, "refused": [odd]}, [worker(refused=[odd], why="idle")], [])
    assert rules.failures(end) == ["The hooks of Machine metal/odd could not be set: not here"]


def test_hooks_that_can_not_hold_are_no_failure_and_those_of_others_are():
    hook = {"name": "m", "point": "pre-drain", "detail": "past", "error": "cannot_hold"}
    end = rules.ended({**BEGUN, "hooks": [hook]}, [worker(why="idle")], [])
    assert rules.failures(end) == []
    assert rules.summary(end)["cannot_hold"] == ["m"]
    end = rules.ended({**BEGUN, "hooks": [{**hook, "error": "refused", "detail": "theirs"}]}, [worker(why="idle")], [])
    assert rules.failures(end) == ["theirs"]


def test_a_worker_that_gave_up():
    end = rules.ended(BEGUN, [worker(why="failed", failure="away"), worker(why="failed", failure="away")], [])
    assert rules.failures(end) == ["away"]


def test_a_failure_of_a_machine_is_reported_once():
    assert rules.is_reported(LEFT, [entry("m", "failed", "r/1.1")])
    assert not rules.is_reported(LEFT, [entry("n", "failed", "r/1.1")])


def test_what_is_left_when_hooks_are_removed():
    odd = {"machine": "metal/odd", "detail": "not here"}
    settings = {"state": "absent", "hook": "backup"}
    end = rules.ended({**BEGUN, "settings": settings, "refused": [odd]}, [worker(why="idle")], [])
    assert rules.failures(end) == ["The hooks of Machine metal/odd could not be removed: not here"]


def test_the_order_of_the_report():
    entries = [entry("b", "failed", "r/1.2", "x"), entry("a", "released", "r/1.1")]
    others = [{"machine": f"metal/{name}", "detail": "no"} for name in "cab"]
    end = rules.ended(BEGUN, [worker(*entries, refused=others)], [])
    assert rules.lines(end) == ["a, pre-drain: released", "b, pre-drain: failed (x)"]
    assert list(end.refused) == others


def test_it_is_not_known_what_is_left():
    assert rules.failures(replace(rules.ended(BEGUN, [worker()], []), unseen="away")) == ["away"]
