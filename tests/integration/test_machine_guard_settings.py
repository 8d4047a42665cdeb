# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook guard_machine with variables as AWX and the command line give them: texts, blanks, a --limit."""

from __future__ import annotations

import json

import pytest
from integration.support.guards import Guarding
from integration.support.machines_capi import Fleet, controlled
from integration.support.variables import as_texts, blank


@pytest.fixture(scope="module")
def capi(lab):
    with controlled(lab) as found:
        yield found


@pytest.fixture
def guarding(capi, world, ansible):
    fleet = Fleet(world)
    found = Guarding(fleet, ansible)
    yield found
    found.close()
    fleet.close()


@pytest.fixture
def inventory(ansible):
    path = ansible.folder / "limited.yml"
    path.write_text(json.dumps({"all": {"hosts": {"worker-1": {"ansible_host": "192.0.2.1"}}}}))
    return str(path)


@pytest.mark.long
def test_guarding_with_texts_keeps_the_hook_of_a_held_node(guarding, world, ansible):
    fleet = guarding.fleet
    (node,) = world.nodes()
    name = fleet.machine(node)
    world.create("leases", node, {"spec": {"holderIdentity": "app", "acquireTime": "2026-01-02T03:04:05.000000Z"}})
    own = {
        "namespace": fleet.namespace,
        "machines": name,
        "stop": "idle",
        "timeout": "180",
        "parallel": "1",
        "hold_timeout": "2",
        "report": str(ansible.folder / "run-0/report.json"),
    }
    texts = as_texts("machine_guard", **own) | {"set_hooks": "true"}
    run = guarding.start(name, **texts)
    guarding.hooked(name)
    fleet.delete(name)

    done = run.done()

    assert done.code != 0
    assert done.report["summary"]["failed"] == [name], done.output
    guarding.hooked(name)
    world.delete("leases", node)


@pytest.mark.long
def test_guarding_with_blanks(guarding, world):
    fleet = guarding.fleet
    (node,) = world.nodes()
    name = fleet.machine(node)
    blanks = {
        key: value for key, value in blank("machine_guard").items() if key not in ("machines", "namespace", "report")
    }
    run = guarding.start(name, **{**blanks, "stop": "idle"})
    guarding.hooked(name)
    fleet.delete(name)

    run.done().good()

    fleet.until_gone(name)


@pytest.mark.long
def test_a_guard_without_workers_sets_no_hooks(guarding, world, inventory):
    fleet = guarding.fleet
    (node,) = world.nodes()
    name = fleet.machine(node)

    done = guarding.run(name, arguments=("-i", inventory, "--limit", "worker-1"))

    assert done.code != 0
    assert "excludes localhost" in done.output
    assert not [key for key in fleet.get(name)["metadata"].get("annotations") or {} if "delete.hook" in key]
