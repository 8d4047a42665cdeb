# Copyright (c) 2026 holdfast contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""The nodes' root file systems: one tree for each Debian release, under an overlay for each node."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import trees
from .commands import run
from .progress import step

# What a node needs: systemd with logind, ssh and Python for Ansible, a container runtime for the kubelet,
# and the distribution's own Python libraries, because nothing is installed on nodes by pip.
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
# The first is systemd 252, the second 257: nodes take turns.
SUITES: dict[str, tuple[str, ...]] = {
    "bookworm": PACKAGES,
    "trixie": (*PACKAGES, "systemd-resolved"),
}


# mmdebstrap mounts the machine's own /dev into the tree. Seen by nobody else, such mounts harm nobody who removes the
# tree; and they end with it, as it ends with us.
CONTAINED = (
    *("setpriv", "--pdeathsig=KILL", "--"),
    *("unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)


def suite_of(number: int) -> str:
    """Odd nodes run the older release."""
    return list(SUITES)[(number - 1) % len(SUITES)]


def tree(cache: Path, suite: str) -> Path:
    """Where the tree of a release lies, named after what it was made from."""
    digest = hashlib.sha256(repr((suite, sorted(SUITES[suite]))).encode()).hexdigest()[:16]
    return cache / "rootfs" / f"{suite}-{digest}"


def make(cache: Path, suites: Sequence[str] = tuple(SUITES)) -> None:
    """Make the trees that are missing, and remove what was left half made."""
    for stale in (cache / "rootfs").glob(".*"):
        trees.remove(stale)
    for suite in suites:
        made = tree(cache, suite)
        if made.exists():
            continue
        made.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{suite}-", dir=made.parent))
        with step(f"make a root file system of Debian {suite}"):
            include = ",".join(sorted(SUITES[suite]))
            argv = [*CONTAINED, "mmdebstrap", "--variant=minbase", "--format=directory", f"--include={include}"]
            run([*argv, suite, str(temporary)], cwd=Path("/"))
            temporary.chmod(0o755)
            temporary.rename(made)
