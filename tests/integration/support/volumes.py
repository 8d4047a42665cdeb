# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes of a test's own driver, which the real attach-detach controller manages."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from integration.support.metal3 import environment

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline, Follower, Listed
from lab import Lab
from lab.csi import Mounter
from lab.metal3.attacher import Delays
from lab.patience import PATIENCE

_VOLUMES = "/api/v1/persistentvolumes"
_DRIVERS = "/apis/storage.k8s.io/v1/csinodes"


@contextlib.contextmanager
def driver(world: Any, lab: Lab, folder: Path, *real: str) -> Iterator[Volumes]:
    """Run a driver with an attacher; afterwards remove its attachments. Real nodes mount only if they are named."""
    found = Volumes(world, lab, folder)
    mounter = Mounter(lab, found.driver)
    if real:
        mounter.install(real)
    found.start()
    try:
        for node in real:
            world.until(_DRIVERS, node, lambda item: item is not None and found.driver in drivers(item))
        yield found
    finally:
        if real:
            # Their kubelets need the driver to unmount what the pods had mounted.
            found.empty()
        found.close()
        mounter.remove(real)


class Volumes:
    """All volumes of one driver, for one world's namespace and nodes."""

    def __init__(self, world: Any, lab: Lab, folder: Path) -> None:
        self.world = world
        self.lab = lab
        self.driver = f"{world.namespace}.lab.holdfast.dev"
        self._delays = folder / "delays.json"
        self._log = folder / "attacher.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.delays()

    def delays(self, attach: float | None = 0.0, detach: float | None = 0.0) -> None:
        """Set the seconds that attaching and detaching take from now on; None is never."""
        Delays(attach, detach).save(self._delays)

    def start(self) -> None:
        if self._process:
            return
        words = ["--driver", self.driver, "--namespace", self.world.namespace, "--delays", str(self._delays)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", "lab", "attacher", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(self.lab),
            )

    def stop(self) -> None:
        """Stop the driver: nothing is attached or detached."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def empty(self) -> None:
        """The pods end by themselves."""
        for resource in ("statefulsets", "pods"):
            self.world.cluster.delete(self.world.path(resource))
        self.until(lambda found: not found)

    def close(self) -> None:
        """Delete the pods at once, so that the controller wants nothing attached any more."""
        for resource in ("statefulsets", "pods"):
            with contextlib.suppress(ApiFailure, NotFound):
                self.world.cluster.delete(self.world.path(resource), {"gracePeriodSeconds": 0})
        self.stop()
        for item in self.attachments():
            path = paths.one(paths.VOLUME_ATTACHMENTS, item["metadata"]["name"])
            with contextlib.suppress(ApiFailure, NotFound):
                self.world.cluster.merge(path, {"metadata": {"finalizers": None}})
                self.world.cluster.delete(path)

    def statefulset(self, app: str, replicas: int, **template: Any) -> None:
        """Make a StatefulSet on this world's nodes, one volume for each pod; wait until the volumes are attached.

        Args:
            template: Further fields of the pods' specification, such as ``tolerations``.
        """
        self.adopt()
        for number in range(replicas):
            self._volume(f"data-{app}-{number}")
        spec = {"nodeSelector": self.world.pool, **template}
        made = self.world.template(app, **spec)
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        }
        self.world.create(
            "statefulsets",
            app,
            {
                "spec": {
                    "replicas": replicas,
                    "serviceName": app,
                    "podManagementPolicy": "Parallel",
                    "selector": {"matchLabels": {"app": app}},
                    "template": made,
                    "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
                }
            },
        )
        self.until(lambda found: len(found) == replicas and all(map(attached, found)))
        self.until_ready(app, replicas)

    def until_ready(self, app: str, replicas: int) -> None:
        self.world.until(
            self.world.path("statefulsets"),
            app,
            lambda item: item is not None and item["status"].get("readyReplicas", 0) == replicas,
        )

    def adopt(self) -> None:
        """Mark this world's nodes as a kubelet does: without the mark the controller ignores the volumes of a node."""
        managed = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
        pool = ",".join(f"{key}={value}" for key, value in self.world.pool.items())
        for node in self.world.cluster.items(paths.NODES, label_selector=pool):
            self.world.cluster.merge(paths.node(node["metadata"]["name"]), {"metadata": {"annotations": managed}})

    def _volume(self, claim: str) -> None:
        name = f"{self.world.namespace}-{claim}"
        self.world.cluster.create(
            _VOLUMES,
            {
                "metadata": {"name": name},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": "",
                    "claimRef": {"namespace": self.world.namespace, "name": claim},
                    "csi": {"driver": self.driver, "volumeHandle": name},
                },
            },
        )
        self.world.made.objects.append(paths.one(_VOLUMES, name))

    def attachments(self, node: str | None = None) -> list[Object]:
        """The VolumeAttachments of this driver, on all nodes or on one."""
        found = self.world.cluster.items(paths.VOLUME_ATTACHMENTS)
        return [item for item in found if self._belongs(item, node)]

    def until(self, condition: Callable[[list[Object]], bool], node: str | None = None) -> list[Object]:
        """Wait until the VolumeAttachments of this driver, on all nodes or on one, fulfil a condition."""
        known: dict[str, Object] = {}
        for news in Follower(self.world.cluster, paths.VOLUME_ATTACHMENTS, Deadline(PATIENCE)):
            if isinstance(news, Listed):
                known = {item["metadata"]["name"]: item for item in news.items if self._belongs(item, node)}
            elif news.deleted:
                known.pop(news.object["metadata"]["name"], None)
            elif self._belongs(news.object, node):
                known[news.object["metadata"]["name"]] = news.object
            if condition(list(known.values())):
                return list(known.values())
        raise AssertionError(f"not seen in time: {known}")

    def _belongs(self, item: Object, node: str | None) -> bool:
        spec = item["spec"]
        return spec["attacher"] == self.driver and node in (None, spec["nodeName"])


def drivers(item: Object) -> set[str]:
    """The drivers that a kubelet knows, by its CSINode."""
    return {found["name"] for found in item["spec"].get("drivers") or []}


def attached(item: Object) -> bool:
    return (item.get("status") or {}).get("attached") is True


def attach(world, node):
    """Attach a volume to the node as the attach-detach controller would."""
    attachment = {
        "metadata": {"name": f"va-{node}"},
        "spec": {"attacher": "lab", "nodeName": node, "source": {"persistentVolumeName": f"pv-{node}"}},
    }
    world.cluster.create(paths.VOLUME_ATTACHMENTS, attachment)
    path = paths.one(paths.VOLUME_ATTACHMENTS, f"va-{node}")
    world.made.objects.append(path)
    world.cluster.merge(f"{path}/status", {"status": {"attached": True}})


def detach(world, node):
    world.cluster.delete(paths.one(paths.VOLUME_ATTACHMENTS, f"va-{node}"))
