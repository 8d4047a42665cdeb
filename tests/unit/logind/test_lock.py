# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operations on locks with a node that does as it is told, or does not."""

from __future__ import annotations

import multiprocessing
import os
import sys

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import MissingLibrary
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind import bus as bus_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind import lock as lock_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind import runner as node_runner
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.bus import BusFailure, NodeBus
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.inhibitor_rules import Inhibitor, Logind
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.lock import (
    inhibitor_lock,
    inhibitor_lock_info,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.lock_rules import Slot
from lab.patience import PATIENCE

FIRST, SECOND = "holdfast-lock-backup.service", "holdfast-lock-backup:2.service"
KUBELET = Inhibitor("shutdown", "kubelet", "needs time", "delay", 0, 1)


class Bus:
    """A node's systemd and logind.

    Attributes:
        late: How many times more logind is asked before it lists what is started, and forgets what is stopped.
        acts: What was done, in order.
    """

    def __init__(self, late=0):
        self.late = late
        self.acts = []
        self.units = {}
        self.preparing = False
        self.accepts = True
        self._pending = []

    def _settle(self):
        for item in list(self._pending):
            item[0] -= 1
            if item[0] < 0:
                self._pending.remove(item)
                item[1]()

    def logind(self):
        locks = [lock for lock in self.units.values() if lock]
        return Logind("boot", self.preparing, (KUBELET, *locks))

    def systemd_version(self):
        return 252

    def inhibit_delay_max(self):
        return 5.0

    def unit_of(self, pid):
        return (
            "kubelet.service"
            if pid == KUBELET.pid
            else next((unit for unit, lock in self.units.items() if lock and lock.pid == pid), None)
        )

    def slot(self, unit):
        self._settle()
        if unit not in self.units:
            return Slot(unit)
        return Slot(unit, ours=True, lock=self.units[unit], state="loaded")

    def try_lock(self, lock):
        self.acts.append(("try", lock.why))
        if not self.accepts:
            raise BusFailure("logind refuses", "org.freedesktop.login1.OperationInProgress")

    def start(self, unit, lock):
        assert unit not in self.units
        self.acts.append(("start", unit))
        self.units[unit] = None
        found = Inhibitor(":".join(lock.what), lock.name, lock.why, lock.mode, 0, 100 + len(self.acts))

        def list_it():
            self.acts.append(("listed", unit))
            self.units[unit] = found

        self._pending.append([self.late, list_it])

    def stop(self, unit):
        self.acts.append(("stop", unit))
        self._pending.append([self.late, lambda: self.units.pop(unit, None)])


@pytest.fixture(autouse=True)
def node(monkeypatch, tmp_path):
    monkeypatch.setattr(lock_module, "_TURN", str(tmp_path / "turn"))
    monkeypatch.setattr(lock_module, "_PATIENCE", float(PATIENCE))
    monkeypatch.setattr(lock_module, "_LOOK_EVERY", 0.001)
    monkeypatch.setattr("os.geteuid", lambda: 0)


def context(bus, *, check_mode=False):
    found = node_runner.Context(check_mode)
    found.__dict__["bus"] = bus
    return found


def run(bus, *, check_mode=False, **params):
    asked = {"name": "backup", "what": ["shutdown"], "why": "saves", "mode": "block", "state": "present", **params}

    def operation(_context, options):
        return inhibitor_lock(context(bus, check_mode=check_mode), options)

    return node_runner.run_operation(operation, asked, check_mode=check_mode)


@pytest.mark.parametrize("late", [0, 5])
class TestPresent:
    def test_taken_once(self, late):
        bus = Bus(late)
        taken = run(bus)

        assert (taken["changed"], taken["unit"]) == (True, FIRST)
        assert {"who": "backup", "why": "saves", "what": ["shutdown"], "mode": "block"}.items() <= taken["lock"].items()
        assert bus.acts == [("try", "saves"), ("start", FIRST), ("listed", FIRST)]
        again = run(bus)
        assert (again["changed"], again["lock"], len(bus.acts)) == (False, taken["lock"], 3)
        assert again["diff"]["before"] == again["diff"]["after"] == taken["diff"]["after"]

    def test_the_new_one_is_listed_before_the_old_one_goes(self, late):
        bus = Bus(late)
        run(bus)
        bus.acts.clear()
        replaced = run(bus, why="saves more")

        assert bus.acts == [("try", "saves more"), ("start", SECOND), ("listed", SECOND), ("stop", FIRST)]
        assert list(bus.units) == [SECOND]
        assert replaced["unit"] == replaced["lock"]["unit"] == SECOND
        assert [item["why"] for item in replaced["diff"]["before"]["locks"]] == ["saves"]
        assert [item["why"] for item in replaced["diff"]["after"]["locks"]] == ["saves more"]
        assert run(bus, mode="delay")["unit"] == FIRST

    def test_the_lock_is_released(self, late):
        bus = Bus(late)
        run(bus)
        gone = run(bus, state="absent")

        assert (gone["changed"], gone["lock"], gone["unit"], bus.units) == (True, None, None, {})
        again = run(bus, state="absent")
        assert (again["changed"], again["lock"], bus.acts[-1]) == (False, None, ("stop", FIRST))


def test_check_mode_looks_and_does_nothing():
    bus = Bus()
    predicted = run(bus, check_mode=True)

    assert (predicted["changed"], predicted["unit"], predicted["lock"]["pid"]) == (True, FIRST, None)
    taken = run(bus)
    assert predicted["diff"] == taken["diff"]
    bus.acts.clear()
    assert not run(bus, check_mode=True)["changed"]
    assert run(bus, check_mode=True)["lock"] == taken["lock"]
    assert run(bus, check_mode=True, why="more")["unit"] == SECOND
    gone = run(bus, check_mode=True, state="absent")
    assert (gone["changed"], gone["lock"]) == (True, None)
    assert not bus.acts
    assert run(bus, check_mode=True, mode="delay", what=["idle"])["error"] == "invalid_input"


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_shutdown_in_progress(check_mode):
    bus = Bus()
    run(bus)
    bus.preparing = True
    for why in ("saves", "more"):
        refused = run(bus, why=why, check_mode=check_mode)
        assert (refused["error"], refused["preparing_for_shutdown"]) == ("refused", True)
        assert "in progress" in refused["msg"]
    assert list(bus.units) == [FIRST]
    assert run(bus, state="absent", check_mode=check_mode)["changed"]


def test_what_logind_refuses_is_not_started():
    bus = Bus()
    bus.accepts = False
    refused = run(bus)

    assert (refused["error"], refused["msg"]) == ("dbus", "logind refuses")
    assert bus.acts == [("try", "saves")]


def test_a_lock_that_is_never_listed_is_not_a_success(monkeypatch):
    monkeypatch.setattr(lock_module, "_PATIENCE", 0.05)
    bus = Bus()
    run(bus)
    bus.late = 10_000
    stop, bus.stop = bus.stop, bus.units.pop
    failed = run(bus, why="more")

    assert (failed["error"], failed["unit"]) == ("timed_out", SECOND)
    assert "journalctl" in failed["msg"]
    assert list(bus.units) == [FIRST], "the old one stays"
    bus.stop = stop
    failed = run(bus, state="absent")
    assert (failed["error"], failed["unit"]) == ("timed_out", FIRST)


def test_root_only(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    bus = Bus()

    assert "become" in run(bus)["msg"]
    assert not bus.acts


def _hold_turn(path, ready, end):
    lock_module._TURN = path
    with lock_module._turn():
        ready.set()
        end.wait(PATIENCE)


def test_one_after_the_other(monkeypatch):
    monkeypatch.setattr(lock_module, "_PATIENCE", 0.1)
    spawned = multiprocessing.get_context("fork")
    ready, end = spawned.Event(), spawned.Event()
    other = spawned.Process(target=_hold_turn, args=(lock_module._TURN, ready, end))
    other.start()
    try:
        assert ready.wait(PATIENCE)
        bus = Bus()
        waiting = run(bus)
        assert (waiting["error"], bus.acts) == ("timed_out", [])
        assert "Another task" in waiting["msg"]
    finally:
        end.set()
        other.join()
    assert run(Bus())["changed"]


def test_info():
    bus = Bus()
    run(bus)
    found = inhibitor_lock_info(context(bus), {})

    assert [(item["who"], item["what"], item["unit"]) for item in found["locks"]] == [
        ("kubelet", ["shutdown"], "kubelet.service"),
        ("backup", ["shutdown"], FIRST),
    ]
    assert {key: value for key, value in found.items() if key != "locks"} == {
        "changed": False,
        "inhibit_delay_max": 5.0,
        "preparing_for_shutdown": False,
        "shutdown_blocked": True,
        "systemd_version": 252,
    }
    run(bus, state="absent")
    assert not inhibitor_lock_info(context(bus), {})["shutdown_blocked"]


class TestPython:
    def test_without_dbus_the_package_is_named(self, monkeypatch):
        monkeypatch.setattr(bus_module, "IMPORT_ERROR", "Traceback")

        with pytest.raises(MissingLibrary, match="python3-dbus") as missing:
            NodeBus()
        for word in (sys.executable, "apt", "dnf", "ansible_python_interpreter"):
            assert word in missing.value.message
        failed = node_runner.run_operation(inhibitor_lock_info, {}, check_mode=False)
        assert (failed["failed"], failed["error"]) == (True, "missing_library")

    def test_another_python_is_used_if_that_one_has_it(self, monkeypatch):
        used = []
        monkeypatch.setattr(node_runner, "respawn_module", used.append)
        monkeypatch.setattr(node_runner, "probe_interpreters_for_module", lambda pythons, module: pythons[0])
        for error, respawned, expected in (
            ("", False, []),
            ("Traceback", True, []),
            ("Traceback", False, ["/usr/bin/python3"]),
        ):
            monkeypatch.setattr(node_runner, "IMPORT_ERROR", error)
            monkeypatch.setattr(node_runner, "has_respawned", lambda value=respawned: value)
            node_runner.go_where_dbus_is()
            assert used == expected


def test_each_lock_of_a_process_has_its_own_time(monkeypatch, tmp_path):
    for second, why in enumerate(("shop/app", "shop/b")):
        note = tmp_path / str(second)
        note.write_text(f"PID=7\nWHO=holdfast\nWHY={why}\n")
        os.utime(note, (1700000000 + second, 1700000000 + second))
    (tmp_path / "other").mkdir()
    answers = {
        "Get": False,
        "ListInhibitors": [("shutdown", "holdfast", why, "block", 0, 7) for why in ("shop/app", "shop/b", "new")],
    }
    monkeypatch.setattr(bus_module, "_NOTES", tmp_path)
    monkeypatch.setattr(NodeBus, "_call", lambda _self, _where, method, *_arguments: answers[method])

    found = NodeBus.__new__(NodeBus).logind().inhibitors

    assert [item.since for item in found] == ["2023-11-14T22:13:20Z", "2023-11-14T22:13:21Z", None]


def test_results_are_plain():
    taken = run(Bus())

    assert {type(value) for value in taken["lock"].values()} <= {str, int, list, type(None)}
