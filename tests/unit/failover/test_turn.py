# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The turns of a failover against a cluster in memory, in the order of the role's own files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.cordon import cordon
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import turn as turns
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.journey_rules import (
    FAILOVER_STEPS,
    RECOVER_STEPS,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.record import failover_record
from ansible_collections.holdfast.kubernetes.plugins.modules import failover_turn as module

TASKS = Path(__file__).resolve().parents[3] / "roles/failover/tasks"
AUDIT = paths.one(paths.config_maps("holdfast"), "failovers")
SETTINGS = {
    "fence": "command",
    "confirm_seconds": 0,
    "claim_timeout": 0,
    "max_unhealthy": "100%",
    "override_holds": False,
    "fence_timeout": 10,
    "value": "nodeshutdown",
    "delete_node": False,
    "report": "",
}
GIVEN = ("fence_command", "verify_command", "power_on_command")
POD = {"uid": "u1", "namespace": "shop", "name": "db-0", "state": "left", "reason": ""}
VOLUME = {"name": "csi-1", "state": "left"}


class Killed(BaseException):
    """The process ended."""


@pytest.fixture
def cluster(monkeypatch):
    """A node that is silent. Nothing waits, and the evidence says what the test says."""
    found = MemoryCluster()
    found.node(ready=False)
    found.off = True
    monkeypatch.setattr(turns, "out_of_service", lambda context, params: _proof(found))
    return found


def _proof(cluster):
    if not cluster.off:
        raise HoldfastError("Node node-1 is not off: its verify command did not say so.", why="not_off")
    return {}


class Play:
    """What a run of the playbook does with one node, by the role's own list of steps."""

    def __init__(self, cluster, *, run="r1", direction="failover", given=GIVEN, uri="", **settings):
        self.cluster, self.direction, self.given, self.uri = cluster, direction, given, uri
        self.settings = {**SETTINGS, **settings}
        self.commands, self.done, self.failing = [], [], {}
        self.turn = {"report": self._empty(run)}

    @staticmethod
    def _empty(run):
        return turns.ending_rules.report_of(run, [], check_mode=False, delete_node=False)

    def call(self, *, check_mode=False, **options):
        given = {
            "name": "node-1",
            "direction": self.direction,
            "settings": self.settings,
            "given": list(self.given),
            "redfish_uri": self.uri,
            "turn": self.turn,
            **options,
        }
        found = ArgumentSpecValidator(module.SPEC["argument_spec"]).validate(given)
        assert not found.error_messages, found.error_messages
        context = Context(found.validated_parameters, check_mode)
        context.cluster = self.cluster
        self.cluster.dry_run = check_mode
        try:
            self.turn = turns.failover_turn(context, found.validated_parameters)
        except HoldfastError as error:
            self.turn = error.as_result()
            raise
        if self.turn.get("failed"):
            raise HoldfastError(self.turn["msg"])
        # A task passes on plain data.
        self.turn = json.loads(json.dumps(self.turn))
        return self.turn

    def go(self, *, check_mode=False):
        """Play the role's file; return the result of the node."""
        last, task = {}, "Claim"
        try:
            self.call(done="claim", check_mode=check_mode)
            for task, name, arguments, when, kept in self._tasks():  # noqa: B007 - the handler names it
                if name == "failover_turn":
                    self.call(done=arguments["done"], last=last, check_mode=check_mode)
                    continue
                found = {"skipped": True}
                if any(f"'{step}'" in when for step in self.turn["steps"]):
                    self.done.append(when.split("'")[1])
                    found = self.act(name, arguments)
                last = found if kept else last
        except HoldfastError as error:
            self.call(failed=error.as_result(), task=task)
        (result,) = self.turn["report"]["content"]["nodes"]
        return result

    def _tasks(self):
        steps = "failover_steps.yml" if self.direction == "failover" else "recover_steps.yml"
        for task in yaml.safe_load((TASKS / steps).read_text()):
            action = next(key for key in task if key.startswith(("holdfast.", "ansible.")))
            kept = task.get("register") == "__failover_last"
            yield task["name"], action.rpartition(".")[2], task[action], task.get("when", ""), kept

    def act(self, name, arguments):
        """What the other modules do here."""
        step = self.done[-1]
        if step in self.failing:
            raise self.failing[step]
        turn, context = self.turn, Context({})
        context.cluster = self.cluster
        node = self.cluster.objects.get(paths.node("node-1"))
        if name == "cordon":
            state = arguments.get("state", "cordoned")
            return cordon(
                context, {"name": "node-1", "owner": "failover", "run": turn["run"], "state": state, "force": False}
            )
        if name == "failover_power":
            self.commands.append(arguments["power"])
            if arguments["power"] == "off":
                phase = {"phase": "fence", "facts": turn["facts"], "look": True, "gate": True}
                failover_record(context, {**_RECORD, **phase, "operation": turn["operation"], "run": turn["run"]})
            return {"changed": True, "sent": True}
        if name == "out_of_service" and arguments.get("state") == "absent":
            node["spec"].pop("taints", None)
            node["metadata"]["annotations"].pop("holdfast.dev/evidence", None)
            return {"taint": None, "evidence": None}
        if name == "out_of_service" and step == "taint":
            evidence = {"kind": "Command", "boot_id": node["status"]["nodeInfo"]["bootID"]}
            taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
            node["spec"]["taints"] = [taint]
            node["metadata"]["annotations"]["holdfast.dev/evidence"] = json.dumps(evidence)
            return {"taint": taint, "evidence": evidence, "pods": [POD], "volume_attachments": [VOLUME]}
        if name == "out_of_service":
            return {"pods": [], "volume_attachments": []}
        if name == "node_ready":
            self.boot("boot-2")
            return {"boot_id": "boot-2"}
        return {}

    def boot(self, boot_id):
        node = self.cluster.objects[paths.node("node-1")]
        node["status"]["nodeInfo"]["bootID"] = boot_id
        node["status"]["conditions"][0]["status"] = "True"


_RECORD = {"name": "node-1", "override_holds": False, "wait_timeout": 0, "delete_node": False, "deleted": False}


def entry(cluster):
    (text,) = cluster.objects[AUDIT]["data"].values()
    return json.loads(text)


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
    told = []

    def die(_verb, path, _body):
        told.append(path)
        if len(told) == writes:
            raise Killed

    play = Play(cluster)
    cluster.hooks.append(die)
    try:
        play.go()
    except Killed:
        pass
    else:
        assert len(told) < writes, "there are no more"
        return
    cluster.hooks.clear()
    # Its Lease has expired.
    for path in [path for path in cluster.objects if "/leases/" in path]:
        del cluster.objects[path]
    again = Play(cluster, run="r2")
    result = again.go()

    assert result["result"] in ("moved", "skipped"), result
    assert (play.commands + again.commands)[:1] == ["off"]
    assert entry(cluster)["result"] == "moved"
    assert cluster.cordoned()
    assert "claim" not in cluster.marks()
    assert Play(cluster, run="r3", direction="recover").go()["result"] == "recovered"
    assert (cluster.marks(), cluster.cordoned()) == ({}, False)


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
    refused = Play(cluster).go()
    assert refused["result"] == "refused"
    assert words in refused["detail"]
    assert refused["detail"].startswith("Claim: ")
    assert cluster.marks() == {}


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
    play.failing = {"taint": HoldfastError("The API is away.")}
    assert play.go()["result"] == "failed"
    assert cluster.marks()["failover"]["phase"] == "taint"

    again = Play(cluster, run="r2")
    assert again.go()["result"] == "moved"
    assert again.done == ["cordon", "taint", "move"]
    assert (play.commands, again.commands) == (["off"], [])


def test_it_is_started_again_while_the_machine_is_on(cluster):
    play = Play(cluster)
    play.failing = {"taint": HoldfastError("The API is away.")}
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
    assert entry(cluster)["result"] == "moved"

    back = Play(cluster, run="r4", direction="recover")
    assert back.go()["detail"] == "its Node was deleted, so only its host was released"
    assert back.done == ["power_on"]
    assert Play(cluster, run="r5", direction="recover").go()["detail"] == "it was recovered before"


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
    assert "away" not in json.dumps(result)
    assert (result["result"], play.commands, cluster.marks(), cluster.cordoned()) == ("failed", [], {}, False)


def test_the_steps_of_the_role_are_those_of_the_rules():
    """In their order; one step may be several tasks."""
    for direction, steps in (("failover", FAILOVER_STEPS), ("recover", RECOVER_STEPS)):
        whens = [when for _task, _name, _arguments, when, _kept in Play(None, direction=direction)._tasks() if when]
        assert list(dict.fromkeys(when.split("'")[1] for when in whens)) == list(steps)
        assert all(when == f"'{when.split(chr(39))[1]}' in __failover_turn.steps" for when in whens)
