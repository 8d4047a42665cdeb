# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection left that belongs to no live run, and what of that the doctor may clear."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from ansible.parsing.splitter import parse_kv
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Template

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger, Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import DEAD_AFTER, Run
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.doctor import _warn_of_unknown
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.failover_rules import KINDS
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.rules import ORDER, abandoned, examine
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.snapshot_rules import Finding, Scope, Snapshot

NOW = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
SINCE = "2026-11-21T08:00:00Z"
DEAD, LIVE = "dead", "live"


def run(name, silent=None):
    seconds = silent if silent is not None else (DEAD_AFTER + 1 if name.startswith(DEAD) else 5)
    return Run(name, f"{name}@host", (NOW - timedelta(seconds=seconds)).isoformat(), began=SINCE)


def cordon(owner="rolling_reboot"):
    return {"cordon": {"owner": owner, "reason": "kernel", "since": SINCE, "unschedulable_before": False}}


def claim(who):
    return {"claim": {"run": who, "operation": "kernel", "purpose": "rolling_reboot", "since": SINCE}}


def record(who, result=""):
    return {"operation": {"id": "kernel", "run": who, "phase": "drain", "since": SINCE, "result": result}}


def conditions(who):
    entries = {"MaintenanceInProgress": {"message": "m"}, "Drained": {"message": "m"}}
    return {"conditions": {"run": who, "operation": "kernel", "conditions": entries}}


def opt_outs(who):
    machine = {"namespace": "metal", "name": "m", "before": None}
    return {"opt-outs": {"run": who, "since": SINCE, "autoscaler": {"before": None}, "machine": machine}}


def node(name="n", *marks, ready=True):
    annotations = {f"holdfast.dev/{key}": json.dumps(value) for mark in marks for key, value in mark.items()}
    found = [{"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Told", "message": "by a test"}]
    if any("conditions" in mark for mark in marks):
        ours = {"status": "True", "reason": "AdminRequested", "message": "m", "lastTransitionTime": SINCE}
        found += [{"type": kind, **ours} for kind in ("MaintenanceInProgress", "Drained")]
    spec = {"unschedulable": any("cordon" in mark for mark in marks)}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec, "status": {"conditions": found}}


def slot(who, name="n", state="active"):
    return Slot(name, "kernel", who, SINCE, state=state, reason="it was slow" if state == "failed" else "")


def ledger(*slots, operations=()):
    return Ledger(slots={item.node: item for item in slots}, operations=tuple(operations))


def snapshot(*nodes, groups=None, runs=None, scope=None):
    return Snapshot(
        {item["metadata"]["name"]: item for item in nodes},
        groups or {},
        {item.id: item for item in ((run(DEAD), run(LIVE)) if runs is None else runs)},
        NOW,
        scope or Scope(),
    )


def stale(seen, **options):
    """Kinds, with the node's name where there is one, of what may go; the runs aside."""
    found = examine(seen, **options)
    return {f"{item.kind} {item.node}".strip() for item in found if item.stale and item.kind != "run"}


def only(seen, kind, **options):
    (found,) = (item for item in examine(seen, **options) if item.kind == kind)
    return found


@pytest.mark.parametrize(
    ("phase", "booted", "why", "todo"),
    [
        # metal3 acts on the request of the dead run when it is back.
        ("reboot", "boot-1", "its reboot may still come", "was about to reboot node n"),
        ("reboot", "boot-2", "its node has not passed its check", "has rebooted node n and not checked it"),
        ("ready", "boot-2", "its node has not passed its check", "has rebooted node n and not checked it"),
    ],
)
def test_a_node_whose_reboot_a_dead_run_sent_is_left_until_a_person_releases_it(phase, booted, why, todo):
    asked = record(DEAD)
    asked["operation"].update(phase=phase, boot_id_before="boot-1")
    midway = node("n", cordon(), claim(DEAD), asked)
    midway["status"]["nodeInfo"] = {"bootID": booted}
    seen = snapshot(midway, groups={"g": ledger(slot(DEAD))})

    assert stale(seen) == set()
    assert stale(seen, release={"n"}) == {"cordon n", "claim n", "record n", "slot n"}
    assert why in only(seen, "record").why
    assert todo in only(seen, "record").todo
    assert "Start the same playbook again" in only(seen, "record").todo
    assert "-e doctor_nodes=n -e doctor_release=n" in only(seen, "record").todo


@pytest.mark.parametrize("phase", ["hold", "slot", "cordon"])
def test_a_record_of_an_ended_run_that_only_waited_is_no_finding(phase):
    """The run has reported that it stopped, and the next one replaces the record."""
    waited = record("ended")
    waited["operation"].update(phase=phase)
    kinds = {item.kind for item in examine(snapshot(node("n", waited))) if item.kind != "run"}
    assert kinds == ({"record"} if phase == "cordon" else set())

    midway = {"id": "firmware", "phase": "reboot", "result": ""}
    waited["operation"]["earlier"] = [midway]
    assert only(snapshot(node("n", waited)), "record").stale
    waited["operation"].update(earlier=[], run=DEAD)
    assert only(snapshot(node("n", waited)), "record").stale, "the run was killed, and may have to be resumed"


EVERYTHING = {"cordon n", "opt_outs n", "claim n", "record n", "slot n"}


def marks(who):
    return cordon(), opt_outs(who), claim(who), record(who)


def test_everything_of_a_dead_run_may_go():
    seen = snapshot(node("n", *marks(DEAD), conditions(DEAD)), groups={"g": ledger(slot(DEAD))})

    assert stale(seen) == {*EVERYTHING, "conditions n"}
    ours = [kind for kind in ORDER if kind not in ("operation", "pause", "machine", *KINDS)]
    assert [item.kind for item in examine(seen)] == [*ours, "run"]


class TestConditions:
    def test_of_a_dead_run(self):
        found = only(snapshot(node("n", conditions(DEAD))), "conditions")
        assert (found.stale, found.alive, found.since, found.why) == (
            True,
            False,
            SINCE,
            "MaintenanceInProgress, Drained",
        )

    def test_of_a_dead_run_on_a_node_that_is_down(self):
        assert stale(snapshot(node("n", *marks(DEAD), conditions(DEAD), ready=False))) == {"conditions n"}

    def test_of_a_live_run(self):
        assert stale(snapshot(node("n", conditions(LIVE)))) == set()

    def test_of_a_dead_run_on_a_node_that_a_live_run_works_on(self):
        found = only(snapshot(node("n", claim(LIVE), conditions(DEAD))), "conditions")
        assert (found.stale, found.alive) == (False, True)

    def test_of_a_module_without_a_run(self):
        found = only(snapshot(node("n", conditions(""))), "conditions")
        assert not found.stale
        assert "conditions of node n" in found.todo
        assert "holdfast.kubernetes.cordon -a 'name=n state=uncordoned'" in found.todo

    def test_of_another_writer(self):
        changed = node("n", conditions(DEAD))
        changed["status"]["conditions"] = [{"type": "Drained", "status": "True", "reason": "Theirs", "message": "m"}]
        found = only(snapshot(changed), "conditions")
        assert (found.since, found.why) == ("", "changed by another writer")
        assert not examine(snapshot(node("n"), runs=()))

    def test_a_taint_of_a_dead_run(self):
        waits = node("n", {"conditions": {"run": DEAD, "operation": "kernel", "conditions": {}, "taint": True}})
        assert only(snapshot(waits), "conditions").why == "changed by another writer"
        waits["spec"] = {"taints": [{"key": "holdfast.dev/reboot-planned", "effect": "PreferNoSchedule"}]}
        found = only(snapshot(waits), "conditions")
        assert (found.stale, found.why) == (True, "taint holdfast.dev/reboot-planned")


class TestPauses:
    """Entries of runs in NodeHealthChecks of medik8s."""

    @pytest.fixture
    def seen(self):
        entries = [f"holdfast.kubernetes run {who}" for who in (DEAD, LIVE)]
        check = {"metadata": {"name": "workers"}, "spec": {"pauseRequests": [*entries, "cluster-upgrade"]}}
        return replace(snapshot(), health_checks=[check, {"metadata": {"name": "masters"}}])

    def test_of_runs(self, seen):
        found = {(item.operation, item.run, item.stale, item.why) for item in examine(seen) if item.kind == "pause"}
        why = "NodeHealthCheck workers"
        assert found == {("workers", DEAD, True, why), ("workers", LIVE, False, why)}

    def test_keeps_the_sign_of_life_of_its_run_until_it_is_cleared(self, seen):
        assert [item.kind for item in examine(seen)] == ["pause", "pause", "run", "run"]

    @pytest.mark.parametrize("scope", [Scope(frozenset()), Scope(frozenset(["n"]), operations=False)])
    def test_is_of_no_node(self, seen, scope):
        assert not [item for item in examine(replace(seen, scope=scope)) if item.kind == "pause"]


def test_nothing_of_a_live_run_may_go():
    seen = snapshot(node("n", *marks(LIVE)), groups={"g": ledger(slot(LIVE))})

    found = examine(seen)
    assert stale(seen) == set()
    assert {item.kind for item in found if item.alive} == {"cordon", "opt_outs", "claim", "record", "slot", "run"}


def test_a_run_without_a_lease_is_dead():
    assert stale(snapshot(node("n", *marks("gone")), groups={"g": ledger(slot("gone"))}, runs=())) == EVERYTHING


@pytest.mark.parametrize(("silent", "gone"), [(0, False), (DEAD_AFTER - 1, False), (DEAD_AFTER, True)])
def test_when_a_run_is_dead(silent, gone):
    seen = snapshot(node("n", claim("one")), runs=[run("one", silent)])

    found = only(seen, "claim")
    assert found.stale is gone
    assert found.silent_seconds == silent


@pytest.mark.parametrize("work", ["claim", "slot"])
def test_what_a_live_run_works_under_stays_even_if_another_run_left_it(work):
    """Its run is dead, but another run has resumed the node."""
    left = (cordon(), opt_outs(DEAD), record(DEAD))
    if work == "claim":
        seen = snapshot(node("n", *left, claim(LIVE)), groups={"g": ledger(slot(DEAD))})
    else:
        seen = snapshot(node("n", *left), groups={"g": ledger(slot(LIVE))})

    assert stale(seen) == set()


def test_only_its_owner_undoes_a_cordon():
    found = only(snapshot(node("n", cordon("storage"))), "cordon")

    assert not found.stale
    assert "only its owner" in found.why
    assert not found.todo
    assert found.holder == "storage"


def test_a_node_that_is_down_stays_as_it_is():
    operation = {"id": "kernel", "failures": {}, "runs": [DEAD]}
    seen = snapshot(node("n", *marks(DEAD), ready=False), groups={"g": ledger(slot(DEAD), operations=[operation])})

    assert stale(seen) == set()
    for kind in ("cordon", "opt_outs", "claim", "record", "slot"):
        found = only(seen, kind)
        assert "its node is not Ready" in found.why
        assert "Ready is Unknown (Told: by a test)" in found.todo
        assert "doctor_release=n" in found.todo
    assert "one of its slots" in only(seen, "operation").why

    assert stale(seen, release=["n"]) == EVERYTHING - {"cordon n"} | {"operation"}
    released = only(seen, "cordon", release=["n"])
    assert "its node is not Ready" in released.why
    assert "again when it is back" in released.todo


@pytest.mark.parametrize("who", [DEAD, LIVE])
def test_a_failed_slot_stays_until_a_person_decides(who):
    seen = snapshot(node("n", cordon(), opt_outs(DEAD)), groups={"g": ledger(slot(who, state="failed"))})

    assert stale(seen) == set()
    assert "has failed" in only(seen, "cordon").why
    assert "Node n has failed (it was slow)" in only(seen, "slot").todo
    assert "doctor_release=n" in only(seen, "slot").todo
    assert stale(seen, release=["other"]) == set()
    assert stale(seen, release=["n"]) == {"slot n", "cordon n", "opt_outs n"}


def test_the_failed_slot_of_a_deleted_node_stays_until_a_person_decides():
    seen = snapshot(groups={"g": ledger(slot(DEAD, state="failed"))})

    assert stale(seen) == set()
    found = only(seen, "slot")
    assert "its node has failed and no longer exists" in found.why
    assert "Node n has failed (it was slow)" in found.todo
    assert "doctor_release=n" in found.todo
    assert stale(seen, release=["n"]) == {"slot n"}


@pytest.mark.parametrize(("boot_id", "back"), [("new", True), ("old", False)])
def test_a_failed_slot_goes_with_all_else_once_its_node_is_back(boot_id, back):
    rebooted = node("n", *marks(DEAD))
    rebooted["status"]["nodeInfo"] = {"bootID": boot_id}
    failed = replace(slot(DEAD, state="failed"), boot_id="old")

    assert stale(snapshot(rebooted, groups={"g": ledger(failed)})) == (EVERYTHING if back else set())


def test_the_slot_of_a_node_that_is_back_goes_although_the_node_failed_its_check():
    checked = {"operation": {"id": "kernel", "phase": "ready", "result": "failed", "detail": "no disk"}}
    rebooted = node("n", cordon(), checked)
    rebooted["status"]["nodeInfo"] = {"bootID": "new"}
    failed = replace(slot(DEAD, state="failed"), boot_id="old")

    assert stale(snapshot(rebooted, groups={"g": ledger(failed)})) == {"slot n"}


def test_a_node_that_failed_its_check_after_the_reboot_stays_cordoned():
    failed = {"operation": {"id": "kernel", "phase": "ready", "result": "failed", "detail": "no disk"}}
    seen = snapshot(node("n", cordon(), opt_outs(DEAD), failed))

    assert stale(seen) == set()
    found = only(seen, "cordon")
    assert "its node failed its check" in found.why
    assert "Node n was rebooted, but failed its check (no disk)" in found.todo
    assert "doctor_release=n" in found.todo
    assert stale(seen, release=["n"]) == {"cordon n", "opt_outs n"}


def test_a_node_that_did_not_pass_the_check_of_an_earlier_operation_stays_cordoned():
    held = {"operation": {"id": "new", "phase": "hold", "result": "", "detail": "waits for alice", "unchecked": True}}
    seen = snapshot(node("n", cordon(), held))

    assert stale(seen) == set()
    found = only(seen, "cordon")
    assert "its node has not passed its check" in found.why
    assert "Node n was rebooted, but has not passed its check. Find the cause" in found.todo


def test_a_node_that_a_person_has_uncordoned_needs_no_check():
    """``kubectl uncordon`` leaves the annotation."""
    left = {"operation": {"id": "kernel", "run": DEAD, "phase": "ready", "result": ""}}
    uncordoned = node("n", cordon(), left)
    uncordoned["spec"]["unschedulable"] = False

    assert stale(snapshot(uncordoned, groups={"g": ledger(slot(DEAD))})) == {"cordon n", "record n", "slot n"}


def test_a_record_that_the_doctor_closed_is_no_failed_check():
    ours = {"operation": abandoned({"id": "kernel", "phase": "ready", "result": ""})}

    assert ours["operation"]["detail"].endswith("in phase ready")
    assert stale(snapshot(node("n", cordon(), ours))) == {"cordon n"}


def test_the_doctor_closes_the_unfinished_records_of_other_operations_too():
    """Otherwise a run of that operation resumes the node outside its window."""
    earlier = [{"id": "firmware", "phase": "reboot", "result": ""}, {"id": "disks", "result": "rebooted"}]
    closed = abandoned({"id": "kernel", "phase": "drain", "result": "", "earlier": earlier})
    assert [item["result"] for item in closed["earlier"]] == ["failed", "rebooted"]


def test_a_failed_slot_is_not_released_under_a_run_that_works_there():
    seen = snapshot(node("n", claim(LIVE)), groups={"g": ledger(slot(DEAD, state="failed"))})

    assert stale(seen, release=["n"]) == set()


def test_a_slot_of_a_deleted_node():
    assert stale(snapshot(groups={"g": ledger(slot(DEAD))})) == {"slot n"}


def test_objects_without_a_run_are_not_cleared():
    seen = snapshot(node("n", cordon(), opt_outs(""), record("")), groups={"g": ledger(slot(""))})

    assert stale(seen) == set()
    for kind, what, command in (
        (
            "slot",
            "slot of node n in group g",
            "holdfast.kubernetes.reboot_slot -a 'name=n group=g operation=kernel state=absent'",
        ),
        ("opt_outs", "opt-outs of node n", "holdfast.kubernetes.node_opt_outs -a 'name=n state=absent'"),
        ("record", "operation kernel on node n", "kubectl annotate node n holdfast.dev/operation-"),
    ):
        found = only(seen, kind)
        assert "it names no run" in found.why
        assert what in found.todo
        assert command in found.todo
    assert "a slot that names no run" in only(seen, "cordon").why


@pytest.mark.parametrize("mark", ["unschedulable_before", "keep-cordoned"])
def test_only_our_cordon_is_undone_above_that_of_others(mark):
    both = cordon()
    both["cordon"][mark] = True
    found = only(snapshot(node("n", both, {"keep-cordoned": True} if mark == "keep-cordoned" else {})), "cordon")

    assert found.stale
    assert "cordoned" in found.why.partition(";")[2]


def test_a_cordon_is_that_of_the_run_that_works_under_it():
    assert only(snapshot(node("n", cordon(), claim(DEAD))), "cordon").run == DEAD
    seen = snapshot(node("n", cordon(), claim(DEAD)), groups={"g": ledger(slot(LIVE))})
    assert only(seen, "cordon").run == LIVE
    assert only(snapshot(node("n", cordon("storage"), claim(LIVE))), "cordon").run == ""


def test_a_record_that_is_complete_is_not_a_finding():
    assert examine(snapshot(node("n", record(DEAD, "rebooted")), runs=())) == []


def test_a_run_whose_record_is_complete_no_longer_works_on_the_node():
    found = only(snapshot(node("n", cordon(), record(LIVE, "rebooted"))), "cordon")

    assert (found.stale, found.alive, found.run) == (True, False, "")


@pytest.mark.parametrize(
    ("entry", "gone"),
    [
        ({"runs": [DEAD]}, True),
        ({"runs": [DEAD, LIVE]}, False),
        ({"runs": [], "unfinished": True}, True),
        ({"unfinished": True}, True),
        ({"runs": [LIVE], "unfinished": True}, False),
    ],
)
def test_operations(entry, gone):
    complete = {"id": "earlier", "failures": {}, "runs": []}
    seen = snapshot(groups={"g": ledger(operations=[complete, {"id": "kernel", "failures": {}, **entry}])})

    found = only(seen, "operation")
    assert (found.operation, found.stale) == ("kernel", gone)
    assert found.run in entry.get("runs", []) or (found.run, found.holder) == ("", "")


@pytest.mark.parametrize("how", ["record", "taint"])
@pytest.mark.parametrize("ready", [True, False])
def test_a_failed_over_node_is_left_to_its_recovery(how, ready):
    """A metal3 that is late may still switch it off, and its recovery undoes the cordon of the failover."""
    failed_over = node("n", cordon(), opt_outs(DEAD), claim(DEAD), record(DEAD), ready=ready)
    if how == "record":
        failed_over["metadata"]["annotations"]["holdfast.dev/failover"] = "{}"
    else:
        failed_over["spec"] = {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}
    seen = snapshot(failed_over, groups={"g": ledger(slot(DEAD))})

    assert stale(seen) == set()
    assert "failed over" in only(seen, "cordon").why
    assert not any("Bring it back" in item.todo for item in examine(seen))
    # A person may release the slot, but the node stays cordoned.
    assert "slot n" in stale(seen, release={"n"})
    assert "cordon n" not in stale(seen, release={"n"})


def test_an_operation_is_that_of_the_run_that_was_alive_last():
    runs = [run("dead-a", 9 * DEAD_AFTER), run("dead-b", 7 * DEAD_AFTER), run("dead-c", 8 * DEAD_AFTER)]
    entry = {"id": "kernel", "failures": {}, "runs": ["dead-a", "dead-b", "dead-c", "without a Lease"]}
    found = only(snapshot(groups={"g": ledger(operations=[entry])}, runs=runs), "operation")

    assert (found.run, found.silent_seconds) == ("dead-b", 7 * DEAD_AFTER)


@pytest.mark.parametrize("entry", [{"runs": [LIVE]}, {"runs": []}, {}])
def test_operations_that_no_run_left_are_no_finding(entry):
    seen = snapshot(groups={"g": ledger(operations=[{"id": "kernel", "failures": {}, **entry}])}, runs=[run(LIVE)])

    assert {item.kind for item in examine(seen)} == {"run"}


def test_a_dead_runs_last_sign_stays_as_long_as_something_of_it():
    down = snapshot(node("n", ready=False), groups={"g": ledger(slot(DEAD))}, runs=[run(DEAD)])
    shared = ledger(operations=[{"id": "kernel", "failures": {}, "runs": [DEAD, LIVE]}])

    assert not only(down, "run").stale
    assert "an object that it left" in only(down, "run").why
    assert only(down, "run", release=["n"]).stale
    assert not any(item.stale for item in examine(snapshot(groups={"g": shared})))


TWO = (node("a", claim(DEAD)), node("b", claim("dead-too")))
GROUPS = {
    "one": ledger(slot(DEAD, "a"), operations=[{"id": "kernel", "failures": {}, "runs": [DEAD]}]),
    "two": ledger(slot("dead-too", "b"), operations=[{"id": "other", "failures": {}, "runs": ["dead-too"]}]),
}
RUNS = (run("dead-too"), run(DEAD), run("dead-and-alone"), run(LIVE))


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(frozenset()), set()),
        (Scope(frozenset({"a"}), operations=False), {"claim", "slot"}),
        (Scope(frozenset({"a"}), "one"), {"claim", "slot", "operation", "run"}),
        (Scope(frozenset({"a"}), "two", operations=False), {"claim"}),
        (Scope(frozenset({"a"}), "one", operations=False), {"claim", "slot"}),
    ],
)
def test_with_a_scope_nothing_else_is_checked(scope, expected):
    groups = GROUPS if scope != Scope(frozenset()) else {}
    found = examine(snapshot(*TWO, groups=groups, runs=RUNS, scope=scope))

    assert {item.kind for item in found if item.stale} == expected
    assert {item.node for item in found} <= {"a", ""}
    assert {item.run for item in found} <= {DEAD, ""}


def test_without_a_scope_runs_that_left_nothing_go_too():
    found = examine(snapshot(*TWO, groups=GROUPS, runs=RUNS))

    assert {item.run for item in found if item.kind == "run" and item.stale} == {DEAD, "dead-too", "dead-and-alone"}


def test_findings_of_a_kind_are_sorted_by_node():
    found = examine(snapshot(node("b", claim(DEAD)), node("a", claim("gone"))))

    assert [item.node for item in found if item.kind == "claim"] == ["a", "b"]


NAMES = ["a", "b"]
WHO = st.sampled_from([DEAD, "gone", LIVE, ""])


@st.composite
def snapshots(draw):
    nodes = []
    for name in NAMES:
        kinds = [cordon, opt_outs, claim, record]
        chosen = [kind for kind in kinds if draw(st.booleans())]
        owner = draw(st.sampled_from(["rolling_reboot", "storage"]))
        worn = [kind(owner if kind is cordon else draw(WHO)) for kind in chosen]
        nodes.append(node(name, *worn, ready=draw(st.booleans())))
    slots = [
        slot(draw(WHO), name, draw(st.sampled_from(["active", "failed"]))) for name in NAMES if draw(st.booleans())
    ]
    entries = [{"id": "kernel", "failures": {}, "runs": draw(st.lists(st.sampled_from([DEAD, LIVE]), unique=True))}]
    present = draw(st.sampled_from([nodes, nodes[:1]]))
    return snapshot(*present, groups={"g": ledger(*slots, operations=entries)})


@given(snapshots(), st.sets(st.sampled_from(NAMES)))
def test_what_names_a_live_run_never_goes(seen, release):
    for item in examine(seen, release=release):
        failed = item.kind == "slot" and seen.ledgers["g"].slots[item.node].state == "failed"
        if item.run == LIVE and not failed:
            assert not item.stale, item
        if item.stale and item.node in seen.nodes:
            assert not seen.claimed(item.node), item


@given(snapshots(), st.sets(st.sampled_from(NAMES)))
def test_a_scope_shows_a_part_and_judges_no_differently(seen, release):
    whole = {item.about: item for item in examine(seen, release=release)}
    part = Snapshot(seen.nodes, seen.ledgers, seen.runs, seen.now, Scope(frozenset({"a"}), operations=False))
    for item in examine(part, release=release):
        assert item.node in ("a", "")
        if item.kind != "run":
            assert item == whole[item.about]
        elif item.stale:
            assert whole[item.about].stale


@pytest.mark.parametrize("who", [DEAD, LIVE])
def test_all_that_is_said_of_what_a_run_has(who):
    entry = {"id": "kernel", "runs": [who], "seen": SINCE, "unfinished": True}
    seen = snapshot(
        node("n", *marks(who), conditions(who)),
        groups={"g": ledger(slot(who), operations=[entry])},
        runs=[run(who)],
    )
    signs = {
        "run": who,
        "holder": f"{who}@host",
        "last_sign": run(who).renewed,
        "silent_seconds": DEAD_AFTER + 1 if who == DEAD else 5,
        "alive": who == LIVE,
        "stale": who == DEAD,
    }
    left_by = "dead" if who == DEAD else "a run that ended before all was done"
    machine = "the cluster autoscaler leaves it alone, MachineHealthChecks leave Machine metal/m alone"
    on_node, of_operation = {"node": "n", "since": SINCE}, {"operation": "kernel", "since": SINCE}

    assert examine(seen) == [
        Finding("cordon", **on_node, **signs, why="cordoned by rolling_reboot (kernel)"),
        Finding("opt_outs", **on_node, **signs, why=machine),
        Finding("claim", node="n", **of_operation, **signs, why="for rolling_reboot, operation kernel"),
        Finding("record", node="n", **of_operation, **signs, why="in phase drain of operation kernel"),
        Finding("conditions", **on_node, **signs, why="MaintenanceInProgress, Drained"),
        Finding("slot", node="n", group="g", **of_operation, **signs, why="active, group g, operation kernel"),
        Finding("operation", group="g", **of_operation, **signs, why=f"kernel of group g, left by {left_by}"),
        Finding("run", since=SINCE, **signs, why=f"{who}@host"),
    ]


@pytest.mark.parametrize(
    ("left", "kept", "why"),
    [
        ({"owner": "storage", "reason": ""}, False, "cordoned by storage (no reason given); stays because"),
        (
            {"owner": "rolling_reboot", "unschedulable_before": True},
            False,
            "the node stays cordoned: it was cordoned before",
        ),
        ({"owner": "rolling_reboot"}, True, "stays cordoned: it has the annotation holdfast.dev/keep-cordoned"),
    ],
)
def test_what_is_said_of_a_cordon(left, kept, why):
    item = node("n", {"cordon": left}, *([{"keep-cordoned": ""}] if kept else []))
    assert why in only(snapshot(item), "cordon").why


def test_the_cordon_of_a_client_that_has_cordoned_the_node_again():
    item = node("n", {"cordon": {"owner": "rolling_reboot"}})
    item["metadata"]["managedFields"] = [
        {"manager": "kubectl-cordon", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}},
        {"manager": "run", "fieldsV1": {"f:metadata": {"f:annotations": {"f:holdfast.dev/cordon": {}}}}},
    ]
    assert "the node stays cordoned: kubectl-cordon has cordoned it again" in only(snapshot(item), "cordon").why


def test_what_is_said_of_a_failed_slot():
    found = only(snapshot(node(), groups={"g": ledger(slot(DEAD, state="failed"))}), "slot")
    assert found.why == "failed (it was slow), group g, operation kernel; stays because its node has failed"
    assert "n" in found.todo


def test_names_that_no_node_has_are_warned_of():
    warnings = []
    seen = replace(snapshot(groups={"g": ledger(slot(DEAD, "gone"))}), names={"n"}, failovers={"off": {}})
    _warn_of_unknown(Context({}, warn=warnings.append), {"n", "gone", "off"}, seen)
    assert warnings == []
    _warn_of_unknown(Context({}, warn=warnings.append), {"n", "worker3"}, seen)
    assert "these names: worker3" in warnings[0]


def test_the_command_for_conditions_without_a_run_names_the_owner_of_the_cordon():
    todo = only(snapshot(node("n", conditions(""), cordon("storage"))), "conditions").todo
    assert "to uncordon it, run:" in todo
    assert "name=n owner=storage state=uncordoned" in todo


@pytest.mark.parametrize("owner", ["x' ; reboot ; echo '", 'x" $(reboot)', "x state=absent", "{{ 1 }}", "{% raw %}", 7])
def test_the_text_of_a_node_is_only_a_value_in_the_commands(owner):
    """A node can write its own annotations."""
    todo = only(snapshot(node("n", conditions(""), cordon(owner))), "conditions").todo
    program, *arguments = shlex.split(todo.partition("run: ")[2])
    assert (program, arguments[:4]) == ("ansible", ["localhost", "-m", "holdfast.kubernetes.cordon", "-a"])
    (options,) = arguments[4:]
    read = json.loads(options) if options.startswith("{") else parse_kv(options)
    shown = {name: Template(value).render() for name, value in read.items()}
    assert shown == {"name": "n", "owner": str(owner), "state": "uncordoned"}
