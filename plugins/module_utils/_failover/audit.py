# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The history of failovers: who, when, why, on which evidence, and how long each step took.

The ConfigMap ``failovers`` in the namespace ``holdfast`` has an entry for each of the last failovers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import NotFound
from .._api.names import COLLECTION, MANAGED_BY, NAMESPACE
from .._api.objects import Object
from .._api.times import to_text
from .._api.watch import retry_conflicts
from .._budget.ledger_store import ensure_namespace
from .audit_rules import KEEP, bounded, entry_after, entry_closed, entry_of, read_entry
from .rules import AUDIT


def read(cluster: Cluster) -> dict[str, str]:
    return dict((_load(cluster) or {}).get("data") or {})


def note(
    cluster: Cluster,
    node: str,
    record: Mapping[str, Any],
    versions: Mapping[str, str],
    stated: Mapping[str, Any] | None = None,
    *,
    check: Callable[[], object],
    phase: str = "",
) -> dict[str, Any]:
    """Update the entry of a failover from the record on its Node, and return it. A dry run writes nothing.

    Args:
        stated: The facts that this run gives; see :func:`.audit_rules.entry_after`, also for ``phase``.
        check: Raises an error if the run no longer has the claim. Another run writes after its claim, so what it wrote
            is never replaced: either this check fails, or the write conflicts, and the check is repeated.
    """

    def attempt() -> dict[str, Any]:
        config_map = _load(cluster)
        check()
        data = dict((config_map or {}).get("data") or {})
        known, now = read_entry(data.get(record["id"], "{}")), to_text(cluster.now())
        entry = entry_after(known, node, record, versions, now, phase=phase, stated=stated)
        if not cluster.dry_run:
            data[record["id"]] = json.dumps(entry, sort_keys=True)
            _store(cluster, config_map, bounded(data, record["id"]))
        return entry

    return retry_conflicts(attempt)


def close(
    cluster: Cluster,
    node: str,
    operation: str,
    *,
    run: str,
    result: str,
    detail: str,
    facts: Mapping[str, Any],
    check: Callable[[], object],
    phase: str = "",
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Record how a failover ended whose Node does not have its record; return the entry before and after.

    A dry run writes nothing.

    Args:
        check: Raises an error if another run may work on the failover; see :func:`note`.

    Raises:
        NotFound: There is no such failover of the node.
    """

    def attempt() -> tuple[dict[str, Any], dict[str, Any]]:
        config_map = _load(cluster)
        check()
        data = dict((config_map or {}).get("data") or {})
        before = entry_of(data, node, operation)
        if before is None:
            raise NotFound(
                f"The ConfigMap {NAMESPACE}/{AUDIT} has no failover {operation} of node {node}: it keeps the last "
                f"{KEEP}, or the entry was removed.",
                operation=operation,
            )
        now = to_text(cluster.now())
        after = entry_closed(before, run=run, result=result, detail=detail, facts=facts, now=now, phase=phase)
        if not cluster.dry_run:
            data[operation] = json.dumps(after, sort_keys=True)
            _store(cluster, config_map, bounded(data, operation))
        return before, after

    return retry_conflicts(attempt)


def _load(cluster: Cluster) -> Object | None:
    return cluster.find(paths.one(paths.config_maps(NAMESPACE), AUDIT))


def _store(cluster: Cluster, before: Object | None, data: Mapping[str, str]) -> None:
    if before is not None:
        cluster.replace(paths.one(paths.config_maps(NAMESPACE), AUDIT), {**before, "data": dict(data)})
        return
    ensure_namespace(cluster)
    metadata = {"name": AUDIT, "namespace": NAMESPACE, "labels": {MANAGED_BY: COLLECTION}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
    cluster.create(paths.config_maps(NAMESPACE), body)
