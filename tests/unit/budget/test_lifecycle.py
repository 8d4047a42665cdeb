# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lifecycle conditions are written with the annotations, and never at their cost."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import claims, lifecycle
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.lifecycle import Report
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.lifecycle_rules import (
    DRAINS,
    ENDS,
    STARTS,
    TAINT,
    WAITS,
    Work,
    waits,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation import node_operation

ME = Work("rolling reboot", "kernel", "me")
NODE = "/api/v1/nodes/node-1"


@pytest.fixture
def cluster():
    found = MemoryCluster()
    found.node()
    return found


@pytest.fixture
def context(cluster, tmp_path):
    return context_of(cluster, str(tmp_path))


def context_of(cluster, folder=""):
    warnings = []
    found = Context({}, warn=warnings.append, folder=folder)
    found.cluster, found.warnings = cluster, warnings
    return found


def take(context, run="me", **more):
    work = Work("rolling reboot", "kernel", run)
    options = {"run": run, "operation": "kernel", "purpose": "rolling_reboot"}
    return claims.take(context.cluster, "node-1", **options, report=Report(context, STARTS, work), **more)


def give_back(context, run="me", **more):
    return claims.give_back(context.cluster, "node-1", run=run, context=context, **more)


def test_one_write_for_claim_and_condition(context, cluster):
    take(context)
    assert cluster.writes == [("PATCH", NODE)]
    assert cluster.marks()["claim"]["run"] == "me"
    assert set(cluster.conditions()) == {"MaintenanceInProgress"}
    give_back(context)
    assert cluster.writes == [("PATCH", NODE)] * 2
    assert (cluster.conditions(), cluster.marks()) == ({}, {})


def test_conditions_of_a_waiting_node_stay_without_the_claim(context, cluster):
    lifecycle.report(context, "node-1", WAITS, ME)
    give_back(context, waits=True)
    assert set(cluster.conditions()) == {"MaintenancePlanned"}
    give_back(context, run="other")
    assert set(cluster.conditions()) == {"MaintenancePlanned"}
    give_back(context)
    assert cluster.conditions() == {}


def refuse(cluster, status=403):
    def refused(path, metadata, conditions):
        cluster.writes.append(("REFUSED", path))
        raise ApiFailure(f"nodes/status is forbidden ({status})", status=status)

    cluster.merge_conditions = refused


@pytest.mark.parametrize("status", [400, 403, 404, 422])
def test_a_refusal_costs_no_claim_and_is_said_once(context, cluster, status):
    refuse(cluster, status)
    take(context)
    lifecycle.report(context, "node-1", DRAINS, ME)
    assert set(cluster.marks()) == {"claim"}, "what was not set is not recorded"
    assert cluster.writes == [("REFUSED", NODE), ("PATCH", NODE)], "it is not tried again in this run"
    (warning,) = context.warnings
    assert "docs/rbac.yml" in warning
    assert "lifecycle_conditions" in warning
    give_back(context)
    assert cluster.marks() == {}


def test_each_task_of_a_run_knows_that_it_was_refused(context, cluster, tmp_path):
    refuse(cluster)
    take(context)
    second = context_of(cluster, str(tmp_path))
    lifecycle.report(second, "node-1", DRAINS, ME)
    assert second.warnings == []
    assert cluster.writes.count(("REFUSED", NODE)) == 1
    alone = context_of(cluster)
    lifecycle.report(alone, "node-1", DRAINS, ME)
    assert len(alone.warnings) == 1


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_what_may_pass_is_not_a_refusal(context, cluster, status):
    refuse(cluster, status)
    with pytest.raises(ApiFailure):
        Report(context, STARTS, ME).write(cluster.get(NODE), {"holdfast.dev/claim": "{}"})
    assert context.warnings == []
    assert cluster.marks() == {}


def test_an_api_server_that_ignores_the_annotations(context, cluster):
    merge = cluster.merge_conditions
    cluster.merge_conditions = lambda path, metadata, conditions: merge(
        path, {"resourceVersion": metadata["resourceVersion"]}, conditions
    )
    take(context)
    assert cluster.marks()["claim"]["run"] == "me"
    assert cluster.marks()["conditions"]["run"] == "me"
    assert cluster.writes == [("PATCH", NODE)] * 2


def test_a_run_does_not_change_what_another_one_shows(context, cluster):
    take(context, run="other")
    before = cluster.conditions()
    lifecycle.report(context, "node-1", DRAINS, ME)
    lifecycle.show_waiting(context, "node-1", ME)
    lifecycle.end_waiting(context, "node-1", ME)
    assert cluster.conditions() == before


@pytest.mark.parametrize("shows", [True, False])
def test_a_run_whose_wait_ends_late_does_not_show_it_on_a_node_that_another_run_has_rebooted(context, cluster, shows):
    record = {"name": "node-1", "operation": "other" if shows else "kernel", "run": "other", "claimed": True}
    take(context, run="other")
    node_operation(context, {**record, "result": "rebooted"})
    lifecycle.show_waiting(context, "node-1", ME)
    assert set(cluster.conditions()) == ({"MaintenancePlanned"} if shows else set())


class TestEndOfTheWait:
    @pytest.fixture(autouse=True)
    def waiting(self, context):
        lifecycle.show_waiting(context, "node-1", Work("rolling reboot", "kernel", "other"))

    @pytest.mark.parametrize("operation", ["kernel", "firmware"])
    def test_of_a_dead_run(self, context, cluster, operation):
        """If a run resumes the operation of the dead one, it shows the wait again."""
        lifecycle.end_waiting(context, "node-1", Work("rolling reboot", operation, "me"))
        assert cluster.conditions() == {}

    def test_not_of_a_live_run(self, context, cluster):
        cluster.lives("other")
        lifecycle.end_waiting(context, "node-1", ME)
        assert set(cluster.conditions()) == {"MaintenancePlanned"}

    def test_not_of_a_run_that_works_on_the_node(self, context, cluster):
        take(context, run="other")
        lifecycle.end_waiting(context, "node-1", ME)
        assert set(cluster.conditions()) == {"MaintenanceInProgress"}

    def test_the_next_run_waits_in_its_place(self, context, cluster):
        lifecycle.show_waiting(context, "node-1", ME)
        assert cluster.marks()["conditions"]["run"] == "me"
        lifecycle.report(context, "node-1", ENDS, ME)
        assert cluster.conditions() == {}


class TestTaint:
    """The taint of a node that waits is set after its record, and removed before it."""

    @pytest.fixture
    def taints(self, cluster):
        return lambda: cluster.objects[NODE]["spec"].get("taints") or []

    def show(self, context, *, conditions=True, run="me"):
        work = Work("rolling reboot", "kernel", run)
        lifecycle.show_waiting(context, "node-1", work, waits(conditions=conditions, taint=True))

    @pytest.mark.parametrize("conditions", [True, False])
    def test_goes_when_the_work_starts(self, context, cluster, taints, conditions):
        self.show(context, conditions=conditions)
        assert taints() == [TAINT]
        assert set(cluster.conditions()) == ({"MaintenancePlanned"} if conditions else set())
        self.show(context, conditions=conditions)
        assert cluster.writes == [("PATCH", NODE)] * 2, "it is set once"
        take(context)
        assert taints() == []
        assert "taint" not in cluster.marks()["conditions"]

    @pytest.mark.parametrize("end", [lambda c: lifecycle.end_waiting(c, "node-1", ME), give_back])
    def test_goes_when_the_wait_ends(self, context, cluster, taints, end):
        self.show(context)
        end(context)
        assert (taints(), cluster.conditions(), cluster.marks()) == ([], {}, {})

    def test_goes_with_the_result(self, context, cluster, taints):
        self.show(context, conditions=False)
        node_operation(
            context, {"name": "node-1", "operation": "kernel", "run": "me", "result": "failed", "claimed": False}
        )
        assert taints() == []
        assert "conditions" not in cluster.marks()

    def test_stays_with_a_wait_that_continues(self, context, taints):
        self.show(context)
        give_back(context, waits=True)
        assert taints() == [TAINT]

    def test_the_next_run_without_the_option_removes_it(self, context, taints):
        self.show(context, run="dead")
        lifecycle.show_waiting(context, "node-1", ME)
        assert taints() == []

    def test_without_the_right_to_conditions(self, context, cluster, taints):
        refuse(cluster)
        self.show(context)
        assert taints() == [TAINT]
        assert cluster.marks()["conditions"] == {"run": "me", "operation": "kernel", "conditions": {}, "taint": True}
        give_back(context)
        assert (taints(), cluster.marks()) == ([], {})

    @pytest.mark.parametrize("cut_at", [0, 1])
    @pytest.mark.parametrize("conditions", [True, False])
    def test_killed_between_its_writes(self, context, cluster, taints, cut_at, conditions):
        """Wherever a run dies, what it left is on record, and the end of the work removes it."""
        steps = [lambda: self.show(context, conditions=conditions), lambda: give_back(context)]
        for step in steps[:cut_at]:
            step()

        def die(*_write):
            raise SystemExit

        cluster.hooks.append(die)
        with pytest.raises(SystemExit):
            steps[cut_at]()
        cluster.hooks.clear()
        assert not taints() or cluster.marks()["conditions"]["taint"]
        lifecycle.report(context, "node-1", ENDS, Work("doctor", run="me"))
        assert (taints(), cluster.conditions(), cluster.marks()) == ([], {}, {})

    @pytest.mark.parametrize("more", [{}, {"value": "kernel"}])
    def test_another_writer_s_stays(self, context, cluster, taints, more):
        others = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}, {**TAINT, **more}]
        cluster.objects[NODE]["spec"]["taints"] = list(others)
        self.show(context)
        assert taints() == others
        give_back(context)
        assert taints() == others

    def test_other_taints_stay(self, context, cluster, taints):
        others = [{"key": TAINT["key"], "effect": "NoSchedule"}, {"key": "gpu", "effect": "PreferNoSchedule"}]
        cluster.objects[NODE]["spec"]["taints"] = list(others)
        self.show(context)
        assert taints() == [*others, TAINT]
        give_back(context)
        assert taints() == others
