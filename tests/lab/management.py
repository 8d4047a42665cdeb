# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second cluster, for objects that live apart from the nodes: an etcd and an API server with their own authority.

It has no controllers, so nothing is garbage-collected there and deleted namespaces stay.
"""

from __future__ import annotations

from pathlib import Path

from .cgroups import Cgroup
from .cluster import Lab
from .control_plane import ControlPlane
from .paths import Paths

_PORTS = {"api": 6444, "etcd": 2479}


class Management(ControlPlane):
    """The management cluster. It belongs to a lab that is up, and is removed with it."""

    def __init__(self, lab: Lab) -> None:
        paths = Paths(lab.paths.root / "management", lab.paths.cache)
        super().__init__(paths, lab.network, api_port=_PORTS["api"], etcd_port=_PORTS["etcd"])
        self.cgroup = Cgroup(f"{lab.network.cgroup}/management")
        self._programs = lab.paths.bin

    @property
    def kubeconfig(self) -> Path:
        return self.paths.kubeconfig

    @property
    def names(self) -> list[str]:
        return ["etcd", "kube-apiserver"]

    def start(self) -> None:
        """Start what does not run, and wait until the API answers."""
        self.paths.make()
        for name in self.names:
            link = self.paths.bin / name
            if not link.exists():
                link.symlink_to(self._programs / name)
        self.identities()
        self.cgroup.make()
        self._start("etcd", self._etcd())
        self.start_apiserver()

    def stop(self) -> None:
        for name in reversed(self.names):
            self.process(name).kill()
