# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about holds: Leases that forbid to switch a node off."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .._api.bounds import LONGEST, cut, hold_entry, oldest_first, seconds_since, some
from .._api.errors import InvalidInput
from .._api.names import FORBIDDEN_HOLD_NAMESPACES, REASON
from .._api.node_rules import annotations_of
from .._api.objects import Object

FIELD_SELECTOR = ",".join(f"metadata.namespace!={name}" for name in FORBIDDEN_HOLD_NAMESPACES)


def holds(lease: Object) -> bool:
    """Whether a Lease holds the node that it is named after: ``holderIdentity`` and ``acquireTime`` are both set.

    Renewal, duration and everything else in the Lease are ignored: a hold never lapses.
    """
    spec = lease.get("spec") or {}
    outside = lease["metadata"]["namespace"] not in FORBIDDEN_HOLD_NAMESPACES
    return bool(spec.get("holderIdentity")) and bool(spec.get("acquireTime")) and outside


def entry(namespace: str, holder: str) -> str:
    """How a hold is named in the reason of the condition ShutdownInhibited."""
    return hold_entry(namespace, holder)


def describe(lease: Object, now: datetime) -> dict[str, Any]:
    """A hold as results show it. What its holder wrote is cut here, for it goes into messages and records."""
    spec = lease["spec"]
    acquired = str(spec["acquireTime"])
    return {
        "node": lease["metadata"]["name"],
        "namespace": lease["metadata"]["namespace"],
        "holder": cut(str(spec["holderIdentity"])),
        "acquired": acquired,
        "held_seconds": int(seconds_since(acquired, now)),
        "reason": cut(annotations_of(lease).get(REASON, "")),
    }


def age(hold: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sorts holds, the oldest first."""
    return (*oldest_first(str(hold["acquired"])), hold["namespace"])


def sentence(held: list[dict[str, Any]]) -> str:
    """Holds in words, for messages: who holds, since when and why."""
    words = [
        f"{hold['namespace']}/{hold['holder']} since {hold['acquired']}"
        + (f" ({hold['reason']})" if hold["reason"] else "")
        for hold in held
    ]
    return some(words, separator="; ")


def check_names(namespace: str, holder: str) -> None:
    """Refuse what can't be a hold.

    Raises:
        InvalidInput: The namespace is reserved, or the holder is empty, too long or has a comma.
    """
    if namespace in FORBIDDEN_HOLD_NAMESPACES:
        raise InvalidInput(
            f"A hold can't live in the namespace {namespace}, which is reserved. Use the namespace of the application.",
            namespace=namespace,
        )
    if not holder.strip():
        raise InvalidInput("holder must not be empty. Name the application or person that holds the node.")
    if len(holder) > LONGEST:
        raise InvalidInput(
            f"holder has {len(holder)} characters, and at most {LONGEST} are allowed. Use a shorter name.",
            holder=cut(holder),
        )
    if "," in holder:
        raise InvalidInput(
            f'holder "{holder}" has a comma, which separates the holders in the condition ShutdownInhibited. '
            "Use another character.",
            holder=holder,
        )
