# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run finds that a dead run left: it comes first, and nothing of it stays."""

from __future__ import annotations

import json

import pytest
import yaml
from integration.support.playbooks import PLAYBOOK
from integration.support.ward import Ward

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import EXCLUDE


@pytest.fixture
def ward(world):
    return Ward(world, 4)


@pytest.mark.long
def test_what_a_dead_run_has_begun_comes_first_in_the_first_of_two_imports(ward, rolling, tmp_path):
    """The others need its slot, although it is the last host, with one fork, and its node is the controller's."""
    names = ward.nodes
    canary, begun = names[1], names[-1]
    ward.begin()
    ward.work(begun)
    ward.die()
    before = rolling.boot_ids(names)
    reports = [tmp_path / f"{name}.json" for name in ("kernel", "firmware")]
    imports = [
        {
            "ansible.builtin.import_playbook": PLAYBOOK,
            "vars": {"rolling_reboot_operation": name, "rolling_reboot_report": str(report)},
        }
        for name, report in zip(("kernel", "firmware"), reports, strict=True)
    ]
    site = tmp_path / "site.yml"
    site.write_text(yaml.safe_dump(imports))

    # The dead run had another budget.
    rolling.run(
        names,
        "--forks=1",
        playbook=str(site),
        canary=[canary],
        controller_node=begun,
        max_unavailable=1,
        slot_timeout=60,
    ).good()

    kernel, firmware = (json.loads(path.read_text()) for path in reports)
    assert kernel["summary"]["rebooted"] == firmware["summary"]["rebooted"] == names
    after = {node["name"]: node for node in firmware["nodes"]}
    for node in kernel["nodes"]:
        name = node["name"]
        assert node["boot_id_before"] == before[name]
        assert node["boot_id_after"] == after[name]["boot_id_before"] != before[name]
        assert after[name]["boot_id_after"] == rolling.boot_id(name) != node["boot_id_after"]
    rolling.assert_nothing_left(names)
    ended = [entry for entry in ward.ledger()["operations"] if entry["id"] in ("kernel", "firmware")]
    assert [(entry["runs"], entry["unfinished"]) for entry in ended] == [([], False)] * 2, ended


@pytest.mark.long
def test_a_node_that_a_dead_run_left_cordoned_is_never_skipped(ward, rolling):
    """Its reboot is no longer needed. A run of another operation does not end well and leave it cordoned."""
    left = ward.first
    ward.left_by()
    needs_nothing = {"operation": "firmware", "when": "command", "when_command": "false"}

    refused = rolling.run(ward.nodes, **needs_nothing)

    assert refused.code != 0
    assert refused.results == {**dict.fromkeys(ward.nodes, "skipped"), left: "stopped"}
    assert "belongs to another operation: run holdfast.kubernetes.doctor, or set rolling_reboot_restart: true" in (
        refused.detail(left)
    )
    assert ward.world.cordoned(left)

    done = rolling.run(ward.nodes, restart=True, **needs_nothing).good()

    assert set(done.results.values()) == {"skipped"}
    rolling.assert_nothing_left(ward.nodes)


@pytest.mark.long
def test_a_node_that_a_person_excludes_after_a_dead_run_drained_it_is_given_back(ward, rolling):
    """It is not rebooted, and the others need its slot."""
    left = ward.left_by().first
    ward.world.cluster.merge(paths.node(left), {"metadata": {"labels": {EXCLUDE: ""}}})
    before = rolling.boot_id(left)

    done = rolling.run(ward.nodes, operation="kernel", max_unavailable=1).good()

    assert done.results == {**dict.fromkeys(ward.nodes, "rebooted"), left: "skipped"}
    assert rolling.boot_id(left) == before
    rolling.assert_nothing_left(ward.nodes)
