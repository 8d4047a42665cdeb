# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's management controllers: sushy-tools' protocol, and the power of the lab's nodes."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request

import pytest
from integration.support.bmcs import redfish
from integration.support.metal3 import wait
from integration.support.realnodes import boot_id

from lab.patience import PATIENCE

pytest.importorskip("sushy_tools")


# The lab's stand-ins do not change with the product.
pytestmark = pytest.mark.long


@pytest.fixture
def bmc(world, lab, nodes, tmp_path):
    """The BMC of a simulated node."""
    (node,) = nodes()
    with redfish(world, lab, tmp_path, node) as found:
        found.node = node
        yield found


def power(bmc):
    return bmc.get(bmc.node)["PowerState"]


def test_power_goes_and_comes_back(bmc, world):
    before = world.node(bmc.node)["status"]["nodeInfo"]["bootID"]
    assert (power(bmc), bmc.get(bmc.node)["Name"]) == ("On", bmc.node)
    bmc.reset(bmc.node, "ForceOff")
    wait(lambda: power(bmc) == "Off", "off")
    assert bmc.machine(bmc.node).powered() is False
    bmc.reset(bmc.node, "On")
    wait(lambda: power(bmc) == "On", "on")
    assert world.node(bmc.node)["status"]["nodeInfo"]["bootID"] != before
    bmc.reset(bmc.node, "GracefulShutdown")
    wait(lambda: power(bmc) == "Off", "off")
    assert bmc.commands(bmc.node) == ["ForceOff", "On", "GracefulShutdown"]


@pytest.mark.parametrize(
    ("fault", "kind", "status"),
    [
        ({"refused": ["power off"]}, "ForceOff", 409),
        ({"soft_unsupported": True}, "GracefulShutdown", 400),
        ({"flaky": 1}, "ForceOff", 500),
        ({"unreachable": True}, "ForceOff", 503),
        ({}, "Nonsense", 400),
    ],
)
def test_failures_with_an_answer(bmc, fault, kind, status):
    bmc.faults(bmc.node, **fault)
    with pytest.raises(urllib.error.HTTPError) as error:
        bmc.reset(bmc.node, kind)
    assert error.value.code == status
    assert bmc.machine(bmc.node).powered() is True


def test_failures_without_an_answer(bmc):
    bmc.faults(bmc.node, soft_ignored=True)
    bmc.reset(bmc.node, "GracefulShutdown")
    bmc.faults(bmc.node, says="off")
    assert (power(bmc), bmc.machine(bmc.node).powered()) == ("Off", True)
    bmc.faults(bmc.node, says="", stale=True)
    bmc.reset(bmc.node, "ForceOff")
    wait(lambda: not bmc.machine(bmc.node).powered(), "off")
    bmc.stop()
    with pytest.raises(OSError, match="refused"):
        power(bmc)


def test_only_its_user_is_let_in(bmc):
    context = ssl.create_default_context(cafile=str(bmc.ca))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with pytest.raises(urllib.error.HTTPError) as error:
        opener.open(f"{bmc.url}/redfish/v1/Systems", timeout=PATIENCE)
    assert error.value.code == 401


@pytest.mark.nodes
def test_a_real_node(world, lab, tmp_path):
    lab.wait_ready(["node-1"])
    before = boot_id(lab, "node-1")
    with redfish(world, lab, tmp_path, "node-1") as bmc:
        bmc.reset("node-1", "ForceOff")
        wait(lambda: bmc.get("node-1")["PowerState"] == "Off", "off")
        assert lab.powered("node-1") is False
        bmc.reset("node-1", "On")
        lab.wait_ready(["node-1"])
        assert boot_id(lab, "node-1") != before
        assert bmc.get("node-1")["PowerState"] == "On"
