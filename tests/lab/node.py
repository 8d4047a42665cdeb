# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real nodes: machines in containers, with a power switch."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from . import node_files, rootfs, trees
from .certificates import Authority
from .cgroups import Cgroup
from .commands import run
from .errors import LabError
from .network import Network
from .paths import PACKAGE, Paths
from .patience import PATIENCE
from .processes import Process

NAME = "node-{}"


def name_of(number: int) -> str:
    return NAME.format(number)


class Node:
    """One machine. Its disk survives the loss of power, as a real one's does."""

    def __init__(self, paths: Paths, network: Network, number: int) -> None:
        self.paths = paths
        self.network = network
        self.number = number
        self.name = name_of(number)
        self.suite = rootfs.suite_of(number)
        self.address = network.node_address(number)
        self.directory = paths.nodes / self.name
        self.cgroup = Cgroup(f"{network.cgroup}/{self.name}")
        self.supervisors = Cgroup(f"{network.cgroup}/supervisors")
        self.supervisor = Process(self.name, paths.run / f"{self.name}.json", paths.logs / f"{self.name}.log")

    @property
    def exists(self) -> bool:
        return (self.directory / "complete").exists()

    @property
    def powered(self) -> bool:
        """Whether any of its processes runs."""
        return bool(self.cgroup.processes())

    def make(self, authority: Authority, server: str) -> None:
        """Make its disk, unless it has one."""
        if self.exists:
            return
        trees.remove(self.directory)
        for name in ("upper", "work", "root"):
            (self.directory / name).mkdir(parents=True)
        spec = node_files.NodeSpec(self.name, self.number, self.address, self.network.gateway, server)
        identity = authority.client(f"system:node:{self.name}", ["system:nodes"])
        public = self.paths.ssh_key.with_suffix(".pub").read_text()
        upper = self.directory / "upper"
        for path, file in node_files.files(spec, identity, authority.certificate, public).items():
            target = upper / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(file.mode)
        for path, destination in node_files.links().items():
            target = upper / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(destination)
        # Whatever the umask: users other than root need it, too.
        for directory, _names, _files in os.walk(upper):
            Path(directory).chmod(0o755)
        # sshd refuses keys in a directory that other users may write.
        (upper / "root").chmod(0o700)
        (upper / "root/.ssh").chmod(0o700)
        (self.directory / "complete").touch()

    def power_on(self) -> None:
        """Switch it on; does nothing if it is on."""
        if self.supervisor.pid() is not None:
            return
        # A machine without its supervisor would not come back from a reboot.
        self.power_off()
        self.supervisors.make()
        unshare = ["unshare", "--mount", "--propagation=private", "--"]
        self.supervisor.start(
            self.supervisors.command([*unshare, sys.executable, "-m", "lab", "supervise", self.name]),
            env={
                **os.environ,
                "HOLDFAST_LAB": str(self.paths.root),
                "HOLDFAST_LAB_CACHE": str(self.paths.cache),
                "PYTHONPATH": str(PACKAGE.parent),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )

    def power_off(self) -> None:
        """Cut the power: nothing inside notices."""
        self.supervisor.kill()
        self.cgroup.kill()
        self.cgroup.remove()

    def remove(self) -> None:
        """Remove it with its disk."""
        self.power_off()
        trees.remove(self.directory)

    def ssh_arguments(self) -> list[str]:
        return [
            *("-i", str(self.paths.ssh_key)),
            *("-o", "StrictHostKeyChecking=no"),
            *("-o", "UserKnownHostsFile=/dev/null"),
            *("-o", "LogLevel=ERROR"),
            *("-o", "IdentitiesOnly=yes"),
            # A node without power answers nothing: ssh must notice by itself.
            *("-o", "ServerAliveInterval=2"),
            *("-o", "ServerAliveCountMax=3"),
        ]

    def ssh(self, command: str, timeout: float = PATIENCE) -> str:
        argv = ["ssh", *self.ssh_arguments(), "-o", "ConnectTimeout=60", "-o", "BatchMode=yes"]
        return run([*argv, f"root@{self.address}", command], timeout=timeout)

    def ask_to_reboot(self, *options: str) -> None:
        """Run ``systemctl reboot`` on the node."""
        self.ask_to_end(f"systemctl reboot {' '.join(options)}")

    def ask_to_end(self, command: str) -> None:
        """Run a command that ends this boot. On a busy machine, the connection may end before the command does."""
        with contextlib.suppress(LabError):
            self.ssh(f"(sleep 0.2; {command}) >/dev/null 2>&1 & sleep 0.1")

    def wait_boot_id(self, timeout: float = PATIENCE) -> str:
        """Wait until a login works; return the boot ID found then."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                return self.ssh("cat /proc/sys/kernel/random/boot_id", timeout=20).strip()
            except LabError as error:
                if self.supervisor.pid() is None:
                    raise LabError(f"{self.name} switched off; its console says:\n{self.supervisor.tail()}") from error
                if time.monotonic() > deadline:
                    message = f"{self.name} accepts no login after {timeout:.0f} s ({error}); its console says:"
                    raise LabError(f"{message}\n{self.supervisor.tail()}") from error
            time.sleep(0.5)


def existing(paths: Paths, network: Network) -> list[Node]:
    """The nodes that have a disk, in order."""
    numbers = sorted(int(path.name.rpartition("-")[2]) for path in _directories(paths))
    return [Node(paths, network, number) for number in numbers]


def _directories(paths: Paths) -> list[Path]:
    return [path for path in paths.nodes.glob(NAME.format("*")) if path.name.rpartition("-")[2].isdigit()]
