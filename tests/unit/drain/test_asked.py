# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain asks the API server for: the budgets of its pods' namespaces, and attachments by their names."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.drain import budgets_of
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.rules import Budget, Options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.state_rules import Drain
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.volumes import (
    attachment_name,
    wait_until_detached,
)


class Recording(MemoryCluster):
    def __init__(self, *, forbidden=False):
        super().__init__()
        self.listed, self.forbidden = [], forbidden

    def find(self, path):
        if self.forbidden and path.startswith(paths.PERSISTENT_VOLUMES):
            raise ApiFailure("forbidden", status=403)
        return super().find(path)

    def items(self, path, **selectors):
        self.listed.append((path, selectors.get("field_selector") or ""))
        return super().items(path, **selectors)


def with_volume(cluster, name="disk-1", **spec):
    cluster._store("TEST", paths.one(paths.PERSISTENT_VOLUMES, name), {"metadata": {"name": name}, "spec": spec})


def attach(cluster, attachment, volume="disk-1", node="node-1"):
    spec = {"nodeName": node, "source": {"persistentVolumeName": volume}}
    body = {"metadata": {"name": attachment}, "spec": spec}
    cluster._store("TEST", paths.one(paths.VOLUME_ATTACHMENTS, attachment), body)


CSI = {"csi": {"driver": "disks.example.com", "volumeHandle": "handle-1"}}
OURS = attachment_name("disks.example.com", "handle-1", "node-1")


def test_the_name_is_that_of_the_attach_detach_controller():
    # printf %s handle-1disks.example.comnode-1 | sha256sum
    assert OURS == "csi-a3abb177874fce8cefa320890483fe0f80137b92d87e7971a27edf7ca49249da"


@pytest.mark.parametrize("attached", [True, False])
def test_attachments_are_asked_for_by_name(attached):
    cluster = Recording()
    with_volume(cluster, **CSI)
    attach(cluster, "csi-another", volume="disk-2")
    if attached:
        attach(cluster, OURS)

    left = wait_until_detached(cluster, "node-1", {"disk-1"}, Deadline(0))

    assert left == ({OURS: "disk-1"} if attached else {})
    assert cluster.listed == [(paths.VOLUME_ATTACHMENTS, f"metadata.name={OURS}")]


@pytest.mark.parametrize("unknown", ["no CSI", "no volume", "forbidden"])
def test_if_a_name_is_not_known_all_attachments_are_watched(unknown):
    cluster = Recording(forbidden=unknown == "forbidden")
    if unknown != "no volume":
        with_volume(cluster, **({"nfs": {}} if unknown == "no CSI" else CSI))
    attach(cluster, "another-name")
    attach(cluster, "of-another-node", node="node-2")

    left = wait_until_detached(cluster, "node-1", {"disk-1"}, Deadline(0))

    assert left == {"another-name": "disk-1"}
    assert cluster.listed == [(paths.VOLUME_ATTACHMENTS, "")]


def test_no_volume_asks_for_nothing():
    cluster = Recording()
    assert wait_until_detached(cluster, "node-1", set(), Deadline(0)) == {}
    assert cluster.listed == []


def test_budgets_are_those_of_the_namespaces():
    cluster = Recording()
    for namespace in ("shop", "db", "other"):
        body = {"metadata": {"name": "web", "namespace": namespace}, "spec": {}, "status": {}}
        cluster._store("TEST", paths.one(paths.pod_disruption_budgets(namespace), "web"), body)

    assert [budget.namespace for budget in budgets_of(cluster, {"shop", "db"})] == ["db", "shop"]
    assert [path for path, _selector in cluster.listed] == [
        paths.pod_disruption_budgets("db"),
        paths.pod_disruption_budgets("shop"),
    ]
    assert budgets_of(cluster, set()) == []
    cluster.listed.clear()
    assert len(budgets_of(cluster, {"db", "shop", *map(str, range(7))})) == 3
    assert [path for path, _selector in cluster.listed] == [paths.POD_DISRUPTION_BUDGETS]


def test_a_list_of_one_namespace_leaves_the_budgets_of_the_others():
    state = Drain(Options(), 0.0)
    state.all_budgets([Budget("shop", "web"), Budget("shop", "old")], "shop")
    state.all_budgets([Budget("db", "data")], "db")
    state.all_budgets([Budget("shop", "web", allowed=1)], "shop")
    assert {key: budget.allowed for key, budget in state.budgets.items()} == {("shop", "web"): 1, ("db", "data"): 0}
    state.all_budgets([Budget("db", "data")])
    assert set(state.budgets) == {("db", "data")}
