# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for a CSI driver: its external-attacher, and the mounts of simulated nodes' kubelets.

Started as ``python -m lab attacher``. The real attach-detach controller makes and deletes VolumeAttachments. This
program reports when they are attached, detaches them, and maintains ``status.volumesInUse`` of the Nodes. A pod does
not wait for its volume: kwok runs it at once. On real nodes the kubelet does the rest, with the driver of ``lab.csi``.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import (
    Deadline,
    Follower,
    Listed,
    retry_conflicts,
)

from .. import kwok
from ..progress import say

_TICK = 0.1


@dataclass(frozen=True)
class Delays:
    """In seconds; None is never."""

    attach: float | None = 0.0
    detach: float | None = 0.0

    def save(self, path: Path) -> None:
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self)))
        temporary.rename(path)


def finalizer(driver: str) -> str:
    """The finalizer's name, as the real external-attacher forms it."""
    return f"external-attacher/{driver.replace('.', '-')}"


def volume_name(driver: str, handle: str) -> str:
    """A volume's name in the status of a Node."""
    return f"kubernetes.io/csi/{driver}^{handle}"


class Attacher:
    """The attacher of one driver, whose claims are all in one namespace."""

    def __init__(self, cluster: Cluster, driver: str, namespace: str, delays: Path) -> None:
        self._cluster = cluster
        self._driver = driver
        self._namespace = namespace
        self._delays = delays
        self._news: queue.Queue[Callable[[], None]] = queue.Queue()
        # Since when each action is due, by the object's name and the action.
        self._waiting: dict[tuple[str, str], float] = {}
        self._mounted: dict[str, set[str]] = {}
        self._pods: dict[str, tuple[str, frozenset[str]]] = {}

    def run(self) -> None:
        """Run until the process ends."""
        for path, heard in (
            (paths.VOLUME_ATTACHMENTS, self._attachment),
            (paths.namespaced("api/v1", self._namespace, "pods"), self._pod),
            # A node that is on again unmounts what its pods left.
            (paths.NODES, self._node),
        ):
            threading.Thread(target=self._follow, args=(path, heard), daemon=True).start()
        while True:
            with contextlib.suppress(queue.Empty):
                self._news.get(timeout=_TICK if self._waiting else None)()
            self._act()

    def _follow(self, path: str, heard: Callable[[Object, bool], None]) -> None:
        try:
            for news in Follower(self._cluster, path, Deadline(None)):
                found = (
                    [(item, False) for item in news.items]
                    if isinstance(news, Listed)
                    else [(news.object, news.deleted)]
                )
                for item, deleted in found:
                    self._news.put(lambda item=item, deleted=deleted: heard(item, deleted))  # type: ignore[misc]
        except (ApiFailure, NotFound) as error:
            say(f"attacher: {error}")
            os._exit(1)

    # -- the external-attacher

    def _attachment(self, item: Object, deleted: bool) -> None:
        if item["spec"]["attacher"] != self._driver:
            return
        name = item["metadata"]["name"]
        wanted = ""
        if not deleted:
            if item["metadata"].get("deletionTimestamp"):
                wanted = "detach"
            elif not (item.get("status") or {}).get("attached"):
                wanted = "attach"
        for what in ("attach", "detach"):
            if what != wanted:
                self._waiting.pop((name, what), None)
        if wanted:
            self._waiting.setdefault((name, wanted), time.monotonic())

    def _act(self) -> None:
        if not self._waiting:
            return
        delays = json.loads(self._delays.read_text())
        now = time.monotonic()
        for (name, what), since in list(self._waiting.items()):
            delay = delays[what]
            if delay is None or now < since + delay:
                continue
            del self._waiting[name, what]
            try:
                self._attach(name) if what == "attach" else self._detach(name)
                say(f"attacher: {what} {name}")
            except NotFound:
                pass
            except (ApiFailure, Unreachable) as error:
                say(f"attacher: {what} {name}: {error}")
                self._waiting[name, what] = now

    def _attach(self, name: str) -> None:
        path = paths.one(paths.VOLUME_ATTACHMENTS, name)
        # Before the volume is attached, so that a detach can't be forgotten.
        self._cluster.merge(path, {"metadata": {"finalizers": [finalizer(self._driver)]}})
        self._cluster.merge(f"{path}/status", {"status": {"attached": True}})

    def _detach(self, name: str) -> None:
        path = paths.one(paths.VOLUME_ATTACHMENTS, name)
        self._cluster.merge(f"{path}/status", {"status": {"attached": False}})
        self._cluster.merge(path, {"metadata": {"finalizers": None}})

    # -- the kubelets

    def _pod(self, pod: Object, deleted: bool) -> None:
        key = pod["metadata"]["uid"]
        node, before = self._pods.get(key, ("", frozenset()))
        if deleted:
            self._pods.pop(key, None)
        elif pod["spec"].get("nodeName") and not before:
            node = pod["spec"]["nodeName"]
            self._pods[key] = (node, frozenset(self._volumes(pod)))
        if node:
            self._mount(node)

    def _node(self, node: Object, deleted: bool) -> None:
        if not deleted and node["metadata"]["name"] in self._mounted:
            self._mount(node["metadata"]["name"])

    def _volumes(self, pod: Object) -> Iterable[str]:
        for volume in pod["spec"].get("volumes") or []:
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            claim = self._cluster.find(paths.persistent_volume_claim(self._namespace, name)) if name else None
            # Here a volume has the same name everywhere.
            if claim and claim["spec"].get("volumeName"):
                yield volume_name(self._driver, claim["spec"]["volumeName"])

    def _mount(self, name: str) -> None:
        """Report the volumes in use. A node that is off reports nothing, so all its volumes stay in use."""
        wanted = {volume for node, volumes in self._pods.values() if node == name for volume in volumes}
        if wanted == self._mounted.get(name, set()):
            return

        def attempt() -> None:
            node = self._cluster.find(paths.node(name))
            # A real kubelet reports by itself.
            if node is None or not kwok.simulated(node) or kwok.power(node) in (kwok.OFF, kwok.HUNG):
                self._mounted.setdefault(name, set())
                return
            ours = volume_name(self._driver, "")
            others = [item for item in node["status"].get("volumesInUse") or [] if not item.startswith(ours)]
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            change: dict[str, Any] = {"volumesInUse": [*others, *sorted(wanted)]}
            self._cluster.merge(f"{paths.node(name)}/status", {"metadata": version, "status": change})
            self._mounted[name] = wanted

        with contextlib.suppress(NotFound):
            retry_conflicts(attempt)
