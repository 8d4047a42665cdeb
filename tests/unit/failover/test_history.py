# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the history says after runs that are killed, paused or repeated, and of nodes that write their own record."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from unit.failover.play import (
    AUDIT,
    GIVEN,
    RECORD,
    Killed,
    Play,
    at_the_power_off,
    entry,
    killed_after,
    leases_expire,
    ready_is,
    silent_node,
)
from unit.reboot.memory_cluster import AT

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Held, TimedOut, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import audit, audit_rules, confirm
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import record as writer
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import turn as turns
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.still_down_rules import (
    CameBack,
    ReadyChanged,
)


@pytest.fixture
def cluster(monkeypatch):
    return silent_node(monkeypatch)


def refused(play, error, *, sent=False):
    """Let the power-off fail after its phase is recorded."""

    def fails():
        error.fields["sent"] = sent
        raise error

    return at_the_power_off(play, fails)


def sent(play):
    """Let the power-off fail after its request."""
    return refused(play, TimedOut("It is on."), sent=True)


def later(cluster):
    """Ten minutes later, no earlier run is live."""
    now = cluster.now() + timedelta(seconds=600)
    cluster.now = lambda: now
    leases_expire(cluster)


def history(cluster):
    return {name: json.loads(text) for name, text in cluster.objects[AUDIT]["data"].items()}


@pytest.mark.parametrize(
    "error", [Held("Node node-1 is held."), ReadyChanged("Ready was False, and is Unknown.", why="changed")]
)
def test_a_node_to_whose_machine_nothing_was_sent_does_not_count_as_fenced(cluster, error):
    """The phase of the power-off is recorded before its request."""
    assert refused(Play(cluster), error).go()["result"] == "failed"
    assert (cluster.marks(), cluster.cordoned()) == ({}, False)
    assert [step["step"] for step in entry(cluster)["steps"]] == ["claim", "fence", "failed"]
    assert not audit_rules.unfinished(entry(cluster))
    assert Play(cluster, run="r2").go()["result"] == "moved"


def test_the_history_says_that_nothing_was_sent_if_the_node_is_deleted(cluster):
    play = at_the_power_off(Play(cluster), lambda: cluster.objects.pop(paths.node("node-1")))
    assert refused(play, Held("Node node-1 is held.")).go()["result"] == "failed"
    assert not audit_rules.unfinished(entry(cluster))
    assert not [path for path in cluster.objects if "/leases/" in path], "the run has ended"


def test_a_run_whose_history_can_not_be_written_returns_its_claim(cluster, monkeypatch):
    def fails(*_arguments):
        raise Unreachable("The API server gives no answer.")

    play = at_the_power_off(Play(cluster), lambda: monkeypatch.setattr(audit, "_store", fails))
    assert "COULD NOT BE RECORDED" in refused(play, Held("Node node-1 is held.")).go()["detail"]
    assert ("claim" in cluster.marks(), cluster.marks()["failover"]["phase"]) == (False, "fence")


def test_a_history_that_is_deleted_before_a_write_is_made_again(cluster, monkeypatch):
    load = audit._load

    def deleted(found):
        before = load(found)
        if before:
            found.objects.pop(AUDIT)
            monkeypatch.undo()
        return before

    monkeypatch.setattr(audit, "_load", deleted)
    assert Play(cluster).go()["result"] == "moved"
    assert entry(cluster)["result"] == "moved"


def test_a_run_that_is_killed_between_its_last_two_writes_leaves_its_record(cluster):
    """Otherwise nothing would correct the history."""

    def kill(_verb, path, _body):
        if path == AUDIT and entry(cluster)["result"]:
            raise Killed

    cluster.hooks.append(kill)
    with pytest.raises(Killed):
        refused(Play(cluster), Held("Node node-1 is held.")).go()
    assert not audit_rules.unfinished(entry(cluster))
    assert (cluster.marks()["failover"]["phase"], "claim" in cluster.marks()) == ("fence", True)


@pytest.mark.parametrize("run", ["r1", "r2"])
@pytest.mark.parametrize(
    "change",
    [
        None,
        {"phase": "claim"},
        {"phase": "claim", "facts": {}},
        {"phase": "claim", "id": "another"},
        {"result": "moved", "boot_id": "boot-0"},
        {"started": "2020-01-01T00:00:00Z"},
    ],
    ids=str,
)
def test_a_node_can_not_hide_that_its_machine_was_requested_to_switch_off(cluster, change, run):
    """It writes its own record. Or its Node was deleted and created again."""
    cluster.off = False
    first = sent(Play(cluster)).go()
    assert first["result"] == "failed"
    annotations = cluster.objects[paths.node("node-1")]["metadata"]["annotations"]
    known = json.loads(annotations.pop("holdfast.dev/failover"))
    if change is not None:
        annotations["holdfast.dev/failover"] = json.dumps({**known, **change})

    again = refused(Play(cluster, run=run, fence=["redfish", "command"]), Held("Node node-1 is held."))
    result = again.go()
    assert (result["result"], result["operation"], result["resumed"]) == ("failed", first["operation"], True)
    assert (again.turn["progress"]["fence"], again.turn["then"]) == ("command", [])
    assert ("failover" in cluster.marks(), cluster.cordoned()) == (True, True)
    assert audit_rules.unfinished(entry(cluster))


@pytest.mark.parametrize(
    "change",
    [{"facts": {}}, {"phase": "claim", "facts": {}}, {"phase": "claim", "id": "another", "facts": {}}],
    ids=str,
)
def test_a_node_can_not_hide_from_its_recovery_how_it_was_switched_off(cluster, change):
    cluster.off = False
    first = sent(Play(cluster)).go()
    annotations = cluster.objects[paths.node("node-1")]["metadata"]["annotations"]
    annotations["holdfast.dev/failover"] = json.dumps({**json.loads(annotations["holdfast.dev/failover"]), **change})

    back = Play(cluster, run="r2", direction="recover")
    assert (back.go()["operation"], back.commands) == (first["operation"], ["on"])
    assert entry(cluster)["result"] == "recovered"


def test_a_node_that_names_an_earlier_failover_does_not_resume_it(cluster):
    """That one is over, so its entry would hide what is sent now."""
    assert Play(cluster).go()["result"] == "moved"
    known = cluster.marks()["failover"]
    assert Play(cluster, run="r2", direction="recover").go()["result"] == "recovered"
    cluster.node(ready=False, boot_id="boot-2", failover={**known, "phase": "claim", "result": "", "boot_id": "boot-2"})
    later(cluster)

    result = Play(cluster, run="r3").go()
    assert (result["result"], result["operation"] == known["id"], result["resumed"]) == ("moved", False, False)


def test_a_node_can_not_write_that_its_failover_has_ended(cluster):
    first = sent(Play(cluster)).go()
    known = {**cluster.marks()["failover"], "result": "moved"}
    cluster.node(ready=False, boot_id="boot-2", failover=known)
    later(cluster)
    Play(cluster, run="r2").go()
    assert json.loads(cluster.objects[AUDIT]["data"][first["operation"]])["result"] == "failed"


def test_a_failover_of_an_earlier_boot_is_not_resumed(cluster):
    """A person has brought the node back since, or it is other hardware."""
    first = sent(Play(cluster)).go()
    cluster.node(ready=False, boot_id="boot-2")
    later(cluster)
    result = Play(cluster, run="r2").go()
    assert (result["operation"] == first["operation"], result["resumed"]) == (False, False)


def test_a_node_can_not_end_the_failover_of_another_one(cluster):
    cluster.node("node-2", ready=False)
    other = {"id": "node-2.20261121T080000Z", "phase": "move", "result": "moved", "boot_id": "boot-0"}
    cluster.node(ready=False, failover={**RECORD, **other})
    theirs = audit_rules.entry_after(None, "node-2", {**RECORD, **other}, {}, AT, phase="move")
    cluster.create(
        AUDIT.rpartition("/")[0], {"metadata": {"name": "failovers"}, "data": {other["id"]: json.dumps(theirs)}}
    )

    assert Play(cluster).go()["result"] == "moved"
    assert json.loads(cluster.objects[AUDIT]["data"][other["id"]]) == theirs


def test_a_deleted_node_that_ran_again_since_its_failover_does_not_count_as_failed_over(cluster):
    """The next failover sent nothing. So its machine may be on."""
    assert Play(cluster, delete_node=True).go()["result"] == "moved"
    cluster.node(ready=False, boot_id="boot-2")
    later(cluster)
    refused(Play(cluster, run="r2"), Held("Node node-1 is held.")).go()
    del cluster.objects[paths.node("node-1")]

    assert "There is no Node node-1" in Play(cluster, run="r3").go()["detail"]


def test_a_cordon_that_can_not_be_undone_does_not_count_as_a_power_off(cluster, monkeypatch):
    def fails(*_arguments):
        raise Unreachable("The API server gives no answer.")

    with monkeypatch.context() as patch:
        patch.setattr(turns, "cordon", fails)
        result = refused(Play(cluster), Held("Node node-1 is held.")).go()
    assert (result["result"], "could not be undone" in result["detail"]) == ("failed", True)
    assert (cluster.marks()["failover"]["phase"], cluster.cordoned()) == ("claim", True)

    assert refused(Play(cluster, run="r2"), Held("Node node-1 is held.")).go()["result"] == "failed"
    assert (cluster.marks(), cluster.cordoned()) == ({}, False)


def test_a_node_that_came_back_before_its_run_was_killed_begins_a_new_failover(cluster):
    """The history has the result; the run was killed before it removed the record."""
    cluster.hooks.append(killed_with("stopped"))
    with pytest.raises(Killed):
        refused(Play(cluster), CameBack("Node node-1 is Ready.")).go()
    assert entry(cluster)["result"] == "stopped"
    cluster.hooks.clear()
    later(cluster)

    again = Play(cluster, run="r2", fence=["command", "redfish"], uri="https://bmc")
    assert (again.go()["resumed"], again.turn["then"]) == (False, [])
    assert [found["result"] for found in history(cluster).values()] == ["stopped", "moved"]


def killed_with(result):
    """Kill the run when the history has this result."""

    def kill(_verb, path, body):
        if path == AUDIT and result in [json.loads(text)["result"] for text in body["data"].values()]:
            raise Killed

    return kill


@pytest.mark.parametrize("direction", ["failover", "recover"])
@pytest.mark.parametrize("writes", range(1, 14))
def test_a_recovery_that_dies_after_any_write_is_repeated(cluster, writes, direction):
    """By another recovery. Or the node is down again, and its next failover is a new one if it was back."""
    first = Play(cluster).go()["operation"]
    later(cluster)
    if not killed_after(cluster, writes, Play(cluster, run="r2", direction="recover")):
        return
    later(cluster)
    recovered = history(cluster)[first]["result"] == "recovered"
    if direction == "failover":
        ready = cluster.objects[paths.node("node-1")]["status"]["conditions"][0]
        ready["status"] = "Unknown"
        again = Play(cluster, run="r3")
        new = again.go()["operation"] not in ("", first)
        assert (new, again.commands) == (recovered, ["off"] if recovered else [])
        later(cluster)
    found = Play(cluster, run="r4", direction="recover").go()
    assert found["result"] in ("recovered", "skipped"), found
    assert (cluster.marks(), cluster.cordoned()) == ({}, False)
    assert not audit_rules.unfinished_of(cluster.objects[AUDIT]["data"])


@pytest.mark.parametrize(
    ("marks", "result"),
    [
        ({}, "recovered"),
        ({"claim": {"run": "r3", "operation": "op", "purpose": "failover", "since": AT}}, "failed"),
        ({"failover": {**RECORD, "phase": "move", "result": "moved"}}, "failed"),
    ],
    ids=str,
)
def test_a_recovery_of_a_deleted_node_ends_nothing_that_another_run_works_on(cluster, marks, result):
    """The kubelet has registered the Node again, because its machine is on. Another run may have failed it over."""
    sent(Play(cluster)).go()
    del cluster.objects[paths.node("node-1")]
    later(cluster)
    back = at_the_power_off(Play(cluster, run="r2", direction="recover"), lambda: cluster.node(ready=False, **marks))
    found = back.go()
    assert (found["result"], "Node node-1 exists again" in found["detail"]) == (result, bool(marks))
    assert audit_rules.unfinished(entry(cluster)) is bool(marks)


def test_a_recovery_that_has_the_name_of_an_earlier_run_ends_the_failover(cluster):
    cluster.off = False
    sent(Play(cluster)).go()
    cluster.off = True
    assert Play(cluster, run="r2", delete_node=True).go()["result"] == "moved"
    for result, commands in (("recovered", ["on"]), ("skipped", [])):
        later(cluster)
        back = Play(cluster, run="r1", direction="recover")
        assert (back.go()["result"], back.commands, entry(cluster)["result"]) == (result, commands, "recovered")


@pytest.mark.parametrize(("module", "name"), [(writer, "_record_result"), (audit, "_store"), (writer, "_attempt")])
def test_a_run_reports_its_own_result(cluster, monkeypatch, module, name):
    """It was paused at this function for so long that another run has taken over."""
    cluster.off = False
    goes_on = getattr(module, name)

    def pause(*arguments):
        monkeypatch.setattr(module, name, goes_on)
        later(cluster)
        cluster.off = True
        assert Play(cluster, run="r2").go()["result"] == "moved"
        return goes_on(*arguments)

    play = sent(at_the_power_off(Play(cluster), lambda: monkeypatch.setattr(module, name, pause)))
    result = play.go()
    assert (result["result"], "COULD NOT BE RECORDED" in result["detail"]) == ("failed", True)
    assert play.turn["report"]["why"]
    assert entry(cluster)["result"] == "moved"


def test_a_failover_does_not_undo_the_recovery_of_its_deleted_node(cluster):
    """No claim excludes the recovery."""

    def recovers():
        del cluster.objects[paths.node("node-1")]
        later(cluster)
        assert Play(cluster, run="r2", direction="recover").go()["result"] == "recovered"

    play = at_the_power_off(Play(cluster), recovers)
    assert refused(play, TimedOut("It is on."), sent=True).go()["result"] == "failed"
    assert entry(cluster)["result"] == "recovered"


def test_a_recovery_looks_after_the_machine_of_the_present_boot(cluster):
    """An earlier failover has not ended, but the node has other hardware now, and the next failover was killed."""
    sent(Play(cluster, fence="redfish", uri="https://bmc-1")).go()
    cluster.node(ready=False, boot_id="boot-9")
    later(cluster)
    play = Play(cluster, run="r2", fence="redfish", uri="https://bmc-9")
    play.call(done="claim")
    later(cluster)

    result = Play(cluster, run="r3", direction="recover", uri="https://bmc-9").go()
    assert (result["result"], result["operation"]) == ("recovered", play.turn["operation"])
    assert not audit_rules.unfinished_of(cluster.objects[AUDIT]["data"])


@pytest.mark.parametrize("boot_id", ["boot-1", "boot-2"])
def test_a_node_can_not_hide_a_failover_from_its_recovery_behind_one_that_is_over(cluster, boot_id):
    first = Play(cluster).go()["operation"]
    later(cluster)
    Play(cluster, run="r2", direction="recover").go()
    later(cluster)
    ready_is(cluster, "Unknown", AT)
    cluster.off = False
    second = sent(Play(cluster, run="r3")).go()["operation"]
    forge(cluster, id=first, phase="taint", boot_id=boot_id)

    back = Play(cluster, run="r4", direction="recover")
    assert back.go()["operation"] == second
    assert not audit_rules.unfinished_of(cluster.objects[AUDIT]["data"])


def forge(cluster, **changes):
    """Let the node write another record."""
    annotations = cluster.objects[paths.node("node-1")]["metadata"]["annotations"]
    annotations["holdfast.dev/failover"] = json.dumps({**RECORD, "result": "", **changes})


def test_a_failover_that_is_resumed_from_the_history_is_confirmed(cluster, monkeypatch):
    """The record on the Node is of another boot: by it, the node came back."""
    sent(Play(cluster)).go()
    later(cluster)
    forge(cluster, id="another", phase="claim", boot_id="another-boot")
    ready_is(cluster, "False", AT)

    def comes_back(api, _collection, _name, _until, _deadline):
        ready_is(cluster, "True", AT)
        return api.find(paths.node("node-1"))

    monkeypatch.setattr(confirm, "wait_for", comes_back)
    again = Play(cluster, run="r2", confirm_seconds=30)
    result = again.go()
    assert ("came back" in result["detail"], again.commands) == (True, [])


def test_a_moved_failover_whose_record_was_removed_is_resumed(cluster):
    """Otherwise nothing leads to the key of its host."""
    first = Play(cluster).go()["operation"]
    del cluster.objects[paths.node("node-1")]["metadata"]["annotations"]["holdfast.dev/failover"]
    later(cluster)
    result = Play(cluster, run="r2").go()
    assert (result["result"], result["operation"], result["resumed"]) == ("moved", first, True)
    assert cluster.marks()["failover"]["facts"]["fence"] == "command"


def test_a_run_that_finds_its_node_deleted_by_another_one_changes_nothing(cluster):
    """It was paused before it sent anything. The other run has moved everything, and nothing has a claim."""
    play = Play(cluster)
    act = play.act

    def pause(name, arguments):
        if name == "cordon":
            later(cluster)
            assert Play(cluster, run="r2", delete_node=True).go()["result"] == "moved"
        return act(name, arguments)

    play.act = pause
    assert (play.go()["result"], entry(cluster)["result"]) == ("failed", "moved")
    later(cluster)
    back = Play(cluster, run="r3", direction="recover")
    assert (back.go()["result"], back.commands) == ("recovered", ["on"])


@pytest.mark.parametrize("phase", ["claim", "fence"])
def test_a_node_can_not_hide_a_failover_from_its_recovery_behind_an_unknown_one(cluster, phase):
    first = sent(Play(cluster)).go()["operation"]
    forge(cluster, id="another", phase=phase, boot_id="another-boot")
    later(cluster)
    back = Play(cluster, run="r2", direction="recover")
    assert (back.go()["operation"], back.commands) == (first, ["on"])
    assert not audit_rules.unfinished_of(cluster.objects[AUDIT]["data"])


@pytest.fixture
def own_host(monkeypatch):
    """metal3 has a host for the node, without a key."""
    own = {"name": "own", "namespace": "metal", "node": "node-1", "acts": True, "keys": [], "powered_on": True}
    monkeypatch.setattr(turns, "bare_metal_host_info", lambda *_arguments: {"hosts": [own]})


VICTIM = {"fence": "metal3", "host": "victim", "namespace": "other", "key": "k", "uri": "https://bmc-2", "plug": "2"}


@pytest.mark.parametrize("phase", ["claim", "fence"])
@pytest.mark.parametrize("fence", ["command", "redfish", ["redfish", "command"], "metal3"])
@pytest.mark.usefixtures("own_host")
def test_what_a_node_writes_of_its_way_does_not_reach_the_history(cluster, fence, phase):
    """Else its recovery removes the key from the host of another machine."""
    forge(cluster, id="node-1.x", phase=phase, facts=VICTIM)
    forward = Play(cluster, fence=fence, given=() if fence == "metal3" else GIVEN, uri="https://bmc-1", key="mine")
    assert forward.go()["result"] == "moved"
    assert not {"victim", "other", "https://bmc-2", "2"} & {entry(cluster).get(name) for name in VICTIM}
    later(cluster)
    back = Play(cluster, run="r2", direction="recover", fence=fence, uri="https://bmc-1")
    assert (back.go()["result"], "key" in back.done) == ("recovered", fence == "metal3")


@pytest.mark.parametrize("writes", range(1, 10))
def test_a_recovery_that_has_lost_record_and_history_switches_on_each_time(cluster, writes):
    """It is killed after any write. Only the taint and the user's settings say that the machine was switched off."""
    Play(cluster).go()
    del (
        cluster.objects[AUDIT],
        cluster.objects[paths.node("node-1")]["metadata"]["annotations"]["holdfast.dev/failover"],
    )
    later(cluster)
    dead = Play(cluster, run="r2", direction="recover")
    killed_after(cluster, writes, dead)
    later(cluster)
    back = Play(cluster, run="r3", direction="recover")
    assert (back.go()["result"], {*dead.commands, *back.commands}) == ("recovered", {"on"})


@pytest.mark.usefixtures("own_host")
def test_a_way_with_which_nothing_was_sent_is_forgotten(cluster, monkeypatch):
    """Its run could not undo the cordon, so its record stays. The host has no key, and its mode may be hard."""

    def fails(*_arguments, **_more):
        raise Unreachable("The API server gives no answer.")

    with monkeypatch.context() as patched:
        patched.setattr(turns._Turn, "_undo", fails)
        refused(Play(cluster, fence="metal3", given=(), key="k", soft_timeout=0), Held("It is held.")).go()
    later(cluster)
    assert Play(cluster, run="r2", fence="redfish", uri="https://bmc").go()["result"] == "moved"
    assert {entry(cluster).get(name) for name in ("host", "namespace", "key", "mode")} == {None}


@pytest.mark.parametrize("writes", range(1, 14))
def test_check_mode_says_what_a_failover_after_a_dead_recovery_does(cluster, writes):
    Play(cluster).go()
    later(cluster)
    killed_after(cluster, writes, Play(cluster, run="r2", direction="recover"))
    later(cluster)
    before = json.dumps(cluster.objects)
    planned = Play(cluster, run="r3").go(check_mode=True)
    assert json.dumps(cluster.objects) == before
    cluster.dry_run = False
    found = Play(cluster, run="r4").go()
    assert planned["result"] in (found["result"], "planned"), (planned, found)


@pytest.mark.parametrize("lost", ["", "record", "history"])
@pytest.mark.parametrize("fence", ["fence_agent", "redfish", "command"])
def test_a_recovery_of_a_node_to_whose_machine_nothing_was_sent_switches_nothing_on(cluster, fence, lost):
    """Its run was killed after the cordon, or before the history had its failover. Or its record was removed."""
    play = Play(cluster, fence=fence)
    play.call(done="claim")
    cordon = {"name": "node-1", "owner": "failover", "run": play.turn["run"], "state": "cordoned"}
    play.done.append("cordon")
    play.act("cordon", cordon)
    if lost == "record":
        del cluster.objects[paths.node("node-1")]["metadata"]["annotations"]["holdfast.dev/failover"]
    elif lost:
        del cluster.objects[AUDIT]
    later(cluster)
    back = Play(cluster, run="r2", direction="recover", fence=fence, given=())
    assert (back.go()["result"], back.commands) == ("recovered", [])
    assert (cluster.marks(), cluster.cordoned()) == ({}, False)


@pytest.mark.parametrize("delete_node", [True, False])
def test_a_lease_that_can_not_be_deleted_does_not_change_the_result(cluster, monkeypatch, delete_node):
    def fails(*_arguments):
        raise Unreachable("The API server gives no answer.")

    monkeypatch.setattr(writer.runs, "end", fails)
    assert Play(cluster, delete_node=delete_node).go()["result"] == "moved"
    assert entry(cluster)["result"] == "moved"


def test_a_run_whose_record_was_removed_returns_its_claim(cluster):
    def remove():
        del cluster.objects[paths.node("node-1")]["metadata"]["annotations"]["holdfast.dev/failover"]

    assert at_the_power_off(Play(cluster), remove).go()["result"] == "failed"
    assert "claim" not in cluster.marks()
    assert audit_rules.unfinished(entry(cluster))


def test_a_recovery_without_the_history_is_resumed(cluster):
    """The first recovery begins the history again, and is killed."""
    assert Play(cluster).go()["result"] == "moved"
    del cluster.objects[AUDIT]
    killed = Play(cluster, run="r2", direction="recover")
    killed.failing = {"power_on": Killed()}
    with pytest.raises(Killed):
        killed.go()
    later(cluster)
    back = Play(cluster, run="r3", direction="recover")
    assert (back.go()["result"], back.commands) == ("recovered", ["on"])


def test_a_claim_whose_answer_is_lost_is_returned(cluster):
    def lose(_verb, path, _body):
        if path == paths.node("node-1") and "claim" in cluster.marks():
            cluster.hooks.clear()
            raise Unreachable("The API server gives no answer.")

    cluster.hooks.append(lose)
    play = Play(cluster)
    with pytest.raises(Unreachable):
        play.call(done="claim")
    assert (cluster.marks(), [path for path in cluster.objects if "/leases/" in path]) == ({}, [])


def test_a_recovery_asks_for_a_machine_that_a_person_has_switched_off(cluster):
    """The run was killed before it recorded the statement."""
    words = {"attestation_by": "Ada", "attestation_statement": "I pulled the cords of node-1.", "attestation_at": AT}
    Play(cluster, fence="attestation", given=(), **words).call(done="claim")
    later(cluster)
    back = Play(cluster, run="r2", direction="recover", given=())
    assert (back.go()["result"], back.done[0]) == ("recovered", "ask")


def test_a_repeated_recovery_switches_on_only_what_was_switched_off(cluster):
    """The failover was killed before its power-off, and the first recovery before its end."""
    Play(cluster).call(done="claim")
    later(cluster)
    killed = Play(cluster, run="r2", direction="recover")
    killed.failing = {"ready": Killed()}
    with pytest.raises(Killed):
        killed.go()
    later(cluster)
    back = Play(cluster, run="r3", direction="recover")
    assert (back.go()["result"], back.commands) == ("recovered", [])
