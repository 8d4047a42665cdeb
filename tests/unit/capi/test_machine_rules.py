# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a Machine belongs to a Node, where several Clusters have Nodes of one name."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.machine_rules import (
    FOREIGN,
    PROVEN,
    UNPROVEN,
    relation,
)

GROUP = "cluster.x-k8s.io"
MARKS = {f"{GROUP}/machine": "m", f"{GROUP}/cluster-namespace": "metal", f"{GROUP}/cluster-name": "a"}


def node(marks=None, **spec):
    return {"metadata": {"name": "n", "uid": "node", "annotations": marks or {}}, "spec": spec}


def machine(*, cluster="a", name="m", provider_id="", **reference):
    return {
        "metadata": {"name": name, "namespace": "metal"},
        "spec": {"clusterName": cluster, "providerID": provider_id},
        "status": {"nodeRef": {"name": "n", **reference}},
    }


@pytest.mark.parametrize(
    ("known", "found", "expected"),
    [
        (node(MARKS), machine(), PROVEN),
        (node(MARKS), machine(cluster="b"), FOREIGN),
        (node(MARKS), machine(name="other"), FOREIGN),
        (node(MARKS), machine(name="n-2", uid="node"), FOREIGN),
        (node(MARKS), machine(uid="another"), FOREIGN),
        (node(MARKS), {**machine(), "status": {"nodeRef": {"name": "o"}}}, FOREIGN),
        # The Node alone says so, as its kubelet could.
        (node(MARKS), {**machine(), "status": {}}, UNPROVEN),
        (node({key: MARKS[key] for key in MARKS if "cluster-name" not in key or "space" in key}), machine(), UNPROVEN),
        # The Machine alone says so, by a name.
        (node(), machine(), UNPROVEN),
        (node(), machine(uid="node"), PROVEN),
        (node(providerID="metal3://host-uid"), machine(provider_id="metal3://host-uid"), PROVEN),
        (node(providerID="metal3://host-uid"), machine(provider_id="metal3://other"), UNPROVEN),
        # Some providers make it of the Node's name.
        (node(providerID="docker:////n"), machine(provider_id="docker:////n"), UNPROVEN),
        (node(), machine(provider_id=""), UNPROVEN),
    ],
)
def test_relation(known, found, expected):
    assert relation(known, found) == expected
