# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records that earlier versions left on a Node are understood, or the doctor says what to do with them.

They are here as those versions wrote them: no rule of the present makes them.
"""

from __future__ import annotations

import json

import pytest
from unit.failover.play import AUDIT, Play, entry, silent_node

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.rules import examine
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.snapshot_rules import Snapshot

NODE = paths.node("node-1")
ID = "node-1.20261120T080000Z"
RUN = "bastion/20261120T080000Z-17/node-1"
AT = "2026-11-20T08:00:00Z"
FORWARD = ("claim", "fence", "taint", "move", "delete")
BACK = ("power_on", "ready", "in_service", "uncordon")
EVIDENCE = {"kind": "Command", "boot_id": "boot-1", "at": AT}
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute", "timeAdded": AT}
METAL3 = {"fence": "metal3", "host": "unit-7", "namespace": "metal", "key": "holdfast-failover"}
REDFISH = {"fence": "redfish", "uri": "https://bmc/redfish/v1/Systems/1"}


def record(phase, *, result="", facts=None):
    return {
        "id": ID,
        "run": RUN,
        "holder": "ada",
        "reason": "",
        "started": AT,
        "since": AT,
        "phase": phase,
        "phases": {"confirm": 0.0, "claim": 1},
        "boot_id": "boot-1",
        "facts": {"fence": "command"} if facts is None else facts,
        "result": result,
        "detail": "1 pods and 0 VolumeAttachments are gone" if result == "moved" else "",
    }


@pytest.fixture
def cluster(monkeypatch):
    return silent_node(monkeypatch)


def leave(cluster, found, *, tainted=None, claimed=True):
    """What a run that died has left: the record, the claim, the cordon, the evidence and the taint."""
    tainted = found["phase"] in ("move", "delete", *BACK[:3]) if tainted is None else tainted
    claim = {"run": RUN, "operation": ID, "purpose": "failover", "since": AT}
    cordon = {"owner": "failover", "reason": "it is failed over", "unschedulable_before": False, "since": AT}
    marks = {
        "failover": found,
        "cordon": cordon,
        **({"claim": claim} if claimed else {}),
        **({"evidence": EVIDENCE} if tainted else {}),
    }
    cluster.node(ready=False, unschedulable=True, **marks)
    if tainted:
        cluster.objects[NODE]["spec"]["taints"] = [TAINT]
    phases = ("claim",) if found["phase"] == "claim" else ("claim", "fence")
    steps = [{"at": AT, "run": RUN, "step": step, "resource_versions": {"node": "1"}} for step in phases]
    kept = {
        "operation": ID,
        "node": "node-1",
        "by": "ada",
        "runs": [RUN],
        "reason": "",
        "boot_id": "boot-1",
        "started": AT,
        "ended": "",
        "result": found["result"],
        "detail": found["detail"],
        "seconds": {"claim": 1.0},
        **found["facts"],
        "steps": steps,
    }
    metadata = {"name": "failovers", "namespace": "holdfast"}
    cluster.create(AUDIT.rpartition("/")[0], {"metadata": metadata, "data": {ID: json.dumps(kept)}})


@pytest.mark.parametrize("claimed", [True, False])
@pytest.mark.parametrize("result", ["", "failed"])
@pytest.mark.parametrize(
    ("phase", "tainted", "commands"),
    [
        ("claim", False, ["off"]),
        # The verify command says that the machine is off.
        ("fence", False, []),
        ("taint", False, []),
        ("taint", True, []),
        ("move", True, []),
        ("delete", True, []),
    ],
)
def test_a_failover_is_resumed(cluster, phase, tainted, commands, result, claimed):  # noqa: PLR0917
    leave(cluster, record(phase, result=result), tainted=tainted, claimed=claimed)
    play = Play(cluster)
    moved = play.go()
    assert (moved["result"], moved["operation"], moved["resumed"]) == ("moved", ID, True)
    assert play.commands == commands
    assert (entry(cluster)["result"], cluster.cordoned(), "claim" in cluster.marks()) == ("moved", True, False)


def test_one_that_is_done_is_not_done_again(cluster):
    leave(cluster, record("move", result="moved"), claimed=False)
    play = Play(cluster)
    assert (play.go()["result"], play.done) == ("skipped", [])


@pytest.mark.parametrize("phase", BACK[:3])
def test_a_recovery_that_was_interrupted_is_not_failed_over(cluster, phase):
    leave(cluster, record(phase))
    refused = Play(cluster).go()
    assert refused["result"] == "refused"
    assert "Run the playbook holdfast.kubernetes.recover again" in refused["detail"]
    assert cluster.marks()["failover"]["phase"] == phase


@pytest.mark.parametrize("result", ["", "failed", "moved"])
@pytest.mark.parametrize("phase", [*FORWARD, *BACK])
def test_each_is_recovered_from(cluster, phase, result):
    leave(cluster, record(phase, result=result))
    back = Play(cluster, run="r2", direction="recover")
    recovered = back.go()
    assert (recovered["result"], recovered["operation"]) == ("recovered", ID)
    assert (cluster.marks(), cluster.cordoned(), entry(cluster)["result"]) == ({}, False, "recovered")


@pytest.mark.parametrize(
    ("facts", "given", "steps"),
    [
        (METAL3 | {"mode": "hard"}, (), ["key"]),
        (METAL3, (), ["key"]),
        (REDFISH, (), ["power_on"]),
        ({"fence": "command"}, ("power_on_command",), ["power_on"]),
        ({"fence": "command"}, (), ["ask"]),
        ({"fence": "attestation", "attested_by": "Ada", "statement": "I pulled the cords of node-1."}, (), ["ask"]),
        # Nobody said how it is fenced.
        ({}, (), []),
    ],
)
def test_how_it_was_fenced_says_how_it_is_switched_on(cluster, facts, given, steps):
    leave(cluster, record("move", result="moved", facts=facts))
    back = Play(cluster, direction="recover", given=given)
    assert back.go()["result"] == "recovered"
    assert back.done == [*steps, "ready", "in_service", "in_service", "uncordon"]


def test_a_machine_at_an_unknown_url_is_refused_with_the_way_out(cluster):
    leave(cluster, record("move", result="moved", facts={"fence": "redfish"}))
    refused = Play(cluster, direction="recover", given=()).go()
    assert "at an unknown URL" in refused["detail"]
    assert "Set it to the URL of the machine." in refused["detail"]
    back = Play(cluster, run="r2", direction="recover", given=(), uri=REDFISH["uri"])
    assert back.go()["result"] == "recovered"


@pytest.mark.parametrize("facts", [{"fence": "command"}, REDFISH])
def test_a_record_that_is_gone_is_restored_from_the_history(cluster, facts):
    leave(cluster, record("taint", facts=facts), tainted=True, claimed=False)
    del cluster.objects[NODE]["metadata"]["annotations"]["holdfast.dev/failover"]
    back = Play(cluster, direction="recover")
    recovered = back.go()
    assert (recovered["result"], recovered["operation"], back.done[0]) == ("recovered", ID, "power_on")


def advice(cluster):
    nodes = {"node-1": cluster.objects[NODE]}
    (found,) = (item for item in examine(Snapshot(nodes, {}, {}, cluster.now())) if item.kind == "failover")
    return found


@pytest.mark.parametrize(
    ("phase", "result", "words"),
    [
        *((phase, "", "holdfast.kubernetes.failover again") for phase in FORWARD),
        *((phase, "failed", "holdfast.kubernetes.failover again") for phase in FORWARD),
        ("move", "moved", "When the machine is repaired"),
        *((phase, "", "To resume it: ansible-playbook holdfast.kubernetes.recover") for phase in BACK),
    ],
)
def test_the_doctor_says_what_to_do(cluster, phase, result, words):
    leave(cluster, record(phase, result=result))
    assert words in advice(cluster).todo


@pytest.mark.parametrize(
    ("change", "why"),
    [
        # An early version wrote less.
        ({"detail": None}, "detail missing or of a wrong type"),
        ({"phases": ["claim"]}, "phases missing or of a wrong type"),
        # A later one may know more.
        ({"phase": "quarantine"}, "the phase quarantine is not known to this version"),
        ({"phase": ""}, "it has no phase"),
        ({"result": "lost"}, "id or result has no valid value"),
        ({"id": "no key of a ConfigMap"}, "id or result has no valid value"),
    ],
)
def test_what_is_not_understood_is_left_and_the_doctor_says_what_to_do(cluster, change, why):
    leave(cluster, {**record("move"), **change}, tainted=True)
    before = json.dumps(cluster.objects[NODE], sort_keys=True)
    for direction in ("failover", "recover"):
        refused = Play(cluster, run=f"r-{direction}", direction=direction).go()
        assert (refused["result"], why in refused["detail"]) == ("refused", True), refused
    assert json.dumps(cluster.objects[NODE], sort_keys=True) == before
    assert why in advice(cluster).todo
    assert "holdfast.dev/failover-" in advice(cluster).todo
