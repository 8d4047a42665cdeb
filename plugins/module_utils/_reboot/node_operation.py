# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of what a node goes through, kept on the Node so that no run's memory is needed."""

from __future__ import annotations

import json
from typing import Any

from .._api import node_rules, paths
from .._api.bounds import cut, seconds_since
from .._api.clock import from_text, to_text
from .._api.cluster import Cluster, Object
from .._api.errors import InvalidInput
from .._api.names import CLAIM, CORDON, OPERATION
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.watch import retry_conflicts
from .._budget import claims


def node_operation(context: Context, params: Params) -> Result:
    """Write down which phase of which operation a node is in."""
    if not params.get("phase") and not params.get("result"):
        raise InvalidInput("node_operation needs phase, result or both: what is to be written down.")
    before, after = retry_conflicts(lambda: _attempt(context.cluster, params))
    old, new = node_rules.record(before, OPERATION), node_rules.record(after, OPERATION)
    return {"changed": before is not after, "operation": new, "diff": {"before": old or {}, "after": new or {}}}


def _attempt(cluster: Cluster, params: Params) -> tuple[Object, Object]:
    node = claims.ours(read_node(cluster, params["name"]), _claimant(params))
    record = node_rules.record(node, OPERATION)
    if _not_ours_to_write(record, claims.claim_of(node), params):
        return node, node
    wanted = advance(record, node, params, to_text(cluster.now()))
    marks: dict[str, Any] = {} if wanted == record else {OPERATION: json.dumps(wanted, sort_keys=True)}
    present = claims.claim_of(node)
    if params.get("result") and present and present.run == params.get("run"):
        # In one write: of a run that dies in between, a claim would be left on a node that is done.
        marks[CLAIM] = None
    if not marks:
        return node, node
    metadata = {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": marks}
    return node, cluster.merge(paths.node(params["name"]), {"metadata": metadata})


def _not_ours_to_write(record: dict[str, Any] | None, claim: claims.Claim | None, params: Params) -> bool:
    """Whether who only waits for its turn finds that another run works on the node, or has rebooted it meanwhile."""
    if params["claimed"] or params.get("result"):
        return False
    if claim is not None and claim.run != params.get("run"):
        return True
    return bool(record and record.get("id") == params["operation"] and record.get("result") == "rebooted")


def _claimant(params: Params) -> str:
    """Who has to have the claim: a run that is past waiting for its turn."""
    return (params.get("run") or "") if params["claimed"] else ""


def _whole(record: dict[str, Any]) -> bool:
    """Whether a record can be resumed. One that someone broke says nothing, and the operation starts again."""
    try:
        from_text(record["since"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    texts = ("phase", "boot_id_before", "result")
    return isinstance(record.get("phases"), dict) and all(isinstance(record.get(name), str) for name in texts)


def advance(record: dict[str, Any] | None, node: Object, params: Params, now: str) -> dict[str, Any]:
    """The record after this step; the same content where the step is written down already."""
    if record is None or record.get("id") != params["operation"] or not _whole(record):
        cordoned = node_rules.record(node, CORDON)
        before = bool(cordoned.get("unschedulable_before")) if cordoned else node_rules.unschedulable(node)
        record = {
            "id": params["operation"],
            "started": now,
            "since": now,
            "phase": "",
            "phases": {},
            "boot_id_before": node_rules.boot_id(node),
            "unschedulable_before": before,
            "result": "",
            "detail": "",
        }
    phase, result = params.get("phase") or record["phase"], params.get("result") or ""
    run = params.get("run") or record.get("run", "")
    if (phase, result) == (record["phase"], record["result"]):
        # The next run goes on where the last one stopped: the phase has its start, and somebody new at work.
        return record if run == record.get("run", "") else {**record, "run": run}
    changed = {**record, "run": run, "result": result, "detail": cut(params.get("detail") or "", 1000)}
    if record["phase"] and not record["result"]:
        known = record["phases"].get(record["phase"], 0)
        spent = seconds_since(record["since"], from_text(now))
        changed["phases"] = {**record["phases"], record["phase"]: round(known + spent, 1)}
    if phase == "cordon" and record["phase"] in ("hold", "slot"):
        # Whatever happened to the node while it waited, its reboot begins here.
        changed["boot_id_before"] = node_rules.boot_id(node)
    changed.update(phase=phase, since=now)
    if result:
        changed["boot_id_after"] = node_rules.boot_id(node)
    else:
        changed.pop("boot_id_after", None)
    return changed
