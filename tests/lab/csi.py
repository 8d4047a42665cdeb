# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A CSI driver on real nodes: with it their kubelets mount volumes that ``metal3/attacher.py`` attaches."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from . import programs
from .cluster import Lab
from .errors import LabError
from .node_files import PROGRAMS

_PROGRAM = "lab-csi"
_UNIT = """[Unit]
Description=CSI driver {driver}
Before=kubelet.service

[Service]
ExecStart={programs}/{program} --driver={driver} --node={node}
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
"""


class Mounter:
    """One driver. It runs again after a boot, as a DaemonSet's driver would."""

    def __init__(self, lab: Lab, driver: str) -> None:
        self._lab = lab
        self._driver = driver
        self._unit = f"lab-csi-{driver.partition('.')[0]}.service"

    def install(self, nodes: Iterable[str]) -> None:
        """Start it on these nodes; their kubelets register it a moment later."""
        self._lab.provide([programs.CSI])
        with self._lab.building():
            programs.place(self._lab.bin / _PROGRAM, self._lab.paths.node_bin / _PROGRAM)
        for node in nodes:
            unit = _UNIT.format(driver=self._driver, programs=PROGRAMS, program=_PROGRAM, node=node)
            write = f"printf %s {shlex.quote(unit)} > /etc/systemd/system/{self._unit}"
            self._lab.ssh(node, f"{write} && systemctl daemon-reload && systemctl --quiet enable --now {self._unit}")

    def remove(self, nodes: Iterable[str]) -> None:
        """Remove the driver from these nodes.

        Raises:
            LabError: A node can't be reached. The driver stays there, and on the nodes after it.
        """
        for node in nodes:
            sockets = (
                f"/var/lib/kubelet/plugins/{self._driver} /var/lib/kubelet/plugins_registry/{self._driver}-reg.sock"
            )
            disable = f"systemctl --quiet disable --now {self._unit}; rm -f /etc/systemd/system/{self._unit}"
            try:
                self._lab.ssh(node, f"{disable}; rm -rf {sockets}; systemctl daemon-reload")
            except LabError as error:
                raise LabError(f"{node} keeps the CSI driver {self._driver}: {error}") from error
