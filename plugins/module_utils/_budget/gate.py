# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one gate before each reboot, power-off and out-of-service taint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._api import node_rules
from .._api.cluster import Cluster
from .._api.errors import Held
from .._api.objects import Object
from .._api.read_node import read_node
from .._holds.leases import described, holds_on, leases
from .._holds.rules import sentence
from .._shared.bounds import plain, some
from .._shared.hold_rules import entry_of, forms
from . import claim_rules


@dataclass(frozen=True)
class Pass:
    """The permission to switch a node off, with the state of the node when the gate gave it.

    Attributes:
        boot_id: The Node's boot ID.
        overridden: Holds that were overridden; they are recorded together with the power-off.
        node: The Node; ``None`` if it is unknown.
    """

    boot_id: str
    overridden: list[dict[str, Any]] = field(default_factory=list)
    node: Object | None = None

    @property
    def overridden_names(self) -> list[str]:
        """The overridden holds, as namespace/holder."""
        return [f"{hold['namespace']}/{hold['holder']}" for hold in self.overridden]


def check(cluster: Cluster, node_name: str, *, override_holds: bool, run: str = "") -> Pass:
    """Check that no holder and no other run is using the node.

    Both the Leases and the node's condition count: the condition may still name a hold that the node has not released.

    Raises:
        ClaimLost: ``run`` no longer has the claim on the node.
        Claimed: ``run`` is empty, and a run has a claim.
        Held: The node is held and ``override_holds`` is not set.
        NotFound: The Node does not exist.
    """
    node = read_node(cluster, node_name)
    claim_rules.check(node, run)
    found = leases(cluster, node_name)
    by_lease = described(cluster, found)
    # The condition names the holder as the Lease has it.
    holders = [(lease["metadata"]["namespace"], str(lease["spec"]["holderIdentity"])) for lease in found]
    entries = frozenset().union(*(forms(entry_of(namespace, holder)) for namespace, holder in holders))
    by_condition = [entry for entry in node_rules.inhibited_by(node) if entry not in entries]
    if (by_lease or by_condition) and not override_holds:
        reasons = [sentence(by_lease)] if by_lease else []
        if by_condition:
            reasons.append(f"the condition ShutdownInhibited names {some(by_condition)}")
        raise Held(
            f"Node {node_name} is held: {'; '.join(reasons)}. {_way_out(node, by_lease)}",
            node=node_name,
            holds=by_lease,
            shutdown_inhibited=node_rules.inhibited_by(node),
        )
    overridden = [*by_lease, *(_hold_of_entry(node_name, entry) for entry in by_condition)]
    return Pass(node_rules.boot_id(node), overridden, node)


def check_leases(cluster: Cluster, node_name: str, *, override_holds: bool) -> list[dict[str, Any]]:
    """Check that nobody holds a machine whose Node object is gone. Return the holds that are overridden.

    The machine may still run, and with it the holder's work. Without a Node there is no claim to check.

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


def _way_out(node: Object, by_lease: list[dict[str, Any]]) -> str:
    if by_lease:
        return "Wait until the holder releases it, or set override_holds to interrupt the holder."
    if node_rules.ready(node):
        return (
            "No Lease holds the node any longer, so its agent changes the condition within seconds. Run this again. If "
            "the condition stays, check the agent (systemctl status holdfast-agent). If the node has no agent, remove "
            "the condition with holdfast.kubernetes.node_condition."
        )
    return (
        "No Lease holds the node any longer, but the node is not Ready, so it can't update its condition. Check that "
        "the holder does not need the node, then set override_holds."
    )


def _hold_of_entry(node: str, entry: str) -> dict[str, Any]:
    """A hold from its entry ``namespace/holder`` in the node's condition, with the fields of a hold by a Lease."""
    namespace, _slash, holder = entry.partition("/")
    return {
        "node": node,
        "namespace": namespace,
        "holder": plain(holder.replace("%2C", ",")),
        "acquired": None,
        "held_seconds": None,
        "reason": "the condition ShutdownInhibited names it, and no Lease does",
    }
