# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a kubelet has its configuration, and what it reads there."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import MissingLibrary
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.bus import Service
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import kubelet_files, kubelet_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.grace_rules import (
    BY_PRIORITY,
    CRITICAL,
    TOTAL,
)

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


class Files:
    def __init__(self, path):
        self.path = path
        self.config = str(path / "config.yaml")
        self.folder = path / "kubelet.conf.d"

    def put(self, name, text, head=HEAD):
        path = self.folder / name if name.endswith(".conf") else self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + text)
        return str(path)

    def read(self):
        return kubelet_files.read_settings(self.config, str(self.folder) if os.path.lexists(self.folder) else "")


@pytest.fixture
def files(tmp_path):
    found = Files(tmp_path)
    found.put("config.yaml", "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\nmaxPods: 11\n")
    return found


class TestPlaces:
    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (["--config", "/a"], {"config": "/a"}),
            (
                ["--config=/a", "--config-dir=/b", "--root-dir=/c"],
                {"config": "/a", "config_dir": "/b", "root_dir": "/c"},
            ),
            (["--config=/a", "--config=/b"], {"config": "/b"}),
            (["--config=a/b"], {"config": "/run/x/a/b"}),
            (["--config-dir=/b/"], {"config_dir": "/b/"}),
            (["--config="], {"config": ""}),
            (["--config"], {"config": ""}),
            (["--kubeconfig=/a", "--v=2"], {}),
        ],
    )
    def test_finds_the_paths(self, words, found):
        assert kubelet_rules.places(["kubelet", *words], "/run/x") == found

    def test_flags_of_another_program_are_others(self):
        assert kubelet_rules.places(["/usr/local/bin/k3s", "agent", "--config", "/etc/rancher/k3s/config.yaml"]) == {}

    def test_variables_of_a_unit(self):
        command = ["kubelet", "$ARGS", "--root-dir=${ROOT}/kubelet", "$NONE", "${NONE}x", "a$ROOT"]
        environment = {"ARGS": "--config=/a --v=2", "ROOT": "/srv"}

        assert kubelet_rules.expand(command, environment) == [
            "kubelet",
            "--config=/a",
            "--v=2",
            "--root-dir=/srv/kubelet",
            "x",
            "a$ROOT",
        ]


class TestReadSettings:
    def test_main_file_alone(self, files):
        found = files.read()

        assert found.values == {TOTAL: "30s", CRITICAL: "10s"}
        assert found.set_by == {TOTAL: files.config, CRITICAL: files.config}
        assert (found.drop_ins, found.troubles) == ((), ())

    def test_the_last_drop_in_wins(self, files):
        first = files.put("10-a.conf", "shutdownGracePeriod: 40s\n")
        last = files.put("20-b.conf", "shutdownGracePeriod: 50s\n")

        found = files.read()

        assert found.values == {TOTAL: "50s", CRITICAL: "10s"}
        assert found.set_by == {TOTAL: last, CRITICAL: files.config}
        assert found.drop_ins == (first, last)

    def test_null_takes_a_setting_away(self, files):
        files.put("a.conf", f"{TOTAL}: null\n{CRITICAL}: null\n{BY_PRIORITY}: [{{priority: 0}}]\n")

        found = files.read()

        assert found.values == {BY_PRIORITY: [{"priority": 0}]}
        assert list(found.set_by) == [BY_PRIORITY]

    def test_null_in_the_main_file_is_no_duration(self, files):
        files.put("config.yaml", f"{TOTAL}: null\n{BY_PRIORITY}: null\n")

        found = files.read()

        assert found.values == {}
        assert found.troubles == ((files.config, f"sets {TOTAL} to null"),)

    def test_goes_into_subdirectories_and_follows_no_link_to_one(self, files):
        inner = files.put("b/z.conf", "shutdownGracePeriod: 40s\n")
        outer = files.put("c.conf", "maxPods: 5\n")
        files.put("elsewhere/x.conf", "shutdownGracePeriod: 50s\n")
        (files.folder / "elsewhere").rename(files.path / "elsewhere")
        (files.folder / "d").symlink_to(files.path / "elsewhere")

        found = files.read()

        assert found.drop_ins == (inner, outer)
        assert found.values[TOTAL] == "40s"

    def test_other_names_are_not_read(self, files):
        files.put("a.conf", "")
        for name in ("b.yaml", "c.conf.bak"):
            (files.folder / name).write_text("not: [yaml")

        assert files.read().drop_ins == (str(files.folder / "a.conf"),)
        assert not files.read().troubles

    def test_a_directory_that_is_a_link_is_not_read(self, files):
        files.put("a.conf", "shutdownGracePeriod: 50s\n")
        files.folder.rename(files.path / "real")
        files.folder.symlink_to(files.path / "real")

        found = files.read()

        assert found.values[TOTAL] == "30s"
        assert [file for file, _reason in found.troubles] == [str(files.folder)]
        with_slash = kubelet_files.read_settings(files.config, f"{files.folder}/")
        assert with_slash.values[TOTAL] == "50s"

    @pytest.mark.parametrize(
        ("text", "head", "reason"),
        [
            ("a: [", HEAD, "can't be read"),
            ("a: 2026-02-30\n", HEAD, "can't be read: day"),
            ("shutdownGracePeriod: 50s\n", "", "does not have apiVersion"),
            ("", "", "does not have apiVersion"),
        ],
    )
    def test_says_what_the_kubelet_cannot_use(self, files, text, head, reason):
        path = files.put("a.conf", text, head)

        ((file, found),) = files.read().troubles

        assert file == path
        assert reason in found

    def test_json_with_tabs(self, files):
        kind = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
        files.put("config.yaml", json.dumps({**kind, TOTAL: "50s"}, indent="\t"), "")

        found = files.read()

        assert (found.troubles, found.values) == ((), {TOTAL: "50s"})

    def test_missing_files(self, tmp_path):
        found = kubelet_files.read_settings(str(tmp_path / "a"), str(tmp_path / "b"))

        assert [file for file, _reason in found.troubles] == [str(tmp_path / "b"), str(tmp_path / "a")]
        assert kubelet_files.read_settings("", "") == kubelet_rules.Settings()

    def test_the_last_change(self, files):
        begun = time.time()
        path = files.put("a.conf", "")
        os.utime(files.config, (1, 1))
        changed = files.read()
        # A file that goes leaves a sign on its directory alone.
        time.sleep(0.02)
        Path(path).unlink()

        # Files have coarser times than clocks.
        assert changed.changed > begun - 1
        assert files.read().changed > changed.changed
        assert files.read().changed_file == str(files.folder)

    def test_a_time_in_the_future_is_none_of_a_change(self, files, monkeypatch):
        before = time.time()
        os.utime(files.config, (before + 3600, before + 3600))

        assert before - 60 < files.read().changed <= time.time()

        # The clock is set back.
        last = files.put("a.conf", "")
        monkeypatch.setattr(kubelet_files.time, "time", lambda: before - 3600)
        assert (files.read().changed, files.read().changed_file) == (0.0, "")
        monkeypatch.undo()
        assert files.read().changed_file == last

    def test_what_a_program_that_contains_the_kubelet_writes_is_no_change(self, files):
        ours = files.put("zz-holdfast.conf", "")
        config = kubelet_files.read_settings(files.config, "").changed
        # Files have coarser times than clocks.
        time.sleep(0.02)
        files.put("00-k3s-defaults.conf", "")
        (files.folder / "20-cli-config-dir").mkdir()

        whole = kubelet_files.read_settings(files.config, str(files.folder))
        found = kubelet_files.read_settings(files.config, str(files.folder), embedded=True)

        assert whole.changed > found.changed >= config
        assert found.changed_file == ours
        assert found.drop_ins == whole.drop_ins

    def test_a_missing_library_is_named(self, files, monkeypatch):
        monkeypatch.setattr(kubelet_files, "IMPORT_ERROR", "Traceback: no module named yaml")

        with pytest.raises(MissingLibrary, match="python3-yaml"):
            files.read()


class Bus:
    def __init__(self, **service):
        self._service = Service(**service)

    def service(self, unit):
        return self._service


class TestFindKubelet:
    def test_by_the_command_line_that_runs(self, tmp_path, monkeypatch):
        process = tmp_path / "77"
        process.mkdir()
        (process / "cmdline").write_bytes(b"/bin/kubelet\0--config\0conf/x.yaml\0--root-dir=/srv/k\0")
        (process / "cwd").symlink_to(tmp_path)
        monkeypatch.setattr(kubelet_files, "_PROC", tmp_path)
        bus = Bus(pid=77, started=time.monotonic() - 10000, command=("kubelet", "--config=/other"))

        found = kubelet_files.find_kubelet(bus, "kubelet.service", {})

        assert found.active
        assert (found.config, found.config_dir, found.root_dir) == (f"{tmp_path}/conf/x.yaml", "", "/srv/k")
        assert found.started == pytest.approx(time.time() - 10000, abs=5000)

    def test_below_another_program(self, tmp_path, monkeypatch):
        for pid, command in ((77, b"rke2 agent\0"), (78, b"containerd\0"), (79, b"/bin/kubelet\0--config=/a\0")):
            process = tmp_path / str(pid)
            (process / "task/1").mkdir(parents=True)
            (process / "cmdline").write_bytes(command)
            (process / "task/1/children").write_text("78 79 " if pid == 77 else "")
        begun, since_boot = time.time() - 10000, time.clock_gettime(time.CLOCK_BOOTTIME) - 10000
        ticks = int(since_boot * os.sysconf("SC_CLK_TCK"))
        (tmp_path / "79/stat").write_text(f"79 (a b) S {'0 ' * 18}{ticks} 0\n")
        monkeypatch.setattr(kubelet_files, "_PROC", tmp_path)

        found = kubelet_files.find_kubelet(Bus(pid=77, started=time.monotonic()), "rke2-agent.service", {})

        assert (found.pid, found.config, found.known, found.embedded) == (79, "/a", True, False)
        assert found.started == pytest.approx(begun, abs=5000)

    def test_within_another_program(self, tmp_path, monkeypatch):
        (tmp_path / "77").mkdir()
        (tmp_path / "77/cmdline").write_bytes(b"k3s agent\0")
        monkeypatch.setattr(kubelet_files, "_PROC", tmp_path)
        bus = Bus(pid=77, started=time.monotonic())

        unknown = kubelet_files.find_kubelet(bus, "k3s-agent.service", {"root_dir": "/x"})
        known = kubelet_files.find_kubelet(bus, "k3s-agent.service", {"config_dir": "/x"})

        assert [(found.known, found.embedded) for found in (unknown, known)] == [(False, True), (True, True)]

    @pytest.mark.parametrize("line", [b"(kubelet)\0", b"/usr/lib/systemd/systemd-executor\0--deserialize\0"])
    def test_by_its_unit_until_systemd_has_executed_it(self, tmp_path, monkeypatch, line):
        (tmp_path / "77").mkdir()
        (tmp_path / "77/cmdline").write_bytes(line)
        monkeypatch.setattr(kubelet_files, "_PROC", tmp_path)
        bus = Bus(pid=77, started=time.monotonic(), command=("/usr/bin/kubelet", "--config=/a"))

        found = kubelet_files.find_kubelet(bus, "kubelet.service", {})

        assert (found.active, found.known, found.config) == (True, True, "/a")

    def test_by_its_unit_if_it_does_not_run(self):
        bus = Bus(command=("kubelet", "$ARGS"), environment={"ARGS": "--config=/a --config-dir=/b"})

        found = kubelet_files.find_kubelet(bus, "kubelet.service", {})

        assert not found.active
        assert found.started is None
        assert (found.config, found.config_dir, found.root_dir) == ("/a", "/b", "/var/lib/kubelet")

    def test_what_the_user_says_goes_first(self):
        bus = Bus(command=("kubelet", "--config=/a"))

        found = kubelet_files.find_kubelet(
            bus, "k3s.service", {"config": "/mine", "config_dir": None, "root_dir": "/r"}
        )

        assert (found.config, found.config_dir, found.root_dir) == ("/mine", "", "/r")
