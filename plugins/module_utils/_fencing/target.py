# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The BareMetalHost of a task, the Node that it is, and who may switch it off."""

from __future__ import annotations

from contextlib import suppress

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import InvalidInput, NotFound, Refused
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params
from .._budget import claim_rules, gate
from .._capi import machine_rules
from .._capi.rules import cluster_of
from .._shared.bounds import some
from . import evidence_rules, find_host, last_look
from . import host_rules as rules


class Target:
    """One host, by the objects that were found when the task began.

    Attributes:
        node: Name of the Node; empty if unknown.
        serves: The Node that the host is, by the objects; empty if they do not say. It names another Node than ``node``
            only where a key is to be removed.
    """

    def __init__(self, cluster: Cluster, management: Cluster, host: Object, node: str, serves: str) -> None:
        self._cluster = cluster
        self._management = management
        self.node = node
        self.serves = serves
        self.name: str = host["metadata"]["name"]
        self.namespace: str = host["metadata"]["namespace"]
        self.full_name = rules.full_name(host)
        self.collection = find_host.hosts(self.namespace)
        self.path = find_host.path_of(host)

    def read(self) -> Object:
        """Return the host as it is now.

        Raises:
            NotFound: It is gone.
        """
        host = self._management.find(self.path)
        if host is None:
            raise self.gone()
        return host

    def gone(self) -> NotFound:
        return NotFound(f"BareMetalHost {self.full_name} no longer exists.", host=self.full_name)

    def read_node(self) -> Object:
        return read_node(self._cluster, self.node)

    def find_node(self) -> Object | None:
        """Return the Node; ``None`` if it is gone or unknown."""
        return self._cluster.find(paths.node(self.node)) if self.node else None

    def check_claim(self, run: str) -> None:
        """Check the claim where nothing is switched off: this run must have it; without a run, no run may have it."""
        # No run can claim a Node that was deleted.
        if node := self.find_node():
            claim_rules.check(node, run)

    def look(self, run: str, *, override_holds: bool, boot_id: str, down: bool) -> last_look.Look:
        """Check for holds, our claim and the expected state of the node, directly before the host is told to go off."""
        if self.node:
            node = self.find_node()
            if node and not node_rules.ready(node):
                # It may be the old Node of a machine whose name has changed, and the holds are those of the other Node.
                evidence_rules.check_one_node(node, self._cluster.items(paths.NODES))
            return last_look.look(
                self._cluster, self.node, run=run, override_holds=override_holds, boot_id=boot_id, down=down
            )
        if not override_holds:
            raise Refused(
                f"The Node of BareMetalHost {self.full_name} is unknown, so its holds can't be checked. Give node, or "
                "set override_holds if it is no Node.",
                host=self.full_name,
                why="node_unknown",
            )
        return last_look.Look(gate.Pass(""), last_look.steady())


def resolve(context: Context, params: Params, named: str) -> Target:
    """Return the host by its name, or by the Node that it is.

    Args:
        named: Name of the BareMetalHost; empty to find it by its Node.

    Raises:
        InvalidInput: Neither is given; or a run is, and the Node that it should have claimed is unknown.
        NotFound: There is no such host.
        Refused: There are several; or host and node are given and, by the objects, are different machines; or several
            Nodes may be the host.
    """
    cluster, management = context.cluster, context.management
    node, namespace = params.get("node") or "", params.get("namespace") or ""
    if not node and not named:
        raise InvalidInput("Give bare_metal_host, the name of the BareMetalHost, or node, the name of the Node.")
    if not named:
        host = find_host.host_of(management, read_node(cluster, node), namespace)
        _only_node(cluster, management, host)
        return Target(cluster, management, host, node, node)
    host = find_host.find(management, named, namespace)
    known = _only_node(cluster, management, host)
    claimed, machine = find_host.claimed_by(management, host)
    other = next((name for name in (known, claimed) if name not in ("", node)), "")
    if node and other:
        raise Refused(
            f"BareMetalHost {rules.full_name(host)} is node {other}, not {node}. Give only one of them, or correct the "
            "wrong one.",
            node=other,
            host=rules.full_name(host),
        )
    if node:
        _check_machine(cluster, machine, host, node)
        _check_node_of_host(cluster, management, host, node)
    if params.get("run") and not node and not known:
        raise InvalidInput(
            f"The Node of BareMetalHost {rules.full_name(host)} is unknown, so run {params['run']} can't have claimed "
            "it. Give node.",
            host=rules.full_name(host),
        )
    return Target(cluster, management, host, node or known, known)


def resolve_for_removal(context: Context, params: Params, named: str) -> Target | None:
    """Return the host from which to remove a key; ``None`` if it is gone.

    The host may now serve another Node, or none. The record made with the key says which Node the key belongs to.

    Raises:
        InvalidInput: As for ``resolve``.
        NotFound: The search by its Node finds none; or the cluster does not serve BareMetalHosts.
        Refused: There are several; or a run is given, and the host is another Cluster's Node of the same name.
    """
    management, node, namespace = context.management, params.get("node") or "", params.get("namespace") or ""
    if named and not find_host.named(management, named, namespace) and find_host.served(management):
        return None
    if not named or not node:
        return resolve(context, params, named)
    host = find_host.find(management, named, namespace)
    claimed, machine = find_host.claimed_by(management, host)
    if params.get("run") and claimed == node:
        # A node can write the name of any host into its record.
        _check_machine(context.cluster, machine, host, node)
    serves = find_host.nodes_of(context.cluster, management, [host]).get(host["metadata"]["uid"], "")
    return Target(context.cluster, management, host, node, serves)


def may_remove_key(node: str, serves: str, written_for: str) -> bool:
    """Return whether a key may be removed for a node: it was written for that node, or no other Node is known.

    Args:
        node: The Node whose key to remove; empty for any Node.
        serves: The Node that the host is now; empty if unknown.
        written_for: The Node that the host was when the key was written; empty if unknown.
    """
    return not node or node in (written_for, serves) or not (serves or written_for)


def _only_node(cluster: Cluster, management: Cluster, host: Object) -> str:
    """Return the Node that the host is; empty if unknown.

    Raises:
        Refused: Several Nodes may be it.
    """
    names = find_host.candidates_of(cluster, management, [host])[host["metadata"]["uid"]]
    if len(names) > 1:
        raise Refused(
            f"Several Nodes may be BareMetalHost {rules.full_name(host)}, because their providerID names it: "
            f"{some(names)}. Nothing was changed. If the name of the machine has changed, make sure which of the Nodes "
            "is the old one, and delete that Node (kubectl delete node). If they are several machines, correct the "
            "kubelet's option --provider-id of the wrong ones, and delete their Nodes.",
            host=rules.full_name(host),
            candidates=names,
            why="other_node",
        )
    return next(iter(names), "")


def _check_machine(cluster: Cluster, machine: Object | None, host: Object, node: str) -> None:
    """Check that the Machine of the given host does not belong to another Cluster's Node of the same name."""
    present = cluster.find(paths.node(node)) if machine else None
    if present and machine and machine_rules.relation(present, machine) == machine_rules.FOREIGN:
        raise Refused(
            f"BareMetalHost {rules.full_name(host)} is node {node} of Cluster {cluster_of(machine)}, not the Node of "
            "that name in the cluster of this task. Give the right host.",
            node=node,
            host=rules.full_name(host),
        )


def _check_node_of_host(cluster: Cluster, management: Cluster, host: Object, node: str) -> None:
    """Check that the given host is not another Node's, as far as the node's objects say."""
    with suppress(NotFound):
        found = find_host.host_of(management, read_node(cluster, node))
        if found["metadata"]["uid"] != host["metadata"]["uid"]:
            raise Refused(
                f"Node {node} is BareMetalHost {rules.full_name(found)}, not {rules.full_name(host)}. Give only one of "
                "them, or correct the wrong one.",
                node=node,
                host=rules.full_name(found),
            )
