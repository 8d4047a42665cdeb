# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node agents may do, and controllers."""

from __future__ import annotations

import copy
from pathlib import Path

import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import rbac_rules

CHECKOUT = Path(__file__).resolve().parents[3]


def test_agents_read_leases_and_nothing_else():
    (rule,) = rbac_rules.ROLE["rules"]

    assert rule["resources"] == ["leases"]
    assert set(rule["verbs"]) == {"get", "list", "watch"}


def test_administrators_get_the_same_from_the_documentation():
    documented = yaml.safe_load((CHECKOUT / "docs/node_agent_rbac.yml").read_text())

    assert documented["items"] == [rbac_rules.ROLE, rbac_rules.BINDING]


def test_controllers_may_look_at_whatever_makes_a_control_plane():
    """Its kind is the provider's."""
    documented = yaml.safe_load((CHECKOUT / "docs/rbac.yml").read_text())["items"]
    (rules,) = (item["rules"] for item in documented if item["kind"] == "ClusterRole")
    mine = [rule for rule in rules if rule["apiGroups"] == ["controlplane.cluster.x-k8s.io"]]

    assert {(*rule["resources"], *rule["verbs"]) for rule in mine} == {("*", "get"), ("kubeadmcontrolplanes", "patch")}


def test_what_the_api_adds_is_no_difference():
    stored = copy.deepcopy(rbac_rules.BINDING)
    stored["metadata"] |= {"uid": "1", "resourceVersion": "2", "labels": {"team": "a"}}

    assert rbac_rules.content(stored) == rbac_rules.content(rbac_rules.BINDING)


def test_more_rights_are_a_difference():
    stored = copy.deepcopy(rbac_rules.ROLE)
    stored["rules"][0]["verbs"].append("update")

    assert rbac_rules.content(stored) != rbac_rules.content(rbac_rules.ROLE)


def test_labels_of_others_stay():
    stored = {**copy.deepcopy(rbac_rules.ROLE), "rules": []}
    stored["metadata"] = {**stored["metadata"], "labels": {"team": "a"}, "resourceVersion": "7"}

    changed = rbac_rules.changed_into(stored, rbac_rules.ROLE)

    assert changed["rules"] == rbac_rules.ROLE["rules"]
    assert changed["metadata"]["resourceVersion"] == "7"
    assert changed["metadata"]["labels"] == {"team": "a", **rbac_rules.ROLE["metadata"]["labels"]}


def test_only_a_binding_to_another_role_is_created_again():
    other = {**rbac_rules.BINDING, "roleRef": {**rbac_rules.BINDING["roleRef"], "name": "cluster-admin"}}

    assert rbac_rules.must_be_recreated(other, rbac_rules.BINDING)
    assert not rbac_rules.must_be_recreated({**rbac_rules.BINDING, "subjects": []}, rbac_rules.BINDING)
    assert not rbac_rules.must_be_recreated({**rbac_rules.ROLE, "rules": []}, rbac_rules.ROLE)


def test_what_does_not_exist_grants_nothing():
    assert rbac_rules.content(None) == {}
    assert rbac_rules.content({**rbac_rules.ROLE, "rules": None}) == {}


def test_paths_of_its_objects():
    base = "/apis/rbac.authorization.k8s.io/v1"

    assert rbac_rules.path(rbac_rules.ROLE) == f"{base}/clusterroles/holdfast-node-agent"
    assert rbac_rules.path(rbac_rules.BINDING) == f"{base}/clusterrolebindings/holdfast-node-agent"


def test_a_node_has_an_agent_if_it_has_its_condition():
    conditions = [{"type": "Ready", "status": "True"}]

    assert not rbac_rules.has_agent({"status": {"conditions": conditions}})
    assert rbac_rules.has_agent({"status": {"conditions": [*conditions, {"type": "ShutdownInhibited"}]}})
