# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may take a node down: examples for people, and a machine that tries everything else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import (
    CLAIM,
    CORDON,
    KEEP_CORDONED,
    OPERATION,
    VERSION,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import ledger_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import ledger_store as store
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import (
    ACTIVE,
    FAILED,
    GRANTED,
    KEPT_AFTERWARDS,
    KEPT_FAILURES,
    KEPT_OPEN,
    KEPT_OPERATIONS,
    REFUSED,
    WAIT,
    Claimant,
    Ledger,
    Member,
    Request,
    Slot,
    UnknownFields,
    at_a_glance,
    claim,
    decide,
    fail,
    give_back,
    heal,
    member,
    release,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import Policy

NODES = ["alfa", "bravo", "charlie", "delta", "echo", "foxtrot"]
OPERATIONS = ["kernel", "firmware", "kubelet"]
RUNS = ["run-1", "run-2", "run-3"]


def node(name, **more):
    return Member(name, **{"ready": True, "unschedulable": False, "boot_id": f"{name}-1", **more})


def nodes(*names):
    return [node(name) for name in names or NODES]


def ask(name, operation="kernel", **more):
    return Request(name, operation, **{"run": "run-1", "now": "2026-11-21T09:00:00.000000Z", **more})


def slot(name, operation="kernel", **more):
    return Slot(
        name, operation, **{"run": "run-1", "since": "2026-11-21T08:00:00.000000Z", "boot_id": f"{name}-1", **more}
    )


def ledger_of(*slots, policy=Policy(), operations=()):  # noqa: B008
    return Ledger(policy, {item.node: item for item in slots}, tuple(operations))


class TestDecide:
    def test_the_first_of_a_group_gets_a_slot(self):
        decision = decide(Ledger(), Policy(), nodes(), ask("alfa"))

        assert decision.outcome == GRANTED
        assert decision.ledger.policy == Policy()
        assert decision.ledger.slots == {
            "alfa": Slot("alfa", "kernel", "run-1", "2026-11-21T09:00:00.000000Z", boot_id="alfa-1")
        }
        assert decision.ledger.operations == ({"id": "kernel", "failures": {}},)
        assert (decision.budget, decision.unavailable) == (1, ())

    def test_never_over_the_budget(self):
        policy = Policy(max_unavailable="2")
        taken = ledger_of(slot("alfa"), slot("bravo", "firmware"), policy=policy)

        decision = decide(taken, policy, nodes(), ask("charlie"))

        assert decision.outcome == WAIT
        assert decision.ledger == taken
        assert decision.unavailable == ("alfa", "bravo")
        assert decision.why == (
            "2 of 2 allowed are unavailable: "
            "alfa has a slot of operation kernel, run run-1, since 2026-11-21T08:00:00.000000Z; "
            "bravo has a slot of operation firmware, run run-1, since 2026-11-21T08:00:00.000000Z"
        )

    def test_up_to_the_budget(self):
        policy = Policy(max_unavailable="2")

        decision = decide(ledger_of(slot("alfa"), policy=policy), policy, nodes(), ask("bravo"))

        assert decision.outcome == GRANTED
        assert set(decision.ledger.slots) == {"alfa", "bravo"}

    def test_others_count(self):
        group = [node("alfa", ready=False), node("bravo", unschedulable=True), node("charlie")]

        decision = decide(Ledger(), Policy(max_unavailable="2"), group, ask("charlie"))

        assert decision.outcome == REFUSED
        assert decision.why == "2 of 2 allowed are unavailable: alfa is not Ready; bravo is cordoned"
        assert decision.unavailable == ("alfa", "bravo")

    def test_others_need_not_count(self):
        group = [node("alfa", ready=False), node("bravo", unschedulable=True), node("charlie")]

        assert decide(Ledger(), Policy(), group, ask("charlie", count_others=False)).outcome == GRANTED

    def test_a_node_with_a_slot_that_is_down_counts_once(self):
        policy = Policy(max_unavailable="2")
        group = [node("alfa", ready=False, unschedulable=True), node("bravo")]

        assert decide(ledger_of(slot("alfa"), policy=policy), policy, group, ask("bravo")).outcome == GRANTED

    def test_a_node_does_not_block_itself(self):
        assert decide(Ledger(), Policy(), [node("alfa", ready=False), node("bravo")], ask("alfa")).outcome == GRANTED

    def test_a_node_waits_for_another_one_that_a_run_works_on(self):
        policy = Policy(max_unavailable="2")
        group = [node("alfa", ready=False), *nodes("bravo", "charlie")]

        decision = decide(ledger_of(slot("bravo"), policy=policy), policy, group, ask("charlie"))

        assert decision.outcome == WAIT
        assert "alfa is not Ready" in decision.why
        assert "bravo has a slot" in decision.why

    def test_a_failed_slot_is_worked_on_by_nobody(self):
        taken = ledger_of(slot("alfa", state=FAILED, reason="it did not come back"))

        decision = decide(taken, Policy(), [node("alfa", ready=False), node("bravo")], ask("bravo"))

        assert decision.outcome == REFUSED
        assert decision.why == "1 of 1 allowed are unavailable: alfa failed: it did not come back"

    @pytest.mark.parametrize(
        ("pause", "ended", "left"),
        [
            (60, "08:59:00", 0),
            (60, "08:59:01", 1),
            (60, "08:59:50", 50),
            (60, "09:00:00", 60),
            # The clocks of two runs differ a little.
            (60, "09:00:30", 90),
            (60, "09:01:00", 120),
            # The clock of a run is wrong.
            (60, "09:01:01", 0),
            (0, "09:00:00", 0),
            (60, "", 0),
        ],
    )
    def test_a_pause_after_the_last_node_of_the_operation(self, pause, ended, left):
        policy = Policy(max_unavailable="2")
        entry = {"id": "kernel", "failures": {}, **({"ended": f"2026-11-21T{ended}Z"} if ended else {})}
        before = ledger_of(policy=policy, operations=[entry])

        decision = decide(before, policy, nodes(), ask("alfa", pause=pause))

        assert (decision.outcome, decision.again_in or 0) == (WAIT if left else GRANTED, left)
        assert not left or decision.ledger == before
        assert decide(before, policy, nodes(), ask("alfa", "firmware", pause=pause)).outcome == GRANTED

    def test_the_budget_comes_before_the_pause(self):
        entry = {"id": "kernel", "failures": {}, "ended": "2026-11-21T09:00:00Z"}
        taken = ledger_of(slot("bravo"), operations=[entry])

        decision = decide(taken, Policy(), nodes(), ask("alfa", pause=60))

        assert decision.outcome == WAIT
        assert "bravo has a slot" in decision.why

    def test_zero_is_a_pause(self):
        decision = decide(Ledger(), Policy(max_unavailable="0"), nodes(), ask("alfa"))

        assert (decision.outcome, decision.why) == (REFUSED, "the group is paused (max_unavailable is 0)")

    @pytest.mark.parametrize(
        ("share", "count", "allowed"), [("10%", 3, 1), ("50%", 3, 1), ("67%", 3, 2), ("34%", 6, 2)]
    )
    def test_shares_are_of_all_nodes(self, share, count, allowed):
        policy, ledger = Policy(max_unavailable=share), Ledger()
        outcomes = []
        for name in NODES[:count]:
            decision = decide(ledger, policy, nodes(*NODES[:count]), ask(name))
            outcomes.append(decision.outcome)
            ledger = decision.ledger

        assert outcomes == [GRANTED] * allowed + [WAIT] * (count - allowed)
        assert len(ledger.slots) == allowed

    def test_a_node_outside_the_selector(self):
        decision = decide(Ledger(), Policy(selector="type=real"), nodes("alfa"), ask("bravo"))

        assert (decision.outcome, decision.why) == (REFUSED, "node bravo does not match the group's selector")

    def test_another_policy_while_slots_are_taken(self):
        old, new = Policy(), Policy(max_unavailable="3", selector="type=real")

        decision = decide(ledger_of(slot("alfa"), policy=old), new, nodes(), ask("bravo"))

        assert decision.outcome == REFUSED
        assert decision.why == (
            "the group has another policy (selector, max_unavailable differ) while slots are taken: "
            "alfa has a slot of operation kernel, run run-1, since 2026-11-21T08:00:00.000000Z"
        )
        assert decision.ledger.policy == old
        assert decision.unavailable == ("alfa",)

    def test_a_slot_that_the_run_takes_over_keeps_its_policy(self):
        """Otherwise a run with another budget could not resume its own operation."""
        old, new = Policy(topology_key="zone"), Policy(max_unavailable="3")
        before = ledger_of(slot("alfa", run="run-0", domain="a"), policy=old)

        decision = decide(before, new, nodes(), ask("alfa", live=frozenset({"run-1"})))

        assert (decision.outcome, decision.ledger.policy) == (GRANTED, old)
        assert (decision.ledger.slots["alfa"].run, decision.ledger.slots["alfa"].domain) == ("run-1", "a")

    @pytest.mark.parametrize(
        ("live", "restart", "outcome"),
        [({"run-1"}, True, GRANTED), ({"run-1"}, False, REFUSED), ({"run-0", "run-1"}, True, WAIT), (None, True, WAIT)],
    )
    def test_a_slot_of_another_operation_passes_only_from_a_dead_run_and_on_restart(self, live, restart, outcome):
        before = ledger_of(slot("alfa", "firmware", run="run-0"))
        marked = [node("alfa", marked=True)]

        decision = decide(before, Policy(), marked, ask("alfa", live=live and frozenset(live), restart=restart))

        assert decision.outcome == outcome
        if outcome == REFUSED:
            assert decision.way_out == "Run holdfast.kubernetes.doctor, or set rolling_reboot_restart: true."

    @pytest.mark.parametrize(("operation", "outcome"), [("kernel", WAIT), ("firmware", REFUSED)])
    def test_a_dead_runs_slot_is_waited_for_if_it_will_pass(self, operation, outcome):
        group = [node("alfa", marked=True), node("bravo")]
        request = ask("bravo", operation, run="run-2", live={"run-2"}, passing=frozenset({"run-1"}))

        assert decide(ledger_of(slot("alfa")), Policy(), group, request).outcome == outcome

    @pytest.mark.parametrize(("marked", "outcome"), [(False, GRANTED), (True, REFUSED)])
    def test_a_dead_runs_slot_on_an_untouched_node_is_dropped(self, marked, outcome):
        group = [node("alfa", marked=marked), node("bravo")]
        request = ask("bravo", "firmware", run="run-2", live={"run-2"})

        assert decide(ledger_of(slot("alfa")), Policy(), group, request).outcome == outcome

    def test_another_policy_replaces_the_old_one_otherwise(self):
        decision = decide(ledger_of(), Policy(max_unavailable="3"), nodes(), ask("bravo"))

        assert decision.outcome == GRANTED
        assert decision.ledger.policy == Policy(max_unavailable="3")

    def test_asked_again_by_the_same_operation(self):
        taken = ledger_of(slot("alfa"), operations=[{"id": "kernel", "failures": {}}])

        decision = decide(taken, Policy(), nodes(), ask("alfa"))

        assert decision.outcome == GRANTED
        assert decision.ledger == taken

    def test_the_next_run_of_the_operation_takes_the_slot_over(self):
        decision = decide(ledger_of(slot("alfa")), Policy(), [node("alfa", boot_id="alfa-2")], ask("alfa", run="run-2"))

        assert decision.outcome == GRANTED
        assert decision.ledger.slots == {"alfa": slot("alfa", run="run-2")}

    def test_a_slot_of_another_operation_is_waited_for(self):
        decision = decide(ledger_of(slot("alfa")), Policy(max_unavailable="1"), nodes(), ask("alfa", "firmware"))

        assert decision.outcome == WAIT
        assert "operation kernel" in decision.why

    def test_a_failed_slot_of_another_operation_is_not_waited_for(self):
        taken = ledger_of(slot("alfa", state=FAILED, reason="no boot"))

        decision = decide(taken, Policy(), [node("alfa", ready=False)], ask("alfa", "firmware"))

        assert (decision.outcome, decision.why) == (REFUSED, "alfa failed: no boot")

    def test_a_live_run_keeps_its_slot_from_another_of_its_operation(self):
        taken = ledger_of(slot("alfa", run="run-1"))

        alive = decide(taken, Policy(), nodes(), ask("alfa", run="run-2", live=frozenset({"run-1", "run-2"})))
        dead = decide(taken, Policy(), nodes(), ask("alfa", run="run-2", live=frozenset({"run-2"})))

        assert (alive.outcome, alive.ledger) == (WAIT, taken)
        assert (dead.outcome, dead.ledger.slots["alfa"].run) == (GRANTED, "run-2")

    def test_a_slot_of_a_dead_run_is_not_waited_for(self):
        taken = ledger_of(slot("alfa", run="run-1"))

        decision = decide(taken, Policy(), nodes(), ask("bravo", run="run-2", live=frozenset({"run-2"})))

        assert decision.outcome == REFUSED
        assert "alfa has a slot of operation kernel, run run-1" in decision.why

    @pytest.mark.parametrize(("max_failed", "outcome"), [(0, REFUSED), (1, REFUSED), (2, GRANTED)])
    def test_past_max_failed_nobody_gets_a_slot(self, max_failed, outcome):
        failures = {"alfa": "drain timed out", "bravo": "no boot"}
        ledger = ledger_of(operations=[{"id": "kernel", "failures": failures}])

        decision = decide(ledger, Policy(), nodes(), ask("charlie", max_failed=max_failed))

        assert decision.outcome == outcome
        if outcome == REFUSED:
            assert decision.why == (
                f"2 nodes failed in this operation and max_failed is {max_failed}: "
                "alfa (drain timed out); bravo (no boot)"
            )

    def test_failures_of_another_operation_do_not_count(self):
        ledger = ledger_of(operations=[{"id": "kernel", "failures": {"alfa": "no boot"}}])

        assert decide(ledger, Policy(), nodes(), ask("charlie", "firmware")).outcome == GRANTED


ZONES = (node("alfa", domain="a"), node("bravo", domain="a"), node("charlie", domain="b"), node("delta", domain="c"))


class TestDomains:
    def test_two_domains_at_once_if_the_policy_allows_two(self):
        policy = Policy(max_unavailable="3", topology_key="zone", max_domains=2)
        taken = ledger_of(slot("alfa", domain="a"), policy=policy)
        group = [*ZONES, node("foxtrot", domain="c")]

        far = decide(taken, policy, group, ask("charlie"))

        assert far.outcome == GRANTED
        assert decide(far.ledger, policy, group, ask("foxtrot")).outcome == WAIT

    def test_a_limit_for_each_domain(self):
        policy = Policy(max_unavailable="3", topology_key="zone", max_unavailable_per_domain=1)
        taken = ledger_of(slot("alfa", domain="a"), policy=policy)

        near, far = (decide(taken, policy, ZONES, ask(name)) for name in ("bravo", "charlie"))

        assert near.outcome == WAIT
        assert near.why.startswith('1 of 1 allowed in domain "a" are unavailable: alfa has a slot')
        assert far.outcome == GRANTED
        assert far.ledger.slots["charlie"].domain == "b"

    def test_one_domain_after_the_other(self):
        policy = Policy(max_unavailable="3", topology_key="zone", max_domains=1)
        taken = ledger_of(slot("alfa", domain="a"), policy=policy)

        near, far = (decide(taken, policy, ZONES, ask(name)) for name in ("bravo", "charlie"))

        assert near.outcome == GRANTED
        assert far.outcome == WAIT
        assert far.why.startswith("1 of 1 allowed domains have unavailable nodes: alfa has a slot")

    def test_nodes_without_the_label_are_one_domain(self):
        policy = Policy(max_unavailable="3", topology_key="zone", max_unavailable_per_domain=1)
        taken = ledger_of(slot("alfa"), policy=policy)

        assert decide(taken, policy, nodes("alfa", "bravo"), ask("bravo")).outcome == WAIT

    def test_others_count_in_their_domain(self):
        policy = Policy(max_unavailable="3", topology_key="zone", max_unavailable_per_domain=1)
        group = [replace(ZONES[0], ready=False), *ZONES[1:]]

        near, far = (decide(Ledger(), policy, group, ask(name)) for name in ("bravo", "charlie"))

        assert (near.outcome, near.why) == (
            REFUSED,
            '1 of 1 allowed in domain "a" are unavailable: alfa is not Ready',
        )
        assert far.outcome == GRANTED


class TestFail:
    def test_a_healthy_node_gives_its_slot_back_and_counts(self):
        ledger = fail(ledger_of(slot("alfa")), node("alfa"), "kernel", "drain timed out")

        assert ledger.slots == {}
        assert ledger.failures("kernel") == {"alfa": "drain timed out"}

    def test_an_unhealthy_node_keeps_it_as_failed(self):
        ledger = fail(ledger_of(slot("alfa")), node("alfa", ready=False), "kernel", "no boot")

        assert ledger.slots == {"alfa": slot("alfa", state=FAILED, reason="no boot")}
        assert ledger.failures("kernel") == {"alfa": "no boot"}

    def test_a_node_without_a_slot_counts_too(self):
        ledger = fail(ledger_of(), node("alfa"), "kernel", "unreachable")

        assert ledger.slots == {}
        assert ledger.failures("kernel") == {"alfa": "unreachable"}

    def test_a_slot_of_another_operation_is_left(self):
        ledger = fail(ledger_of(slot("alfa")), node("alfa", ready=False), "firmware", "no boot")

        assert ledger.slots == {"alfa": slot("alfa")}

    def test_ready_without_a_new_boot_id_does_not_clear_a_failed_slot(self):
        failed = ledger_of(slot("alfa", state=FAILED, reason="no boot"))

        assert fail(failed, node("alfa"), "kernel", "no boot").slots == failed.slots
        assert fail(failed, node("alfa", boot_id="alfa-2"), "kernel", "no boot").slots == {}

    def test_the_run_with_the_claim_keeps_the_slot(self):
        taken = ledger_of(slot("alfa"))

        ledger = fail(taken, node("alfa"), "kernel", "no slot", run="run-1", claimant=Claimant("run-2", "kernel"))

        assert ledger is taken

    def test_of_a_slot_that_passed_on_nothing_is_counted(self):
        taken = ledger_of(slot("alfa", run="run-2"))

        assert fail(taken, node("alfa"), "kernel", "no claim", run="run-1") is taken

    @pytest.mark.parametrize("operation", ["kernel", "firmware"])
    def test_a_claimant_s_failure_counts_although_its_slot_passed_on(self, operation):
        taken = ledger_of(slot("alfa", operation, run="run-2"))
        claimant = Claimant("run-1", "kernel")

        healthy = fail(taken, node("alfa"), "kernel", "drain timed out", run="run-1", claimant=claimant)
        unhealthy = fail(taken, node("alfa", ready=False), "kernel", "no boot", run="run-1", claimant=claimant)

        assert healthy.failures("kernel") == {"alfa": "drain timed out"}
        assert healthy.slots == taken.slots
        assert unhealthy.failures("kernel") == {"alfa": "no boot"}
        kept = unhealthy.slots["alfa"]
        assert (kept.state, kept.operation, kept.reason) == (FAILED, "kernel", "no boot")
        assert kept.run == ("run-2" if operation == "kernel" else "run-1")


class TestGiveBack:
    def test_without_a_run_any_slot_is_returned(self):
        assert give_back(ledger_of(slot("alfa", run="run-2")), "alfa").slots == {}

    def test_its_run_does(self):
        taken = ledger_of(slot("alfa"), slot("bravo"))

        assert set(give_back(taken, "alfa", "run-1").slots) == {"bravo"}
        assert set(give_back(taken, "alfa", "run-1", Claimant("run-1", "kernel")).slots) == {"bravo"}

    def test_one_that_passed_on_stays(self):
        taken = ledger_of(slot("alfa", run="run-2"))

        assert give_back(taken, "alfa", "run-1") is taken
        assert give_back(taken, "alfa", "run-1", Claimant("run-1", "kernel")) is taken

    def test_of_a_node_that_is_cordoned_still_it_stays(self):
        taken = ledger_of(slot("alfa"))

        assert give_back(taken, "alfa", "run-1", cordoned=True) is taken
        assert give_back(taken, "alfa", cordoned=True).slots == {}

    @pytest.mark.parametrize("operation", ["kernel", "firmware"])
    def test_passes_back_to_the_run_that_has_the_claim(self, operation):
        taken = ledger_of(slot("alfa", run="run-2"))

        ledger = give_back(taken, "alfa", "run-2", Claimant("run-1", operation))

        assert ledger.slots == {"alfa": slot("alfa", operation, run="run-1")}


class TestHeal:
    @pytest.mark.parametrize(
        ("now", "healed"),
        [
            (node("alfa", boot_id="alfa-2"), True),
            (node("alfa", boot_id="alfa-2", unschedulable=True), True),
            (node("alfa", boot_id="alfa-2", ready=False), False),
            (node("alfa", boot_id="alfa-1"), False),
            (node("alfa", boot_id=""), False),
        ],
    )
    def test_ready_with_a_new_boot_id(self, now, healed):
        ledger = heal(ledger_of(slot("alfa", state=FAILED)), {"alfa": now})

        assert ("alfa" not in ledger.slots) is healed

    def test_a_node_that_is_gone_stays(self):
        assert "alfa" in heal(ledger_of(slot("alfa", state=FAILED)), {}).slots

    @pytest.mark.parametrize(
        ("state", "live", "healed"),
        [
            (ACTIVE, frozenset(), True),
            (ACTIVE, frozenset({"run-1"}), False),
            (ACTIVE, None, False),
            # A person may have deleted the Node to repair the machine.
            (FAILED, frozenset(), False),
        ],
    )
    def test_the_slot_of_a_dead_run_on_a_deleted_node(self, state, live, healed):
        ledger = heal(ledger_of(slot("alfa", state=state, claims=1)), {}, live, deleted={"alfa"})

        assert ("alfa" not in ledger.slots) is healed

    def test_an_active_slot_is_its_operation_s_to_give_back(self):
        assert "alfa" in heal(ledger_of(slot("alfa")), {"alfa": node("alfa", boot_id="alfa-2")}).slots

    @pytest.mark.parametrize(
        ("live", "marked", "healed"),
        [
            (frozenset(), False, True),
            (frozenset(), True, False),
            (frozenset({"run-1"}), False, False),
            # Whether anybody lives was not asked.
            (None, False, False),
        ],
    )
    def test_what_a_dead_run_had_not_begun_with(self, live, marked, healed):
        ledger = heal(ledger_of(slot("alfa")), {"alfa": node("alfa", marked=marked)}, live)

        assert ("alfa" not in ledger.slots) is healed

    @pytest.mark.parametrize(
        ("now", "healed"),
        [
            (node("alfa", marked=False), True),
            (node("alfa", marked=False, ready=False), False),
            (node("alfa"), False),
        ],
    )
    def test_under_which_a_dead_run_had_claimed_its_node(self, now, healed):
        ledger = heal(ledger_of(slot("alfa", claims=1)), {"alfa": now}, frozenset())

        assert ("alfa" not in ledger.slots) is healed

    def test_a_slot_without_a_run_stays(self):
        assert "alfa" in heal(ledger_of(slot("alfa", run="")), {"alfa": node("alfa", marked=False)}, frozenset()).slots

    def test_the_next_run_clears_it(self):
        failed = ledger_of(slot("alfa", state=FAILED), operations=[{"id": "kernel", "failures": {"alfa": "no boot"}}])

        decision = decide(failed, Policy(), [node("alfa", boot_id="alfa-2"), node("bravo")], ask("bravo", "firmware"))

        assert decision.outcome == GRANTED
        assert set(decision.ledger.slots) == {"bravo"}
        assert decision.ledger.failures("kernel") == {"alfa": "no boot"}


class TestOperations:
    def test_the_last_ten_are_kept(self):
        ledger = Ledger()
        for number in range(15):
            decision = decide(ledger, Policy(), nodes(), ask("alfa", f"operation-{number}"))
            ledger = release(decision.ledger, "alfa")

        assert [item["id"] for item in ledger.operations] == [f"operation-{number}" for number in range(5, 15)]

    @pytest.mark.parametrize("at_work", ["operation-0", "operation-3", "operation-11"])
    def test_one_that_has_a_slot_is_kept_once(self, at_work):
        known = [{"id": f"operation-{number}", "failures": {}} for number in range(12)]
        taken = ledger_of(slot("alfa", at_work), policy=Policy(max_unavailable="2"), operations=known)

        ledger = decide(taken, taken.policy, nodes(), ask("bravo", "new")).ledger

        ids = [item["id"] for item in ledger.operations]
        young = [f"operation-{number}" for number in range(3, 12)]
        assert ids == [*(name for name in [at_work] if name not in young), *young, "new"]

    def test_a_slot_that_is_asked_for_again_changes_no_order(self):
        known = [{"id": name, "failures": {}} for name in ("kernel", "firmware")]
        taken = ledger_of(slot("alfa"), operations=known)

        assert decide(taken, Policy(), nodes(), ask("alfa")).ledger == taken
        assert decide(release(taken, "alfa"), Policy(), nodes(), ask("alfa")).ledger.operations == tuple(known[::-1])

    def test_one_that_has_a_slot_is_not_forgotten(self):
        policy = Policy(max_unavailable="2")
        ledger = decide(Ledger(), policy, nodes(), ask("alfa", "slow")).ledger
        ledger = fail(ledger, node("foxtrot"), "slow", "drain timed out")
        for number in range(KEPT_OPERATIONS + 5):
            decision = decide(ledger, policy, nodes(), ask("bravo", f"operation-{number}"))
            ledger = release(decision.ledger, "bravo")

        assert ledger.failures("slow") == {"foxtrot": "drain timed out"}

    def test_one_that_has_a_run_is_not_forgotten(self):
        """It waits for a slot, while eleven others come and go."""
        ledger = ledger_of(operations=[{"id": "slow", "failures": {"foxtrot": "no boot"}, "runs": ["run-1"]}])
        for number in range(KEPT_OPERATIONS + 1):
            ledger = fail(ledger, node("alfa"), f"operation-{number}", "no boot")

        assert decide(ledger, Policy(), nodes(), ask("bravo", "slow")).outcome == REFUSED
        assert len(ledger.operations) == KEPT_OPERATIONS + 1

    def test_of_those_that_were_left_behind_not_all_are_kept(self):
        left = [{"id": f"left-{number}", "failures": {}, "runs": ["dead"]} for number in range(100)]
        ledger = fail(ledger_of(operations=left), node("alfa"), "kernel", "no boot")

        assert len(ledger.operations) == KEPT_OPERATIONS + KEPT_OPEN
        assert ledger.operations[0]["id"] == f"left-{100 - KEPT_OPERATIONS + 1 - KEPT_OPEN}"

    def test_an_unfinished_operation_is_kept_longer_than_an_ended_one(self):
        ledger = Ledger()
        for number in range(KEPT_OPERATIONS + 5):
            for operation in ("long", f"short-{number}"):
                decision = decide(ledger, Policy(), nodes(), ask("alfa", operation, max_failed=1))
                ledger = release(decision.ledger, "alfa")
            if number == 0:
                ledger = fail(ledger, node("foxtrot"), "long", "drain timed out")

        assert ledger.failures("long") == {"foxtrot": "drain timed out"}


class TestBounds:
    LONG = "x" * 1400

    def test_two_hundred_and_fifty_failures_with_long_reasons_stay_small(self):
        ledger = ledger_of()
        for number in range(250):
            ledger = fail(ledger, node(f"node-{number}"), "kernel", f"{number} {self.LONG}")
        size = len(ledger.to_data()["operations"])

        assert size < 60_000
        assert ledger.failed("kernel") == len(ledger.failures("kernel")) == 250
        assert decide(ledger, Policy(), nodes(), ask("alfa", max_failed=249)).outcome == REFUSED
        assert decide(ledger, Policy(), nodes(), ask("alfa", max_failed=250)).outcome == GRANTED

    def test_failures_past_the_limit_count_without_their_names(self):
        ledger = ledger_of()
        for number in range(KEPT_FAILURES + 5):
            ledger = fail(ledger, node(f"node-{number}"), "kernel", self.LONG)

        assert len(ledger.failures("kernel")) == KEPT_FAILURES
        assert ledger.failed("kernel") == KEPT_FAILURES + 5
        assert Ledger.from_data(ledger.to_data()) == ledger
        refused = decide(ledger, Policy(), nodes(), ask("alfa", max_failed=KEPT_FAILURES + 4))
        assert refused.outcome == REFUSED
        assert f"and {KEPT_FAILURES - 5} more" in refused.why
        assert len(refused.why) < 4000

    def test_an_operation_that_is_over_keeps_the_number_and_some_names(self):
        ledger = ledger_of()
        for number in range(100):
            ledger = fail(ledger, node(f"node-{number}"), "kernel", self.LONG)
        ledger = fail(ledger, node("alfa"), "firmware", self.LONG)

        assert (len(ledger.failures("kernel")), ledger.failed("kernel")) == (KEPT_AFTERWARDS, 100)

    def test_a_failed_slot_has_a_short_reason(self):
        ledger = fail(ledger_of(slot("alfa")), node("alfa", ready=False), "kernel", self.LONG)

        assert len(ledger.slots["alfa"].reason) < 300

    def test_what_fills_a_large_budget_is_not_all_named(self):
        many = [slot(f"node-{number}", run="dead") for number in range(500)]
        group = [node(f"node-{number}") for number in range(501)]
        decision = decide(
            ledger_of(*many, policy=Policy(max_unavailable="500")),
            Policy(max_unavailable="500"),
            group,
            ask("node-500", live=frozenset({"run-1"})),
        )

        assert decision.outcome == REFUSED
        assert "and 490 more" in decision.why
        assert len(decision.fills) == 500


class TestFieldsOfANewerVersion:
    def test_are_refused_with_the_version_to_use(self):
        slots = json.dumps({"alfa": {**vars(slot("alfa")), "pledge": 2}})
        newer = {**ledger_of().to_data(), "slots": slots, "version": '"7.0.0"'}

        with pytest.raises(
            Refused, match=r"ConfigMap group.web.* slots.pledge, .*Use version 7.0.0 or later"
        ) as refused:
            store.ledger_of({"metadata": {"name": "group.web"}, "data": newer})

        assert "delete" not in refused.value.message

    def test_of_the_policy_too(self):
        data = ledger_of().to_data()
        data["policy"] = data["policy"].replace("{", '{"max_rooms": 1, ', 1)

        with pytest.raises(UnknownFields, match=r"policy.max_rooms.*Use the version that wrote it"):
            Ledger.from_data(data)

    def test_a_ledger_says_by_which_version_it_was_written(self):
        assert json.loads(Ledger().to_data()["version"]) == VERSION


class TestClaim:
    """A run was silent between its slot and its claim; another has read the Nodes before the claim."""

    BEFORE = (node("alfa", marked=False), node("bravo", marked=False))

    @pytest.mark.parametrize("claims", [0, 1, 2])
    def test_each_claim_changes_the_ledger(self, claims):
        ledger = ledger_of(slot("alfa", claims=claims))
        decided = decide(ledger, Policy(), self.BEFORE, ask("bravo", run="run-2", live=frozenset({"run-2"})))

        assert set(decided.ledger.slots) == {"bravo"}, "by what was read before the claim"
        assert claim(ledger, "alfa", "run-1", "kernel").to_data() != ledger.to_data()

    @pytest.mark.parametrize(
        "other", [slot("alfa", run="run-2"), slot("alfa", "firmware"), slot("alfa", state=FAILED), slot("bravo")]
    )
    def test_a_slot_that_is_not_its_own_stays_as_it_is(self, other):
        ledger = ledger_of(other)

        assert claim(ledger, "alfa", "run-1", "kernel") is ledger

    def test_claims_count_on_when_it_passes_on(self):
        claimed = claim(ledger_of(slot("alfa")), "alfa", "run-1", "kernel")
        passed = decide(claimed, Policy(), nodes(), ask("alfa", run="run-2", live=frozenset({"run-2"})))

        assert passed.outcome == GRANTED
        assert (passed.ledger.slots["alfa"].run, passed.ledger.slots["alfa"].claims) == ("run-2", 1)
        assert claim(passed.ledger, "alfa", "run-2", "kernel").slots["alfa"].claims == 2


class TestAtAGlance:
    @pytest.mark.parametrize(
        ("budget", "slots", "full"),
        [
            ("1", [slot("alfa")], True),
            ("2", [slot("alfa")], False),
            ("1", [slot("alfa", state=FAILED)], False),
            ("1", [slot("bravo")], False),
            ("0", [slot("alfa")], False),
            ("50%", [slot("alfa"), slot("charlie")], False),
        ],
    )
    def test_full_by_slots_alone(self, budget, slots, full):
        policy = Policy(max_unavailable=budget)

        decision = at_a_glance(ledger_of(*slots, policy=policy), policy, ask("bravo"))

        assert (decision is not None) is full
        if decision:
            assert decision == decide(ledger_of(*slots, policy=policy), policy, nodes(), ask("bravo"))

    @pytest.mark.parametrize(
        ("taken", "waits"),
        [
            ({"run": "run-2"}, True),
            ({"run": "run-2", "state": FAILED}, False),
            ({"run": "run-2", "operation": "firmware"}, False),
            ({"run": "dead"}, False),
            ({"run": ""}, False),
            ({}, False),
        ],
    )
    def test_under_the_slot_of_another_run(self, taken, waits):
        """No Node is read while that run works."""
        policy, request = Policy(max_unavailable="3"), ask("bravo", live={"run-1", "run-2"})
        ledger = ledger_of(slot("bravo", **taken), policy=policy)

        decision = at_a_glance(ledger, policy, request)

        assert (decision is not None) is waits
        if decision:
            assert decision == decide(ledger, policy, nodes(), request)

    def test_who_may_get_none_does_not_wait(self):
        taken = ledger_of(slot("alfa"), operations=[{"id": "kernel", "failures": {"charlie": "no boot"}}])

        assert at_a_glance(taken, Policy(), ask("bravo")) is None
        assert at_a_glance(taken, Policy(max_unavailable="2"), ask("bravo", max_failed=1)) is None
        assert at_a_glance(taken, Policy(), ask("bravo", max_failed=1)) is not None

    def test_not_if_a_run_is_dead(self):
        policy = Policy(max_unavailable="2")
        taken = ledger_of(slot("alfa"), slot("charlie", run="run-2"), policy=policy)

        assert at_a_glance(taken, policy, ask("bravo", live={"run-1", "run-2"})) is not None
        assert at_a_glance(taken, policy, ask("bravo", live={"run-2"})) is None


def test_a_member_is_read_from_a_node():
    read = member(
        {
            "metadata": {"name": "alfa", "labels": {"zone": "a"}},
            "spec": {"unschedulable": True},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}], "nodeInfo": {"bootID": "one"}},
        },
        "zone",
    )

    assert read == Member("alfa", ready=False, unschedulable=True, boot_id="one", domain="a", marked=False)
    assert member({"metadata": {"name": "bravo"}}, "zone") == Member(
        "bravo", ready=False, unschedulable=False, marked=False
    )


@pytest.mark.parametrize(
    ("annotation", "marked"), [(CLAIM, True), (CORDON, True), (OPERATION, False), (KEEP_CORDONED, False)]
)
def test_our_claim_or_our_cordon_marks_a_member(annotation, marked):
    assert member({"metadata": {"name": "alfa", "annotations": {annotation: "{}"}}}, "").marked is marked


POLICIES = st.one_of(
    st.builds(Policy, max_unavailable=st.sampled_from(["1", "2", "3", "50%", "34%", "0"])),
    st.builds(
        Policy,
        max_unavailable=st.sampled_from(["2", "4", "100%"]),
        topology_key=st.just("zone"),
        max_unavailable_per_domain=st.none() | st.integers(1, 2),
        max_domains=st.none() | st.integers(1, 2),
    ),
)
ANY_NODE, ANY_OPERATION = st.sampled_from(NODES), st.sampled_from(OPERATIONS)


def allowed(policy, total):
    """The budget in other words than the code's."""
    if not policy.max_unavailable.endswith("%"):
        return int(policy.max_unavailable)
    percent = int(policy.max_unavailable[:-1])
    return 0 if percent == 0 else max(1, sum(1 for number in range(1, total + 1) if number * 100 <= percent * total))


class Group(RuleBasedStateMachine):
    """Several operations and runs over one group, whose nodes fail, are cordoned by others, leave and come back."""

    @initialize(policy=POLICIES, zones=st.lists(st.sampled_from(["a", "b", ""]), min_size=6, max_size=6))
    def begin(self, policy, zones):
        self.ledger = Ledger()
        self.policy = policy
        self.zones = dict(zip(NODES, zones))
        self.there = {name: node(name) for name in NODES}
        self.failures = {operation: {} for operation in OPERATIONS}
        self.boots = 1
        self.clock = 0

    def group(self):
        return [
            replace(item, domain=self.zones[item.name] if self.policy.topology_key else "")
            for item in self.there.values()
        ]

    def domain(self, name):
        return self.zones[name] if self.policy.topology_key else ""

    def healed(self):
        """Slots that the next run has to clear."""
        return {
            name
            for name, item in self.ledger.slots.items()
            if item.state == FAILED
            and name in self.there
            and self.there[name].ready
            and self.there[name].boot_id != item.boot_id
        }

    def fits(self, names, new):
        """Whether these may be unavailable at the same time, as far as the new one's domain is concerned."""
        domains = [self.domain(name) for name in names]
        policy = self.policy
        if len(names) > allowed(policy, len(self.there)):
            return False
        if policy.max_domains is not None and len(set(domains)) > policy.max_domains:
            return False
        near = domains.count(self.domain(new))
        return policy.max_unavailable_per_domain is None or near <= policy.max_unavailable_per_domain

    # -- what happens to the group ------------------------------------------------------------------------------------

    @rule(name=ANY_NODE, ready=st.booleans())
    def readiness(self, name, ready):
        if name in self.there:
            self.there[name] = replace(self.there[name], ready=ready)

    @rule(name=ANY_NODE, unschedulable=st.booleans())
    def cordon(self, name, unschedulable):
        if name in self.there:
            self.there[name] = replace(self.there[name], unschedulable=unschedulable)

    @rule(name=ANY_NODE)
    def boot(self, name):
        if name in self.there:
            self.boots += 1
            self.there[name] = replace(self.there[name], ready=True, boot_id=f"{name}-{self.boots}")

    @rule(name=ANY_NODE)
    def leave(self, name):
        self.there.pop(name, None)

    @rule(name=ANY_NODE)
    def join(self, name):
        self.boots += 1
        self.there.setdefault(name, node(name, boot_id=f"{name}-{self.boots}"))

    # -- what operations do -------------------------------------------------------------------------------------------

    @rule(
        name=ANY_NODE,
        operation=ANY_OPERATION,
        run=st.sampled_from(RUNS),
        max_failed=st.integers(0, 2),
        count_others=st.sampled_from([True, True, False]),
        live=st.none() | st.frozensets(st.sampled_from(RUNS)),
        restart=st.booleans(),
    )
    def ask_for_a_slot(self, name, operation, run, max_failed, count_others, live, restart):  # noqa: PLR0917
        before, healed = self.ledger, self.healed()
        kept = {key: item for key, item in before.slots.items() if key not in healed}
        self.clock += 1
        request = Request(name, operation, run, f"t{self.clock}", max_failed, count_others, live, restart=restart)
        decision = decide(before, self.policy, self.group(), request)
        mine = kept.get(name)
        busy = set(kept)
        if count_others:
            busy |= {item.name for item in self.there.values() if not item.ready or item.unschedulable}
        busy.discard(name)

        may = (
            name in self.there
            and (not kept or before.policy == self.policy or (mine is not None and mine.operation == operation))
            and len(self.failures[operation]) <= max_failed
            and (self.may_go_on(mine, request) if mine else self.fits([*busy, name], name))
        )
        assert (decision.outcome == GRANTED) == may, decision
        if decision.outcome == GRANTED:
            self.granted(decision, kept, mine, request)
        else:
            self.not_granted(decision, kept, busy, request)

    @staticmethod
    def may_go_on(mine, request):
        """Another run does where the slot's own is dead; of another operation, only if it starts over."""
        alive = mine.state == ACTIVE and mine.run in (request.live or ())
        dead = mine.state == ACTIVE and request.live is not None and mine.run not in request.live
        if mine.operation != request.operation:
            return request.restart and dead
        return mine.operation == request.operation and (mine.run == request.run or not alive)

    def granted(self, decision, kept, mine, request):
        given = decision.ledger.slots[request.node]
        assert decision.why == ""
        # A slot that is only taken over keeps the policy under which it was granted.
        assert decision.ledger.policy == (self.ledger.policy if kept and mine else self.policy)
        assert {**kept, request.node: given} == decision.ledger.slots
        assert (given.operation, given.run, given.state) == (request.operation, request.run, ACTIVE)
        if mine:
            assert (given.since, given.boot_id) == (mine.since, mine.boot_id)
        else:
            assert (given.since, given.boot_id) == (request.now, self.there[request.node].boot_id)
            taken = list(decision.ledger.slots)
            assert all(self.fits(taken, name) for name in taken), "slots alone fit, whichever other nodes are counted"
        self.ledger = decision.ledger

    def not_granted(self, decision, kept, busy, request):
        assert decision.outcome in (WAIT, REFUSED)
        assert decision.why
        mine = kept.get(request.node)
        if kept and self.ledger.policy != self.policy and not (mine and mine.operation == request.operation):
            assert decision.outcome == REFUSED
            assert all(f"{name} " in decision.why for name in kept)
            return
        failed = len(self.failures[request.operation]) > request.max_failed
        if (
            request.node in self.there
            and mine
            and not (self.may_go_on(mine, request) or (failed and mine.operation == request.operation))
        ):
            culprits = {request.node}
        elif "unavailable:" in decision.why or "unavailable nodes:" in decision.why:
            culprits = {name for name in NODES if f"{name} " in decision.why.split("unavailable", 1)[1]}
            assert culprits <= busy
            assert not self.fits([*culprits, request.node], request.node), "those named are enough to be in the way"
            if len(busy) + 1 > allowed(self.policy, len(self.there)):
                assert culprits == busy, "everything that fills the budget is named"
        else:
            culprits = set()
        worked_on = any(
            name in kept and kept[name].state == ACTIVE and (request.live is None or kept[name].run in request.live)
            for name in culprits
        )
        assert (decision.outcome == WAIT) == worked_on, "what nobody works on is not waited for"
        if request.node in self.there and at_a_glance(self.ledger, self.policy, request):
            assert decision.outcome == WAIT, "the short cut says wait only where it is true"

    @rule(name=ANY_NODE, operation=ANY_OPERATION)
    def give_back(self, name, operation):
        if name in self.ledger.slots and self.ledger.slots[name].operation == operation:
            before = dict(self.ledger.slots)
            self.ledger = release(self.ledger, name)
            del before[name]
            assert self.ledger.slots == before

    @rule(name=ANY_NODE, operation=ANY_OPERATION, reason=st.sampled_from(["no boot", "drain timed out"]))
    def fail(self, name, operation, reason):
        before = dict(self.ledger.slots)
        now = self.there.get(name) or node(name, ready=False, boot_id="")
        self.ledger = fail(self.ledger, now, operation, reason)
        self.failures[operation][name] = reason
        mine = before.get(name)
        after = self.ledger.slots.get(name)
        if mine is None or mine.operation != operation:
            assert after == mine
        elif not now.ready:
            assert after == replace(mine, state=FAILED, reason=reason)
        elif mine.state == ACTIVE or now.boot_id != mine.boot_id:
            assert after is None
        else:
            assert after == replace(mine, reason=reason)
        before.pop(name, None)
        assert {key: item for key, item in self.ledger.slots.items() if key != name} == before

    @precondition(lambda self: any(self.failures.values()))
    @rule(operation=ANY_OPERATION)
    def start_afresh(self, operation):
        """A new operation with its own record, in the place of one that has nothing left."""
        if not any(item.operation == operation for item in self.ledger.slots.values()):
            kept = tuple(item for item in self.ledger.operations if item["id"] != operation)
            self.ledger = replace(self.ledger, operations=kept)
            self.failures[operation] = {}

    @rule(policy=POLICIES)
    def want_another_policy(self, policy):
        self.policy = policy

    @precondition(lambda self: self.ledger.policy is not None)
    @rule()
    def want_the_group_s_policy(self):
        self.policy = self.ledger.policy

    # -- what holds at every step -------------------------------------------------------------------------------------

    @invariant()
    def storing_it_loses_nothing(self):
        assert Ledger.from_data(self.ledger.to_data()) == self.ledger

    @invariant()
    def every_slot_is_its_node_s_own(self):
        assert all(name == item.node for name, item in self.ledger.slots.items())

    @invariant()
    def failures_are_remembered(self):
        assert all(self.ledger.failures(operation) == known for operation, known in self.failures.items())


TestGroup = Group.TestCase
TestGroup.settings = settings(stateful_step_count=60)


class TestRows:
    """What the table of the Nodes leaves out is read where a rule needs it."""

    @staticmethod
    def row(node):
        """The row as the API server makes it; source: printNode in pkg/printers/internalversion of Kubernetes."""
        conditions = [item for item in node["status"]["conditions"] if item["type"] == "Ready"]
        words = ["Ready" if item["status"] == "True" else "NotReady" for item in conditions] or ["Unknown"]
        if node["spec"].get("unschedulable"):
            words.append("SchedulingDisabled")
        return {"Name": node["metadata"]["name"], "Status": ",".join(words)}

    @given(data=st.data())
    def test_rows_and_nodes_decide_alike(self, data):
        draw, names, runs = data.draw, ["a", "b", "c", "d", "e"], ["me", "live", "dead", ""]
        nodes = {}
        for name in names:
            ready, marks = draw(st.sampled_from(["True", "False", "Unknown", None])), draw(st.booleans())
            nodes[name] = {
                "metadata": {
                    "name": name,
                    "labels": {"zone": draw(st.sampled_from(["x", "y"]))},
                    "annotations": {CLAIM: "{}"} if marks else {},
                },
                "spec": {"unschedulable": True} if draw(st.booleans()) else {},
                "status": {
                    "conditions": [{"type": "Ready", "status": ready}] if ready else [],
                    "nodeInfo": {"bootID": draw(st.sampled_from(["boot-1", "boot-2"]))},
                },
            }
        slots = {
            name: Slot(
                name,
                draw(st.sampled_from(["kernel", "other"])),
                draw(st.sampled_from(runs)),
                "",
                domain=nodes[name]["metadata"]["labels"]["zone"],
                state=draw(st.sampled_from(["active", "failed"])),
                boot_id="boot-1",
                claims=draw(st.integers(0, 1)),
            )
            for name in draw(st.sets(st.sampled_from(names)))
        }
        policy = Policy(
            max_unavailable=draw(st.sampled_from(["0", "1", "2", "3", "60%"])),
            topology_key=(key := draw(st.sampled_from(["", "zone"]))),
            max_unavailable_per_domain=draw(st.sampled_from([None, 1, 2])) if key else None,
            max_domains=draw(st.sampled_from([None, 1])) if key else None,
        )
        live = draw(st.sampled_from([None, frozenset({"me", "live"})]))
        request = Request("a", "kernel", "me", "now", count_others=draw(st.booleans()), live=live)
        ledger = Ledger(policy, slots)
        known, whole = ledger_rules.seen_in_rows(ledger, policy, map(self.row, nodes.values()), request)
        read = {name: member(nodes[name], key) for name in whole}

        by_rows = decide(ledger, policy, {**known, **read}.values(), request)

        by_nodes = decide(ledger, policy, [member(node, key) for node in nodes.values()], request)
        # pytest would compare the two ledgers line by line, which takes minutes.
        alike = by_rows == by_nodes
        assert alike, (by_rows.outcome, by_rows.why, by_nodes.outcome, by_nodes.why)

    @pytest.mark.parametrize(
        ("slots", "down", "outcome"),
        [
            ({}, ["b"], "refused"),
            ({"c": "failed"}, ["b"], "refused"),
            ({"c": "failed"}, [], "granted"),
            ({"c": "active"}, [], "granted"),
        ],
        ids=["down in its domain", "down, and a slot that is over", "a slot that is over", "the slot of a dead run"],
    )
    def test_what_the_table_leaves_out_is_read(self, slots, down, outcome):
        """Two nodes may be unavailable, but one in a zone; all are in the same one. What c had is over."""
        nodes = {
            name: {
                "metadata": {"name": name, "labels": {"zone": "x"}},
                "spec": {},
                "status": {
                    "conditions": [{"type": "Ready", "status": str(name not in down)}],
                    "nodeInfo": {"bootID": "boot-2"},
                },
            }
            for name in ("a", "b", "c")
        }
        policy = Policy(max_unavailable="2", topology_key="zone", max_unavailable_per_domain=1)
        runs = {"failed": "live", "active": "dead"}
        taken = {
            name: Slot(name, "old", runs[state], "", "x", state, boot_id="boot-1") for name, state in slots.items()
        }
        ledger, request = Ledger(policy, taken), Request("a", "kernel", "me", "now", live=frozenset({"me", "live"}))
        known, whole = ledger_rules.seen_in_rows(ledger, policy, map(self.row, nodes.values()), request)

        found = decide(
            ledger, policy, {**known, **{name: member(nodes[name], "zone") for name in whole}}.values(), request
        )

        assert found.outcome == outcome
        assert found.why == ('1 of 1 allowed in domain "x" are unavailable: b is not Ready' if down else "")

    def test_few_nodes_are_read_whole(self):
        rows = [{"Name": f"n{number}", "Status": "NotReady"} for number in range(100)]
        policy = Policy(max_unavailable="3", topology_key="zone")
        _known, whole = ledger_rules.seen_in_rows(Ledger(policy), policy, rows, Request("n7", "kernel", "", "now"))
        assert whole == {"n7"}

    def test_a_share_is_known_from_the_last_grant(self):
        policy, nodes = Policy(max_unavailable="20%"), [Member(f"n{number}", True, False) for number in range(10)]
        granted = decide(Ledger(), policy, nodes, Request("n1", "kernel", "me", "now")).ledger
        granted = decide(granted, policy, nodes, Request("n2", "kernel", "me", "now")).ledger
        granted = Ledger.from_data(granted.to_data())
        request = Request("n3", "kernel", "me", "now", live=frozenset({"me"}))
        glance = ledger_rules.at_a_glance(granted, policy, request)
        assert (glance.outcome, glance.budget) == ("wait", 2)
        assert ledger_rules.at_a_glance(replace(granted, nodes=0), policy, request) is None
        assert ledger_rules.at_a_glance(ledger_rules.release(granted, "n1"), policy, request) is None
        assert ledger_rules.in_queue(granted, policy).budget == 2
