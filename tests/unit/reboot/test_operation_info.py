# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster says about a rolling reboot, over all of its runs."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.operation_info import reboot_operation_info

LATER = "2026-11-21T10:00:00.000000Z"


def record(operation="kernel", result="rebooted", **more):
    return {"id": operation, "run": "4711", "since": AT, "phase": "drain", "phases": {}, "result": result, **more}


def operations(*entries):
    return Ledger(operations=tuple({"failures": {}, "seen": AT, **entry} for entry in entries))


@pytest.fixture
def cluster():
    found = MemoryCluster()
    found.ledger("workers", operations({"id": "older", "runs": []}, {"id": "kernel", "runs": [], "seen": LATER}))
    found.ledger("control-plane", operations({"id": "kernel", "runs": []}))
    return found


def info(cluster, **options):
    context = Context({}, False)
    context.cluster = cluster
    return reboot_operation_info(context, {"operation": None, "group": None, "results": {}, **options})


def test_the_nodes_of_all_groups_and_runs_are_reported(cluster):
    cluster.node("a", operation=record(detail="always"))
    cluster.node("b", operation=record(run="4712"))
    cluster.node("c", operation=record("older"))
    cluster.node("d")

    found = info(cluster)

    assert (found["operation"], found["runs"], found["why"]) == ("kernel", [], "")
    assert found["lines"] == ["a: rebooted (always)", "b: rebooted ()"]
    assert found["stats"]["rolling_reboot_results"] == {"a": "rebooted: always", "b": "rebooted: "}
    assert found["stats"]["rolling_reboot_rebooted"] == 2
    assert cluster.writes == []


@pytest.mark.parametrize("versions", ["6.1", ["6.1"], 6, {"kernel_version": "x" * 9000, "other": {}}])
def test_versions_that_others_wrote_are_bounded(cluster, versions):
    cluster.node("a", operation=record(versions_before=versions))

    (entry,) = info(cluster)["nodes"]

    assert set(entry.get("versions_before", {})) <= {"kernel_version"}
    assert len(str(entry)) < 1000


@pytest.mark.parametrize("phases", ["x", 7, [1], {"drain": "x"}, {"drain": -1}, {"drain": 1e300}, {"x" * 9000: 1}])
def test_phases_that_a_node_wrote_do_not_end_the_report(cluster, phases):
    cluster.node("a", operation=record(phases=phases))
    assert info(cluster)["nodes"][0]["phases"] == {}


def test_a_node_without_a_record_is_known_from_the_artifacts(cluster):
    cluster.node("a", operation=record())

    found = info(cluster, results={"a": "now: required", "b": "skipped: not needed", "c": "stopped: held: by app"})

    assert found["summary"]["skipped"] == ["b"]
    assert found["summary"]["rebooted"] == ["a"], "the record is newer than the plan"
    assert found["why"] == "Look at these nodes: c (stopped)."


def test_a_node_that_a_slice_has_left_is_unfinished(cluster):
    """It was stopped before its work began, and another slice has replaced the artifacts."""
    cluster.node("a", operation=record())
    cluster.node("c", operation=record(result="", phase="slot"))
    cluster.node("e", operation=record(result="", phase="reboot"))
    for name in ("b", "d"):
        cluster.node(name)
    left = dict.fromkeys(("a", "b", "c", "d", "e", "without-a-node"), AT)
    entry = {"id": "kernel", "runs": [], "seen": LATER, "unfinished": True, "left": left, "postponed": ["c", "e"]}
    cluster.ledger("workers", operations(entry))

    found = info(cluster, results={"b": "now: required", "d": "stopped: held: by app"})

    assert found["why"] == "Look at these nodes: b (unfinished), d (stopped), e (unfinished)."
    assert (found["summary"]["rebooted"], found["summary"]["postponed"]) == (["a"], ["c"])
    assert found["stats"]["rolling_reboot_ended_operation"] == ""


def test_many_nodes_that_wait_for_a_window_are_no_failure(cluster):
    entry = {"id": "kernel", "runs": [], "seen": LATER, "unfinished": True, "postponed": True}
    cluster.ledger("workers", operations(entry))

    assert info(cluster)["why"] == ""


def test_nodes_that_a_run_has_left_without_names_are_reported(cluster):
    cluster.ledger("workers", operations({"id": "kernel", "runs": [], "seen": LATER, "unfinished": True}))

    assert "A run has left nodes of operation kernel" in info(cluster)["why"]


@pytest.mark.parametrize("result", ["failed", "lost", "stopped"])
def test_a_node_that_failed_is_named(cluster, result):
    cluster.node("a", operation=record(result=result))

    assert info(cluster)["why"] == f"Look at these nodes: a ({result})."


def test_a_run_that_died_is_named_with_its_node(cluster):
    cluster.ledger("workers", operations({"id": "kernel", "runs": ["4711"]}))
    cluster.node("a", operation=record(result=""))

    found = info(cluster)

    assert found["runs"] == ["4711"]
    assert found["nodes"][0]["result"] == "unfinished"
    assert found["nodes"][0]["detail"] == f"phase drain since {AT}, run 4711"
    assert "These runs of operation kernel have not ended: 4711." in found["why"]
    assert "a (unfinished)" in found["why"]


@pytest.mark.parametrize(("known", "result"), [("stopped: held by app", "stopped"), ("now: required", "unfinished")])
def test_a_node_that_was_stopped_has_a_record_without_a_result(cluster, known, result):
    cluster.node("a", operation=record(result=""))

    assert info(cluster, results={"a": known})["nodes"][0]["result"] == result


@pytest.mark.parametrize("result", ["postponed", "skipped"])
def test_a_node_that_waits_for_the_next_window_is_no_failure(cluster, result):
    cluster.node("a", operation=record(result=result))

    assert info(cluster)["why"] == ""


def test_one_group_has_its_own_last_operation(cluster):
    cluster.ledger("blue", operations({"id": "blue-kernel", "runs": []}))
    cluster.node("a", operation=record("blue-kernel"))

    assert [node["name"] for node in info(cluster, group="blue")["nodes"]] == ["a"]


def test_an_operation_that_never_started_is_a_failure():
    found = info(MemoryCluster(), operation="kernel")

    assert found["nodes"] == []
    assert found["why"] == "No group has an operation kernel: it has never started, or is too old."


def test_no_rolling_reboot_is_no_failure():
    found = info(MemoryCluster())

    assert (found["operation"], found["nodes"], found["why"]) == ("", [], "")


def test_a_group_that_can_not_exist_is_refused():
    with pytest.raises(InvalidInput):
        info(MemoryCluster(), group="No Group")
