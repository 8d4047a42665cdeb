# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan says of a node: the rules of an admission, without a change or a wait."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from unit.reboot.admission import CONTROL_PLANE, CORDON, DEAD_CLAIM, record, slot, turn, two_nodes
from unit.reboot.memory_cluster import AT

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import (
    Ledger,
    Member,
    fail,
    operation_entry,
    with_entry,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import admit, planned
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.snapshot import Snapshot


@pytest.fixture
def cluster():
    return two_nodes()


@pytest.mark.parametrize(
    ("prepare", "verdict", "why"),
    [
        (lambda cluster: cluster.node(cordon={"owner": "machine_guard"}), "never", "cordoned by machine_guard"),
        (lambda cluster: None, "now", "rolling_reboot_when is always"),
        (lambda cluster: cluster.hold(), "later", "held by shop/app"),
        (lambda cluster: cluster.node(labels={"holdfast.dev/exclude": ""}), "never", "it has the label"),
        (lambda cluster: cluster.node(operation=record("uncordon", "rebooted")), "not needed", "already"),
        (lambda cluster: cluster.objects.pop("/api/v1/nodes/node-2"), "never", "the cluster's only node"),
    ],
)
def test_a_plan_writes_nothing(cluster, prepare, verdict, why):
    prepare(cluster)
    before = json.dumps(cluster.objects, sort_keys=True)
    try:
        found = turn(cluster, check_mode=True)["result"]
    except HoldfastError as error:
        pytest.fail(f"a plan has an answer: {error}")
    assert (found["result"], found["verdict"]) == ("planned", verdict)
    assert why in found["detail"]
    assert cluster.writes == []
    assert json.dumps(cluster.objects, sort_keys=True) == before


class TestPlanOfANodeWhoseSlotIsRefused:
    """No wait would help, so the plan says never, as the run stops."""

    @staticmethod
    def plan(cluster, **options):
        before = json.dumps(cluster.objects, sort_keys=True)
        found = turn(cluster, check_mode=True, **options)["result"]
        assert json.dumps(cluster.objects, sort_keys=True) == before
        return found["verdict"], found["detail"]

    @pytest.mark.parametrize("group", ["default", "first"])
    def test_too_many_have_failed(self, cluster, group):
        node = Member("node-2", ready=False, unschedulable=False, boot_id="boot-1")
        cluster.node("node-2", ready=False)
        cluster.ledger(group, fail(Ledger(), node, "kernel", "it broke"))
        where = {} if group == "default" else {"operation_group": group}
        verdict, why = self.plan(cluster, **where)
        assert verdict == "never"
        assert "1 node failed in this operation and max_failed is 0: node-2 (it broke)" in why
        assert self.plan(cluster, max_failed=1, **where) == ("now", "rolling_reboot_when is always")

    def test_a_run_tries_a_node_that_failed_and_is_healthy_again(self, cluster):
        ledger = fail(Ledger(), Member("node-1", ready=True, unschedulable=False), "kernel", "it broke")
        cluster.ledger(ledger=with_entry(ledger, {**operation_entry(ledger, "kernel"), "seen": AT, "unfinished": True}))
        assert self.plan(cluster) == ("now", "rolling_reboot_when is always")

    def test_it_is_not_in_the_group(self, cluster):
        verdict, why = self.plan(cluster, selector="pool=other")
        assert verdict == "never"
        assert "does not match the group's selector" in why

    def test_the_group_is_paused(self, cluster):
        verdict, why = self.plan(cluster, max_unavailable="0")
        assert verdict == "never"
        assert "the group is paused" in why

    def test_its_slot_of_another_operation_has_failed(self, cluster):
        cluster.ledger(ledger=slot(operation="old", state="failed", reason="it broke"))
        verdict, why = self.plan(cluster)
        assert verdict == "never"
        assert "Run holdfast.kubernetes.doctor" in why

    def test_the_operation_is_in_another_group(self, cluster):
        """A run enters it there, and then the failure of this node no longer counts."""
        ledger = fail(Ledger(), Member("node-1", ready=True, unschedulable=False), "kernel", "it broke")
        entry = {**operation_entry(ledger, "kernel"), "seen": AT, "unfinished": True}
        cluster.ledger("first", with_entry(ledger, entry))
        assert self.plan(cluster, operation_group="first")[0] == "now"

    def test_it_has_joined_the_control_plane(self, cluster):
        """A run drops the slot in the group that the node has left."""
        cluster.node(labels={CONTROL_PLANE: ""})
        cluster.node("node-2", labels={CONTROL_PLANE: ""})
        cluster.ledger(ledger=slot())
        assert self.plan(cluster, quorum_command="true")[0] == "now"

    def test_another_run_stores_the_ledger_first(self, cluster):
        cluster.ledger(ledger=Ledger())
        send = cluster.replace

        def late(path, body):
            cluster.replace = send
            cluster.objects[path]["metadata"]["resourceVersion"] = "other"
            return send(path, body)

        cluster.replace = late
        assert turn(cluster, check_mode=True)["result"]["verdict"] == "now"

    def test_a_plan_without_an_answer_is_an_entry(self, cluster):
        cluster.broken = ["configmaps"]
        assert turn(cluster, check_mode=True)["result"]["result"] == "failed"

    def test_a_full_budget_becomes_free(self, cluster):
        cluster.ledger(ledger=slot("another", node="node-2"))
        cluster.node("node-2", ready=False)
        assert self.plan(cluster) == ("now", "rolling_reboot_when is always")


class TestPlanOfAHeldNodeThatADeadRunLeft:
    """A run gives the node back first. Then it decides about a node whose reboot has not begun."""

    @pytest.fixture
    def cluster(self, cluster):
        cluster.node(unschedulable=True, cordon=CORDON, claim=DEAD_CLAIM, operation=record("drain"))
        cluster.hold()
        return cluster

    @pytest.mark.parametrize(("needed", "verdict"), [("a kernel", "later"), ("", "not needed")])
    def test_its_reboot_may_no_longer_be_needed(self, cluster, needed, verdict):
        answer = {"needed": needed, "boot_id": "boot-1"}
        found = turn(cluster, check_mode=True, when="required", answer=answer)["result"]
        assert found["verdict"] == verdict

    def test_the_run_does_what_the_plan_says(self, cluster):
        found = turn(cluster, when="required", answer={"needed": "", "boot_id": "boot-1"})
        assert (found["step"], found["why"]) == ("skipped", "no reboot is required")
        assert not cluster.cordoned()

    def test_its_slot_is_refused(self, cluster):
        node = Member("node-2", ready=False, unschedulable=False, boot_id="boot-1")
        cluster.node("node-2", ready=False)
        cluster.ledger(ledger=fail(Ledger(), node, "kernel", "it broke"))
        found = turn(cluster, check_mode=True, when="required", answer={"needed": ""})["result"]
        assert found["verdict"] == "never"
        assert "max_failed is 0" in found["detail"]


BOUND = {"namespace": "shop", "name": "web", "verdict": "never", "reason": "its budget", "pdb": "web"}
LONE = {"namespace": "shop", "name": "lone", "verdict": "never", "reason": "no controller", "pdb": None}


class TestPlanOfANodeWhoseDrainIsBlocked:
    """A plan says what the run does."""

    @pytest.fixture
    def plan(self, cluster, monkeypatch):
        def plan(*blockers, **options):
            drain = {"verdict": "never", "blockers": list(blockers)}
            monkeypatch.setattr(Snapshot, "drain", lambda *_arguments, **_options: drain)
            return turn(cluster, check_mode=True, **options)["result"]["verdict"]

        return plan

    def test_it_is_never(self, plan):
        assert plan(BOUND) == "never"

    def test_a_node_whose_reboot_was_sent_is_not_drained_again(self, plan, cluster):
        cluster.node(unschedulable=True, cordon=CORDON, claim=DEAD_CLAIM, operation=record("reboot"))

        assert plan(BOUND) == "now"

    def test_the_only_node_is_not_drained(self, plan, monkeypatch):
        etcd = {**dict.fromkeys(("control_plane", "only_control_plane", "member"), False), "kept": None}
        etcd["single_node"] = True
        monkeypatch.setattr(admit, "etcd_quorum", lambda *_arguments: etcd)

        assert plan(BOUND, single_node=True) == "now"

    @pytest.mark.parametrize(("blocker", "verdict"), [(BOUND, "now"), (LONE, "never")])
    def test_without_evictions_only_budgets_are_ignored(self, plan, blocker, verdict):
        assert plan(blocker, disable_eviction=True) == verdict

    @pytest.mark.parametrize(("selected", "verdict"), [("shop/web", "later"), ("shop/other", "never")])
    def test_only_selected_pods_are_deleted(self, plan, monkeypatch, selected, verdict):
        pods = [SimpleNamespace(full_name=selected)]
        monkeypatch.setattr(planned, "pods_on", lambda *_arguments: pods)

        assert plan(BOUND, delete_after=60, delete_selector="app=web") == verdict
        assert plan(BOUND, LONE, delete_after=60) == "never"
