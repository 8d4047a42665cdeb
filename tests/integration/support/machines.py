# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster API's Machines without Cluster API: only the kind, on which no controller acts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from integration.support.metal3 import install
from integration.support.turns import TESTS, turn

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline, wait_for
from lab import Lab
from lab.patience import PATIENCE

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_GROUP = "cluster.x-k8s.io"
_NAME = f"machines.{_GROUP}"


@contextlib.contextmanager
def installed(lab: Lab, cluster: Cluster) -> Iterator[None]:
    """Install the kind Machine. Remove it afterwards unless it was there before: other tests must not find it."""
    with turn(lab, "machines"):
        # A fixture of a module has no turn yet. A test marked `alone` may stop the API server.
        with turn(lab, TESTS, shared=True):
            before = cluster.find(paths.one(_CRDS, _NAME))
            install(cluster, "machines")
        try:
            yield
        finally:
            if before is None:
                with turn(lab, TESTS, shared=True):
                    cluster.delete(paths.one(_CRDS, _NAME))
                    assert wait_for(cluster, _CRDS, _NAME, lambda item: item is None, Deadline(PATIENCE)) is None


class Machine:
    """The Machine of a Node."""

    def __init__(self, world: Any, node: str, **annotations: str) -> None:
        world.has_other_kinds()
        cluster, namespace = world.cluster, world.namespace
        self.cluster: Cluster = cluster
        self.collection = paths.namespaced(f"apis/{_GROUP}/v1beta2", namespace, "machines")
        self.path = paths.one(self.collection, f"m-{node}")
        self.full_name = f"{namespace}/m-{node}"
        metadata = {"name": f"m-{node}", "namespace": namespace, "annotations": annotations}
        cluster.create(self.collection, {"apiVersion": f"{_GROUP}/v1beta2", "kind": "Machine", "metadata": metadata})
        marks = {f"{_GROUP}/machine": f"m-{node}", f"{_GROUP}/cluster-namespace": namespace}
        cluster.merge(paths.node(node), {"metadata": {"annotations": marks}})

    @property
    def annotations(self) -> dict[str, str]:
        return self.cluster.get(self.path)["metadata"].get("annotations") or {}

    def annotate(self, annotations: dict[str, str | None]) -> None:
        self.cluster.merge(self.path, {"metadata": {"annotations": annotations}})

    def delete(self) -> None:
        self.cluster.delete(self.path)
