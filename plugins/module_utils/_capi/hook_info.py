# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operation that reports which Machines have hooks, and which wait for them."""

from __future__ import annotations

from typing import Any

from .._api.errors import NotFound
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._api.watch import Changed, Deadline, Follower
from . import find as capi
from . import rules


def deletion_hook_info(context: Context, params: Params) -> Result:
    """Return Machines with their hooks; with ``wait_for: waiting``, return when one waits for a hook."""
    deadline = Deadline(params["wait_timeout"])
    waits = params["wait_for"] == "waiting" and not context.check_mode
    try:
        found = _wait(context, params, deadline) if waits else _list(context, params)
    except NotFound:
        # A cluster without Cluster API has no Machines.
        found = []
    machines = [describe(item) for item in found if _wanted(item, params)]
    return {
        "changed": False,
        "machines": sorted(machines, key=lambda item: (item["namespace"], item["name"])),
        "waited": round(deadline.elapsed, 3) if waits else 0,
    }


def describe(machine: Object) -> dict[str, Any]:
    """Return a Machine as results show it."""
    metadata = machine["metadata"]
    return {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "cluster": rules.cluster_of(machine),
        "node": rules.node_of(machine),
        "phase": rules.phase(machine),
        "waiting_for": rules.waits_at(machine),
        "waiting_since": rules.waiting_since(machine),
        "paused": rules.is_paused(machine),
        "hooks": [hook.shown() for hook in rules.hooks_of(machine)],
    }


def _selectors(params: Params) -> tuple[str, str]:
    """Return the field selector and the label selector."""
    name = params.get("machine")
    return f"metadata.name={name}" if name else "", params.get("selector") or ""


def _list(context: Context, params: Params) -> list[Object]:
    fields, labels = _selectors(params)
    namespace = params.get("namespace")
    return list(capi.machines(context.management, namespace, field_selector=fields, label_selector=labels))


def _wait(context: Context, params: Params, deadline: Deadline) -> list[Object]:
    """Return the Machines when one waits for a hook, or when the deadline passes."""
    path = capi.machines_path(context.management, params.get("namespace"))
    known: dict[tuple[str, str], Object] = {}
    fields, labels = _selectors(params)
    for news in Follower(context.management, path, deadline, field_selector=fields, label_selector=labels):
        if isinstance(news, Changed):
            known.pop(_id(news.object), None)
            if not news.deleted:
                known[_id(news.object)] = news.object
        else:
            known = {_id(item): item for item in news.items}
        if any(_waits(item, params) for item in known.values()):
            break
    return list(known.values())


def _id(machine: Object) -> tuple[str, str]:
    return machine["metadata"]["namespace"], machine["metadata"]["name"]


def _wanted(machine: Object, params: Params) -> bool:
    hook = params.get("hook")
    return not hook or any(item.name == hook for item in rules.hooks_of(machine))


def _waits(machine: Object, params: Params) -> bool:
    hook = params.get("hook")
    return any(
        rules.waits_for(machine, item.point, item.annotation)
        for item in rules.hooks_of(machine)
        if not hook or item.name == hook
    )
