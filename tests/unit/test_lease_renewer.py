# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows the controller's process: the lease renewer of a run, and the workers."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.holdfast.kubernetes.plugins.action import node_claim
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_begin
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _lease_renewer
from lab.processes import start_time

PATIENCE = 600
PARENT_DEATH = "ansible_collections.holdfast.kubernetes.plugins.plugin_utils._parent_death"


def refused(_pid):
    raise PermissionError(errno.EPERM, "refused")


@pytest.fixture
def sleeper():
    """A process of one's own to stop and to kill."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def has_ended(pid):
    return start_time(pid) is None


@pytest.mark.parametrize("by", ["pidfd", "kill", "kill, because pidfd is refused"])
class TestEnd:
    @pytest.fixture(autouse=True)
    def _way(self, by, monkeypatch):
        if by == "kill":
            monkeypatch.delattr(os, "pidfd_open")
        elif by != "pidfd":
            monkeypatch.setattr(os, "pidfd_open", refused)

    def test_a_live_process_is_waited_for(self, sleeper):
        started = time.monotonic()
        assert _lease_renewer.Process(sleeper.pid).ended_within(0.2) is False
        assert time.monotonic() - started >= 0.2

    def test_one_that_is_gone(self, sleeper):
        sleeper.kill()
        sleeper.wait()

        assert _lease_renewer.Process(sleeper.pid).ended_within(0.2) is True


def test_an_end_is_noticed_at_once(sleeper):
    sleeper.kill()

    assert _lease_renewer.Process(sleeper.pid).ended_within(PATIENCE) is True


def test_a_process_that_gets_the_same_id_later_is_another(sleeper, monkeypatch):
    opened = []
    found = os.pidfd_open
    monkeypatch.setattr(os, "pidfd_open", lambda pid: opened.append(pid) or found(pid))
    process = _lease_renewer.Process(sleeper.pid)
    for _round in range(3):
        assert not process.ended_within(0)
    assert opened == [sleeper.pid]
    sleeper.kill()
    sleeper.wait()
    # By now any process may have its id.
    assert process.ended_within(0)


def test_a_process_that_is_stopped_and_continued(sleeper):
    assert not _lease_renewer._stopped(sleeper.pid)
    sleeper.send_signal(signal.SIGSTOP)
    until(lambda: _lease_renewer._stopped(sleeper.pid), "it is not seen to be stopped")
    sleeper.send_signal(signal.SIGCONT)
    until(lambda: not _lease_renewer._stopped(sleeper.pid), "it is not seen to go on")


def test_a_process_that_is_gone_is_not_stopped(sleeper):
    sleeper.kill()
    sleeper.wait()

    assert not _lease_renewer._stopped(sleeper.pid)


def test_a_name_with_a_parenthesis_hides_no_state(tmp_path):
    program = tmp_path / "a) T"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "600"]) as process:
        until(lambda: "a) T" in Path(f"/proc/{process.pid}/comm").read_text(), "it does not start")
        assert not _lease_renewer._stopped(process.pid)
        process.kill()


class Kept:
    """The renewer's own loop, with what it sees of the controller and the API server told from outside."""

    def __init__(self, monkeypatch, rounds, *, lasts=False):
        self.touched = []
        self.rounds = iter(rounds)
        self.round = None
        order = {"options": {"host": "https://api"}, "run": "4711", "pid": 42, "alertmanager": None}
        order["lasts"] = lasts
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(order).encode())))
        monkeypatch.setattr(_lease_renewer, "Cluster", lambda options: options)
        monkeypatch.setattr(_lease_renewer, "Process", self._process)
        monkeypatch.setattr(_lease_renewer, "_stopped", lambda pid: self.round == "stopped")
        monkeypatch.setattr(_lease_renewer.runs, "touch", self._touch)
        _lease_renewer.main()

    def _process(self, pid):
        assert pid == 42
        return SimpleNamespace(ended_within=self._ended_within)

    def _ended_within(self, seconds):
        assert seconds == (
            _lease_renewer.runs.RENEW_AGAIN if self.round == "api away" else _lease_renewer.runs.RENEW_EVERY
        )
        self.round = next(self.rounds)
        return self.round == "ended"

    def _touch(self, cluster, run, *, patient):
        assert (cluster, patient) == ({"host": "https://api"}, False)
        self.touched.append((run, self.round))
        if self.round == "api away":
            raise Unreachable("away")
        if self.round == "lease gone":
            raise NotFound("gone")


def test_renews_until_the_controller_ends(monkeypatch):
    assert Kept(monkeypatch, ["works", "works", "ended"]).touched == [("4711", "works")] * 2


def test_is_silent_while_the_controller_is_stopped(monkeypatch):
    assert Kept(monkeypatch, ["works", "stopped", "stopped", "works", "ended"]).touched == [("4711", "works")] * 2


def test_an_api_that_is_away_is_asked_again(monkeypatch):
    kept = Kept(monkeypatch, ["api away", "works", "ended"])

    assert kept.touched == [("4711", "api away"), ("4711", "works")]


def test_ends_when_the_lease_stays_missing(monkeypatch):
    assert Kept(monkeypatch, ["works", *["lease gone"] * 2]).touched[-1] == ("4711", "lease gone")


def test_a_run_that_lasts_is_kept_however_long_its_lease_is_missing(monkeypatch):
    rounds = ["works", *["lease gone"] * 100, "works", "ended"]
    assert Kept(monkeypatch, rounds, lasts=True).touched[-1] == ("4711", "works")


def test_the_run_of_a_rolling_reboot_lasts():
    assert reboot_begin.RUN_LASTS


def test_renews_a_lease_that_the_run_has_created_again(monkeypatch):
    rounds = ["works", "lease gone", "works", "lease gone", "works", "ended"]
    assert len(Kept(monkeypatch, rounds).touched) == 5


def test_follows_the_parent_of_its_worker_and_shows_no_secret(monkeypatch):
    seen = {}

    class Process:
        def __init__(self, command, **options):
            seen.update(options, command=command)
            self.stdin = io.BytesIO()
            self.stdin.close = lambda: seen.update(order=json.loads(self.stdin.getvalue()))

    monkeypatch.setattr(subprocess, "Popen", Process)
    _lease_renewer.start({"host": "https://api", "api_key": "s3cr3t"}, "4711", {"token": "s3cr3t"})

    assert seen["order"] == {
        "options": {"host": "https://api", "api_key": "s3cr3t"},
        "run": "4711",
        "pid": os.getppid(),
        "alertmanager": {"token": "s3cr3t"},
        "lasts": False,
    }
    assert "s3cr3t" not in " ".join(seen["command"])
    assert "s3cr3t" not in " ".join(seen["env"].values())
    assert seen["stdout"] == seen["stderr"] == subprocess.DEVNULL


def test_finds_the_collection_as_it_was_found():
    (found,) = _lease_renewer._search_path()

    assert (Path(found) / "ansible_collections/holdfast/kubernetes/plugins/plugin_utils/_lease_renewer.py").is_file()


# The worker says its id and then waits for nothing in particular, as one does that waits for a slot.
CONTROLLER = f"""
import os, sys, time
from {PARENT_DEATH} import end_with_parent
ready, told = os.pipe()
worker = os.fork()
if not worker:
    end_with_parent()
    os.write(told, b"x")
    time.sleep(600)
os.read(ready, 1)
print(worker, flush=True)
time.sleep(600)
"""


def test_a_worker_ends_with_its_controller():
    path = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen([sys.executable, "-c", CONTROLLER], stdout=subprocess.PIPE, env=environment) as controller:
        worker = int(controller.stdout.readline())
        assert not has_ended(worker)
        controller.kill()
        until(lambda: has_ended(worker), "the worker lives on")


LATE = f"""
import os, sys
from {PARENT_DEATH} import end_with_parent
parents = iter([{{first}}, {{second}}])
os.getppid = lambda: next(parents)
end_with_parent()
print("continues", flush=True)
"""


@pytest.mark.parametrize(("first", "second", "code"), [(7, 7, 0), (7, 1, 1)])
def test_a_controller_that_ended_before_the_kernel_was_asked_for_a_signal(first, second, code):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    program = LATE.format(first=first, second=second)
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )

    assert done.returncode == code, done.stderr
    assert ("continues" in done.stdout) is (code == 0)


# As Ansible makes its workers; this one is slow, and begins with its task when its controller is gone already.
SLOW = f"""
import multiprocessing, os, sys, time
from {PARENT_DEATH} import end_with_parent

def work(made_by):
    print(os.getpid(), flush=True)
    while os.getppid() == made_by:
        time.sleep(0.01)
    end_with_parent()
    print("works on", flush=True)

if __name__ == "__main__":
    multiprocessing.get_context("fork").Process(target=work, args=(os.getpid(),)).start()
    time.sleep(600)
"""


def test_a_worker_whose_controller_ended_before_its_task_started():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, env=environment) as controller:
        worker = int(controller.stdout.readline())
        controller.kill()
        until(lambda: has_ended(worker), "the worker lives on")
        # The process that adopted it is not its controller.
        assert controller.stdout.read() == b""


@pytest.mark.parametrize(("state", "kept"), [("present", ["4711"]), ("absent", [])])
def test_only_a_claim_that_is_taken_is_renewed(monkeypatch, state, kept):
    started = []
    monkeypatch.setattr(_lease_renewer, "start", lambda _options, run, _alertmanager, *, lasts: started.append(run))
    action = node_claim.ActionModule.__new__(node_claim.ActionModule)
    action._keep_run({"keep": True, "state": state, "run": "4711"}, {"claim": {"run": "another"}})

    assert started == kept
