# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operation on a node that is put together from files."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.bus import Service
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.inhibitor_rules import Inhibitor, Logind
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import info, logind_files, logind_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.grace_rules import TOTAL
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.info import graceful_shutdown_info
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.kubelet_rules import Kubelet, Settings
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.proof_rules import Snapshot

STATE = "graceful_node_shutdown_state"


class Bus:
    """A node whose kubelet does not run, and whose logind waits without end."""

    def __init__(self):
        self.asked = []

    def service(self, unit):
        self.asked.append(unit)
        return Service()

    def booted(self):
        return 0.0

    def inhibit_delay_max(self):
        return (2**64 - 1) / 1_000_000

    def systemd_version(self):
        return 257

    def logind(self):
        return Logind("boot", False, ())


class Node:
    def __init__(self, folder, monkeypatch):
        self.folder, self.bus = folder, Bus()
        self.check_mode = False
        reads = logind_files.read
        monkeypatch.setattr(info.logind_files, "read", lambda version: reads(version, folder))

    def look(self, unit="kubelet"):
        return graceful_shutdown_info(self, {"kubelet_unit": unit, "kubelet_root_dir": str(self.folder)})

    def codes(self):
        return [item["problem"] for item in self.look()["problems"]]


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def test_nothing_is_there(node):
    found = node.look()

    assert (found["changed"], found["enabled"], found["in_effect"]) == (False, False, False)
    assert (found["delay_lock"], found["last_shutdown"]) == (None, None)
    assert found["kubelet"]["unit"] == "kubelet.service"
    assert (found["kubelet"]["config"], found["kubelet"]["groups"], found["kubelet"]["needed"]) == (None, [], 0)
    # What has no end is null, as JSON knows nothing longer.
    assert found["logind"] == {"inhibit_delay_max": None, "configured": 5.0, "file": None, "candidates": []}
    assert node.codes() == ["kubelet_not_running", "logind_not_reloaded"]


def test_a_unit_of_another_kind_keeps_its_name(node):
    node.look("k3s-agent.service")

    assert node.bus.asked == ["k3s-agent.service"]


def test_the_last_shutdown(node):
    (node.folder / STATE).write_text('{"startTime":"2023-11-14T22:00:00Z","endTime":"0001-01-01T00:00:00Z"}')

    assert node.look()["last_shutdown"]["finished"] is False
    assert "last_shutdown_unfinished" in node.codes()


def test_a_record_that_is_broken_is_a_problem_and_no_failure(node):
    (node.folder / STATE).write_text('{"startTime"')

    found = node.look()

    assert found["last_shutdown"] is None
    (problem,) = [item for item in found["problems"] if item["problem"] == "last_shutdown_unreadable"]
    assert problem["file"] == str(node.folder / STATE)


class TestLock:
    """A kubelet takes it some seconds after its start."""

    LOCK = Inhibitor("shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay", 0, 77)

    def waited(self, monkeypatch, age, *, taken_after=None, seconds="60s"):
        """Seconds that were waited for the lock, and whether it is there then."""
        clock = [1000.0]

        class LateBus(Bus):
            def logind(self):
                taken = taken_after is not None and clock[0] >= 1000.0 + taken_after
                return Logind("boot", False, (TestLock.LOCK,) if taken else ())

        def sleep(pause):
            clock[0] += pause

        monkeypatch.setattr(info.time, "sleep", sleep)
        monkeypatch.setattr(info.time, "time", lambda: clock[0])
        snapshot = Snapshot(
            kubelet=Kubelet("kubelet.service", 77, 1000.0 - age),
            settings=Settings({TOTAL: seconds}),
            effective=60.0,
            files=logind_rules.LogindFiles(),
            logind=LateBus().logind(),
        )
        found = info._with_lock(LateBus(), snapshot)
        assert dataclasses.replace(found, logind=snapshot.logind) == snapshot
        return clock[0] - 1000.0, found.delay_lock is not None

    def test_an_existing_lock_is_not_waited_for(self, monkeypatch):
        assert self.waited(monkeypatch, 1.0, taken_after=0) == (0.0, True)

    def test_the_lock_of_a_kubelet_that_has_just_started_is_waited_for(self, monkeypatch):
        assert self.waited(monkeypatch, 1.0, taken_after=4) == (4.0, True)

    def test_a_missing_lock_is_waited_for_only_as_long_as_it_may_take(self, monkeypatch):
        seconds, there = self.waited(monkeypatch, 10.0)

        assert 20.0 <= seconds <= 21.0
        assert not there

    def test_the_lock_of_a_kubelet_that_has_run_for_long_is_not_waited_for(self, monkeypatch):
        assert self.waited(monkeypatch, 31.0) == (0.0, False)

    def test_no_lock_is_waited_for_if_none_is_needed(self, monkeypatch):
        assert self.waited(monkeypatch, 1.0, seconds="0s") == (0.0, False)
