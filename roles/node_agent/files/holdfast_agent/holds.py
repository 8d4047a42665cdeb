# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about holds that the agent alone needs: its limit of namespaces, and the names of locks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from . import hold_rules

# Characters besides letters and digits that a lock's text keeps unquoted.
_PLAIN = "/!#$&()*+,:;=?@[]"


class Hold(hold_rules.Hold):
    """A hold and its lock."""

    @property
    def key(self) -> str:
        """The name of the lock. It stays the same if the same holder acquires the Lease again."""
        return key_of(self.namespace, self.holder)

    @property
    def why(self) -> str:
        """The lock's text, in ASCII: logind returns other characters changed after its own restart."""
        return quote(f"{self.namespace}/{self.holder}", safe=_PLAIN, errors="surrogatepass")


def key_of(namespace: str, holder: str) -> str:
    """A valid name for a descriptor in PID 1's store: short, without a colon."""
    digest = hashlib.sha256(f"{namespace}/{holder}".encode("utf-8", "surrogatepass"))
    return f"hold-{digest.hexdigest()[:32]}"


def hold_of(lease: dict[str, Any], namespaces: Iterable[str] = ()) -> Hold | None:
    """The hold that a Lease is, or None.

    Args:
        namespaces: The namespaces whose Leases may hold; empty for all.
    """
    found = hold_rules.hold_of(lease)
    allowed = tuple(namespaces)
    if found is None or (allowed and found.namespace not in allowed):
        return None
    return Hold(found.namespace, found.holder, found.acquired)


def ordered(holds: Iterable[Hold]) -> tuple[Hold, ...]:
    """Oldest first."""
    return tuple(sorted(holds, key=hold_rules.age))


def merged(first: Iterable[Hold], second: Iterable[Hold]) -> tuple[Hold, ...]:
    """The holds of both, each holder once. Where they differ, the second is right."""
    return ordered({hold.key: hold for hold in (*first, *second)}.values())
