# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor says about Machines whose deletion waits for our hooks."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor import machine_rules as machines
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.report_rules import lines
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.rules import examine
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.snapshot_rules import Scope, Snapshot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import rules as guard

NOW = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
HOOK = "pre-drain.delete.hook.machine.cluster.x-k8s.io/h"
LAST = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/h"
MARK = "holdfast.dev/machine-guard"
WAITS = "2026-11-21T08:15:00Z"
EVERYTHING = Scope()


def machine(*, reason="WaitingForPreDrainHook", node="n", hooks=(HOOK,), **record):
    begun = guard.begin(None, "pre-drain", uid="u", run="r", holder="ada", now=NOW)
    return {
        "metadata": {
            "name": "m",
            "namespace": "metal",
            "uid": "u",
            "annotations": {**dict.fromkeys(hooks, "me"), MARK: json.dumps({"h": {**begun, **record}})},
            "deletionTimestamp": "2026-11-21T08:00:00Z",
        },
        "status": {
            "conditions": [{"type": "Deleting", "status": "True", "reason": reason, "message": ""}],
            "deletion": {
                "waitForPreDrainHookStartTime": WAITS,
                "waitForPreTerminateHookStartTime": "2026-11-21T08:30:00Z",
            },
            **({"nodeRef": {"name": node}} if node else {}),
        },
    }


def snapshot(*found, works=None, scope=EVERYTHING):
    return Snapshot({}, {}, {}, NOW, scope=scope, machines=found, works=works or {})


def test_work_whose_run_is_dead():
    for works in ({}, {"r": False}):
        (found,) = examine(snapshot(machine(phase="drain"), works=works))
        assert (found.kind, found.node, found.operation, found.run) == ("machine", "n", "metal/m", "r")
        assert (found.stale, found.alive, found.since) == (False, False, to_text(NOW))
        assert found.why == "Machine metal/m waits at pre-drain for hook h; its work in phase drain"
        assert "Machine metal/m waits for hook h. No run works on it. Start guard_machine again" in found.todo
        assert "stays  machine  n     r" in lines([found], [], clearing=True, check_mode=False)[1]


def test_work_in_progress():
    (found,) = examine(snapshot(machine(), works={"r": True}))
    assert (found.alive, found.todo) == (True, "")


def test_work_that_failed():
    (found,) = examine(snapshot(machine(result="failed", detail="Back up: no room")))
    assert "its work failed (Back up: no room)" in found.why
    assert "Fix the cause of the failure, and start guard_machine again" in found.todo


@pytest.mark.parametrize("result", ["released", "failed", ""])
def test_work_that_has_not_started_at_the_next_point(result):
    """The run was killed between the two points: the record is about the first."""
    waiting = machine(reason="WaitingForPreTerminateHook", hooks=(LAST,), phase="release", result=result, detail="x")
    (found,) = examine(snapshot(waiting))
    assert found.why == "Machine metal/m waits at pre-terminate for hook h; its work has not started"
    assert (found.since, found.alive) == ("2026-11-21T08:30:00Z", False)
    assert "No run works on it. Start guard_machine again" in found.todo


@pytest.mark.parametrize(
    "other",
    [
        machine(hooks=()),
        machine(reason="DrainingNode"),
        machine(reason="WaitingForPreTerminateHook"),
        machine(uid="that of one before"),
    ],
)
def test_machines_that_wait_for_others_are_not_shown(other):
    assert examine(snapshot(other)) == []


@pytest.mark.parametrize("broken", [{"phase": 7}, {"run": None}, {"uid": None}], ids=str)
def test_a_record_that_no_run_resumes(broken):
    """An early version wrote no UID."""
    (found,) = examine(snapshot(machine(**broken)))
    assert (found.kind, found.node, found.operation) == ("machine", "n", "metal/m")
    assert (found.since, found.alive, found.run) == (WAITS, False, "r" if broken != {"run": None} else "")
    assert found.why == (
        "Machine metal/m waits at pre-drain for hook h; its record is invalid: someone changed it, or an early version "
        "wrote it"
    )
    assert "Start guard_machine again: it does the work from the beginning, with all tasks." in found.todo


def test_a_record_that_is_no_record():
    changed = machine()
    changed["metadata"]["annotations"][MARK] = json.dumps({"h": "text"})
    (found,) = examine(snapshot(changed))
    assert (found.run, found.alive) == ("", False)
    assert "its record is invalid" in found.why


@pytest.mark.parametrize("name", ["bad hook!", "", "x" * 64, "\ud800", "kcp-cleanup"])
def test_a_record_for_a_hook_that_is_none_of_ours(name):
    """Others can write anything into the annotation: the rest is reported."""
    changed = machine(hooks=(HOOK, "pre-drain.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"))
    annotations = changed["metadata"]["annotations"]
    annotations[MARK] = json.dumps({name: {}, **json.loads(annotations[MARK])})
    (found,) = examine(snapshot(changed))
    assert found.why == "Machine metal/m waits at pre-drain for hook h; its work in phase claim"


def test_a_live_run_of_an_early_version():
    (found,) = examine(snapshot(machine(uid=None), works={"r": True}))
    assert (found.run, found.alive, found.todo) == ("r", True, "")


def test_only_machines_that_are_deleted_are_kept_in_memory():
    marked = machine()
    assert machines.is_marked(marked)
    for key in ("deletionTimestamp", "annotations"):
        metadata = {name: value for name, value in marked["metadata"].items() if name != key}
        assert not machines.is_marked({**marked, "metadata": metadata})


def test_within_a_scope_by_its_node():
    for scope, seen in ((Scope(frozenset({"n"})), 1), (Scope(frozenset({"o"})), 0), (Scope(), 1)):
        assert len(examine(snapshot(machine(), scope=scope))) == seen
    assert examine(snapshot(machine(node=None), scope=Scope(frozenset({"n"})))) == []
    assert len(examine(snapshot(machine(node=None)))) == 1
