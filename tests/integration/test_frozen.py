# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller that is stopped (SIGSTOP) between its last look at a node and the power-off of its machine.

Meanwhile the node recovers, another run takes it, or someone takes a hold on it. After SIGCONT no power-off is sent.
"""

from __future__ import annotations

import pytest
from integration.support.bmcs import redfish
from integration.support.failovers import STEP, Victim
from integration.support.frozen import frozen
from integration.support.metal3 import Fenced, bound

from ansible_collections.holdfast.kubernetes.plugins.modules import lease_hold, node_claim

MEANWHILE = {"ready": "came_back", "boot": "came_back", "claim": "claim_lost", "hold": "held"}
# One rule decides for all methods, so `make test` tries everything with a command, and one case with each other method.
SOME = [pytest.param(what, marks=[] if what == "claim" else pytest.mark.long) for what in MEANWHILE]


@pytest.fixture
def begun(world):
    """A failover of a silent node, and the run that works on it."""
    (name,) = world.nodes()
    victim = Victim(world, name)
    victim.hang()
    return Begun(victim)


class Begun:
    def __init__(self, victim):
        self.victim, self.run = victim, f"r-{victim.name}"
        options = {"selector": f"pool={victim.world.namespace}", "max_unhealthy": "1", "confirm_seconds": 0}
        done = victim.world.run(STEP, name=victim.name, run=self.run, **options)
        assert not done.get("failed"), done
        self.operation = done["operation"]

    @property
    def options(self):
        return {"name": self.victim.name, "run": self.run, "operation": self.operation}

    def meanwhile(self, what):
        world, name = self.victim.world, self.victim.name
        if what == "ready":
            self.victim.wake()
        elif what == "boot":
            self.victim.wake(boot_id="another")
            self.victim.hang()
        elif what == "hold":
            world.run(lease_hold, node=name, namespace=world.namespace, holder="db", wait=False)
        else:
            # Another run has finished with it, and a third one works on it.
            world.run(node_claim, name=name, run=self.run, operation=self.operation, state="absent")
            world.run(node_claim, name=name, run=f"other-{name}", operation="o")


@pytest.mark.parametrize("what", MEANWHILE)
def test_a_command(begun, tmp_path, what):
    done = tmp_path / "done"
    options = {"power": "off", "method": "command", "command": f"touch {done}"}
    with frozen(begun.victim.world, "failover_power", **begun.options, **options) as process:
        begun.meanwhile(what)
        failed = process.thaw()
    assert (failed["error"], failed["sent"]) == (MEANWHILE[what], False)
    assert not done.exists()


def test_a_command_of_a_run_that_was_stopped_while_nothing_changed(begun, tmp_path):
    """The run looks again, and the command gets the boot ID and the deadline."""
    done = tmp_path / "done"
    command = f"sh -c 'echo $HOLDFAST_NODE $HOLDFAST_BOOT_ID $(($HOLDFAST_DEADLINE > 0)) > {done}'"
    options = {"power": "off", "method": "command", "command": command}
    with frozen(begun.victim.world, "failover_power", **begun.options, **options) as process:
        result = process.thaw()
    assert result["sent"] is True, result
    assert done.read_text().split() == [begun.victim.name, begun.victim.boot_id, "1"]


@pytest.mark.parametrize("what", SOME)
def test_redfish(begun, lab, tmp_path, what):
    pytest.importorskip("sushy_tools")
    world, name = begun.victim.world, begun.victim.name
    with redfish(world, lab, tmp_path, name) as bmcs:
        options = {"power": "off", "method": "redfish", "bmc": bmcs.options(name)}
        with frozen(world, "failover_power", **begun.options, **options) as process:
            begun.meanwhile(what)
            failed = process.thaw()
        assert (failed["error"], failed["sent"]) == (MEANWHILE[what], False)
        assert bmcs.commands(name) == []


@pytest.mark.parametrize("what", SOME)
def test_metal3(world, lab, tmp_path, what):
    with bound(world, lab, tmp_path) as hosts:
        fenced = Fenced(world, hosts)
        victim = Victim(world, fenced.node)
        victim.hang()
        begun = Begun(victim)
        options = {"key": "ours", "mode": "hard", "wait": False, "not_ready": True, "boot_id": victim.boot_id}
        with frozen(world, "reboot_annotation", node=victim.name, run=begun.run, **options) as process:
            begun.meanwhile(what)
            failed = process.thaw()
        assert failed["error"] == MEANWHILE[what]
        assert fenced.host.annotations == {}


def test_a_reboot_by_metal3(world, lab, tmp_path):
    """Another run has rebooted the node and finished with it."""
    with bound(world, lab, tmp_path) as hosts:
        fenced = Fenced(world, hosts)
        options = {"node": fenced.node, "wait": False, "boot_id": fenced.boot_id}
        with frozen(world, "reboot_annotation", **options) as process:
            Victim(world, fenced.node).wake(boot_id="another")
            failed = process.thaw()
        assert (failed["error"], failed["why"]) == ("refused", "new_boot")
        assert fenced.host.annotations == {}
