# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about holds: which Leases hold the node, and how each is named."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .bounds import cut, hold_entry, oldest_first
from .config import FORBIDDEN_NAMESPACES

# What stays itself in a lock's text; letters and digits do anyway.
_PLAIN = "/!#$&()*+,:;=?@[]"


@dataclass(frozen=True)
class Hold:
    """What of a Lease matters; renewal, duration and all else in it are ignored, for a hold never lapses."""

    namespace: str
    holder: str
    acquired: str

    @property
    def key(self) -> str:
        """Names the lock. The same holder who acquires again keeps it."""
        return key_of(self.namespace, self.holder)

    @property
    def entry(self) -> str:
        """How the condition's reason names it."""
        return hold_entry(self.namespace, self.holder)

    @property
    def why(self) -> str:
        """What the lock says, in ASCII: logind gives back nothing else unchanged after it was restarted."""
        return quote(f"{self.namespace}/{self.holder}", safe=_PLAIN, errors="surrogatepass")


def key_of(namespace: str, holder: str) -> str:
    """A name that a descriptor in PID 1's store may have: short, and without a colon."""
    digest = hashlib.sha256(f"{namespace}/{holder}".encode("utf-8", "surrogatepass"))
    return f"hold-{digest.hexdigest()[:32]}"


def hold_of(lease: dict[str, Any], namespaces: Iterable[str] = ()) -> Hold | None:
    """The hold that a Lease is, if it is one.

    Args:
        namespaces: Whose Leases may hold; empty for all but the forbidden ones.
    """
    namespace = lease["metadata"]["namespace"]
    allowed = tuple(namespaces)
    if namespace in FORBIDDEN_NAMESPACES or (allowed and namespace not in allowed):
        return None
    spec = lease.get("spec") or {}
    holder, acquired = spec.get("holderIdentity"), spec.get("acquireTime")
    # A holder may be as long as an object of the API, and from here on it is written in many places.
    return Hold(namespace, cut(holder), acquired) if holder and acquired else None


def ordered(holds: Iterable[Hold]) -> tuple[Hold, ...]:
    """Oldest first."""
    return tuple(sorted(holds, key=lambda hold: (*oldest_first(hold.acquired), hold.namespace, hold.holder)))


def merged(first: Iterable[Hold], second: Iterable[Hold]) -> tuple[Hold, ...]:
    """All of both, each holder once; where they differ the second is right."""
    return ordered({hold.key: hold for hold in (*first, *second)}.values())
