# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until a node is back: new boot ID, Ready, its DaemonSet pods Ready."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, TimedOut, Unreachable, passing
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline, Follower, Listed, wait_for
from .._budget.node_operation import record_phase
from .._budget.node_operation_rules import daemonsets_before, phase_of
from .._drain.rules import Pod, read_pod
from .._progress.event_rules import waits
from .._shared.bounds import some
from .._shared.hold_rules import NODE_LEASES
from .ready_rules import daemon_pods_not_ready, is_back, is_ready_nowhere

_SECONDS_BETWEEN_READS = 1.0
# Seconds. After them, a DaemonSet that has no Ready pod on any node counts as broken.
_TIME_TO_START = 60.0


def node_ready(context: Context, params: Params) -> Result:
    """Wait for one node; see the module of the same name."""
    cluster, name = context.cluster, params["name"]
    deadline = Deadline(params["timeout"])
    node = _read_when_api_answers(cluster, name, Deadline(0) if context.check_mode else deadline)
    old = params.get("boot_id_before") or ""
    record_phase(cluster, name, phase_of(params, "ready"))
    if not context.check_mode:
        if params["sign_of_life"]:
            wait_for_sign_of_life(cluster, name, deadline)
        context.tell(waits(name, "ready", "Ready with a new boot ID" if old else "Ready"))
        node = wait_until_back(cluster, name, old, deadline)
        if params["daemonset_pods"]:
            context.tell(waits(name, "ready", "its DaemonSet pods"))
            daemonsets = daemonsets_before(node, params.get("operation") or "")
            if left := wait_for_daemon_pods(cluster, name, deadline, daemonsets):
                where = "have no Ready pod on any" if daemonsets is None else "had no Ready pod on the"
                when = "" if daemonsets is None else " before its drain either"
                context.warn(
                    f"Node {name}: {len(left)} DaemonSet pods are not Ready, and their DaemonSets {where} node{when}: "
                    f"{some(left)}. Check them with kubectl describe."
                )
    return {
        "changed": False,
        "ready": is_back(node, old),
        "boot_id": node_rules.boot_id(node),
        "waited": round(deadline.elapsed, 3),
    }


def _read_when_api_answers(cluster: Cluster, name: str, deadline: Deadline) -> Object:
    """Read the Node. On the only control-plane node, the API server went down with it, so wait for the API server."""
    while True:
        try:
            return read_node(cluster, name)
        except (Unreachable, ApiFailure) as error:
            if (isinstance(error, ApiFailure) and not passing(error.status)) or deadline.passed:
                raise
            time.sleep(min(_SECONDS_BETWEEN_READS, deadline.left))


def wait_until_back(cluster: Cluster, name: str, old_boot_id: str, deadline: Deadline) -> Object:
    """Watch the Node until it is back.

    Raises:
        TimedOut: It is not back; the message says whether the new boot ID or Ready is missing.
    """
    node = wait_for(cluster, paths.NODES, name, lambda item: is_back(item, old_boot_id), deadline)
    if node is None:
        # The Node is gone, or the deadline passed before it was read.
        node = cluster.find(paths.node(name))
    if node is not None and is_back(node, old_boot_id):
        return node
    if node is None:
        why = "the Node no longer exists"
    elif not node_rules.ready(node):
        why = node_rules.not_ready_why(node)
    else:
        why = f"its boot ID is still {old_boot_id}, so it was not rebooted"
    raise TimedOut(
        f"Node {name} is not back after {deadline.seconds} s: {why}. Check its console and the kubelet's "
        "journal; the node stays cordoned until it is Ready with a new boot ID.",
        node=name,
        boot_id=node_rules.boot_id(node) if node else None,
        ready=bool(node and node_rules.ready(node)),
    )


def wait_for_sign_of_life(cluster: Cluster, name: str, deadline: Deadline) -> None:
    """Watch until the node's kubelet renews its Lease. Return immediately if it has no Lease.

    The condition Ready does not show this: the node controller sets it to Unknown only after the kubelet has given no
    sign of life for a while (50 s by default).

    Raises:
        TimedOut: The kubelet did not renew it.
    """
    lease = cluster.find(paths.one(paths.leases(NODE_LEASES), name))
    if lease is None:
        return

    def is_renewed(item: Object | None) -> bool:
        return item is not None and _renew_time(item) != _renew_time(lease)

    if not is_renewed(wait_for(cluster, paths.leases(NODE_LEASES), name, is_renewed, deadline)):
        raise TimedOut(
            f"The kubelet of node {name} gave no sign of life within {deadline.seconds} s; the last one is from "
            f"{_renew_time(lease) or 'never'}. Check the node's console.",
            node=name,
            ready=False,
        )


def wait_for_daemon_pods(
    cluster: Cluster, name: str, deadline: Deadline, daemonsets: Mapping[str, str] | None
) -> list[str]:
    """Watch until every DaemonSet pod of the node is Ready.

    Args:
        daemonsets: The DaemonSets whose pods to wait for, each with a container that has ended; ``None`` for all but
            those that have pods on other nodes, too, and are Ready on none.

    Returns:
        The pods of the other DaemonSets that are not Ready.

    Raises:
        TimedOut: Some pods are not Ready; the message names them.
    """
    pods: dict[str, Pod] = {}
    nowhere: set[str] = set()
    left: list[str] = []

    def not_ready() -> list[str]:
        return daemon_pods_not_ready((pod for pod in pods.values() if pod.daemonset not in nowhere), daemonsets)

    # Pods need time to start, also those on other nodes that have come back.
    for patience in (Deadline(min(_TIME_TO_START, deadline.left)), deadline):
        for news in Follower(cluster, paths.PODS, patience, field_selector=f"spec.nodeName={name}", keep=read_pod):
            if isinstance(news, Listed):
                pods = {pod.uid: pod for pod in news.items}
            else:
                pod: Pod = news.object
                pods.pop(pod.uid, None)
                if not news.deleted:
                    pods[pod.uid] = pod
            if not (left := not_ready()):
                return daemon_pods_not_ready(pods.values())
        if daemonsets is None:
            broken = {pod.daemonset: pod for pod in pods.values() if pod.daemonset and not pod.serves}
            nowhere = {daemonset for daemonset, pod in broken.items() if _is_ready_nowhere(cluster, pod)}
        if not (left := not_ready()):
            return daemon_pods_not_ready(pods.values())
    raise TimedOut(
        f"Node {name} is Ready, but {len(left)} of its DaemonSet pods are not after {deadline.seconds} s: "
        f"{some(left)}. Check them with kubectl describe; the node stays cordoned.",
        node=name,
        pods=left,
    )


def _is_ready_nowhere(cluster: Cluster, pod: Pod) -> bool:
    """Return whether no node has a Ready pod of the same DaemonSet, so that this node is not the reason."""
    path = paths.one(paths.namespaced("apis/apps/v1", pod.namespace, "daemonsets"), pod.controller_name)
    # Without the right to read it, or in another API group, as OpenKruise has, its pods are waited for.
    with suppress(ApiFailure):
        daemonset = cluster.find(path)
        return daemonset is not None and is_ready_nowhere(daemonset)
    return False


def _renew_time(lease: Object) -> str:
    return str(lease["spec"].get("renewTime") or "")
