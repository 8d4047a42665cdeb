# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the agent keeps on disk, and with PID 1."""

from __future__ import annotations

import array
import importlib
import json
import os
import socket
import sys
import threading
import types

import pytest

from holdfast_agent import notify
from holdfast_agent.holds import Hold, hold_of
from holdfast_agent.notify import Supervisor, inherited
from holdfast_agent.store import State, write
from lab.patience import PATIENCE

ONE = Hold("default", "a,b ü", "2026-01-02T03:04:05.000000Z")
TWO = Hold("apps", "c", "2026-01-01T03:04:05.000000Z")


@pytest.fixture
def state(tmp_path):
    return State(tmp_path, tmp_path)


def test_holds_come_back_oldest_first(state):
    assert state.holds() == ()
    state.write_holds([ONE, TWO])
    assert state.holds() == (TWO, ONE)


def test_masks_and_alerts_come_back(state, tmp_path):
    state.write_masks({"b", "a"})
    state.write_alerts({"x"})
    assert (state.masks(), state.alerts()) == ({"a", "b"}, {"x"})
    assert state.clear() == [str(tmp_path / "alerts.json"), str(tmp_path / "masks.json")]
    assert state.clear() == []


@pytest.mark.parametrize("content", ["", "{", "{}", '[{"namespace": "a"}, 1, null]', '"x"'])
def test_a_damaged_file_stops_nothing(state, tmp_path, content):
    (tmp_path / "holds.json").write_text(content)
    assert state.holds() == ()


def test_what_can_not_be_written_leaves_what_was(state, tmp_path, monkeypatch):
    state.write_holds([ONE])

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        state.write_holds([ONE, TWO])
    assert state.holds() == (ONE,)


def test_only_root_reads_it(tmp_path):
    write(tmp_path / "x", "y")
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600


class Pid1(threading.Thread):
    """Takes messages as PID 1 does: descriptors that it does not keep are closed."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.messages = []
        self.kept = []

    def run(self):
        while True:
            message, ancillary, _flags, _address = self.socket.recvmsg(4096, socket.CMSG_SPACE(64))
            text = message.decode()
            self.messages.append(text)
            for _level, _kind, data in ancillary:
                descriptors = array.array("i")
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
                for descriptor in descriptors:
                    if text.startswith("FDSTORE=1"):
                        self.kept.append(descriptor)
                    else:
                        os.close(descriptor)
            if text == "END":
                return


@pytest.fixture
def pid1(tmp_path, monkeypatch):
    monkeypatch.setattr(notify, "_BARRIER_SECONDS", PATIENCE)
    found = Pid1(tmp_path / "notify")
    found.start()
    yield found
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"END", str(tmp_path / "notify"))
    found.join(PATIENCE)
    found.socket.close()


def test_descriptors_are_kept_until_they_are_forgotten(pid1, tmp_path):
    supervisor = Supervisor({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "60000000"})
    reading, writing = os.pipe()
    supervisor.keep("hold-1", writing)
    supervisor.barrier()
    os.close(writing)
    os.write(pid1.kept[0], b"x")
    assert os.read(reading, 1) == b"x"
    supervisor.forget("hold-1")
    supervisor.ready()
    supervisor.status("two\nlines")
    supervisor.barrier()
    assert pid1.messages == [
        "FDSTORE=1\nFDPOLL=0\nFDNAME=hold-1",
        "BARRIER=1",
        "FDSTOREREMOVE=1\nFDNAME=hold-1",
        "READY=1",
        "STATUS=two lines",
        "BARRIER=1",
    ]
    assert supervisor.watchdog_seconds == 60
    os.close(reading)
    os.close(pid1.kept[0])


def test_without_a_supervisor_nothing_is_sent():
    supervisor = Supervisor({})
    supervisor.ready()
    supervisor.barrier()
    assert supervisor.watchdog_seconds is None


def test_a_status_of_any_length_and_content_arrives(pid1, tmp_path):
    supervisor = Supervisor({"NOTIFY_SOCKET": str(tmp_path / "notify")})
    supervisor.status("ü" * 220_000 + "\ud800")
    supervisor.barrier()
    status = pid1.messages[0]
    assert status.startswith("STATUS=üü")
    assert len(status.encode()) < 4096


def test_pid_1_that_does_not_listen_ends_nothing(tmp_path):
    supervisor = Supervisor({"NOTIFY_SOCKET": str(tmp_path / "nobody")})
    assert not supervisor.ready()
    supervisor.status("fine")
    supervisor.alive()
    supervisor.keep("hold-1", 1)
    supervisor.forget("hold-1")
    supervisor.stopping()


@pytest.fixture
def _glib(monkeypatch):
    """The nodes have GLib, the controller need not. Modules that import this one are forgotten after the test."""
    before = set(sys.modules)
    found = types.SimpleNamespace(timeout_add=lambda *_arguments: 1, source_remove=lambda _source: None)
    monkeypatch.setitem(sys.modules, "gi.repository", types.SimpleNamespace(GLib=found))
    monkeypatch.setitem(sys.modules, "gi", types.ModuleType("gi"))
    yield
    for name in set(sys.modules) - before:
        if name.startswith("holdfast_agent."):
            del sys.modules[name]


@pytest.mark.usefixtures("_glib")
def test_a_report_that_fails_ends_nothing(caplog):
    loop = importlib.import_module("holdfast_agent.loop")
    loop.report(lambda: {}["no"])
    assert "A report failed: KeyError" in caplog.text


def test_a_long_holder_on_disk_is_cut_as_the_api_s_is(state, tmp_path):
    item = {"namespace": "default", "holder": "x" * 220_000, "acquired": ONE.acquired}
    (tmp_path / "holds.json").write_text(json.dumps([item]))
    lease = {
        "metadata": {"namespace": "default"},
        "spec": {"holderIdentity": item["holder"], "acquireTime": ONE.acquired},
    }
    assert state.holds() == (hold_of(lease),)
    state.write_holds(state.holds())
    assert state.holds() == (hold_of(lease),)


def test_what_pid_1_kept_is_for_this_process_alone():
    assert inherited({"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "hold-1"}) == []
    environment = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "nonsense"}
    assert inherited(environment) == []
    assert environment == {}


@pytest.mark.usefixtures("_glib")
def test_metrics_that_can_not_be_written_are_reported_once(tmp_path, caplog):
    TextFile = importlib.import_module("holdfast_agent.textfile").TextFile  # noqa: N806 - a class
    folder = tmp_path / "collector"
    written = TextFile(str(folder / "holdfast_agent.prom"), lambda: "text")
    caplog.set_level("DEBUG")
    for _try in range(3):
        written.write(3600)
    folder.mkdir()
    written.write(3600)
    (folder / "holdfast_agent.prom").unlink()
    folder.rmdir()
    written.write(3600)

    assert [record.levelname for record in caplog.records] == ["ERROR", "DEBUG", "DEBUG", "ERROR"]
