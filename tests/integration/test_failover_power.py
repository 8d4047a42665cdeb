# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real node loses its power under a StatefulSet with volumes: one command moves its pods, another brings it back.

By Redfish, which needs sushy-tools, by commands, and by metal3.
"""

from __future__ import annotations

from typing import Any

import pytest
from integration.support.bmcs import redfish
from integration.support.failovers import Victim
from integration.support.group import until
from integration.support.metal3 import bound
from integration.support.realnodes import boot_id, member, power_commands
from integration.support.volumes import Volumes, attached, driver

from lab import Lab
from lab.metal3.settings import Times
from lab.patience import PATIENCE

DEAD, OTHER = "node-3", "node-1"
KEY = "reboot.metal3.io/holdfast-failover"

pytestmark = [pytest.mark.long, pytest.mark.nodes]


@pytest.fixture
def volumes(world, lab, tmp_path):
    with member(world, lab, DEAD), driver(world, lab, tmp_path, DEAD, OTHER) as found:
        yield found


class Loss:
    """A StatefulSet on two nodes, one of which loses its power."""

    def __init__(self, world: Any, lab: Lab, volumes: Volumes) -> None:
        self.world, self.lab, self.volumes = world, lab, volumes
        self.victim = Victim(world, DEAD)
        self.boot_id = boot_id(lab, DEAD)
        volumes.statefulset("db", 2, terminationGracePeriodSeconds=2)
        self.pods = list(world.pods(DEAD))
        assert len(self.pods) == len(volumes.attachments(DEAD)) == 2

    def cut(self) -> None:
        self.lab.power_off(DEAD)
        until(lambda: not self.victim.ready, "the node to be given up")

    def check_moved(self, entry: dict[str, Any]) -> None:
        assert entry["result"] == "moved", entry
        assert {item["name"] for item in entry["pods"] if item["state"] == "gone"} >= set(self.pods)
        assert {item["state"] for item in entry["volume_attachments"]} == {"gone"}
        # From the moment that the run reports success.
        assert self.volumes.attachments(DEAD) == []
        self.volumes.until_ready("db", 2)
        assert all(pod["spec"]["nodeName"] == OTHER for pod in self.world.pods().values())
        assert all(map(attached, self.volumes.attachments(OTHER)))
        assert self.victim.taint == "nodeshutdown"
        assert self.world.cordoned(DEAD)

    def check_back(self, entry: dict[str, Any]) -> None:
        assert entry["result"] == "recovered", entry
        assert entry["boot_id_before"] == self.boot_id
        assert entry["boot_id_after"] == boot_id(self.lab, DEAD) != self.boot_id
        assert self.victim.ready
        assert self.victim.untouched


@pytest.fixture
def loss(world, lab, volumes):
    # All pods start on the one node before the other one exists.
    found = Loss(world, lab, volumes)
    with member(world, lab, OTHER):
        yield found


@pytest.fixture(params=["redfish", "command"])
def way(request, world, lab, tmp_path, failovers):
    """Variables of one way to fence."""
    if request.param == "command":
        yield power_commands(lab, tmp_path)
        return
    pytest.importorskip("sushy_tools")
    with redfish(world, lab, tmp_path, DEAD) as bmcs:
        yield bmcs.variables(DEAD)


def test_the_machine_is_switched_off_and_on(loss, failovers, way):
    loss.cut()
    try:
        (moved,) = failovers.run(DEAD, **way).good().report["nodes"]
        loss.check_moved(moved)
    finally:
        back = failovers.recover(DEAD, ready_timeout=PATIENCE, **way)
    (entry,) = back.good().report["nodes"]
    loss.check_back(entry)
    print(f"\nseconds: {moved['seconds']}, and back: {entry['seconds']}")


@pytest.fixture
def host(world, lab, tmp_path, loss):
    """The host of the node that dies; metal3 knows it as on, and looks again only when the host changes."""
    with bound(world, lab, tmp_path) as hosts:
        found = hosts.add(DEAD, times=Times(requeue=3600.0, backoff=2.0))
        hosts.start()
        found.until(lambda item: item["status"].get("conditions"))
        yield found


def test_metal3_is_switched_off_by_the_key(loss, host, failovers):
    loss.cut()
    try:
        (moved,) = failovers.run(DEAD, bare_metal_host=host.name, soft_timeout=0).good().report["nodes"]
        loss.check_moved(moved)
        assert moved["evidence"]["kind"] == "BareMetalHost"
        # There was nothing to switch off.
        assert host.commands == []
    finally:
        back = failovers.recover(DEAD, ready_timeout=PATIENCE)
    (entry,) = back.good().report["nodes"]
    loss.check_back(entry)
    assert host.commands == ["on"]


def test_metal3_knew_it_before(loss, host, failovers, lab, tmp_path):
    host.faults(refused=["power on"])
    loss.cut()
    # metal3 looks at the host because it changed, finds it off, and can't switch it on.
    host.annotate({"other": "was here"})
    host.until_reported(on=False)
    try:
        refused = failovers.run(DEAD, bare_metal_host=host.name, soft_timeout=0).report["nodes"]
        assert [item["result"] for item in refused] == ["failed"]
        assert "is off, but that proves nothing: it was off before the key was written" in refused[0]["detail"]
        assert "Use another kind of evidence" in refused[0]["detail"]
        assert loss.victim.taint is None
        assert loss.volumes.attachments(DEAD)

        by_command = power_commands(lab, tmp_path)
        (moved,) = failovers.run(DEAD, **by_command).good().report["nodes"]
        loss.check_moved(moved)
        assert (moved["resumed"], moved["evidence"]["kind"]) == (True, "Command")
        assert KEY in host.annotations, "it stays until the recovery"
    finally:
        host.faults(refused=False)
        back = failovers.recover(DEAD, ready_timeout=PATIENCE)
    (entry,) = back.good().report["nodes"]
    loss.check_back(entry)
    assert list(host.annotations) == ["other"]
    # metal3 does it.
    assert "Switch node" not in back.output
