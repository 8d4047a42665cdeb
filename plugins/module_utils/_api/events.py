# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events: messages that ``kubectl describe`` shows with an object."""

from __future__ import annotations

import hashlib

from . import paths
from .cluster import Cluster
from .errors import ApiFailure
from .names import COLLECTION
from .objects import Object
from .times import to_text

_LONGEST = 1024


def warning(item: Object, reason: str, message: str, *, mark: str, now: str) -> Object:
    """An Event about an object. The mark determines its name, so that the server refuses a second one."""
    metadata = item["metadata"]
    digest = hashlib.sha256(f"{metadata['uid']}/{reason}/{mark}".encode()).hexdigest()[:20]
    moment = f"{now.partition('.')[0].rstrip('Z')}Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name'][:200]}.{digest}", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": item["apiVersion"],
            "kind": item["kind"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
        "type": "Warning",
        "reason": reason,
        "message": message[:_LONGEST],
        "source": {"component": COLLECTION},
        "reportingComponent": COLLECTION,
        "reportingInstance": COLLECTION,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def warn(cluster: Cluster, item: Object, reason: str, message: str, *, mark: str) -> None:
    """Create a Warning Event about a namespaced object, once for each mark."""
    body = warning(item, reason, message, mark=mark, now=to_text(cluster.now()))
    try:
        cluster.create(paths.namespaced("api/v1", item["metadata"]["namespace"], "events"), body)
    except ApiFailure as error:
        if error.status != 409:
            raise
