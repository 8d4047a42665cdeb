# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about finished pods that a node's shutdown left behind."""

from __future__ import annotations

from typing import Any

from .._api.objects import Object
from .._drain.rules import MIRROR

_BY_SHUTDOWN = ("Terminated", "NodeShutdown")
# These controllers replace such pods and ignore the old ones. Others count them, or read why they ended.
_FORGETFUL_GROUPS = ("", "apps")


def is_leftover(pod: Object) -> bool:
    """Whether the kubelet ended or refused this pod because of a shutdown, and only the object is left.

    Source: pkg/kubelet/nodeshutdown in Kubernetes 1.36 (condition DisruptionTarget with reason TerminationByKubelet;
    failed pods also have reason Terminated; a pod that is refused during the shutdown has reason NodeShutdown).
    """
    status = pod.get("status") or {}
    if status.get("phase") not in ("Succeeded", "Failed"):
        return False
    # The kubelet itself starts a static pod again, under the same name.
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        return False
    conditions = status.get("conditions") or []
    by_kubelet = any(
        item["type"] == "DisruptionTarget" and item.get("reason") == "TerminationByKubelet" for item in conditions
    )
    return by_kubelet or status.get("reason") in _BY_SHUTDOWN


def why_kept(pod: Object) -> str | None:
    """Why the object may still be needed; ``None`` if it is not."""
    owners = pod["metadata"].get("ownerReferences") or []
    owner = next((item for item in owners if item.get("controller")), None)
    if owner is None:
        return "it has no owner: no controller would create it again, and its logs would be lost"
    if owner["apiVersion"].rpartition("/")[0] not in _FORGETFUL_GROUPS:
        return f"{owner['kind']} {owner['name']} may count its pods"
    return None


def describe(pod: Object) -> dict[str, Any]:
    metadata, status = pod["metadata"], pod["status"]
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "phase": status["phase"],
        "reason": status.get("reason") or "TerminationByKubelet",
        "kept": why_kept(pod),
    }
