# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The out-of-service taint on a real API server, with the controllers that act on it.

Nodes are simulated. A node that is down is silent; the test itself sets its condition at once, where the node
controller would after a while.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from integration.support.metal3 import Fenced, bound
from integration.support.world import ready

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules, paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import taint as operation
from ansible_collections.holdfast.kubernetes.plugins.modules import (
    lease_hold,
    node_claim,
    out_of_service,
    reboot_annotation,
    reboot_slot,
)
from lab import kwok
from lab.patience import PATIENCE

KEY, EVIDENCE = "node.kubernetes.io/out-of-service", "holdfast.dev/evidence"
LEASES = paths.leases("kube-node-lease")
TOLERANT = [{"operator": "Exists"}]


class Down:
    """One simulated node that is off."""

    def __init__(self, world):
        self.world = world
        (self.name,) = world.nodes()

    @property
    def node(self):
        return self.world.node(self.name)

    @property
    def boot_id(self):
        return self.node["status"]["nodeInfo"]["bootID"]

    def power(self, *, on):
        self.world.cluster.merge(
            paths.node(self.name), {"metadata": {"labels": {kwok.POWER: None if on else kwok.OFF}}}
        )

    def die(self):
        self.power(on=False)
        self.world.set_condition(self.name, "Ready", "Unknown", "NodeStatusUnknown")
        # With a Lease, it would have to be silent for a while. This comes last: kwok may renew it once more until it
        # sees the label.
        with contextlib.suppress(NotFound):
            self.world.cluster.delete(paths.one(LEASES, self.name))

    def has_lease(self, seconds, renewed="2026-01-01T00:00:00.000000Z"):
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": seconds, "renewTime": renewed}
        try:
            self.world.cluster.create(LEASES, {"metadata": {"name": self.name}, "spec": spec})
        except ApiFailure as error:
            if error.status != 409:
                raise
            # The last renewal of kwok came after the deletion.
            self.world.cluster.merge(paths.one(LEASES, self.name), {"spec": spec})

    def report_boot(self, boot_id):
        self.world.cluster.merge(f"{paths.node(self.name)}/status", {"status": {"nodeInfo": {"bootID": boot_id}}})

    def boot(self, boot_id="another"):
        self.report_boot(boot_id)
        self.world.set_condition(self.name, "Ready", "True", "KubeletReady")
        self.power(on=True)

    def run(self, state="present", *, check_mode=False, **options):
        if "statement" in (options.get("evidence") or {}):
            options["evidence"] = named(options["evidence"], self.name)
        return self.world.run(out_of_service, check_mode=check_mode, name=self.name, state=state, **options)

    def put(self, evidence=None, **options):
        return self.run(evidence=evidence or attested(), **options)

    def proven(self, **options):
        """The evidence that is recorded."""
        done = self.put(**options)
        assert not done.get("failed"), done["msg"]
        return done["evidence"]

    @property
    def taint(self):
        found = [item for item in self.node["spec"].get("taints") or [] if item["key"] == KEY]
        return found[0]["value"] if found else None

    @property
    def evidence(self):
        return json.loads(self.node["metadata"]["annotations"].get(EVIDENCE, "null"))

    @property
    def untouched(self):
        return self.taint is None and self.evidence is None

    def attachment(self, name, volume=None):
        body = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": f"{self.name}-{name}"},
            "spec": {
                "attacher": "csi.example.com",
                "nodeName": self.name,
                "source": {"persistentVolumeName": volume or f"{self.name}-{name}"},
            },
        }
        self.world.cluster.create(paths.VOLUME_ATTACHMENTS, body)
        path = paths.one(paths.VOLUME_ATTACHMENTS, body["metadata"]["name"])
        self.world.made.objects.append(path)
        return path


def attested(**more):
    now = datetime.now(timezone.utc).isoformat()
    return {"kind": "Attestation", "by": "Ada", "statement": "I pulled the cords of NODE.", "at": now, **more}


def named(evidence, node):
    """A person's confirmation, about this node."""
    return {**evidence, "statement": evidence["statement"].replace("NODE", node)}


def commanded(program, **more):
    return {"kind": "Command", "argv": ["sh", "-c", program], **more}


@pytest.fixture
def up(world):
    return Down(world)


@pytest.fixture
def down(up):
    up.die()
    return up


@pytest.fixture
def bmc(down):
    """A BMC that reports what the test sets."""
    system = {"PowerState": "Off", "UUID": down.node["status"]["nodeInfo"]["systemUUID"].upper()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if system.get("gone", 0) > 0:
                # As a BMC that is busy with the power.
                system["gone"] -= 1
                self.connection.close()
                return
            known = self.path == "/redfish/v1/Systems/1"
            allowed = self.headers.get("Authorization") == "Basic dTpodXNo"
            self.send_response(404 if not known else 200 if allowed else 401)
            self.end_headers()
            self.wfile.write(json.dumps(system).encode())

        def log_message(self, *_arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    uri = f"http://127.0.0.1:{server.server_port}/redfish/v1/Systems/1"
    yield system, {"kind": "Redfish", "uri": uri, "username": "u", "password": "hush", "insecure_http": True}
    server.shutdown()
    server.server_close()


# -- there and back ---------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_workloads_move_and_the_node_comes_back(up, namespace):
    world = up.world
    world.owned("goes", up.name)
    world.owned("stays", up.name, tolerations=TOLERANT)
    theirs = {"key": "theirs", "value": "kept", "effect": "NoSchedule"}
    world.cluster.merge(paths.node(up.name), {"spec": {"taints": [theirs]}})
    up.die()
    volume = up.attachment("volume")
    detached = threading.Timer(3, lambda: world.cluster.delete(volume))
    detached.start()
    boot_id = up.boot_id
    done = up.put(value="hardwarefailure")

    assert not done.get("failed"), done["msg"]
    assert done["changed"]
    assert done["taint"] == {"key": KEY, "value": "hardwarefailure", "effect": "NoExecute"}
    assert theirs in up.node["spec"]["taints"]
    states = {pod["name"]: (pod["state"], pod["reason"]) for pod in done["pods"]}
    assert states == {"goes": ("gone", ""), "stays": ("stays", f"it tolerates the taint {KEY}")}
    assert [item["state"] for item in done["volume_attachments"]] == ["gone"]
    assert (done["blockers"], done["back"]) == ([], False)
    assert set(world.pods(up.name)) == {"stays"}
    kept = up.evidence
    assert kept == done["evidence"]
    assert (kept["kind"], kept["by"], kept["node"], kept["boot_id"]) == ("Attestation", "Ada", up.name, boot_id)

    again = up.put(value="hardwarefailure")
    assert again["changed"] is False
    assert again["evidence"] == kept
    assert up.run("present", value="hardwarefailure")["changed"] is False, "proven before"

    assert up.run("absent")["why"] == "not_ready"
    world.set_condition(up.name, "Ready", "True", "KubeletReady")
    under_it = up.run("present")
    assert (under_it["why"], under_it["back"], up.taint) == ("ready", True, "hardwarefailure")
    assert "recover" in under_it["msg"]
    failed = up.run("absent")
    assert (failed["why"], failed["changed"]) == ("same_boot", False)
    up.boot()
    back = up.run("absent")
    assert not back.get("failed"), back["msg"]
    assert (back["changed"], back["taint"], back["evidence"]) == (True, None, None)
    assert up.untouched
    assert theirs in up.node["spec"]["taints"]
    assert up.run("absent")["changed"] is False


def test_the_deadline_names_what_is_left(down):
    world = down.world
    world.create("pods", "kept", world.template("kept", nodeName=down.name) | {"metadata": {"finalizers": ["a.b/c"]}})
    volume = down.attachment("volume")
    failed = down.put(wait_timeout=3)

    assert failed["error"] == "timed_out"
    assert failed["changed"]
    # The pod garbage collector may have ended the pod by now.
    assert {(item["kind"], item["name"]) for item in failed["blockers"]} - {("Pod", "kept")} == {
        ("VolumeAttachment", volume.rpartition("/")[2])
    }
    assert volume.rpartition("/")[2] in failed["msg"]
    assert down.taint == "nodeshutdown", "the taint stays"
    assert {(item["name"], item["phase"]) for item in world.told} == {(down.name, "move")}
    assert world.told[0]["why"] == "pods to leave: 1, volumes to be detached: 1"

    # It ends the pod, but a finalizer keeps the object.
    world.until(world.path("pods"), "kept", lambda pod: pod is not None and pod["status"]["phase"] == "Failed")
    down.boot()
    refused = down.run("absent", wait=False)
    assert (refused["why"], [item["kind"] for item in refused["blockers"]]) == ("left", ["VolumeAttachment"])
    assert down.taint == "nodeshutdown"
    world.cluster.delete(volume)
    back = down.run("absent")
    assert [(item["name"], item["state"]) for item in back["pods"]] == [("kept", "stays")]
    assert back["pods"][0]["reason"] == "it has ended, and its finalizers keep it: a.b/c"
    assert down.untouched
    world.cluster.merge(paths.pod(world.namespace, "kept"), {"metadata": {"finalizers": None}})


def test_back_while_its_workloads_move(down):
    down.world.owned("goes", down.name, wait=False)
    volume = down.attachment("volume")
    moving = down.world.start(out_of_service, name=down.name, evidence=named(attested(), down.name))
    down.world.until(paths.NODES, down.name, lambda _node: down.taint is not None)
    down.boot()
    down.world.cluster.delete(volume)
    done = moving.result(PATIENCE)
    assert (done["changed"], done["back"]) == (True, True), done
    assert "recover" in done["warnings"][0]


def test_what_is_left_is_waited_for_before_the_taint_goes(down, monkeypatch):
    volume = down.attachment("volume")
    assert down.put(wait=False)["changed"]
    down.boot()
    watch, waits = operation._watch, threading.Event()

    def watched(cluster, name, value, deadline, contents):
        if deadline.left:
            waits.set()
        watch(cluster, name, value, deadline, contents)

    monkeypatch.setattr(operation, "_watch", watched)
    taken_off = down.world.start(out_of_service, name=down.name, state="absent")
    assert waits.wait(PATIENCE)
    assert down.taint == "nodeshutdown"
    down.world.cluster.delete(volume)
    done = taken_off.result(PATIENCE)
    assert (done["changed"], down.taint) == (True, None), done


def test_a_volume_of_a_pod_that_stays_stays_too(up):
    world = up.world
    name = f"{up.name}-data"
    volume = {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "claimRef": {"namespace": world.namespace, "name": "data"},
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
        },
    }
    world.cluster.create("/api/v1/persistentvolumes", volume)
    world.made.objects.append(f"/api/v1/persistentvolumes/{name}")
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": name}
    claim["resources"] = {"requests": {"storage": "1Gi"}}
    world.create("persistentvolumeclaims", "data", {"spec": claim})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    world.owned("stays", up.name, tolerations=TOLERANT, volumes=volumes, wait=False)
    up.die()
    up.attachment("data", name)
    done = up.put(wait_timeout=PATIENCE)

    assert not done.get("failed"), done["msg"]
    assert [(item["volume"], item["state"]) for item in done["volume_attachments"]] == [(name, "stays")]


def test_check_mode_looks_and_does_nothing(down):
    down.world.owned("goes", down.name, wait=False)
    outcome = down.put(check_mode=True)
    assert (outcome["changed"], outcome["taint"]["value"]) == (True, "nodeshutdown")
    assert [item["name"] for item in outcome["blockers"]] == ["goes"]
    assert outcome["diff"]["after"]["evidence"]["by"] == "Ada"
    assert down.untouched
    assert down.put(commanded("echo on"), check_mode=True)["why"] == "not_off"

    down.put(wait=False)
    down.boot()
    with contextlib.suppress(NotFound):
        down.world.delete("pods", "goes")
    down.world.until(down.world.path("pods"), "goes", lambda pod: pod is None)
    assert down.run("absent", check_mode=True)["taint"] is None
    assert down.taint == "nodeshutdown"


# -- refusals ---------------------------------------------------------------------------------------------------------


def refused(node, why, error="refused", **options):
    failed = node.run(**{"evidence": attested(), **options})
    assert (failed.get("error"), failed.get("why"), failed["changed"]) == (error, why, False), failed
    assert node.name in failed["msg"] or error == "not_found"
    assert node.untouched
    return failed


def test_no_evidence(down):
    refused(down, "no_evidence", evidence=None)
    refused(down, None, "invalid_input", evidence={"kind": "Attestation", "by": "Ada"})


def test_ready(up):
    refused(up, "ready")


def test_shutting_down(down):
    status = down.node["status"]
    others = [item for item in status["conditions"] if item["type"] != "Ready"]
    ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "[node is shutting down]"}
    down.world.cluster.merge(f"{paths.node(down.name)}/status", {"status": {"conditions": [*others, ready]}})
    refused(down, "shutting_down")


def test_held(down):
    hold = {"node": down.name, "namespace": down.world.namespace, "holder": "db", "wait": False}
    down.world.run(lease_hold, **hold)
    refused(down, None, "held")
    assert down.proven(override_holds=True)["overridden_holds"] == [f"{down.world.namespace}/db"]


def test_claimed(down):
    down.world.run(node_claim, name=down.name, run="theirs", operation="o")
    refused(down, None, "claimed")
    refused(down, None, "claim_lost", run="mine")
    assert down.proven(run="theirs")["run"] == "theirs"


def test_in_a_live_slot(up):
    slot = {"name": up.name, "group": up.world.namespace, "operation": "o", "selector": f"pool={up.world.namespace}"}
    up.world.made.objects.append(paths.one(paths.config_maps("holdfast"), f"group.{up.world.namespace}"))
    taken = up.world.run(reboot_slot, **slot, run=f"theirs-{up.name}")
    assert not taken.get("failed"), taken
    up.die()
    failed = refused(up, "in_slot")
    assert failed["slot"]["run"] == f"theirs-{up.name}"

    # A slot comes before the claim, so the run with the claim is the only one that works on the node.
    up.world.run(node_claim, name=up.name, run="mine", operation="failover", purpose="failover")
    assert up.put(run="mine")["evidence"]["run"] == "mine"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"at": (datetime.now(timezone.utc) - timedelta(days=1)).isoformat()}, "old"),
        ({"at": (datetime.now(timezone.utc) + timedelta(days=1)).isoformat()}, "old"),
        ({"node": "another"}, "other_host"),
        ({"boot_id": "another"}, "new_boot"),
    ],
)
def test_evidence_that_proves_nothing(down, more, why):
    refused(down, why, evidence=attested(**more))


def test_a_kubelet_that_still_renews_its_lease(down):
    down.has_lease(40)
    wait = operation.wait_for

    def renewed_meanwhile(cluster, collection, *arguments):
        if collection == LEASES:
            # Times in managed fields have whole seconds.
            time.sleep(2)
            down.has_lease(40, "2026-01-01T00:00:01.000000Z")
        return wait(cluster, collection, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operation, "wait_for", renewed_meanwhile)
        refused(down, "alive")
    # Before the last sign of life, and not so old that it is refused for that alone.
    before = (datetime.now(timezone.utc) - timedelta(minutes=4)).isoformat()
    assert "gave a sign of life" in refused(down, "old", evidence=attested(at=before))["msg"]
    assert down.put()["waited"] > 0


def test_a_machine_that_continues_while_the_kubelet_is_waited_for(down, bmc):
    """The kubelet's silence takes a while, so the module looks at the power again after it."""
    system, evidence = bmc
    down.has_lease(15)
    looks = []
    look = operation._check_silence

    def watched(*arguments):
        looks.append(system["PowerState"])
        system["PowerState"] = "On"
        return look(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operation, "_check_silence", watched)
        refused(down, "not_off", evidence=evidence)
    assert looks == ["Off"]


@pytest.mark.parametrize(
    "statement",
    [
        "I pulled the cords.",
        "another-node is off.",
        "NODE2 is off.",
        "x-NODE is off.",
        "NODE.example.com is off.",
        "NODE and OTHER are off.",
    ],
)
def test_a_statement_that_is_not_about_this_node_alone(down, statement):
    (other,) = down.world.nodes()
    said = statement.replace("NODE", down.name).replace("OTHER", other)
    failed = refused(down, "other_node", evidence=attested(statement=said))
    assert f'"{down.name} is off' in failed["msg"]


def test_a_bmc_without_https(down, bmc):
    _system, evidence = bmc
    assert "is not https" in refused(down, None, "invalid_input", evidence={**evidence, "insecure_http": False})["msg"]


def test_a_volume_whose_driver_never_detaches_it(down):
    """Its attacher is dead for good. The machine was off, so nothing there has the volume mounted."""
    volume = down.attachment("volume")
    down.world.cluster.merge(volume, {"metadata": {"finalizers": ["csi.example.com/attacher"]}})
    down.world.cluster.delete(volume)
    try:
        failed = down.put(wait_timeout=1)
        assert (failed["error"], [item["detaching"] for item in failed["blockers"]]) == ("timed_out", [True])
        assert "failover_force" in failed["msg"]
        down.boot()
        assert down.run("absent", wait_timeout=1)["why"] == "left"
        assert down.taint == "nodeshutdown"
        done = down.run("absent", wait_timeout=1, force=True)
        assert (done["changed"], down.taint) == (True, None), done
        assert "attacher" in done["warnings"][0]
        assert down.evidence["removed"]["forced"] is True
    finally:
        down.world.cluster.merge(volume, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("sign", ["ready", "boot"])
def test_a_node_that_comes_back_between_the_look_and_the_taint(down, monkeypatch, sign):
    confirm = operation.check_evidence.confirm

    def interfere(*arguments):
        seen = confirm(*arguments)
        if sign == "ready":
            down.world.set_condition(down.name, "Ready", "True", "KubeletReady")
        else:
            down.report_boot("another")
        return seen

    evidence = attested(boot_id=down.boot_id)
    monkeypatch.setattr(operation.check_evidence, "confirm", interfere)
    refused(down, "ready" if sign == "ready" else "new_boot", evidence=evidence)


def test_down_again_after_a_boot(down):
    evidence = attested(boot_id=down.boot_id)
    down.boot()
    down.die()
    refused(down, "new_boot", evidence=evidence)


def test_no_such_node(world):
    assert world.run(out_of_service, name="no-such-node", evidence=attested())["error"] == "not_found"
    assert world.run(out_of_service, name="no-such-node", state="absent")["error"] == "not_found"


def test_force_puts_nothing_there(down):
    refused_ = down.put(force=True)
    assert refused_["error"] == "invalid_input"
    assert down.untouched


# -- kinds of evidence ------------------------------------------------------------------------------------------------


class TestBareMetalHost:
    @pytest.fixture
    def fenced(self, world, lab, tmp_path):
        with bound(world, lab, tmp_path) as hosts:
            found = Fenced(world, hosts)
            found.hosts.start()
            yield found

    def node(self, fenced):
        found = Down.__new__(Down)
        found.world, found.name = fenced.world, fenced.node
        return found

    def fence(self, fenced):
        done = fenced.run(mode="hard")
        assert not done.get("failed"), done["msg"]
        node = self.node(fenced)
        node.die()
        return node, done["evidence"]

    def test_good(self, fenced):
        node, evidence = self.fence(fenced)
        done = node.put(evidence)

        assert not done.get("failed"), done["msg"]
        kept = done["evidence"]
        assert kept["seen"] == "poweredOn went from true to false after the key was written"
        assert (kept["host"], kept["key"], kept["since"]) == (fenced.host.name, "ours", evidence["since"])
        fenced.run("absent")
        fenced.world.until(paths.NODES, node.name, lambda item: item["status"]["nodeInfo"]["bootID"] != kept["boot_id"])
        fenced.world.until(
            paths.NODES,
            node.name,
            lambda item: any(c["type"] == "Ready" and c["status"] == "True" for c in item["status"]["conditions"]),
        )
        assert node.run("absent")["changed"]
        assert node.untouched

    def test_no_longer_true(self, fenced):
        node, evidence = self.fence(fenced)
        fenced.hosts.stop()
        fenced.host.annotate({"reboot.metal3.io/ours": None})
        assert "not on it" in refused(node, "not_off", evidence=evidence)["msg"]
        fenced.run(wait=False)
        refused(node, "not_datable", evidence=evidence)
        fenced.host.tell(poweredOn=True)
        refused(node, "not_off", evidence=evidence)

    @pytest.mark.parametrize("annotation", ["baremetalhost.metal3.io/paused", "baremetalhost.metal3.io/detached"])
    def test_of_a_host_that_metal3_does_not_manage(self, fenced, annotation):
        node, evidence = self.fence(fenced)
        fenced.host.annotate({annotation: ""})
        refused(node, "not_off", evidence=evidence)

    def test_not_datable(self, fenced):
        fenced.hosts.stop()
        fenced.host.cut()
        fenced.host.tell(poweredOn=False)
        fenced.run(wait=False)
        node = self.node(fenced)
        node.die()
        evidence = {
            "kind": "BareMetalHost",
            "host": fenced.host.name,
            "namespace": fenced.host.namespace,
            "key": "ours",
        }
        refused(node, "not_datable", evidence={**evidence, "at": attested()["at"]})
        refused(node, None, "invalid_input", evidence=evidence)

    def test_of_another_host(self, fenced, world):
        _fenced, evidence = self.fence(fenced)
        other = Down(world)
        other.die()
        refused(other, "other_host", evidence=evidence)
        # Not even if the evidence names this node.
        refused(other, "other_host", evidence={**evidence, "node": other.name, "boot_id": other.boot_id})
        refused(other, "other_host", evidence={**evidence, "node": "", "boot_id": ""})

    def test_of_a_host_that_was_created_again(self, fenced):
        node, evidence = self.fence(fenced)
        refused(node, "other_host", evidence={**evidence, "uid": "another"})
        refused(node, None, "not_found", evidence={**evidence, "host": "no-such-host"})


class TestRedfish:
    def test_good(self, down, bmc):
        _system, evidence = bmc
        done = down.put(evidence)
        assert not done.get("failed"), done["msg"]
        assert done["evidence"]["power_state"] == "Off"
        assert "hush" not in str(down.node)

    @pytest.mark.parametrize("state", ["On", "PoweringOff", "PoweringOn", "off"])
    def test_on(self, down, bmc, state):
        system, evidence = bmc
        system["PowerState"] = state
        assert state in refused(down, "not_off", evidence=evidence)["msg"]

    def test_another_system(self, down, bmc):
        system, evidence = bmc
        refused(down, "other_host", evidence={**evidence, "uuid": "99"})
        for unlike in ("12AB", "", "0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53"):
            # On or off, the host is not this node's.
            for state in ("On", "Off"):
                system.update(UUID=unlike, PowerState=state)
                refused(down, "other_host", evidence=evidence)
                refused(down, "other_host", evidence=evidence, check_mode=True)
        assert down.put({**evidence, "uuid": unlike})["changed"], "a person has looked"

    def test_not_off_yet(self, down, bmc):
        system, evidence = bmc
        system["PowerState"] = "On"
        assert "On" in refused(down, "not_off", evidence=evidence, proof_timeout=1)["msg"]
        switched = threading.Timer(2, lambda: system.update(PowerState="Off"))
        switched.start()
        done = down.put(evidence, proof_timeout=PATIENCE)
        switched.join()
        assert (done["changed"], done["evidence"]["power_state"]) == (True, "Off"), done

    def test_away_for_a_moment(self, down, bmc):
        system, evidence = bmc
        system["gone"] = 4
        assert down.put(evidence)["error"] == "bmc"
        system["gone"] = 4
        assert down.put(evidence, proof_timeout=PATIENCE)["changed"]

    def test_all_else_is_refused_at_once(self, down, bmc):
        refused(down, "other_host", evidence={**bmc[1], "uuid": "99"}, proof_timeout=600)
        down.world.set_condition(down.name, "Ready", "True", "KubeletReady")
        refused(down, "ready", evidence=bmc[1], proof_timeout=600)

    def test_credentials_in_the_uri(self, down, bmc):
        evidence = {**bmc[1], "uri": bmc[1]["uri"].replace("://", "://u:pssst@")}
        assert "pssst" not in refused(down, None, "invalid_input", evidence=evidence)["msg"]

    def test_no_answer(self, down, bmc):
        system, evidence = bmc
        for how in ({"password": "wrong"}, {"uri": f"{evidence['uri']}0"}, {"uri": "http://127.0.0.1:1/x"}):
            assert down.put({**evidence, **how})["error"] == "bmc"
        system["PowerState"] = None
        assert down.put(evidence)["error"] == "bmc"
        assert down.put({**evidence, "uri": "bmc/1"})["error"] == "invalid_input"
        assert down.untouched


class TestCommand:
    def test_good(self, down):
        done = down.put(commanded('echo "asked for $HOLDFAST_NODE"; echo Chassis Power is off'))
        assert not done.get("failed"), done["msg"]
        assert done["evidence"]["output"] == f"asked for {down.name}\nChassis Power is off"
        assert "Chassis" in down.evidence["output"]
        assert "argv" not in down.evidence

    def test_split_into_words(self, down):
        assert down.put({"kind": "Command", "command": "printf '%s' 'off'"})["changed"]

    @pytest.mark.parametrize(
        "program", ["echo on", "exit 0", "echo off; exit 2", "echo it is not off", "echo off >&2", "echo off; echo on"]
    )
    def test_says_on(self, down, program):
        refused(down, "not_off", evidence=commanded(program))

    def test_takes_too_long(self, down):
        failed = refused(down, "not_off", evidence=commanded("sleep 60 & sleep 60", timeout=1))
        assert "1 s" in failed["msg"]

    def test_no_such_command(self, down):
        assert down.put({"kind": "Command", "command": "/no/such/command"})["error"] == "invalid_input"
        assert down.put({"kind": "Command", "command": "'"})["error"] == "invalid_input"


# -- taking it off ----------------------------------------------------------------------------------------------------


def test_wrong_evidence_is_overridden_by_force_and_stays_on_record(down):
    down.put()
    boot_id = down.boot_id
    assert down.run("absent", force=True)["why"] == "not_ready"
    down.boot(boot_id)
    assert down.run("absent")["why"] == "same_boot"
    done = down.run("absent", force=True)

    assert (done["changed"], down.taint) == (True, None)
    assert "by force" in done["warnings"][0]
    assert (down.evidence["by"], down.evidence["removed"]["forced"]) == ("Ada", True)
    assert down.run("absent")["changed"] is False
    down.die()
    assert down.run("present")["why"] == "no_evidence", "what was proven wrong proves nothing"


def test_force_that_was_not_needed_is_not_reported(down):
    down.put()
    down.boot()
    done = down.run("absent", force=True)
    assert done["warnings"] == []
    assert down.untouched


def test_a_taint_of_someone_else(down):
    world = down.world
    taint = {"key": KEY, "value": "nodeshutdown", "effect": "NoExecute"}
    world.cluster.merge(paths.node(down.name), {"spec": {"taints": [taint]}})
    assert down.run("present")["why"] == "no_evidence"
    done = down.put(value="hardwarefailure")
    assert done["taint"]["value"] == "nodeshutdown"
    assert done["evidence"]["taint"] == "found"

    down.boot()
    left = down.run("absent")
    assert "taint stays on node" in left["warnings"][0]
    assert (down.taint, down.evidence) == ("nodeshutdown", None)
    assert down.run("absent")["why"] == "not_ours"
    assert down.run("absent", force=True)["changed"]
    assert down.taint is None


def test_a_taint_is_still_ours_if_the_node_is_down_again_before_its_removal(down):
    down.put()
    down.boot("second")
    down.die()
    unproven = down.run("present")
    assert (unproven["why"], unproven["back"]) == ("no_evidence", True)
    assert down.put()["changed"]
    assert (down.evidence["boot_id"], "taint" in down.evidence) == ("second", False)
    down.boot("third")
    assert down.run("absent")["changed"]
    assert down.untouched


def test_claimed_it_stays(down):
    down.put()
    down.boot()
    down.world.run(node_claim, name=down.name, run="theirs", operation="o")
    assert down.run("absent")["error"] == "claimed"
    assert down.taint
    assert down.run("absent", run="theirs")["changed"]


def test_the_evidence_is_removed_if_a_person_removed_the_taint(down):
    down.put()
    down.world.cluster.merge(paths.node(down.name), {"spec": {"taints": None}})
    assert down.run("absent")["changed"]
    assert down.untouched


# -- in a play --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_in_a_play(down, bmc, ansible):
    name = "holdfast.kubernetes.out_of_service"
    options = {"name": down.name, "kubeconfig": down.world.kubeconfig}
    done, again, stays = ansible.tasks(
        [
            {name: {**options, "evidence": bmc[1], "management": {"host": "https://x", "api_key": "hush-too"}}},
            {name: options},
            {name: {**options, "state": "absent"}},
        ],
        "-vvv",
    )[0:1][0]

    assert done["changed"]
    assert done["evidence"]["power_state"] == "Off"
    assert again["changed"] is False
    assert stays["why"] == "not_ready"
    shown = json.dumps(done)
    assert "hush" not in shown


# -- a real node ------------------------------------------------------------------------------------------------------


@pytest.mark.nodes
def test_a_real_node_is_fenced_and_comes_back(world, lab, tmp_path):
    with bound(world, lab, tmp_path) as hosts:
        host = hosts.add("node-3")
        hosts.start()
        node = Down.__new__(Down)
        node.world, node.name = world, "node-3"
        before = node.boot_id
        named = {"bare_metal_host": host.name, "namespace": world.namespace, "node": "node-3", "key": "ours"}
        world.owned("goes", "node-3")
        fenced = world.run(reboot_annotation, **named, mode="hard")
        assert not fenced.get("failed"), fenced["msg"]
        assert not host.powered

        evidence = {**fenced["evidence"]}
        world.until(paths.NODES, "node-3", lambda item: not ready(item))
        try:
            done = node.put(evidence)
            assert not done.get("failed"), done["msg"]
            assert "gone" in {pod["state"] for pod in done["pods"] if pod["name"] == "goes"}

            back = world.run(reboot_annotation, **named, state="absent")
            assert (back["powered_on"], host.powered) == (True, True)
            world.until(paths.NODES, "node-3", lambda item: ready(item) and node_rules.boot_id(item) != before)
        finally:
            host.switch_on()
            world.until(paths.NODES, "node-3", ready)
            off = node.run("absent", force=True)
        assert (off["changed"], off["warnings"]) == (True, [])
        assert node.untouched
