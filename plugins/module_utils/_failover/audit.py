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
from .._api.errors import ApiFailure, NotFound
from .._api.names import COLLECTION, MANAGED_BY, NAMESPACE
from .._api.objects import Object
from .._api.times import to_text
from .._api.watch import retry_conflicts
from .._budget.ledger_store import ensure_namespace
from .audit_rules import KEEP, bounded, entry_after, entry_closed, entry_of, read_entry
from .rules import AUDIT, Change


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

    def changed(data: Mapping[str, str]) -> dict[str, Any]:
        known, now = read_entry(data.get(record["id"], "{}")), to_text(cluster.now())
        return entry_after(known, node, record, versions, now, phase=phase, stated=stated)

    return _update(cluster, record["id"], changed, check)


def close(
    cluster: Cluster, node: str, operation: str, change: Change, *, check: Callable[[], object]
) -> dict[str, Any]:
    """Record how a failover ended whose Node does not have its record; return the entry. A dry run writes nothing.

    Args:
        check: Raises an error if another run may work on the failover; see :func:`note`.

    Raises:
        NotFound: There is no such failover of the node.
    """

    def changed(data: Mapping[str, str]) -> dict[str, Any]:
        entry = entry_of(data, node, operation)
        if entry is None:
            raise NotFound(
                f"The ConfigMap {NAMESPACE}/{AUDIT} has no failover {operation} of node {node}: it keeps the last "
                f"{KEEP}, or the entry was removed.",
                operation=operation,
            )
        return entry_closed(entry, change, to_text(cluster.now()))

    return _update(cluster, operation, changed, check)


def _update(
    cluster: Cluster,
    operation: str,
    changed: Callable[[Mapping[str, str]], dict[str, Any]],
    check: Callable[[], object],
) -> dict[str, Any]:
    """Change one entry by compare-and-swap, and return it."""

    def attempt() -> dict[str, Any]:
        config_map = _load(cluster)
        check()
        data = dict((config_map or {}).get("data") or {})
        entry = changed(data)
        if not cluster.dry_run:
            data[operation] = json.dumps(entry, sort_keys=True)
            _store(cluster, config_map, bounded(data, operation))
        return entry

    return retry_conflicts(attempt)


def _load(cluster: Cluster) -> Object | None:
    return cluster.find(paths.one(paths.config_maps(NAMESPACE), AUDIT))


def _store(cluster: Cluster, before: Object | None, data: Mapping[str, str]) -> None:
    if before is not None:
        try:
            cluster.replace(paths.one(paths.config_maps(NAMESPACE), AUDIT), {**before, "data": dict(data)})
        except NotFound as error:
            # Someone has deleted it since it was read. Decide again, and make another one.
            raise ApiFailure(error.message, status=409) from error
        return
    ensure_namespace(cluster)
    metadata = {"name": AUDIT, "namespace": NAMESPACE, "labels": {MANAGED_BY: COLLECTION}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
    cluster.create(paths.config_maps(NAMESPACE), body)
