# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor says of what failovers left."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import DEAD_AFTER, Run
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor import failover_rules as failovers
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.rules import examine
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.snapshot_rules import Finding, Snapshot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.rules import begin
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.host_rules import Written

NOW = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
SINCE = "2026-11-21T08:00:00Z"
LIVE, DEAD = "live", "dead"


def node(name="n", *, ready, tainted=False, evidence=False, run="", phase="fence", result="", facts=None):
    annotations = {"holdfast.dev/evidence": json.dumps({"boot_id": "b"})} if evidence else {}
    if run:
        begun = begin({"metadata": {"name": name}}, "op", run=run, holder="ada", reason="", fence="metal3", now=NOW)
        record = {**begun, "phase": phase, "result": result, "facts": facts or {}}
        annotations["holdfast.dev/failover"] = json.dumps(record)
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    taint["timeAdded"] = SINCE
    condition = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Told", "message": "by a test"}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"taints": [taint] if tainted else []},
        "status": {"conditions": [condition]},
    }


def host(run, *, key="k", ours=True, of="n", powered=False):
    written = {"since": NOW.isoformat(), "powered_on": True, "node": of, "run": run, "overridden": []}
    annotations = {f"reboot.metal3.io/{key}": "", "reboot.metal3.io/theirs": "", "reboot.metal3.io": ""}
    if ours:
        assert Written(**written)
        annotations["holdfast.dev/reboot-keys"] = json.dumps({key: written})
    return {"metadata": {"name": "h", "namespace": "m", "annotations": annotations}, "status": {"poweredOn": powered}}


def attached(name):
    spec = {"attacher": "csi", "nodeName": name, "source": {"persistentVolumeName": f"pv-{name}"}}
    return {"metadata": {"name": f"va-{name}", "creationTimestamp": SINCE}, "spec": spec}


def snapshot(*nodes, hosts=(), attachments=(), names=("n",), failovers_=None, elsewhere=None):
    runs = {
        name: Run(name, name, (NOW - timedelta(seconds=silent)).isoformat())
        for name, silent in ((LIVE, 5), (DEAD, DEAD_AFTER + 1))
    }
    found = {item["metadata"]["name"]: item for item in nodes}
    more = {"attachments": attachments, "failovers": failovers_ or {}, "elsewhere": elsewhere or {}}
    return Snapshot(found, {}, runs, NOW, names=names, hosts=hosts, **more)


def only(seen, kind):
    (found,) = (item for item in examine(seen) if item.kind == kind)
    return found


def kinds(seen):
    return [item.kind for item in examine(seen) if item.kind != "run"]


def test_an_out_of_service_taint_on_a_ready_node():
    found = only(snapshot(node(ready=True, tainted=True, evidence=True)), "taint")
    assert (found.node, found.since) == ("n", SINCE)
    assert "(nodeshutdown)" in found.why
    assert "recover -e failover_node=n" in found.todo
    assert "Ask who added it" in only(snapshot(node(ready=True, tainted=True)), "taint").todo
    assert kinds(snapshot(node(ready=False, tainted=True, evidence=True))) == []
    assert kinds(snapshot(node(ready=True))) == []


def test_a_key_of_this_collection_that_keeps_a_host_off():
    facts = {"host": "h", "namespace": "m", "key": "k"}
    found = only(snapshot(hosts=[host(DEAD)], failovers_={"n": facts}), "key")
    assert (found.node, found.run, found.alive, found.since) == ("n", DEAD, False, NOW.isoformat())
    assert "m/h off, which is off" in found.why
    assert "recover -e failover_node=n" in found.todo
    assert "recover" in only(snapshot(node(ready=False, run=DEAD, facts=facts), hosts=[host(DEAD)]), "key").todo
    for unknown in (
        snapshot(hosts=[host(DEAD, of="")], failovers_={"n": facts}),
        snapshot(hosts=[host(DEAD)]),
        snapshot(hosts=[host(DEAD)], failovers_={"n": {**facts, "host": "g"}}),
        snapshot(node(ready=False, run=DEAD), hosts=[host(DEAD)], failovers_={"n": facts}),
    ):
        todo = only(unknown, "key").todo
        assert "recover" not in todo
        assert "state=absent bare_metal_host=h namespace=m key=k" in todo
    assert only(snapshot(hosts=[host(LIVE)]), "key").todo == ""
    assert "is still on" in only(snapshot(hosts=[host(LIVE, powered=True)]), "key").why
    assert "may be off" in only(snapshot(hosts=[host(LIVE, powered=None)]), "key").why
    assert kinds(snapshot(hosts=[host(DEAD, ours=False)])) == [], "others' keys are theirs"


def test_a_key_of_another_cluster():
    """Its failover may be under way there, and its node may have the name of one of this cluster."""
    facts = {"host": "h", "namespace": "m", "key": "k"}
    forged = node(ready=False, run=DEAD, facts=facts)
    for seen in (
        snapshot(hosts=[host(DEAD)], elsewhere={"m/h": "b"}),
        snapshot(node(ready=True), hosts=[host(DEAD)], elsewhere={"m/h": "b"}),
        snapshot(forged, hosts=[host(DEAD)], elsewhere={"m/h": "b"}),
    ):
        todo = only(seen, "key").todo
        assert "Its Machine is of Cluster b and is not proven to be a Node of this cluster" in todo
        assert "ansible" not in todo
    # The Node was deleted after its failover.
    ours = snapshot(hosts=[host(DEAD)], failovers_={"n": facts}, elsewhere={"m/h": "a"})
    assert "recover -e failover_node=n" in only(ours, "key").todo
    assert "recover -e failover_node=n" in only(snapshot(forged, hosts=[host(DEAD)]), "key").todo


def test_a_key_of_a_node_that_may_be_another_machine_now():
    """The recovery would switch on the old host, which has the name and the credentials of the Node."""
    facts = {"host": "h", "namespace": "m", "key": "k", "boot_id": "b"}
    joined = node(ready=True)
    joined["status"]["nodeInfo"] = {"bootID": "c"}
    todo = only(snapshot(joined, hosts=[host(DEAD)], failovers_={"n": facts}), "key").todo
    assert "Node n has booted since. If other hardware runs as this node now" in todo
    assert "recover -e failover_node=n -e failover_force=true" in todo
    for same in (
        snapshot(joined, hosts=[host(DEAD, powered=True)], failovers_={"n": facts}),
        snapshot(joined, hosts=[host(DEAD)], failovers_={"n": {**facts, "boot_id": "c"}}),
    ):
        assert only(same, "key").todo.endswith("recover -e failover_node=n.")


def test_a_volume_that_is_attached_to_a_deleted_node():
    found = only(snapshot(attachments=[attached("n"), attached("gone")]), "attachment")
    assert (found.node, found.since) == ("gone", SINCE)
    assert "va-gone (volume pv-gone)" in found.why
    assert "pv-gone is still attached to gone" in found.todo
    assert kinds(snapshot(attachments=[attached("gone")], names=None)) == [], "not all nodes were looked at"


def test_a_failover_that_was_interrupted():
    found = only(snapshot(node(ready=False, run=DEAD)), "failover")
    assert found == Finding(
        "failover",
        node="n",
        operation="op",
        run=DEAD,
        holder=DEAD,
        since=to_text(NOW),
        last_sign=(NOW - timedelta(seconds=DEAD_AFTER + 1)).isoformat(),
        silent_seconds=DEAD_AFTER + 1,
        why="in phase fence, operation op",
        todo=found.todo,
    )
    assert "resumes it" in found.todo
    assert "recover -e failover_node=n" in found.todo
    moved = only(snapshot(node(ready=False, run=DEAD, result="moved")), "failover")
    assert moved.why == "moved, operation op"
    assert "have moved" in moved.todo
    assert "recover -e failover_node=n" in moved.todo
    assert only(snapshot(node(ready=False, run=LIVE)), "failover").todo == ""
    for result in ("", "failed"):
        todo = only(snapshot(node(ready=False, run=DEAD, phase="power_on", result=result)), "failover").todo
        assert ("recover -e failover_node=n" in todo, "kubernetes.failover" in todo) == (True, False)


def test_a_failover_that_failed_says_why():
    failed = node(ready=False, run=DEAD, result="failed")
    record = json.loads(failed["metadata"]["annotations"]["holdfast.dev/failover"])
    record["detail"] = "The BMC did not answer."
    failed["metadata"]["annotations"]["holdfast.dev/failover"] = json.dumps(record)
    found = only(snapshot(failed), "failover")
    assert found.why == "failed, operation op: The BMC did not answer."
    assert "failed. Start the playbook holdfast.kubernetes.failover again" in found.todo


@pytest.mark.parametrize("result", ["", "failed", "moved"])
def test_a_node_that_is_back_is_recovered_and_not_failed_over_again(result):
    seen = snapshot(node(ready=True, tainted=True, evidence=True, run=DEAD, result=result))
    advice = {item.todo for item in examine(seen) if item.todo}
    (text,) = advice
    assert "recover -e failover_node=n" in text
    assert "kubernetes.failover" not in text


@pytest.mark.parametrize("result", ["moved", "failed"])
def test_a_node_that_was_back_and_is_down_again_is_failed_over_again(result):
    down = node(ready=False, run=DEAD, phase="move", result=result)
    down["status"]["nodeInfo"] = {"bootID": "another"}

    found = only(snapshot(down), "failover")
    assert found.todo == (
        "Node n came back, and is down again. Start the playbook holdfast.kubernetes.failover for it."
    )


def test_nothing_is_advised_while_a_live_run_works_on_the_node():
    claim = {"run": LIVE, "operation": "op", "purpose": "failover", "since": SINCE}
    worked_on = node(ready=True, tainted=True, evidence=True)
    worked_on["metadata"]["annotations"]["holdfast.dev/claim"] = json.dumps(claim)
    seen = snapshot(worked_on, hosts=[host(DEAD)])
    for kind in ("taint", "key"):
        found = only(seen, kind)
        assert (found.todo, found.alive) == ("", True)


def test_a_machine_that_may_be_off_is_named_although_its_node_is_gone():
    entry = {"operation": "op", "result": "moved", "started": SINCE, "ended": SINCE, "fence": "redfish"}
    found = only(snapshot(failovers_={"gone": entry}), "failover")
    assert (found.node, found.operation, found.todo) == ("gone", "op", "")
    assert "fenced by redfish" in found.why
    assert "may be off" in found.why
    # The key of metal3 is a finding of its own.
    assert kinds(snapshot(failovers_={"gone": {**entry, "key": "k"}})) == []
    assert kinds(snapshot(failovers_={"gone": entry}, names=None)) == [], "not all nodes were looked at"


def test_a_host_that_may_be_kept_off_is_named_although_no_hosts_were_found():
    """They may live in another cluster, and doctor_management is not set."""
    place = {"host": "h", "namespace": "m", "key": "k", "fence": "metal3"}
    entry = {"operation": "op", "result": "moved", "started": SINCE, "ended": SINCE, **place}
    found = only(snapshot(failovers_={"gone": entry}, hosts=None), "failover")
    assert (found.node, "fenced by metal3" in found.why) == ("gone", True)
    assert "key k may keep its BareMetalHost m/h off" in found.todo
    assert "doctor_management" in found.todo


def test_an_invalid_record():
    broken = node(ready=False)
    broken["metadata"]["annotations"]["holdfast.dev/failover"] = "{}"
    found = only(snapshot(broken, hosts=[host(DEAD)]), "failover")
    assert (found.node, found.why, "is invalid" in found.todo) == ("n", "its record is invalid", True)
    assert "state=absent" in only(snapshot(broken, hosts=[host(DEAD)]), "key").todo


def test_nothing_of_a_failover_is_ever_cleared():
    seen = snapshot(
        node(ready=True, tainted=True, evidence=True, run=DEAD),
        hosts=[host(DEAD)],
        attachments=[attached("gone")],
    )
    found = [item for item in examine(seen) if item.kind in failovers.KINDS]
    assert {item.kind for item in found} == set(failovers.KINDS)
    assert not any(item.stale for item in found)
