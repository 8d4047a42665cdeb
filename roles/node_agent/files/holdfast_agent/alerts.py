# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about holds that are held too long: said once, never ended."""

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
    """How long it has been held; 0 where its holder's clock is ahead, or its time is absurd."""
    return seconds_since(hold.acquired, now)


def overdue(holds: Iterable[Hold], now: datetime, timeout: int) -> list[Hold]:
    """Those held longer than ``timeout`` seconds; none where that is 0."""
    return [hold for hold in holds if timeout and held_seconds(hold, now) > timeout]


def next_due(holds: Iterable[Hold], now: datetime, timeout: int) -> float | None:
    """Seconds until the next one is overdue."""
    left = [timeout - held_seconds(hold, now) for hold in holds] if timeout else []
    return min((seconds for seconds in left if seconds >= 0), default=None)


def mark(hold: Hold) -> str:
    """Names one acquisition: whoever acquires again is told of again."""
    text = f"{hold.namespace}/{hold.holder}/{hold.acquired}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def event(hold: Hold, node: str, now: str, timeout: int) -> dict[str, Any]:
    """An Event about the Node. Its name follows from the hold, so that the server refuses to have it twice."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{node[:200]}.{mark(hold)}", "namespace": "default"},
        # The UID as the kubelet has it in its own events, which kubectl describe looks for.
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
            f"{hold.entry} has held this node since {hold.acquired}, longer than {timeout} s. Nothing ends a hold but "
            f"its holder: see whether it still works, or delete the Lease {hold.namespace}/{node}."
        )[:1024],
        "source": {"component": COMPONENT, "host": node},
        "reportingComponent": COMPONENT,
        "reportingInstance": node[:128],
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
