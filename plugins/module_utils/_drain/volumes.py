# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes that have to leave a node together with its pods."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure
from .._api.objects import Object
from .._api.watch import Deadline, Follower, Listed, wait_for
from .rules import Pod


def persistent_volumes(cluster: Cluster, moving: Iterable[Pod], staying: Iterable[Pod]) -> set[str]:
    """Names of the PersistentVolumes that only the moving pods use."""
    kept = {(pod.namespace, claim) for pod in staying for claim in pod.claims}
    wanted = {(pod.namespace, claim) for pod in moving for claim in pod.claims} - kept
    bound = (cluster.find(paths.persistent_volume_claim(namespace, name)) for namespace, name in sorted(wanted))
    return {claim["spec"]["volumeName"] for claim in bound if claim and claim["spec"].get("volumeName")}


def wait_until_detached(cluster: Cluster, node: str, volumes: set[str], deadline: Deadline) -> dict[str, str]:
    """Watch until no VolumeAttachment binds one of the volumes to the node.

    Only absence counts: ``status.attached: false`` does not mean that the volume is detached.

    Returns:
        The names of the VolumeAttachments left at the deadline, each with the name of its PersistentVolume; else empty.
    """
    if not volumes:
        return {}
    names = _attachments_of(cluster, node, volumes)
    if names is None:
        return _watch_all(cluster, node, volumes, deadline)
    gone = {
        name: wait_for(cluster, paths.VOLUME_ATTACHMENTS, name, lambda item: item is None, deadline) is None
        for name in names
    }
    return {name: volume for name, volume in names.items() if not gone[name]}


def attachment_name(driver: str, handle: str, node: str) -> str:
    """Name of the VolumeAttachment of a CSI volume. Source: getAttachmentName in pkg/volume/csi of Kubernetes."""
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"


def _attachments_of(cluster: Cluster, node: str, volumes: set[str]) -> dict[str, str] | None:
    """The volumes by the names of their VolumeAttachments; ``None`` if not all names can be known."""
    found: dict[str, str] = {}
    for name in sorted(volumes):
        try:
            volume = cluster.find(paths.one(paths.PERSISTENT_VOLUMES, name))
        except ApiFailure as error:
            if error.status != 403:
                raise
            # Earlier versions did not need the right to read it.
            return None
        csi = ((volume or {}).get("spec") or {}).get("csi")
        if not csi:
            return None
        found[attachment_name(csi["driver"], csi["volumeHandle"], node)] = name
    return found


def _watch_all(cluster: Cluster, node: str, volumes: set[str], deadline: Deadline) -> dict[str, str]:
    left: dict[str, str] = {}
    for attached in follow_attachments(cluster, node, deadline):
        left = {name: volume for name, volume in attached.items() if volume in volumes}
        if not left:
            break
    return left


def follow_attachments(cluster: Cluster, node: str, deadline: Deadline) -> Iterator[dict[str, str]]:
    """The VolumeAttachments of a node, each with its PersistentVolume: now, and after each change."""
    attached: dict[str, str] = {}

    def ours(item: Object) -> Object | None:
        volume = (item["spec"].get("source") or {}).get("persistentVolumeName")
        return {"name": item["metadata"]["name"], "volume": volume} if item["spec"]["nodeName"] == node else None

    for news in Follower(cluster, paths.VOLUME_ATTACHMENTS, deadline, keep=ours):
        if isinstance(news, Listed):
            attached = {item["name"]: item["volume"] for item in news.items if item}
        elif news.object is not None:
            attached.pop(news.object["name"], None)
            attached.update({} if news.deleted else {news.object["name"]: news.object["volume"]})
        yield attached
