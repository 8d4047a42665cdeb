# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status from the cluster alone, with the right to read and no other."""

from __future__ import annotations

import json

import pytest
from integration.support.rights import READ_ONLY, Account

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import operations, run_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation import node_operation
from ansible_collections.holdfast.kubernetes.plugins.modules import (
    cordon,
    node_claim,
    reboot_slot,
    status_info,
)


@pytest.fixture
def reader(world, lab, tmp_path):
    """A kubeconfig of an account that has the documented rights."""
    account = Account(world.cluster, f"status-{world.namespace}", documented=READ_ONLY)
    world.made.objects += account.objects
    return str(account.kubeconfig(lab.kubeconfig, tmp_path))


@pytest.fixture
def under_way(world):
    """A run that drains one node, while another one is held and a third one waits for a slot."""
    working, held, waiting = world.nodes(3)
    run, group = f"run-{world.namespace}", world.namespace
    world.made.objects += [
        paths.lease("holdfast", run_rules.lease_name(run)),
        paths.one(paths.config_maps("holdfast"), f"group.{group}"),
    ]

    def do(module, **options):
        result = world.run(module, **options)
        assert not result.get("failed"), result

    ids = {"operation": "kernel", "run": run}
    do(operations.enter, group=group, nodes=[working, held, waiting], restart=False, adopt_within=0, **ids)
    do(reboot_slot, name=working, group=group, selector=f"pool={group}", max_unavailable="1", wait_timeout=0, **ids)
    do(node_claim, name=working, **ids)
    do(cordon, name=working, owner="rolling_reboot", **ids)
    for name, phase in ((working, "drain"), (held, "hold"), (waiting, "slot")):
        do(node_operation, name=name, phase=phase, claimed=False, **ids)
    spec = {"holderIdentity": "alice", "acquireTime": "2026-01-02T03:04:05.000000Z"}
    world.create("leases", held, {"spec": spec})
    return run, working, held, waiting


def test_reader_sees_a_run_that_works_elsewhere(world, ansible, reader, under_way):
    run, working, held, waiting = under_way
    group = world.namespace

    done = ansible.command(
        "ansible-playbook",
        "holdfast.kubernetes.status",
        f"-estatus_group={group}",
        f"-estatus_report={ansible.folder / 'status.json'}",
        K8S_AUTH_KUBECONFIG=reader,
        ANSIBLE_STDOUT_CALLBACK="holdfast.kubernetes.progress",
        ANSIBLE_SHOW_CUSTOM_STATS="True",
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((ansible.folder / "status.json").read_text())
    nodes = {node["name"]: (node["state"], node["phase"], node["run"]) for node in found["nodes"]}
    assert nodes == {
        working: ("working", "drain", run),
        held: ("waiting", "hold", run),
        waiting: ("waiting", "slot", run),
    }
    whys = {node["name"]: node["why"] for node in found["nodes"]}
    assert whys[held].startswith(f"held by {group}/alice since 2026-01-02")
    assert whys[waiting] == f"a slot of Group {group}: 1 of 1 allowed unavailable: {working}"
    assert found["groups"] == [{"group": group, "allowed": 1, "unavailable": [working]}]
    assert [(item["id"], item["alive"]) for item in found["runs"]] == [(run, True)]
    assert [item["node"] for item in found["holds"]] == [held]
    assert found["stale"] == []
    # The callback hides what went well, and not what was asked for.
    assert f"{held}  hold" in done.stdout
    assert "TASK" not in done.stdout
    assert '"status_waiting": 2' in done.stdout


def test_reader_cannot_change_anything(world, reader, under_way):
    world.kubeconfig = reader

    result = world.run(cordon, name=under_way[3], owner="reader")

    assert result["failed"]
    assert "forbidden" in result["msg"]


def test_status_for_programs_is_json(world, reader, under_way):
    world.kubeconfig = reader

    result = world.run(status_info, nodes=[under_way[2]])

    assert not result.get("failed"), result
    assert [node["phase"] for node in result["nodes"]] == ["hold"]
    assert result["stats"]["status_holds"] == 1
    assert not result["changed"]
