# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The turns of a failover against a cluster in memory, in the order of the role's own files."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

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
from unit.reboot.memory_cluster import AT, NOW

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    HoldfastError,
    TimedOut,
    Unreachable,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import confirm
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import turn as turns
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.journey_rules import (
    FAILOVER_STEPS,
    RECOVER_STEPS,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.steps import _FailoverStep


@pytest.fixture
def cluster(monkeypatch):
    return silent_node(monkeypatch)


def test_there_and_back(cluster):
    play = Play(cluster, reason="its disk has failed")
    moved = play.go()
    assert play.done == list(FAILOVER_STEPS)
    assert (moved["result"], moved["detail"]) == ("moved", "1 pod and 1 VolumeAttachment gone")
    assert [item["state"] for item in (*moved["pods"], *moved["volume_attachments"])] == ["gone", "gone"]
    assert [step["step"] for step in entry(cluster)["steps"]] == ["claim", "fence", "taint", "move", "moved"]
    assert cluster.cordoned()
    assert "claim" not in cluster.marks()
    assert play.turn["steps"] == []
    assert play.turn["report"]["stats"]["failover_moved"] == 1
    assert any("stays off, cordoned and out of service" in line for line in play.turn["report"]["lines"])

    again = Play(cluster, run="r2")
    assert again.go()["result"] == "skipped"
    assert again.done == []

    back = Play(cluster, run="r3", direction="recover")
    recovered = back.go()
    assert back.done == ["power_on", "ready", "in_service", "in_service", "uncordon"]
    assert (recovered["result"], recovered["boot_id_before"], recovered["boot_id_after"]) == (
        "recovered",
        "boot-1",
        "boot-2",
    )
    assert recovered["detail"] == "it is Ready with boot ID boot-2"
    assert (cluster.marks(), cluster.cordoned()) == ({}, False)
    assert entry(cluster)["result"] == "recovered"
    assert Play(cluster, run="r4", direction="recover").go()["detail"] == "it was not failed over"


@pytest.mark.parametrize("writes", range(1, 15))
def test_a_run_that_dies_after_any_write_is_resumed(cluster, writes):
    """The next run ends as an undisturbed one, and only a machine that was requested to switch off gets the taint."""
    play = Play(cluster)
    if not killed_after(cluster, writes, play):
        return
    again = Play(cluster, run="r2")
    result = again.go()

    assert result["result"] in ("moved", "skipped"), result
    assert (play.commands + again.commands)[:1] == ["off"]
    assert entry(cluster)["result"] == "moved"
    assert cluster.cordoned()
    assert "claim" not in cluster.marks()
    assert Play(cluster, run="r3", direction="recover").go()["result"] == "recovered"
    assert (cluster.marks(), cluster.cordoned()) == ({}, False)


def test_a_node_that_is_being_recovered_is_not_deleted(cluster):
    """The run was paused before the deletion, and a recovery has taken the node over."""

    def recovers(_verb, path, _body):
        if path == AUDIT and entry(cluster)["result"] == "moved":
            claim = {"run": "r2", "operation": "op", "purpose": "recover", "since": AT}
            cluster.objects[paths.node("node-1")]["metadata"]["annotations"]["holdfast.dev/claim"] = json.dumps(claim)

    cluster.hooks.append(recovers)
    play = Play(cluster, delete_node=True)
    assert play.go()["result"] == "failed"
    assert "now belongs to run r2 (recover" in play.turn["report"]["why"]
    assert cluster.marks()["claim"]["run"] == "r2"


def test_a_record_of_the_future_does_not_stay_the_last_one(cluster):
    """A node can write its own record."""
    begun = {"phase": "claim", "result": "", "started": "2999-01-01T00:00:00Z"}
    cluster.node(ready=False, failover={**RECORD, **begun})
    Play(cluster).go()
    assert entry(cluster)["started"] == AT


def test_a_node_that_has_booted_since_it_was_checked_is_not_fenced(cluster):
    """The run was paused between its last check and its record. The node works again, and its kubelet restarts."""

    checked = _FailoverStep._begin

    def pause(self, *arguments, **more):
        cluster.objects[paths.node("node-1")]["status"]["nodeInfo"]["bootID"] = "boot-2"
        return checked(self, *arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_FailoverStep, "_begin", pause)
        play = Play(cluster)
        result = play.go()
    assert "has booted again (boot ID boot-2)" in result["detail"]
    assert (play.commands, cluster.marks()) == ([], {})


def test_a_node_that_was_ready_meanwhile_and_has_just_stopped_is_not_fenced(cluster, monkeypatch):
    """The run was paused after its cordon. Meanwhile the node was Ready, and now its kubelet restarts."""
    ready_is(cluster, "Unknown", "2026-11-21T08:00:00Z")
    play = Play(cluster, confirm_seconds=30)
    act = play.act

    def pause(name, arguments):
        found = act(name, arguments)
        if name == "cordon":
            ready_is(cluster, "False", "2026-11-21T08:59:59Z")
        return found

    def comes_back(api, _collection, _name, _until, _deadline):
        ready_is(cluster, "True", AT)
        return api.find(paths.node("node-1"))

    monkeypatch.setattr(play, "act", pause)
    monkeypatch.setattr(confirm, "wait_for", comes_back)
    result = play.go()
    assert (result["result"], cluster.marks(), cluster.cordoned()) == ("stopped", {}, False)


LOST = {"failed": True, "msg": "The lookup plugin 'hashi_vault' failed: 503"}


def switch_off(play):
    """Go on until the machine is off."""
    play.call(done="claim")
    play.done.append("cordon")
    play.act("cordon", {})
    play.call(done="cordon")
    play.done.append("fence")
    play.act("failover_power", {"power": "off"})


def test_a_task_that_fails_before_its_module_runs_knows_how_far_the_run_came(cluster, tmp_path):
    """The machine is off, and the node of an earlier failover is in the report."""
    play = Play(cluster)
    play.folder = str(tmp_path)
    play.begin("node-0", "node-1")
    switch_off(play)
    play.turn = LOST
    play.call(failed=LOST, task="Check the node again")
    (result,) = play.turn["report"]["content"]["nodes"]
    assert (result["result"], play.turn["report"]["content"]["summary"]["run"]) == ("failed", "r1")
    assert (cluster.marks()["failover"]["result"], "claim" in cluster.marks()) == ("failed", False)
    assert cluster.cordoned(), "it stays as it is, and the next run resumes"

    play.turn = LOST
    play.call(name="node-0", failed=LOST, task="Claim the node")
    assert [item["result"] for item in play.turn["report"]["content"]["nodes"]] == ["failed", "refused"]


def test_an_answer_is_kept_once_however_many_nodes_the_run_has(cluster, tmp_path):
    play = Play(cluster)
    play.folder = str(tmp_path)
    play.begin("node-1", *(f"other-{number}" for number in range(50)))
    before = {path: path.stat().st_ino for path in tmp_path.iterdir()}
    play.call(done="claim")
    # A written file is a new one.
    assert len([path for path in tmp_path.iterdir() if before.get(path) != path.stat().st_ino]) == 1


def test_hosts_whose_runs_have_the_same_name_keep_their_own_answers(cluster, tmp_path):
    """Two hosts of a playbook with the same failover_run, each with its own node."""
    cluster.node("node-2", ready=False)
    first, second = Play(cluster), Play(cluster)
    for play, host, name in ((first, "a", "node-1"), (second, "b", "node-2")):
        play.folder, play.host = str(tmp_path), host
        play.begin(name)
    switch_off(first)
    second.call(name="node-2", done="claim")
    first.turn = LOST
    first.call(failed=LOST, task="Record that it is off")
    (result,) = first.turn["report"]["content"]["nodes"]
    assert (result["name"], result["result"]) == ("node-1", "failed")
    assert (cluster.marks()["failover"]["result"], "claim" in cluster.marks()) == ("failed", False)


def test_a_run_that_has_lost_its_name_begins_nothing(cluster):
    """Two such runs would have the same claim. The folder of the kept answers was cleaned."""
    play = Play(cluster)
    play.turn = LOST
    play.call(failed=LOST, task="Check the node again")
    (result,) = play.turn["report"]["content"]["nodes"]
    assert (result["result"], "The machine may be off" in result["detail"]) == ("failed", True)
    cluster.node("node-2", ready=False)
    play.call(name="node-2", done="claim")
    first, second = play.turn["report"]["content"]["nodes"]
    assert first == result, "the report keeps it"
    assert (second["result"], "Nothing was done with node node-2" in second["detail"]) == ("refused", True)
    assert "may be off" not in second["detail"]
    assert play.turn["steps"] == ["fail"]
    assert cluster.marks() == {}


def test_check_mode_changes_nothing(cluster):
    before = json.dumps(cluster.objects, sort_keys=True)
    planned = Play(cluster).go(check_mode=True)
    assert (planned["result"], planned["detail"]) == ("planned", "the next step would be: fence")
    assert json.dumps(cluster.objects, sort_keys=True) == before


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"ready": True}, "is Ready"),
        ({"ready": False, "labels": {"node-role.kubernetes.io/control-plane": ""}}, "failover_quorum_command"),
    ],
)
def test_what_is_refused_leaves_nothing(cluster, node, words):
    cluster.node(**node)
    play = Play(cluster)
    refused = play.go()
    assert refused["result"] == "refused"
    assert words in refused["detail"]
    # It is said once, by the task that fails at the end.
    assert (play.failed, play.turn["steps"]) == ([], ["fail"])
    assert refused["detail"] in play.turn["report"]["why"]
    assert refused["detail"] not in str(play.turn["report"]["lines"])
    assert cluster.marks() == {}


def test_a_member_of_etcd_without_the_label_of_the_control_plane_is_refused(cluster):
    cluster.node("node-2")
    for name in ("node-1", "node-2"):
        cluster.etcd_pod(name)
    assert "without it 1 of etcd's 2 members" in Play(cluster).go()["detail"]


def test_check_mode_refuses_as_a_run_does(cluster):
    cluster.hold()
    play = Play(cluster)
    planned = play.go(check_mode=True)
    assert (planned["result"], play.failed, play.turn["steps"]) == ("refused", [], ["fail"])


def test_a_held_node_is_refused_and_the_run_says_so(cluster):
    cluster.hold()
    play = Play(cluster, report="/tmp/report.json")
    assert play.go()["result"] == "refused"
    assert play.turn["steps"] == ["report", "fail"]
    assert "held by" in play.turn["report"]["why"] or "is held" in play.turn["report"]["why"]


@pytest.mark.parametrize(("error", "sent"), [("bmc", None), ("came_back", None), ("command", True)])
def test_a_failure_at_the_power_off(cluster, error, sent):
    play = Play(cluster)
    failed = HoldfastError("It did not work.", **({} if sent is None else {"sent": sent}))
    failed.kind = error
    play.failing = {"fence": failed}
    result = play.go()
    refused = error == "came_back"
    assert result["result"] == ("stopped" if refused else "failed")
    assert result["detail"].startswith("Switch the machine off: It did not work.")
    # Of what was not sent, nothing is left.
    assert cluster.cordoned() is not refused
    assert "claim" not in cluster.marks()


def test_a_defect_leaves_the_node_for_the_next_run(cluster, monkeypatch):
    play = Play(cluster)
    monkeypatch.setattr(turns.journey_rules, "contents", lambda *_arguments: 1 / 0)
    result = play.go()
    assert result["result"] == "failed"
    assert "ZeroDivisionError" in result["detail"]
    assert (cluster.marks()["failover"]["phase"], "claim" in cluster.marks()) == ("move", False)


def test_a_command_that_an_earlier_run_has_started_is_not_started_again(cluster):
    play = Play(cluster)
    play.failing = {"taint": HoldfastError("The API is unavailable.")}
    assert play.go()["result"] == "failed"
    assert cluster.marks()["failover"]["phase"] == "taint"

    again = Play(cluster, run="r2")
    assert again.go()["result"] == "moved"
    assert again.done == ["cordon", "taint", "move"]
    assert (play.commands, again.commands) == (["off"], [])


def test_it_is_started_again_while_the_machine_is_on(cluster):
    play = Play(cluster)
    play.failing = {"taint": HoldfastError("The API is unavailable.")}
    play.go()
    cluster.off = False
    again = Play(cluster, run="r2")
    again.go()
    assert again.commands == ["off"]


def test_it_comes_back_under_the_taint(cluster):
    play = Play(cluster)
    play.failing = {"move": HoldfastError("It came back.", back=True)}
    result = play.go()
    assert result["result"] == "failed"
    assert "It is back, but still has the taint: run the playbook recover" in result["detail"]
    assert cluster.cordoned()
    assert cluster.marks()["failover"]["result"] == "failed"


def test_it_comes_back_before_the_taint(cluster):
    play = Play(cluster)
    act = play.act

    def wake(name, arguments):
        found = act(name, arguments)
        if play.commands:
            play.boot("boot-1")
        return found

    play.act = wake
    result = play.go()
    assert result["result"] == "failed"
    assert (
        "The machine of failover_fence_command was requested to switch off and may be off. Run the playbook recover"
        in (result["detail"])
    )
    assert cluster.cordoned()


AGENT = json.dumps({"name": "fence_pdu", "plug": "7", "options": {"ip": "pdu", "password": "hunter2"}})
URI = "https://bmc/redfish/v1/Systems/1"


def by_agent(cluster, **options):
    play = Play(cluster, **{"fence": "fence_agent", "given": (), **options})
    call = play.call
    play.call = lambda **more: call(**more, proof={"agent": AGENT})
    return play


def test_a_fence_agent(cluster):
    play = by_agent(cluster)
    assert play.go()["result"] == "moved"
    assert play.turn["method"] == "fence_agent"
    found = entry(cluster)
    assert (found["fence"], found["agent"], found["plug"]) == ("fence_agent", "fence_pdu", "7")
    assert "hunter2" not in json.dumps([play.turn, found, cluster.objects])

    refused = Play(cluster, run="r2", direction="recover", given=()).go()
    assert "failover_fence_agent is not set" in refused["detail"]
    back = by_agent(cluster, run="r3", direction="recover")
    assert back.go()["result"] == "recovered"
    assert back.done[0] == "power_on"
    assert back.commands == ["on"]


EVIL = "https://evil/redfish/v1/Systems/1"


def rewrite(cluster, **changes):
    """What the node's kubelet, or someone with its credentials, can do to the record."""
    record = cluster.marks()["failover"]
    record = {**record, **changes, "facts": {**record["facts"], **changes.get("facts", {})}}
    node = cluster.objects[paths.node("node-1")]
    node["metadata"]["annotations"]["holdfast.dev/failover"] = json.dumps(record)


@pytest.mark.parametrize(
    "changes",
    [
        {"facts": {"uri": EVIL}},
        # As if it were another failover, which the history does not have yet.
        {"facts": {"uri": EVIL}, "id": "op-2", "started": "2027-01-01T00:00:00Z"},
        {"facts": {"uri": EVIL}, "id": "op-2", "phase": "power_on", "result": ""},
    ],
)
@pytest.mark.parametrize("before", [[], ["failover"], ["recover", "recover"]])
def test_a_node_does_not_choose_the_receiver_of_the_credentials(cluster, changes, before):
    """Neither now, nor in a later run after the history was written again. The history says where they go."""
    assert Play(cluster, fence="redfish", given=(), uri=URI).go()["result"] == "moved"
    rewrite(cluster, **changes)
    seen = []
    for number, direction in enumerate([*before, "recover"]):
        uri = URI if direction == "failover" else ""
        back = Play(cluster, run=f"r{number + 2}", direction=direction, fence="redfish", given=(), uri=uri)
        at_the_power_off(back, lambda back=back: seen.append(back.turn["bmc"]["uri"]))
        back.go()
    assert seen == [URI] * before.count("recover") or seen == [URI]
    assert EVIL not in [json.loads(text).get("uri") for text in cluster.objects[AUDIT]["data"].values()]


def test_no_credentials_are_sent_without_the_history(cluster):
    """Only the Node's record is left, and a node can write that."""
    assert Play(cluster, fence="redfish", given=(), uri=URI).go()["result"] == "moved"
    del cluster.objects[AUDIT]
    back = Play(cluster, run="r2", direction="recover", given=())
    assert "A node can write its own annotations, so no credentials were sent" in back.go()["detail"]
    assert back.commands == []
    assert Play(cluster, run="r3", direction="recover", given=(), uri=URI).go()["result"] == "recovered"


def test_the_url_of_the_history_is_used(cluster):
    assert Play(cluster, fence="redfish", given=(), uri=URI).go()["result"] == "moved"
    back = Play(cluster, run="r2", direction="recover", given=())
    power, seen = back.act, []
    back.act = lambda name, arguments: (seen.append(back.turn["bmc"]["uri"]), power(name, arguments))[1]
    assert back.go()["result"] == "recovered"
    assert seen[0] == URI


def test_the_way_that_worked_is_the_proof_and_is_undone(cluster):
    play = by_agent(cluster, fence=["redfish", "fence_agent"], uri=URI)
    attempts = [{"method": "redfish", "why": "It does not answer."}]
    seen = []

    def power(turn):
        seen.append((turn["method"], turn["facts"], turn["then"]))
        (way,) = turn["then"]
        return {"method": way["method"], "facts": {**way["facts"], "attempts": attempts}}

    play.power = power
    result = play.go()
    facts = {"fence": "fence_agent", "agent": "fence_pdu", "plug": "7"}
    assert seen == [
        ("redfish", {"fence": "redfish", "uri": URI}, [{"method": "fence_agent", "facts": facts, "bmc": {}}])
    ]
    assert (result["result"], result["attempts"]) == ("moved", attempts)
    assert (play.turn["method"], play.turn["evidence"]) == ("fence_agent", {"kind": "FenceAgent"})
    assert play.turn["facts"].items() >= facts.items()
    assert "node-1: redfish failed: It does not answer." in play.turn["report"]["lines"]


def test_a_later_way_may_have_acted(cluster):
    play = by_agent(cluster, fence=["redfish", "fence_agent"], uri=URI)
    facts = {"fence": "fence_agent", "agent": "fence_pdu", "plug": "7"}
    play.failing = {"fence": HoldfastError("It came back.", sent=True, method="fence_agent", facts=facts, back=True)}
    result = play.go()
    assert (result["result"], "recover" in result["detail"]) == ("failed", True)


def test_another_run_continues_with_the_way_that_was_begun(cluster):
    play = by_agent(cluster, fence=["redfish", "fence_agent"], uri=URI)
    play.failing = {"taint": HoldfastError("The API is unavailable.")}
    play.power = lambda turn: {"method": "redfish", "facts": turn["facts"]}
    assert play.go()["result"] == "failed"
    assert cluster.marks()["failover"]["facts"]["fence"] == "redfish"

    seen = []
    again = by_agent(cluster, run="r2", fence=["fence_agent", "redfish"], uri=URI)
    again.power = lambda turn: seen.append((turn["method"], turn["then"])) or {}
    again.go()
    assert seen == [("redfish", [])]


def test_metal3_is_left_out_without_a_host(cluster, monkeypatch):
    monkeypatch.setattr(turns, "bare_metal_host_info", lambda _context, _params: {"hosts": []})
    play = by_agent(cluster, fence=["metal3", "fence_agent"])
    result = play.go()
    assert result["result"] == "moved"
    ((way, why),) = [(item["method"], item["why"]) for item in result["attempts"]]
    assert (way, "was not found" in why) == ("metal3", True)
    assert entry(cluster)["fence"] == "fence_agent"


def test_a_person_vouches(cluster):
    words = {"attestation_by": "Ada", "attestation_statement": "I pulled the cords of node-1.", "attestation_at": AT}
    play = Play(cluster, fence="attestation", given=(), **words)
    assert play.go()["result"] == "moved"
    assert play.done == ["cordon", "taint", "move"]
    assert entry(cluster)["attested_by"] == "Ada"
    back = Play(cluster, run="r2", direction="recover", given=())
    assert back.go()["result"] == "recovered"
    assert back.done == ["ask", "ready", "in_service", "in_service", "uncordon"]


def test_a_node_that_is_deleted(cluster):
    assert Play(cluster, delete_node=True).go()["result"] == "moved"
    assert paths.node("node-1") not in cluster.objects
    assert Play(cluster, run="r2").go()["result"] == "skipped"

    nobody = Play(cluster, run="r3", direction="recover", given=()).go()
    assert nobody["result"] == "failed"
    assert "by a command: set failover_power_on_command" in nobody["detail"]
    assert "RECORDED" not in nobody["detail"]
    assert not [path for path in cluster.objects if "/leases/run." in path]
    assert entry(cluster)["result"] == "moved"

    back = Play(cluster, run="r4", direction="recover")
    assert back.go()["detail"] == "its Node was deleted, so only its host was released"
    assert back.done == ["power_on"]
    assert Play(cluster, run="r5", direction="recover").go()["detail"] == "it was recovered before"


@pytest.mark.parametrize("direction", ["failover", "recover"])
def test_a_node_that_others_delete_leaves_no_lease(cluster, direction):
    if direction == "recover":
        Play(cluster).go()
    play = Play(cluster, run="r2", direction=direction)
    act = play.act

    def delete(name, arguments):
        found = act(name, arguments)
        cluster.objects.pop(paths.node("node-1"), None)
        return found

    play.act = delete
    result = play.go()
    assert result["result"] == "failed"
    assert (entry(cluster)["result"], "node-1" in entry(cluster)["detail"]) == ("failed", True)
    assert [path for path in cluster.objects if "/leases/" in path] == []


def test_a_node_with_its_old_boot_id_was_never_off(cluster):
    Play(cluster).go()
    back = Play(cluster, run="r2", direction="recover")
    back.boot = lambda _boot_id: None
    act = back.act
    back.act = lambda name, arguments: {"boot_id": "boot-1"} if name == "node_ready" else act(name, arguments)
    result = back.go()
    assert result["result"] == "failed"
    assert "its boot ID is still boot-1, so it was never off" in result["detail"]
    assert cluster.marks()["failover"]["phase"] == "ready"

    forced = Play(cluster, run="r3", direction="recover", force=True)
    act_forced = forced.act
    forced.act = lambda name, arguments: {"boot_id": "boot-1"} if name == "node_ready" else act_forced(name, arguments)
    assert forced.go()["result"] == "recovered"


def test_a_run_that_lost_its_claim_writes_nothing_more(cluster):
    play = Play(cluster)
    act = play.act

    def lose(name, arguments):
        found = act(name, arguments)
        node = cluster.objects[paths.node("node-1")]
        claim = json.loads(node["metadata"]["annotations"]["holdfast.dev/claim"])
        node["metadata"]["annotations"]["holdfast.dev/claim"] = json.dumps({**claim, "run": "another"})
        return found

    play.act = lose
    result = play.go()
    assert result["result"] == "failed"
    assert cluster.marks()["claim"]["run"] == "another"
    assert (cluster.marks()["failover"]["result"], cluster.cordoned()) == ("", True)


def test_the_quorum_is_asked_before_the_claim_and_before_the_power_off(cluster, tmp_path):
    cluster.node(ready=False, labels={"node-role.kubernetes.io/control-plane": ""})
    log, script = tmp_path / "log", tmp_path / "quorum"
    script.write_text(
        f"#!/bin/sh\necho $HOLDFAST_NODE >> {log}\n[ $(wc -l < {log}) -lt 2 ] || {{ echo away; exit 1; }}\n"
    )
    script.chmod(0o755)
    play = Play(cluster, given=(*GIVEN, "quorum_command"))
    call = play.call
    play.call = lambda **options: call(**options, quorum_command=str(script))
    result = play.go()
    assert log.read_text().split() == ["node-1", "node-1"]
    assert result["detail"].startswith("Check the node again before the power-off: failover_quorum_command")
    assert any("failover_quorum_command for node node-1: away" in line for line in play.said)
    assert "away" not in json.dumps(result)
    assert (result["result"], play.commands, cluster.marks(), cluster.cordoned()) == ("failed", [], {}, False)


def test_the_steps_of_the_role_are_those_of_the_rules():
    """In their order; one step may be several tasks."""
    for direction, steps in (("failover", FAILOVER_STEPS), ("recover", RECOVER_STEPS)):
        whens = [when for _task, _name, _arguments, when, _kept in Play(None, direction=direction)._tasks() if when]
        assert list(dict.fromkeys(when.split("'")[1] for when in whens)) == list(steps)
        assert all(when == f"'{when.split(chr(39))[1]}' in __failover_turn.steps" for when in whens)


def test_the_id_of_a_live_run_is_refused(cluster):
    cluster.lives("nightly/node-1")
    before = json.dumps(cluster.objects, sort_keys=True)
    play = Play(cluster, run="nightly")
    play.settings["run"] = "nightly"

    found = play.call(done="claim")

    (result,) = found["report"]["content"]["nodes"]
    assert result["result"] == "refused"
    assert "Run nightly/node-1 of nightly/node-1 is active" in result["detail"]
    assert json.dumps(cluster.objects, sort_keys=True) == before


def test_an_api_outage_at_one_node_keeps_the_results_of_the_others(cluster, monkeypatch):
    play = Play(cluster, run="nightly")
    play.settings["run"] = "nightly"
    assert play.go()["result"] == "moved"

    def away(_cluster, _run, _option):
        raise Unreachable("The API server did not answer.")

    monkeypatch.setattr(turns.runs, "refuse_live", away)
    with pytest.raises(Unreachable) as error:
        play.call(done="claim", name="node-2")
    play.call(failed=error.value.as_result(), name="node-2", task="Claim")

    content = play.turn["report"]["content"]
    assert [item["name"] for item in content["nodes"]] == ["node-1", "node-2"]
    assert content["summary"]["run"] == "nightly"


def test_jobs_of_the_same_number_are_different_runs(cluster):
    who = {"job": "812", "host": "bastion", "person": "ada"}
    ids = {
        Play(cluster).call(done="nothing", who=who, checked=[{"name": "node-1", "machines": {}}])["report"]["content"][
            "summary"
        ]["run"]
        for _time in range(20)
    }
    assert len(ids) > 1
    assert all(name.startswith("812-") for name in ids)


def test_each_node_begins_with_the_ways_that_the_user_gave(cluster, monkeypatch):
    """The node before ended with metal3. This one's host is paused, so it is switched off over Redfish."""
    cluster.node("node-2", ready=False)
    hosts = {"node-1": turns.Host("h1", "m", "node-1"), "node-2": turns.Host("h2", "m", "node-2", "it is paused")}
    monkeypatch.setattr(turns._Turn, "_hosts", lambda _turn, _name, _namespace, node: (hosts[node],))
    play = Play(cluster, fence=["metal3", "redfish"], given=(), uri="https://bmc/redfish/v1/Systems/1")
    assert play.call(done="claim")["progress"]["fence"] == "metal3"

    second = play.call(done="claim", name="node-2")

    assert (second["step"], second["progress"]["fence"]) == ("go", "redfish")


class TestReplacedMeanwhile:
    """A failover is killed after it has switched a host off, and other hardware joins as the same Node."""

    @pytest.fixture
    def removed(self, cluster, monkeypatch):
        """The keys that the next run removes."""
        found = []
        host = turns.Host("h1", "m", "node-1", keys_for=(("k", "node-1"),), powered_on=False)
        monkeypatch.setattr(turns._Turn, "_hosts", lambda turn, *_arguments: (replace(host, powered_on=turn.powered),))
        monkeypatch.setattr(turns._Turn, "powered", False, raising=False)
        monkeypatch.setattr(turns, "reboot_annotation", lambda _context, params: found.append(params["key"]))
        killed = self.play(cluster, run="r1")
        killed.failing = {"taint": Killed()}
        with pytest.raises(Killed):
            killed.go()
        leases_expire(cluster)
        killed.boot("boot-2")
        return found

    def play(self, cluster, **options):
        return Play(cluster, fence="metal3", given=(), key="k", **options)

    def test_the_old_host_stays_off(self, cluster, removed):
        stopped = self.play(cluster, run="r2").go()
        assert (stopped["result"], removed) == ("failed", [])
        assert "If other hardware runs as node node-1 now" in stopped["detail"]
        assert (cluster.marks()["failover"]["facts"]["key"], cluster.cordoned()) == ("k", True)
        assert "claim" not in cluster.marks()
        assert self.play(cluster, run="r3", direction="recover").go()["result"] == "refused"

    def test_a_host_that_is_on_is_released(self, cluster, removed, monkeypatch):
        monkeypatch.setattr(turns._Turn, "powered", True)
        assert (self.play(cluster, run="r2").go()["result"], removed) == ("stopped", ["k"])
        assert (cluster.marks(), cluster.cordoned()) == ({}, False)


class TestHostOfAnotherCluster:
    """A node has written another host into its record: that of a node of the same name in another cluster."""

    @pytest.fixture(autouse=True)
    def removed(self, cluster, monkeypatch):
        """The hosts from which a key is removed."""
        found = []
        monkeypatch.setattr(turns._Turn, "_hosts", lambda _turn, name, *_more: (self.host(name or "h1"),))
        monkeypatch.setattr(
            turns, "reboot_annotation", lambda _context, params: found.append(params["bare_metal_host"])
        )
        killed = Play(cluster, fence="metal3", given=(), key="k")
        killed.failing = {"taint": Killed()}
        with pytest.raises(Killed):
            killed.go()
        leases_expire(cluster)
        return found

    @staticmethod
    def host(name):
        keys = (("k", "node-1"),) if name in ("h1", "theirs") else ()
        return turns.Host(name, "m", "node-1" if name == "h1" else None, keys_for=keys)

    @staticmethod
    def write(cluster, **facts):
        annotations = cluster.objects[paths.node("node-1")]["metadata"]["annotations"]
        record = json.loads(annotations["holdfast.dev/failover"])
        annotations["holdfast.dev/failover"] = json.dumps({**record, "facts": {**record["facts"], **facts}})

    @pytest.mark.parametrize("check_mode", [False, True])
    def test_its_key_stays(self, cluster, check_mode):
        """The history was lost."""
        del cluster.objects[AUDIT]
        self.write(cluster, host="theirs")
        play = Play(cluster, run="r2", direction="recover", given=())
        result = play.go(check_mode=check_mode)
        assert (result["result"], play.done) == ("failed", [])
        assert "BareMetalHost m/theirs off, but the ConfigMap holdfast/failovers does not say so" in result["detail"]

    @pytest.mark.parametrize(
        ("lost", "facts", "ends"),
        [
            (True, {"host": "theirs"}, ("failed", [])),
            (False, {"host": "theirs"}, ("stopped", ["h1"])),
            (False, {"host": None, "namespace": None, "key": None}, ("stopped", ["h1"])),
        ],
        ids=str,
    )
    def test_its_key_stays_if_the_node_comes_back(self, cluster, removed, lost, facts, ends):
        """The key of its own host goes, if the history says which one that is."""
        self.write(cluster, **facts)
        if lost:
            del cluster.objects[AUDIT]
        Play(cluster).boot("boot-2")
        planned = Play(cluster, run="r2", fence="metal3", given=(), key="k").go(check_mode=True)
        assert (planned["result"], removed) == (ends[0], [])
        stopped = Play(cluster, run="r2", fence="metal3", given=(), key="k").go()
        assert (stopped["result"], removed) == ends

    @pytest.mark.parametrize("off", [False, True])
    @pytest.mark.parametrize("fence", ["command", "redfish", "attestation"])
    def test_its_key_is_not_forgotten_if_the_history_is_lost(self, cluster, fence, off):
        """The recovery would leave the key on its host, and metal3 would switch the node off again."""
        node = cluster.objects[paths.node("node-1")]
        node["spec"].pop("taints", None)
        node["metadata"]["annotations"].pop("holdfast.dev/evidence", None)
        del cluster.objects[AUDIT]
        cluster.off = off
        again = Play(cluster, run="r2", fence=fence, uri="https://bmc")
        result = again.go()
        assert (result["result"], again.commands) == ("failed", [])
        assert "keeps BareMetalHost m/h1 off" in result["detail"]

    def test_its_key_is_used_again_if_the_history_is_lost(self, cluster):
        """Two keys would keep the host off, and the recovery would remove one of them."""
        del cluster.objects[AUDIT]
        again = Play(cluster, run="r2", fence="metal3", given=(), key="other")
        assert (again.go()["result"], again.turn["facts"]["key"], entry(cluster)["key"]) == ("moved", "k", "k")

    @pytest.mark.parametrize("facts", [{"host": "theirs"}, {"host": None, "namespace": None, "key": None}], ids=str)
    def test_the_history_says_which_host_to_switch_on(self, cluster, facts):
        self.write(cluster, **facts)
        play = Play(cluster, run="r2", direction="recover", given=())
        assert (play.go()["result"], play.turn["facts"]["host"], play.done[0]) == ("recovered", "h1", "key")

    @pytest.mark.parametrize(("namespace", "result"), [("m", "recovered"), ("n", "failed"), ("", "failed")])
    def test_the_user_names_it(self, cluster, namespace, result):
        """The history was lost."""
        del cluster.objects[AUDIT]
        self.write(cluster, host="theirs")
        named = {"bare_metal_host": "theirs", "bare_metal_host_namespace": namespace}
        play = Play(cluster, run="r2", direction="recover", given=(), **named)
        found = play.go()
        assert (found["result"], "key" in play.done) == (result, result == "recovered")
        words = (
            "add -e failover_bare_metal_host=theirs -e failover_bare_metal_host_namespace=m, or remove the annotation"
        )
        assert (words in found["detail"]) is (result == "failed")

    def test_the_user_names_it_after_a_refusal(self, cluster):
        """The refused recovery has begun the history again."""
        del cluster.objects[AUDIT]
        assert Play(cluster, run="r2", direction="recover", given=()).go()["result"] == "failed"
        named = {"bare_metal_host": "h1", "bare_metal_host_namespace": "m"}
        play = Play(cluster, run="r3", direction="recover", given=(), **named)
        assert (play.go()["result"], play.done[0]) == ("recovered", "key")

    def test_a_later_failover_that_sent_nothing_does_not_hide_it(self, cluster):
        """The node has booted since, and the next failover was killed before its power-off."""
        first = entry(cluster)["operation"]
        cluster.node(ready=False, boot_id="boot-9")
        cluster.now = lambda: NOW + timedelta(seconds=600)
        Play(cluster, run="r2", fence="metal3", given=(), key="k").call(done="claim")
        leases_expire(cluster)
        play = Play(cluster, run="r3", direction="recover", given=())
        result = play.go()
        assert (result["result"], result["operation"], play.done[0]) == ("recovered", first, "key")

    @pytest.mark.parametrize(("host", "namespace"), [("", ""), ("theirs", ""), ("", "m")])
    def test_its_record_names_no_host(self, cluster, removed, host, namespace):
        """It does not stand for the variables that are not set."""
        self.write(cluster, host=host, namespace=namespace)
        play = Play(cluster, run="r2", direction="recover", given=(), bare_metal_host=host)
        assert "is invalid: of its facts, key (without a host)" in play.go()["detail"]
        assert (play.done, removed) == ([], [])

    @pytest.mark.parametrize("host", ["h1", "without-a-key"])
    def test_others_are_no_obstacle(self, cluster, host):
        self.write(cluster, host=host)
        play = Play(cluster, run="r2", direction="recover", given=())
        assert play.go()["result"] == "recovered"
        assert "key" in play.done


class TestReplaced:
    """A host is failed over, and other hardware joins as the same Node, while the key keeps the host off."""

    @pytest.fixture
    def host(self, cluster, monkeypatch):
        found = SimpleNamespace(seen=turns.Host("h1", "m", "node-1"))
        monkeypatch.setattr(turns._Turn, "_hosts", lambda *_arguments: (found.seen,))
        assert Play(cluster, fence="metal3", given=(), key="k").go()["result"] == "moved"
        found.seen = replace(found.seen, node=None, keys_for=(("k", "node-1"),), powered_on=False)
        return found

    @pytest.fixture(params=["created again", "with its record"], autouse=True)
    def joined(self, request, cluster, host):
        if request.param == "created again":
            cluster.node()
        Play(cluster).boot("boot-2")

    def recover(self, cluster, **options):
        return Play(cluster, run="r2", direction="recover", given=(), **options)

    @pytest.mark.parametrize("check_mode", [False, True])
    def test_its_old_host_is_not_switched_on(self, cluster, check_mode):
        before = cluster.marks(), cluster.cordoned(), entry(cluster)
        play = self.recover(cluster)
        refused = play.go(check_mode=check_mode)
        assert (refused["result"], play.done) == ("refused", [])
        assert "BareMetalHost m/h1" in refused["detail"]
        assert (cluster.marks(), cluster.cordoned(), entry(cluster)) == before
        assert [path for path in cluster.objects if "/leases/" in path] == []

    def test_it_is_if_the_user_forces_that(self, cluster):
        play = self.recover(cluster, force=True)
        assert (play.go()["result"], play.done[0]) == ("recovered", "key")

    def test_a_recovery_that_died_after_it_removed_the_key_is_resumed(self, cluster, host):
        host.seen = replace(host.seen, keys_for=(), powered_on=True)
        assert self.recover(cluster).go()["result"] == "recovered"
        assert cluster.marks() == {}


def test_the_cordon_stays_with_the_taint_also_if_nothing_was_sent(cluster):
    said = {"attestation_by": "Ada", "attestation_statement": "I pulled the cords of node-1.", "attestation_at": AT}
    play = Play(cluster, fence="attestation", given=(), **said)
    play.failing = {"move": TimedOut("The volumes are left.", blockers=[])}

    assert play.go()["result"] == "failed"
    assert cluster.cordoned()
