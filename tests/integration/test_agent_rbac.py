# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rights of node agents on a real API server, and the wait for their condition."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import rbac_rules
from ansible_collections.holdfast.kubernetes.plugins.modules import agent_rbac, node_condition, node_condition_info
from lab.patience import PATIENCE

INHIBITED = "ShutdownInhibited"
HAS_AGENT = rbac_rules.has_agent


class Rights:
    """The rights under a name of the test's own, because real agents may run with the documented ones."""

    def __init__(self, world):
        self.world = world

    def run(self, state="present", **more):
        return self.world.run(agent_rbac, state=state, **more)

    def stored(self):
        return [self.world.cluster.find(rbac_rules.path(wanted)) for wanted in (rbac_rules.ROLE, rbac_rules.BINDING)]

    def contents(self):
        return [rbac_rules.content(item) for item in self.stored()]


@pytest.fixture
def rights(world, monkeypatch):
    name = f"holdfast-{world.namespace}"
    role, binding = copy.deepcopy(rbac_rules.ROLE), copy.deepcopy(rbac_rules.BINDING)
    role["metadata"]["name"] = binding["metadata"]["name"] = binding["roleRef"]["name"] = name
    monkeypatch.setattr(rbac_rules, "NAME", name)
    for module in (rbac_rules, agent_rbac.OPERATION.__globals__):
        if isinstance(module, dict):
            monkeypatch.setitem(module, "ROLE", role)
            monkeypatch.setitem(module, "BINDING", binding)
        else:
            monkeypatch.setattr(module, "ROLE", role)
            monkeypatch.setattr(module, "BINDING", binding)
    monkeypatch.setattr(rbac_rules, "has_agent", lambda node: False)
    world.made.objects += [rbac_rules.path(role), rbac_rules.path(binding)]
    return Rights(world)


class TestPresent:
    def test_written_once(self, rights):
        first, second = rights.run(), rights.run()

        assert first["changed"]
        assert first["diff"]["before"] == {"ClusterRole": {}, "ClusterRoleBinding": {}}
        assert rights.contents() == [rbac_rules.content(rbac_rules.ROLE), rbac_rules.content(rbac_rules.BINDING)]
        assert not second["changed"]

    def test_check_mode_writes_nothing(self, rights):
        assert rights.run(check_mode=True)["changed"]
        assert rights.stored() == [None, None]

    def test_changes_by_others_are_corrected(self, rights):
        rights.run()
        role, binding = rights.stored()
        role["rules"] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        rights.world.cluster.replace(rbac_rules.path(role), role)
        rights.world.cluster.delete(rbac_rules.path(binding))
        wrong = {**rbac_rules.BINDING, "roleRef": {**rbac_rules.BINDING["roleRef"], "name": "view"}}
        rights.world.cluster.create(rbac_rules.COLLECTIONS["ClusterRoleBinding"], wrong)
        wanted = [rbac_rules.content(rbac_rules.ROLE), rbac_rules.content(rbac_rules.BINDING)]

        assert rights.run(check_mode=True)["changed"]
        assert rights.contents() != wanted
        assert rights.run()["changed"]
        assert rights.contents() == wanted

    def test_missing_rights_are_named_with_a_way_out(self, rights):
        refused = rights.run(impersonate_user="nobody")

        assert refused["failed"]
        assert "docs/node_agent_rbac.yml" in refused["msg"]


class TestAbsent:
    def test_removed_once(self, rights):
        rights.run()

        assert rights.run("absent", check_mode=True)["changed"]
        assert None not in rights.stored()
        assert rights.run("absent")["changed"]
        assert rights.stored() == [None, None]
        assert not rights.run("absent")["changed"]

    def test_kept_for_the_agents_that_are_left(self, rights, monkeypatch):
        (node,) = rights.world.nodes()
        rights.run()
        rights.world.set_condition(node, INHIBITED, "False", "KubeletShutdownAllowed")
        monkeypatch.setattr(rbac_rules, "has_agent", HAS_AGENT)

        kept = rights.run("absent")

        assert not kept["changed"]
        assert node in kept["needed_by"]
        assert None not in rights.stored()
        assert node not in rights.run("absent", without=[node], check_mode=True)["needed_by"]


class TestCondition:
    def test_read_and_waited_for(self, world):
        (node,) = world.nodes()
        common = {"name": node, "condition": INHIBITED}
        waiting = world.start(node_condition_info, wait_for="present", wait_timeout=PATIENCE, **common)
        found = world.run(node_condition_info, **common)
        assert (found["condition"], found["boot_id"]) == (None, world.node(node)["status"]["nodeInfo"]["bootID"])

        world.set_condition(node, INHIBITED, "False", "KubeletShutdownAllowed")

        assert waiting.result()["condition"]["reason"] == "KubeletShutdownAllowed"
        assert world.run(node_condition_info, **common)["condition"]["status"] == "False"

    def test_the_wait_times_out(self, world):
        (node,) = world.nodes()

        late = world.run(node_condition_info, name=node, condition="Ready", wait_for="absent", wait_timeout=1)

        assert late["error"] == "timed_out"
        assert late["condition"]["type"] == "Ready"
        assert f"Node {node} is still True" in late["msg"]

    def test_no_such_node(self, world):
        found = world.run(node_condition_info, name="nobody", condition="Ready")
        assert (found["condition"], found["boot_id"]) == (None, None)

    def test_removed(self, world):
        (node,) = world.nodes()
        world.set_condition(node, INHIBITED, "False", "KubeletShutdownAllowed")
        before = {item["type"] for item in world.node(node)["status"]["conditions"]}
        common = {"name": node, "condition": INHIBITED}

        assert world.run(node_condition, check_mode=True, **common)["changed"]
        assert world.run(node_condition_info, **common)["condition"]
        assert world.run(node_condition, **common)["condition"]["reason"] == "KubeletShutdownAllowed"
        assert {item["type"] for item in world.node(node)["status"]["conditions"]} == before - {INHIBITED}
        assert not world.run(node_condition, **common)["changed"]

    def test_that_of_a_kubelet_is_not_removed(self, world):
        (node,) = world.nodes()

        assert world.run(node_condition, name=node, condition="Ready")["error"] == "invalid_input"
        assert not world.run(node_condition, name="nobody", condition="Other")["changed"]
