# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes, etcd, kwok, Cluster API and the lab's driver: built from pinned Go modules, cached by content."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .commands import follow, run
from .errors import LabError
from .paths import PACKAGE
from .progress import Step

MODULES = PACKAGE / "programs"


@dataclass(frozen=True)
class Fix:
    """The correction of a fault in a pinned module, in one place of one file."""

    module: str
    file: str
    wrong: str
    right: str


@dataclass(frozen=True)
class Module:
    """One of the lab's go.mod files and the programs that it pins: name to package."""

    name: str
    title: str
    programs: dict[str, str]
    # The module whose version the programs report as their own.
    versioned: str = ""
    fix: Fix | None = None

    @property
    def directory(self) -> Path:
        return MODULES / self.name

    def flags(self) -> list[str]:
        """Without the version flags the programs say v0.0.0, and version skew checks go wrong."""
        linker = "-s -w"
        if self.versioned:
            major, minor, patch = version(self.directory / "go.mod", self.versioned)
            package = "k8s.io/component-base/version"
            linker += f" -X {package}.gitVersion=v{major}.{minor}.{patch}"
            linker += f" -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
        return ["-trimpath", "-ldflags", linker]

    def key(self) -> str:
        digest = hashlib.sha256(repr((self.programs, self.flags(), *filter(None, [self.fix]))).encode())
        for name in ("go.mod", "go.sum", *sorted(path.name for path in self.directory.glob("*.go"))):
            digest.update((self.directory / name).read_bytes())
        return f"{self.name}-{digest.hexdigest()[:16]}"


KUBERNETES = Module(
    "kubernetes",
    "Kubernetes and etcd",
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        **{
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet")
        },
    },
    versioned="k8s.io/kubernetes",
)
# Each is built when it is first needed.
KWOK = Module(
    "kwok",
    "kwok, for simulated nodes",
    {"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    # If a node is switched off and on while kwok renews its Lease, the queue of renewals gets the node twice. Then its
    # first entry can't be removed, and kwok renews no Lease any more.
    fix=Fix(
        "sigs.k8s.io/kwok",
        "pkg/utils/heap/heap.go",
        "Push(key K, data T) {\n",
        "Push(key K, data T) {\n\th.Remove(data)\n",
    ),
)
CLUSTER_API = Module("cluster-api", "Cluster API", {"cluster-api": "sigs.k8s.io/cluster-api/core"})
CSI = Module("csi", "the lab's CSI driver", {"lab-csi": "holdfast.dev/lab/csi"})


def version(go_mod: Path, module: str) -> tuple[str, str, str]:
    """The version at which a go.mod pins a module."""
    found = re.search(rf"^\s*{re.escape(module)} v(\d+)\.(\d+)\.(\S+)", go_mod.read_text(), re.MULTILINE)
    if not found:
        raise LabError(f"{go_mod} does not require {module}")
    return found[1], found[2], found[3]


def go_needed(go_mod: Path) -> str:
    """The Go version that a go.mod asks for."""
    found = re.search(r"^go (\S+)", go_mod.read_text(), re.MULTILINE)
    if not found:
        raise LabError(f"{go_mod} names no Go version")
    return found[1]


def check(cache: Path, modules: Sequence[Module]) -> None:
    """Raise an error on a machine that must build something and can't."""
    for module in modules:
        if missing(module, cache):
            _check_go(module)


def missing(module: Module, cache: Path) -> dict[str, str]:
    """What must be built: neither supplied nor built before."""
    made = _made(module, cache)
    have = _supplied(module.programs)
    return {
        name: package for name, package in module.programs.items() if name not in have and not (made / name).exists()
    }


def build(module: Module, cache: Path, step: Step) -> None:
    """Build what is missing, with one command: it loads and compiles shared packages once."""
    programs = missing(module, cache)
    made = _made(module, cache)
    temporary = made / ".new"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
    progress = Progress(step)

    def go(*words: str) -> str:
        return follow(["go", *words], progress.heard, env=env, cwd=module.directory)

    packages = programs.values()
    flags = module.flags()
    if module.fix:
        flags.append(f"-modfile={_fixed(module, module.fix, temporary, go)}")
    # Stale packages are those that Go's own cache lacks. A program itself is always stale.
    stale = '{{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}'
    progress.compile(len(go("list", "-deps", *flags, "-f", stale, *packages).split()))
    go("build", "-v", *flags, "-o", f"{temporary}/", *packages)
    for name, package in programs.items():
        (temporary / executable(package)).rename(made / name)
    shutil.rmtree(temporary)


def _fixed(module: Module, fix: Fix, folder: Path, go: Callable[..., str]) -> Path:
    """Write a go.mod that replaces a pinned module with a corrected copy."""
    source, copy = Path(json.loads(go("mod", "download", "-json", fix.module))["Dir"]), folder / "corrected"
    shutil.copytree(source, copy)
    correct(fix, copy)
    for name in ("go.mod", "go.sum"):
        shutil.copy(module.directory / name, folder)
    go("mod", "edit", f"-replace={fix.module}={copy}", str(folder / "go.mod"))
    return folder / "go.mod"


def correct(fix: Fix, source: Path) -> None:
    """Correct the source of a module."""
    path = source / fix.file
    text = path.read_text()
    if text.count(fix.wrong) != 1:
        raise LabError(f"{fix.module} has another {fix.file}. Check whether it still needs the correction.")
    path.unlink()
    path.write_text(text.replace(fix.wrong, fix.right))


def install(modules: Sequence[Module], cache: Path, destination: Path) -> None:
    """Put the programs, which are built, into the destination."""
    for module in modules:
        supplied = _supplied(module.programs)
        for name in module.programs:
            place(supplied.get(name, _made(module, cache) / name), destination / name)


def executable(package: str) -> str:
    """The name that Go gives a program: the last part of its import path that is not a major version."""
    parent, last = package.split("/")[-2:]
    return parent if re.fullmatch(r"v\d+", last) else last


class Progress:
    """Go's progress, from what it prints."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._fetched = 0
        self._compiled = 0
        self._total = 0

    def compile(self, total: int) -> None:
        """Count from here: this many packages are compiled, and then the programs themselves."""
        self._total = total
        self._say()

    def heard(self, line: str) -> bool:
        """Take in one line; return whether it is progress and not an error."""
        if line.startswith("go: downloading "):
            self._fetched += 1
            self._step.detail = f"download of Go module {self._fetched}"
            return True
        # The import path of a package.
        if not re.fullmatch(r"[\w.~+/-]+", line):
            return False
        self._compiled += 1
        self._say()
        return True

    def _say(self) -> None:
        left = self._compiled < self._total
        self._step.detail = f"{self._compiled:,} of {self._total:,} packages" if left else "linking"


def _made(module: Module, cache: Path) -> Path:
    return cache / "programs" / module.key()


def place(source: Path, destination: Path) -> None:
    """Put a file somewhere else, without a copy where possible. A symbolic link would not survive a bind mount."""
    if destination.exists():
        there, here = destination.stat(), source.stat()
        if (there.st_size, there.st_mtime_ns) == (here.st_size, here.st_mtime_ns):
            return
    destination.parent.mkdir(parents=True, exist_ok=True)
    temporary = destination.with_name(destination.name + ".new")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except OSError:
        shutil.copy2(source, temporary)
    temporary.rename(destination)


def _supplied(names: dict[str, str]) -> dict[str, Path]:
    """The programs that the user supplies by envtest's convention."""
    directory = os.environ.get("KUBEBUILDER_ASSETS")
    if not directory:
        return {}
    paths = {name: Path(directory, name).resolve() for name in names}
    return {name: path for name, path in paths.items() if path.is_file() and os.access(path, os.X_OK)}


def _check_go(module: Module) -> None:
    needed = go_needed(module.directory / "go.mod")
    if not shutil.which("go"):
        raise LabError(
            f"Go is missing, and with it Kubernetes can't be built: install Go {needed} or later, "
            "or set KUBEBUILDER_ASSETS to a directory that holds " + ", ".join(module.programs)
        )
    try:
        # In the module's directory, Go also downloads a newer toolchain where that is allowed.
        run(["go", "version"], cwd=module.directory)
    except LabError as error:
        raise LabError(f"Go {needed} or later is needed: {error}") from error
