# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the playbook does with one node, by the role's own list of steps, against a cluster in memory."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.cordon import cordon
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import turn as turns
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
# What a dead run has recorded on its Node, without phase and result.
RECORD = {
    **dict.fromkeys(("holder", "reason", "detail"), ""),
    **dict.fromkeys(("started", "since"), AT),
    "id": "op",
    "run": "dead",
    "phases": {},
    "boot_id": "boot-1",
    "facts": {},
}
POD = {"uid": "u1", "namespace": "shop", "name": "db-0", "state": "left", "reason": ""}
VOLUME = {"name": "csi-1", "state": "left"}


class Killed(BaseException):
    """The process ended."""


def silent_node(monkeypatch):
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
        self.failed, self.said, self.folder, self.host = [], [], "", "localhost"
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
            "inventory_host": self.host,
            "turn": self.turn,
            **options,
        }
        found = ArgumentSpecValidator(module.SPEC["argument_spec"]).validate(given)
        assert not found.error_messages, found.error_messages
        context = Context(found.validated_parameters, check_mode, say=self.said.append, folder=self.folder)
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

    def begin(self, *nodes):
        """Name the run."""
        who = {"job": "", "host": "bastion"}
        settings = {**self.settings, "run": self.turn["report"]["content"]["summary"]["run"]}
        self.call(
            done="nothing", checked=[{"name": name, "machines": []} for name in nodes], settings=settings, who=who
        )

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
            self.failed.append(task)
            self.call(failed=error.as_result(), task=task)
        (result,) = self.turn["report"]["content"]["nodes"]
        return result

    def _tasks(self):
        steps = "failover_steps.yml" if self.direction == "failover" else "recover_steps.yml"
        for task in yaml.safe_load((TASKS / steps).read_text()):
            (action,) = (key for key in task if key.startswith(("holdfast.", "ansible.")))
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
                of_run = {name: turn[name] for name in ("operation", "run")}
                patience = {"confirm_seconds": self.settings["confirm_seconds"]}
                failover_record(context, {**_RECORD, **phase, **of_run, **patience})
                return {"changed": True, "sent": True, **self.power(turn)}
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

    @staticmethod
    def power(turn):
        """The way that switched the machine off; a test may choose another one."""
        return {"method": turn["method"], "facts": turn["facts"]}

    def boot(self, boot_id):
        node = self.cluster.objects[paths.node("node-1")]
        node["status"]["nodeInfo"]["bootID"] = boot_id
        node["status"]["conditions"][0]["status"] = "True"


_RECORD = {
    **dict.fromkeys(("override_holds", "delete_node", "deleted"), False),
    "name": "node-1",
    "wait_timeout": 0,
}


def ready_is(cluster, status, since):
    """Set the condition Ready of the node."""
    ready = {"type": "Ready", "status": status, "lastTransitionTime": since}
    cluster.objects[paths.node("node-1")]["status"]["conditions"] = [ready]


def entry(cluster):
    (text,) = cluster.objects[AUDIT]["data"].values()
    return json.loads(text)


def at_the_power_off(play, then):
    """Let something happen after the phase of the power-off, or of the power-on, is recorded."""
    act = play.act

    def acts(name, arguments):
        found = act(name, arguments)
        if name == "failover_power":
            then()
        return found

    play.act = acts
    return play


def leases_expire(cluster):
    """No earlier run is live."""
    for path in [path for path in cluster.objects if "/leases/" in path]:
        del cluster.objects[path]


def killed_after(cluster, writes, play):
    """Play a run that is killed after so many writes. Return whether it was, or has fewer writes."""
    told = []

    def die(_verb, path, _body):
        told.append(path)
        if len(told) == writes:
            raise Killed

    cluster.hooks.append(die)
    try:
        play.go()
    except Killed:
        cluster.hooks.clear()
        leases_expire(cluster)
        return True
    assert len(told) < writes, "there are no more"
    return False
