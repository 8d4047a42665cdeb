# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requirements on the machine itself, with plain errors."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from .commands import run
from .errors import LabError
from .locks import locked
from .paths import Paths
from .progress import say

PACKAGES = (
    "busybox-static",
    "debian-archive-keyring",
    "iproute2",
    "mmdebstrap",
    "openssh-client",
    "systemd-container",
    "util-linux",
)
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_WANTED = 1024


def check() -> None:
    """Raise an error on a machine on which the lab can't work."""
    if sys.platform != "linux":
        raise LabError("the lab needs Linux: its nodes are systemd-nspawn machines")
    if os.geteuid() != 0:
        raise LabError("the lab needs root: it boots machines, makes a bridge and mounts file systems")


def missing() -> list[str]:
    """The Debian packages that are not installed."""
    return [name for name in PACKAGES if not _installed(name)]


def apt_lock() -> contextlib.AbstractContextManager[None]:
    """Allow one apt-get at a time: a second one does not wait, but fails."""
    return locked(Paths.default().cache / "apt.lock")


def install(packages: Sequence[str]) -> None:
    if not shutil.which("apt-get"):
        raise LabError(f"the lab needs what Debian calls {' '.join(packages)}; install it")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with apt_lock():
        run(["apt-get", "update", "-q"], env=env)
        run(["apt-get", "install", "-qy", "--no-install-recommends", *packages], env=env)


def raise_limits() -> None:
    """Each node's systemd, kubelet and runtime together use some 15 inotify instances, and all belong to root."""
    if int(INOTIFY.read_text()) < INOTIFY_WANTED:
        say(f"lab: set fs.inotify.max_user_instances to {INOTIFY_WANTED}, the nodes need more than the usual 128")
        INOTIFY.write_text(str(INOTIFY_WANTED))


def _installed(name: str) -> bool:
    if not shutil.which("dpkg-query"):
        return False
    try:
        return run(["dpkg-query", "-W", "-f", "${db:Status-Status}", name]).strip() == "installed"
    except LabError:
        return False
