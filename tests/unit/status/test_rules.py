# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all runs do, from a snapshot of the cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger, Member, Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import Policy
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import Run
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.rules import ROLE_OWNER
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.snapshot_rules import Scope, Snapshot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import rules as failover_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import rules as guard
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress.board_rules import Budget, Row
from ansible_collections.holdfast.kubernetes.plugins.module_utils._status.rules import stats_of, status_of, to_data
from ansible_collections.holdfast.kubernetes.plugins.module_utils._status.text_rules import lines

NOW = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
SINCE = "2026-11-21T08:59:00Z"
MINUTE_AGO = NOW.timestamp() - 60
HOLD = {
    "node": "held",
    "namespace": "apps",
    "holder": "alice",
    "acquired": SINCE,
    "held_seconds": 60,
    "reason": "firmware",
}


def node(name, phase="", result="", run="live", **marks):
    record = {"id": "kernel", "run": run, "phase": phase, "since": SINCE, "result": result, "detail": "the reason"}
    known = {**({"operation": record} if phase else {}), **marks}
    annotations = {f"holdfast.dev/{key}": json.dumps(value) for key, value in known.items()}
    ready = {"type": "Ready", "status": "True", "reason": "Told", "message": "by a test"}
    return {"metadata": {"name": name, "annotations": annotations}, "status": {"conditions": [ready]}}


def snapshot(*nodes, slots=(), runs=("live",), scope=None, unfinished=False, allowed="25%"):
    silent = {"live": 5, "dead": 500}
    known = {run: Run(run, f"{run}@host", (NOW - timedelta(seconds=silent[run])).isoformat()) for run in runs}
    operations = ({"id": "kernel", "failures": {}, "runs": list(runs), "unfinished": unfinished},)
    ledger = Ledger(
        policy=Policy(selector="", max_unavailable=allowed),
        slots={slot.node: slot for slot in slots},
        operations=operations,
    )
    items = {item["metadata"]["name"]: item for item in nodes}
    return Snapshot(items, {"workers": ledger}, known, NOW, scope=scope or Scope(), names=set(items))


def status(*nodes, holds=(), **more):
    members = [Member(f"n-{number}", ready=True, unschedulable=False) for number in range(8)]
    return status_of(snapshot(*nodes, **more), holds, {"workers": members})


def row(found, name):
    return next(item for item in found.board.rows if item.name == name)


def test_share_of_a_budget_is_of_the_nodes_of_now():
    slots = (Slot("a", "kernel", "live", SINCE), Slot("b", "kernel", "live", SINCE))
    found = status(node("a", "drain"), node("b", "reboot"), slots=slots)

    assert [budget.words() for budget in found.board.budgets] == ["Group workers: 2 of 2 allowed unavailable: a, b"]


def test_budget_counts_nodes_that_are_down_for_any_reason():
    members = [
        Member("well", ready=True, unschedulable=False),
        Member("cordoned", ready=True, unschedulable=True),
        Member("down", ready=False, unschedulable=False),
    ]
    seen = snapshot(slots=(Slot("slot", "kernel", "live", SINCE),))
    (budget,) = status_of(seen, (), {"workers": members}).board.budgets

    assert budget == Budget("workers", 1, ("cordoned", "down", "slot"))


def test_share_of_a_budget_is_unknown_without_its_nodes():
    assert status_of(snapshot(), (), {}).board.budgets == (Budget("workers", None, ()),)


def test_node_at_work_has_its_phase_and_run():
    assert row(status(node("a", "drain")), "a") == Row("a", "working", "drain", MINUTE_AGO, "", "live")


def test_node_at_work_says_who_holds_it():
    found = status(node("held", "drain"), node("a", "drain"), holds=[HOLD])

    assert row(found, "held").why == f"held by apps/alice since {SINCE} (firmware)"
    assert row(found, "a").why == ""


def test_node_whose_turn_comes():
    found = status(node("a", "hold"), node("b", "slot"), slots=(Slot("c", "kernel", "live", SINCE),))

    assert row(found, "a") == Row("a", "waiting", "hold", MINUTE_AGO, "its turn: the hold is released", "live")
    assert row(found, "b") == Row("b", "waiting", "slot", MINUTE_AGO, "its turn", "live")


def test_node_that_waits_says_for_whom():
    slots = (Slot("a", "kernel", "live", SINCE), Slot("b", "kernel", "live", SINCE))
    found = status(node("held", "hold"), node("next", "slot"), holds=[HOLD], slots=slots)

    assert row(found, "held").why == f"held by apps/alice since {SINCE} (firmware)"
    assert row(found, "next").why == "a slot of Group workers: 2 of 2 allowed unavailable: a, b"
    assert {item.state for item in found.board.rows} == {"waiting"}


def test_node_of_a_paused_group_waits_for_a_slot():
    found = status(node("next", "slot"), allowed="0")

    assert row(found, "next").why == "a slot of Group workers: 0 of 0 allowed unavailable"


@pytest.mark.parametrize(("taken", "full"), [(0, False), (1, True)])
def test_budget_whose_limit_is_unknown_counts_as_one_node(taken, full):
    slots = [Slot("a", "kernel", "live", SINCE)] * taken
    found = status_of(snapshot(node("next", "slot"), slots=slots), (), {})

    assert row(found, "next").why.startswith("a slot of Group workers: 1 of ?") is full


def test_node_of_an_operation_whose_run_has_stopped_and_ended():
    """The node is done in an operation that is open, or has nothing to do with any run."""
    done = {"id": "kernel", "run": "live", "phase": "uncordon", "result": "rebooted", "since": SINCE}
    waited = {"id": "other", "run": "ended", "phase": "slot", "result": "", "since": SINCE}
    found = status(node("a", operation={**waited, "earlier": [done]}), node("b", operation=waited))

    assert (row(found, "a").state, row(found, "a").phase) == ("done", "rebooted")
    assert [item.name for item in found.board.rows] == ["a"]


def test_node_of_a_dead_run_names_the_way_out():
    found = status(node("a", "drain", run="dead"), runs=("dead",))

    assert row(found, "a").state == "failed"
    assert "start the same playbook again" in row(found, "a").why
    assert [item.kind for item in found.stale] == ["record", "operation", "run"]
    many, record, operation, run = lines(found)[-4:]
    assert "3 objects" in many
    assert [line.partition(":")[0] for line in (record, operation, run)] == ["- record on a", "- operation", "- run"]


def test_result_is_shown_while_its_operation_is_open():
    found = status(node("a", "uncordon", "rebooted"))
    assert row(found, "a") == Row("a", "done", "rebooted", MINUTE_AGO, "the reason", "live")
    assert row(status(node("a", "ready", "failed")), "a").state == "failed"
    assert row(status(node("a", "uncordon", "rebooted"), runs=(), unfinished=True), "a").state == "done"
    assert status(node("a", "uncordon", "rebooted"), runs=()).board.rows == ()


def test_failed_slot_gives_its_reason():
    slot = Slot("a", "kernel", "live", SINCE, state="failed", reason="did not come back", boot_id="x")

    found = status(node("a", "ready", "failed"), slots=(slot,))
    assert row(found, "a") == Row("a", "failed", "failed", MINUTE_AGO, "did not come back", "live")
    shown = lines(found)
    assert shown[0].startswith("Status")
    assert shown[-2:] == ["What you have to do:", *(f"- {todo}" for todo in found.todo)]


def test_cordon_of_another_owner_is_shown():
    found = row(status(node("a", cordon={"owner": "storage", "reason": "new disk", "since": SINCE})), "a")

    assert found == Row("a", "queued", "cordoned", MINUTE_AGO, "by storage (new disk)")


def test_cordon_that_the_role_left_is_a_failure():
    found = row(status(node("a", cordon={"owner": ROLE_OWNER, "since": "broken"})), "a")

    assert found == Row("a", "failed", "cordoned", None, f"by {ROLE_OWNER} (no reason given)")


@pytest.mark.parametrize(
    ("phase", "result", "run", "shown", "why"),
    [
        ("fence", "", "live", ("working", "fence"), ""),
        ("fence", "", "dead", ("failed", "fence"), "its run is dead"),
        ("fence", "failed", "live", ("failed", "failed"), "no answer"),
        ("move", "moved", "live", ("done", "moved"), "no answer"),
    ],
)
def test_failover_that_is_not_over(phase, result, run, shown, why):
    item = node("a", "drain")
    item["status"]["nodeInfo"] = {"bootID": "boot"}
    begun = failover_rules.begin(item, "op", run=run, holder="", reason="", fence="", now=NOW - timedelta(minutes=1))
    record = {**begun, "phase": phase, "result": result, "detail": "no answer"}
    item["metadata"]["annotations"]["holdfast.dev/failover"] = json.dumps(record)
    found = row(status(item, runs=("live", "dead")), "a")

    assert ((found.state, found.phase), found.since, found.run) == (shown, MINUTE_AGO, run)
    assert found.why.startswith(why)
    assert bool(found.why) is bool(why)


def test_failover_whose_record_is_broken():
    found = row(status(node("a", failover={"phase": "x"})), "a")

    assert (found.state, found.phase, found.since, found.run) == ("failed", "failover", None, "")
    assert "holdfast.dev/failover of Node a is invalid" in found.why


@pytest.mark.parametrize(("works", "state"), [({"r": True}, "working"), ({"r": False}, "failed"), ({}, "failed")])
def test_machine_whose_deletion_waits_for_a_hook(works, state):
    waits = {"type": "Deleting", "status": "True", "reason": "WaitingForPreDrainHook", "message": ""}
    begun = guard.begin(None, "pre-drain", uid="u", run="r", holder="", now=NOW - timedelta(minutes=1))
    annotations = {
        "pre-drain.delete.hook.machine.cluster.x-k8s.io/h": "me",
        "holdfast.dev/machine-guard": json.dumps({"h": begun}),
    }
    metadata = {"name": "m", "namespace": "metal", "uid": "u", "annotations": annotations, "deletionTimestamp": SINCE}
    machine = {"metadata": metadata, "status": {"conditions": [waits]}}
    (found,) = status_of(replace(snapshot(), machines=[machine], works=works), (), {}).board.rows

    assert found == Row("metal/m", state, "deletion", MINUTE_AGO, found.why, "r")
    assert "Machine metal/m waits at pre-drain for hook h" in found.why


def test_scope_limits_nodes_and_holds():
    found = status(node("a", "drain"), node("b", "drain"), holds=[HOLD], scope=Scope(frozenset({"a"})))

    assert [item.name for item in found.board.rows] == ["a"]
    assert found.holds == ()


@pytest.mark.parametrize(("group", "shown"), [("", True), ("workers", True), ("others", False)])
def test_scope_limits_budgets(group, shown):
    assert bool(status(scope=Scope(group=group)).board.budgets) is shown


@pytest.mark.parametrize(
    ("since", "seconds"), [(SINCE, 60), (NOW.isoformat(), 0), ("2026-11-21T09:01:00Z", 0), ("broken", None)]
)
def test_how_long_a_node_is_in_its_phase(since, seconds):
    (found,) = to_data(status(node("a", cordon={"owner": "storage", "since": since})))["nodes"]

    assert found["seconds"] == seconds


def test_text_and_data_say_the_same():
    found = status(
        node("held", "hold"), node("a", "drain"), node("b", "drain", run="dead"), holds=[HOLD], runs=("live", "dead")
    )
    text, data = lines(found), to_data(found)

    assert text[0] == "Status of all runs at 2026-11-21 09:00:00 UTC"
    for words in (
        "NODE PHASE SINCE RUN",
        "a drain 60 s live",
        "b drain 60 s dead its run is dead",
        "held hold 60 s live held by apps/alice",
        "held apps/alice 60 s firmware",
        "dead dead 8 min 20 s ago dead@host",
        "live live 5 s ago live@host",
        "The doctor would clear 1 object ",
        "- record on b: in phase drain",
    ):
        assert any(" ".join(line.split()).startswith(words) for line in text), words
    assert data["groups"] == [{"group": "workers", "allowed": 2, "unavailable": []}]
    assert data["nodes"][1] == {
        "name": "a",
        "state": "working",
        "phase": "drain",
        "seconds": 60,
        "why": "",
        "run": "live",
    }
    assert data["holds"] == [HOLD]
    assert {
        "id": "dead",
        "holder": "dead@host",
        "began": "",
        "last_sign": (NOW - timedelta(seconds=500)).isoformat(),
        "silent_seconds": 500,
        "alive": False,
    } in data["runs"]
    assert data["todo"] == list(found.todo)
    assert stats_of(found) == {
        "status_working": 1,
        "status_waiting": 1,
        "status_failed": 1,
        "status_done": 0,
        "status_holds": 1,
        "status_live_runs": 1,
        "status_stale": len(found.stale),
    }
    assert len(data["stale"]) == stats_of(found)["status_stale"] == sum(line.startswith("- ") for line in text)
    assert json.dumps(data)


@pytest.mark.parametrize("holds", [(), (HOLD,)])
def test_quiet_cluster_says_so(holds):
    title, budget, quiet, *held = lines(status(runs=(), holds=holds))

    assert title.startswith("Status of all runs at ")
    assert budget.startswith("Group workers: 0 of 2")
    assert quiet == "No run works on a node, or left one."
    table = ["", "HELD NODE  BY          SINCE  WHY", "held       apps/alice  60 s   firmware"]
    assert held == (table if holds else [])
