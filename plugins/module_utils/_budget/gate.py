# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one gate before every power-off."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._api import node_rules
from .._api.cluster import Cluster
from .._api.errors import Held
from .._api.objects import Object
from .._api.read_node import read_node
from .._holds.leases import holds_on
from .._holds.rules import sentence
from .._shared.bounds import some
from .._shared.hold_rules import entry_of, forms
from . import claim_rules


@dataclass(frozen=True)
class Pass:
    """What the gate saw when it let a power-off pass.

    Attributes:
        boot_id: The Node's boot ID at that moment.
        overridden: Holds that were overridden; they are recorded together with the power-off.
        node: The Node at that moment; ``None`` if the Node is unknown.
    """

    boot_id: str
    overridden: list[dict[str, Any]] = field(default_factory=list)
    node: Object | None = None


def look(cluster: Cluster, node_name: str, *, override_holds: bool, run: str = "") -> Pass:
    """Refuse to interrupt a holder, or the work of another run.

    Both the Leases and the node's condition count: the condition may still name a hold that the node has not released.

    Raises:
        ClaimLost: ``run`` no longer has the claim on the node.
        Claimed: ``run`` is empty, and a run has a claim.
        Held: The node is held and ``override_holds`` is not set.
        NotFound: The Node does not exist.
    """
    node = read_node(cluster, node_name)
    claim_rules.check(node, run)
    held = holds_on(cluster, node_name)
    known = frozenset().union(*(forms(entry_of(hold["namespace"], hold["holder"])) for hold in held))
    lingering = [name for name in node_rules.inhibited_by(node) if name not in known]
    if (held or lingering) and not override_holds:
        words = [sentence(held)] if held else []
        if lingering:
            words.append(f"the condition ShutdownInhibited names {some(lingering)}")
        raise Held(
            f"Node {node_name} is held: {'; '.join(words)}. {_way_out(node, held)}",
            node=node_name,
            holds=held,
            shutdown_inhibited=node_rules.inhibited_by(node),
        )
    overridden = [*held, *(_described(node_name, name) for name in lingering)]
    return Pass(node_rules.boot_id(node), overridden, node)


def look_at_leases(cluster: Cluster, node_name: str, *, override_holds: bool) -> list[dict[str, Any]]:
    """Refuse to interrupt a holder on a machine whose Node object is gone. Return the holds that are overridden.

    The machine may still run, and with it the holder's work. No run can claim it, because a claim is on the Node.

    Raises:
        Held: The machine is held and ``override_holds`` is not set.
    """
    held = holds_on(cluster, node_name)
    if held and not override_holds:
        raise Held(
            f"Node {node_name} is gone, but its machine may still run, and it is held: {sentence(held)}. Wait until "
            "the holder releases it, or set override_holds to interrupt the holder.",
            node=node_name,
            holds=held,
        )
    return held


def _way_out(node: Object, held: list[dict[str, Any]]) -> str:
    if held or node_rules.ready(node):
        return "Wait until the holder releases it, or set override_holds to interrupt the holder."
    return (
        "No Lease holds the node any longer, but the node is not Ready, so it can't update its condition. Check that "
        "the holder does not need the node, then set override_holds."
    )


def _described(node: str, name: str) -> dict[str, Any]:
    """A hold that only the node's condition names, in the form in which results show holds."""
    namespace, _slash, holder = name.partition("/")
    return {
        "node": node,
        "namespace": namespace,
        "holder": holder.replace("%2C", ","),
        "acquired": None,
        "held_seconds": None,
        "reason": "the condition ShutdownInhibited names it, and no Lease does",
    }
