# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operation graceful_shutdown with a node in a directory, whose logind does as it is told, or does not."""

from __future__ import annotations

import errno
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind import runner as node_runner
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.bus import Service
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.inhibitor_rules import Inhibitor, Logind
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import (
    configure,
    kubelet_files,
    logind_files,
    whole_file,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.configure import graceful_shutdown
from lab.patience import PATIENCE

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
# A process that lives.
KUBELET = Inhibitor("shutdown", "kubelet", "needs time", "delay", 0, os.getpid())
BLOCK = replace(KUBELET, who="firmware", mode="block")


class Node:
    """Files of a node under a directory, its kubelet and its logind.

    Attributes:
        deaf: logind does not read its files.
        forgetful: It loses this lock when it does.
    """

    def __init__(self, root):
        self.root = root
        self.config, self.drop_ins = root / "kubelet/config.yaml", root / "kubelet.d"
        self.logind_files = root / "etc/systemd/logind.conf.d"
        self.memory, self.previous = root / "var/memory.json", root / "previous.json"
        self.config.parent.mkdir()
        self.config.write_text(f"{HEADER}shutdownGracePeriod: 10s # ten\n")
        os.utime(self.config, (1, 1))
        self.command = ["kubelet", f"--config={self.config}"]
        self.started = time.monotonic() + PATIENCE
        self.locks = [KUBELET, BLOCK]
        self.deaf, self.forgetful, self.preparing = False, None, False
        self.reloads = 0
        self.effective = 5.0

    # -- as NodeBus

    def service(self, _unit):
        return Service(0, 0.0, tuple(self.command), {}) if self.started is None else self._running()

    def _running(self):
        return Service(KUBELET.pid, self.started, tuple(self.command), {})

    def logind(self):
        return Logind("boot", self.preparing, tuple(self.locks))

    def systemd_version(self):
        return 252

    def inhibit_delay_max(self):
        return self.effective

    def reload_logind(self):
        self.reloads += 1
        if not self.deaf:
            self.effective = self.files().seconds
        if self.forgetful in self.locks:
            self.locks.remove(self.forgetful)

    # -- for tests

    def files(self, _version=252):
        found = _read(252, self.root)
        real = [replace(item, file=str(self.root) + item.file) for item in found.candidates]
        return replace(found, candidates=tuple(real))

    def run(self, *, check_mode=False, **params):
        asked = {"kubelet_unit": "kubelet", "state": "present", **params}

        def operation(context, options):
            context.__dict__["bus"] = self
            return graceful_shutdown(context, options)

        return node_runner.run_operation(operation, asked, check_mode=check_mode)

    def everything(self):
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and path != self.previous
        }


_read = logind_files.read


@pytest.fixture
def node(monkeypatch, tmp_path):
    found = Node(tmp_path)
    module = configure
    monkeypatch.setattr(module, "_LOGIND", str(found.logind_files))
    monkeypatch.setattr(module, "_KUBELETS_OWN", str(found.logind_files / "99-kubelet.conf"))
    monkeypatch.setattr(module, "_MEMORY", str(found.memory))
    monkeypatch.setattr(module, "_PREVIOUS", str(found.previous))
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.001)
    monkeypatch.setattr(module.logind_files, "read", found.files)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    # The process that stands for the kubelet has a command line of its own.
    monkeypatch.setattr(kubelet_files, "_command_line", lambda _pid: [])
    return found


def said(node):
    return {key: value for key, value in yaml.safe_load(node.config.read_text()).items() if key.startswith("shutdown")}


def test_kubelet_and_logind_are_configured_once_and_restored(node):
    before = node.everything()

    checked = node.run(check_mode=True, total=30, critical=10)
    assert node.everything() == before
    done, again = node.run(total=30, critical=10), node.run(total=30, critical=10)

    assert checked == done
    assert (done["changed"], done["restart_needed"], done["needed"]) == (True, True, 30)
    assert done["inhibit_delay_max"] == node.effective == 35
    assert [(Path(item["path"]).name, item["change"]) for item in done["files"]] == [
        ("zz-holdfast.conf", "created"),
        ("config.yaml", "changed"),
    ]
    assert done["diff"][1]["after"] == node.config.read_text()
    assert said(node) == {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"}
    assert (again["changed"], again["files"], again["diff"]) == (False, [], [])

    gone, again = node.run(state="absent"), node.run(state="absent")
    assert (gone["changed"], gone["restart_needed"], again["changed"]) == (True, True, False)
    assert node.everything() == before
    assert node.effective == 5
    assert not node.memory.parent.exists()


def test_off_takes_everything_away(node):
    node.run(total=30)
    done = node.run()

    assert (done["changed"], done["needed"]) == (True, 0)
    assert said(node) == {"shutdownGracePeriod": "0s"}
    assert list(node.logind_files.iterdir()) == []
    node.run(state="absent")
    assert said(node) == {"shutdownGracePeriod": "10s"}


def test_mode_and_owner_stay_and_so_does_a_link(node):
    real = node.root / "real.yaml"
    node.config.rename(real)
    node.config.symlink_to(real)
    real.chmod(0o640)

    node.run(total=30)

    assert node.config.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert said(node)["shutdownGracePeriod"] == "30s"
    assert [path.name for path in node.config.parent.iterdir()] == ["config.yaml"]


def test_what_was_before_is_on_disk_before_the_kubelets_files_change(node, monkeypatch):
    """They may be on different file systems, which a power cut leaves at different times."""
    done = []
    fsync, rename = os.fsync, os.replace

    def sync(descriptor):
        fsync(descriptor)
        done.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))

    def put(draft, path):
        rename(draft, path)
        done.append(("put", path))

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", put)
    node.run(total=30)

    between = done[done.index(("put", str(node.memory))) : done.index(("put", str(node.config)))]
    folder = node.memory.parent
    # The folder is new, so its own entry counts too.
    assert {("sync", str(folder)), ("sync", str(folder.parent))} <= set(between)


def test_a_file_system_that_can_not_sync_a_directory(node, monkeypatch):
    sync = os.fsync

    def fsync(descriptor):
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert node.run(total=30)["changed"]


class TestDropIns:
    @pytest.fixture(autouse=True)
    def drop_ins(self, node):
        node.drop_ins.mkdir()
        node.command.append(f"--config-dir={node.drop_ins}")

    def test_our_drop_in_is_read_last(self, node):
        (node.drop_ins / "zzz").mkdir()
        (node.drop_ins / "zzz/a.conf").write_text(f"{HEADER}shutdownGracePeriod: 3s\n")
        before = node.everything()

        done = node.run(by_priority=[{"priority": 0, "seconds": 7}])

        ours = node.drop_ins / "zzz_holdfast.conf"
        assert yaml.safe_load(ours.read_text()) == {
            **yaml.safe_load(HEADER),
            "shutdownGracePeriod": "0s",
            "shutdownGracePeriodCriticalPods": "0s",
            "shutdownGracePeriodByPodPriority": [{"priority": 0, "shutdownGracePeriodSeconds": 7}],
        }
        assert ours.stat().st_mode & 0o777 == 0o600
        assert done["restart_needed"]
        assert said(node) == {"shutdownGracePeriod": "10s"}
        node.run(state="absent")
        assert node.everything() == before

    def test_what_was_set_in_the_main_file_before_is_restored(self, node):
        argument = node.command.pop()
        node.run(total=30)
        node.command.append(argument)

        node.run(total=30)

        assert said(node) == {"shutdownGracePeriod": "10s"}
        assert (node.drop_ins / "zz-holdfast.conf").exists()

    def test_a_name_after_a_later_drop_in_is_used(self, node):
        node.run(total=30)
        (node.drop_ins / "zzz.conf").write_text(f"{HEADER}shutdownGracePeriod: 3s\n")

        node.run(total=30)

        assert sorted(path.name for path in node.drop_ins.iterdir()) == ["zzz.conf", "zzz_holdfast.conf"]

    @pytest.mark.parametrize("broken", ["shutdownGracePeriod: 3s\n", "- [\n"])
    def test_no_restart_into_what_the_kubelet_cannot_read(self, node, broken):
        (node.drop_ins / "a.conf").write_text(broken)
        before = node.everything()

        failed = node.run(total=30)

        assert failed["error"] == "refused"
        assert "a.conf" in failed["msg"]
        assert node.everything() == before

    def test_a_directory_that_the_kubelet_does_not_follow_is_refused(self, node):
        node.drop_ins.rmdir()
        node.drop_ins.symlink_to(node.config.parent)

        assert "is a link, which the kubelet does not follow" in node.run(total=30)["msg"]


class TestLogind:
    def test_a_name_after_the_last_drop_in_is_used(self, node):
        node.run(total=30)
        (node.logind_files / "zzz.conf").write_text("[Login]\nInhibitDelayMaxSec=3\n")
        node.reload_logind()
        assert node.effective == 3

        done = node.run(total=30)

        assert (done["changed"], done["restart_needed"]) == (True, False)
        assert node.effective == 35
        assert sorted(path.name for path in node.logind_files.iterdir()) == ["zzz.conf", "zzz_holdfast.conf"]

    def test_it_never_gives_less_than_others_want(self, node):
        node.logind_files.mkdir(parents=True)
        (node.logind_files / "50-updates.conf").write_text("[Login]\nInhibitDelayMaxSec=90\n")
        # What the kubelet wanted of it once is no wish of others.
        (node.logind_files / "99-kubelet.conf").write_text("[Login]\nInhibitDelayMaxSec=200\n")

        node.run(total=30)

        assert node.effective == 90

    def test_a_logind_that_has_not_read_its_files_is_reloaded(self, node):
        node.run(total=30)
        node.effective = 5.0

        done = node.run(total=30)

        assert (done["changed"], done["files"], node.effective) == (True, [], 35)
        assert not node.run(total=30)["changed"]

    def test_if_logind_does_not_reload_nothing_stays_changed(self, node):
        before = node.everything()
        node.deaf = True

        failed = node.run(total=30)

        assert failed["error"] == "timed_out"
        assert "is 5 s" in failed["msg"]
        assert "zz-holdfast.conf says 35 s" in failed["msg"]
        assert node.everything() == before

    def test_a_lost_lock_is_reported(self, node):
        node.forgetful = BLOCK

        failed = node.run(total=30)

        assert failed["locks"] == ["firmware"]
        assert said(node) == {"shutdownGracePeriod": "10s"}

    def test_a_directory_that_hides_our_drop_in_is_reported(self, node):
        (node.logind_files / "aa.conf").mkdir(parents=True)

        failed = node.run(total=30)

        assert "logind uses its default" in failed["msg"]
        assert said(node) == {"shutdownGracePeriod": "10s"}


class TestRestart:
    def test_not_if_the_kubelet_has_read_all(self, node):
        assert not node.run(total=10)["restart_needed"]

    def test_if_its_file_is_younger(self, node):
        node.started = time.monotonic() - 100
        os.utime(node.config)

        done = node.run(total=10)

        assert said(node) == {"shutdownGracePeriod": "10s"}
        assert done["restart_needed"]

    def test_if_it_has_no_lock(self, node):
        node.locks.remove(KUBELET)

        assert node.run(total=10)["restart_needed"]

    def test_not_if_it_does_not_run(self, node):
        node.started = None

        assert not node.run(total=10)["restart_needed"]


class TestPartOfAnotherProgram:
    """K3s writes its own drop-in after its process has started."""

    @pytest.fixture(autouse=True)
    def k3s(self, node):
        node.command = ["k3s", "agent"]
        node.drop_ins.mkdir()
        self.start(node)

    def start(self, node):
        # Files have coarser times than clocks.
        time.sleep(0.02)
        node.started = time.monotonic()
        time.sleep(0.02)
        (node.drop_ins / "00-k3s-defaults.conf").write_text(HEADER)

    def test_its_own_files_need_no_restart(self, node):
        folder = str(node.drop_ins)
        done = node.run(total=30, kubelet_config_dir=folder)
        self.start(node)

        again = node.run(total=30, kubelet_config_dir=folder)

        assert (done["restart_needed"], again["changed"], again["restart_needed"]) == (True, False, False)

    def test_our_drop_in_needs_one(self, node):
        folder = str(node.drop_ins)
        node.run(total=30, kubelet_config_dir=folder)
        node.previous.unlink()

        assert node.run(total=30, kubelet_config_dir=folder)["restart_needed"]


class TestPrevious:
    def test_the_last_change_is_undone(self, node):
        node.run(total=30)
        before, effective = node.everything(), node.effective
        node.run(by_priority=[{"priority": 0, "seconds": 60}])

        done, again = node.run(state="previous"), node.run(state="previous")

        assert (done["changed"], done["restart_needed"], again["changed"]) == (True, True, False)
        assert (node.everything(), node.effective) == (before, effective)
        node.run(state="absent")
        assert said(node) == {"shutdownGracePeriod": "10s"}

    def test_a_removal_is_undone(self, node):
        node.run(total=30)
        before = node.everything()
        node.run(state="absent")

        node.run(state="previous")

        assert node.everything() == before

    def test_in_a_change_that_was_killed_midway(self, node, monkeypatch):
        before = node.everything()
        write = whole_file.write

        def killed(path, text, mode=0o644):
            if path == str(node.config):
                raise KeyboardInterrupt
            write(path, text, mode)

        monkeypatch.setattr(whole_file, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            node.run(total=30)
        monkeypatch.setattr(whole_file, "write", write)

        node.run(total=30)
        assert said(node) == {"shutdownGracePeriod": "30s"}
        node.run(state="absent")
        assert node.everything() == before


class TestUnprovenChange:
    """A run ended after it had changed the files, and before the kubelet came back with them."""

    @pytest.mark.parametrize("params", [{"total": 60}, {"state": "absent"}])
    def test_the_next_run_restarts_the_kubelet(self, node, params):
        node.run(total=30)
        node.run(**params)
        node.started = None

        checked, done = node.run(check_mode=True, **params), node.run(**params)

        assert (done["changed"], done["restart_needed"]) == (False, True)
        assert checked == done
        node.started = time.monotonic() + PATIENCE
        assert not node.run(**params)["restart_needed"]

    def test_the_earlier_files_are_restored_if_it_does_not_start(self, node):
        before = node.everything()
        node.started = None
        node.run(total=30)
        node.run(total=30)

        done = node.run(state="previous")

        assert (done["changed"], done["restart_needed"]) == (True, True)
        assert (node.everything(), node.effective, node.previous.exists()) == (before, 5, False)

    def test_what_it_left_is_nothing_to_return_to(self, node):
        before = node.everything()
        node.started = None
        node.run(total=30)
        node.run(by_priority=[{"priority": 0, "seconds": 60}])

        node.run(state="previous")

        assert (node.everything(), node.effective) == (before, 5)

    def test_the_clock_does_not_matter(self, node, monkeypatch):
        node.started = time.monotonic() - 100
        node.run(total=30)
        monkeypatch.setattr(configure.time, "time", lambda now=time.time: now() - 3600)

        assert node.run(total=30)["restart_needed"]

    @pytest.mark.parametrize("earlier", [True, False])
    def test_a_change_that_logind_refuses_is_none(self, node, earlier):
        node.started = None
        if earlier:
            node.run(total=30)
        backup = earlier and node.previous.read_text()
        node.deaf = True

        assert node.run(total=60)["failed"]

        assert (node.previous.exists() and node.previous.read_text()) == backup

    def test_a_change_of_logind_alone_needs_no_restart(self, node):
        node.started = None
        done, again = node.run(total=10), node.run(total=10)

        assert (done["changed"], again["changed"], again["restart_needed"]) == (True, False, False)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"total": -1}, "must be a whole number of seconds of 0 or more"),
        ({"total": 5, "critical": 6}, "is longer than total"),
        ({"total": 5, "by_priority": [{"priority": 0, "seconds": 5}]}, "can't be given together"),
        ({"by_priority": [{"priority": 0, "seconds": 5}, {"priority": 0, "seconds": 6}]}, "twice"),
        ({"total": 5, "kubelet_config": "/nowhere.yaml"}, "no configuration file /nowhere.yaml"),
    ],
)
def test_what_cannot_work_is_refused_with_nothing_changed(node, params, words):
    before = node.everything()

    for check_mode in (True, False):
        failed = node.run(check_mode=check_mode, **params)
        assert failed["failed"]
        assert words in failed["msg"]
    assert node.everything() == before
    assert node.reloads == 0


def test_ansibles_own_numbers_take_no_longer_than_others(node):
    class Tagged(int):
        """As a number of a playbook is, which knows where it stands."""

        compared = 0
        __hash__ = int.__hash__

        def __eq__(self, other):
            Tagged.compared += 1
            assert Tagged.compared < 10_000, "searched number by number"
            return int(self) == other

    assert node.run(by_priority=[{"priority": Tagged(7), "seconds": Tagged(5)}])["needed"] == 5


def test_a_kubelet_without_any_file_is_refused(node):
    node.command = ["kubelet"]

    assert "has no configuration file" in node.run(total=5)["msg"]


def test_nothing_is_changed_in_a_shutdown(node):
    node.preparing = True

    assert node.run(total=5)["preparing_for_shutdown"]
    assert node.reloads == 0


def test_only_root_may(node, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1)

    assert "Use become" in node.run(total=5)["msg"]


@pytest.mark.parametrize("text", ["{", "[]", '{"before": {}}', json.dumps({"before": 1, "ours": {}, "made": []})])
def test_an_invalid_record_is_not_ignored(node, text):
    node.memory.parent.mkdir()
    node.memory.write_text(text)

    assert "memory.json, which records" in node.run(total=5)["msg"]


class TestWholeFile:
    def test_a_file_that_is_not_text_is_refused(self, tmp_path):
        (tmp_path / "a").write_bytes(b"\xff")

        with pytest.raises(HoldfastError, match="not text in UTF-8"):
            whole_file.read(str(tmp_path / "a"))

    def test_a_file_that_cannot_be_written_is_left(self, tmp_path):
        (tmp_path / "a").write_text("x")

        with pytest.raises(HoldfastError, match="can't be written"):
            whole_file.write(str(tmp_path / "a/b"), "y")
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_line_ends_stay(self, tmp_path):
        whole_file.write(str(tmp_path / "a"), "x\r\ny\n")

        assert (tmp_path / "a").read_bytes() == b"x\r\ny\n"
        assert whole_file.read(str(tmp_path / "a")) == "x\r\ny\n"
