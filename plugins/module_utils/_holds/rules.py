# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about holds in options, results and messages. ``_shared/hold_rules.py`` decides which Leases hold a node."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .._api.errors import InvalidInput
from .._api.names import REASON
from .._api.node_rules import annotations_of
from .._api.objects import Object
from .._shared import hold_rules
from .._shared.bounds import LONGEST, cut, plain, seconds_since, some
from .._shared.hold_rules import FORBIDDEN_NAMESPACES, Hold


def holds(lease: Object) -> bool:
    """Whether a Lease is a hold, if there is a Node of its name."""
    return hold_rules.hold_of(lease) is not None


def describe(lease: Object, now: datetime) -> dict[str, Any]:
    """A hold as results show it. Texts from the holder are limited here, because they go into messages and records."""
    spec = lease["spec"]
    acquired = str(spec["acquireTime"])
    return {
        "node": lease["metadata"]["name"],
        "namespace": lease["metadata"]["namespace"],
        "holder": cut(plain(str(spec["holderIdentity"]))),
        "acquired": acquired,
        "held_seconds": int(seconds_since(acquired, now)),
        "reason": cut(plain(annotations_of(lease).get(REASON, ""))),
    }


def age(hold: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sort key for holds, oldest first."""
    return hold_rules.age(Hold(hold["namespace"], hold["holder"], str(hold["acquired"])))


def sentence(held: list[dict[str, Any]]) -> str:
    """Holds in a message: the holder, the time and the reason."""
    words = [
        f"{hold['namespace']}/{hold['holder']} since {hold['acquired']}"
        + (f" ({hold['reason']})" if hold["reason"] else "")
        for hold in held
    ]
    return some(words, separator="; ")


def check_names(namespace: str, holder: str) -> None:
    """Refuse a namespace or a holder that can't hold a node.

    Raises:
        InvalidInput: The namespace is reserved, or the holder is empty, too long or has a comma.
    """
    if namespace in FORBIDDEN_NAMESPACES:
        raise InvalidInput(
            f"The namespace {namespace} is reserved, so it can't have holds. Use the namespace of the application.",
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
            f'holder "{holder}" contains a comma, which separates the holders in the condition ShutdownInhibited. '
            "Use another character.",
            holder=holder,
        )
