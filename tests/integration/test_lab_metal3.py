# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's metal3 against a real API server. What it decides is tested in tests/lab/test_metal3_rules.py."""

from __future__ import annotations

import time

import pytest
import yaml
from integration.support import machines
from integration.support.metal3 import bound, management, wait, webhook
from integration.support.realnodes import boot_id

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure
from lab.metal3.settings import Times
from lab.patience import PATIENCE

# The lab's stand-ins do not change with the product.
pytestmark = pytest.mark.long

KEY = "reboot.metal3.io/failover"
OTHER = "reboot.metal3.io/other-owner"
BASE = "reboot.metal3.io"
HARD = '{"mode": "hard"}'
SOFT = '{"mode": "soft"}'


@pytest.fixture
def hosts(world, lab, tmp_path):
    with bound(world, lab, tmp_path) as found:
        yield found


@pytest.fixture
def host(hosts, nodes):
    """The host of a simulated node, with a running metal3."""
    (node,) = nodes()
    found = hosts.add(node)
    hosts.start()
    return found


def ready(node, status):
    return any(
        item["type"] == "Ready" and item["status"] == status
        for item in (node or {"status": {}})["status"]["conditions"]
    )


def test_the_kind_checks_what_metal3s_own_does(host):
    with pytest.raises(ApiFailure) as refused:
        host.tell(operationalStatus="fine")
    assert refused.value.status == 422
    with pytest.raises(ApiFailure):
        host.set(online=None)
    host.set(of_others={"kept": [1]})
    assert host.get()["spec"]["of_others"] == {"kept": [1]}


def test_a_simulated_node_that_is_off_is_silent_and_its_pods_stay(host, world):
    world.pod("web", host.node)
    before = world.node(host.node)["status"]["nodeInfo"]["bootID"]

    host.annotate({KEY: HARD})
    host.until_reported(on=False)
    assert (host.powered, host.commands) == (False, ["off"])
    # No controller is there that could end it.
    world.delete("pods", "web")
    world.until(paths.NODES, host.node, lambda node: ready(node, "Unknown"))
    assert world.get("pods", "web")["metadata"]["deletionTimestamp"]

    host.annotate({KEY: None})
    host.until_reported(on=True)
    found = world.until(paths.NODES, host.node, lambda node: ready(node, "True"))
    assert found["status"]["nodeInfo"]["bootID"] != before
    world.until(world.path("pods"), "web", lambda pod: pod is None)
    assert host.commands == ["off", "on"]


def test_keys_of_several_clients(host):
    host.annotate({KEY: SOFT, OTHER: HARD, BASE: ""})
    found = host.until(lambda item: BASE not in item["metadata"]["annotations"])
    assert found["status"]["poweredOn"] is False
    assert found["metadata"]["annotations"] == {KEY: SOFT, OTHER: HARD}
    assert host.commands == ["off"]

    host.annotate({OTHER: None})
    time.sleep(2)
    assert (host.powered, host.annotations) == (False, {KEY: SOFT})
    host.annotate({KEY: None})
    host.until_reported(on=True)


def test_events_and_last_updated(host):
    first = host.until(lambda item: item["status"].get("conditions"))["status"]["lastUpdated"]
    time.sleep(2)
    assert host.status["lastUpdated"] == first, "no heartbeat"
    host.annotate({KEY: "hard"})
    host.until_reported(on=False)
    wait(lambda: ("PowerOff", "Host soft powered off") in host.events, "the event of its end")
    wait(lambda: "InvalidAnnotationValue" in [reason for reason, _message in host.events], "the event of the value")
    assert host.status["lastUpdated"] > first


def test_refused_then_flaky_then_off(host):
    host.faults(refused=True)
    host.annotate({KEY: HARD})
    failed = host.until(lambda item: item["status"].get("errorType") == "power management error")
    assert failed["status"]["operationalStatus"] == "error"
    assert host.powered is True
    host.faults(refused=False, flaky=1)
    host.until_reported(on=False)
    assert host.status["errorCount"] >= 2


def test_soft_that_never_ends_becomes_hard(hosts, nodes):
    (node,) = nodes()
    host = hosts.add(node, times=Times.quick())
    hosts.start()
    host.faults(soft_ignored=True)
    host.annotate({KEY: SOFT})
    failed = host.until(lambda item: item["status"]["errorCount"] == 1)
    assert failed["status"]["errorMessage"].startswith("Continuing with hard poweroff")
    assert failed["status"]["poweredOn"] is True
    host.until_reported(on=False)
    assert host.commands == ["nothing", "off"]


def test_slow_and_stale(host):
    host.faults(slow=float(PATIENCE))
    host.annotate({KEY: HARD})
    wait(lambda: host.events, "the request to be heard")
    time.sleep(1)
    assert (host.powered, host.status["poweredOn"]) == (True, True)
    host.faults(slow=0.0)
    host.until_reported(on=False)
    host.faults(slow=0.0, stale=True)
    host.annotate({KEY: None})
    wait(lambda: host.powered, "power")
    time.sleep(1.5)
    assert host.status["poweredOn"] is False
    host.faults(stale=False)
    host.until_reported(on=True)


def test_metal3_is_away(host, hosts):
    host.until(lambda item: item["status"].get("conditions"))
    hosts.stop()
    host.annotate({KEY: HARD})
    time.sleep(2)
    assert (host.powered, host.status["poweredOn"], host.commands) == (True, True, [])
    hosts.start()
    host.until_reported(on=False)
    hosts.stop()
    host.annotate({KEY: None})
    time.sleep(1)
    assert host.powered is False


@pytest.mark.parametrize("how", ["paused", "detached"])
def test_nothing_happens_to_a_host_that_is_left_alone(host, how):
    host.annotate({f"baremetalhost.metal3.io/{how}": ""})
    if how == "detached":
        host.until(lambda item: item["status"]["operationalStatus"] == "detached")
    host.annotate({KEY: HARD, BASE: HARD})
    time.sleep(2)
    assert host.powered is True
    assert set(host.annotations) == {KEY, BASE, f"baremetalhost.metal3.io/{how}"}
    assert host.events == []


def test_a_host_with_power_off_disabled_reboots_once_and_is_never_seen_off(host, world):
    host.set(disablePowerOff=True)
    before = world.node(host.node)["status"]["nodeInfo"]["bootID"]
    recorder = world.record(host.collection)
    host.annotate({BASE: HARD})
    host.until(lambda item: BASE not in item["metadata"].get("annotations", {}))
    world.until(paths.NODES, host.node, lambda node: node["status"]["nodeInfo"]["bootID"] != before)
    assert host.commands == ["reset"]
    assert all(change.object["status"]["poweredOn"] for change in recorder.changes)


def test_with_a_webhook_a_bad_value_is_rejected_and_an_old_one_blocks_every_edit(hosts, nodes, tmp_path):
    (node,) = nodes()
    host = hosts.add(node, annotations={OTHER: "hard"})
    with webhook(hosts, tmp_path):
        wait(lambda: refusal(host, {KEY: SOFT}), "the webhook to be asked")
        assert "failed to unmarshal the data from the reboot.metal3.io annotation" in refusal(host, {"any": "thing"})
        host.annotate({OTHER: None})
        host.annotate({KEY: SOFT})
        assert "invalid mode" in refusal(host, {KEY: '{"mode": "HARD"}'})
    assert host.annotations == {KEY: SOFT}


def refusal(host, annotations):
    try:
        host.annotate(annotations)
        # The API server may learn of the webhook between the two.
        host.annotate(dict.fromkeys(annotations))
    except ApiFailure as error:
        return str(error)
    return ""


def test_a_change_from_outside_is_noticed(host, world):
    host.until(lambda item: item["status"].get("conditions"))
    recorder = world.record(host.collection)
    host.cut()
    recorder.until(lambda changes: any(not change.object["status"]["poweredOn"] for change in changes))
    host.until_reported(on=True)
    assert host.commands == ["on"]


def test_a_node_leads_to_its_host(hosts, host, lab, world):
    with machines.installed(lab, world.cluster):
        hosts.chain(host)
        machine = world.cluster.get(
            paths.one(paths.namespaced("apis/cluster.x-k8s.io/v1beta2", world.namespace, "machines"), f"m-{host.node}")
        )
        assert machine["status"]["nodeRef"]["name"] == host.node
        assert machine["spec"]["infrastructureRef"]["kind"] == "Metal3Machine"


def test_hosts_in_a_cluster_of_their_own(world, lab, nodes, tmp_path):
    (node,) = nodes()
    with management(lab, world) as elsewhere, bound(world, lab, tmp_path, elsewhere) as hosts:
        cluster, kubeconfig = elsewhere
        host = hosts.add(node)
        hosts.chain(host)
        hosts.start()
        host.annotate({KEY: HARD})
        host.until_reported(on=False)
        assert host.powered is False
        assert cluster.find(paths.node(node)) is None
        assert world.cluster.find(host.path) is None
        # Neither cluster trusts the other's users.
        assert (
            yaml.safe_load(kubeconfig.read_text())["clusters"] != yaml.safe_load(lab.kubeconfig.read_text())["clusters"]
        )


def test_metal3s_own_times(hosts, nodes, world):
    """Three minutes for the machine to shut down, one or two until the next try, a minute until on is noticed."""
    (node,) = nodes()
    host = hosts.add(node, times=Times())
    host.faults(soft_ignored=True)
    hosts.start()
    start = time.monotonic()
    host.annotate({KEY: SOFT})
    host.until(lambda item: item["status"]["errorCount"] == 1)
    assert time.monotonic() - start >= 180
    host.until_reported(on=False)
    assert time.monotonic() - start >= 180 + 60
    assert host.commands == ["nothing", "off"]
    recorder = world.record(host.collection)
    host.switch_on()
    recorder.until(lambda changes: any(change.object["status"]["poweredOn"] for change in changes))
    host.until_reported(on=False)
    assert host.commands == ["nothing", "off", "off"]


@pytest.mark.nodes
@pytest.mark.parametrize("name", ["node-1", "node-2"])
@pytest.mark.parametrize("value", [HARD, SOFT])
def test_a_real_node(hosts, lab, world, name, value):
    command = {HARD: "off", SOFT: "shut down"}[value]
    lab.wait_ready([name])
    before = boot_id(lab, name)
    host = hosts.add(name)
    hosts.start()
    host.annotate({KEY: value})
    host.until_reported(on=False)
    assert (host.powered, lab.powered(name), host.commands) == (False, False, [command])
    world.until(paths.NODES, name, lambda node: not ready(node, "True"))

    host.annotate({KEY: None})
    host.until_reported(on=True)
    lab.wait_ready([name])
    assert boot_id(lab, name) != before
    assert host.commands == [command, "on"]


@pytest.mark.nodes
def test_a_held_real_node_ignores_the_button_but_not_the_plug(hosts, lab):
    lock = "systemd-inhibit --what=shutdown --mode=block --who=test --why=test sleep infinity"
    lab.ssh("node-1", f"systemd-run --collect --unit=test-lock {lock}")
    try:
        wait(lambda: "test" in lab.ssh("node-1", "systemd-inhibit --list --no-pager"), "the lock")
        host = hosts.add("node-1", times=Times.quick())
        hosts.start()
        host.annotate({KEY: SOFT})
        failed = host.until(lambda item: item["status"]["errorCount"] == 1)
        assert failed["status"]["poweredOn"] is True
        host.until_reported(on=False)
        assert host.commands == ["shut down", "off"]
    finally:
        if lab.powered("node-1"):
            lab.ssh("node-1", "systemctl stop test-lock || true")
