# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records that earlier versions left on Machines: each is resumed, or the doctor says what to do."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor import machine_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.snapshot_rules import Scope, Snapshot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import journey_rules, rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.journey_rules import (
    Facts,
    File,
    Settings,
    Work,
)

NOW = datetime(2026, 11, 22, 9, tzinfo=timezone.utc)
GUARD = rules.Guard("backup", "team")
FILES = {"pre-drain": (File("/srv/one.yml", "one.yml"), File("/srv/two.yml", "two.yml"))}

# As each version wrote it, while it ran the second file of the user's tasks.
FIRST = {
    "started": "2026-11-22T02:10:00Z",
    "done": {"pre-drain": ["/srv/one.yml"]},
    "failures": {},
    "facts": {},
    "phases": {"claim": 1.2, "hold": 0.4},
    "run": "ci-7/20261122T021000Z/4711/1.1",
    "holder": "ada@controller",
    "point": "pre-drain",
    "phase": "tasks",
    "since": "2026-11-22T02:11:00Z",
    "result": "",
    "detail": "",
}
WITH_THE_CLUSTER = {**FIRST, "saw_node": True}
WITH_THE_UID = {**WITH_THE_CLUSTER, "uid": "u", "done": {"pre-drain": ["one.yml"]}}
BEFORE_THE_RULES = {**WITH_THE_UID, "resumed": False}
RESUMED = {"with-the-uid": WITH_THE_UID, "before-the-rules": BEFORE_THE_RULES}
# Without the UID of the Machine, a record may belong to an earlier Machine of the same name.
STARTED_AGAIN = {"first": FIRST, "with-the-cluster": WITH_THE_CLUSTER}
PHASES = ("claim", "replacement", "hold", "tasks", "drain", "volumes", "fence", "fenced", "release")


def machine(record):
    hook = GUARD.key("pre-drain")
    return {
        "metadata": {
            "name": "m",
            "namespace": "metal",
            "uid": "u",
            "annotations": {hook: GUARD.owner, "holdfast.dev/machine-guard": json.dumps({GUARD.hook: record})},
            "deletionTimestamp": "2026-11-22T02:09:00Z",
        },
        "status": {
            "conditions": [{"type": "Deleting", "status": "True", "reason": "WaitingForPreDrainHook", "message": ""}],
            "nodeRef": {"name": "n"},
        },
    }


def found_by_doctor(record, *, alive=False):
    works = {record["run"]: alive}
    return list(
        machine_rules.examine(Snapshot({}, {}, {}, NOW, scope=Scope(), machines=[machine(record)], works=works))
    )


def taken(record):
    """The record after the next run has taken the Machine."""
    known = rules.record_of(machine(record), GUARD.hook)
    return rules.begin(known, "pre-drain", uid="u", run="new/1.1", holder="bob", now=NOW)


def next_file(record):
    """The file that the next run runs first."""
    done = {point: tuple(names) for point, names in taken(record)["done"].items()}
    work = Work("pre-drain", "n", done=done, past=("hold",), begun="tasks", claimed=True)
    step = journey_rules.next_step(Facts(Settings(files=FILES), turn=1, swept=True, work=work))
    return step.file.name if step.file else ""


@pytest.mark.parametrize("record", RESUMED.values(), ids=RESUMED)
@pytest.mark.parametrize("phase", PHASES)
def test_it_is_resumed_after_the_file_that_was_done(record, phase):
    record = {**record, "phase": phase}
    assert taken(record)["resumed"] is True
    assert taken(record)["started"] == "2026-11-22T02:10:00Z"
    assert next_file(record) == "two.yml"


@pytest.mark.parametrize("record", RESUMED.values(), ids=RESUMED)
def test_a_live_run_of_an_earlier_version_keeps_its_machine(record):
    me = rules.RunOptions("new")
    assert not rules.may_take(machine(record), GUARD, me, {record["run"]}, NOW)
    assert rules.may_take(machine(record), GUARD, me, set(), NOW)


@pytest.mark.parametrize("record", RESUMED.values(), ids=RESUMED)
def test_a_failure_is_not_tried_again_by_the_same_run(record):
    base = record["run"].rpartition("/")[0]
    failed = {**record, "result": "failed", "failures": {base: {"point": "pre-drain", "at": "2026-11-22T02:12:00Z"}}}
    assert not rules.may_take(machine(failed), GUARD, rules.RunOptions(base), set(), NOW)
    assert rules.may_take(machine(failed), GUARD, rules.RunOptions("new"), set(), NOW)


@pytest.mark.parametrize("resumed", [{}, {"resumed": False}], ids=["before", "with-resumed"])
def test_work_that_no_run_has_started(resumed):
    left = {**WITH_THE_UID, **resumed, "phase": "not_begun", "result": "failed", "done": {}}
    assert taken(left)["resumed"] is False
    assert next_file(left) == "one.yml"


@pytest.mark.parametrize("record", STARTED_AGAIN.values(), ids=STARTED_AGAIN)
def test_without_the_uid_the_work_starts_again_and_the_doctor_says_so(record):
    assert rules.is_invalid(machine(record), GUARD.hook), "the run that takes it warns"
    assert rules.may_take(machine(record), GUARD, rules.RunOptions("new"), set(), NOW)
    assert taken(record)["resumed"] is False
    assert next_file(record) == "one.yml"
    (finding,) = found_by_doctor(record)
    assert "an early version wrote it" in finding.why
    assert "it does the work from the beginning, with all tasks" in finding.todo
    assert found_by_doctor(record, alive=True)[0].todo == ""


@pytest.mark.parametrize("record", RESUMED.values(), ids=RESUMED)
def test_the_doctor_says_that_the_next_run_resumes(record):
    (finding,) = found_by_doctor(record)
    assert finding.todo.endswith("Start guard_machine again, which resumes the work.")
