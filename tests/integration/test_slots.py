# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slots against a real API server: the ledger holds what the rules decide, however many requests race."""

from __future__ import annotations

import json
import threading
import uuid
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor
from concurrent.futures import wait as wait_for

import pytest
import yaml
from integration.support.group import Group, group_of, perform, until
from integration.support.history import History

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import ledger_store, operations
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import slots as slot_requests
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import DEAD_AFTER
from lab.patience import PATIENCE

NODES = 6
# Seconds. A request may wait this long, so one that does not wait was refused immediately.
MAY_WAIT = 120


@pytest.fixture(scope="module")
def simulated(lab):
    """Nodes for the whole module; each test has its own ledger."""
    with group_of(lab, NODES, "slots") as group:
        yield group


@pytest.fixture
def group(lab, simulated):
    """A group with a ledger of its own. Its nodes are those of the module."""
    made = Group(lab, f"slots-{uuid.uuid4().hex[:10]}", simulated.nodes, simulated.selector)
    yield made
    made.mend()


def test_take_and_give_back(group):
    node = group.nodes[0]
    taken = group.taken(node, run="run-1")

    assert taken["changed"] is True
    assert taken["slot"] == {
        "group": group.name,
        "node": node,
        "operation": "kernel",
        "run": "run-1",
        "since": taken["slot"]["since"],
        "domain": "",
        "state": "active",
        "reason": "",
        "boot_id": group.node(node)["status"]["nodeInfo"]["bootID"],
        "claims": 0,
    }
    assert (taken["in_flight"], taken["unavailable"], taken["budget"]) == ([node], [node], 1)
    assert taken["diff"]["before"] == {"slot": None}
    assert taken["diff"]["after"]["slot"]["node"] == node

    again = group.taken(node, run="run-1")
    assert again["changed"] is False
    assert again["slot"] == taken["slot"]

    back = group.taken(node, state="absent")
    assert back["changed"] is True
    assert (back["slot"], back["in_flight"]) == (None, [])
    assert group.slots() == {}
    assert group.taken(node, state="absent")["changed"] is False


def test_giving_back_what_was_never_taken_makes_no_ledger(group):
    assert group.taken(group.nodes[0], state="absent")["changed"] is False
    assert group.config_map() is None


@pytest.mark.parametrize("begun", [False, True])
def test_a_slot_passes_from_a_dead_run_to_the_next_of_the_operation(group, begun):
    node = group.nodes[0]
    first = group.taken(node, run=f"{group.name}-1")["slot"]
    if begun:
        claim = json.dumps({"run": f"{group.name}-1", "operation": "kernel", "since": first["since"]})
        group.lab.kubectl("annotate", "node", node, f"holdfast.dev/claim={claim}")

    kept = group.slot(node, run=f"{group.name}-2")
    assert kept["error"] == "timed_out"
    assert f"run {group.name}-1" in kept["msg"]

    group.silence(f"{group.name}-1")
    second = group.taken(node, run=f"{group.name}-2")
    group.lab.kubectl("annotate", "node", node, "holdfast.dev/claim-")

    assert second["changed"] is True
    assert second["slot"] == {**first, "run": f"{group.name}-2", "since": second["slot"]["since"]}
    assert (second["slot"]["since"] == first["since"]) is begun, (
        "the slot keeps its time only if the dead run had claimed the node"
    )


def test_a_claimed_slot_of_a_dead_run_goes_when_its_node_is_well(group):
    """Each claim changes the ledger, so a run that read the Node before a claim can't store what follows from it."""
    node, other = group.nodes[:2]
    group.taken(node, run=f"{group.name}-1")
    options = {"name": node, "run": f"{group.name}-1", "operation": "kernel", "group": group.name}
    for claims in (1, 2):
        assert perform(group.lab, "node_claim", **options)["changed"]
        assert group.slots()[node]["claims"] == claims
        group.lab.kubectl("annotate", "node", node, "holdfast.dev/claim-")
    group.silence(f"{group.name}-1")

    group.taken(other, run=f"{group.name}-2", operation="firmware")

    assert set(group.slots()) == {other}


def test_the_slot_of_a_dead_run_goes_with_its_node(lab, group):
    first, second = group.nodes[0], f"{group.name}-replaced"
    lab.simulate([second], {"group": group.selector.partition("=")[2]})
    try:
        group.taken(second, run=f"{group.name}-1")
    finally:
        lab.unsimulate([second])
    # Its run is alive, and returns the slot itself.
    assert group.slot(first, run=f"{group.name}-2", operation="firmware")["failed"]

    group.silence(f"{group.name}-1")
    group.taken(first, run=f"{group.name}-2", operation="firmware")

    assert set(group.slots()) == {first}


def test_sixteen_race_for_three(lab):
    with group_of(lab, 16, "race") as group, History(lab.kubeconfig, group.name, group.selector) as history:
        start, full = threading.Barrier(16), threading.Event()

        def work(node):
            start.wait()
            took = group.slot(node, operation=f"operation-{node}", max_unavailable="3", wait_timeout=PATIENCE)
            if took.get("failed"):
                return took["msg"]
            # No slot is given back before the budget was fully used once.
            if len(took["in_flight"]) == 3:
                full.set()
            assert full.wait(PATIENCE)
            lab.kubectl("cordon", node)
            lab.kubectl("uncordon", node)
            gave = group.slot(node, operation=f"operation-{node}", max_unavailable="3", state="absent")
            return gave.get("msg")

        with ThreadPoolExecutor(16) as pool:
            troubles = [trouble for trouble in pool.map(work, group.nodes) if trouble]

        assert troubles == []
        assert group.slots() == {}
    assert history.most_slots == 3, history.worst_slots
    assert history.most_unavailable <= 3, history.worst_unavailable
    assert len(history.worst.busy) <= 3, history.worst
    assert frozenset().union(*(moment.slots for moment in history.moments)) == set(group.nodes)


def test_one_instant_one_slot(group):
    """All read the same ledger before any of them writes: only the compare-and-swap decides."""
    start = threading.Barrier(NODES)

    def work(node):
        start.wait()
        return not group.slot(node, operation=f"operation-{node}").get("failed")

    for _round in range(5):
        with ThreadPoolExecutor(NODES) as pool:
            winners = [node for node, won in zip(group.nodes, pool.map(work, group.nodes)) if won]
        assert list(group.slots()) == winners
        assert len(winners) == 1
        group.taken(winners[0], operation=f"operation-{winners[0]}", state="absent")


def test_two_groups_race_for_one_node(lab, simulated):
    node = simulated.nodes[0]
    groups = [Group(lab, f"{simulated.name}-{letter}", simulated.nodes, simulated.selector) for letter in "ab"]
    start = threading.Barrier(2)

    def work(group):
        start.wait()
        return not group.slot(node).get("failed")

    try:
        for _round in range(10):
            with ThreadPoolExecutor(2) as pool:
                won = list(pool.map(work, groups))
            assert won == [node in group.slots() for group in groups]
            # Both may lose: each sees the slot of the other, and gives back its own.
            assert sum(won) <= 1
            for group in groups:
                group.taken(node, state="absent")
    finally:
        for group in groups:
            lab.kubectl("delete", "configmap", "-n", "holdfast", f"group.{group.name}", "--ignore-not-found")


class TestWaiting:
    @pytest.mark.core
    def test_ends_when_a_slot_is_given_back(self, lab, group):
        first, second = group.nodes[:2]
        group.taken(first)
        waiting = threading.Event()
        with ThreadPoolExecutor(1) as pool:

            def wait():
                waiting.set()
                return group.slot(second, operation="firmware", wait_timeout=PATIENCE)

            result = pool.submit(wait)
            waiting.wait()
            group.taken(first, state="absent")
            taken = result.result(PATIENCE)

        assert taken["changed"] is True
        assert list(group.slots()) == [second]
        assert taken["diff"]["before"] == {"slot": None}

    @pytest.mark.parametrize("share", ["2", "34%"])
    def test_a_freed_slot_costs_one_list_of_nodes_however_many_wait(self, group, tmp_path, monkeypatch, share):
        """Two of six nodes have a slot, and the others of the run wait. Each slot that is given back goes to one."""
        lists, sent = [], Cluster._send
        lost, stored = [], ledger_store.store

        def send(cluster, method, path, *, query, **more):
            if path == paths.NODES and "limit" in query:
                lists.append(more.get("accept"))
            return sent(cluster, method, path, query=query, **more)

        def store(*ledger):
            try:
                return stored(*ledger)
            except ApiFailure as error:
                lost.append(error)
                raise

        monkeypatch.setattr(Cluster, "_send", send)
        monkeypatch.setattr(ledger_store, "store", store)
        run = {"run": f"{group.name}-1", "max_unavailable": share}
        for node in group.nodes[:2]:
            group.taken(node, **run)
        wait = {**run, "wait_timeout": PATIENCE, "folder": str(tmp_path)}
        lists.clear()
        with ThreadPoolExecutor(NODES) as pool:
            waiting = {pool.submit(group.slot, node, **wait): node for node in group.nodes[2:]}
            # Four nodes wait: one is at the front and has listed the Nodes, and three queue for its place.
            until(lambda: lists, "one at the front")
            until(
                lambda: sum(thread.name == "queue for a slot" for thread in threading.enumerate()) == 3, "three queue"
            )
            lists.clear()
            costs, free = [], list(group.nodes[:2])
            while waiting:
                group.taken(free.pop(0), **run, state="absent")
                (ended,), _others = wait_for(waiting, PATIENCE, FIRST_COMPLETED)
                result = ended.result()
                assert not result.get("failed"), result["msg"]
                free.append(waiting.pop(ended))
                until(lambda: len(group.slots()) == 2, "two have a slot")
                # A grant that a busy API server does not store is decided again.
                costs.append(len(lists) - len(lost))
                lists.clear()
                lost.clear()

        assert costs == [1, 1, 1, 1]

    def test_the_slot_of_a_dead_run_does_not_wait_for_the_front(self, lab, group, tmp_path):
        """The node at the front waits for that slot, so neither would ever get one."""
        first, second = group.nodes[:2]
        since = group.taken(first, run=f"{group.name}-1")["slot"]["since"]
        claim = json.dumps({"run": f"{group.name}-1", "operation": "kernel", "since": since})
        lab.kubectl("annotate", "node", first, f"holdfast.dev/claim={claim}")
        # It counts as dead in 6 s.
        group.silence(f"{group.name}-1", DEAD_AFTER - 6)
        run = {"run": f"{group.name}-2", "wait_timeout": PATIENCE, "unhealthy_grace": PATIENCE, "folder": str(tmp_path)}
        with ThreadPoolExecutor(2) as pool:
            front = pool.submit(group.slot, second, **run)
            until(lambda: list(tmp_path.iterdir()), "a node at the front")
            passed = pool.submit(group.slot, first, **run).result(PATIENCE)
            lab.kubectl("annotate", "node", first, "holdfast.dev/claim-")
            group.taken(first, run=f"{group.name}-2", state="absent")
            granted = front.result(PATIENCE)

        assert (passed["slot"]["node"], passed["slot"]["run"]) == (first, f"{group.name}-2")
        assert granted["slot"]["node"] == second

    def test_time_out_says_who_has_what(self, group):
        first, second = group.nodes[:2]
        taken = group.taken(first, operation="firmware", run="run-7")["slot"]

        result = group.slot(second, wait_timeout=1)

        assert result["failed"]
        assert result["error"] == "timed_out"
        assert result["msg"].startswith(f"Node {second} got no slot of group {group.name} within 1 s: ")
        assert f"{first} has a slot of operation firmware, run run-7, since {taken['since']}" in result["msg"]
        assert (result["in_flight"], result["unavailable"], result["budget"]) == ([first], [first], 1)
        assert result["slot"] is None

    def test_ends_immediately_if_its_operation_failed(self, group):
        first, second, third = group.nodes[:3]
        group.taken(first, operation="firmware")
        group.taken(third, state="failed", reason="drain timed out")

        result = group.slot(second, wait_timeout=MAY_WAIT)

        assert result["error"] == "refused"
        assert f"1 node failed in this operation and max_failed is 0: {third} (drain timed out)" in result["msg"]
        assert result["waited"] < MAY_WAIT

    def test_is_not_begun_in_check_mode(self, group):
        first, second = group.nodes[:2]
        group.taken(first)

        result = group.slot(second, operation="firmware", wait_timeout=MAY_WAIT, check_mode=True)

        assert result["changed"] is True
        assert result["slot"]["node"] == second
        assert group.slot(second, operation="firmware", wait_timeout=0, check_mode=True)["error"] == "timed_out"


class TestRefused:
    def test_a_node_that_no_run_works_on_is_named_immediately(self, lab, group):
        down, cordoned, wanted = group.nodes[:3]
        group.report(down, ready=False)
        lab.kubectl("cordon", cordoned)

        result = group.slot(wanted, max_unavailable="2", wait_timeout=MAY_WAIT)

        assert result["failed"]
        assert result["error"] == "refused"
        assert f"{down} is not Ready; {cordoned} is cordoned" in result["msg"]
        assert result["unavailable"] == [down, cordoned]
        assert result["budget"] == 2
        assert group.config_map() is None
        assert group.taken(wanted, max_unavailable="3")["changed"]

    def test_nodes_that_look_down_for_a_moment_are_waited_for(self, group):
        """As after an outage of the API, when the controller manager marks half of the nodes as dead."""
        *down, wanted = group.nodes[:4]
        for name in down:
            group.report(name, ready=False)

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(group.slot, wanted, max_unavailable="2", wait_timeout=120, unhealthy_grace=110)
            for name in down:
                group.report(name, ready=True)
            result = waiting.result()

        assert result.get("msg") is None
        assert result["slot"]["node"] == wanted

    def test_others_need_not_count(self, group):
        group.report(group.nodes[0], ready=False)

        assert group.slot(group.nodes[1])["failed"]
        assert group.taken(group.nodes[1], count_others=False)["changed"]

    def test_zero_is_a_pause(self, group):
        result = group.slot(group.nodes[0], max_unavailable="0", wait_timeout=MAY_WAIT)

        assert result["error"] == "refused"
        assert "the group is paused" in result["msg"]

    def test_a_node_outside_the_selector(self, group):
        result = group.slot(group.nodes[0], selector="group=somewhere-else")

        assert f"node {group.nodes[0]} does not match the group's selector" in result["msg"]

    def test_a_node_that_is_not_there(self, group):
        result = group.slot("no-such-node")

        assert result["error"] == "not_found"
        assert "There is no Node no-such-node" in result["msg"]

    def test_another_policy_while_slots_are_taken(self, group):
        first, second = group.nodes[:2]
        group.taken(first)

        result = group.slot(second, max_unavailable="2", wait_timeout=MAY_WAIT)

        assert result["error"] == "refused"
        assert "the group has another policy (max_unavailable differ) while slots are taken" in result["msg"]
        assert f"{first} has a slot" in result["msg"]
        assert json.loads(group.config_map()["data"]["policy"])["max_unavailable"] == "1"

    def test_another_policy_replaces_the_old_one_otherwise(self, group):
        group.taken(group.nodes[0])
        group.taken(group.nodes[0], state="absent")

        group.taken(group.nodes[1], max_unavailable="2")

        assert json.loads(group.config_map()["data"]["policy"])["max_unavailable"] == "2"

    def test_a_node_in_another_group(self, lab, group):
        node = group.nodes[0]
        group.taken(node)
        other = Group(lab, f"{group.name}-other", group.nodes, group.selector)

        result = other.slot(node)

        assert result["error"] == "refused"
        assert f"Node {node} has a slot of group {group.name}, so group {other.name} can't give it one" in result["msg"]
        assert other.config_map() is None

    def test_giving_back_another_operation_s_slot(self, group):
        node = group.nodes[0]
        group.taken(node, run="run-7")

        for state in ("absent", "failed"):
            result = group.slot(node, operation="firmware", state=state)
            assert result["error"] == "refused"
            assert f"belongs to operation kernel (run run-7, since {result['slot']['since']})" in result["msg"]
        assert list(group.slots()) == [node]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"group": "Big_Group"}, 'group "Big_Group" is not a valid name'),
            ({"max_unavailable": "some"}, 'max_unavailable must be a whole number or a share such as "10%"'),
            ({"max_unavailable_per_domain": 1}, "need topology_key"),
            ({"max_domains": 0, "topology_key": "zone"}, "max_domains must be 1 or more"),
            ({"max_failed": -1}, "max_failed must be 0 or more"),
        ],
    )
    def test_options_that_can_never_work(self, group, options, words):
        result = group.slot(group.nodes[0], **options)

        assert result["error"] == "invalid_input"
        assert words in result["msg"]


@pytest.mark.parametrize(("share", "allowed"), [("1%", 1), ("49%", 2), ("50%", 3), ("100%", 6), ("20%", 1)])
def test_shares_are_rounded_down_but_at_least_one(group, share, allowed):
    results = [group.slot(node, max_unavailable=share) for node in group.nodes]

    assert [bool(result.get("failed")) for result in results] == [False] * allowed + [True] * (NODES - allowed)
    assert {result["budget"] for result in results} == {allowed}


class TestDomains:
    @pytest.fixture(autouse=True)
    def zones(self, lab, group):
        for node, zone in zip(group.nodes, "aabb"):
            lab.kubectl("label", "node", node, f"zone={zone}")
        yield
        lab.kubectl("label", "node", *group.nodes, "zone-")

    def test_a_limit_for_each(self, group):
        options = {"max_unavailable": "5", "topology_key": "zone", "max_unavailable_per_domain": 1}

        first, same_zone, other_zone, _fourth, no_zone, no_zone_either = (
            group.slot(node, **options) for node in group.nodes
        )

        assert first["slot"]["domain"] == "a"
        assert 'allowed in domain "a" are unavailable' in same_zone["msg"]
        assert other_zone["slot"]["domain"] == "b"
        assert no_zone["slot"]["domain"] == ""
        assert no_zone_either["error"] == "timed_out"

    def test_one_after_the_other(self, group):
        options = {"max_unavailable": "5", "topology_key": "zone", "max_domains": 1}
        group.taken(group.nodes[0], **options)
        group.taken(group.nodes[1], **options)

        other_zone = group.slot(group.nodes[2], **options)
        assert "1 of 1 allowed domains have unavailable nodes" in other_zone["msg"]

        group.taken(group.nodes[0], state="absent", **options)
        group.taken(group.nodes[1], state="absent", **options)
        assert group.taken(group.nodes[2], **options)["slot"]["domain"] == "b"


class TestFailed:
    def test_a_healthy_node_gives_its_slot_back(self, group):
        group.taken(group.nodes[0])

        failed = group.taken(group.nodes[0], state="failed", reason="drain timed out")

        assert failed["changed"] is True
        assert (failed["slot"], group.slots()) == (None, {})

    def test_an_unhealthy_node_keeps_it_until_it_is_back_with_a_new_boot_id(self, group):
        node, other = group.nodes[:2]
        group.taken(node)
        group.report(node, ready=False)

        failed = group.taken(node, state="failed", reason="it did not come back")
        assert failed["slot"]["state"] == "failed"
        assert failed["slot"]["reason"] == "it did not come back"
        assert group.taken(node, state="failed", reason="it did not come back")["changed"] is False

        refused = group.slot(other, operation="firmware", wait_timeout=MAY_WAIT)
        assert refused["error"] == "refused"
        assert f"{node} failed: it did not come back" in refused["msg"]

        group.report(node, ready=True)
        assert group.slot(other, operation="firmware", wait_timeout=MAY_WAIT)["error"] == "refused"

        group.report(node, ready=True, boot_id=f"{node}-next")
        assert group.taken(other, operation="firmware")["in_flight"] == [other]
        assert list(group.slots()) == [other]

    def test_a_person_gives_it_back(self, group):
        node, other = group.nodes[:2]
        group.taken(node)
        group.report(node, ready=False)
        group.taken(node, state="failed", reason="it did not come back")

        group.taken(node, state="absent")
        group.report(node, ready=True)

        assert group.taken(other, operation="firmware")["changed"]

    def test_past_max_failed_no_node_of_the_operation_gets_one(self, group):
        first, second, third, fourth, *_rest = group.nodes
        for node in (first, second):
            group.taken(node, max_failed=1)
            group.taken(node, state="failed", reason="drain timed out")

        refused = group.slot(third, max_failed=1, wait_timeout=MAY_WAIT)

        assert refused["error"] == "refused"
        assert "2 nodes failed in this operation and max_failed is 1" in refused["msg"]
        assert f"{first} (drain timed out); {second} (drain timed out)" in refused["msg"]
        assert group.taken(fourth, operation="firmware")["changed"]

    def test_failures_of_a_live_run_outlast_eleven_operations_with_long_reasons(self, group):
        run, (first, second, *_rest) = f"{group.name}-1", group.nodes
        options, reason = {"max_failed": 0, "run": run}, "x" * 1400
        context = Context({"kubeconfig": str(group.lab.kubeconfig)})
        begun = {"group": group.name, "operation": "kernel", "run": run, "nodes": [first, second]}
        assert operations.enter(context, {**begun, "restart": False, "adopt_within": 0})["changed"]
        group.taken(first, **options)
        group.taken(first, state="failed", reason=reason, **options)
        for number in range(11):
            for node in group.nodes:
                group.taken(node, operation=f"other-{number}", max_failed=NODES)
                group.taken(node, operation=f"other-{number}", state="failed", reason=reason)

        refused = group.slot(second, **options, wait_timeout=MAY_WAIT)
        operations.leave(context.cluster, {**begun, "complete": True})

        assert refused["error"] == "refused"
        assert "1 node failed in this operation and max_failed is 0" in refused["msg"]
        # All 67 reasons together have 94,000 characters.
        assert len(json.dumps(group.config_map()["data"])) < 40_000

    def test_failures_of_an_operation_over_several_groups_count_in_one(self, group, lab):
        first, second, third, *_rest = group.nodes
        home = f"{group.name}-home"
        where = {"operation_group": home, "max_failed": 0}
        try:
            group.taken(first, group=home)
            group.taken(first, group=home, state="failed", reason="drain timed out")

            refused = group.slot(second, **where)
            assert "1 node failed in this operation and max_failed is 0" in refused["msg"]
            # The group's own ledger does not count failures of this operation: nothing would remove them when the
            # operation resumes.
            group.taken(third)
            group.taken(third, state="failed", reason="drain timed out")
            assert group.taken(second, operation_group=home, max_failed=1)["changed"]
        finally:
            lab.kubectl("-n", "holdfast", "delete", "configmap", f"group.{home}", "--ignore-not-found")


class TestCheckMode:
    def test_changes_nothing(self, group):
        node = group.nodes[0]

        taken = group.taken(node, check_mode=True)
        assert taken["changed"] is True
        assert taken["slot"]["node"] == node
        assert group.config_map() is None

        group.taken(node)
        before = group.config_map()
        for options in ({"state": "absent"}, {"state": "failed"}, {"run": "run-2"}):
            assert group.taken(node, check_mode=True, **options)["changed"] is True
        assert group.taken(node, check_mode=True)["changed"] is False
        assert group.config_map() == before


class TestNamespace:
    @pytest.fixture
    def unused(self, lab, monkeypatch):
        """The name of a namespace that does not exist. The ledgers are in it instead of in holdfast."""
        name = f"holdfast-{uuid.uuid4().hex[:10]}"
        for module in (ledger_store, slot_requests):
            monkeypatch.setattr(module, "NAMESPACE", name)
        yield name
        lab.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")

    def test_is_made_on_first_use(self, lab, group, unused):
        assert group.taken(group.nodes[0], check_mode=True)["changed"]
        assert lab.kubectl("get", "namespace", unused, "--ignore-not-found") == ""

        group.taken(group.nodes[0])

        assert lab.kubectl("get", "configmap", "-n", unused, f"group.{group.name}", "-o", "name")

    def test_is_made_once_by_many(self, group, unused):
        start = threading.Barrier(NODES)

        def work(node):
            start.wait()
            return group.slot(node, operation=f"operation-{node}", max_unavailable="100%", wait_timeout=PATIENCE)

        with ThreadPoolExecutor(NODES) as pool:
            results = list(pool.map(work, group.nodes))

        assert [result.get("msg") for result in results] == [None] * NODES
        assert [result["slot"]["group"] for result in results] == [group.name] * NODES

    def test_an_invalid_ledger(self, lab, group, unused):
        """In holdfast, it would refuse the slots of all other tests, too."""
        group.taken(group.nodes[0])
        patch = json.dumps({"data": {"slots": "{not json"}})
        lab.kubectl("patch", "configmap", "-n", unused, f"group.{group.name}", "--type=merge", f"--patch={patch}")

        result = group.slot(group.nodes[1])

        assert result["error"] == "refused"
        assert f"The ConfigMap group.{group.name} in namespace {unused} is not a valid ledger" in result["msg"]


def test_the_ledger_reads_well(lab, group):
    group.taken(group.nodes[0], run="alice@laptop", max_unavailable="50%")

    text = lab.kubectl("get", "configmap", "-n", "holdfast", f"group.{group.name}", "-o", "yaml")
    shown = yaml.safe_load(text)

    assert f'  slots: |-\n    {{\n     "{group.nodes[0]}": {{\n' in text, "as a block, not as one quoted line"
    assert '"run": "alice@laptop"' in text
    assert json.loads(shown["data"]["policy"])["max_unavailable"] == "50%"
    assert json.loads(shown["data"]["operations"]) == [{"id": "kernel", "failures": {}}]
    assert shown["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "holdfast.kubernetes",
        "holdfast.dev/ledger": "group",
    }


def test_what_others_wrote_on_the_ledger_stays(lab, group):
    group.taken(group.nodes[0])
    lab.kubectl("annotate", "configmap", "-n", "holdfast", f"group.{group.name}", "example.com/note=ours")

    group.taken(group.nodes[0], state="absent")

    assert group.config_map()["metadata"]["annotations"]["example.com/note"] == "ours"


def test_node_info_shows_the_slot(lab, group):
    node = group.nodes[0]
    slot = group.taken(node)["slot"]

    found = perform(lab, "node_info", selector=group.selector)["nodes"]

    assert {item["name"]: item["slot"] for item in found} == {
        **dict.fromkeys(group.nodes),
        node: slot,
    }
