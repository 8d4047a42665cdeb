# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failover through BMCs that speak Redfish. Needs sushy-tools, and the community.general of the benchmarks' peers."""

from __future__ import annotations

import pytest
from integration.support.bmcs import peers, redfish
from integration.support.failovers import Failovers

pytest.importorskip("sushy_tools")


@pytest.mark.long
def test_by_redfish_there_and_back(world, ansible, lab, tmp_path):
    collections = peers(tmp_path)
    failovers = Failovers(world, ansible)
    victim = failovers.victim()
    world.nodes(2)
    world.owned("goes", victim.name)
    with redfish(world, lab, tmp_path, victim.name) as bmcs:
        variables = {
            "fence": "redfish",
            "redfish_uri": f"{bmcs.url}/redfish/v1/Systems/{bmcs.system(victim.name)}",
            # No firmware gave the node its UUID.
            "redfish_uuid": bmcs.system(victim.name),
            "redfish_username": bmcs.USER,
            "redfish_password": bmcs.PASSWORD,
            "redfish_ca_cert": str(bmcs.ca),
            "environment": {"ANSIBLE_COLLECTIONS_PATH": collections, "no_proxy": "127.0.0.1"},
        }
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
