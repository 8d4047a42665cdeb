# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failover and a recovery, by the playbooks, on a real API server with its controllers and the lab's metal3."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from integration.support.failovers import OURS, STEP, TAINT
from integration.support.group import until
from integration.support.halts import Halt
from integration.support.leases import Leases
from integration.support.metal3 import bound
from integration.support.volumes import driver
from integration.support.world import AUDIT, ready

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.modules import lease_hold, node_claim, reboot_slot
from lab.metal3.settings import Times
from lab.patience import PATIENCE
from lab.processes import start_time

KEY = "reboot.metal3.io/holdfast-failover"
TOLERANT = [{"operator": "Exists"}]


@pytest.fixture
def victim(failovers):
    found = failovers.victim()
    # Among other nodes, one node that is down does not count as a storm.
    failovers.world.nodes(2)
    return found


@pytest.fixture
def hosts(world, lab, tmp_path):
    with bound(world, lab, tmp_path) as found:
        yield found


@pytest.fixture
def host(hosts, victim):
    """A host with a running metal3; the node's provider ID names it."""
    found = hosts.add(victim.name)
    provider = f"metal3://{found.namespace}/{found.name}/m"
    victim.world.cluster.merge(paths.node(victim.name), {"spec": {"providerID": provider}})
    hosts.start()
    return found


@pytest.fixture
def volumes(world, lab, tmp_path):
    with driver(world, lab, tmp_path) as found:
        yield found


@pytest.fixture
def leases(world, victim):
    return Leases(world, holder=f"r-{victim.name}")


# -- there and back ---------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.core
def test_failover_and_recovery_by_command(failovers, victim):
    world = victim.world
    world.owned("goes", victim.name)
    world.owned("stays", victim.name, tolerations=TOLERANT)
    variables = failovers.by_command()
    before = victim.boot_id
    victim.hang()

    done = failovers.run(victim.name, reason="its disk has failed", delete_node="false", **variables).good()

    (entry,) = done.report["nodes"]
    assert (entry["result"], entry["evidence"]["kind"]) == ("moved", "Command")
    assert "Chassis Power is off" in entry["evidence"]["output"]
    assert f"{world.namespace}/stays" in entry["detail"]
    assert set(world.pods(victim.name)) == {"stays"}
    assert set(entry["seconds"]) == {"confirm", "claim", "fence", "taint", "move"}
    assert failovers.commands == ["off"]
    assert (victim.taint, world.cordoned(victim.name), victim.claim) == ("nodeshutdown", True, {})
    assert done.stats["failover_moved"] == 1
    kept = failovers.audit()[entry["operation"]]
    assert (kept["node"], kept["reason"], kept["result"]) == (victim.name, "its disk has failed", "moved")
    assert kept["evidence"]["kind"] == "Command"
    assert [step["step"] for step in kept["steps"]] == ["claim", "fence", "taint", "move", "moved"]
    assert all(step["resource_versions"]["node"] for step in kept["steps"])

    again = failovers.run(victim.name, delete_node=True, **variables).good()
    assert again.report["nodes"][0]["result"] == "skipped"
    assert "its Node stays, because failover_delete_node" in again.detail(victim.name)
    assert failovers.commands == ["off"]

    back = failovers.recover(victim.name, **variables).good()
    (entry,) = back.report["nodes"]
    assert entry["result"] == "recovered", back.output
    assert failovers.commands == ["off", "on"]
    assert victim.ready
    assert entry["boot_id_before"] == before != entry["boot_id_after"] == victim.boot_id
    assert victim.untouched
    kept = failovers.audit()[entry["operation"]]
    assert kept["result"] == "recovered"
    assert len(kept["runs"]) == 2
    assert failovers.recover(victim.name, **variables).good().report["nodes"][0]["result"] == "skipped"


def test_failover_and_recovery_by_metal3(failovers, victim, host, volumes):
    world = victim.world
    volumes.statefulset("db", 3)
    on_it = [name for name, pod in world.pods().items() if pod["spec"]["nodeName"] == victim.name]
    host.annotate({"theirs": " kept "})
    before = victim.boot_id
    victim.hang()

    done = failovers.run(victim.name, soft_timeout=0).good()

    (entry,) = done.report["nodes"]
    assert (entry["result"], entry["evidence"]["kind"]) == ("moved", "BareMetalHost")
    assert {item["name"] for item in entry["pods"]} >= set(on_it)
    assert len(entry["volume_attachments"]) == len(on_it)
    assert volumes.attachments(victim.name) == []
    assert (host.powered, host.commands) == (False, ["off"])
    assert host.annotations[KEY] == '{"mode": "hard"}'
    assert [step["step"] for step in entry["entry"]["steps"] if "host" in step["resource_versions"]] == ["taint"]
    volumes.until_ready("db", 3)
    assert all(pod["spec"]["nodeName"] != victim.name for pod in world.pods().values())

    back = failovers.recover(victim.name).good()
    assert back.report["nodes"][0]["result"] == "recovered"
    assert (host.powered, host.commands) == (True, ["off", "on"])
    assert [name for name in host.annotations if "reboot" in name] == []
    assert host.annotations["theirs"] == " kept "
    assert victim.boot_id != before
    assert victim.untouched


@pytest.mark.long
def test_soft_becomes_hard_by_the_deadline(failovers, victim, hosts):
    # metal3 ends what it has started, and only then reads that the reboot is to be hard.
    host = hosts.add(victim.name, times=replace(Times.quick(), soft_timeout=60.0))
    host.faults(soft_ignored=True)
    hosts.start()
    victim.hang()

    done = failovers.run(victim.name, soft_timeout=20, bare_metal_host=host.name).good()

    assert done.report["nodes"][0]["entry"]["mode"] == "hard"
    assert host.commands == ["nothing", "off"]
    assert [step["step"] for step in done.report["nodes"][0]["entry"]["steps"]].count("fence") == 2


@pytest.mark.long
def test_a_person_vouches_and_the_node_is_deleted(failovers, victim):
    victim.world.owned("goes", victim.name)
    victim.hang()

    done = failovers.run(victim.name, delete_node=True, **vouched()).good()

    (entry,) = done.report["nodes"]
    assert (entry["result"], entry["evidence"]["by"]) == ("moved", "Ada")
    assert victim.world.cluster.find(paths.node(victim.name)) is None
    assert failovers.audit()[entry["operation"]]["result"] == "moved"

    # No configured way can switch it on.
    back = failovers.recover(victim.name)
    assert back.results == {victim.name: "failed"}
    assert "Nothing was switched on" in back.detail(victim.name)
    assert failovers.audit()[entry["operation"]]["result"] == "moved"


CORDS = "I pulled the cords of {{ failover_node_name }}."


def vouched(age=0):
    """Variables for a person who saw the machine off this many seconds ago."""
    seen = (datetime.now(timezone.utc) - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    by = {"attestation_by": "Ada", "attestation_statement": CORDS, "attestation_at": seen}
    return {"fence": "attestation", **by}


# -- refusals ---------------------------------------------------------------------------------------------------------


def step(victim, **options):
    """The result of the module that decides for the role; it does not wait."""
    known = {"run": f"r-{victim.name}", "selector": f"pool={victim.world.namespace}", "max_unhealthy": "1"}
    return victim.world.run(STEP, name=victim.name, confirm_seconds=0, claim_timeout=0, **{**known, **options})


@pytest.mark.long
def test_check_mode_looks_and_does_nothing(failovers, victim):
    victim.hang()
    done = failovers.run(victim.name, arguments=("--check",), **failovers.by_command()).good()
    assert done.report["nodes"][0]["result"] == "planned"
    assert "fence" in done.report["nodes"][0]["detail"]
    assert failovers.commands == []
    assert failovers.run(victim.name, arguments=("--check",), **vouched()).good().results == {victim.name: "planned"}
    assert victim.untouched


@pytest.mark.long
def test_ready(failovers, victim):
    done = failovers.run(victim.name, **failovers.by_command())
    assert done.code != 0
    assert done.report["nodes"][0]["result"] == "refused"
    assert "is Ready" in done.report["nodes"][0]["detail"]
    assert done.stats["failover_failed_nodes"] == victim.name
    assert failovers.commands == []
    assert victim.untouched


@pytest.mark.usefixtures("control_plane")
def test_refused_by_what_the_cluster_says(failovers, victim, leases):
    world = victim.world
    victim.hang()
    other = failovers.victim()

    world.run(lease_hold, node=victim.name, namespace=world.namespace, holder="db", wait=False)
    held = step(victim)
    assert (held["error"], f"{world.namespace}/db" in held["msg"]) == ("held", True)
    assert not step(victim, override_holds=True, check_mode=True).get("failed")
    world.delete("leases", victim.name)

    other.hang()
    storm = step(victim)
    assert (storm["why"], storm["not_ready"]) == ("storm", sorted([victim.name, other.name]))
    other.wake()

    slot = {"name": victim.name, "group": world.namespace, "operation": "o", "count_others": False}
    world.made.objects.append(paths.one(paths.config_maps("holdfast"), f"group.{world.namespace}"))
    run = f"theirs-{victim.name}"
    world.run(reboot_slot, run=run, selector=f"pool={world.namespace}", max_unavailable="3", **slot)
    in_slot = step(victim)
    assert (in_slot["why"], in_slot["slot"]["run"]) == ("in_slot", run)
    world.run(reboot_slot, run=run, state="absent", **slot)

    world.run(node_claim, name=victim.name, run=run, operation="o")
    claimed = step(victim)
    assert (claimed["error"], claimed["step"], run in claimed["msg"]) == ("claimed", "fence", True)
    world.run(node_claim, name=victim.name, run=run, operation="o", state="absent")

    control_plane = {"node-role.kubernetes.io/control-plane": ""}
    world.cluster.merge(paths.node(victim.name), {"metadata": {"labels": control_plane}})
    quorum = step(victim, etcd_selector=f"etcd={world.namespace}")
    assert (quorum["why"], "failover_quorum_command" in quorum["msg"]) == ("quorum", True)

    assert victim.untouched
    assert leases.left() == []


@pytest.mark.long
def test_a_node_that_shuts_down_by_itself(failovers, victim, leases):
    victim.hang()
    victim.say("False", "[node is shutting down]")

    refused = step(victim)

    assert (refused["error"], refused["why"]) == ("refused", "shutting_down")
    assert victim.untouched
    assert leases.left() == []


@pytest.mark.long
@pytest.mark.usefixtures("control_plane")
def test_a_control_plane_node_whose_loss_breaks_the_quorum(failovers, victim, leases):
    world = victim.world
    others = world.nodes(2)
    members = {name: member(world, name) for name in (victim.name, *others)}
    victim.hang()
    assert not step(victim, etcd_selector=f"etcd={world.namespace}", check_mode=True).get("failed")

    away = [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]
    world.cluster.merge(f"{members[others[1]]}/status", {"status": {"phase": "Running", "conditions": away}})
    refused = step(victim, etcd_selector=f"etcd={world.namespace}")

    assert (refused["why"], refused["ready_others"], refused["needed"]) == ("quorum", others[:1], 2)
    assert f"{others[1]}: its pod" in refused["msg"]
    assert victim.untouched
    assert leases.left() == []


def member(world, node):
    """Make a node a control-plane node, with a Ready pod of etcd; return the pod's path."""
    world.cluster.merge(paths.node(node), {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}})
    pods = paths.namespaced("api/v1", "kube-system", "pods")
    body = world.template("etcd", nodeName=node)
    body["metadata"] = {"name": f"etcd-{node}", "labels": {"etcd": world.namespace}}
    world.cluster.create(pods, body)
    world.made.objects.append(paths.one(pods, f"etcd-{node}"))
    world.until(pods, f"etcd-{node}", lambda item: item is not None and ready(item))
    return paths.one(pods, f"etcd-{node}")


@pytest.mark.long
def test_hosts_that_metal3_would_not_switch_off(failovers, hosts, nodes):
    nodes(1)
    wanted = {
        "paused": {"annotations": {"baremetalhost.metal3.io/paused": ""}},
        "detached": {"annotations": {"baremetalhost.metal3.io/detached": ""}},
        "spec.online is false": {"online": False},
        "disablePowerOff": {"disablePowerOff": True},
        "not provisioned": {"state": "available"},
    }
    victims = {why: failovers.victim() for why in wanted}
    for why, victim in victims.items():
        hosts.add(victim.name, **wanted[why])
        provider = f"metal3://{hosts.namespace}/host-{victim.name}/m"
        victim.world.cluster.merge(paths.node(victim.name), {"spec": {"providerID": provider}})
        victim.hang()
    world, name = victims["paused"].world, victims["paused"].name
    claimed = {"name": name, "run": f"theirs-{name}", "operation": "o"}
    world.run(node_claim, **claimed)

    done = failovers.run(*(victim.name for victim in victims.values()), max_unhealthy=6)

    assert done.code != 0
    # Also the one whose claim the run would wait for.
    world.run(node_claim, **claimed, state="absent")
    for why, victim in victims.items():
        assert done.results[victim.name] == "refused"
        assert why in done.detail(victim.name)
        assert victim.untouched
    assert not any("holdfast" in name for host in hosts.hosts for name in host.annotations)


@pytest.mark.long
def test_a_verify_command_that_says_on(failovers, victim):
    victim.world.owned("stays", victim.name)
    variables = failovers.by_command() | {"verify_command": failovers.command("always-on", "echo on")}
    victim.hang()

    done = failovers.run(victim.name, fence_timeout=40, **variables)

    assert done.results == {victim.name: "failed"}
    assert "did not report" in done.detail(victim.name)
    assert done.report["nodes"][0]["output"] == "on"
    assert victim.taint is None
    assert set(victim.world.pods(victim.name)) == {"stays"}
    assert victim.record["result"] == "failed", "the next run resumes it"
    assert victim.claim == {}


@pytest.mark.long
def test_a_fence_command_that_fails_says_why_and_no_secrets(failovers, victim):
    fails = failovers.command("fails", 'echo "no route to the BMC of $3" >&2; exit 3')
    fence = {"fence_command": fails + " -P hunter2 bmc-{{ failover_node_name }}"}
    victim.hang()

    done = failovers.run(victim.name, arguments=("-v",), **failovers.by_command() | fence)

    assert done.results == {victim.name: "failed"}
    assert f"{fails}) for node {victim.name} ended with 3." in done.detail(victim.name)
    # The user who starts it reads the output. Users who may read Nodes do not.
    said = f"no route to the BMC of bmc-{victim.name}"
    assert done.report["nodes"][0]["output"] == said
    assert said in done.output
    assert said not in str(failovers.audit()) + str(victim.marks)
    assert "hunter2" not in done.output + str(done.report) + str(failovers.audit()) + str(victim.marks)
    assert victim.taint is None
    # The machine may be off.
    assert (victim.record["result"], victim.world.cordoned(victim.name)) == ("failed", True)


@pytest.mark.long
def test_a_fence_command_that_takes_too_long_is_ended_with_all_that_it_has_started(failovers, victim):
    child = "sleep 3600 & echo $! >> $log.pids"
    late = f"(trap '' TERM; {child}; echo begun >> $log; wait) & echo $! >> $log.pids; wait"
    endless = {"fence_command": failovers.command("endless", late)}
    victim.hang()

    without = failovers.run(victim.name, fence_timeout=0, **failovers.by_command() | endless)
    assert "must be above 0" in without.output
    assert victim.untouched

    done = failovers.run(victim.name, fence_timeout=8, **failovers.by_command() | endless)

    assert done.results == {victim.name: "failed"}
    assert "did not end within 8 s" in done.detail(victim.name)
    assert failovers.commands == ["begun"]
    started = failovers.log.with_name("commands.pids").read_text().split()
    assert len(started) == 2
    until(lambda: all(map(has_ended, started)), "all of them have ended")
    assert (victim.record["result"], victim.world.cordoned(victim.name)) == ("failed", True)


def has_ended(pid):
    return start_time(int(pid)) is None


@pytest.mark.long
def test_one_machine_for_two_nodes(failovers, victim):
    other = failovers.victim()
    victim.hang()
    other.hang()
    both = {"fence": "redfish", "max_unhealthy": 2}

    one = failovers.run(victim.name, other.name, redfish_uri="https://bmc/redfish/v1/Systems/1", **both)
    assert one.code != 0
    assert "have the same failover_redfish_uri" in one.output
    uri = "https://bmc-{{ failover_node_name }}/redfish/v1/Systems/1"
    assert "have the same" not in failovers.run(victim.name, other.name, redfish_uri=uri, **both).output
    secret = failovers.run(victim.name, redfish_uri="https://ada:hunter2@bmc/redfish/v1/Systems/1", **both)
    assert "failover_redfish_password instead" in secret.output
    assert "hunter2" not in secret.output

    assert victim.untouched
    assert other.untouched


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False], ids=["known as another node", "not known as any"])
def test_a_host_that_is_not_the_nodes(failovers, victim, hosts, host, known):
    wrong = hosts.add(failovers.victim().name)
    if known:
        provider = f"metal3://{wrong.namespace}/{wrong.name}/m"
        victim.world.cluster.merge(paths.node(wrong.node), {"spec": {"providerID": provider}})
    victim.hang()

    done = failovers.run(victim.name, soft_timeout=0, bare_metal_host=wrong.name)

    assert done.results == {victim.name: "refused" if known else "failed"}, done.output
    assert wrong.name in done.detail(victim.name)
    assert not victim.world.cordoned(victim.name)
    assert victim.untouched or not known
    assert (wrong.commands, KEY in wrong.annotations) == ([], False)

    right = failovers.run(victim.name, soft_timeout=0, bare_metal_host=host.name).good()
    assert right.results == {victim.name: "moved"}
    assert (host.commands, wrong.commands) == (["off"], [])


@pytest.mark.long
def test_the_way_back_by_another_url(failovers, victim):
    victim.hang()
    failovers.run(victim.name, **vouched()).good()
    uri = "https://bmc/redfish/v1/Systems/1"
    record = victim.record
    record["facts"] |= {"fence": "redfish", "uri": uri}
    marks = {f"{OURS}failover": json.dumps(record)}
    victim.world.cluster.merge(paths.node(victim.name), {"metadata": {"annotations": marks}})
    entry = failovers.audit()[record["id"]] | {"fence": "redfish", "uri": uri}
    victim.world.cluster.merge(AUDIT, {"data": {record["id"]: None}})
    # A node can write its own record, so it alone does not say where the credentials go.
    unknown = failovers.recover(victim.name)
    assert unknown.results == {victim.name: "failed"}
    assert "no credentials were sent" in unknown.detail(victim.name)
    victim.world.cluster.merge(AUDIT, {"data": {record["id"]: json.dumps(entry)}})

    done = failovers.recover(victim.name, redfish_uri=f"{uri}7")
    assert done.results == {victim.name: "failed"}
    assert "failover_redfish_uri is another" in done.detail(victim.name)
    assert (victim.taint, victim.claim) == ("nodeshutdown", {})
    assert victim.record["phase"] == record["phase"]


@pytest.mark.long
def test_a_statement_of_last_week(failovers, victim):
    victim.hang()
    undated = failovers.run(victim.name, **vouched() | {"attestation_at": ""})
    assert "failover_attestation_at" in undated.output
    for arguments, result in (("--check",), "refused"), ((), "failed"):
        old = failovers.run(victim.name, arguments=arguments, **vouched(age=7 * 86400))
        assert old.results == {victim.name: result}
        assert "at most 300 s" in old.detail(victim.name)
    assert victim.untouched


@pytest.mark.long
def test_missing_settings_are_reported_before_anything_is_done(failovers, victim):
    victim.hang()
    done = failovers.run(victim.name, fence="command", fence_command="true")
    assert done.code != 0
    assert "failover_verify_command" in done.output
    done = failovers.run(victim.name, fence="redfish", redfish_uri="http://bmc/redfish/v1/Systems/1")
    assert done.code != 0
    assert "failover_redfish_insecure_http" in done.output
    assert victim.untouched


# -- it comes back ----------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("way", ["metal3", "command"])
def test_a_run_that_is_stopped_before_the_power_off(failovers, victim, host, way, tmp_path):
    """SIGSTOP of the playbook with all its processes; meanwhile the node recovers."""
    halt = Halt(tmp_path / "halt")
    victim.hang()
    variables = {"soft_timeout": 0} if way == "metal3" else failovers.by_command()
    module, options = ("failover_turn", {"done": "cordon"}) if way == "metal3" else ("cordon", {"state": None})
    run = failovers.start(victim.name, environment=halt.after("localhost", module, **options), **variables)
    run.until(lambda: halt.reached, "the run before the power-off")
    run.send_to_all(signal.SIGSTOP)
    victim.wake()
    halt.resume()
    run.send_to_all(signal.SIGCONT)
    done = run.done()

    assert done.results == {victim.name: "stopped"}, done.output
    assert (host.commands, failovers.commands) == ([], [])
    assert not any("reboot" in name for name in host.annotations)
    assert victim.untouched


@pytest.mark.parametrize(
    "booted", [pytest.param(True, marks=pytest.mark.long), False], ids=["with a new boot", "it only hung"]
)
def test_a_node_that_comes_back_between_fence_and_taint(failovers, victim, host, booted, tmp_path):
    halt = Halt(tmp_path / "halt")
    victim.world.owned("stays", victim.name)
    victim.hang()
    run = failovers.start(
        victim.name, soft_timeout=0, environment=halt.after("localhost", "failover_power", power="off")
    )
    run.until(lambda: halt.reached, "fenced")
    host.switch_on()
    victim.wake("a-new-boot" if booted else None)
    halt.resume()
    done = run.done(PATIENCE)

    assert done.results == {victim.name: "stopped"}, done.output
    assert victim.taint is None
    assert victim.untouched
    assert KEY not in host.annotations
    host.until_reported(on=True)
    assert set(victim.world.pods(victim.name)) == {"stays"}
    (entry,) = [item for item in failovers.audit().values() if item["node"] == victim.name]
    assert entry["result"] == "stopped"


@pytest.mark.long
def test_a_node_that_comes_back_under_the_taint(failovers, victim, tmp_path):
    halt = Halt(tmp_path / "halt")
    lies = failovers.by_command() | {"fence_command": failovers.command("lie", "true")}
    lies |= {"verify_command": failovers.command("off", "echo off")}
    victim.hang()
    run = failovers.start(victim.name, environment=halt.after("localhost", "out_of_service", wait=False), **lies)
    run.until(lambda: halt.reached, "tainted")
    victim.wake()
    halt.resume()
    done = run.done(PATIENCE)

    assert done.results == {victim.name: "failed"}, done.output
    assert "still has the taint: run the playbook recover" in done.detail(victim.name)
    assert victim.taint == "nodeshutdown"
    assert victim.world.cordoned(victim.name)
    assert (victim.record["result"], victim.claim) == ("failed", {})


@pytest.mark.long
def test_a_sign_of_life_after_the_fence_command(failovers, victim, tmp_path):
    halt = Halt(tmp_path / "halt")
    variables = failovers.by_command(fence=f"({halt.command})")
    victim.hang()
    run = failovers.start(victim.name, **variables)
    run.until(lambda: halt.reached, "the fence command runs")
    # Once more; then its power goes, or another machine's.
    victim.wake()
    halt.resume()
    done = run.done(PATIENCE)

    assert done.results == {victim.name: "failed"}, done.output
    assert "may be off. Run the playbook recover" in done.detail(victim.name)
    assert (victim.taint, victim.record["result"]) == (None, "failed")
    assert failovers.recover(victim.name, **variables).good().results == {victim.name: "recovered"}
    assert failovers.commands == ["off", "on"]
    assert victim.untouched


@pytest.mark.long
def test_the_deadline_names_each_volume(failovers, world, volumes):
    # All pods start on it before other nodes exist.
    victim = failovers.victim()
    volumes.statefulset("db", 3)
    world.nodes(2)
    volumes.delays(detach=None)
    attached = [item["metadata"]["name"] for item in volumes.attachments(victim.name)]
    assert attached
    variables = failovers.by_command()
    victim.hang()

    done = failovers.run(victim.name, move_timeout=15, **variables)

    assert done.results == {victim.name: "failed"}
    assert all(name in done.detail(victim.name) for name in attached)
    assert {item["name"] for item in done.entry(victim.name)["blockers"]} >= set(attached)
    assert victim.taint == "nodeshutdown"

    volumes.delays()
    assert failovers.run(victim.name, **variables).good().results == {victim.name: "moved"}
    assert failovers.commands == ["off"]


@pytest.mark.long
def test_pods_that_are_gone_before_the_wait_are_reported_nevertheless(failovers, victim, tmp_path):
    halt = Halt(tmp_path / "halt")
    victim.world.owned("goes", victim.name)
    victim.hang()
    there = halt.after("localhost", "out_of_service", wait=False)
    run = failovers.start(victim.name, environment=there, **failovers.by_command())
    run.until(lambda: halt.reached, "tainted", PATIENCE)
    victim.world.until(victim.world.path("pods"), "goes", lambda item: item is None)
    halt.resume()
    done = run.done(PATIENCE).good()

    (entry,) = done.report["nodes"]
    assert [(item["name"], item["state"]) for item in entry["pods"]] == [("goes", "gone")]
    assert entry["detail"].startswith("1 pod and")
    assert [item["state"] for item in failovers.audit()[entry["operation"]]["pods"]] == ["gone"]


# -- two at once ------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_two_at_once(failovers, victim, tmp_path):
    halt = Halt(tmp_path / "halt")
    variables = failovers.by_command(fence=f"({halt.command})")
    victim.hang()
    first = failovers.start(victim.name, run="first", **variables)
    first.until(lambda: halt.reached, "the fence command runs")
    second = failovers.run(victim.name, run="second", **variables)
    halt.resume()

    assert second.results == {victim.name: "refused"}
    assert "claimed by run first/" in second.detail(victim.name)
    assert first.done(PATIENCE).good().results == {victim.name: "moved"}
    assert failovers.commands == ["off"]


@pytest.mark.long
def test_evidence_that_was_wrong_is_undone_by_force(failovers, victim):
    lies = failovers.by_command() | {"fence_command": failovers.command("lie", "true")}
    lies |= {"verify_command": failovers.command("off", "echo off"), "power_on_command": ""}
    victim.hang()
    failovers.run(victim.name, **lies).good()
    victim.wake()

    refused = failovers.recover(victim.name, ready_timeout=PATIENCE, force="false", **lies)
    assert refused.results == {victim.name: "failed"}
    assert "boot ID is still" in refused.detail(victim.name)
    assert "failover_force" in refused.detail(victim.name)
    assert refused.entry(victim.name)["seconds"]["ready"] < PATIENCE, "at once"
    assert victim.taint == "nodeshutdown"
    back = failovers.recover(victim.name, force=True, **lies).good()
    assert back.results == {victim.name: "recovered"}
    assert failovers.audit()[back.report["nodes"][0]["operation"]]["forced"] is True
    assert victim.taint is None
    assert not victim.world.cordoned(victim.name)


@pytest.mark.long
def test_a_node_that_others_had_cordoned_stays_cordoned(failovers, victim):
    variables = failovers.by_command()
    victim.world.cluster.merge(paths.node(victim.name), {"spec": {"unschedulable": True}})
    victim.hang()
    failovers.run(victim.name, **variables).good()
    back = failovers.recover(victim.name, force=True, **variables).good()
    assert back.results == {victim.name: "recovered"}
    # It had a new boot ID.
    assert "forced" not in failovers.audit()[back.report["nodes"][0]["operation"]]
    assert victim.world.cordoned(victim.name)
    assert (victim.marks, victim.taint) == ({}, None)


@pytest.mark.long
def test_a_taint_of_others_stays_and_is_reported(failovers, victim):
    taint = {"key": TAINT, "value": "nodeshutdown", "effect": "NoExecute"}
    victim.world.cluster.merge(paths.node(victim.name), {"spec": {"taints": [taint]}})
    variables = failovers.by_command()
    victim.hang()
    failovers.run(victim.name, **variables).good()
    back = failovers.recover(victim.name, **variables).good()
    assert back.results == {victim.name: "recovered"}
    assert "the out-of-service taint stays" in back.detail(victim.name)
    assert (victim.marks, victim.taint) == ({}, "nodeshutdown")
