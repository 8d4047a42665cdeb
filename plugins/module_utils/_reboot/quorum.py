# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check whether etcd keeps its quorum without a node, and wait until it does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, Refused, TimedOut, Unreachable, passing
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline, Follower, Listed
from .._budget import runs
from .quorum_rules import CONTROL_PLANE, ETCD, MASTER, EtcdPod, Quorum, is_control_plane, quorum_without, read_etcd_pod

# Seconds. Only one kind of object is watched at a time; changes of the other kind are seen after this time.
_LOOK_AGAIN = 20.0


@dataclass(frozen=True)
class Seen:
    """The state of the cluster at one moment.

    Attributes:
        labelled: By label, the control-plane nodes and whether each is Ready.
        pods: etcd's pods.
        quorum: What this means for the quorum.
    """

    labelled: Mapping[str, Mapping[str, bool]]
    pods: Collection[EtcdPod]
    quorum: Quorum


def etcd_quorum(context: Context, params: Params) -> Result:
    """Report whether etcd keeps its quorum without a node and, with ``wait_timeout``, wait until it does."""
    cluster, name = context.cluster, params["name"]
    deadline = Deadline(params["wait_timeout"])
    own = is_control_plane(read_node(cluster, name))
    seen = look(cluster, params)
    # The first look may have taken all the time.
    if seen.quorum.kept is False and params["wait_timeout"] > 0 and not context.check_mode:
        with runs.heartbeat(cluster, params.get("run") or "", params.get("holder") or ""):
            seen = _wait(cluster, params, seen, deadline)
        if not seen.quorum.kept:
            raise _timed_out(params, seen.quorum, deadline)
    control_plane = {other for nodes in seen.labelled.values() for other in nodes}
    return {
        "changed": False,
        "control_plane": own,
        "single_node": len(list(islice(cluster.rows(paths.NODES, limit=2), 2))) == 1,
        "only_control_plane": own and control_plane <= {name},
        "member": name in seen.quorum.members,
        **_facts(seen.quorum, deadline),
    }


def _facts(quorum: Quorum, deadline: Deadline) -> dict[str, Any]:
    return {
        "members": list(quorum.members),
        "ready_others": list(quorum.ready_others),
        "missing": [{"node": node, "reason": why} for node, why in quorum.missing.items()],
        "needed": quorum.needed,
        "kept": quorum.kept,
        "waited": round(deadline.elapsed, 3),
    }


def look(cluster: Cluster, params: Params) -> Seen:
    """The state now; of the options, only ``name``, ``namespace`` and ``selector`` count."""
    labelled = {
        label: {
            node_rules.name(node): node_rules.ready(node) for node in cluster.items(paths.NODES, label_selector=label)
        }
        for label in (CONTROL_PLANE, MASTER)
    }
    pods = frozenset(
        read_etcd_pod(pod) for pod in cluster.items(_pods_path(params), label_selector=params.get("selector") or "")
    )
    nodes = {name: ready for nodes in labelled.values() for name, ready in nodes.items()}
    roles = {*nodes}
    for name in {pod.node for pod in pods} - {params["name"], *nodes}:
        # A member may run on a node without these labels.
        node = cluster.find(paths.node(name))
        if node is not None:
            nodes[name] = node_rules.ready(node)
            roles |= {name} if ETCD in node_rules.labels_of(node) else set()
    return Seen(labelled, pods, quorum_without(params["name"], pods, nodes, roles))


def _wait(cluster: Cluster, params: Params, seen: Seen, deadline: Deadline) -> Seen:
    """Check again after each change until the quorum is kept. Return the last state."""
    while not seen.quorum.kept and not deadline.passed:
        try:
            _await_change(cluster, params, seen, Deadline(min(deadline.left, _LOOK_AGAIN)))
            seen = look(cluster, params)
        except (Unreachable, ApiFailure) as error:
            # When etcd has just lost a member, the API may not answer for a while.
            if isinstance(error, ApiFailure) and not passing(error.status):
                raise
    return seen


def _await_change(cluster: Cluster, params: Params, seen: Seen, pause: Deadline) -> None:
    """Watch the pods, or the control-plane nodes if only they are still not Ready."""
    if seen.quorum.pods_suffice:
        label = CONTROL_PLANE if seen.labelled[CONTROL_PLANE] else MASTER
        known = frozenset(seen.labelled[label].items())
        follower = Follower(cluster, paths.NODES, pause, label_selector=label)
        _until_other(follower, lambda node: (node_rules.name(node), node_rules.ready(node)), known)
    else:
        selector = params.get("selector") or ""
        _until_other(Follower(cluster, _pods_path(params), pause, label_selector=selector), read_etcd_pod, seen.pods)


def _until_other(follower: Follower, fact: Callable[[Object], Any], known: Collection[Any]) -> None:
    """Follow until the facts about the objects differ from the known ones."""
    facts: dict[str, Any] = {}
    for news in follower:
        if isinstance(news, Listed):
            facts = {item["metadata"]["uid"]: fact(item) for item in news.items}
        else:
            facts.pop(news.object["metadata"]["uid"], None)
            if not news.deleted:
                facts[news.object["metadata"]["uid"]] = fact(news.object)
        if frozenset(facts.values()) != known:
            return


def _pods_path(params: Params) -> str:
    return paths.namespaced("api/v1", params["namespace"], "pods")


def require_quorum(cluster: Cluster, name: str, selector: str) -> None:
    """Check directly before an act that etcd keeps its quorum without a node. An etcd without pods is not checked.

    Raises:
        Refused: It does not.
    """
    params = {"name": name, "namespace": "kube-system", "selector": selector}
    quorum = look(cluster, params).quorum
    if quorum.kept is False:
        raise Refused(f"{_why_it_stays_up(params, quorum)} {_way_out(params, quorum)}.", node=name)


def _timed_out(params: Params, quorum: Quorum, deadline: Deadline) -> TimedOut:
    return TimedOut(
        f"{_why_it_stays_up(params, quorum)} The wait ended after {params['wait_timeout']} s. "
        f"{_way_out(params, quorum)}{', or raise wait_timeout' if quorum.can_spare_one else ''}.",
        node=params["name"],
        **_facts(quorum, deadline),
    )


def _why_it_stays_up(params: Params, quorum: Quorum) -> str:
    missing = "; ".join(f"{node}: {why}" for node, why in quorum.missing.items()) or "none"
    return (
        f"Node {params['name']} has to stay up: without it {len(quorum.ready_others)} of etcd's {len(quorum.members)} "
        f"members would be Ready ({', '.join(quorum.ready_others) or 'none'}), and {quorum.needed} are needed. "
        f"Missing: {missing}."
    )


def _way_out(params: Params, quorum: Quorum) -> str:
    if not quorum.can_spare_one:
        return f"An etcd with {len(quorum.members)} members can't spare one: add members first"
    where = f"kubectl -n {params['namespace']} get pods -l {params.get('selector')} -o wide"
    return f"Bring the missing members back ({where}) and run this again"
