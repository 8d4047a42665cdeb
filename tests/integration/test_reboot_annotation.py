# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reboot annotations on a real API server, with the lab's metal3 running or stopped."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
from integration.support import machines
from integration.support.metal3 import BASE, Fenced, bound

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.reboot_watch import Outcome
from ansible_collections.holdfast.kubernetes.plugins.modules import (
    bare_metal_host_info,
    deletion_hook,
    lease_hold,
    node_claim,
    reboot_annotation,
)
from lab.metal3.settings import Times
from lab.patience import PATIENCE

RECORDS = "holdfast.dev/reboot-keys"
OURS, OTHER = f"{BASE}/ours", f"{BASE}/other"
HARD = '{"mode": "hard"}'
# Seconds of a wait that fails; what is to happen meanwhile takes less time, even on a busy machine.
MEANWHILE = 15
NOWHERE = {"host": "https://127.0.0.1:1", "api_key": "none", "validate_certs": False}


@pytest.fixture
def hosts(world, lab, tmp_path):
    with bound(world, lab, tmp_path) as found:
        yield found


@pytest.fixture
def fenced(world, hosts):
    """A node and its host, with metal3 away unless a test starts it."""
    return Fenced(world, hosts)


def host_of(world, node):
    outcome = world.run(bare_metal_host_info, node=node)
    assert len(outcome["hosts"]) == 1, outcome
    return outcome["hosts"][0]["name"]


def remove_expired(fenced, **more):
    options = {"namespace": fenced.host.namespace, "state": "expired", **more}
    done = fenced.world.run(reboot_annotation, **options)
    assert not done.get("failed"), done
    return done


@pytest.mark.core
def test_kept_off_and_back(fenced):
    fenced.hosts.start()
    fenced.host.annotate({OTHER: "gibberish", "theirs": " kept "})
    boot_id = fenced.boot_id
    done = fenced.run(mode="hard")

    assert not done.get("failed"), done["msg"]
    assert (done["changed"], done["powered_on"], fenced.host.powered) == (True, False, False)
    assert done["node"] == fenced.node
    assert [(key["key"], key["mode"], key["valid"]) for key in done["keys"]] == [
        ("other", "soft", False),
        ("ours", "hard", True),
    ]
    assert done["effective_mode"] == "hard"
    evidence = done["evidence"]
    assert evidence["seen"] == "poweredOn went from true to false after the key was written"
    assert (evidence["host"], evidence["node"], evidence["boot_id"]) == (fenced.host.name, fenced.node, boot_id)
    assert fenced.keys == {OTHER: "gibberish", OURS: HARD}
    found = fenced.info()
    assert (found["name"], found["powered_on"], found["acts"]) == (fenced.host.name, False, True)
    assert [(key["ours"], key["proves_off"]) for key in found["keys"]] == [(False, False), (True, True)]
    again = fenced.run(mode="hard")
    assert again["changed"] is False
    assert again["evidence"]["since"] == evidence["since"]

    kept = fenced.run("absent")
    assert kept["changed"]
    assert kept["powered_on"] is False
    assert OTHER in kept["warnings"][0]
    assert fenced.host.annotations == {OTHER: "gibberish", "theirs": " kept "}
    fenced.host.annotate({OTHER: None})
    fenced.host.until_reported(on=True)
    assert fenced.boot_id != boot_id


def test_removed_it_comes_back(fenced):
    fenced.hosts.start()
    fenced.run(mode="hard")
    back = fenced.run("absent")

    assert (back["changed"], back["powered_on"], back["evidence"]) == (True, True, None)
    assert fenced.host.powered
    assert RECORDS not in fenced.host.annotations


def test_rebooted_once(fenced):
    fenced.hosts.start()
    boot_id = fenced.boot_id
    done = fenced.run(key=None, mode="hard")

    assert not done.get("failed"), done["msg"]
    assert (done["changed"], done["keys"], done["evidence"]) == (True, [], None)
    assert fenced.boot_id != boot_id
    assert fenced.host.until_reported(on=True)
    assert fenced.host.commands == ["off", "on"]
    assert RECORDS not in fenced.host.annotations


def test_a_missing_annotation_does_not_prove_a_reboot(fenced):
    pending = fenced.world.start(reboot_annotation, node=fenced.node, wait_timeout=MEANWHILE, wait=True)
    fenced.host.until(lambda host: BASE in (host["metadata"].get("annotations") or {}))
    fenced.host.annotate({BASE: None})
    failed = pending.result()

    assert failed["error"] == "timed_out"
    assert "The annotation is gone" in failed["msg"]
    assert RECORDS not in fenced.host.annotations, "the next run asks again"


def test_off_and_not_back_is_not_a_reboot(fenced):
    pending = fenced.world.start(reboot_annotation, node=fenced.node, wait_timeout=MEANWHILE)
    fenced.host.until(lambda host: BASE in (host["metadata"].get("annotations") or {}))
    fenced.host.tell(poweredOn=False)
    fenced.host.annotate({BASE: None})
    failed = pending.result()

    assert failed["error"] == "timed_out"
    assert "did not come back" in failed["msg"]


def test_a_new_boot_id_is_a_reboot(fenced):
    pending = fenced.world.start(reboot_annotation, node=fenced.node, wait_timeout=PATIENCE)
    fenced.host.until(lambda host: BASE in (host["metadata"].get("annotations") or {}))
    status = {"status": {"nodeInfo": {"bootID": "another"}}}
    fenced.world.cluster.merge(f"{paths.node(fenced.node)}/status", status)
    assert not pending.done()
    fenced.host.annotate({BASE: None})

    assert not pending.result().get("failed"), pending.result()["msg"]


class TestHeldAfterTheRequest:
    """The node confirms a hold after the last look."""

    def confirm(self, fenced):
        condition = {"type": "ShutdownInhibited", "status": "True", "reason": "shop/db", "message": "by a test"}
        fenced.world.cluster.merge(f"{paths.node(fenced.node)}/status", {"status": {"conditions": [condition]}})

    def start(self, fenced, **more):
        pending = fenced.world.start(reboot_annotation, node=fenced.node, wait_timeout=MEANWHILE, **more)
        fenced.host.until(lambda host: BASE in (host["metadata"].get("annotations") or {}))
        return pending

    def test_the_request_is_taken_back(self, fenced):
        pending = self.start(fenced)
        self.confirm(fenced)
        failed = pending.result()

        assert failed["error"] == "held"
        assert "shop/db" in failed["msg"]
        assert failed["shutdown_inhibited"] == ["shop/db"]
        assert fenced.keys == {}
        assert RECORDS not in fenced.host.annotations

    def test_so_is_the_request_of_an_earlier_run(self, fenced):
        fenced.run(key=None, wait=False)
        self.confirm(fenced)
        assert fenced.run(key=None, wait_timeout=MEANWHILE)["error"] == "held"
        assert fenced.keys == {}

    def test_it_stays_if_the_hold_is_overridden_or_comes_too_late(self, fenced, monkeypatch):
        seen_off, saw_host = threading.Event(), Outcome.saw_host

        def note(outcome, host):
            saw_host(outcome, host)
            if host["status"].get("poweredOn") is False:
                seen_off.set()

        monkeypatch.setattr(Outcome, "saw_host", note)
        pending = self.start(fenced, override_holds=True)
        self.confirm(fenced)
        assert pending.result()["error"] == "timed_out"
        fenced.world.cluster.merge(f"{paths.node(fenced.node)}/status", {"status": {"conditions": []}})

        pending = self.start(fenced)
        fenced.host.tell(poweredOn=False)
        assert seen_off.wait(PATIENCE)
        self.confirm(fenced)
        fenced.host.annotate({BASE: None})
        fenced.host.tell(poweredOn=True)
        assert not pending.result().get("failed"), pending.result()["msg"]


def test_soft_is_made_hard(world, hosts):
    # Longer than our first wait takes, even on a busy machine.
    fenced = Fenced(world, hosts, times=replace(Times.quick(), soft_timeout=20.0))
    fenced.hosts.start()
    fenced.host.faults(soft_ignored=True)
    failed = fenced.run(wait_timeout=2)
    assert (failed["error"], failed["powered_on"]) == ("timed_out", True)
    assert "hard" in failed["msg"]
    assert "recover" in failed["msg"]
    assert failed["changed"]

    done = fenced.run(mode="hard")
    assert not done.get("failed"), done["msg"]
    assert done["changed"]
    assert fenced.keys == {OURS: HARD}
    assert done["evidence"]


def test_a_host_that_was_off_proves_nothing(fenced):
    fenced.host.cut()
    fenced.host.tell(poweredOn=False, lastUpdated="2026-01-01T00:00:00Z")
    failed = fenced.run(wait_timeout=2)

    assert failed["error"] == "not_datable"
    assert "another kind of evidence" in failed["msg"]
    assert failed["powered_on"] is False
    assert OURS in fenced.keys

    # metal3 saves a status without reading the power.
    fenced.host.tell(lastUpdated="2099-01-01T00:00:00Z")
    assert fenced.run(wait_timeout=2)["error"] == "not_datable"


@pytest.mark.parametrize("status", ["registration error", "OK"])
def test_a_machine_that_is_on_while_its_status_says_off(fenced, status):
    """It was switched on while metal3 was down. Then our key, with a BMC that can or can't be reached."""
    fenced.host.tell(poweredOn=False, operationalStatus="error")
    pending = fenced.world.start(reboot_annotation, node=fenced.node, key="ours", mode="hard", wait_timeout=6)
    fenced.host.until(lambda host: OURS in (host["metadata"].get("annotations") or {}))
    if status == "OK":
        fenced.host.tell(operationalStatus="OK", lastUpdated="2099-01-01T00:00:00Z")
    failed = pending.result()

    assert (failed["error"], failed["powered_on"]) == ("not_datable", False)
    assert fenced.host.powered
    again = fenced.run(mode="hard", wait=False)
    assert again["evidence"] is None


def test_a_machine_that_is_seen_on_later_can_be_seen_to_go_off(fenced):
    fenced.host.tell(poweredOn=False)
    fenced.hosts.start()
    done = fenced.run(mode="hard")

    assert not done.get("failed"), done["msg"]
    assert done["evidence"]["seen"] == "poweredOn went from true to false after the key was written"
    assert not fenced.host.powered


def test_a_key_of_an_earlier_boot(fenced):
    """An earlier try, a boot by itself while metal3 is down, and a hang."""
    fenced.run(mode="hard", wait=False)
    status = {"status": {"nodeInfo": {"bootID": "another"}}}
    fenced.world.cluster.merge(f"{paths.node(fenced.node)}/status", status)
    fenced.hosts.start()
    done = fenced.run(mode="hard")

    assert not done.get("failed"), done["msg"]
    assert done["evidence"]["boot_id"] == fenced.boot_id == "another"


def test_a_status_that_is_old_proves_nothing(fenced):
    failed = fenced.run(wait_timeout=2)

    assert failed["error"] == "timed_out"
    assert "poweredOn" in failed["msg"]
    assert "evidence" not in failed


def test_changes_during_the_wait_end_it(fenced):
    for meanwhile, why in (
        ({OURS: None}, "not on it"),
        ({"baremetalhost.metal3.io/paused": "by another user"}, "paused"),
    ):
        pending = fenced.world.start(reboot_annotation, node=fenced.node, key="ours", wait_timeout=PATIENCE)
        fenced.host.until(lambda host: OURS in (host["metadata"].get("annotations") or {}))
        fenced.host.annotate(meanwhile)
        failed = pending.result()
        assert failed["error"] == "not_off"
        assert why in failed["msg"]


@pytest.mark.parametrize(
    ("annotations", "spec", "status", "why"),
    [
        ({"baremetalhost.metal3.io/paused": ""}, {}, {}, "paused"),
        ({"baremetalhost.metal3.io/detached": ""}, {}, {}, "detached"),
        ({}, {"online": False}, {}, "online"),
        ({}, {"disablePowerOff": True}, {}, "disablePowerOff"),
        ({}, {}, {"provisioning": {"state": "available", "ID": ""}}, "available"),
    ],
)
def test_hosts_on_which_it_would_do_nothing(fenced, annotations, spec, status, why):
    fenced.host.annotate(annotations)
    fenced.host.set(**spec)
    fenced.host.tell(**status)
    before = fenced.host.get()
    for key in ("ours", None):
        failed = fenced.run(key=key, override_holds=True)
        assert (failed["error"], failed["why"], failed["changed"]) == ("refused", "inert", False)
        assert why in failed["msg"]
        assert fenced.host.name in failed["msg"]
    assert fenced.host.get() == before
    found = fenced.info()
    assert (found["acts"], why in found["why_not"]) == (False, True)


def test_a_held_node(fenced):
    hold = {"node": fenced.node, "namespace": fenced.world.namespace, "holder": "db", "wait": False}
    fenced.world.run(lease_hold, **hold)
    before = fenced.host.get()
    assert fenced.run()["error"] == "held"
    assert fenced.run(key=None)["error"] == "held"
    assert fenced.host.get() == before

    done = fenced.run(override_holds=True, wait=False)
    assert done["overridden_holds"] == [f"{fenced.world.namespace}/db"]
    assert json.loads(fenced.host.annotations[RECORDS])["ours"]["overridden"] == done["overridden_holds"]


def test_the_host_is_gone(fenced):
    done = fenced.run(wait=False)
    assert done["resource_version"] == fenced.host.get()["metadata"]["resourceVersion"]
    named = {"bare_metal_host": fenced.host.name, "namespace": fenced.host.namespace}
    elsewhere = fenced.run("absent", bare_metal_host=fenced.host.name, namespace="default")
    fenced.world.cluster.delete(
        f"/apis/metal3.io/v1alpha1/namespaces/{named['namespace']}/baremetalhosts/{named['bare_metal_host']}"
    )
    for gone in (elsewhere, fenced.run("absent", **named), fenced.run("absent", **named, check_mode=True)):
        assert (gone.get("failed"), gone["changed"]) == (None, False), gone
        assert "switched on" in gone["warnings"][0]
    assert fenced.run(**named)["error"] == "not_found"
    assert fenced.run("absent")["error"] == "not_found", "it is not known which host that was"


def test_the_host_is_another_node_by_now(fenced):
    named = {"bare_metal_host": fenced.host.name, "namespace": fenced.host.namespace}
    fenced.run(wait=False)
    (other,) = fenced.world.nodes()
    provider = fenced.world.node(fenced.node)["spec"]["providerID"]
    fenced.world.cluster.delete(paths.node(fenced.node))
    fenced.world.cluster.merge(paths.node(other), {"spec": {"providerID": provider}})
    stranger = fenced.world.run(reboot_annotation, **named, node="no-such-node", key="ours", state="absent")
    assert (stranger["changed"], OURS in fenced.keys) == (False, True), stranger
    assert "stays" in stranger["warnings"][0]
    back = fenced.run("absent", **named, wait=False)
    assert (back["changed"], fenced.keys) == (True, {}), back
    assert f"node {other}" in back["warnings"][0]


def test_an_annotation_of_the_same_name_by_others(fenced):
    fenced.host.annotate({OURS: ""})
    before = fenced.host.get()
    refused = fenced.run(mode="hard")
    assert (refused["error"], refused["why"], refused["changed"]) == ("refused", "foreign", False)
    assert fenced.host.get() == before
    named = {"bare_metal_host": fenced.host.name, "namespace": fenced.host.namespace}
    fenced.world.run(node_claim, name=fenced.node, run="mine", operation="o")
    by_a_run = fenced.run("absent", **named, run="mine")
    assert (by_a_run["changed"], fenced.host.get()) == (False, before), by_a_run
    assert "stays" in by_a_run["warnings"][0]
    fenced.world.run(node_claim, name=fenced.node, run="mine", operation="o", state="absent")
    assert fenced.run("absent", **named)["changed"] is False, "as of a Node that was deleted"
    assert fenced.run("absent", wait=False)["changed"], "its name was given"
    assert fenced.keys == {}


def test_a_claimed_node(fenced):
    fenced.world.run(node_claim, name=fenced.node, run="theirs", operation="o")
    before = fenced.host.get()
    assert fenced.run()["error"] == "claimed"
    assert fenced.run(run="mine")["error"] == "claim_lost"
    assert fenced.host.get() == before
    fenced.run(run="theirs", wait=False)
    assert fenced.run("absent")["error"] == "claimed"
    assert OURS in fenced.keys


@pytest.mark.parametrize("state", ["present", "absent"])
def test_check_mode(fenced, state):
    if state == "absent":
        fenced.run(wait=False)
    before = fenced.host.get()
    outcome = fenced.run(state, check_mode=True)
    assert outcome["changed"]
    assert fenced.host.get() == before
    real = fenced.run(state, wait=False)
    assert outcome["keys"] == real["keys"]
    assert set(outcome["diff"]["after"]["annotations"]) == set(real["diff"]["after"]["annotations"])


class TestWhichHost:
    def test_by_the_older_provider_id(self, world, hosts):
        (node,) = world.nodes()
        host = hosts.add(node)
        provider = f"metal3://{host.get()['metadata']['uid']}"
        world.cluster.merge(paths.node(node), {"spec": {"providerID": provider}})
        assert host_of(world, node) == host.name

    def test_by_name(self, world, hosts):
        (node,) = world.nodes()
        host = hosts.add(node)
        assert world.run(bare_metal_host_info, node=node)["hosts"] == []
        failed = world.run(reboot_annotation, node=node, key="ours")
        assert failed["error"] == "not_found"
        assert "provider ID" in failed["msg"]
        assert world.run(reboot_annotation, host=host.name, key="ours")["why"] == "node_unknown"
        named = {"bare_metal_host": host.name, "namespace": world.namespace, "node": node, "key": "ours", "wait": False}
        assert world.run(reboot_annotation, **named)["changed"]

    def test_nothing_there(self, world, hosts):
        assert world.run(bare_metal_host_info, host="no-such-host")["hosts"] == []
        assert world.run(bare_metal_host_info, node="no-such-node")["hosts"] == []
        assert world.run(bare_metal_host_info, namespace=world.namespace)["hosts"] == []
        assert world.run(reboot_annotation, host="no-such-host", key="ours")["error"] == "not_found"
        assert world.run(reboot_annotation, node="no-such-node", key="ours")["error"] == "not_found"


@pytest.mark.long
def test_in_a_play_with_a_management_cluster(fenced, ansible):
    name = "holdfast.kubernetes.reboot_annotation"
    options = {
        "node": fenced.node,
        "key": "ours",
        "wait": False,
        "kubeconfig": fenced.world.kubeconfig,
        "management": {"kubeconfig": fenced.world.kubeconfig, "context": "lab"},
    }
    outcome, nowhere, info, back = ansible.tasks(
        [
            {name: options},
            {name: {**options, "management": NOWHERE, "api_timeout": 1}},
            {"holdfast.kubernetes.bare_metal_host_info": {k: options[k] for k in ("node", "kubeconfig", "management")}},
            {name: {**options, "state": "absent"}},
        ]
    )[0]

    assert outcome["changed"]
    assert nowhere["error"] == "api_unreachable"
    assert [key["key"] for key in info["hosts"][0]["keys"]] == ["ours"]
    assert back["changed"]
    assert fenced.keys == {}


class TestExpired:
    """A key that outlives its Machine."""

    def become(self, fenced, state):
        fenced.host.tell(provisioning={"state": state, "ID": "an-id"})

    def test_the_host_s_next_life_stays_on(self, fenced):
        fenced.run(mode="hard", wait=False)
        pending = fenced.world.start(
            reboot_annotation, node=fenced.node, namespace=fenced.host.namespace, state="expired", wait_timeout=60
        )
        # Cluster API releases the host, and another Machine gets it.
        self.become(fenced, "deprovisioning")
        done = pending.result()
        assert [(item["annotation"], item["node"]) for item in done["removed"]] == [(OURS, fenced.node)]
        self.become(fenced, "provisioned")
        fenced.hosts.start()
        fenced.host.annotate({"another": "was here"})
        fenced.host.until(lambda host: host["status"].get("conditions"))
        assert (fenced.host.powered, fenced.host.commands, fenced.keys) == (True, [], {})
        assert RECORDS not in fenced.host.annotations

    def test_those_of_others_and_of_a_host_that_is_still_the_node_s_stay(self, fenced):
        fenced.host.annotate({OTHER: "gibberish"})
        fenced.run(mode="hard", wait=False)
        before = fenced.host.get()
        done = remove_expired(fenced, node=fenced.node, wait_timeout=1)
        assert [item["annotation"] for item in done["kept"]] == [OURS]
        assert "still provisioned" in done["warnings"][0]
        assert (done["changed"], fenced.host.get()) == (False, before)
        self.become(fenced, "available")
        assert remove_expired(fenced, node="another-node", wait_timeout=1)["removed"] == []
        assert remove_expired(fenced)["changed"]
        assert fenced.keys == {OTHER: "gibberish"}


@pytest.fixture(scope="class")
def kind_machine(lab, cluster):
    with machines.installed(lab, cluster):
        yield


@pytest.mark.usefixtures("kind_machine")
class TestByMachine:
    def test_by_its_machine(self, world, hosts):
        (node,) = world.nodes()
        host = hosts.add(node)
        hosts.chain(host)
        assert host_of(world, node) == host.name
        by_host = world.run(bare_metal_host_info, host=host.name, namespace=world.namespace)
        assert [item["node"] for item in by_host["hosts"]] == [node]
        # Only the Machine refers to the host, and it may belong to a Node of another Cluster.
        marks = {f"cluster.x-k8s.io/{name}": None for name in ("machine", "cluster-namespace", "cluster-name")}
        world.cluster.merge(paths.node(node), {"metadata": {"annotations": marks}})
        assert world.run(bare_metal_host_info, node=node)["hosts"] == []
        # Both have the same provider ID.
        provider = f"metal3://{world.namespace}/{host.name}/m-{node}"
        world.cluster.merge(paths.node(node), {"spec": {"providerID": provider}})
        assert host_of(world, node) == host.name
        done = world.run(reboot_annotation, node=node, key="ours", wait=False)
        assert (done["host"], done["node"]) == (host.name, node)

    def test_another_cluster_s_node_of_the_same_name(self, world, hosts):
        node, theirs = world.nodes(2)
        host = hosts.add(theirs)
        named = {"bare_metal_host": host.name, "namespace": world.namespace, "key": "ours", "wait": False}
        hook = {"node": node, "hook": "h", "owner": "o", "point": "pre-drain"}
        hosts.chain(host, cluster="theirs", another_of=node)
        before = host.get()

        failed = world.run(reboot_annotation, node=node, key="ours", wait=False)
        assert (failed["error"], "another Node" in failed["msg"]) == ("not_found", True)
        assert world.run(deletion_hook, **hook)["error"] == "refused"
        # The node is unknown, so its holds and claims are, too.
        assert world.run(reboot_annotation, **named)["why"] == "node_unknown"

        marks = {"machine": "m", "cluster-namespace": world.namespace, "cluster-name": "ours"}
        marks = {f"cluster.x-k8s.io/{name}": value for name, value in marks.items()}
        world.cluster.merge(paths.node(node), {"metadata": {"annotations": marks}})
        assert world.run(reboot_annotation, node=node, key="ours", wait=False)["error"] == "not_found"
        assert world.run(reboot_annotation, node=node, **named)["error"] == "refused"
        # The Node names their Machine, but the Cluster differs.
        marks["cluster.x-k8s.io/machine"] = f"m-{theirs}"
        world.cluster.merge(paths.node(node), {"metadata": {"annotations": marks}})
        assert world.run(reboot_annotation, node=node, key="ours", wait=False)["error"] == "not_found"
        assert world.run(deletion_hook, **hook)["error"] == "refused"
        assert host.get() == before

    def test_a_node_that_names_the_machine_of_another(self, world, hosts):
        victim, liar = world.nodes(2)
        host = hosts.add(victim)
        hosts.chain(host)
        marks = {
            f"cluster.x-k8s.io/{name}": value
            for name, value in (("machine", f"m-{victim}"), ("cluster-namespace", world.namespace))
        }
        world.cluster.merge(paths.node(liar), {"metadata": {"annotations": marks}})
        failed = world.run(reboot_annotation, node=liar, key="ours", wait=False)
        assert failed["error"] == "refused"
        assert victim in failed["msg"]
        assert host.annotations == {}

    def test_two_ways_to_two_hosts(self, world, hosts):
        node, other = world.nodes(2)
        host, wrong = hosts.add(node), hosts.add(other)
        hosts.chain(host)
        provider = f"metal3://{world.namespace}/{wrong.name}/m"
        world.cluster.merge(paths.node(node), {"spec": {"providerID": provider}})
        failed = world.run(reboot_annotation, node=node, key="ours", wait=False)
        assert failed["error"] == "refused"
        assert host.name in failed["msg"]
        assert wrong.name in failed["msg"]

    def test_another_consumer(self, world, hosts):
        (node,) = world.nodes()
        host = hosts.add(node)
        found = Fenced.__new__(Fenced)
        found.world, found.hosts, found.node, found.host = world, hosts, node, host
        hosts.chain(host)
        found.run(mode="hard", wait=False)
        assert remove_expired(found, node=node, wait=False)["kept"]
        path = paths.namespaced("apis/infrastructure.cluster.x-k8s.io/v1beta2", world.namespace, "metal3machines")
        owner = world.cluster.get(paths.one(path, f"m-{node}"))
        # A Machine of the same name is made again.
        world.cluster.delete(paths.one(path, f"m-{node}"))
        metadata = {"name": f"m-{node}", "annotations": owner["metadata"]["annotations"]}
        body = {"apiVersion": owner["apiVersion"], "kind": "Metal3Machine", "metadata": metadata}
        world.cluster.create(path, {**body, "spec": owner["spec"]})
        # The same happens when clusterctl moves it, so a person decides.
        moved = remove_expired(found)
        assert (moved["removed"], [item["annotation"] for item in moved["kept"]]) == ([], [OURS])
        assert "has another UID" in moved["warnings"][0]
        metadata["name"] = f"next-{node}"
        world.cluster.create(path, {**body, "spec": owner["spec"]})
        host.set(consumerRef={"kind": "Metal3Machine", "name": f"next-{node}", "namespace": world.namespace})
        assert [item["why"] for item in remove_expired(found)["removed"]] == ["it has another consumer now"]
        assert found.keys == {}
