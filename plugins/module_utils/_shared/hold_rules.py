# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Leases hold a node, which hold is older, and how each hold is named.

A hold is a Lease that has the name of a Node and forbids anyone to switch that node off. ``docs/holds.md`` describes
holds for the authors of applications.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from .bounds import cut, digest, oldest_first

NAMESPACE = "holdfast"
# In this namespace each kubelet renews a Lease of its node's name, every 10 s by default.
NODE_LEASES = "kube-node-lease"
# These have the heartbeats of the kubelets, and the Leases of this collection's own runs.
FORBIDDEN_NAMESPACES = (NODE_LEASES, NAMESPACE)
FIELD_SELECTOR = ",".join(f"metadata.namespace!={name}" for name in FORBIDDEN_NAMESPACES)
# The condition of a Node whose reason names the holds that the node agent enforces.
CONDITION = "ShutdownInhibited"


@dataclass(frozen=True)
class Hold:
    """The fields of a Lease that make it a hold.

    Attributes:
        namespace: The namespace of the Lease.
        holder: ``holderIdentity``, cut to a limited length.
        acquired: ``acquireTime`` as the Lease has it. Its holder can write any text.
    """

    namespace: str
    holder: str
    acquired: str

    @property
    def entry(self) -> str:
        return entry_of(self.namespace, self.holder)


def hold_of(lease: Mapping[str, Any]) -> Hold | None:
    """Read a Lease as a hold. A hold has both ``holderIdentity`` and ``acquireTime``.

    Renewal, duration and all other fields are ignored: a hold never lapses.

    Returns:
        None if the Lease does not hold its node.
    """
    namespace = str(lease["metadata"]["namespace"])
    spec = lease.get("spec") or {}
    holder, acquired = spec.get("holderIdentity"), spec.get("acquireTime")
    if namespace in FORBIDDEN_NAMESPACES or not (holder and acquired):
        return None
    # The API limits holderIdentity only by the size of the object, and it is copied to many places.
    return Hold(namespace, cut(str(holder)), str(acquired))


def age(hold: Hold) -> tuple[Any, ...]:
    """Sort key for holds, oldest first."""
    return (*oldest_first(hold.acquired), hold.namespace, hold.holder)


def entry_of(namespace: str, holder: str) -> str:
    """How the reason of the condition names a hold."""
    return f"{namespace}/{cut(holder).replace(',', '%2C')}"


def short_entry(entry: str) -> str:
    """How the reason names a hold if its whole entry does not fit. Only whole entries have a slash."""
    return f"sha256:{digest(entry)}"


def forms(entry: str) -> frozenset[str]:
    """The two entries by which a reason can name this hold."""
    return frozenset({entry, short_entry(entry)})


def reason_of(entries: Collection[str], room: int) -> tuple[str, int]:
    """The reason of the condition, and how many holds it names by their short entries.

    The reason names every hold, so that every holder can find its own. The longest entries are shortened first, so that
    long names do not displace names of usual length.

    Args:
        entries: Whole entries, oldest first.
        room: How many characters the whole entries may have together.
    """
    whole = set()
    for entry in sorted(set(entries), key=lambda item: (len(item), item)):
        room -= len(entry) + 1
        if room < 0:
            break
        whole.add(entry)
    named = [entry if entry in whole else short_entry(entry) for entry in entries]
    return ",".join(named), len([entry for entry in entries if entry not in whole])
