# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until the canaries of an operation are done and stay healthy for the soak time."""

from __future__ import annotations

from datetime import timedelta
from math import inf

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import InvalidInput, TimedOut
from .._api.node_rules import labels_of
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.times import seconds_between, to_text
from .._api.watch import Deadline, Follower, Listed, wait_for
from .canary_rules import Canary, CanaryFailed, check, read_canary, soaked_until

# Nearly every node has this label. With it the server selects several nodes by name; a field selector can't.
_HOSTNAME = "kubernetes.io/hostname"
# Seconds to wait for the API server, which may itself run on a canary.
_PATIENCE = 300.0
# With more names, the URL gets longer than some proxies accept.
_MOST_NAMES = 50


def await_canaries(context: Context, params: Params) -> Result:
    """Wait until all ``nodes`` are done in the operation, and have stayed healthy for ``soak`` seconds since.

    Only the records on the Nodes count. So any run may reboot the canaries, and a later run does not repeat a soak that
    has ended. If a canary has a problem and recovers while no run waits, only a changed boot ID shows it.

    Raises:
        Refused: A canary is excluded, so it will never be done.
        CanaryFailed: A canary failed, is gone, or is not healthy after it was done.
        TimedOut: They are not done after ``wait_timeout`` seconds. The soak does not count against it.
    """
    names = _checked(params)
    cluster, deadline = context.cluster, Deadline(params["wait_timeout"])
    nodes = [read_node(cluster, name) for name in names]
    watch = _Watch(cluster, params["operation"], nodes, params.get("old_after", inf))
    watch.check()
    _wait(watch, params["soak"], deadline)
    canaries = list(watch.canaries.values())
    until = soaked_until(canaries, params["soak"])
    return {
        "changed": False,
        "canaries": [canary.to_data() for canary in canaries],
        "soaked_until": to_text(until) if until else None,
    }


def _checked(params: Params) -> list[str]:
    names = list(dict.fromkeys(params["nodes"]))
    if not names or not all(name.strip() for name in names):
        raise InvalidInput("nodes must name the canaries, at least one.", option="nodes")
    if not params["operation"].strip():
        raise InvalidInput("operation must not be empty. Give the id of the operation.", option="operation")
    if params["soak"] < 0:
        raise InvalidInput(f"soak must be a number of seconds, 0 or more, not {params['soak']}.", option="soak")
    return names


class _Watch:
    """The canaries as last seen, and a watch for changes."""

    def __init__(self, cluster: Cluster, operation: str, nodes: list[Object], old_after: float) -> None:
        self.cluster, self.operation, self._old_after = cluster, operation, old_after
        self._read(nodes)

    def _read(self, nodes: list[Object]) -> None:
        self.canaries = {node["metadata"]["name"]: self._canary(node) for node in nodes}
        self._selectors = _selectors(nodes)

    def check(self) -> None:
        for canary in self.canaries.values():
            check(canary, self.operation)

    def look(self) -> None:
        """Read and check all canaries, even if the API server is unavailable for a while."""
        self._read([self._node(name) for name in self.canaries])
        self.check()

    def _node(self, name: str) -> Object:
        node = wait_for(self.cluster, paths.NODES, name, lambda item: True, Deadline(_PATIENCE))
        if node is None:
            raise CanaryFailed(
                f"Canary {name} of operation {self.operation} no longer exists. No other node is rebooted. Find out "
                "who removed the Node, and name another canary.",
                node=name,
            )
        return node

    def until_news(self, deadline: Deadline) -> None:
        """Wait until one of the canaries changes, or for the deadline.

        Raises:
            Refused: A canary will never be done.
            CanaryFailed: A canary is in trouble, even if only for a moment.
        """
        for news in Follower(self.cluster, paths.NODES, deadline, keep=self._keep, **self._selectors):
            found = [item for item in (news.items if isinstance(news, Listed) else [news.object]) if item]
            for canary in found:
                check(canary, self.operation)
            gone = len(found) < len(self.canaries) if isinstance(news, Listed) else bool(found) and news.deleted
            if gone or any(self.canaries[canary.name] != canary for canary in found):
                return

    def _keep(self, node: Object) -> Canary | None:
        return self._canary(node) if node["metadata"]["name"] in self.canaries else None

    def _canary(self, node: Object) -> Canary:
        return read_canary(node, self.operation, now=self.cluster.now(), old_after=self._old_after)


def _wait(watch: _Watch, soak: int, deadline: Deadline) -> None:
    known = latest = None
    while True:
        until = soaked_until(watch.canaries.values(), soak)
        if until is None:
            if deadline.passed:
                raise _timed_out(watch, deadline)
            watch.until_news(deadline)
        else:
            now = watch.cluster.now()
            if latest is None or until != known:
                # A record may have a time in the future. Even then, the soak ends at most `soak` seconds from now.
                known, latest = until, now + timedelta(seconds=soak)
            left = seconds_between(now, min(until, latest))
            if left <= 0:
                return
            watch.until_news(Deadline(left))
        watch.look()


def _timed_out(watch: _Watch, deadline: Deadline) -> TimedOut:
    left = [canary for canary in watch.canaries.values() if not canary.done]
    return TimedOut(
        f"The canaries of operation {watch.operation} are not done after {deadline.seconds} s: "
        f"{'; '.join(canary.words() for canary in left)}. Check whether a run works on them "
        "(holdfast.kubernetes.doctor), or raise rolling_reboot_canary_timeout.",
        waiting_for=[canary.name for canary in left],
        canaries=[canary.to_data() for canary in watch.canaries.values()],
    )


def _selectors(nodes: list[Object]) -> dict[str, str]:
    """Selectors that limit the watch to these nodes and few others; empty if no label selects them."""
    if len(nodes) == 1:
        return {"field_selector": f"metadata.name={nodes[0]['metadata']['name']}"}
    values = [labels_of(node).get(_HOSTNAME) for node in nodes]
    if len(nodes) > _MOST_NAMES or not all(values):
        return {}
    return {"label_selector": f"{_HOSTNAME} in ({','.join(str(value) for value in values)})"}
