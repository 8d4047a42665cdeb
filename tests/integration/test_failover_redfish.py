# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failover through BMCs that speak Redfish. Needs sushy-tools, and the community.general of the benchmarks' peers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from integration.bmcs import redfish
from integration.failovers import Failovers

CHECKOUT = Path(__file__).resolve().parents[2]
_PEERS = sorted(CHECKOUT.glob("build/venv-peers/lib/python3*/site-packages/ansible_collections/community/general"))

pytest.importorskip("sushy_tools")


@pytest.fixture
def collections(tmp_path):
    """Where Ansible finds community.general, and nothing else of the peers."""
    if not _PEERS:
        pytest.skip("there is no community.general; make bench installs it")
    home = tmp_path / "collections/ansible_collections/community"
    home.mkdir(parents=True)
    (home / "general").symlink_to(_PEERS[0])
    known = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or str(CHECKOUT / "build/collections")
    return f"{known}:{tmp_path / 'collections'}"


def test_by_redfish_there_and_back(world, ansible, lab, tmp_path, collections):
    failovers = Failovers(world, ansible)
    victim = failovers.victim()
    world.nodes(2)
    world.owned("goes", victim.name)
    with redfish(world, lab, tmp_path, victim.name) as bmcs:
        variables = {
            "fence": "redfish",
            "redfish_uri": f"{bmcs.url}/redfish/v1/Systems/{bmcs.system(victim.name)}",
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
