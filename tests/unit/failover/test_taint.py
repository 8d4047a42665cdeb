# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The age of the look by which a node is declared out of service."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from uuid import UUID

import pytest
from unit.reboot.memory_cluster import AT, MemoryCluster, QuietCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Held, Refused, TimedOut
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.gate import Pass
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import taint as operation
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import agent, last_look, redfish
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.command import CommandResult
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.redfish_rules import System

NODE = {"metadata": {"name": "n", "resourceVersion": "1"}, "spec": {}, "status": {}}
SLOW = last_look.GOOD_FOR * 2
BMC = sum(redfish.TIMEOUT)
OF_NODE_2 = UUID("4c4c4544-0042-3510-8053-b9c04f564333")


class Api:
    dry_run = False
    lease = None
    asked = 0

    def find(self, _path):
        """The kubelet's Lease; renewed when it is read again."""
        self.asked += 1
        times = {"managedFields": [{"time": f"2026-11-21T08:00:0{self.asked}Z"}]}
        return {"metadata": times} if self.lease == "renewed" else None

    def now(self):
        return datetime(2026, 11, 21, 9, tzinfo=timezone.utc)

    def merge(self, _path, patch, *, once=False):
        assert once
        return {**NODE, **patch}


@pytest.fixture
def declare(monkeypatch):
    """Declares a node out of service by evidence that takes so many seconds to look at, and then by its holds.

    ``later`` seconds pass after the evidence, and ``paused`` seconds after each look at the holds. A hold comes at
    ``held_from``.
    """
    clock = [0.0]

    def passes(seconds):
        def happens(*_arguments, **_options):
            clock[0] += seconds
            return {}

        return happens

    def act(
        kind,
        took=SLOW,
        later=0.0,
        *,
        source=0.0,
        paused=0.0,
        held_from=float("inf"),
        attempt=operation._try_to_add,
        lease=None,
    ):
        def check(*_arguments, **_options):
            if clock[0] >= held_from:
                raise Held("Node n is held: shop/till.")
            clock[0] += paused
            return Pass("b")

        monkeypatch.setattr(last_look, "steady", lambda: clock[0])
        monkeypatch.setattr(operation, "read_node", lambda *_arguments: NODE)
        monkeypatch.setattr(operation.gate, "check", check)
        monkeypatch.setattr(operation.rules, "check_down", lambda *_arguments: None)
        monkeypatch.setattr(operation, "_live_slot", lambda *_arguments: None)
        monkeypatch.setattr(operation, "_check_silence", lambda *_arguments: False)
        monkeypatch.setattr(operation.evidence_rules, "check", lambda *_arguments, **_options: None)
        monkeypatch.setattr(operation.evidence_rules, "record", passes(later))
        monkeypatch.setattr(operation.check_evidence, "check_source", passes(source))
        monkeypatch.setattr(operation.check_evidence, "confirm", passes(took))
        params = {
            "name": "n",
            "value": "nodeshutdown",
            "evidence": {"kind": kind},
            "override_holds": False,
            "proof_timeout": 0,
        }
        context = Context(params)
        api = Api()
        api.lease = lease
        context.__dict__.update(cluster=api, management=api)
        return attempt(context, params)

    return act


def test_a_second_check_that_took_too_long_is_too_old(declare):
    with pytest.raises(last_look.Stale):
        declare(operation.evidence_rules.BARE_METAL_HOST)


def test_a_command_reports_the_state_at_its_end(declare):
    assert declare(operation.evidence_rules.COMMAND).changed


def test_the_list_of_plugs_may_take_longer_than_the_check(declare):
    assert declare(operation.evidence_rules.FENCE_AGENT, source=SLOW * 10).changed


@pytest.mark.parametrize("took", [SLOW, BMC])
def test_a_bmc_may_take_as_long_as_its_time_out(declare, took):
    assert declare(operation.evidence_rules.REDFISH, took).changed


@pytest.mark.parametrize(
    ("kind", "took", "later"),
    [
        (operation.evidence_rules.REDFISH, 0.0, SLOW),
        (operation.evidence_rules.REDFISH, BMC, SLOW),
        (operation.evidence_rules.REDFISH, 3600.0, 0.0),
        (operation.evidence_rules.COMMAND, 0.0, SLOW),
        # It ended long ago, and this process was paused.
        (operation.evidence_rules.COMMAND, 3600.0, 0.0),
        (operation.evidence_rules.FENCE_AGENT, 3600.0, 0.0),
    ],
)
def test_a_pause_at_any_time_makes_the_check_too_old(declare, kind, took, later):
    with pytest.raises(last_look.Stale):
        declare(kind, took, later)


def test_a_hold_that_comes_while_the_evidence_is_looked_at_counts(declare):
    with pytest.raises(Held):
        declare(operation.evidence_rules.COMMAND, took=60.0, held_from=30.0)


def test_a_renewal_that_no_watch_has_shown_is_a_sign_of_life(declare):
    """The watch failed during the wait, or the kubelet renewed its Lease during the second look at the evidence."""
    with pytest.raises(Refused, match="its kubelet has just renewed its Lease") as caught:
        declare(operation.evidence_rules.COMMAND, lease="renewed")
    assert caught.value.fields["why"] == "alive"


def test_a_pause_after_the_look_at_holds_makes_it_too_old(declare):
    with pytest.raises(last_look.Stale):
        declare(operation.evidence_rules.COMMAND, took=0.0, paused=SLOW)


def test_looks_at_holds_that_are_always_too_old_end_with_a_way_out(declare):
    with pytest.raises(TimedOut, match=r"Nothing was done\. Find out why .* answers so slowly, and run it again"):
        declare(operation.evidence_rules.COMMAND, took=0.0, paused=SLOW, attempt=operation._prove_and_add)


@pytest.fixture
def two_nodes():
    cluster = MemoryCluster()
    cluster.node("node-1", ready=False)
    cluster.node("node-2")
    return cluster


def evidence_now(cluster, **evidence):
    """What the evidence for node-1 shows."""
    context = Context({})
    context.__dict__.update(cluster=cluster, management=cluster)
    return operation._evidence_now(context, cluster.find(paths.node("node-1")), evidence)[0]


def test_the_plug_of_another_node_proves_nothing(monkeypatch, two_nodes):
    answers = {
        "metadata": '<agent><parameter name="plug"/><action name="off"/><action name="reboot"/><action name="status"/>'
        '<action name="list"/></agent>',
        "list": "1,node-1\n2,node-2\n",
        "status": "Status: OFF\n",
    }

    def run(_agent, action, _seconds):
        return CommandResult(2 if action == "status" else 0, answers[action], "")

    monkeypatch.setattr(agent, "run", run)
    kind = operation.evidence_rules.FENCE_AGENT
    seen = evidence_now(two_nodes, kind=kind, agent='{"name": "fence_test", "plug": "1"}')
    assert seen["power_state"] == "off"
    with pytest.raises(Refused, match="its plug 2 is the one of node node-2") as caught:
        evidence_now(two_nodes, kind=kind, agent='{"name": "fence_test", "plug": "2"}')
    assert caught.value.fields["why"] == "other_host"


@pytest.mark.parametrize("uuid", [OF_NODE_2, UUID(bytes=OF_NODE_2.bytes_le), "03000200-0400-0500-0006-000700080009"])
def test_the_system_of_another_node_proves_nothing(monkeypatch, two_nodes, uuid):
    system = System("https://bmc/1", "Off", str(uuid).upper())
    monkeypatch.setattr(redfish, "Bmc", lambda _evidence: SimpleNamespace(read=lambda: system))
    given = {"kind": operation.evidence_rules.REDFISH, "uri": system.uri, "uuid": system.uuid}
    assert evidence_now(two_nodes, **given) == {"power_state": "Off", "uuid": system.uuid}
    two_nodes.node("node-2", system_uuid=str(OF_NODE_2) if isinstance(uuid, UUID) else uuid)
    with pytest.raises(Refused, match="is the systemUUID of node node-2") as caught:
        evidence_now(two_nodes, **given)
    assert caught.value.fields["why"] == "other_host"
    # Two machines whose firmware reports the same UUID.
    two_nodes.node("node-1", ready=False, system_uuid=system.uuid)
    with pytest.raises(Refused, match="is the systemUUID of node node-2"):
        evidence_now(two_nodes, **{**given, "uuid": ""})


def test_the_nodes_are_read_once(monkeypatch, two_nodes):
    """There may be thousands."""
    system, lists, items = System("https://bmc/1", "Off", str(OF_NODE_2)), [], two_nodes.items
    monkeypatch.setattr(redfish, "Bmc", lambda _evidence: SimpleNamespace(read=lambda: system))
    monkeypatch.setattr(two_nodes, "items", lambda path, **more: lists.append(path) or items(path, **more))
    evidence_now(two_nodes, kind=operation.evidence_rules.REDFISH, uri=system.uri, uuid=system.uuid)
    assert lists == [paths.NODES]


def test_a_machine_that_is_another_node_too_proves_nothing(two_nodes):
    for name in ("node-1", "node-2"):
        two_nodes.objects[paths.node(name)]["spec"]["providerID"] = "cloud://machine-1"
    with pytest.raises(Refused, match="Node node-1 and Node node-2 may be the same machine"):
        evidence_now(two_nodes, kind=operation.evidence_rules.COMMAND, argv=["echo", "off"])
    assert evidence_now(two_nodes, kind=operation.evidence_rules.ATTESTATION) == {}


def test_the_proof_before_a_recovery_that_was_interrupted_no_longer_counts():
    """The machine may be on: its record says that the recovery has begun to switch it on."""
    record = {
        **dict.fromkeys(("id", "run", "holder", "reason", "detail"), "x"),
        **dict.fromkeys(("started", "since"), AT),
        "phase": "move",
        "phases": {},
        "boot_id": "boot-1",
        "facts": {},
        "result": "moved",
    }
    cluster, evidence = MemoryCluster(), {"kind": "Command", "boot_id": "boot-1"}
    context = Context({})
    context.cluster = cluster
    params = {"name": "node-1", "value": "nodeshutdown", "override_holds": False}
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    for phase in ("move", "power_on", "ready"):
        cluster.node(ready=False, evidence=evidence, failover={**record, "phase": phase})
        cluster.objects[paths.node("node-1")]["spec"]["taints"] = [taint]
        if phase == "move":
            assert not operation._try_to_add(context, params).changed
        else:
            with pytest.raises(Refused, match="A recovery may have switched it on, so the earlier proof no longer"):
                operation._try_to_add(context, params)


def test_a_pod_that_its_finalizers_keep_does_not_keep_the_taint_but_its_volume_does():
    cluster = QuietCluster()
    evidence = {"kind": "Command", "boot_id": "boot-1"}
    cluster.node(boot_id="boot-2", evidence=evidence)
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    cluster.objects[paths.node("node-1")]["spec"]["taints"] = [taint]
    metadata = {"name": "db-0", "namespace": "shop", "uid": "p", "finalizers": ["a.b/c"], "deletionTimestamp": AT}
    spec = {"nodeName": "node-1", "volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}
    pod = {"metadata": metadata, "spec": spec, "status": {"phase": "Failed"}}
    cluster._store("TEST", paths.pod("shop", "db-0"), pod)
    claim = {"metadata": {"name": "data", "namespace": "shop"}, "spec": {"volumeName": "pv-1"}}
    cluster._store("TEST", paths.persistent_volume_claim("shop", "data"), claim)
    attached = {"attacher": "csi", "nodeName": "node-1", "source": {"persistentVolumeName": "pv-1"}}
    path = paths.one(paths.VOLUME_ATTACHMENTS, "va-1")
    cluster._store("TEST", path, {"metadata": {"name": "va-1"}, "spec": attached})
    params = {"name": "node-1", "state": "absent", "wait": False, "wait_timeout": 0, "force": False}
    context = Context(params)
    context.cluster = cluster
    with pytest.raises(Refused, match="VolumeAttachment va-1 is left") as refused:
        operation.out_of_service(context, params)
    assert "db-0" not in refused.value.message
    del cluster.objects[path]
    done = operation.out_of_service(context, params)
    assert (done["taint"], [item["state"] for item in done["pods"]]) == (None, ["stays"])


def test_a_lease_from_the_future_is_waited_for_no_longer_than_others(monkeypatch):
    lease = {"metadata": {"managedFields": [{"time": "2999-01-01T00:00:00Z"}]}}
    api, waits = Api(), []
    monkeypatch.setattr(operation, "wait_for", lambda *found: waits.append(found[-1].seconds) or lease)

    operation._check_silence(api, "n", {"kind": operation.evidence_rules.COMMAND}, lease)

    assert waits == [15.0]
