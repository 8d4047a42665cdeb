# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write Kubernetes' own node lifecycle conditions, in the request that writes the collection's annotations.

The annotations matter more: if the API server refuses to change the status of a Node, they are written without it.
The taint of a node that waits is not in its status. It is set after its record, and removed before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, passing
from .._api.objects import Object
from .._api.patience import contains
from .._api.read_node import read_node
from .._api.runner import Context
from .._api.watch import retry_conflicts
from . import runs
from .lifecycle_rules import ENDS, WAITS, Change, Patch, Work, may_change, others_work_on_it, patch_of, run_of
from .node_operation_rules import others_began

_REFUSED = "holdfast-conditions-refused"


@dataclass(frozen=True)
class Report:
    """A change of our conditions, to write together with annotations."""

    context: Context
    change: Change
    work: Work

    def write(self, node: Object, marks: Mapping[str, str | None]) -> Object:
        """Write annotations of a Node by compare-and-swap, and the conditions with them.

        Returns:
            The Node as written; ``node`` itself if there was nothing to write.
        """
        cluster = self.context.cluster
        # The API has these times in whole seconds.
        patch = patch_of(node, self.change, self.work, f"{cluster.now():%Y-%m-%dT%H:%M:%SZ}")
        if patch.taints is None:
            return self._write(node, marks, patch)
        if patch.taint:
            return _set_taints(cluster, self._write(node, marks, patch), patch.taints)
        return self._write(_set_taints(cluster, node, patch.taints), marks, patch)

    def _write(self, node: Object, marks: Mapping[str, str | None], patch: Patch) -> Object:
        cluster = self.context.cluster
        if patch.conditions and not self._refused_before():
            metadata = _metadata(node, {**marks, **patch.marks})
            try:
                node = cluster.merge_conditions(paths.node(node_rules.name(node)), metadata, patch.conditions)
            except ApiFailure as error:
                if error.status == 409 or passing(error.status):
                    raise
                self._warn(error)
            else:
                # The kubelet writes annotations in this way, too, but the API does not promise that it works.
                if contains(node_rules.annotations_of(node), metadata["annotations"]):
                    return node
                return write_marks(cluster, node, metadata["annotations"])
        recorded = patch.marks_alone if patch.conditions else patch.marks
        return write_marks(cluster, node, {**marks, **recorded})

    def _refused_before(self) -> bool:
        return bool(self.context.folder) and (Path(self.context.folder) / _REFUSED).exists()

    def _warn(self, error: ApiFailure) -> None:
        """Warn once in a run. The tasks of a run share a folder."""
        if self.context.folder:
            try:
                (Path(self.context.folder) / _REFUSED).touch(exist_ok=False)
            except OSError:
                return
        self.context.warn(
            "This run does not show its work in the lifecycle conditions of Nodes, and continues without them: "
            f"{error.message} Grant patch on nodes/status, as docs/rbac.yml does, or set "
            "rolling_reboot_lifecycle_conditions or failover_lifecycle_conditions to false."
        )


def write_marks(cluster: Cluster, node: Object, marks: Mapping[str, str | None]) -> Object:
    """Write annotations of a Node by compare-and-swap; ``node`` itself if there are none to write."""
    if not marks:
        return node
    return cluster.merge(paths.node(node_rules.name(node)), {"metadata": _metadata(node, marks)})


def report(context: Context, name: str, change: Change, work: Work) -> tuple[Object, Object]:
    """Change our conditions and nothing else, unless they belong to another run; returns the Node before and after."""

    def attempt() -> tuple[Object, Object]:
        node = read_node(context.cluster, name)
        return node, Report(context, change, work).write(node, {}) if may_change(node, work.run) else node

    return retry_conflicts(attempt)


def show_waiting(context: Context, name: str, work: Work, change: Change = WAITS, *, old_after: float = inf) -> None:
    """Show that a node waits for its turn, unless another run works on it, or has rebooted it.

    Args:
        old_after: Seconds after which a reboot no longer counts.
    """

    def attempt() -> None:
        node = read_node(context.cluster, name)
        if not others_began(node, work.operation, work.run, context.cluster.now(), old_after):
            Report(context, change, work).write(node, {})

    retry_conflicts(attempt)


def end_waiting(context: Context, name: str, work: Work) -> None:
    """Remove the conditions of this run, or of a dead run, from a node that waits no longer."""

    def attempt() -> None:
        node = context.cluster.find(paths.node(name))
        setter = run_of(node) if node else None
        if node is None or setter is None or others_work_on_it(node, work.run):
            return
        if setter == work.run or (setter and setter not in runs.live_ids(context.cluster)):
            Report(context, ENDS, work).write(node, {})

    retry_conflicts(attempt)


def _set_taints(cluster: Cluster, node: Object, taints: list[dict[str, Any]]) -> Object:
    version = {"resourceVersion": node["metadata"]["resourceVersion"]}
    body = {"metadata": version, "spec": {"taints": taints or None}}
    return cluster.merge(paths.node(node_rules.name(node)), body)


def _metadata(node: Object, marks: Mapping[str, str | None]) -> Object:
    return {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": dict(marks)}
