# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that can't be reached or don't come back: the other nodes stop, and continue after the repair."""

from __future__ import annotations

import contextlib

import pytest
from integration.support.history import History
from integration.support.playbooks import CORDON
from integration.support.realnodes import NEVER, member, noted_reboot

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from lab.patience import PATIENCE

# For runs that learn in time that no node gets another slot.
SLOT_TIMEOUT = PATIENCE // 2


class Connection:
    """A host that does not answer until it is repaired; the command of the run stays the same."""

    def __init__(self, folder):
        self._file = folder / "connection"
        self._file.write_text("ssh")
        self.variables = {
            "ansible_connection": f"{{{{ lookup('ansible.builtin.file', '{self._file}') }}}}",
            "ansible_host": "127.0.0.1",
            "ansible_port": 9,
            "ansible_ssh_retries": 0,
        }

    def mend(self):
        self._file.write_text("local")


def switch_off_for_good(rolling, marker):
    """The user's tasks that reboot a node, which does not come back the first time."""
    off, on = rolling.off_and_on
    return rolling.tasks("once", off, f"mkdir {marker} 2>/dev/null || {{ {on}; }}")


@pytest.mark.long
def test_an_unreachable_node_and_one_that_never_comes_back_stop_the_rest(rolling, nodes, world, tmp_path, kubeconfig):
    deaf, gone, *rest = names = nodes(5)
    connection = Connection(tmp_path)
    hosts = {
        deaf: {**connection.variables, "rolling_reboot_when": "command", "rolling_reboot_when_command": "true"},
        gone: {"rolling_reboot_command_tasks": switch_off_for_good(rolling, tmp_path / "off")},
        **{name: {} for name in rest},
    }
    command = {"max_failed": 1, "max_unavailable": 3, "ready_timeout": 2, "operation": "mended"}
    before = rolling.boot_ids(names)

    with History(kubeconfig, group=rolling.group, selector=rolling.selector) as history:
        done = rolling.start(hosts, "--forks=1", **command).done(PATIENCE)

        assert done.code != 0
        assert done.results == {deaf: "failed", gone: "failed", **dict.fromkeys(rest, "stopped")}
        assert set(rolling.failures("mended")) == {deaf, gone}
        # Which node, what happened, and what to do.
        assert f"Ansible can't reach node {deaf} over its connection" in done.detail(deaf)
        assert "Fix the connection, or leave the host out." in done.detail(deaf)
        assert f"Node {gone}" in done.detail(gone)
        assert "The node stays cordoned: fix its problem, then run this again to continue." in done.detail(gone)
        for name in rest:
            assert "max_failed is 1" in done.detail(name)
            assert deaf in done.detail(name)
            assert gone in done.detail(name)
        # Healthy nodes are unchanged; the node that is off stays cordoned.
        assert [name for name in names if world.cordoned(name)] == [gone]
        assert rolling.ours(gone)[CORDON]["owner"] == "rolling_reboot"
        assert {name: slot["state"] for name, slot in rolling.slots().items()} == {gone: "failed"}
        assert rolling.boot_ids(names) == before

        # A person repairs the connection, and presses the other node's power button.
        connection.mend()
        world.set_condition(gone, "Ready", "True", "Back")
        world.cluster.merge(f"{paths.node(gone)}/status", {"status": {"nodeInfo": {"bootID": "by-hand"}}})
        again = rolling.start(hosts, "--forks=1", **{**command, "ready_timeout": PATIENCE}).done(PATIENCE).good()

    assert all(len(history.boot_ids[name]) == 2 for name in (deaf, *rest)), history.boot_ids
    assert history.boot_ids[gone][:2] == [before[gone], "by-hand"]
    assert len(history.worst.busy) <= 3, history.worst
    assert set(again.results) == set(names)
    assert all(rolling.record(name)["result"] == "rebooted" for name in names)
    rolling.assert_nothing_left(names)


@pytest.mark.long
def test_a_node_that_goes_deaf_in_the_user_s_own_task_does_not_keep_the_rest_waiting(rolling, nodes, tmp_path):
    deaf, other = names = nodes(2)
    connection = Connection(tmp_path)
    away = {"name": "Ask the node", "ansible.builtin.raw": "true", "vars": connection.variables}
    hosts = {deaf: {"rolling_reboot_before_drain_tasks": rolling.tasks("ask", away)}, other: {}}
    before = rolling.boot_ids(names)

    done = rolling.start(hosts, "--forks=1", operation="deaf", slot_timeout=SLOT_TIMEOUT).done()

    assert done.code != 0
    assert rolling.boot_ids(names) == before
    assert done.results == {deaf: "failed", other: "stopped"}
    assert list(rolling.failures("deaf")) == [deaf]
    assert deaf in done.detail(other)
    # It learns of the failure, and does not merely run out of time.
    assert f"within {SLOT_TIMEOUT} s" not in done.detail(other)
    rolling.assert_nothing_left(names)


@pytest.mark.long
def test_a_repaired_node_that_needs_no_reboot_is_uncordoned(rolling, nodes, world, tmp_path):
    (gone,) = nodes(1)
    marker = tmp_path / "off"
    # Like the distribution's own file, which the reboot removes.
    asked = {"when": "command", "when_command": f"test ! -e {marker}"}
    command = {"command_tasks": switch_off_for_good(rolling, marker), "ready_timeout": 2, **asked}
    assert rolling.run([gone], **command).results == {gone: "failed"}
    assert world.cordoned(gone)
    world.set_condition(gone, "Ready", "True", "Back")
    world.cluster.merge(f"{paths.node(gone)}/status", {"status": {"nodeInfo": {"bootID": "by-hand"}}})

    rolling.run([gone], **command).good()

    assert rolling.boot_id(gone) == "by-hand"
    rolling.assert_nothing_left([gone])


@pytest.mark.long
@pytest.mark.nodes
@pytest.mark.parametrize("told", [False, True])
def test_a_real_node_that_loses_its_power_in_its_reboot_stops_the_rest(rolling, nodes, world, lab, told):
    """Its ssh and its kubelet are gone until someone switches it on; before or just after the order to reboot."""
    lost, *rest = names = "node-1", *nodes(2)
    # The record of an operation stays on a real node.
    operation = f"power-{rolling.group}"
    command = {"max_unavailable": 2, "reboot_timeout": 5, "ready_timeout": 5, "operation": operation}
    # The order arrives, and nothing happens: the power fails before the kubelet notices.
    noting = noted_reboot(lab, lost, NEVER) if told else contextlib.nullcontext()
    with member(world, lab, lost) as variables, noting as noted:
        hosts = {lost: variables, **{name: {} for name in rest}}
        before = rolling.boot_ids(names)
        with History(str(lab.kubeconfig), group=rolling.group, selector=rolling.selector) as history:
            run = rolling.start(hosts, "--forks=1", **command)
            if told:
                run.until(noted, "it is told to reboot")
            else:
                run.until(lambda: rolling.record(lost).get("phase") == "reboot", "its reboot")
            lab.power_off(lost)
            try:
                done = run.done(PATIENCE)
                assert done.code != 0
                assert done.results == {lost: "failed", **dict.fromkeys(rest, "stopped")}
                assert "stays cordoned" in done.detail(lost)
                assert all(lost in done.detail(name) for name in rest)
                assert [name for name in names if world.cordoned(name)] == [lost]
                assert {name: slot["state"] for name, slot in rolling.slots().items()} == {lost: "failed"}
                assert rolling.boot_ids(rest) == {name: before[name] for name in rest}
            finally:
                lab.power_on(lost)
            lab.wait_ready([lost])
            patient = {**command, "reboot_timeout": PATIENCE, "ready_timeout": PATIENCE}
            rolling.start(hosts, "--forks=1", **patient).done(PATIENCE).good()
        assert all(len(history.boot_ids[name]) == 2 for name in rest), history.boot_ids
        assert len(history.worst.busy) <= 2, history.worst
        assert all(rolling.record(name)["result"] == "rebooted" for name in names)
        rolling.assert_nothing_left(names)
