# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Storage of ledgers: one ConfigMap ``group.GROUP`` in the namespace ``holdfast`` for each group."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, InvalidInput, Refused
from .._api.names import COLLECTION, LEDGER, MANAGED_BY, NAMESPACE
from .._api.objects import Object
from .ledger_rules import Ledger, UnknownFields

_GROUP = re.compile(r"[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?")
_PREFIX = "group."


def check_group(group: str) -> None:
    """Refuse a group name that can't be part of a ConfigMap's name.

    Raises:
        InvalidInput: It is too long, has characters other than lowercase letters, digits, ``-`` and ``.``, or does not
            have a letter or digit at both ends.
    """
    if not _GROUP.fullmatch(group):
        raise InvalidInput(
            f'group "{group}" is not a valid name: use lowercase letters, digits, "-" and ".", with a letter or digit '
            "at both ends.",
            group=group,
        )


def config_map_name(group: str) -> str:
    return f"{_PREFIX}{group}"


def ensure_namespace(cluster: Cluster) -> None:
    """Create the namespace of the collection's objects if an administrator has not."""
    path = paths.one("/api/v1/namespaces", NAMESPACE)
    if cluster.find(path) is None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        try:
            cluster.create("/api/v1/namespaces", body)
        except ApiFailure as error:
            if error.status != 409:
                raise


def load(cluster: Cluster, group: str) -> Object | None:
    """The ConfigMap of a group, ``None`` before its first use."""
    return cluster.find(paths.one(paths.config_maps(NAMESPACE), config_map_name(group)))


def ledger_of(config_map: Object | None) -> Ledger:
    """The ledger in a ConfigMap.

    Raises:
        Refused: The data is broken, or a newer version wrote it. A ledger that can't be read must not count as free
            slots.
    """
    name = ((config_map or {}).get("metadata") or {}).get("name")
    try:
        return Ledger.from_data((config_map or {}).get("data") or {})
    except UnknownFields as error:
        raise Refused(f"The ledger in ConfigMap {name}, namespace {NAMESPACE}, {error}", config_map=name) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Refused(
            f"The ConfigMap {name} in namespace {NAMESPACE} is not a valid ledger: {error}. Fix it, or delete it while "
            "no run works on a node of the group.",
            config_map=name,
        ) from error


def store(cluster: Cluster, group: str, before: Object | None, ledger: Ledger) -> Object:
    """Write a ledger by compare-and-swap.

    Args:
        before: The ConfigMap that the new ledger was made from, ``None`` for the first.

    Raises:
        ApiFailure: With status 409 if another run stored the ledger first; read and decide again.
    """
    if before is not None:
        path = paths.one(paths.config_maps(NAMESPACE), config_map_name(group))
        return cluster.replace(path, {**before, "data": ledger.to_data()})
    metadata = {
        "name": config_map_name(group),
        "namespace": NAMESPACE,
        "labels": {LEDGER: "group", MANAGED_BY: COLLECTION},
    }
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": ledger.to_data()}
    if cluster.dry_run and cluster.find(paths.one("/api/v1/namespaces", NAMESPACE)) is None:
        return body
    ensure_namespace(cluster)
    return cluster.create(paths.config_maps(NAMESPACE), body, decided=True)


def all_ledgers(cluster: Cluster) -> Iterator[tuple[str, Ledger]]:
    """Every group and its ledger."""
    for item in cluster.items(paths.config_maps(NAMESPACE), label_selector=f"{LEDGER}=group"):
        yield item["metadata"]["name"][len(_PREFIX) :], ledger_of(item)
