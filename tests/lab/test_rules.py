# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the lab that need no root and no cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from cryptography import x509

from lab import Lab, certificates, cgroups, inventory, kwok, node_files, programs, rootfs, trees
from lab.errors import LabError
from lab.network import Network
from lab.node import Node
from lab.paths import Paths
from lab.processes import Process, machine_boot, start_time


def test_a_process_is_known_by_more_than_its_pid(tmp_path: Path) -> None:
    process = Process("sleeper", tmp_path / "sleeper.json", tmp_path / "sleeper.log")
    process.start(["sleep", "60"])
    try:
        pid = process.pid()
        assert pid
        record = json.loads(process.record.read_text())
        process.record.write_text(json.dumps({**record, "start": "1"}))
        process.kill()
        assert start_time(pid), "another process of the same pid was ended"
        process.record.write_text(json.dumps({**record, "boot": "another"}))
        assert process.pid() is None
        process.record.write_text(json.dumps({**record, "boot": machine_boot()}))
    finally:
        process.kill()
    assert process.pid() is None
    assert not process.record.exists()


def test_a_started_process_is_not_started_twice(tmp_path: Path) -> None:
    process = Process("sleeper", tmp_path / "sleeper.json", tmp_path / "sleeper.log")
    process.start(["sleep", "60"])
    try:
        pid = process.pid()
        process.start(["sleep", "60"])
        assert process.pid() == pid
    finally:
        process.stop()


def test_a_command_joins_its_cgroup_before_it_becomes_itself(tmp_path: Path) -> None:
    cgroup = cgroups.Cgroup("lab/part", [tmp_path / "one", tmp_path / "two"])
    for root in (tmp_path / "one", tmp_path / "two"):
        root.mkdir()
        (root / "cpuset.cpus").write_text("0-1\n")
    cgroup.make()
    assert (tmp_path / "one" / "lab" / "part").is_dir()
    code = "import os; print(os.getpid())"
    pid = subprocess.run(
        cgroup.command([sys.executable, "-c", code]), check=True, capture_output=True, text=True
    ).stdout
    for path in cgroup.paths:
        assert (path / "cgroup.procs").read_text() == pid


@pytest.mark.parametrize("name", ["cpu.shares", "cpu.weight"])
def test_the_topmost_control_group_gets_its_share(tmp_path: Path, name: str) -> None:
    for directory in (tmp_path / "lab", tmp_path / "lab/part"):
        directory.mkdir()
        (directory / name).write_text("usual")
    cgroups.Cgroup("lab/part", [tmp_path]).make()
    assert (tmp_path / "lab" / name).read_text() == cgroups.WEIGHTS[name]
    assert (tmp_path / "lab/part" / name).read_text() == "usual"


@pytest.mark.parametrize(
    ("name", "prefix", "expected"),
    [
        ("kwok-1", "kwok", True),
        ("kwok-a-1", "kwok", False),
        ("kwok-a-1", "kwok-a", True),
        ("kwok-x", "kwok", False),
        ("kwok", "kwok", False),
    ],
)
def test_simulated_nodes_belong_to_their_very_prefix(name: str, prefix: str, expected: bool) -> None:
    assert kwok.belongs(name, prefix) is expected


class _Recorded(Lab):
    """A lab whose cluster is a dictionary: the name of a simulated node, and whether it is Ready."""

    def __init__(self, nodes: dict[str, bool]) -> None:
        super().__init__(Paths(Path("/lab"), Path("/cache")))
        self.cluster = nodes
        self.started = False

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        assert self.started, "kwok comes first"
        if stdin:
            for item in json.loads(stdin)["items"]:
                assert item["metadata"]["name"] not in self.cluster
                self.cluster[item["metadata"]["name"]] = True
        elif arguments[0] == "delete":
            for name in re.findall(r"kwok-\d+", arguments[-1]):
                del self.cluster[name]
        return ""

    @property
    def simulated(self) -> list[str]:
        return list(self.cluster)

    def ready(self) -> dict[str, str]:
        return {name: "boot" for name, ready in self.cluster.items() if ready}

    def start_kwok(self) -> None:
        self.started = True

    def wait_ready(self, names: Iterable[str], timeout: float = 120.0) -> None:
        assert set(names) <= set(self.ready())

    def write_inventory(self) -> None:
        """This lab has no machines."""


def test_simulated_nodes_that_are_not_ready_are_made_again() -> None:
    lab = _Recorded({"kwok-1": False, "kwok-2": True, "other-1": False})
    lab.simulate(kwok.names(3))
    assert lab.cluster == {"kwok-1": True, "kwok-2": True, "kwok-3": True, "other-1": False}


def test_a_lab_without_simulated_nodes_needs_no_kwok() -> None:
    lab = _Recorded({})
    lab.simulate([])
    assert not lab.started


def test_nodes_take_turns() -> None:
    assert [rootfs.suite_of(number) for number in (1, 2, 3)] == ["bookworm", "trixie", "bookworm"]


def test_programs_report_the_version_that_is_pinned() -> None:
    version = ".".join(programs.version(programs.KUBERNETES.directory / "go.mod", "k8s.io/kubernetes"))
    assert f"gitVersion=v{version}" in " ".join(programs.KUBERNETES.flags())


def test_a_nodes_files_hold_no_placeholder_and_its_own_identity(tmp_path: Path) -> None:
    authority = certificates.Authority(tmp_path)
    pair = authority.client("system:node:node-1", ["system:nodes"])
    spec = node_files.NodeSpec("node-1", 1, "10.213.9.11", "10.213.9.1", "https://10.213.9.1:6443")
    files = node_files.files(spec, pair, authority.certificate, "ssh-ed25519 KEY")
    for path, file in files.items():
        assert not re.search(rb"@[A-Z]+@", file.content), path
    certificate = x509.load_pem_x509_certificate(files[node_files.KUBELET_CERTIFICATE].content)
    assert certificate.subject.rfc4514_string() == "CN=system:node:node-1,O=system:nodes"
    assert files[node_files.KUBELET_CERTIFICATE].mode == 0o600


def test_the_inventory_has_both_kinds(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "lab", tmp_path / "cache")
    data = inventory.inventory(paths, [Node(paths, Network(7), 2)], ["kwok-1"])["all"]["children"]
    assert data["real"]["hosts"]["node-2"]["ansible_host"] == "10.213.7.12"
    assert "kwok-1" in data["simulated"]["hosts"]
    assert Path(data["simulated"]["vars"]["rolling_reboot_command_tasks"]).exists()


def test_private_files_are_private_from_the_start(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        certificates.write_private(tmp_path / "key", b"secret")
    finally:
        os.umask(umask)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_a_process_that_ended_has_no_start_time() -> None:
    child = subprocess.Popen(["true"])
    deadline = time.monotonic() + 600
    while start_time(child.pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert start_time(child.pid) is None, "a zombie counts as ended"
    child.wait()


def test_a_process_runs_until_its_last_thread_ends() -> None:
    """A server that was killed has its port until then."""
    first_thread_ends = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); "
    child = subprocess.Popen([sys.executable, "-c", first_thread_ends + "ctypes.CDLL(None).pthread_exit(None)"])
    stat = Path(f"/proc/{child.pid}/stat")
    deadline = time.monotonic() + 600
    while " Z " not in stat.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert start_time(child.pid) is not None
    child.kill()
    child.wait()


def test_what_is_mounted_in_a_directory_is_found_innermost_first() -> None:
    mountinfo = """\
24 27 0:6 / /dev rw - devtmpfs devtmpfs rw
50 27 0:39 / /lab/a\\040tree/dev rw - devpts none rw
51 50 0:27 / /lab/a\\040tree/dev/shm rw - tmpfs tmpfs rw
52 27 0:22 / /lab/a\\040tree-2/sys ro - sysfs sys rw
"""
    below = [str(path) for path in trees.mounts_below(Path("/lab/a tree"), mountinfo)]
    assert below == ["/lab/a tree/dev/shm", "/lab/a tree/dev"]


def test_a_fix_of_a_pinned_module(tmp_path: Path) -> None:
    fix, source = programs.Fix("a module", "heap.go", "push()", "push() { remove() }"), tmp_path / "heap.go"
    source.write_text("func push()")
    programs.correct(fix, tmp_path)
    assert source.read_text() == "func push() { remove() }"
    source.write_text("func Add()")
    with pytest.raises(LabError, match="still needs the correction"):
        programs.correct(fix, tmp_path)
