# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller that is killed while it reboots a real node, over ssh, and the same command again at once."""

from __future__ import annotations

from typing import Any

import pytest
from integration.support.halts import Halt
from integration.support.history import History
from integration.support.leases import Leases
from integration.support.playbooks import Rolling, Run
from integration.support.realnodes import boot_id, member
from integration.support.turns import node_turns
from integration.support.world import ready

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths


def play(stage: Any, point: str, name: str) -> None:
    world, ansible = stage()
    lab = ansible.lab
    rolling = Rolling(world, ansible)
    halt = Halt(ansible.folder / "halt")
    leases = Leases(world, holder=rolling.group)
    stay = {"name": "Stay", "ansible.builtin.raw": halt.command, "delegate_to": "localhost", "connection": "local"}
    hooks = {"before_uncordon_tasks": rolling.tasks("stay", stay)} if point == "before-uncordon" else {}

    def start() -> Run:
        return rolling.start({name: variables}, holder=rolling.group, **hooks)

    def reached(before: str) -> Any:
        if point == "before-uncordon":
            return halt.reached
        phase = rolling.record(name).get("phase")
        if point == "during-drain":
            return phase == "drain"
        # Down, or already back while the run still waits for it.
        node = world.node(name)
        return phase == "reboot" and (not ready(node) or node["status"]["nodeInfo"]["bootID"] != before)

    try:
        with node_turns(lab, [name]), member(world, lab, name) as variables:
            if point == "during-drain":
                # A drain that fails would give the node back, perhaps before the kill.
                world.owned("web", name, metadata={"finalizers": ["lab.holdfast.dev/stay"]})
            before = rolling.boot_id(name)
            assert boot_id(lab, name) == before
            with History(world.kubeconfig, group=rolling.group, selector=rolling.selector) as history:
                run = start()
                run.until(lambda: reached(before), point)
                run.kill()
                assert world.cordoned(name)
                assert name in rolling.slots()
                if point == "during-drain":
                    world.cluster.merge(paths.pod(world.namespace, "web"), {"metadata": {"finalizers": None}})
                done = start().done().good()
            assert done.results == {name: "rebooted"}
            assert history.boot_ids == {name: [before, boot_id(lab, name)]}
            assert rolling.record(name)["boot_id_before"] == before
            assert rolling.record(name)["result"] == "rebooted"
            rolling.assert_nothing_left([name])
            (operation,) = rolling.ledger()["operations"]
            assert (operation["runs"], operation["unfinished"], operation["failures"]) == ([], False, {})
            assert leases.left() == []
    finally:
        rolling.close()


@pytest.mark.long
@pytest.mark.nodes
@pytest.mark.together(by=play)
@pytest.mark.parametrize(
    ("point", "name"), [("during-drain", "node-1"), ("during-reboot", "node-2"), ("before-uncordon", "node-3")]
)
def test_killed_and_started_again(outcome, point, name):
    outcome()
