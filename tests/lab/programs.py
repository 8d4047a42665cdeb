# Copyright (c) 2026 holdfast contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""Kubernetes, etcd, kwok, Cluster API and a driver of ours, built from pinned Go modules and kept by what they are."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .commands import run
from .errors import LabError
from .paths import PACKAGE
from .progress import step

MODULES = PACKAGE / "programs"


@dataclass(frozen=True)
class Module:
    """A go.mod of ours and the programs that it pins: name to package."""

    name: str
    programs: dict[str, str]
    # The module whose version the programs report as their own.
    versioned: str = ""

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
        digest = hashlib.sha256(repr((self.programs, self.flags())).encode())
        for name in ("go.mod", "go.sum", *sorted(path.name for path in self.directory.glob("*.go"))):
            digest.update((self.directory / name).read_bytes())
        return f"{self.name}-{digest.hexdigest()[:16]}"


KUBERNETES = Module(
    "kubernetes",
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        **{
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet")
        },
    },
    versioned="k8s.io/kubernetes",
)
KWOK = Module("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"})
ALL = (KUBERNETES, KWOK)
# Built where it is asked for: who needs no Machines is not to wait for it.
CLUSTER_API = Module("cluster-api", {"cluster-api": "sigs.k8s.io/cluster-api/core"})
CSI = Module("csi", {"lab-csi": "."})


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


def check(cache: Path, modules: Sequence[Module] = ALL) -> None:
    """Refuse a machine on which something must be built and can't be."""
    for module in modules:
        if _missing(module, cache):
            _check_go(module)


def build(cache: Path, destination: Path, modules: Sequence[Module] = ALL) -> None:
    """Put all programs into the destination, building those that are neither cached nor supplied."""
    for module in modules:
        supplied = _supplied(module.programs)
        made = cache / "programs" / module.key()
        _build(module, made, _missing(module, cache))
        for name in module.programs:
            place(supplied.get(name, made / name), destination / name)


def _missing(module: Module, cache: Path) -> dict[str, str]:
    """What must be built: neither supplied nor built before."""
    made = cache / "programs" / module.key()
    have = _supplied(module.programs)
    return {
        name: package for name, package in module.programs.items() if name not in have and not (made / name).exists()
    }


def place(source: Path, destination: Path) -> None:
    """Put a file somewhere else, where possible without a copy. A symbolic link would not survive a bind mount."""
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
    """What envtest's convention supplies: programs of the user's own choice."""
    directory = os.environ.get("KUBEBUILDER_ASSETS")
    if not directory:
        return {}
    paths = {name: Path(directory, name).resolve() for name in names}
    return {name: path for name, path in paths.items() if path.is_file() and os.access(path, os.X_OK)}


def _build(module: Module, made: Path, programs: dict[str, str]) -> None:
    made.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
    for name, package in programs.items():
        with step(f"build {name} (minutes when Go's cache is cold)"):
            temporary = made / f".{name}"
            run(["go", "build", *module.flags(), "-o", temporary, package], env=env, cwd=module.directory)
            temporary.rename(made / name)


def _check_go(module: Module) -> None:
    needed = go_needed(module.directory / "go.mod")
    if not shutil.which("go"):
        raise LabError(
            f"Go is missing, and with it Kubernetes can't be built: install Go {needed} or later, "
            "or set KUBEBUILDER_ASSETS to a directory that holds " + ", ".join(module.programs)
        )
    try:
        # In the module's directory Go also fetches a newer toolchain of its own, where it may.
        run(["go", "version"], cwd=module.directory)
    except LabError as error:
        raise LabError(f"Go {needed} or later is needed: {error}") from error
