# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep one node's machine running, as firmware does: start it again whenever it reboots.

It runs in its own mount namespace. Every mount of the node ends with its last process, however that ended.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import rootfs
from .cgroups import hierarchies
from .commands import run
from .node import Node
from .node_files import PROGRAMS

# systemd-nspawn exits with this status when the machine wants to boot again.
REBOOT = 133
RUNTIME = Path("/run/systemd/nspawn")


def supervise(node: Node) -> int:
    """Boot the machine until it powers itself off; SIGKILL is the power switch."""
    _mount(node)
    # The kernel removes the network of a machine whose power was cut some time later.
    link = f"vb-{node.network.machine(node.name)}"
    subprocess.run(["ip", "link", "delete", link], check=False, stderr=subprocess.DEVNULL)
    while True:
        # Processes that containers left behind would count as part of the next boot.
        node.cgroup.kill()
        node.cgroup.remove()
        node.cgroup.make()
        status = subprocess.call(node.cgroup.command(_nspawn(node)), stdin=subprocess.DEVNULL)
        print(f"--- {node.name}: systemd-nspawn ended with {status}", flush=True)
        if status != REBOOT:
            node.cgroup.kill()
            node.cgroup.remove()
            return status


def _mount(node: Node) -> None:
    lower = rootfs.tree(node.paths.cache, node.suite)
    options = f"lowerdir={lower},upperdir={node.directory / 'upper'},workdir={node.directory / 'work'}"
    run(["mount", "-t", "overlay", "overlay", "-o", options, node.directory / "root"])
    RUNTIME.mkdir(parents=True, exist_ok=True)
    run(["mount", "-t", "tmpfs", "tmpfs", RUNTIME])


def _nspawn(node: Node) -> list[str]:
    argv = [
        "systemd-nspawn",
        "--quiet",
        "--register=no",
        "--keep-unit",
        f"--directory={node.directory / 'root'}",
        "--boot",
        f"--machine={node.network.machine(node.name)}",
        f"--hostname={node.name}",
        f"--network-bridge={node.network.bridge}",
        "--notify-ready=no",
        "--capability=all",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        "--bind=/dev/kmsg",
        "--system-call-filter=@keyring bpf @privileged",
        f"--bind-ro={node.paths.node_bin}:{PROGRAMS}",
    ]
    if _legacy():
        # Newer systemd refuses cgroup v1 unless told twice.
        argv += ["SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1", "systemd.unified_cgroup_hierarchy=0"]
    return argv


def _legacy() -> bool:
    return len(hierarchies()) > 1
