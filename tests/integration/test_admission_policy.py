# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documented admission policy, on a real API server: who may hold nodes, and which requests it leaves alone."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.support.group import until

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure
from ansible_collections.holdfast.kubernetes.plugins.modules import lease_hold

DOCUMENTED = Path(__file__).resolve().parents[2] / "docs/hold_policy.yml"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RBAC = "apis/rbac.authorization.k8s.io/v1"
SINCE = "2026-01-02T03:04:05.000006Z"


class Applications:
    """Two accounts of one namespace under the policy: both may write Leases, one may hold nodes."""

    def __init__(self, world: Any, node: str) -> None:
        self.world = world
        self.node = node
        self.leases = paths.leases(world.namespace)
        self.holder, self.other = (self._account(name) for name in ("holder", "other"))

    def _account(self, name: str) -> Cluster:
        space = self.world.namespace
        self.world.create("serviceaccounts", name, {})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": space}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
        bindings = paths.namespaced(RBAC, space, "rolebindings")
        self.world.cluster.create(bindings, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})
        if name == "holder":
            rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["hold"]}
            self.world.cluster.create(
                paths.namespaced(RBAC, space, "roles"), {"metadata": {"name": "hold"}, "rules": [rule]}
            )
            self.world.cluster.create(
                bindings,
                {
                    "metadata": {"name": "hold"},
                    "roleRef": {**role, "kind": "Role", "name": "hold"},
                    "subjects": [subject],
                },
            )
        return self.as_account(name)

    def as_account(self, name: str, *, dry_run: bool = False) -> Cluster:
        user = f"system:serviceaccount:{self.world.namespace}:{name}"
        return Cluster({"kubeconfig": self.world.kubeconfig, "impersonate_user": user}, dry_run=dry_run)

    def create(self, who: Cluster, name: str = "", **spec: Any) -> Any:
        body = {"metadata": {"name": name or self.node}, "spec": spec}
        return who.create(self.leases, body)

    def refused(self, act: Any, status: int = 403) -> str:
        with pytest.raises(ApiFailure) as caught:
            act()
        assert caught.value.status == status
        return caught.value.message


@pytest.fixture
def applications(world):
    """The documented policy under a name of the test's own, for the test's namespace only."""
    (node,) = world.nodes()
    name = f"holdfast-{world.namespace}"
    policy, binding = copy.deepcopy(yaml.safe_load(DOCUMENTED.read_text())["items"])
    policy["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = name
    mine = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [world.namespace]}
    policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"].append(mine)
    for collection, item in (
        (f"{ADMISSION}/validatingadmissionpolicies", policy),
        (f"{ADMISSION}/validatingadmissionpolicybindings", binding),
    ):
        world.cluster.create(collection, item)
        world.made.objects.append(paths.one(collection, name))
    found = Applications(world, node)
    _until_in_force(found)
    return found


def _until_in_force(found: Applications) -> None:
    """The API server needs a moment to learn of the policy, of the node, and of what each account may do."""

    def said(who: str) -> str:
        try:
            found.create(found.as_account(who, dry_run=True), holderIdentity="probe", acquireTime=SINCE)
        except ApiFailure as error:
            return str(error)
        return ""

    until(lambda: 'needs the verb "hold"' in said("other"), "the policy is in force")
    until(lambda: said("holder") == "", "the holder may hold")


def test_applications_with_the_right_can_hold(applications):
    applications.create(applications.holder, holderIdentity="app", acquireTime=SINCE)


def test_the_right_to_write_leases_is_not_the_right_to_hold(applications):
    said = applications.refused(lambda: applications.create(applications.other, holderIdentity="a", acquireTime=SINCE))

    assert f"holds the node {applications.node}" in said
    assert 'needs the verb "hold"' in said


def test_an_empty_lease_does_not_become_a_hold(applications):
    made = applications.create(applications.other)
    path = paths.one(applications.leases, applications.node)
    made["spec"] = {"holderIdentity": "a", "acquireTime": SINCE}

    applications.refused(lambda: applications.other.replace(path, made))


def test_a_lease_of_another_holder_can_not_be_taken_over(applications):
    made = applications.create(applications.holder, holderIdentity="app", acquireTime=SINCE)
    path = paths.one(applications.leases, applications.node)

    applications.refused(
        lambda: applications.other.replace(path, {**made, "spec": {**made["spec"], "holderIdentity": "b"}})
    )


def test_a_hold_is_renewed_and_released_although_the_right_was_removed(applications):
    made = applications.create(applications.holder, holderIdentity="app", acquireTime=SINCE)
    path = paths.one(applications.leases, applications.node)
    renewed = applications.other.replace(path, {**made, "spec": {**made["spec"], "renewTime": SINCE}})

    free = applications.other.replace(path, {**renewed, "spec": {"holderIdentity": ""}})

    assert not free["spec"].get("acquireTime")


def test_a_name_that_is_too_long_can_not_hold(applications):
    said = applications.refused(
        lambda: applications.create(applications.holder, holderIdentity="x" * 254, acquireTime=SINCE), 422
    )

    assert "at most 253 characters" in said
    applications.create(applications.holder, "an-election", holderIdentity="x" * 254, acquireTime=SINCE)
    applications.create(applications.holder, holderIdentity="x" * 253, acquireTime=SINCE)


def test_elections_of_other_names_are_left_alone(applications):
    applications.create(applications.other, "an-election", holderIdentity="pod-1", acquireTime=SINCE)


def test_administrators_hold(applications):
    taken = applications.world.run(
        lease_hold, node=applications.node, namespace=applications.world.namespace, holder="admin", wait=False
    )

    assert taken["changed"]
