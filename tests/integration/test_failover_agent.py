# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failover through fence agents of ClusterLabs: Debian's fence_redfish, at BMCs that speak Redfish."""

from __future__ import annotations

import json

import pytest
from integration.support.bmcs import redfish
from integration.support.failovers import STEP, Failovers, Victim

from ansible_collections.holdfast.kubernetes.plugins.modules import failover_power, out_of_service
from lab import fence_agents

pytest.importorskip("sushy_tools")


@pytest.fixture(scope="module")
def program():
    return str(fence_agents.program("fence_redfish"))


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    """A proxy of the machine can't reach the BMC."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def agent(bmcs, program, node, **options):
    """The fence agent of a node, as the variable of the role."""
    host, _colon, port = bmcs.url.rpartition("//")[2].partition(":")
    known = {
        "ip": host,
        "ipport": port,
        "username": bmcs.USER,
        "password": bmcs.PASSWORD,
        "ssl_insecure": True,
        "systems_uri": f"/redfish/v1/Systems/{bmcs.system(node)}",
    }
    plug = options.pop("plug", None)
    return {"name": program, **({"plug": plug} if plug else {}), "options": {**known, **options}}


def begin(world, victim):
    run = f"r-{victim.name}"
    options = {"selector": f"pool={world.namespace}", "max_unhealthy": "1", "confirm_seconds": 0}
    begun = world.run(STEP, name=victim.name, run=run, **options)
    return {"name": victim.name, "run": run, "operation": begun["operation"], "method": "fence_agent"}


def test_a_wrong_plug_is_refused_before_anything_is_switched_off(world, lab, tmp_path, program):
    (name,) = world.nodes()
    victim = Victim(world, name)
    victim.hang()
    options = {"power": "off", **begin(world, victim)}
    with redfish(world, lab, tmp_path, name) as bmcs:
        for change, error, words in (
            ({"systems_uri": "/redfish/v1/Systems/another"}, "command", "ended its action status with 1"),
            ({"password": "wrong"}, "command", "ended its action status with 1"),
            ({"ipport": "1"}, "command", "ended its action status with 1"),
            ({"plug": "worker-9"}, "invalid_input", "would ignore plug worker-9"),
            ({"sytems_uri": "/redfish/v1/Systems/1"}, "invalid_input", "has no option sytems_uri"),
            ({"delay": 20}, "invalid_input", "the last check of the node counts"),
        ):
            text = json.dumps(agent(bmcs, program, name, **change))
            failed = world.run(failover_power, agent=text, **options)
            assert (failed["error"], failed["sent"]) == (error, False), failed
            assert words in failed["msg"]
            assert bmcs.PASSWORD not in json.dumps(failed)
        assert victim.record["phase"] == "claim"
        assert bmcs.commands(name) == []
        assert bmcs.machine(name).powered()


def test_off_and_status_are_both_checked(world, lab, tmp_path, program):
    (name,) = world.nodes()
    victim = Victim(world, name)
    victim.hang()
    options = begin(world, victim)
    with redfish(world, lab, tmp_path, name) as bmcs:
        text = json.dumps(agent(bmcs, program, name))
        done = world.run(failover_power, power="off", agent=text, **options)
        assert (done.get("sent"), done.get("power_state")) == (True, "off"), done
        assert bmcs.commands(name) == ["ForceOff"]
        # Another run finds it already off.
        assert world.run(failover_power, power="off", agent=text, **options)["sent"] is False

        evidence = {"kind": "FenceAgent", "agent": text}
        proven = world.run(out_of_service, name=name, run=options["run"], evidence=evidence, wait=False)
        kept = proven["evidence"]
        assert (kept["kind"], kept["agent"], kept["power_state"]) == ("FenceAgent", "fence_redfish", "off")
        assert bmcs.PASSWORD not in json.dumps([proven, victim.node])

        back = world.run(failover_power, power="on", agent=text, **options)
        assert (back["sent"], back["power_state"]) == (True, "on")
        assert bmcs.commands(name) == ["ForceOff", "On"]


@pytest.mark.long
def test_the_next_way_after_a_bmc_that_does_not_answer(world, lab, tmp_path, program):
    (name,) = world.nodes()
    victim = Victim(world, name)
    victim.hang()
    options = {**begin(world, victim), "method": "redfish"}
    with redfish(world, lab, tmp_path, name) as bmcs:
        silent = bmcs.options(name, "https://127.0.0.1:1")
        way = {"method": "fence_agent", "facts": {"fence": "fence_agent", "agent": program, "plug": ""}}
        done = world.run(
            failover_power,
            power="off",
            bmc=silent,
            agent=json.dumps(agent(bmcs, program, name)),
            facts={"fence": "redfish", "uri": silent["uri"]},
            then=[way],
            **options,
        )
        assert (done.get("method"), done.get("sent")) == ("fence_agent", True), done
        assert victim.record["facts"]["fence"] == "fence_agent"
        assert [item["method"] for item in victim.record["facts"]["attempts"]] == ["redfish"]


@pytest.mark.long
def test_failover_and_recovery_by_a_list_of_ways(world, ansible, lab, tmp_path, program):
    failovers = Failovers(world, ansible)
    victim = failovers.victim()
    world.nodes(2)
    world.owned("goes", victim.name)
    with redfish(world, lab, tmp_path, victim.name) as bmcs:
        variables = {
            # As a survey gives it. There are no BareMetalHosts.
            "fence": "metal3, redfish, fence_agent",
            "redfish_uri": "https://127.0.0.1:1/redfish/v1/Systems/1",
            "fence_agent": json.dumps(agent(bmcs, program, victim.name)),
        }
        direct = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        victim.hang()

        done = failovers.run(victim.name, environment=direct, **variables).good()

        (entry,) = done.report["nodes"]
        assert (entry["result"], entry["evidence"]["kind"]) == ("moved", "FenceAgent")
        assert [item["method"] for item in entry["attempts"]] == ["metal3", "redfish"]
        assert bmcs.commands(victim.name) == ["ForceOff"]
        assert world.pods(victim.name) == {}
        assert bmcs.PASSWORD not in done.output + str(done.report) + str(failovers.audit()) + str(victim.marks)

        back = failovers.recover(victim.name, environment=direct, fence_agent=variables["fence_agent"]).good()
        assert back.results == {victim.name: "recovered"}
        assert bmcs.commands(victim.name) == ["ForceOff", "On"]
        assert victim.untouched
    failovers.close()
