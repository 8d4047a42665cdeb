# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on holds: take, release, list, wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, Held, HoldfastError, InvalidInput, NotFound, TimedOut, Unreachable
from .._api.names import COLLECTION, MANAGED_BY, REASON, SHUTDOWN_INHIBITED
from .._api.node_rules import annotations_of, condition, confirms, inhibited_by, labels_of
from .._api.objects import Object, only_as_seen
from .._api.option_rules import as_texts
from .._api.runner import Context, Params, Result
from .._api.times import to_text
from .._api.watch import Changed, Deadline, Follower, Listed, retry_conflicts, wait_for
from .._shared.bounds import cut, plain, some
from .._shared.hold_rules import FIELD_SELECTOR, entry_of
from .rules import age, check_names, describe, holds, sentence

_STAYS = "If no other task of this holder needs it, release it with state: absent."


def lease_hold(context: Context, params: Params) -> Result:
    """Take or release the hold of one holder on one node."""
    check_names(params["namespace"], params["holder"])
    params = {**params, "labels": as_texts(params.get("labels") or {}, "labels")}
    return _release(context, params) if params["state"] == "absent" else _take(context, params)


def lease_hold_info(context: Context, params: Params) -> Result:
    """List holds; with ``wait_for: free`` first wait until the node has none."""
    node = params.get("node")
    if params["wait_for"] == "free" and not node:
        raise InvalidInput("wait_for: free needs node, the one node to wait for.")
    cluster, deadline = context.cluster, Deadline(params["wait_timeout"])
    if node and params["wait_for"] == "free" and not context.check_mode:
        left = wait_until_free(cluster, node, deadline)
        if left:
            raise TimedOut(
                f"Node {node} is still held after {params['wait_timeout']} s by {sentence(left)}. "
                "Ask the holder to release its Lease, or raise wait_timeout.",
                holds=left,
                waited=round(deadline.elapsed, 1),
            )
    found = list_holds(cluster, node, params.get("namespace"))
    return {"changed": False, "holds": found, "waited": round(deadline.elapsed, 1)}


def holds_on(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    """The holds on one node, oldest first."""
    return list_holds(cluster, node, None)


def list_holds(cluster: Cluster, node: str | None, namespace: str | None) -> list[dict[str, Any]]:
    """Holds of a node (or of every node), in a namespace (or in all), oldest first."""
    return described(cluster, leases(cluster, node, namespace))


def leases(cluster: Cluster, node: str | None, namespace: str | None = None) -> list[Object]:
    """The Leases that hold a node (or any node), in a namespace (or in all).

    A Lease is a hold only if it has the name of a Node. Without ``node``, the names of all Nodes are read first, so
    that the Leases of leader elections do not count as holds.
    """
    selector = FIELD_SELECTOR + (f",metadata.name={node}" if node else "")
    path = paths.leases(namespace) if namespace else paths.LEASES
    names = {node} if node else {item["metadata"]["name"] for item in cluster.items(paths.NODES)}
    found = cluster.items(path, field_selector=selector)
    return [item for item in found if holds(item) and item["metadata"]["name"] in names]


def described(cluster: Cluster, found: Iterable[Object]) -> list[dict[str, Any]]:
    """Leases as results show holds, oldest first."""
    now = cluster.now()
    return sorted((describe(item, now) for item in found), key=age)


def holds_by_node(cluster: Cluster, nodes: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """The holds on each of these nodes, oldest first, from one list of Leases."""
    single = f",metadata.name={next(iter(nodes))}" if len(nodes) == 1 else ""
    found: dict[str, list[dict[str, Any]]] = {node: [] for node in nodes}
    items = cluster.items(paths.LEASES, field_selector=FIELD_SELECTOR + single)
    held = [item for item in items if item["metadata"]["name"] in found and holds(item)]
    for hold in described(cluster, held):
        found[hold["node"]].append(hold)
    return found


def wait_until_free(cluster: Cluster, node: str, deadline: Deadline) -> list[dict[str, Any]]:
    """Watch the Leases with the node's name until none holds the node; returns the holds left at the deadline."""
    held: dict[str, Object] = {}
    follower = Follower(cluster, paths.LEASES, deadline, field_selector=f"{FIELD_SELECTOR},metadata.name={node}")
    for news in follower:
        if isinstance(news, Listed):
            held = {item["metadata"]["namespace"]: item for item in news.items if holds(item)}
        elif isinstance(news, Changed):
            space = news.object["metadata"]["namespace"]
            held.pop(space, None)
            if not news.deleted and holds(news.object):
                held[space] = news.object
        if not held:
            return []
    return described(cluster, held.values())


def _take(context: Context, params: Params) -> Result:
    cluster, node = context.cluster, params["node"]
    if cluster.find(paths.node(node)) is None:
        raise NotFound(
            f"There is no Node {node}, so a Lease of that name would hold nothing. Use the Node's name as the "
            "API has it (kubectl get nodes).",
            node=node,
        )
    before, after = retry_conflicts(lambda: _claim(cluster, params))
    changed = _shown(before) != _shown(after)
    deadline = Deadline(params["wait_timeout"])
    mine = entry_of(params["namespace"], params["holder"])
    wait = params["wait"] and not context.check_mode
    if wait:
        try:
            _await_condition(cluster, params, mine, deadline)
        except HoldfastError as error:
            # However the wait ended, the user must know whether the node is held.
            gone, what = False, f"The Lease existed before and stays. {_STAYS}"
            if not _is_mine(before, params):
                gone, what = _undo(cluster, params, after)
            error.message = f"{error.message} {what}"
            error.fields.update(taken_back=gone, changed=changed and not gone)
            raise
    return {
        "changed": changed,
        "lease": after,
        "inhibited": wait or _is_known_to_be_named(context, params, mine),
        "waited": round(deadline.elapsed, 3) if params["wait"] else 0,
        "diff": {"before": _shown(before), "after": _shown(after)},
    }


def _claim(cluster: Cluster, params: Params) -> tuple[Object | None, Object]:
    """One attempt: read, decide, and write with the resourceVersion that was read."""
    path = paths.lease(params["namespace"], params["node"])
    before = cluster.find(path)
    wanted = _wanted(cluster, before, params)
    try:
        if before is None:
            return None, cluster.create(paths.leases(params["namespace"]), wanted)
        return before, cluster.replace(path, wanted)
    except NotFound as error:
        raise NotFound(
            f"The namespace {params['namespace']} does not exist. Create it, or use another namespace.",
            namespace=params["namespace"],
        ) from error
    except Unreachable as error:
        if not cluster.dry_run:
            # The server may have written it. A hold never lapses, so the user must know.
            error.message = (
                f"{error.message} Lease {params['namespace']}/{params['node']} may hold the node by now. "
                "Run this again with the same holder, also to release it with state: absent."
            )
        raise


def _wanted(cluster: Cluster, before: Object | None, params: Params) -> Object:
    metadata: Object = dict((before or {}).get("metadata") or {})
    spec: Object = dict((before or {}).get("spec") or {})
    if before is None:
        metadata = {"name": params["node"], "namespace": params["namespace"], "labels": {MANAGED_BY: COLLECTION}}
    other = spec.get("holderIdentity")
    if other and other != params["holder"]:
        raise _held_by_other(params, spec)
    now = to_text(cluster.now())
    if not (other and spec.get("acquireTime")):
        if before is not None and not other:
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        spec.update(holderIdentity=params["holder"], acquireTime=now)
    # Also if the holder has the Lease already: another of its tasks takes the Lease back only if nobody has written it.
    spec["renewTime"] = now
    if params.get("labels"):
        metadata["labels"] = {**(metadata.get("labels") or {}), **params["labels"]}
    if params.get("reason") is not None:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), REASON: params["reason"]}
    elif not other:
        metadata["annotations"] = _without_reason(metadata)
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def _release(context: Context, params: Params) -> Result:
    cluster = context.cluster
    before, after = retry_conflicts(lambda: _end_hold(cluster, params))
    deadline = Deadline(params["wait_timeout"])
    wait = params["wait"] and not context.check_mode
    inhibited = _is_still_named(context, params, deadline) if wait else _is_named(cluster, params)
    return {
        "changed": before is not after,
        "lease": after,
        "inhibited": inhibited,
        "waited": round(deadline.elapsed, 3) if wait else 0,
        "diff": {"before": _shown(before), "after": _shown(after)},
    }


def _is_named(cluster: Cluster, params: Params) -> bool:
    node = cluster.find(paths.node(params["node"]))
    return node is not None and confirms(node, entry_of(params["namespace"], params["holder"]))


def _is_known_to_be_named(context: Context, params: Params, mine: str) -> bool:
    """Whether the condition names the new hold. The hold is taken already, so a failure is a warning."""
    try:
        return _is_named(context.cluster, params)
    except HoldfastError as error:
        context.warn(
            f"Whether the condition ShutdownInhibited of Node {params['node']} names {mine} is unknown, so inhibited "
            f"is false: {error.message}"
        )
        return False


def _is_still_named(context: Context, params: Params, deadline: Deadline) -> bool:
    """Wait until the condition does not name the holder; returns whether it still does.

    If the holder takes the node again, the old condition must not confirm the new hold. The hold is released even if
    the condition still names it, so a timeout is a warning and not a failure.
    """
    mine = entry_of(params["namespace"], params["holder"])
    node = wait_for(
        context.cluster,
        paths.NODES,
        params["node"],
        lambda item: item is None or not confirms(item, mine),
        deadline,
    )
    if node is None or not confirms(node, mine):
        return False
    context.warn(
        f"The hold of {mine} is released, but the condition ShutdownInhibited of Node {params['node']} still names it "
        f"after {params['wait_timeout']} s. Check that the node agent runs there (systemctl status holdfast-agent). If "
        "the same holder takes the node again, the condition does not confirm the new hold."
    )
    return True


def _end_hold(cluster: Cluster, params: Params) -> tuple[Object | None, Object | None]:
    before = cluster.find(paths.lease(params["namespace"], params["node"]))
    if before is None:
        return None, None
    spec = before.get("spec") or {}
    holder = spec.get("holderIdentity")
    if not holder:
        return before, before
    if holder != params["holder"]:
        raise _held_by_other(params, spec)
    return _end_version(cluster, params, before)


def _end_version(cluster: Cluster, params: Params, before: Object) -> tuple[Object, Object | None]:
    """End the hold of a Lease as it was read.

    Raises:
        ApiFailure: With status 409 if the Lease has changed since.
    """
    path, spec = paths.lease(params["namespace"], params["node"]), before["spec"]
    if labels_of(before).get(MANAGED_BY) == COLLECTION:
        _delete(cluster, path, before)
        return before, None
    # Someone else created the Lease object and only lets us use it: empty it as leader election in client-go does.
    free = {key: value for key, value in spec.items() if key not in ("holderIdentity", "acquireTime", "renewTime")}
    metadata = {**before["metadata"], "annotations": _without_reason(before["metadata"])}
    return before, cluster.replace(path, {**before, "metadata": metadata, "spec": free})


def _without_reason(metadata: Object) -> dict[str, str]:
    """The annotations without the reason, which belongs to this hold and not to the next one."""
    return {key: value for key, value in (metadata.get("annotations") or {}).items() if key != REASON}


def _delete(cluster: Cluster, path: str, lease: Object) -> None:
    with suppress(NotFound):
        cluster.delete(path, only_as_seen(lease))


def _await_condition(cluster: Cluster, params: Params, mine: str, deadline: Deadline) -> None:
    node = wait_for(
        cluster,
        paths.NODES,
        params["node"],
        lambda item: item is not None and confirms(item, mine),
        deadline,
    )
    if node is not None and confirms(node, mine):
        return
    shown = some(inhibited_by(node)) if node else ""
    raise TimedOut(
        f"Node {params['node']} did not confirm the hold of {mine} within {params['wait_timeout']} s: its condition "
        f"ShutdownInhibited names {shown or 'no holder'}{_why_not(node)}. Check that the node agent runs there "
        f"(systemctl status holdfast-agent) and that its node_agent_namespaces has {params['namespace']}, or use wait: "
        "false to rely on the Lease alone.",
        node=params["node"],
        inhibited=False,
        waited=round(deadline.elapsed, 3),
    )


def _why_not(node: Object | None) -> str:
    """What the agent says, if it does not refuse a shutdown for any hold."""
    found = condition(node, SHUTDOWN_INHIBITED) if node else None
    if found is None or found.get("status") == "True":
        return ""
    return f" ({cut(str(found.get('reason')))}: {cut(plain(str(found.get('message'))))})"


def _undo(cluster: Cluster, params: Params, taken: Object) -> tuple[bool, str]:
    """End the new hold, if its Lease is still as this task wrote it; return whether that was done, and say it."""
    name = f"{taken['metadata']['namespace']}/{taken['metadata']['name']}"
    try:
        _end_version(cluster, params, taken)
    except HoldfastError as error:
        if isinstance(error, ApiFailure) and error.status == 409:
            return False, f"The Lease {name} has changed since, so it stays: it may be in use. {_STAYS}"
        return False, (
            f"The node is still held: the new Lease {name} could not be removed: {error} Delete it yourself (kubectl "
            "delete lease)."
        )
    return True, "The new Lease was removed."


def _is_mine(lease: Object | None, params: Params) -> bool:
    return lease is not None and holds(lease) and lease["spec"]["holderIdentity"] == params["holder"]


def _held_by_other(params: Params, spec: Object) -> Held:
    since, holder = spec.get("acquireTime") or "an unknown time", cut(str(spec["holderIdentity"]))
    return Held(
        f"The Lease {params['namespace']}/{params['node']} belongs to {holder} since {since}, not to "
        f"{params['holder']}. Wait until its holder releases it, or hold the node from another namespace.",
        node=params["node"],
        namespace=params["namespace"],
        holder=holder,
        acquired=spec.get("acquireTime"),
    )


def _shown(lease: Object | None) -> Object:
    """The content of a Lease as the diff shows it, without the time of renewal."""
    if lease is None:
        return {}
    spec = {key: value for key, value in (lease.get("spec") or {}).items() if key != "renewTime"}
    return {"labels": labels_of(lease), "annotations": annotations_of(lease), "spec": spec}
