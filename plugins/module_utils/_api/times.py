# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times as the Kubernetes API writes them (RFC 3339)."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def to_text(moment: datetime) -> str:
    """RFC 3339 with microseconds, the form of Kubernetes' MicroTime."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str) -> datetime:
    """Read a Kubernetes Time or MicroTime.

    Raises:
        ValueError: The text is neither.
    """
    moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def seconds_between(earlier: datetime, later: datetime) -> float:
    return (later - earlier) / timedelta(seconds=1)
