# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directories and files of the lab."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent.parent


@dataclass(frozen=True)
class Paths:
    """The directory of one lab. What takes long to build is in the user's cache, which all checkouts share."""

    root: Path
    cache: Path

    @classmethod
    def default(cls) -> Paths:
        """Return the lab of this checkout, or the one that HOLDFAST_LAB and HOLDFAST_LAB_CACHE name."""
        root = os.environ.get("HOLDFAST_LAB") or CHECKOUT / "build" / "lab"
        cache = os.environ.get("HOLDFAST_LAB_CACHE") or Path.home() / ".cache" / "holdfast-lab"
        return cls(Path(root).resolve(), Path(cache).resolve())

    @property
    def lock(self) -> Path:
        """The lock is outside the root, because the root is removed with the lab."""
        return self.root.with_name(self.root.name + ".lock")

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def node_bin(self) -> Path:
        """The directory that the nodes see as /opt/k8s."""
        return self.root / "node-bin"

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def conf(self) -> Path:
        return self.root / "conf"

    @property
    def nodes(self) -> Path:
        return self.root / "nodes"

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def inventory(self) -> Path:
        return self.root / "inventory.yml"

    @property
    def ssh_key(self) -> Path:
        return self.root / "ssh" / "id_ed25519"

    def make(self) -> None:
        """Make the directories. They are private because they hold keys."""
        self.root.mkdir(parents=True, exist_ok=True)
        for path in (self.bin, self.node_bin, self.logs, self.run, self.conf, self.nodes):
            path.mkdir(exist_ok=True)
        for path in (self.pki, self.ssh_key.parent):
            path.mkdir(mode=0o700, exist_ok=True)
