# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor looks at besides Nodes and ledgers: hosts, volumes, health checks, and Machines.

Hosts and Machines may be in another cluster.

The rest does not need permissions for these: without them, the doctor warns and continues.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from .._api import paths
from .._api.errors import ApiFailure, HoldfastError, NotFound
from .._api.objects import Object
from .._api.runner import Context
from .._budget import runs as run_leases
from .._capi import find as capi
from .._capi.rules import cluster_of
from .._failover import audit, audit_rules
from .._fencing import find_host, host_rules
from .._nodes import health_checks
from . import machine_rules
from .snapshot_rules import Snapshot


def seen(context: Context, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with all of these objects."""
    return _with_health_checks(context, _with_machines(context, _with_failovers(context, snapshot)))


def _with_health_checks(context: Context, snapshot: Snapshot) -> Snapshot:
    """Add the NodeHealthChecks that runs may have paused. Most clusters have none, and the right to list none."""
    try:
        return replace(snapshot, health_checks=health_checks.listed(context.cluster))
    except HoldfastError as error:
        if not (isinstance(error, ApiFailure) and error.status == 403):
            context.warn(f"Could not look for NodeHealthChecks that runs have paused: {error.message}")
        return snapshot


def _with_failovers(context: Context, snapshot: Snapshot) -> Snapshot:
    """Add what failovers may have left. Of the many volumes and hosts, only those that may be left are kept."""
    hosts: list[Object] | None = None
    elsewhere: dict[str, str] = {}
    attachments: list[Object] = []
    names = set(snapshot.names or ())
    try:
        found = context.cluster.items(paths.VOLUME_ATTACHMENTS)
        attachments = [item for item in found if item["spec"]["nodeName"] not in names]
    except ApiFailure as error:
        context.warn(f"Could not look for volumes of nodes that no longer exist: {error.message}")
    # A Node may have been created between the two lists.
    wanted = {item["spec"]["nodeName"] for item in attachments}
    names |= {name for name in wanted if context.cluster.find(paths.node(name))}
    try:
        items = context.management.items(find_host.ALL_HOSTS)
        listed = [host for host in items if host_rules.keys_written(host)]
        hosts, elsewhere = listed, _elsewhere(context, listed)
    except NotFound:
        # They may be in another cluster.
        pass
    except HoldfastError as error:
        context.warn(f"Could not look for keys that keep BareMetalHosts off: {error.message}")
    # Other hardware may have joined as the Node of a host that is kept off. Such a Node has no mark.
    kept = {written.node for host in hosts or () for written in host_rules.keys_written(host).values()} & names
    found_nodes = {name: context.cluster.find(paths.node(name)) for name in kept - set(snapshot.nodes)}
    return replace(
        snapshot,
        nodes={**snapshot.nodes, **{name: node for name, node in found_nodes.items() if node}},
        names=names,
        hosts=hosts,
        elsewhere=elsewhere,
        attachments=attachments,
        failovers=audit_rules.unfinished_of(audit.read(context.cluster)),
    )


def _elsewhere(context: Context, hosts: Collection[Object]) -> dict[str, str]:
    """Return the hosts whose Machine is not proven to be a Node of this cluster; see :class:`Snapshot`."""
    here = find_host.nodes_of(context.cluster, context.management, hosts)
    others = [host for host in hosts if host["metadata"]["uid"] not in here]
    machines = {host_rules.full_name(host): find_host.claimed_by(context.management, host)[1] for host in others}
    return {name: cluster_of(machine) for name, machine in machines.items() if machine}


def _with_machines(context: Context, snapshot: Snapshot) -> Snapshot:
    """Add the Machines that our runs have worked on."""
    management = context.management
    try:
        found = management.items(capi.machines_path(management, None))
        machines = [item for item in found if machine_rules.is_marked(item)]
        runs, now = run_leases.all_runs(management) if machines else [], management.now()
    except NotFound:
        return snapshot
    except HoldfastError as error:
        context.warn(f"Could not look for Machines that wait for hooks of this collection: {error.message}")
        return snapshot
    return replace(snapshot, machines=machines, works={run.id: run.alive(now) for run in runs})
