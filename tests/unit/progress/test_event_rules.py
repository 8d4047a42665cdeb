# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the events of tasks to the board, and to the lines of a log."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import event_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress.board_rules import Row
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress.event_rules import View

NAMES = ("a", "b", "ns/m")
BEGIN = {
    **rules.ended("reboot_begin", {"hosts": {"host-a": "a", "host-b": "b"}}, {"operation": "kernel", "run": "4711"}),
    "host": "host-a",
}


def outcome(task, name, host="", **result):
    return {**rules.ended(task, {"name": name}, result), "host": host or f"host-{name}"}


def starts(task, name, host="", **params):
    return {**rules.begun(task, {"name": name, **params}), "host": host or f"host-{name}"}


def waits(name, phase, why=""):
    return {**rules.waits(name, phase, why), "host": f"host-{name}"}


def finished(result, name="a"):
    return outcome("reboot_finish", name, result={"name": name, "result": result})


def play(*events, view=None):
    """Return the view after the events, one second each, and the lines of its log."""
    view, lines = view or View(), []
    for at, event in zip(count(100), events):
        before, view = view, view.after({"at": at, **event})
        lines += rules.lines(before, view, at)
    return view, lines


JOURNEY = (
    BEGIN,
    starts("reboot_turn", "a"),
    waits("a", "hold", "held by apps/alice"),
    waits("a", "slot", "2 of 2 allowed are unavailable"),
    outcome("reboot_turn", "a", step="go"),
    starts("cordon", "a"),
    starts("drain", "a"),
    waits("a", "drain", "3 pods"),
    starts("reboot", "a"),
    starts("node_ready", "a"),
    starts("reboot_finish", "a"),
    outcome("reboot_finish", "a", result={"name": "a", "result": "rebooted", "detail": "required"}),
)


def test_log_has_one_line_for_each_phase_of_a_node():
    view, lines = play(*JOURNEY)

    assert lines == [
        "Rolling reboot, operation kernel, run 4711: 2 nodes",
        "a: hold: held by apps/alice",
        "a: slot: 2 of 2 allowed are unavailable",
        "a: cordon",
        "a: drain",
        "a: reboot",
        "a: ready",
        "a: uncordon",
        "a: rebooted: required (1 of 2 done, 1 left, about 7 s to go)",
    ]
    # From the slot on: the wait for it says nothing about the other nodes.
    assert view.took == (7.0,)
    assert view.rows["b"] == Row("b")


@pytest.mark.parametrize(
    ("before", "phase", "state"),
    [
        ((), "look", "waiting"),
        ((waits("a", "slot"),), "slot", "waiting"),
        ((starts("drain", "a"),), "look", "waiting"),
        ((starts("drain", "a"), outcome("drain", "a", failed=True)), "look", "waiting"),
    ],
    ids=["new", "waits", "worked", "failed"],
)
def test_node_that_asks_again_for_its_turn_keeps_its_place(before, phase, state):
    row = play(BEGIN, *before, starts("reboot_turn", "a"))[0].rows["a"]

    assert (row.phase, row.state) == (phase, state)


@pytest.mark.parametrize(
    ("task", "options", "phase"),
    [
        ("cordon", {"state": "cordoned"}, "cordon"),
        ("cordon", {"state": "uncordoned"}, "uncordon"),
        ("reboot_gate", {}, "reboot"),
        ("failover_power", {"power": "off"}, "fence"),
        ("failover_power", {"power": "on"}, "power_on"),
        ("out_of_service", {"state": "present", "wait": False}, "taint"),
        ("out_of_service", {"state": "present", "wait": True}, "move"),
        ("out_of_service", {"state": "absent", "wait": False}, "in_service"),
        ("lease_hold", {"state": "uncordoned"}, "queued"),
    ],
)
@pytest.mark.parametrize("option", ["name", "node"])
def test_phase_that_a_task_begins(task, options, phase, option):
    event = rules.begun(task, {option: "a", **options})
    row = play(BEGIN, {**event, "host": "localhost"})[0].rows["a"]

    assert (row.phase, row.state) == (phase, "working" if phase != "queued" else "queued")


@pytest.mark.parametrize("why", ["held by apps/alice", ""])
def test_node_that_is_put_off_waits_for_its_hold(why):
    row = play(BEGIN, outcome("reboot_turn", "a", step="put_off", **({"why": why} if why else {})))[0].rows["a"]

    assert row == Row("a", "waiting", "hold", 101, why)


@pytest.mark.parametrize(("task", "step"), [("reboot_turn", "wait"), ("drain", "go")])
def test_only_the_turn_of_a_node_lets_the_work_begin(task, step):
    row = play(BEGIN, waits("a", "slot"), outcome(task, "a", step=step))[0].rows["a"]

    assert (row.phase, row.state) == ("slot", "waiting")


@pytest.mark.parametrize(
    ("events", "took"),
    [
        ((starts("drain", "a"), finished("rebooted")), (1.0,)),
        ((starts("drain", "a"), {**finished("rebooted"), "at": 90}), (0.0,)),
        ((starts("drain", "a"), finished("failed")), ()),
        ((starts("drain", "a"), finished("rebooted"), finished("skipped")), (1.0,)),
        ((finished("skipped"),), ()),
        ((finished("skipped", "other"),), ()),
    ],
    ids=["done", "clock set back", "failed", "told twice", "not begun", "unknown"],
)
def test_how_long_nodes_took(events, took):
    assert play(BEGIN, *events)[0].took == took


def test_log_estimates_the_time_that_is_left():
    assert play(*JOURNEY[:-1], starts("drain", "b"), JOURNEY[-1])[1][-1].endswith("1 at work, about 7 s to go)")


def test_reason_and_start_of_a_phase_are_shown():
    view, _lines = play(*JOURNEY[:8])

    assert (view.rows["a"].phase, view.rows["a"].why, view.rows["a"].state) == ("drain", "3 pods", "working")
    # The drain began with its task, and not with its last news.
    assert view.rows["a"].since == 106


def test_whole_message_of_a_node_that_failed_is_in_the_log():
    message = "Node a was not drained: " + "pod x/y is protected; " * 200
    failed = outcome("reboot_finish", "a", result={"name": "a", "result": "failed", "detail": message})

    view, lines = play(*JOURNEY[:7], outcome("drain", "a", failed=True, msg=message), failed)

    assert message in lines[-1]
    assert view.rows["a"] == Row("a", "failed", "failed", 108, message, began=104)
    # Ansible has printed the failure of the task.
    assert sum(message in line for line in lines) == 1


def test_cleanup_after_a_failure_keeps_the_phase_that_failed():
    failed = outcome("drain", "a", failed=True, msg="no")
    view, _lines = play(*JOURNEY[:7], failed, starts("reboot_finish", "a", failed={"msg": "no"}))

    assert view.rows["a"] == Row("a", "failed", "drain", 107, "no", began=104)


@pytest.mark.parametrize("why", ["unreachable", ""])
def test_node_that_is_lost_has_failed_in_its_phase_unless_it_is_done(why):
    lost = {"kind": rules.LOST, "host": "host-a", **({"why": why} if why else {})}
    view, _lines = play(*JOURNEY[:7], lost)

    assert view.rows["a"] == Row("a", "failed", "drain", 107, why, began=104)
    done, _lines = play(*JOURNEY)
    assert play(lost, view=done)[0] == done


def test_task_of_the_user_is_shown_in_the_phase_of_its_node():
    own = {"kind": rules.OWN_TASK, "host": "host-a", "why": "Silence the alerts"}
    view, lines = play(*JOURNEY[:7], own)

    assert view.rows["a"] == Row("a", "working", "drain", 106, "your task: Silence the alerts", began=104)
    assert lines[-1] == "a: drain"


def test_task_of_the_user_is_shown_on_the_node_of_its_host_before_the_first_phase():
    own = {"kind": rules.OWN_TASK, "host": "host-b", "why": "Back up"}

    assert play(BEGIN, own)[0].rows["b"] == Row("b", why="your task: Back up")


def test_budget_keeps_its_limit_when_a_slot_is_given_back():
    taken = {**rules.budget("workers", 2, ["b", "a"]), "host": "host-a"}
    back = {**rules.given_back("workers", "a"), "host": "host-a"}

    view, _lines = play(taken, back)

    assert view.budgets["workers"].words() == "Group workers: 1 of 2 allowed unavailable: b"


def test_slot_that_was_taken_before_the_return_of_another_stays():
    taken = {**rules.budget("workers", 2, ["b", "c"]), "host": "host-c"}
    view, _lines = play(taken, {**rules.given_back("workers", "a"), "host": "host-a"})

    assert view.budgets["workers"].unavailable == ("b", "c")


def test_failover_gets_a_row_when_its_turn_comes_and_keeps_its_result():
    done = {"report": {"content": {"nodes": [{"name": "w", "result": "moved", "detail": "all moved"}]}}}
    view, lines = play(
        starts("failover_turn", "w", "localhost", direction="failover"),
        outcome("failover_turn", "w", "localhost", step="go"),
        starts("failover_power", "w", "localhost", power="off"),
        starts("out_of_service", "w", "localhost", wait=False),
        starts("out_of_service", "w", "localhost", wait=True),
        outcome("failover_turn", "w", "localhost", step="ended", **done),
        starts("failover_turn", "x", "localhost", direction="failover"),
        outcome("failover_turn", "x", "localhost", step="go", **done),
    )

    assert view.title == "Failover"
    assert view.rows["x"] == Row("x", "working", "claim", 107, began=107)
    assert [line.partition(" (")[0] for line in lines[1:]] == [
        "w: claim",
        "w: fence",
        "w: taint",
        "w: move",
        "w: moved: all moved",
        "x: claim",
    ]


def test_guard_has_a_row_for_each_machine_and_not_for_its_node():
    served = {"machine": "m", "namespace": "ns", "node": "worker-1"}
    results = [{"name": name, "namespace": "ns", "result": "released", "detail": "all done"} for name in "klm"]
    released = {"kept": {"results": results}}
    begun = (
        outcome("machine_guard_begin", "", "localhost"),
        outcome("machine_guard_step", "", "guard-1", step="tasks", file_name="backup.yml", **served),
    )
    view, lines = play(
        *begun,
        outcome("machine_guard_step", "", "guard-1", step="drain", file_name="", **served),
        starts("drain", "worker-1", "guard-1"),
        {**rules.waits("worker-1", "drain", "2 pods"), "host": "guard-1"},
        outcome("machine_guard_step", "", "guard-1", step="continue", **served),
        outcome("machine_guard_step", "", "guard-1", step="tasks", file_name="backup.yml"),
        outcome("machine_guard_step", "", "guard-1", step="done", **released),
    )

    assert play(*begun)[0].rows == {"ns/m": Row("ns/m", "working", "backup.yml", 101, began=101)}
    assert set(view.rows) == {"ns/m"}
    assert [line.partition(" (")[0] for line in lines[1:]] == [
        "ns/m: backup.yml",
        "ns/m: drain",
        "ns/m: released: all done",
    ]


def test_begin_that_fails_starts_nothing():
    for task in ("reboot_begin", "machine_guard_begin"):
        assert play(outcome(task, "", "localhost", failed=True, msg="no"))[0] == View()


@pytest.mark.parametrize(
    "event",
    [outcome("drain", "other", step="go"), outcome("failover_turn", "other", step="refuse"), starts("drain", "other")],
)
def test_task_on_a_node_that_is_not_of_the_run_adds_no_row(event):
    assert set(play(BEGIN, event)[0].rows) == {"a", "b"}


def test_event_of_a_task_that_ended_has_what_it_returned():
    begun = rules.ended("reboot_begin", {"hosts": {"host-a": "a"}}, {"operation": "kernel"})
    assert begun == {
        "kind": rules.ENDED,
        "task": "reboot_begin",
        "failed": False,
        "results": [],
        "hosts": {"host-a": "a"},
        "operation": "kernel",
        "run": "",
    }
    node = {"name": "a", "result": "rebooted", "seconds": 7}
    reported = rules.ended("reboot_report", {}, {"nodes": [node, {"name": "b", "result": ""}], "why": 7})
    assert reported == {
        "kind": rules.ENDED,
        "task": "reboot_report",
        "failed": False,
        "results": [{"name": "a", "result": "rebooted", "detail": ""}],
    }
    for more, error in (({"msg": "no"}, "no"), ({}, "unknown")):
        assert rules.ended("drain", {}, {"failed": True, **more})["error"] == error


def test_only_the_named_options_of_a_task_are_shown():
    secrets = {
        "name": "a",
        "api_key": "hunter2",
        "bmc_password": "hunter2",
        "command": "curl -u x:hunter2",
        "holder": "h",
    }

    assert "hunter2" not in str([rules.begun("failover_power", secrets), rules.ended("failover_power", secrets, {})])


TASKS = st.sampled_from(
    [
        "reboot_begin",
        "reboot_turn",
        "cordon",
        "drain",
        "reboot",
        "node_ready",
        "reboot_finish",
        "failover_turn",
        "other",
    ]
)
NAME = st.sampled_from(NAMES)
RESULTS = st.none() | st.fixed_dictionaries(
    {"name": NAME, "result": st.sampled_from(["rebooted", "failed", "skipped"]), "detail": st.text()}
)
OUTCOMES = st.fixed_dictionaries({"result": RESULTS, "step": st.sampled_from(["go", "put_off", "ended"])})
EVENTS = st.builds(
    lambda event, host: {**event, "host": host},
    st.one_of(
        st.builds(lambda task, name: rules.begun(task, {"name": name}), TASKS, NAME),
        st.builds(lambda task, name, result: rules.ended(task, {"name": name}, result), TASKS, NAME, OUTCOMES),
        st.builds(rules.waits, NAME, st.sampled_from(["hold", "drain"])),
        st.builds(lambda kind: {"kind": kind, "why": "x"}, st.sampled_from([rules.OWN_TASK, rules.LOST, "new"])),
    ),
    st.sampled_from(["host-a", "host-b", "localhost", ""]),
)


@given(st.lists(EVENTS, max_size=30))
def test_any_order_of_events_gives_a_board(events):
    view, lines = play(BEGIN, *events)

    assert {"a", "b"} <= set(view.rows)
    assert all(row.since is None or row.since >= 100 for row in view.rows.values())
    assert all(seconds >= 0 for seconds in view.took)
    assert all(lines)


@pytest.mark.parametrize("kind", [rules.OWN_TASK, rules.LOST, rules.WAITS])
def test_host_without_a_node_changes_nothing(kind):
    assert play({"kind": kind, "host": "other", "phase": "drain", "why": "x"})[0] == View()
