# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits for values that others write: how long a text may be, and which times are plausible.

The API server checks neither the length of a ``holderIdentity`` nor the value of an ``acquireTime``, so both are
checked where they are read. The node agent shares this file, see ``_shared/__init__.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

# As long as the longest name that Kubernetes allows.
LONGEST = 253
_DIGITS = 16
# Kubernetes did not exist before these years. Near the end of the calendar a soak time has no end.
_YEARS = range(2014, 3000)


def digest(text: str) -> str:
    """A short name for a text of any length."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def cut(text: str, longest: int = LONGEST) -> str:
    """Shorten a text that is too long to its first characters and a hash, so that different texts stay different.

    A text that is already cut stays the same.
    """
    return text if len(text) <= longest + 1 + _DIGITS else f"{text[:longest]}~{digest(text)}"


def plain(text: str) -> str:
    """A text of others without control characters: these could move the cursor, or begin a line of their own."""
    return "".join(character if character.isprintable() else " " for character in text)


def some(items: Collection[str], limit: int = 10, separator: str = ", ") -> str:
    """The first items, and how many more there are."""
    shown = list(items)[:limit]
    left_out = len(items) - len(shown)
    return separator.join([*shown, *([f"and {left_out} more"] if left_out else [])])


def bounded(data: Mapping[str, Any], items: int = 100, longest: int = 1000) -> dict[str, Any]:
    """Limit plain data before it is written: cut texts, shorten lists, and count the omitted items in ``left_out``."""
    left_out: dict[str, int] = {}

    def within(value: Any, name: str) -> Any:
        if isinstance(value, str):
            return cut(value, longest)
        if isinstance(value, Mapping):
            return {key: within(item, f"{name}.{key}" if name else str(key)) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            if len(value) > items:
                left_out[name] = len(value) - items
            return [within(item, name) for item in value[:items]]
        return value

    found: dict[str, Any] = within(data, "")
    return {**found, "left_out": left_out} if left_out else found


def merged(known: Mapping[str, Any], news: Mapping[str, Any]) -> dict[str, Any]:
    """Known data, updated with new data that is limited first. ``left_out`` counts the items missing from both."""
    fresh = bounded(news)
    old = {name: count for name, count in (known.get("left_out") or {}).items() if name.partition(".")[0] not in news}
    left_out = {**old, **fresh.pop("left_out", {})}
    rest = {name: value for name, value in known.items() if name != "left_out"}
    return {**rest, **fresh, **({"left_out": left_out} if left_out else {})}


def moment(text: object) -> datetime | None:
    """Parse a Kubernetes Time or MicroTime; None if it is neither, or not plausible."""
    try:
        # Python before 3.11 can't parse Z.
        found = datetime.fromisoformat(str(text).strip().replace("Z", "+00:00"))
        known = found if found.tzinfo else found.replace(tzinfo=timezone.utc)
        # Near the ends of the calendar a time has no equivalent in UTC.
        return known if known.astimezone(timezone.utc).year in _YEARS else None
    except (ValueError, OverflowError):
        return None


def seconds_since(text: object, now: datetime) -> float:
    """Seconds since a time; 0 for a time in the future, or one that is not plausible."""
    since = moment(text)
    return max(0.0, (now - since) / timedelta(seconds=1)) if since else 0.0


def oldest_first(text: str) -> tuple[bool, str]:
    """Sort key for times. Kubernetes writes times that sort as text. A time that is not plausible comes last."""
    return moment(text) is None, text
