# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hold that comes between the last look and the reboot, on a real node with the agent: the node itself refuses."""

from __future__ import annotations

import pytest
from integration.support.agent import agents_on, free
from integration.support.realnodes import WAITS, boot_id, member, noted_reboot

pytestmark = [pytest.mark.nodes, pytest.mark.long]


@pytest.mark.parametrize("name", ["node-1", "node-2"])
def test_ends_in_a_node_that_is_put_back_and_a_later_try(lab, cluster, world, rolling, name):
    with agents_on(lab, cluster, (name,)) as agents, free(agents[name]) as agent, member(world, lab, name) as variables:
        before = boot_id(lab, name)
        with noted_reboot(lab, name, WAITS) as noted:
            run = rolling.start({name: variables}, override_holds=False)
            run.until(noted, "the reboot is asked for")
            agent.hold(world.namespace, "backup")
            agent.until(f"{world.namespace}/backup", "True")
            agent.ssh("touch /run/reboot-goes-on")
            run.until(lambda: rolling.record(name).get("phase") == "hold", "the node is put back")
            run.until(lambda: not world.cordoned(name), "it takes pods again")
            assert boot_id(lab, name) == before
            run.until(lambda: rolling.slots() == {}, "its slot is free")
            assert "node is shutting down" not in agent.journal("kubelet")
            agent.end_hold(world.namespace)
            done = run.done().good()

        assert done.results == {name: "rebooted"}
        assert (done.entry(name)["boot_id_before"], done.entry(name)["boot_id_after"]) == (before, boot_id(lab, name))
        assert boot_id(lab, name) != before
        rolling.assert_nothing_left([name])


def test_an_override_gets_through_the_masks_and_is_recorded(lab, cluster, world, rolling):
    name = "node-1"
    with agents_on(lab, cluster, (name,)) as agents, free(agents[name]) as agent, member(world, lab, name) as variables:
        before = boot_id(lab, name)
        agent.hold(world.namespace, "backup")
        agent.until(f"{world.namespace}/backup", "True")

        done = rolling.run({name: variables}, override_holds=True).good()

        assert done.results == {name: "rebooted"}
        assert boot_id(lab, name) != before
        assert f"holds were overridden: {world.namespace}/backup" in done.detail(name)
        # Still held, after the boot too.
        agent.until(f"{world.namespace}/backup", "True")
