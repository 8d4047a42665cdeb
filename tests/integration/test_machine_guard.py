# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook guard_machine with Cluster API's own controller, which deletes Machines point by point."""

from __future__ import annotations

import pytest
from integration.guards import Guarding, points
from integration.machines_capi import Fleet, controlled, deleting

from ansible_collections.holdfast.kubernetes.plugins.module_utils import _paths as paths


@pytest.fixture(scope="module")
def capi(lab):
    with controlled(lab) as found:
        yield found


@pytest.fixture
def fleet(capi, world):
    found = Fleet(world)
    yield found
    found.close()


@pytest.fixture
def guarding(fleet, ansible):
    found = Guarding(fleet, ansible)
    yield found
    found.close()


def test_both_points(guarding, fleet, world):
    """It waits, the user's tasks run, it is drained by us, each hook goes, and Machine and Node are gone."""
    (node,) = world.nodes()
    name = fleet.machine(node)
    world.owned("app", node)
    seen = world.record(fleet.path("machines"), field_selector=f"metadata.name={name}")
    run = guarding.start(
        name, pre_drain_tasks=guarding.tasks("backup"), pre_terminate_tasks=[guarding.tasks("off"), guarding.tasks("out")]
    )
    guarding.hooked(name)
    assert world.pods(node), "nobody deletes it yet"
    fleet.delete(name)

    done = run.done().good()
    fleet.until_gone(name)
    assert world.cluster.find(paths.node(node)) is None
    assert guarding.log == [f"backup pre-drain {name}", f"off pre-terminate {name}", f"out pre-terminate {name}"]
    assert points(done) == {(name, "pre-drain"): "released", (name, "pre-terminate"): "released"}
    assert done.report["summary"]["ended"] == ["gone"]
    assert done.stats["machine_guard_released"] == 1
    before, after = done.report["machines"]
    assert {"claim", "hold", "tasks", "drain", "release"} <= before["seconds"].keys()
    assert {"volumes"} <= after["seconds"].keys()
    reasons = list(dict.fromkeys(deleting(change.object) for change in seen.changes))
    assert [reason for reason in reasons if "Hook" in reason] == ["WaitingForPreDrainHook", "WaitingForPreTerminateHook"]
