# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Begin a rolling reboot: name the run, enter the operation, and choose the hosts that go first and last."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from itertools import islice

from .._api import node_rules, paths
from .._api.errors import InvalidInput
from .._api.names import EXCLUDE
from .._api.runner import Context, Params, Result
from .._api.times import to_text
from .._budget import operations, runs
from .._budget.operation_rules import fresh_id
from .._nodes import health_checks
from .._nodes.controller import controller_node
from .._shared.bounds import some
from .silences import Alertmanager


def reboot_begin(context: Context, params: Params) -> Result:
    """Begin a rolling reboot, or resume one; see the module of the same name."""
    settings, hosts = params["settings"], dict(params["hosts"])
    alone = params["play"] == "only"
    if alone:
        # Without the playbook, each host has a run of its own.
        hosts = {params["inventory_host"]: settings["node_name"]}
    if params.get("alertmanager"):
        # Refuse options that can't work before anything changes.
        Alertmanager(params["alertmanager"], "")
    # If this fails, nothing is left to undo.
    own = "" if alone else _own_host(context, settings, hosts)
    # Without the playbook, the canaries are among all hosts of the play, too.
    canaries = _canaries(context, settings["canary"], params["hosts"], own)
    begun = enter(context, params, hosts, alone=params["inventory_host"] if alone else "")
    taken = begun.pop("taken")
    if settings.get("pause_health_checks"):
        health_checks.pause(context, begun["run"])
    return {
        **begun,
        "began": to_text(context.cluster.now()),
        "own_host": own,
        # Ansible evaluates each item of a list again, at each read of this result for each host.
        "hosts": "\n".join(params["hosts"]),
        "paused": bool(settings.get("pause_health_checks")),
        "resumes": [host for host, node in hosts.items() if node in taken],
        "canaries": canaries,
        # For a canary in another slice of the job, only the name is known.
        "canary_nodes": [params["hosts"].get(host, host) for host in canaries],
    }


def enter(context: Context, params: Params, hosts: Mapping[str, str], *, alone: str = "") -> Result:
    """Name the run, and enter the operation.

    Args:
        hosts: The nodes' names by their hosts.
        alone: Name of the host, if each host has a run of its own.
    """
    settings, who = params["settings"], params["who"]
    _refuse_two_hosts_of_a_node(hosts)
    now = datetime.now(timezone.utc)
    # Two installations of AWX may have jobs of the same number.
    process = who["job"] or f"{who['host']}/{now:%Y%m%dT%H%M%SZ}"
    run = settings.get("run") or f"{process}-{secrets.randbelow(1000000)}"
    if alone:
        run = f"{run}/{alone}"
    if settings.get("run"):
        runs.refuse_live(context.cluster, run, "rolling_reboot_run")
    holder = settings.get("holder") or who["person"]
    found = operations.enter(
        context,
        {
            "group": settings["group"],
            "operation": settings.get("operation") or None,
            "fresh": fresh_id(now),
            "run": run,
            "holder": holder,
            "nodes": list(hosts.values()),
            "restart": settings["restart"],
            "adopt_within": settings["adopt_within"],
            "forks": None if alone else params["forks"],
        },
    )
    if found["adopted"]:
        context.say(
            f"This run continues operation {found['operation']}, which another run began: nodes that the operation has "
            "rebooted are not rebooted again. Set rolling_reboot_restart: true to begin a new operation."
        )
    return {
        "changed": False,
        "operation": found["operation"],
        "adopted": found["adopted"],
        "taken": found["taken"],
        "run": run,
        "holder": holder,
        "group": settings["group"],
    }


def _refuse_two_hosts_of_a_node(hosts: Mapping[str, str]) -> None:
    """Both hosts would belong to one run, so the budget and the claim would let them work at the same time."""
    of_node: dict[str, list[str]] = {}
    for host, node in hosts.items():
        of_node.setdefault(node, []).append(host)
    twice = {node: names for node, names in of_node.items() if len(names) > 1}
    if twice:
        words = some([f"{some(names, 3, ' and ')} are Node {node}" for node, names in twice.items()], 5, "; ")
        raise InvalidInput(
            f"Several hosts are the same Node: {words}. Nothing was done. Set rolling_reboot_node_name for each host "
            "in the inventory, not for the whole run, or leave the other hosts out."
        )


def _canaries(context: Context, asked: Sequence[str], hosts: Mapping[str, str], own: str) -> list[str]:
    """Hosts that go first: the named hosts or Nodes or, for a number, as many of the first hosts that take part."""
    if len(asked) == 1 and asked[0].isdecimal():
        may = (host for host in hosts if host != own and _takes_part(context, hosts[host]))
        return list(islice(may, int(asked[0])))
    of_node = {node: host for host, node in hosts.items()}
    named = [name if name in hosts else of_node.get(name, name) for name in asked]
    if own in named:
        context.warn(
            f"Host {own} is no canary: this controller runs on its node, so the node goes last. Name another canary."
        )
    return [host for host in named if host != own]


def _takes_part(context: Context, name: str) -> bool:
    node = context.cluster.find(paths.node(name))
    return node is not None and EXCLUDE not in node_rules.labels_of(node)


def _own_host(context: Context, settings: Params, hosts: Mapping[str, str]) -> str:
    """The host of the node on which this controller runs; empty if there is none."""
    node = settings.get("controller_node") or controller_node(context.cluster)
    return next((host for host, name in hosts.items() if name == node), "")
