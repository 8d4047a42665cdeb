# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab builds, in which order, and its messages meanwhile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab import parts, programs, rootfs
from lab.commands import follow
from lab.errors import LabError
from lab.parts import Part
from lab.progress import Step, step

ALL = (programs.KUBERNETES, programs.KWOK, programs.CLUSTER_API, programs.CSI)


@pytest.mark.parametrize(
    ("nodes", "expected"), [(0, []), (1, ["bookworm"]), (2, ["bookworm", "trixie"]), (5, ["bookworm", "trixie"])]
)
def test_only_the_root_file_systems_that_the_nodes_run_are_made(
    tmp_path: Path, nodes: int, expected: list[str]
) -> None:
    titles = [part.title for part in parts.trees(tmp_path, rootfs.suites(nodes))]
    assert titles == [f"make a root file system of Debian {suite}" for suite in expected]


def test_only_what_is_missing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    made = tmp_path / "programs" / programs.KWOK.key()
    assert len(parts.modules(tmp_path, [programs.KWOK])) == 1
    made.mkdir(parents=True)
    (made / "kwok").touch()
    assert parts.modules(tmp_path, [programs.KWOK]) == []


def test_each_part_has_an_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    found = [*parts.trees(tmp_path, list(rootfs.SUITES)), *parts.modules(tmp_path, ALL)]
    assert len(found) == len(rootfs.SUITES) + len(ALL)
    assert all(part.seconds > 0 for part in found)


def _part(title: str, seconds: int, done: list[str]) -> Part:
    return Part(title, seconds, lambda _step: done.append(title))


def test_parts_are_made_in_order_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []
    parts.make([_part("first", 10, done)], [_part("a", 100, done), _part("b", 90, done)], [_part("c", 200, done)])
    assert done[0] == "first"
    assert done.index("a") < done.index("b")
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("lab: 4 parts are missing and take about 4 minutes, once")
    assert said[1] == "lab: 1 of 4: first ..."
    assert {line.partition(": done in ")[0] for line in said if ": done in " in line} == {
        "lab: 1 of 4: first",
        "lab: 2 of 4: a",
        "lab: 3 of 4: b",
        "lab: 4 of 4: c",
    }


def test_nothing_is_reported_if_nothing_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    parts.make([], [], [])
    assert capsys.readouterr().err == ""


def test_a_part_that_fails_is_named_and_its_error_comes_through(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_step: Step) -> None:
        raise LabError("no network")

    with pytest.raises(LabError, match="no network"):
        parts.make([], [Part("fetch", 30, fail)], [])
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("lab: 1 part is missing and takes about 30 s, once")
    assert said[-1].startswith("lab: fetch: failed after ")


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        ("go.etcd.io/etcd/server/v3", "server"),
        ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
        ("sigs.k8s.io/cluster-api/core", "core"),
        ("holdfast.dev/lab/csi", "csi"),
    ],
)
def test_a_program_has_the_name_that_go_gives_it(package: str, expected: str) -> None:
    assert programs.executable(package) == expected


@pytest.mark.parametrize("module", ALL, ids=lambda module: module.name)
def test_no_two_programs_of_a_module_have_one_name(module: programs.Module) -> None:
    names = [programs.executable(package) for package in module.programs.values()]
    assert len(set(names)) == len(names)


def test_progress_is_what_go_prints() -> None:
    made = Step("build Kubernetes and etcd")
    assert made.line(20.4) == "lab: build Kubernetes and etcd ... 20 s"
    progress = programs.Progress(made)
    assert progress.heard("go: downloading k8s.io/api v0.36.3")
    assert made.line(20.4) == "lab: build Kubernetes and etcd: download of Go module 1, 20 s"
    progress.compile(1940)
    assert made.line(50) == "lab: build Kubernetes and etcd: 0 of 1,940 packages, 50 s"
    for number in range(1200):
        assert progress.heard(f"k8s.io/api/core/v{number}")
    assert made.line(95) == "lab: build Kubernetes and etcd: 1,200 of 1,940 packages, 95 s"
    progress.compile(1200)
    assert made.line(95) == "lab: build Kubernetes and etcd: linking, 95 s"
    assert not progress.heard("# k8s.io/api/core/v1")
    assert not progress.heard("./main.go:3:1: undefined: x")
    assert not progress.heard("go: go.mod requires go >= 1.99")


def test_an_error_has_the_complaints_without_the_progress() -> None:
    code = "import sys; print('out'); print('fmt', file=sys.stderr); print('# broken', file=sys.stderr)"
    heard: list[str] = []

    def hear(line: str) -> bool:
        heard.append(line)
        return not line.startswith("#")

    assert follow([sys.executable, "-c", code], hear) == "out\n"
    assert heard == ["fmt", "# broken"]
    with pytest.raises(LabError) as caught:
        follow([sys.executable, "-c", f"{code}; sys.exit(3)"], hear)
    assert "exit status 3\n# broken" in str(caught.value)


def test_a_step_says_how_long_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    with step("boot"):
        pass
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "lab: boot ..."
    assert said[1].startswith("lab: boot: done in ")
