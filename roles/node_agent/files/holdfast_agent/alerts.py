# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about overdue holds: each is reported once, and none is ended."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from .bounds import seconds_since
from .holds import Hold

REASON = "ShutdownInhibitedTooLong"
COMPONENT = "holdfast-agent"


def held_seconds(hold: Hold, now: datetime) -> float:
    """For how long the node is held; 0 if the time is in the future or not plausible."""
    return seconds_since(hold.acquired, now)


def overdue(holds: Iterable[Hold], now: datetime, timeout: int) -> list[Hold]:
    """The holds that last longer than ``timeout`` seconds; none if that is 0."""
    return [hold for hold in holds if timeout and held_seconds(hold, now) > timeout]


def next_due(holds: Iterable[Hold], now: datetime, timeout: int) -> float | None:
    """Seconds until the next hold is overdue; None if no hold will be."""
    left = [timeout - held_seconds(hold, now) for hold in holds] if timeout else []
    return min((seconds for seconds in left if seconds >= 0), default=None)


def mark(hold: Hold) -> str:
    """Identifies one acquisition: a holder that acquires the Lease again gets another Event."""
    text = f"{hold.namespace}/{hold.holder}/{hold.acquired}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def event(hold: Hold, node: str, now: str, timeout: int) -> dict[str, Any]:
    """An Event about the Node. Its name is derived from the hold, so that the API server refuses a second one."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{node[:200]}.{mark(hold)}", "namespace": "default"},
        # The kubelet uses the name as UID in its own Events, and kubectl describe looks for that.
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "related": {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": hold.namespace,
            "name": node,
        },
        "type": "Warning",
        "reason": REASON,
        "message": (
            f"{hold.entry} has held this node since {hold.acquired}, longer than {timeout} s. Only its holder ends a "
            f"hold: check whether it still works, or delete the Lease {hold.namespace}/{node}."
        )[:1024],
        "source": {"component": COMPONENT, "host": node},
        "reportingComponent": COMPONENT,
        "reportingInstance": node[:128],
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
