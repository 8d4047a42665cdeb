# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of an operation's progress on a node. It is kept on the Node, so that any run can resume the operation."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from math import inf
from typing import Any

from .._api import node_rules
from .._api.cluster import Cluster
from .._api.names import CLAIM, OPERATION
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.times import to_text
from .._api.watch import retry_conflicts
from . import claim_rules
from .lifecycle import Report, write_marks
from .lifecycle_rules import Work, others_work_on_it
from .node_operation_rules import DELETED_PODS, OVERRIDDEN_HOLDS, VOLUMES, Phase, advance, change_of, others_began


def node_operation(context: Context, params: Params) -> Result:
    """Record which phase of which operation a node is in, or how the operation ended on it."""
    before, after = retry_conflicts(lambda: _attempt(context, params))
    return {"changed": before is not after, "operation": node_rules.record(after, OPERATION)}


def record_phase(
    cluster: Cluster,
    name: str,
    phase: Phase | None,
    report: Report | None = None,
    *,
    daemonsets: Mapping[str, str] | None = None,
    volumes: Collection[str] = (),
    deleted_pods: Collection[str] = (),
    overridden_holds: Collection[str] = (),
) -> None:
    """Record the phase of an action before it begins. Record nothing if the action is not part of an operation.

    Args:
        report: The lifecycle conditions to set with it.
        daemonsets: The DaemonSets that have a Ready pod on the node, and its container, for a drain.
        volumes: PersistentVolumes that have to be detached, to add to those of earlier writes.
        deleted_pods: Pods that are deleted despite their budgets (namespace/name), to add.
        overridden_holds: Holds that the reboot overrides (namespace/holder), to add.

    Raises:
        ClaimLost: The run of the phase no longer has the claim on the node.
    """
    if phase is not None:
        noted = {VOLUMES: volumes, DELETED_PODS: deleted_pods, OVERRIDDEN_HOLDS: overridden_holds}
        params = {"name": name, "operation": phase.operation, "run": phase.run, "phase": phase.name, "claimed": True}
        retry_conflicts(lambda: _write(cluster, {**params, "daemonsets": daemonsets, "noted": noted}, report))


def marks_of(cluster: Cluster, node: Object, phase: Phase | None) -> dict[str, Any]:
    """The annotation that records a phase, for an action that writes the Node; empty if it is already recorded."""
    if phase is None:
        return {}
    record = node_rules.record(node, OPERATION)
    params = {"operation": phase.operation, "run": phase.run, "phase": phase.name}
    wanted = advance(record, node, params, to_text(cluster.now()))
    return {} if wanted == record else {OPERATION: json.dumps(wanted, sort_keys=True)}


def _attempt(context: Context, params: Params) -> tuple[Object, Object]:
    work = Work(claim_rules.PURPOSE.replace("_", " "), params["operation"], params.get("run") or "")
    change = change_of(params)
    return _write(context.cluster, params, Report(context, change, work) if change else None)


def _write(cluster: Cluster, params: Params, report: Report | None) -> tuple[Object, Object]:
    node = claim_rules.require_claim(read_node(cluster, params["name"]), _claimant(params), claimed=params["claimed"])
    record = node_rules.record(node, OPERATION)
    waits = not (params["claimed"] or params.get("result"))
    run, old_after = params.get("run") or "", params.get("old_after", inf)
    if waits and others_began(node, params["operation"], run, cluster.now(), old_after):
        return node, node
    wanted = advance(record, node, params, to_text(cluster.now()))
    marks: dict[str, Any] = {} if wanted == record else {OPERATION: json.dumps(wanted, sort_keys=True)}
    present = claim_rules.claim_of(node)
    if params.get("result") and present and present.run == params.get("run"):
        # One write for both: if the run died between two writes, its claim would stay on a node that is done.
        marks[CLAIM] = None
    if report is not None and not others_work_on_it(node, params.get("run") or ""):
        return node, report.write(node, marks)
    return node, write_marks(cluster, node, marks)


def _claimant(params: Params) -> str:
    """The run whose claim is checked; empty while the run waits for its turn.

    A result ends the work on the node, so no run may record it while another one works there.
    """
    return (params.get("run") or "") if params["claimed"] or params.get("result") else ""
