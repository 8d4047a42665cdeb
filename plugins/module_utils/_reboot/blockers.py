# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check whether pods or alerts block the reboot of a node, and wait until none does."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, InvalidInput, TimedOut, Unreachable, passing
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline, Follower, Listed
from .._budget import runs
from .blocker_rules import POD, Blocker, of_pod, sentence
from .prometheus import Prometheus


def node_blockers(context: Context, params: Params) -> Result:
    """Check once, or until nothing blocks; see the module of the same name."""
    _check(params)
    cluster, name = context.cluster, params["name"]
    selections = _selections(params.get("pods") or [])
    alerts = Prometheus(params["alerts"], name) if params.get("alerts") else None
    deadline = Deadline(params["wait_timeout"])
    read_node(cluster, name)
    look = _Look(cluster, name, selections, alerts)
    with runs.heartbeat(cluster, params.get("run") or "", params.get("holder") or ""):
        blockers = look.now()
        if params["wait_timeout"] and not context.check_mode:
            blockers = _wait(look, blockers, deadline, params)
    return {
        "changed": False,
        "blockers": [blocker.shown() for blocker in blockers],
        "waited": round(deadline.elapsed, 3),
    }


def _check(params: Params) -> None:
    if params["wait_timeout"] < 0:
        raise InvalidInput(f"wait_timeout must not be negative, it is {params['wait_timeout']}. Use 0 to check once.")
    if params["interval"] < 1:
        raise InvalidInput(f"interval must be at least 1 s, it is {params['interval']}.")


@dataclass(frozen=True)
class _Selection:
    """Pods that block: the API path to list them, and their label selector."""

    path: str
    selector: str


def _selections(pods: Sequence[Mapping[str, Any]]) -> list[_Selection]:
    found: list[_Selection] = []
    for item in pods:
        if not item["selector"].strip():
            raise InvalidInput(
                "pods has an empty selector, which would select every pod of the node. Name the labels of the pods "
                "that must not be interrupted."
            )
        namespace = item.get("namespace")
        path = paths.namespaced("api/v1", namespace, "pods") if namespace else paths.PODS
        selection = _Selection(path, item["selector"])
        if selection not in found:
            found.append(selection)
    return found


class _Look:
    """Everything that may block one node."""

    def __init__(self, cluster: Cluster, name: str, selections: list[_Selection], alerts: Prometheus | None) -> None:
        self._cluster = cluster
        self._selections = selections
        self._alerts = alerts
        # The server leaves out pods that have ended; a watch reports their end as a deletion.
        self._unfinished = f"spec.nodeName={name},status.phase!=Succeeded,status.phase!=Failed"

    def now(self) -> list[Blocker]:
        """Ask the API server and Prometheus for everything that blocks now."""
        alerts = self._alerts.blockers() if self._alerts else []
        pods = {pod["metadata"]["uid"]: of_pod(pod, where.selector) for pod, where in self._pods()}
        return sorted(pods.values()) + sorted(alerts)

    def again(self, before: list[Blocker]) -> list[Blocker]:
        """Like :meth:`now`, but return ``before`` while the API server is unavailable."""
        try:
            return self.now()
        except Unreachable:
            return before
        except ApiFailure as error:
            if not passing(error.status):
                raise
            return before

    def _pods(self) -> Iterator[tuple[Object, _Selection]]:
        for where in self._selections:
            items = self._cluster.items(where.path, field_selector=self._unfinished, label_selector=where.selector)
            try:
                for item in items:
                    yield item, where
            except ApiFailure as error:
                if error.status != 400:
                    raise
                raise InvalidInput(
                    f'pods has the selector "{where.selector}", which the API server does not understand: '
                    f"{error.body_message}."
                ) from error

    def until_pods_are_gone(self, deadline: Deadline) -> None:
        """Watch one selection after the other until it is empty.

        An earlier selection may fill again. This is safe: the caller checks everything again at the end.
        """
        for where in self._selections:
            pods: set[str] = set()
            for news in Follower(
                self._cluster,
                where.path,
                deadline,
                field_selector=self._unfinished,
                label_selector=where.selector,
                keep=_uid,
            ):
                if isinstance(news, Listed):
                    pods = set(news.items)
                elif news.deleted:
                    pods.discard(news.object)
                else:
                    pods.add(news.object)
                if not pods:
                    break


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])


def _wait(look: _Look, blockers: list[Blocker], deadline: Deadline, params: Params) -> list[Blocker]:
    while blockers:
        if deadline.passed:
            raise _timed_out(params, blockers, deadline)
        if any(blocker.kind == POD for blocker in blockers):
            look.until_pods_are_gone(deadline)
        else:
            # Prometheus has no watch.
            time.sleep(min(params["interval"], deadline.left))
        blockers = look.again(blockers)
    return []


def _timed_out(params: Params, blockers: list[Blocker], deadline: Deadline) -> TimedOut:
    return TimedOut(
        f"After {params['wait_timeout']} s {len(blockers)} pods or alerts still block the reboot of node "
        f"{params['name']}: {sentence(blockers)}. Resolve them, raise wait_timeout, or narrow pods and alerts.",
        node=params["name"],
        blockers=[blocker.shown() for blocker in blockers],
        waited=round(deadline.elapsed, 3),
    )
