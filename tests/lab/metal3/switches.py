# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's nodes as a management controller sees them: their power, and their power button."""

from __future__ import annotations

import contextlib
import time
import uuid
from datetime import datetime, timezone
from typing import Any, Protocol

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import retry_conflicts

from .. import kwok
from ..cluster import Lab
from ..errors import LabError
from ..progress import say


class Switch(Protocol):
    """One machine. Every method may be called again."""

    def powered(self) -> bool: ...

    def on(self) -> None: ...

    def off(self) -> None:
        """Cut the power at once: no program on the machine notices."""

    def press(self) -> None:
        """Press the power button: the machine shuts itself down, if it can. Returns before that."""

    def restart(self) -> None:
        """As the button, but the machine starts again."""


class RealSwitch:
    """A systemd-nspawn machine of the lab."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab = lab
        self._name = name

    def powered(self) -> bool:
        node = self._lab.node(self._name)
        # While it reboots, it has no process for a moment. Its power is on all the same.
        return node.supervisor.pid() is not None or node.powered

    def on(self) -> None:
        self._lab.power_on(self._name)

    def off(self) -> None:
        self._lab.power_off(self._name)

    def press(self) -> None:
        self._say("poweroff")

    def restart(self) -> None:
        self._say("reboot")

    def _say(self, what: str) -> None:
        # As logind does when the button is pressed: it refuses while a lock blocks it, for root too.
        try:
            self._lab.ssh(self._name, f"systemctl {what} --check-inhibitors=yes")
        except LabError as error:
            # The connection ends with the machine. Whether the machine obeyed shows in its power.
            say(f"{self._name}: {what}: {error}")


class SimulatedSwitch:
    """A node that kwok plays. Off means that nothing renews its Lease or runs its pods."""

    # How long a machine takes to shut down, and to boot.
    SECONDS = 1.0

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._labels: dict[str, str] = {}

    def powered(self) -> bool:
        node = self._cluster.find(paths.node(self._name))
        if node is None:
            return False
        self._labels = node["metadata"].get("labels") or {}
        return self._labels.get(kwok.POWER) != kwok.OFF

    def on(self) -> None:
        if self.powered():
            return
        time.sleep(self.SECONDS)
        self._register()
        self._report("True", "KubeletReady", "kubelet is posting ready status", bootID=str(uuid.uuid4()))
        self._mark(None)

    def _register(self) -> None:
        """Register as a kubelet without a Node does. A node that was never seen can't boot."""
        if self._labels and self._cluster.find(paths.node(self._name)) is None:
            labels = {key: value for key, value in self._labels.items() if key != kwok.POWER}
            self._cluster.create(paths.NODES, kwok.node(self._name, labels))

    def off(self) -> None:
        self._mark(kwok.OFF)

    def press(self) -> None:
        if self.powered() and not self._hangs():
            self._report("False", "KubeletNotReady", "node is shutting down")
            time.sleep(self.SECONDS)
            self.off()

    def restart(self) -> None:
        self.press()
        self.on()

    def _hangs(self) -> bool:
        node = self._cluster.find(paths.node(self._name))
        return node is not None and (node["metadata"].get("labels") or {}).get(kwok.POWER) == kwok.HUNG

    def _mark(self, power: str | None) -> None:
        with contextlib.suppress(NotFound):
            self._cluster.merge(paths.node(self._name), {"metadata": {"labels": {kwok.POWER: power}}})

    def _report(self, status: str, reason: str, message: str, **info: str) -> None:
        """Report as its kubelet would."""

        def attempt() -> None:
            node = self._cluster.get(paths.node(self._name))
            now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
            ready = {"type": "Ready", "status": status, "reason": reason, "message": message, **times}
            others = [item for item in node["status"].get("conditions") or [] if item["type"] != "Ready"]
            change: dict[str, Any] = {"conditions": [*others, ready]}
            if info:
                change["nodeInfo"] = info
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            self._cluster.merge(f"{paths.node(self._name)}/status", {"metadata": version, "status": change})

        # A node that was removed meanwhile reports nothing.
        with contextlib.suppress(NotFound):
            retry_conflicts(attempt)


def switch(lab: Lab, cluster: Cluster, name: str) -> Switch:
    """Return the switch of a node of the lab, real or simulated."""
    if name in lab.nodes:
        return RealSwitch(lab, name)
    return SimulatedSwitch(cluster, name)
