# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes that have to leave a node together with its pods."""

from __future__ import annotations

from collections.abc import Iterable

from .._api import paths
from .._api.cluster import Cluster
from .._api.objects import Object
from .._api.watch import Deadline, Follower, Listed
from .rules import Pod


def persistent_volumes(cluster: Cluster, moving: Iterable[Pod], staying: Iterable[Pod]) -> set[str]:
    """Names of the PersistentVolumes that only the moving pods use."""
    kept = {(pod.namespace, claim) for pod in staying for claim in pod.claims}
    wanted = {(pod.namespace, claim) for pod in moving for claim in pod.claims} - kept
    bound = (cluster.find(paths.claim(namespace, name)) for namespace, name in sorted(wanted))
    return {claim["spec"]["volumeName"] for claim in bound if claim and claim["spec"].get("volumeName")}


def wait_until_detached(cluster: Cluster, node: str, volumes: set[str], deadline: Deadline) -> dict[str, str]:
    """Watch until no VolumeAttachment binds one of the volumes to the node.

    Only absence counts: ``status.attached: false`` does not mean that the volume is detached.

    Returns:
        The names of the VolumeAttachments left at the deadline, each with the name of its PersistentVolume; else empty.
    """
    left: dict[str, str] = {}
    if not volumes:
        return left

    def ours(item: Object) -> Object | None:
        volume = (item["spec"].get("source") or {}).get("persistentVolumeName")
        mine = item["spec"]["nodeName"] == node and volume in volumes
        return {"name": item["metadata"]["name"], "volume": volume} if mine else None

    for news in Follower(cluster, paths.VOLUME_ATTACHMENTS, deadline, keep=ours):
        if isinstance(news, Listed):
            left = {item["name"]: item["volume"] for item in news.items if item}
        elif news.object is not None and news.deleted:
            left.pop(news.object["name"], None)
        elif news.object is not None:
            left[news.object["name"]] = news.object["volume"]
        if not left:
            break
    return left
