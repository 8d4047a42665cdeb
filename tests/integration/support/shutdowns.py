# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shutdowns of real nodes with the real kubelet, as their pods recorded them."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from integration.support.agent import until
from integration.support.world import IMAGE

from lab import Lab

CONFIG = "/var/lib/kubelet/config.yaml"
STATE = "/var/lib/kubelet/graceful_node_shutdown_state"
# Survives the pods and the boot.
RECORDS = "/var/log/holdfast-test"
_MANAGER = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"

# Times are seconds since the machine started; all nodes of the lab share that clock.
_LIFE = """
now() { read -r up _rest < /proc/uptime; }
say() { now; echo "$up $1" >> "/record/$NAME"; }
hundredths() { now; echo "${up%.*}${up#*.}"; }
work() {
    stop=$(( $(hundredths) + $1 * 100 ))
    while [ "$(hundredths)" -lt "$stop" ]; do sleep 0.1; say works; done
}
"""
_MAIN = """
trap 'say terminated; work "$SECONDS_TO_END"; say ended; exit "$STATUS"' TERM
say started
while :; do sleep 3600 & wait; done
"""


@dataclass(frozen=True)
class Record:
    """What a pod recorded; times in seconds, and none where it did not happen.

    Attributes:
        started: The pod runs.
        hooked: Its preStop hook began.
        unhooked: The hook ended.
        terminated: It got SIGTERM.
        ended: It ended by itself.
        last: Its last sign of life; it gives one every tenth of a second.
    """

    started: float | None
    hooked: float | None
    unhooked: float | None
    terminated: float | None
    ended: float | None
    last: float

    @classmethod
    def read(cls, text: str) -> Record:
        lines = [line.split() for line in text.splitlines()]
        # The first time counts: systemd itself sends SIGTERM again to the processes that are left.
        words = {word: float(when) for when, word in reversed(lines)}
        names = ("started", "hooked", "unhooked", "terminated", "ended")
        return cls(*(words.get(name) for name in names), last=float(lines[-1][0]))

    @property
    def begun(self) -> float:
        """When the turn of its group began."""
        found = self.terminated if self.hooked is None else self.hooked
        assert found is not None, self
        return found

    @property
    def took(self) -> float:
        """Seconds from SIGTERM to its last sign of life."""
        assert self.terminated is not None, self
        return self.last - self.terminated


class RealNode:
    """One real node, its kubelet, and what pods record on it."""

    def __init__(self, lab: Lab, ansible: Any, name: str, namespace: str) -> None:
        self.lab, self.ansible, self.name = lab, ansible, name
        self.records = f"{RECORDS}/{namespace}"

    def ssh(self, command: str) -> str:
        return self.lab.ssh(self.name, command)

    @property
    def boot_id(self) -> str:
        return self.ssh("cat /proc/sys/kernel/random/boot_id").strip()

    # -- its kubelet

    @contextlib.contextmanager
    def periods(self, **wanted: Any) -> Iterator[None]:
        """Set these grace periods on the node with our module; afterwards restore everything."""
        self.lab.wait_ready([self.name])
        before = self.ssh(f"cat {CONFIG}")
        try:
            self._set(**wanted)
            yield
        finally:
            self.lab.wait_ready([self.name])
            self._set(state="absent")
            self.ssh(f"rm -rf {self.records}")
        assert self.ssh(f"cat {CONFIG}") == before

    def _set(self, **wanted: Any) -> None:
        """Set both sides, and run no other task: other tests are about the rest of the role."""
        results, output = self.ansible.tasks(
            [{"holdfast.kubernetes.graceful_shutdown": wanted}], "-i", str(self.lab.inventory), hosts=self.name
        )
        assert not results[0].get("failed"), output
        if results[0]["restart_needed"]:
            self.ssh("systemctl restart kubelet")
        until(self.delays, lambda: self.ssh("journalctl --no-pager --unit=kubelet --lines=5"))
        self.lab.wait_ready([self.name])

    def delays(self) -> bool:
        """Whether the running kubelet has its lock."""
        pid = int(self.ssh("systemctl show --property=MainPID --value kubelet"))
        return any(
            (item[0], item[1], item[3], item[5]) == ("shutdown", "kubelet", "delay", pid)
            for item in self._busctl(f"call {_MANAGER} ListInhibitors")[0]
        )

    def preparing(self) -> bool:
        """Whether logind is about to shut the node down."""
        return bool(self._busctl(f"get-property {_MANAGER} PreparingForShutdown"))

    def _busctl(self, command: str) -> Any:
        return json.loads(self.ssh(f"busctl --json=short {command}"))["data"]

    def last_shutdown(self) -> str:
        """What the kubelet remembers of the last shutdown."""
        return self.ssh(f"cat {STATE} 2>/dev/null || true")

    def heard(self, boot: int = 0) -> bool:
        """Whether the kubelet's journal has the shutdown; in this boot, or an earlier one (-1)."""
        return "node is shutting down" in self.ssh(f"journalctl --boot={boot} --no-pager --unit=kubelet")

    def was_cut_short(self) -> bool:
        """Whether logind continued the last shutdown although a lock still delayed it."""
        command = "journalctl --boot=-1 --no-pager --unit=systemd-logind"
        return "inhibitor timeout is reached" in self.ssh(command)

    def ask_to_reboot(self) -> None:
        self.lab.node(self.name).ask_to_reboot()

    def wait_for_a_new_boot(self, before: str) -> None:
        until(lambda: self.lab.node(self.name).wait_boot_id() != before)
        self.lab.wait_ready([self.name])

    # -- pods on it

    def pod(self, name: str, seconds: int, *, hook: int = 0, status: int = 0, **more: Any) -> dict[str, Any]:
        """The spec of a pod that takes this many seconds to end, after a hook that takes its own time."""
        environment = {"NAME": name, "SECONDS_TO_END": str(seconds), "STATUS": str(status)}
        container: dict[str, Any] = {
            "name": "app",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", _LIFE + _MAIN],
            "env": [{"name": key, "value": value} for key, value in environment.items()],
            "volumeMounts": [{"name": "record", "mountPath": "/record"}],
        }
        if hook:
            script = f"{_LIFE}\nsay hooked; work {hook}; say unhooked"
            container["lifecycle"] = {"preStop": {"exec": {"command": ["sh", "-c", script]}}}
        return {
            "containers": [container],
            "volumes": [{"name": "record", "hostPath": {"path": self.records, "type": "DirectoryOrCreate"}}],
            "terminationGracePeriodSeconds": 60,
            **more,
        }

    def written(self) -> dict[str, Record]:
        """What each pod recorded, by its name."""
        text = self.ssh(f'cd {shlex.quote(self.records)} && for name in *; do echo "= $name"; cat $name; done')
        parts = [part.partition("\n") for part in re.split(r"^= ", text, flags=re.MULTILINE)[1:]]
        return {name: Record.read(content) for name, _line, content in parts}
