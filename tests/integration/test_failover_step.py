# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failovers whose record or Node no longer exists: they resume from the audit record."""

from __future__ import annotations

import json

import pytest
from integration.support.failovers import RECORD, STEP, TAINT, Victim
from integration.support.world import AUDIT

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.modules import doctor

MARK = "holdfast.dev/failover"


class Failover:
    """One failover, step by step, of a simulated node that is silent."""

    def __init__(self, world):
        self.world, self.victim = world, Victim(world, world.nodes()[0])
        self.name = self.victim.name
        self.operation = ""
        # No other node has this machine.
        uri = f"https://bmc/redfish/v1/Systems/{self.name}"
        self.facts = {"host": f"host-of-{self.name}", "namespace": "metal", "key": "k", "uri": uri}

    def step(self, direction="failover", *, check_mode=False, **options):
        known = {"run": f"r-{self.name}", "confirm_seconds": 0, "claim_timeout": 0, "max_unhealthy": "100%"}
        options = {**known, "fence": "metal3", "name": self.name, "direction": direction, **options}
        return self.world.run(STEP, check_mode=check_mode, **options)

    def begin(self):
        self.victim.hang()
        begun = self.step()
        assert begun["step"] == "fence", begun
        self.operation = begun["operation"]

    def record(self, **options):
        done = self.world.run(RECORD, name=self.name, operation=self.operation, run=f"r-{self.name}", **options)
        assert not done.get("failed"), done
        return done

    def fenced(self):
        self.begin()
        self.record(phase="fence", facts={"fence": "metal3", **self.facts})
        self.record(result="failed", detail="by a test")

    @property
    def entry(self):
        return json.loads(self.world.cluster.get(AUDIT)["data"][self.operation])

    def annotate(self, **changes):
        self.world.cluster.merge(paths.node(self.name), {"metadata": {"annotations": changes}})

    def taint(self):
        taints = [{"key": TAINT, "value": "nodeshutdown", "effect": "NoExecute"}]
        self.world.cluster.merge(paths.node(self.name), {"spec": {"taints": taints}})


@pytest.fixture
def failover(world):
    return Failover(world)


def test_a_taint_of_others_is_not_recovered_from(failover):
    failover.taint()
    before = failover.victim.marks
    refused = failover.step("recover")
    assert (refused["error"], refused["why"], refused["changed"]) == ("refused", "not_ours", False)
    assert failover.victim.marks == before == {}


def test_a_record_that_was_removed(failover):
    failover.fenced()
    failover.annotate(**{MARK: None})
    planned = failover.step("recover", check_mode=True)
    assert (planned["step"], failover.victim.marks) == ("power_on", {})
    back = failover.step("recover")
    assert (back["step"], back["resumed"], back["operation"]) == ("power_on", True, failover.operation), back
    assert back["facts"] == {"fence": "metal3", **failover.facts}
    assert failover.victim.record["facts"] == back["facts"]
    failover.record(phase="power_on")
    failover.record(result="recovered")
    assert (failover.entry["result"], failover.entry["key"]) == ("recovered", "k")
    assert failover.victim.marks == {}
    assert failover.step("recover")["step"] == "done"


def test_a_node_that_was_created_again(failover):
    failover.fenced()
    spec = failover.victim.node["spec"]
    labels = failover.victim.node["metadata"]["labels"]
    failover.world.cluster.delete(paths.node(failover.name))
    gone = failover.step("recover")
    assert (gone["step"], gone["exists"], gone["facts"]) == ("power_on", False, {"fence": "metal3", **failover.facts})
    failover.world.cluster.create(
        paths.NODES, {"metadata": {"name": failover.name, "labels": labels}, "spec": {**spec, "taints": None}}
    )
    back = failover.step("recover")
    assert (back["step"], back["exists"], back["facts"]["key"]) == ("power_on", True, "k")


@pytest.mark.parametrize("way", ["metal3", "redfish"])
def test_the_machine_of_a_deleted_node_was_failed_over_as_another_node(failover, way):
    names = ("host", "namespace", "key") if way == "metal3" else ("uri",)
    facts = {"fence": way, **{name: failover.facts[name] for name in names}}
    failover.begin()
    failover.record(phase="fence", facts=facts)
    failover.world.cluster.delete(paths.node(failover.name))
    assert failover.step("recover")["step"] == "power_on"
    other = f"other-of-{failover.name}"
    later = {**failover.entry, "operation": other, "node": other, "started": "2999-01-01T00:00:00Z"}
    failover.world.cluster.merge(AUDIT, {"data": {other: json.dumps(later)}})
    refused = failover.step("recover")
    failover.world.cluster.merge(AUDIT, {"data": {other: None}})
    assert (refused["error"], refused["why"], refused["changed"]) == ("refused", "another_node", False), refused
    assert f"Recover node {other}." in refused["msg"]


def test_nothing_of_a_failover_that_touched_nothing(failover):
    failover.begin()
    failover.record(result="failed")
    assert failover.entry["result"] == "failed"
    assert failover.step("recover")["step"] == "done"


@pytest.mark.parametrize("result", [None, "moved"])
def test_its_node_was_deleted(failover, result):
    """An earlier version recorded the result after the deletion, and may have been killed in between."""
    failover.fenced()
    assert failover.step()["step"] == "fence"
    failover.record(phase="delete", **({"result": result} if result else {}))
    failover.world.cluster.delete(paths.node(failover.name))
    for check_mode in (True, False):
        done = failover.step(check_mode=check_mode)
        assert (done["step"], done["exists"], done["operation"]) == ("done", False, failover.operation), done
        assert (done["changed"], failover.entry["result"]) == (False, result or "")
    assert failover.step("recover")["step"] == "power_on"


def test_a_node_that_was_deleted_by_others(failover):
    failover.fenced()
    failover.world.cluster.delete(paths.node(failover.name))
    assert failover.step()["error"] == "not_found"
    assert failover.entry["result"] == "failed"


def test_down_again_after_a_boot_of_its_own(failover):
    failover.fenced()
    status = {"status": {"nodeInfo": {"bootID": "another"}}}
    failover.world.cluster.merge(f"{paths.node(failover.name)}/status", status)
    begun = failover.step()
    assert (begun["step"], begun["resumed"], begun["operation"]) == ("fence", True, failover.operation), begun
    assert (begun["record"]["boot_id"], begun["facts"]["key"]) == ("another", "k")
    assert failover.entry["boot_id"] == "another"
    failover.record(phase="fence", look=True)
    failover.record(result="failed")
    failover.victim.wake()
    assert failover.step()["step"] == "stop"


def test_a_recovery_that_was_left_halfway(failover):
    failover.begin()
    failover.record(phase="move")
    evidence = {"kind": "Attestation", "boot_id": failover.victim.boot_id}
    failover.annotate(**{"holdfast.dev/evidence": json.dumps(evidence)})
    failover.taint()
    failover.record(result="moved")
    assert failover.step()["step"] == "done"
    assert failover.step("recover")["step"] == "power_on"
    failover.record(phase="power_on")
    for result in ("", "failed"):
        # Its machine may be on; the proof is from before.
        refused = failover.step()
        assert (refused["error"], refused["why"], failover.victim.record["result"]) == (
            "refused",
            "recover_first",
            result,
        )
        if not result:
            failover.record(result="failed")
    assert failover.step("recover")["step"] == "power_on"


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", '{"id": "x"}'])
def test_an_invalid_record(failover, content):
    failover.victim.hang()
    failover.annotate(**{MARK: content})
    before = failover.victim.node["metadata"]["annotations"]
    for direction in ("failover", "recover"):
        refused = failover.step(direction)
        assert (refused["error"], refused["why"], refused["changed"]) == ("refused", "broken_record", False)
        assert failover.name in refused["msg"]
    assert failover.victim.node["metadata"]["annotations"] == before
    report = failover.world.run(doctor, nodes=[failover.name])
    assert "is invalid" in str([item["todo"] for item in report["findings"] if item["kind"] == "failover"])


def test_it_is_confirmed_again_after_a_failure(failover):
    failover.fenced()
    failover.victim.wake()
    failover.victim.hang()
    # The condition does not say since when.
    begun = failover.step(confirm_seconds=3)
    assert begun["step"] == "fence", begun
    assert begun["waited"] >= 3
