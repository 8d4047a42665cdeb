# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action reboot on real nodes: what it refuses, what it waits for, and that it reboots."""

from __future__ import annotations

import contextlib
import json
import threading

import pytest
from integration.support.realnodes import noted_reboot

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import OPERATION
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import claims, runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import PURPOSE
from lab.patience import PATIENCE

pytestmark = pytest.mark.nodes

# systemd 252 and systemd 257.
OLD, NEW = "node-1", "node-2"
UNIT = "test-upgrade"
# As with a hold that comes after the last look, and ends a moment later. The answer outlives the boot.
REFUSED = """ln -s /usr/bin/systemctl /usr/sbin/systemctl
/usr/bin/systemctl mask --runtime --quiet reboot.target
/usr/bin/systemctl "$@"
echo $? > /var/tmp/refused
/usr/bin/systemctl unmask --runtime --quiet reboot.target
exit $(cat /var/tmp/refused)"""


class Node:
    """A real node, and reboots of it by ansible-playbook."""

    def __init__(self, name, lab, cluster, ansible):
        self.name, self.lab, self.cluster, self._ansible = name, lab, cluster, ansible

    def reboot(self, *arguments, **options):
        """The result of one task, and whether the node's own boot ID changed."""
        step = {"name": "Reboot", "holdfast.kubernetes.reboot": options}
        results, output = self._ansible.tasks(
            [step],
            f"--inventory={self.lab.inventory}",
            *arguments,
            hosts=self.name,
            K8S_AUTH_KUBECONFIG=str(self.lab.kubeconfig),
        )
        assert "UNREACHABLE" not in output
        return results[0]

    @property
    def boot_id(self):
        return self.lab.ssh(self.name, "cat /proc/sys/kernel/random/boot_id").strip()

    @contextlib.contextmanager
    def lock(self):
        """A block lock of another program."""
        inhibit = "systemd-inhibit --mode=block --what=shutdown --who=dpkg --why='upgrades the kernel' sleep infinity"
        self.lab.ssh(self.name, f"systemd-run --quiet --unit={UNIT} {inhibit}")
        self.lab.ssh(self.name, "until systemd-inhibit --list | grep -q dpkg; do sleep 0.1; done")
        try:
            yield
        finally:
            self.unlock()

    def unlock(self):
        self.lab.ssh(
            self.name, f"systemctl stop {UNIT}; until ! systemd-inhibit --list | grep -q dpkg; do sleep 0.1; done"
        )

    @contextlib.contextmanager
    def hold(self, namespace):
        path = paths.namespaced("apis/coordination.k8s.io/v1", namespace, "leases")
        spec = {"holderIdentity": "backup", "acquireTime": "2026-01-02T03:04:05.000000Z"}
        self.cluster.create(path, {"metadata": {"name": self.name}, "spec": spec})
        try:
            yield
        finally:
            self.cluster.delete(paths.one(path, self.name))


# The tests' names contain the nodes that they have to themselves.
@pytest.fixture(params=[OLD])
def old(request, lab, cluster, ansible):
    return Node(request.param, lab, cluster, ansible)


@pytest.fixture(params=[NEW])
def new(request, lab, cluster, ansible):
    return Node(request.param, lab, cluster, ansible)


def test_a_block_lock_is_waited_for(old):
    before = old.boot_id
    with old.lock():
        refused = old.reboot(node=old.name)
        assert refused["failed"]
        assert refused["error"] == "timed_out"
        assert 'dpkg ("upgrades the kernel", since 20' in refused["msg"]
        assert "inhibitor_timeout" in refused["msg"]
        (lock,) = refused["inhibitors"]
        assert (lock["who"], lock["why"], lock["mode"]) == ("dpkg", "upgrades the kernel", "block")
        assert (refused["rebooted"], refused["changed"], old.boot_id) == (False, False, before)

        # It does not wait: the reboot may end its connection.
        release = threading.Timer(6, lambda: old.lab.ssh(old.name, f"systemctl stop --no-block {UNIT}"))
        release.start()
        rebooted = old.reboot(node=old.name, inhibitor_timeout=PATIENCE)
        release.join()
    after = old.boot_id
    assert not rebooted.get("failed"), rebooted["msg"]
    assert after != before
    assert (rebooted["rebooted"], rebooted["boot_id_before"], rebooted["boot_id_after"]) == (True, before, after)
    assert set(rebooted["phases"]) == {"inhibitors", "reboot", "ready"}
    assert old.lab.boot_id(old.name) == after


def test_holds_are_honoured_and_an_override_is_recorded(new, namespace):
    before = new.boot_id
    with new.hold(namespace):
        for arguments in ((), ("--check",)):
            held = new.reboot(*arguments, node=new.name)
            assert (held["failed"], held["error"], held["rebooted"]) == (True, "held", False)
            assert f"{namespace}/backup" in held["msg"]
            assert "override_holds" in held["msg"]
            assert new.boot_id == before

        rebooted = new.reboot(node=new.name, override_holds=True)
        assert not rebooted.get("failed"), rebooted["msg"]
        assert [(hold["namespace"], hold["holder"]) for hold in rebooted["overridden_holds"]] == [(namespace, "backup")]
        assert new.boot_id != before


@pytest.mark.long
def test_a_refusal_that_ends_a_moment_later_is_no_failure(old):
    before = old.boot_id
    with noted_reboot(old.lab, old.name, REFUSED):
        rebooted = old.reboot(node=old.name)
    refused = old.lab.ssh(old.name, "cat /var/tmp/refused; rm /var/tmp/refused").strip()
    assert refused == "1"
    assert not rebooted.get("failed"), rebooted["msg"]
    assert (rebooted["boot_id_before"], rebooted["boot_id_after"]) == (before, old.boot_id)
    assert old.boot_id != before


@pytest.mark.long
def test_check_mode_looks_and_leaves_the_node(old):
    before = old.boot_id
    checked = old.reboot("--check", node=old.name)
    assert (checked["changed"], checked["rebooted"]) == (True, True)
    with old.lock():
        assert old.reboot("--check", node=old.name)["error"] == "timed_out"
    assert old.boot_id == before


def test_a_reboot_that_a_dead_run_requested_and_that_came_is_not_repeated(old):
    """The record of the dead run names a former boot, as after a reboot that came after this run got its turn."""
    before, run, operation = old.boot_id, "resumed", "resumed-reboot"
    record = {"id": operation, "run": "dead", "phase": "reboot", "boot_id_before": "former", "result": ""}
    path = paths.node(old.name)
    with runs.heartbeat(old.cluster, run):
        claims.take(old.cluster, old.name, run=run, operation=operation, purpose=PURPOSE)
        try:
            old.cluster.merge(path, {"metadata": {"annotations": {OPERATION: json.dumps(record)}}})
            resumed = old.reboot(node=old.name, operation=operation, run=run)
        finally:
            claims.give_back(old.cluster, old.name, run=run)
            old.cluster.merge(path, {"metadata": {"annotations": {OPERATION: None}}})
            runs.end(old.cluster, run)
    assert not resumed.get("failed"), resumed["msg"]
    assert (resumed["step"], resumed["sent"], old.boot_id) == ("rebooted", False, before)
    assert (resumed["boot_id_before"], resumed["boot_id_after"]) == ("former", before)


def test_another_machine_s_name_is_refused_by_the_boot_id(old, nodes):
    # A simulated node, which no other test uses.
    (another,) = nodes()
    before = old.boot_id
    refused = old.reboot(node=another)
    assert (refused["failed"], refused["error"]) == (True, "refused")
    assert f"Node {another} reports" in refused["msg"]
    assert before in refused["msg"]
    assert old.boot_id == before


@pytest.mark.long
def test_what_can_not_be_rebooted_is_a_failure_not_unreachable(old):
    local = old.reboot("-e", "ansible_connection=local", node=old.name)
    assert (local["failed"], local["error"]) == (True, "refused")
    assert "the controller" in local["msg"]
    gone = old.reboot("-e", "ansible_host=127.0.0.1 ansible_port=9", node=old.name)
    assert (gone["failed"], gone["error"], gone["rebooted"]) == (True, "unreachable", False)
    assert not gone.get("unreachable")
    assert "can't be reached" in gone["msg"]
