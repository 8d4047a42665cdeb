# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others write, within bounds: how long a text is, and which times are believed.

The API server checks neither the length of a ``holderIdentity`` nor the sense of an ``acquireTime``, so each is checked
where it enters. The node agent has this file too, as a link, because both must name a hold alike: it uses nothing but
Python's own library, and Python 3.9 is enough.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

# As long as the longest name that Kubernetes allows.
LONGEST = 253
_DIGITS = 16
# Kubernetes did not exist before.
_FIRST_YEAR = 2014


def digest(text: str) -> str:
    """A short name for a text of any length."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def cut(text: str, longest: int = LONGEST) -> str:
    """A text that is too long, as its first characters and a hash: texts that differ stay different.

    A text that was cut before stays as it is.
    """
    return text if len(text) <= longest + 1 + _DIGITS else f"{text[:longest]}~{digest(text)}"


def some(items: Collection[str], limit: int = 10, separator: str = ", ") -> str:
    """The first items, and how many more there are."""
    shown = list(items)[:limit]
    left_out = len(items) - len(shown)
    return separator.join([*shown, *([f"and {left_out} more"] if left_out else [])])


def bounded(data: Mapping[str, Any], items: int = 100, longest: int = 1000) -> dict[str, Any]:
    """Plain data to be written: each text is cut, each list has a limit, and ``left_out`` says how many are missing."""
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
    """What is known with what is new, which is bounded; and of both, how many are left out."""
    fresh = bounded(news)
    old = {name: count for name, count in (known.get("left_out") or {}).items() if name.partition(".")[0] not in news}
    left_out = {**old, **fresh.pop("left_out", {})}
    rest = {name: value for name, value in known.items() if name != "left_out"}
    return {**rest, **fresh, **({"left_out": left_out} if left_out else {})}


def moment(text: object) -> datetime | None:
    """Read a Kubernetes Time or MicroTime; nothing where it is neither, or no time at which anything happened."""
    try:
        # Python before 3.11 reads no Z.
        found = datetime.fromisoformat(str(text).strip().replace("Z", "+00:00"))
        known = found if found.tzinfo else found.replace(tzinfo=timezone.utc)
        # Near the ends of the calendar a time has no equivalent in UTC.
        return known if known.astimezone(timezone.utc).year >= _FIRST_YEAR else None
    except (ValueError, OverflowError):
        return None


def seconds_since(text: object, now: datetime) -> float:
    """How long ago a time is; 0 for one that is to come, or that :func:`moment` does not believe."""
    since = moment(text)
    return max(0.0, (now - since) / timedelta(seconds=1)) if since else 0.0


def oldest_first(text: str) -> tuple[bool, str]:
    """Sorts times: Kubernetes writes them so that they sort as text, and one that is not believed comes last."""
    return moment(text) is None, text


# -- how a hold is named ----------------------------------------------------------------------------------------------


def hold_entry(namespace: str, holder: str) -> str:
    """How the reason of the condition ShutdownInhibited names a hold."""
    return f"{namespace}/{cut(holder).replace(',', '%2C')}"


def short_entry(entry: str) -> str:
    """How the reason names a hold for whose whole entry there is no room. A whole entry has a slash, this has none."""
    return f"sha256:{digest(entry)}"


def reason_of(entries: Collection[str], room: int) -> tuple[str, int]:
    """The reason that names these holds in their order, and how many of them by their short entries.

    Each is named, so that each can be confirmed, however many there are. The longest are shortened first, so that
    a name of usual length is not lost to others.

    Args:
        entries: Oldest first.
        room: For how many characters of whole entries there is room.
    """
    whole = set()
    for entry in sorted(set(entries), key=lambda item: (len(item), item)):
        room -= len(entry) + 1
        if room < 0:
            break
        whole.add(entry)
    named = [entry if entry in whole else short_entry(entry) for entry in entries]
    return ",".join(named), len([entry for entry in entries if entry not in whole])


def forms(entry: str) -> frozenset[str]:
    """The entries of a reason that name this hold."""
    return frozenset({entry, short_entry(entry)})
