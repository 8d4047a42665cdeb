# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs from Debian's packages that tests use. They are unpacked: an installed package may start a service."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from .commands import run
from .errors import LabError
from .host import apt_lock
from .progress import step


def program(cache: Path, package: str, path: str = "", *, whole: bool = False) -> Path:
    """Return the program of a package. Unpack the package if needed.

    Args:
        cache: The folder that gets a folder for the package.
        package: Name of the package, and of the program.
        path: Where the package has the program; by default below ``usr/bin``.
        whole: Whether to unpack the packages that it needs, too.
    """
    if found := shutil.which(package):
        return Path(found)
    unpacked = cache / package
    binary = unpacked / (path or f"usr/bin/{package}")
    if binary.exists():
        return binary
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise LabError(f"these tests need what Debian calls {package}; install it")
    with step(f"unpack {package}"):
        # Another process may do the same: the first one to finish renames the whole directory into place.
        temporary = cache / f"{package}.{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        try:
            with apt_lock():
                _download(temporary, package, whole=whole)
            for file in sorted(temporary.glob("*.deb")):
                run(["dpkg-deb", "-x", file, temporary])
                file.unlink()
            if not binary.exists():
                shutil.rmtree(unpacked, ignore_errors=True)
                temporary.rename(unpacked)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return binary


def _download(folder: Path, package: str, *, whole: bool) -> None:
    try:
        run(["apt-get", "download", *_needed(package, whole=whole)], cwd=folder)
    except LabError:
        # A fresh machine has no package lists.
        run(["apt-get", "update", "-q"])
        run(["apt-get", "download", *_needed(package, whole=whole)], cwd=folder)


def _needed(package: str, *, whole: bool) -> list[str]:
    """Return the package and, with ``whole``, those that it needs and that are not installed."""
    if not whole:
        return [package]
    plan = run(["apt-get", "install", "--simulate", "--no-install-recommends", package])
    return re.findall(r"^Inst (\S+)", plan, re.MULTILINE)
