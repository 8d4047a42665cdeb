# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at everything of ours in a cluster, and clear what belongs to no live run."""

from __future__ import annotations

import json
from collections.abc import Callable

from . import _claim, _cordon, _ledger, _node, _run
from . import _ledger_store as store
from . import _paths as paths
from ._clock import to_text
from ._cluster import Cluster, Object
from ._doctor_rules import ROLE_OWNER, Finding, Picture, examine
from ._errors import NotFound
from ._face import Context, Params, Result
from ._ledger import Ledger
from ._names import CLAIM, CORDON, OPERATION
from ._operation_book import end
from ._watch import retry_conflicts


def doctor(context: Context, params: Params) -> Result:
    """Report, and with ``state: cleared`` clear what is stale."""
    cluster = context.cluster
    findings = examine(take_picture(cluster), release=params["release"])
    stale = [finding for finding in findings if finding.stale]
    if params["state"] == "cleared":
        _clear(cluster, stale)
    return {
        "changed": params["state"] == "cleared" and bool(stale),
        "findings": [finding.to_data() for finding in findings],
        "stale": len(stale),
        "diff": {
            "before": {"stale": [finding.to_data() for finding in stale]},
            "after": {"stale": [] if params["state"] == "cleared" else [finding.to_data() for finding in stale]},
        },
    }


def take_picture(cluster: Cluster) -> Picture:
    """Nodes that bear a mark of ours or stand in a ledger, all ledgers, all runs."""
    ledgers = dict(store.all_ledgers(cluster))
    in_ledgers = {name for ledger in ledgers.values() for name in ledger.slots}
    nodes = {
        _node.name(node): node for node in cluster.items(paths.NODES) if _marked(node) or _node.name(node) in in_ledgers
    }
    runs = {run.id: run for run in _run.all_runs(cluster)}
    return Picture(nodes, ledgers, runs, cluster.now())


def _clear(cluster: Cluster, stale: list[Finding]) -> None:
    """Clear under a claim of our own, so that no run begins to work on a node meanwhile."""
    me = f"doctor/{to_text(cluster.now())}"
    on_nodes = [finding for finding in stale if finding.node]
    with _run.heartbeat(cluster, me, "doctor"):
        for name in sorted({finding.node for finding in on_nodes}):
            if not _claimed(cluster, name, me):
                continue
            for finding in on_nodes:
                if finding.node == name:
                    _CLEAR[finding.kind](cluster, finding)
            _claim.give_back(cluster, name, run=me)
    for finding in stale:
        if not finding.node:
            _CLEAR[finding.kind](cluster, finding)
    _run.end(cluster, me)


def _claimed(cluster: Cluster, name: str, me: str) -> bool:
    """Whether the node is ours to clear: not where a run has come to life, but also where the Node is no more."""
    try:
        _claim.take(cluster, name, run=me, operation="doctor", purpose="doctor", restart=True)
    except _claim.Claimed:
        return False
    except NotFound:
        return True
    return True


def _marked(node: Object) -> bool:
    return any(mark in _node.annotations_of(node) for mark in (CORDON, CLAIM, OPERATION))


def _uncordon(cluster: Cluster, finding: Finding) -> None:
    _cordon.give_back(cluster, finding.node, ROLE_OWNER)


def _close_record(cluster: Cluster, finding: Finding) -> None:
    def attempt() -> None:
        node = cluster.get(paths.node(finding.node))
        record = _node.record(node, OPERATION)
        if not record or record.get("result") or record.get("id") != finding.operation:
            return
        closed = {**record, "result": "failed", "detail": f"abandoned in phase {record.get('phase')}"}
        metadata = {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {OPERATION: json.dumps(closed, sort_keys=True)},
        }
        cluster.merge(paths.node(finding.node), {"metadata": metadata})

    retry_conflicts(attempt)


def _release_slot(cluster: Cluster, finding: Finding) -> None:
    def release(ledger: Ledger) -> Ledger:
        slot = ledger.slots.get(finding.node)
        same = slot is not None and (slot.operation, slot.run) == (finding.operation, finding.run)
        return _ledger.release(ledger, finding.node) if same else ledger

    _change(cluster, finding.group, release)


def _end_operation(cluster: Cluster, finding: Finding) -> None:
    def close(ledger: Ledger) -> Ledger:
        ended = end(ledger, finding.operation, "", _run.live_ids(cluster), complete=True, now=cluster.now())
        entry = {**_ledger.operation_entry(ended, finding.operation), "unfinished": False}
        return _ledger.with_entry(ended, entry)

    _change(cluster, finding.group, close)


def _change(cluster: Cluster, group: str, change: Callable[[Ledger], Ledger]) -> None:
    def attempt() -> None:
        config_map = store.load(cluster, group)
        before = store.ledger_of(config_map)
        after = change(before)
        if after != before:
            store.store(cluster, group, config_map, after)

    retry_conflicts(attempt)


def _end_run(cluster: Cluster, finding: Finding) -> None:
    _run.end(cluster, finding.run)


_CLEAR: dict[str, Callable[[Cluster, Finding], None]] = {
    "cordon": _uncordon,
    # The claim of the dead run has passed to us by now, and goes when we are done with the node.
    "claim": lambda cluster, finding: None,
    "record": _close_record,
    "slot": _release_slot,
    "operation": _end_operation,
    "run": _end_run,
}
