# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits before a Machine is released: for its replacement, and for its volumes."""

from __future__ import annotations

from .._api import paths
from .._api.errors import TimedOut
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline, Follower
from .._budget import runs
from .._budget.ledger_rules import member_of_row
from .._capi import find as capi
from .._capi import rules as hooks
from .._capi.find import KINDS, MACHINE
from .._drain.drain import pods_on
from .._drain.rules import Options, plan
from .._drain.volumes import follow_attachments, persistent_volumes
from .._shared.bounds import some
from . import replacement_rules as rules

_LOOK_AGAIN = 10.0
# Seconds that a look counts as current.
_GLANCE = 2.0


def machine_guard_wait(context: Context, params: Params) -> Result:
    """Wait for what must be true before a Machine is released; see the module of the same name."""
    with runs.heartbeat(context.management, params.get("run") or ""):
        if params["wait_for"] == "replacement":
            return _Replacement(context, params).wait()
        return _volumes(context, params)


class _Replacement:
    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._params = context, params
        self._management = context.management
        self._deadline = Deadline(0 if context.check_mode else params["wait_timeout"])

    def wait(self) -> Result:
        place = capi.place(self._management, KINDS[MACHINE], self._params["namespace"], self._params["machine"])
        machine = self._management.get(place.path)
        label = rules.siblings_label(machine)
        if label is None:
            return self._result(None, [])
        ready, wanted = self._look(machine, label)
        while len(ready) < wanted and not self._deadline.passed:
            # Cluster API reports Nodes on their Machines. If it does not, this loop still looks at them.
            pause, glance = Deadline(min(self._deadline.left, _LOOK_AGAIN)), Deadline(0)
            for _news in Follower(self._management, place.collection, pause, label_selector=label):
                # In a rollout, Machines change many times a second, and a look reads all Nodes.
                if not glance.passed:
                    continue
                ready, wanted = self._look(machine, label)
                glance = Deadline(_GLANCE)
                if len(ready) >= wanted:
                    break
        if len(ready) >= wanted or self._context.check_mode:
            return self._result(wanted, ready)
        raise TimedOut(
            f"The replacement of Machine {machine['metadata']['name']} needs {wanted} other Machines with Ready Nodes; "
            f"after {self._params['wait_timeout']} s there are {len(ready)} ({', '.join(ready) or 'none'}). Check the "
            "Machines that are being created, or do not wait: machine_guard_wait_for_replacement: false.",
            wanted=wanted,
            ready=ready,
        )

    def _look(self, machine: Object, label: str) -> tuple[list[str], int]:
        """Return the names of the other Machines whose Nodes are Ready, and how many are wanted."""
        pool = list(capi.machines(self._management, self._params["namespace"], label_selector=label))
        others = [item for item in pool if rules.counts(item)]
        rows = self._context.cluster.rows(paths.NODES) if others else ()
        nodes = {node.name for node in map(member_of_row, rows) if node.ready}
        ready = sorted(item["metadata"]["name"] for item in others if hooks.node_of(item) in nodes)
        return ready, rules.wanted(self._maker(machine), pool)

    def _maker(self, machine: Object) -> Object | None:
        """Return the object that says how many Machines there must be."""
        for kind, name in rules.makers(machine):
            place = capi.place(self._management, KINDS[kind], self._params["namespace"], name)
            found = self._management.find(place.path)
            if found is None or kind != "MachineSet":
                return found
            above = rules.deployment_of(found)
            if above is None:
                return found
            place = capi.place(self._management, KINDS["MachineDeployment"], self._params["namespace"], above)
            return self._management.find(place.path)
        return None

    def _result(self, wanted: int | None, ready: list[str]) -> Result:
        return {**_NOTHING, "wanted": wanted, "ready": ready, "waited": round(self._deadline.elapsed, 3)}


def _volumes(context: Context, params: Params) -> Result:
    """Wait until no VolumeAttachment names the Node, except those of pods that no drain moves."""
    cluster, node = context.cluster, params.get("node")
    deadline = Deadline(0 if context.check_mode else params["wait_timeout"])
    if not node:
        return {**_NOTHING, "waited": 0}
    staying = [pod for pod, _why in plan(pods_on(cluster, node), Options(force=True, delete_emptydir=True)).skipped]
    kept = persistent_volumes(cluster, staying, [])

    left: dict[str, str] = {}
    for left in follow_attachments(cluster, node, deadline):
        if set(left.values()) <= kept:
            break
    waiting = sorted(name for name, volume in left.items() if volume not in kept)
    if waiting and not context.check_mode:
        using = [pod for pod in pods_on(cluster, node) if persistent_volumes(cluster, [pod], []) & set(left.values())]
        names = some(sorted(pod.full_name for pod in using if pod not in staying))
        cause = (
            f"Pods still use their volumes: {names}. Cluster API leaves the drain out if the Cluster is deleted, or if "
            "the Machine is excluded from it. Drain the Node"
            if names
            else "Check the CSI driver's attacher, raise machine_guard_volumes_timeout"
        )
        raise TimedOut(
            f"After {params['wait_timeout']} s {len(waiting)} VolumeAttachments still name Node {node}: "
            f"{', '.join(waiting)}. {cause}, or set machine_guard_check_volumes: false.",
            volume_attachments=waiting,
        )
    stay = sorted(name for name, volume in left.items() if volume in kept)
    return {**_NOTHING, "volume_attachments": waiting, "staying": stay, "waited": round(deadline.elapsed, 3)}


_NOTHING: Result = {"changed": False, "wanted": None, "ready": [], "volume_attachments": [], "staying": []}
