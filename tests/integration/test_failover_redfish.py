# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failover through BMCs that speak Redfish. Needs sushy-tools."""

from __future__ import annotations

import pytest
from integration.support.bmcs import gateway, redfish
from integration.support.failovers import STEP, Failovers, Victim

from ansible_collections.holdfast.kubernetes.plugins.modules import failover_power

pytest.importorskip("sushy_tools")


def begin(world, victim):
    run = f"r-{victim.name}"
    options = {"selector": f"pool={world.namespace}", "max_unhealthy": "1", "confirm_seconds": 0}
    begun = world.run(STEP, name=victim.name, run=run, **options)
    return {"name": victim.name, "run": run, "operation": begun["operation"], "method": "redfish"}


def test_behind_a_path_prefix_with_another_system_of_the_same_id(world, lab, tmp_path):
    (name,) = world.nodes()
    victim = Victim(world, name)
    victim.hang()
    options = begin(world, victim)
    folders = [tmp_path / "theirs", tmp_path / "ours"]
    for folder in folders:
        folder.mkdir()
    with (
        redfish(world, lab, folders[0], name) as theirs,
        redfish(world, lab, folders[1], name) as ours,
        gateway(lab, tmp_path, {"": theirs, "/rack-7/bmc": ours}) as origin,
    ):
        bmc = ours.options(name, f"{origin}/rack-7/bmc")
        done = world.run(failover_power, power="off", bmc=bmc, **options)
        assert (done.get("sent"), done.get("power_state")) == (True, "Off"), done
        assert (ours.commands(name), theirs.commands(name)) == (["ForceOff"], [])
        # Another run finds it already off.
        assert world.run(failover_power, power="off", bmc=bmc, **options)["sent"] is False

        back = world.run(failover_power, power="on", bmc=bmc, **options)
        assert (back["sent"], back["power_state"]) == (True, "On")
        assert (ours.commands(name), theirs.commands(name)) == (["ForceOff", "On"], [])


def test_what_is_refused_is_not_sent(world, lab, tmp_path):
    (name,) = world.nodes()
    victim = Victim(world, name)
    victim.hang()
    options = {"power": "off", "timeout": 2, **begin(world, victim)}
    with redfish(world, lab, tmp_path, name) as bmcs:
        bmc = bmcs.options(name)
        for change, error in (
            ({"uuid": "38947555-7742-3448-3784-823347823834"}, "refused"),
            # The Node's own systemUUID is a different one.
            ({"uuid": None}, "refused"),
            ({"password": "wrong"}, "bmc"),
            ({"ca_cert": None}, "bmc"),
            ({"uri": bmc["uri"].replace("https:", "http:")}, "invalid_input"),
        ):
            failed = world.run(failover_power, bmc={**bmc, **change}, **options)
            assert (failed["error"], failed.get("sent", False)) == (error, False), failed
        assert victim.record["phase"] == "claim"
        assert bmcs.commands(name) == []

        # A BMC that accepts the request, and a machine that stays on.
        bmcs.faults(name, says="on")
        failed = world.run(failover_power, bmc=bmc, **options)
        assert (failed["error"], failed["sent"]) == ("timed_out", True)
        # A BMC that refuses says why; the refusal is not recorded.
        bmcs.faults(name, says="on", refused=["power off"])
        failed = world.run(failover_power, bmc=bmc, **options)
        assert (failed["error"], failed["sent"], "refused" in failed["output"]) == ("bmc", True, True), failed


@pytest.mark.long
def test_failover_and_recovery_by_redfish(world, ansible, lab, tmp_path):
    failovers = Failovers(world, ansible)
    victim = failovers.victim()
    world.nodes(2)
    world.owned("goes", victim.name)
    with redfish(world, lab, tmp_path, victim.name) as bmcs:
        variables = bmcs.variables(victim.name)
        victim.hang()

        done = failovers.run(victim.name, **variables).good()

        (entry,) = done.report["nodes"]
        assert (entry["result"], entry["evidence"]["power_state"]) == ("moved", "Off")
        assert bmcs.commands(victim.name) == ["ForceOff"]
        assert bmcs.machine(victim.name).powered() is False
        assert world.pods(victim.name) == {}
        assert bmcs.PASSWORD not in done.output + str(done.report) + str(failovers.audit()) + str(victim.marks)

        back = failovers.recover(victim.name, **variables).good()
        assert back.results == {victim.name: "recovered"}
        assert bmcs.commands(victim.name) == ["ForceOff", "On"]
        assert victim.untouched
    failovers.close()
