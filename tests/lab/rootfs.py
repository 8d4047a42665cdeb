# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes' root file systems: one tree for each Debian release, under an overlay for each node."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from . import trees
from .commands import run

# What a node needs: systemd with logind, ssh and Python for Ansible, a container runtime for the kubelet, and the
# distribution's own Python libraries, because nothing is installed on nodes by pip.
PACKAGES = (
    "containerd",
    "containernetworking-plugins",
    "dbus",
    "iproute2",
    "iptables",
    "libpam-systemd",
    "mount",
    "openssh-server",
    "polkitd",
    "procps",
    "python3",
    "python3-apt",
    "python3-dbus",
    "python3-gi",
    "python3-requests",
    "python3-yaml",
    "runc",
    "systemd",
    "systemd-sysv",
)
# The first is systemd 252, the second 257: nodes alternate.
SUITES: dict[str, tuple[str, ...]] = {
    "bookworm": PACKAGES,
    "trixie": (*PACKAGES, "systemd-resolved"),
}


# mmdebstrap mounts the machine's own /dev into the tree. In its own namespace, such a mount can't harm a removal of the
# tree. The mounts end with mmdebstrap, which ends with this process.
CONTAINED = (
    *("setpriv", "--pdeathsig=KILL", "--"),
    *("unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)


def suite_of(number: int) -> str:
    """The release of a node: odd nodes run the older one."""
    return list(SUITES)[(number - 1) % len(SUITES)]


def tree(cache: Path, suite: str) -> Path:
    """The directory of a release's tree, named after what it is made from."""
    digest = hashlib.sha256(repr((suite, sorted(SUITES[suite]))).encode()).hexdigest()[:16]
    return cache / "rootfs" / f"{suite}-{digest}"


def suites(nodes: int) -> list[str]:
    """The releases that this many nodes run."""
    return sorted({suite_of(number) for number in range(1, nodes + 1)})


def make(cache: Path, suite: str) -> None:
    """Make the tree of a release, and remove half-made ones."""
    made = tree(cache, suite)
    for stale in made.parent.glob(f".{suite}-*"):
        trees.remove(stale)
    made.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{suite}-", dir=made.parent))
    include = ",".join(sorted(SUITES[suite]))
    argv = [*CONTAINED, "mmdebstrap", "--variant=minbase", "--format=directory", f"--include={include}"]
    run([*argv, suite, str(temporary)], cwd=Path("/"))
    temporary.chmod(0o755)
    temporary.rename(made)
