# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What failovers left: records, out-of-service taints on nodes that are back, keys that keep hosts off, lost volumes.

Rules only. Nothing of this is cleared: a person must decide whether to switch on a machine, or to trust its volumes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from .._api import node_rules
from .._api.errors import Refused
from .._api.objects import Object
from .._failover import rules as failover_rules
from .._failover.taint_rules import attachment, evidence_of, taint_of
from .._fencing import host_rules as hosts
from .._fencing.key_rules import Request
from .._fencing.still_down_rules import came_back
from . import advice_rules
from .snapshot_rules import Finding, Snapshot

KINDS = ("failover", "taint", "key", "attachment")


def examine(snapshot: Snapshot) -> Iterable[Finding]:
    """Return all findings of these kinds."""
    for name in snapshot.nodes:
        yield from _on_node(snapshot, name)
    yield from _of_deleted_nodes(snapshot)
    yield from _keys(snapshot)
    yield from _attachments(snapshot)


def _on_node(snapshot: Snapshot, name: str) -> Iterable[Finding]:
    node = snapshot.nodes[name]
    taint = taint_of(node)
    try:
        record = failover_rules.record_of(node)
    except Refused as error:
        record = None
        yield Finding("failover", node=name, why="its record is invalid", todo=error.message)
    if record:
        run, result = record["run"], record["result"]
        detail = f": {record['detail']}" if result == failover_rules.FAILED and record["detail"] else ""
        yield Finding(
            "failover",
            node=name,
            operation=record["id"],
            since=record["since"],
            **snapshot.signs(run),
            why=f"{result or 'in phase ' + record['phase']}, operation {record['id']}{detail}",
            todo="" if snapshot.alive(run) else _resume(node, record),
        )
    if taint and node_rules.ready(node):
        live, ours = snapshot.claimed(name), evidence_of(node) is not None
        theirs = f"Node {name} is Ready, but has the taint {taint['key']}, which this collection did not add. Ask who "
        yield Finding(
            "taint",
            node=name,
            since=str(taint.get("timeAdded") or ""),
            alive=live,
            why=f"out-of-service ({taint.get('value') or ''}) on a node that is Ready: its pods are evicted",
            todo="" if live else _return_to_service(name) if ours else f"{theirs}added it.",
        )


def _resume(node: Object, record: Mapping[str, Any]) -> str:
    name = node_rules.name(node)
    if record["phase"] in failover_rules.GOING_BACK:
        return f"The recovery of node {name} was interrupted; its machine may be on. To resume it: {_recover(name)}."
    if failover_rules.down_again(node, record) or failover_rules.is_over(node, record):
        return f"Node {name} came back, and is down again. Start the playbook holdfast.kubernetes.failover for it."
    if came_back(node, record):
        return _return_to_service(name)
    if record["result"] == failover_rules.MOVED:
        return f"The workloads of node {name} have moved. When the machine is repaired: {_recover(name)}."
    how = "failed" if record["result"] else "was interrupted"
    return (
        f"The failover of node {name} {how}. Start the playbook holdfast.kubernetes.failover again, which resumes it; "
        f"or, to abandon it: {_recover(name)}."
    )


def _return_to_service(name: str) -> str:
    return f"Node {name} is back, but not in service yet. To return it to service: {_recover(name)}."


def _of_deleted_nodes(snapshot: Snapshot) -> Iterable[Finding]:
    """Find machines that may be off, and whose Nodes are gone. If hosts were read, a key is a finding of its own."""
    if snapshot.names is None:
        return
    for name, entry in snapshot.failovers.items():
        unread = bool(entry.get("key")) and snapshot.hosts is None
        if name not in snapshot.names and (unread or not entry.get("key")):
            yield Finding(
                "failover",
                node=name,
                operation=entry["operation"],
                since=entry["ended"] or entry["started"],
                why=f"{entry['result'] or 'not ended'}, fenced by {entry.get('fence') or 'unknown means'}; its Node no "
                "longer exists, and its machine may be off (playbook recover)",
                todo=_unread(name, entry) if unread else "",
            )


def _unread(name: str, entry: Mapping[str, Any]) -> str:
    return (
        f"Node {name} no longer exists, and key {entry['key']} may keep its BareMetalHost {entry['namespace']}/"
        f"{entry['host']} off. The doctor has read no BareMetalHosts. If they are in another cluster, run it again "
        "with doctor_management."
    )


def _recover(name: str) -> str:
    return f"ansible-playbook holdfast.kubernetes.recover -e failover_node={shlex.quote(name)}"


def _keys(snapshot: Snapshot) -> Iterable[Finding]:
    for host in snapshot.hosts or ():
        for request in hosts.requests_of(host):
            written = hosts.written_of(host, request.key) if request.key else None
            if written is None:
                continue
            power = {True: "is still on", False: "is off", None: "may be off"}[hosts.powered_on(host)]
            # A run that resumed the failover keeps the key of the run that wrote it.
            live = snapshot.alive(written.run) or snapshot.claimed(written.node)
            full_name, way_out = hosts.full_name(host), _way_out(snapshot, written.node, host, request)
            yield Finding(
                "key",
                node=written.node,
                since=written.since,
                **{**snapshot.signs(written.run), "alive": live},
                why=f"{request.annotation} keeps BareMetalHost {full_name} off, which {power}",
                todo="" if live else f"BareMetalHost {full_name} stays off until this key is removed{way_out}.",
            )


def _way_out(snapshot: Snapshot, name: str, host: Object, request: Request) -> str:
    cluster = snapshot.elsewhere.get(hosts.full_name(host))
    # A node can write its own record, but not the history.
    if cluster is not None and not _leads_to(snapshot.failovers.get(name, {}), host, request.key):
        return (
            f". Its Machine is of Cluster {cluster or '-'} and is not proven to be a Node of this cluster, so a "
            "failover of that cluster may need the key: run the doctor there"
        )
    known, node = _known(snapshot, name, host, request.key), snapshot.nodes.get(name)
    if known is None:
        return f": {_remove(host, request)}"
    off = hosts.powered_on(host) is False
    if off and node and failover_rules.booted_since(node, str(known.get("boot_id") or ""), known):
        return (
            f". Node {name} has booted since. If other hardware runs as this node now, delete or deprovision the host, "
            "which would start with the same name and credentials; the doctor then removes the key. If it is this "
            f"host: {_recover(name)} -e failover_force=true"
        )
    return f": {_recover(name)}"


def _known(snapshot: Snapshot, node: str, host: Object, key: str) -> Mapping[str, Any] | None:
    """Return ``boot_id`` and the facts of the failover by which the playbook would find this key; ``None`` if by none.

    They are those of the record on the Node, or of the entry in the history.
    """
    try:
        record = failover_rules.record_of(snapshot.nodes[node]) if node in snapshot.nodes else None
    except Refused:
        record = None
    # The record on the Node takes precedence.
    known = {**record["facts"], "boot_id": record["boot_id"]} if record else snapshot.failovers.get(node, {})
    return known if _leads_to(known, host, key) else None


def _leads_to(facts: Mapping[str, Any], host: Object, key: str) -> bool:
    """Return whether the facts of a failover name this key of this host."""
    wanted = (host["metadata"]["name"], host["metadata"]["namespace"], key)
    return (facts.get("host"), facts.get("namespace"), facts.get("key")) == wanted


def _remove(host: Object, request: Request) -> str:
    place = {"bare_metal_host": host["metadata"]["name"], "namespace": host["metadata"]["namespace"]}
    command = advice_rules.module_command("reboot_annotation", state="absent", **place, key=request.key)
    return f"no recorded failover has it, so find out who uses the machine, then run: {command}"


def _attachments(snapshot: Snapshot) -> Iterable[Finding]:
    if snapshot.names is None:
        return
    for item in snapshot.attachments:
        name = item["spec"]["nodeName"]
        if name in snapshot.names:
            continue
        found = attachment(item)
        yield Finding(
            "attachment",
            node=name,
            since=str(item["metadata"].get("creationTimestamp") or ""),
            why=f"VolumeAttachment {found.name} (volume {found.volume}) names a node that no longer exists; "
            f"{found.reason}",
            todo=(
                f"Volume {found.volume} is still attached to {name}, which is no longer a Node. Make sure that the "
                f"machine is off, then that {found.attacher} detaches the volume."
            ),
        )
