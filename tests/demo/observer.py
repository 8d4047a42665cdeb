# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server saw of a rolling reboot: events in order, and the lowest number of ready replicas."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable

from kubernetes import client, config, watch

_PHASES = {
    "hold": "is held: waits for its holder",
    "slot": "asks for a slot",
    "cordon": "is cordoned",
    "drain": "is drained",
    "reboot": "reboots",
    "ready": "is back: waits until it is healthy",
    "uncordon": "is given back",
}


@dataclass
class Observer:
    """Follows Nodes and one Deployment in its own threads, until stopped."""

    kubeconfig: str
    say: Callable[[str], None]
    on_progress: Callable[[], None]
    lowest: int = 10**6
    boot_ids: dict[str, list[str]] = field(default_factory=dict)
    rebooted: set[str] = field(default_factory=set)
    phases: dict[str, str] = field(default_factory=dict)
    _shown: dict[str, tuple[str, str]] = field(default_factory=dict)
    _stopped: bool = False
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for follow in (self._follow_nodes, self._follow_deployment):
            thread = threading.Thread(target=self._again, args=(follow,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stopped = True

    def _again(self, follow: Callable[[client.ApiClient], None]) -> None:
        api = config.new_client_from_config(self.kubeconfig)
        while not self._stopped:
            try:
                follow(api)
            except Exception as error:  # noqa: BLE001
                # A broken watch must not end the observation; the list at the start of the next watch closes the gap.
                self.say(f"(the observer starts again: {error})")
                time.sleep(0.2)

    def _follow_nodes(self, api: client.ApiClient) -> None:
        for event in watch.Watch().stream(client.CoreV1Api(api).list_node, timeout_seconds=600):
            self._node(event["raw_object"])
            if self._stopped:
                return

    def _follow_deployment(self, api: client.ApiClient) -> None:
        apps = client.AppsV1Api(api)
        for event in watch.Watch().stream(apps.list_namespaced_deployment, "demo", timeout_seconds=600):
            ready = event["raw_object"].get("status", {}).get("readyReplicas", 0)
            if ready < self.lowest:
                self.lowest = ready
                self.say(f"web has {ready} ready replicas, the lowest so far")
            if self._stopped:
                return

    def _node(self, node: dict[str, Any]) -> None:
        name = node["metadata"]["name"]
        boot_id = node["status"]["nodeInfo"]["bootID"]
        known = self.boot_ids.setdefault(name, [])
        if boot_id not in known:
            known.append(boot_id)
            if len(known) > 1:
                self.say(f"{name} has a new boot ID: {boot_id}")
        record = json.loads(node["metadata"].get("annotations", {}).get("holdfast.dev/operation", "{}"))
        shown = (record.get("phase", ""), record.get("result", ""))
        if record and shown != self._shown.get(name):
            self._shown[name] = shown
            self._tell(name, *shown)

    def _tell(self, name: str, phase: str, result: str) -> None:
        self.phases[name] = phase
        if result == "rebooted":
            self.rebooted.add(name)
        self.say(f"{name} is done: {result}" if result else f"{name} {_PHASES.get(phase, phase)}")
        self.on_progress()
