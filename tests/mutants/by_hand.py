# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutants that are made by hand: for each safety promise, changes that break it, and the test that must fail.

The promises:

1. The slots of a group never exceed its budget.
2. Nothing of this collection switches a held node off.
3. A node that the collection cordoned and that is healthy is uncordoned; one that others cordoned never is.
4. Live pods are removed by the eviction API only, unless the user asks otherwise.
5. A node that does not come back counts against the failure budget.
6. A run that was killed and started again ends where an undisturbed one ends, and reboots no node twice.
7. No out-of-service taint without proof that the node is off, and none left on a recovered node.
8. Annotations, hooks, keys, taints, conditions and labels of others stay as they are.
9. What people enter means what its documentation says, and what they see is so: answers, silences, hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

from mutants.edit import Code, Edit, Task


@dataclass(frozen=True)
class Mutant:
    """One change that breaks a promise."""

    name: str
    promise: int
    breaks: str
    edit: Edit
    # The pytest node id of the test that must fail.
    test: str

    @property
    def on_the_lab(self) -> bool:
        return not self.test.startswith("tests/unit/")


MUTANTS = [
    # -- 1: budget
    Mutant(
        "budget-plus-one",
        1,
        "One node more than the budget gets a slot.",
        Code("_blockers", "len(busy) + 1 > limit", "len(busy) > limit"),
        "tests/unit/budget/test_ledger_rules.py::TestDecide::test_never_over_the_budget",
    ),
    Mutant(
        "budget-share-rounded-up",
        1,
        "A share of the nodes is rounded up.",
        Code("amount", "max(1, total * percent // 100) if percent else 0", "-(-total * percent // 100)"),
        "tests/unit/budget/test_policy_rules.py::TestAmount::test_examples",
    ),
    Mutant(
        "budget-not-ready-counts-as-ready",
        1,
        "A node that the table calls NotReady counts as available.",
        Code("member_of_row", '"Ready" in status', '"Ready" in str(row["Status"])'),
        "tests/unit/budget/test_ledger_rules.py::TestRows::test_rows_and_nodes_decide_alike",
    ),
    Mutant(
        "budget-domains-of-rows",
        1,
        "The domain of an unavailable node is not known, so its domain loses one node more.",
        Code("seen_in_rows", "whole |= busy - slots.keys()", "pass"),
        "tests/unit/budget/test_ledger_rules.py::TestRows::test_what_the_table_leaves_out_is_read",
    ),
    Mutant(
        "budget-policy-replaced",
        1,
        "A request with a larger budget gets it, although slots are taken under the smaller one.",
        Code("decide", "mine is None or mine.operation != request.operation", "False"),
        "tests/unit/budget/test_ledger_rules.py::TestDecide::test_another_policy_while_slots_are_taken",
    ),
    Mutant(
        "budget-ignores-unavailable-nodes",
        1,
        "Nodes that are not Ready, or that others cordoned, do not fill the budget.",
        Code("_unavailable", "request.count_others", "False"),
        "tests/unit/budget/test_ledger_rules.py::TestDecide::test_others_count",
    ),
    Mutant(
        "budget-ledger-overwritten",
        1,
        "A run overwrites the ledger that another run stored meanwhile.",
        Code(
            "store",
            "{**before, 'data': ledger.to_data()}",
            "{**before, 'metadata': {key: value for key, value in before['metadata'].items()"
            " if key != 'resourceVersion'}, 'data': ledger.to_data()}",
        ),
        "tests/integration/test_slots.py::test_one_instant_one_slot",
    ),
    Mutant(
        "budget-forgets-a-cordoned-node",
        1,
        "The slot of a dead run is dropped, although its node is claimed or cordoned.",
        Code(
            "heal",
            "_left_behind(slot, live) and not node.marked and (node.ready or not slot.claims)",
            "_left_behind(slot, live)",
        ),
        "tests/unit/test_model_cases.py::test_a_slot_stays_on_a_node_that_a_killed_run_left_cordoned",
    ),
    Mutant(
        "budget-second-claim-unseen",
        1,
        "A second claim under a slot does not change the ledger, so a run that read the Node before it drops the slot.",
        Code("claim", "slot.claims + 1", "1"),
        "tests/unit/test_model_cases.py::test_a_slot_that_passed_on_stays_under_which_a_node_was_claimed_a_moment_ago",
    ),
    Mutant(
        "budget-slot-given-back-too-early",
        1,
        "A node that a dead run left cordoned has no slot, so one node more than the budget can go down.",
        Code("give_back", "ledger if cordoned else release(ledger, node)", "release(ledger, node)"),
        "tests/unit/budget/test_ledger_rules.py::TestGiveBack::test_of_a_node_that_is_cordoned_still_it_stays",
    ),
    Mutant(
        "budget-node-in-two-groups",
        1,
        "Two groups give one node a slot at the same instant.",
        Code(
            "_SlotRequest.run",
            "(before is None or before.run == (self._params.get('run') or '')) and not self._check_mode",
            "False",
        ),
        "tests/integration/test_slots.py::test_two_groups_race_for_one_node",
    ),
    Mutant(
        "slot-of-a-dead-run-waits-for-the-front",
        4,
        "A dead run's slot passes on only at the front of the queue, where another node waits for it.",
        Code("_SlotRequest._watch", "at_front or self._params['name'] in self._before.slots", "at_front"),
        "tests/integration/test_slots.py::TestWaiting::test_the_slot_of_a_dead_run_does_not_wait_for_the_front",
    ),
    Mutant(
        "quorum-counts-a-member-that-is-not-ready",
        1,
        "A member of etcd counts as left although its pod is not Ready.",
        Code("_why_missing", "not any(pod.ready for pod in pods)", "False"),
        "tests/unit/reboot/test_quorum_rules.py::test_one_of_three_may_not_go_when_another_is_missing",
    ),
    Mutant(
        "reboot-role-takes-no-slot",
        1,
        "The role reboots nodes without a slot.",
        Code("_turn", "not facts.has_slot", "False"),
        "tests/unit/reboot/test_admit.py::test_a_node_has_its_turn",
    ),
    Mutant(
        "reboot-role-gives-back-a-node-that-may-go-down",
        1,
        "A node that a dead run may have told to reboot is given back when the next run fails.",
        Code("may_go_down", "not resumes_reboot(steps)", "True"),
        "tests/unit/reboot/test_failure_rules.py::test_whether_a_node_may_still_go_down",
    ),
    Mutant(
        "two-hosts-of-one-node",
        1,
        "Two hosts that are the same Node share its slot and its claim.",
        Code("_refuse_two_hosts_of_a_node", "len(names) > 1", "False"),
        "tests/unit/reboot/test_plan.py::test_two_hosts_of_one_node_are_refused",
    ),
    # -- 2: holds, the gate, locks, the agent
    Mutant(
        "gate-ignores-leases",
        2,
        "The gate before a power-off does not count Leases.",
        Code("check", "by_lease or by_condition", "by_condition"),
        "tests/integration/test_holds.py::TestGate::test_a_lease_alone_counts",
    ),
    Mutant(
        "gate-ignores-the-condition",
        2,
        "The gate does not count what the node's condition ShutdownInhibited names.",
        Code("check", "by_lease or by_condition", "by_lease"),
        "tests/integration/test_holds.py::TestGate::test_the_condition_alone_counts",
    ),
    Mutant(
        "gate-not-passed-by-metal3",
        2,
        "A held node is switched off by its BareMetalHost.",
        Code(
            "Target.look",
            "last_look.look("
            "self._cluster, self.node, run=run, override_holds=override_holds, boot_id=boot_id, down=down)",
            "last_look.look(self._cluster, self.node, run=run, override_holds=True, boot_id=boot_id, down=down)",
        ),
        "tests/unit/fencing/test_annotation.py::TestGate::test_held",
    ),
    Mutant(
        "hold-of-another-holder-taken",
        2,
        "A holder takes over the Lease of another one.",
        Code("_wanted", "other and other != params['holder']", "False"),
        "tests/integration/test_holds.py::TestForeignLeases::test_are_never_taken_and_never_released",
    ),
    Mutant(
        "agent-confirms-without-a-lock",
        2,
        "The condition names a hold that is on disk but not locked.",
        Code("secured", "facts.locks & {hold.key for hold in facts.stored}", "{hold.key for hold in facts.stored}"),
        "tests/unit/agent/test_agent_plan.py::test_what_is_not_locked_is_not_named",
    ),
    Mutant(
        "agent-confirms-while-pid-1-shuts-down",
        2,
        "The agent confirms a hold on a node that PID 1 already shuts down.",
        Code("Executor._goes_down", "self._shutting_down()", "False"),
        "tests/unit/agent/test_agent_daemon.py::test_a_hold_is_not_confirmed_if_a_shutdown_begins_meanwhile",
    ),
    Mutant(
        "agent-waits-for-a-silent-server",
        2,
        "After a restore of etcd, the agent keeps its watch and sees no new hold.",
        Code("Watcher._follow", "(changed or lasted) and not silent", "changed or lasted"),
        "tests/unit/agent/test_agent_watch.py::test_streams_without_a_line_are_followed_by_a_list",
    ),
    Mutant(
        "agent-drops-the-old-lock-first",
        2,
        "The agent lets a lock go although it could not take another one for a hold that stands.",
        Code("_release", "wanted and not wanted & facts.locks", "False"),
        "tests/unit/agent/test_agent_plan.py::test_an_old_lock_stays_while_the_new_one_can_not_be_taken",
    ),
    Mutant(
        "agent-lets-a-hold-lapse",
        2,
        "A Lease that was not renewed does not hold.",
        Code("hold_of", "holder and acquired", "holder and acquired and str(spec.get('renewTime')) > acquired"),
        "tests/unit/agent/test_agent_rules.py::test_holder_and_time_make_a_hold_and_all_else_is_ignored",
    ),
    Mutant(
        "agent-takes-silence-for-no-holds",
        2,
        "The agent takes an answer that is no list of Leases for an empty list.",
        Code(
            "Watcher._list",
            "metadata = page['metadata']\nversion = str(metadata['resourceVersion'])",
            "metadata = page.get('metadata') or {}\nversion = str(metadata.get('resourceVersion') or 0)",
        ),
        "tests/unit/agent/test_agent_watch.py::test_an_answer_that_is_not_a_list_is_not_taken_for_an_empty_one",
    ),
    Mutant(
        "agent-keeps-no-copy-of-its-locks",
        2,
        "systemd gets no copy of the locks, so they end with the agent's process.",
        Code("Locks.take", "self._supervisor.keep(hold.key, descriptor)\n"),
        "tests/integration/test_agent_gap.py::test_no_gap_while_the_agent_is_killed_restarted_upgraded_and_configured",
    ),
    Mutant(
        "agent-releases-what-is-held",
        2,
        "The agent's release takes the locks of holds away that are on disk.",
        Code("release", "held and not even_held", "False"),
        "tests/unit/agent/test_agent_removal.py::test_the_program_releases_nothing_while_holds_are_on_disk",
    ),
    Mutant(
        "agent-removed-from-a-held-node",
        2,
        "The role removes the agent, and with it the locks, from a node that is held.",
        Task("node_agent", "Refuse to remove the agent of a held node", ("ansible.builtin.assert", "that"), "true"),
        "tests/integration/test_node_agent_role.py::test_not_removed_while_the_node_is_held",
    ),
    Mutant(
        "agent-runs-with-an-old-configuration",
        2,
        "The role restores the agent's configuration, and the agent continues without enforcement.",
        Task(
            "node_agent",
            "Run the agent, now and after each boot",
            ("ansible.builtin.systemd_service", "state"),
            "started",
        ),
        "tests/integration/test_node_agent_role.py::test_a_configuration_that_was_changed_by_hand_is_restored_and_used",
    ),
    Mutant(
        "lock-old-one-goes-first",
        2,
        "The module lets the old lock go before it takes the new one.",
        Code(
            "_follow",
            "if plan.start and lock: _start(bus, plan.start, lock)\nfor unit in plan.release: _stop(bus, unit)",
            "for unit in plan.release: _stop(bus, unit)\nif plan.start and lock: _start(bus, plan.start, lock)",
        ),
        "tests/unit/logind/test_lock.py::TestPresent::test_the_new_one_is_listed_before_the_old_one_goes",
    ),
    Mutant(
        "alerts-nonsense-is-no-alerts",
        2,
        "An answer of Prometheus without a list of alerts counts as one with an empty list.",
        Code(
            "_list",
            "if not isinstance(found, list): raise InvalidAnswer(f'its answer has no list of {name}')",
            "if not isinstance(found, list): return []",
        ),
        "tests/unit/reboot/test_blocker_rules.py::TestAnswer::test_only_an_empty_list_of_alerts_is_no_alerts",
    ),
    Mutant(
        "reboot-role-ignores-a-late-hold",
        2,
        "The role ignores a hold that comes after the drain.",
        Code("reboot_gate", "params['override_holds']", "True"),
        "tests/integration/test_rolling_reboot.py::test_a_hold_that_comes_late_puts_the_node_back[before_reboot]",
    ),
    Mutant(
        "metal3-ignores-a-late-hold",
        2,
        "A hold that the node confirms after metal3 was asked is not seen.",
        Code("_Annotation._wait_until_rebooted", "not self._params['override_holds']", "False"),
        "tests/unit/fencing/test_annotation.py::TestOnce::test_a_hold_after_the_request",
    ),
    Mutant(
        "reboot-command-ignores-the-agent-s-lock",
        2,
        "The reboot command does not look at the node agent's lock, which does not stop root before systemd 257.",
        Code("ActionModule._holds_count", "not self._params['override_holds']", "False"),
        "tests/unit/test_reboot_action.py::test_the_act_respects_holds_unless_they_are_overridden",
    ),
    Mutant(
        "hold-of-another-maintainer-ignored",
        2,
        "A node that another writer maintains is started.",
        Code("others_words", 'item["type"] in _EXCLUSIVE and not item["ours"]', "False"),
        "tests/unit/budget/test_lifecycle_rules.py::TestOthers::test_says_who_maintains_a_node",
    ),
    Mutant(
        "provider-id-of-another-host",
        2,
        "A node names the host of another node, and that one is rebooted although it is held.",
        Code("host_of", "by_provider and not by_machine", "False"),
        "tests/unit/fencing/test_find_host.py::test_a_provider_id_that_names_the_host_of_another_node_is_refused",
    ),
    # -- 3: cordons
    Mutant(
        "cleanup-uncordons-another-run-s-node",
        3,
        "A run that lost its node during its cleanup takes the cordon and the record of the new owner away.",
        Code("require_claim", "claimed or claim_of(node) is not None", "claimed"),
        "tests/unit/reboot/test_finish.py::test_a_run_that_loses_its_node_in_its_cleanup_leaves_it_to_the_new_owner",
    ),
    Mutant(
        "cordon-before-not-recorded",
        3,
        "Nothing records that the node was cordoned before.",
        Code(
            "_record",
            "node_rules.unschedulable(node) and bool(record is None or record.get('unschedulable_before'))",
            "False",
        ),
        "tests/unit/drain/test_cordon.py::test_a_node_that_others_had_cordoned_stays_cordoned",
    ),
    Mutant(
        "cordon-of-others-undone",
        3,
        "A cordon that this collection did not make is undone.",
        Code(
            "give_back.attempt",
            "if record is None or record.get('owner') != owner:\n    return node, node",
            "if record is not None and record.get('owner') != owner:\n    return node, node\nrecord = record or {}",
        ),
        "tests/unit/drain/test_cordon.py::test_only_our_cordon_is_undone_whatever_others_do",
    ),
    Mutant(
        "doctor-undoes-cordons-of-others",
        3,
        "The doctor takes the cordon of another owner for one of a dead run.",
        Code("_cordon", "not ours", "False"),
        "tests/unit/doctor/test_rules.py::test_only_its_owner_undoes_a_cordon",
    ),
    Mutant(
        "reboot-role-leaves-a-healthy-node-cordoned",
        3,
        "A node whose drain failed stays cordoned although it is healthy.",
        Code("_Failed.run", "found['uncordon'] and self._put_back()", "False"),
        "tests/unit/reboot/test_finish.py::test_a_healthy_node_is_given_back_after_a_failure",
    ),
    Mutant(
        "doctor-uncordons-a-failed-over-node",
        3,
        "The doctor uncordons a node whose machine a failover may still switch off.",
        Code("_left_alone", "_is_failed_over(node)", "False"),
        "tests/unit/doctor/test_rules.py::test_a_failed_over_node_is_left_to_its_recovery",
    ),
    # -- 4: drain
    Mutant(
        "drain-deletes-pods",
        4,
        "Pods are deleted, past the eviction API.",
        Code("_DrainRun._send", "self._params['disable_eviction']", "True"),
        "tests/integration/test_drain.py::TestHow::test_needs_no_right_to_delete",
    ),
    Mutant(
        "drain-evicts-without-the-uid",
        4,
        "The next pod of the same name is evicted in place of the last one.",
        Code("_DrainRun._send", "{'preconditions': {'uid': pod.uid}}", "{}"),
        "tests/integration/test_drain.py::TestIdentity"
        "::test_the_next_pod_of_a_name_is_not_evicted_in_the_last_one_s_place",
    ),
    Mutant(
        "drain-evicts-daemonset-pods",
        4,
        "Pods of DaemonSets are evicted.",
        Code("Drain.saw", "stays(pod)", "''"),
        "tests/unit/drain/test_state_rules.py::TestIdentity::test_a_left_pod_stays_left_when_it_finishes",
    ),
    Mutant(
        "drain-evicts-pods-without-an-owner",
        4,
        "Pods that nothing makes again are evicted without force.",
        Code("Drain.saw", "whys and not pod.terminating", "len(whys) > 1 and not pod.terminating"),
        "tests/unit/drain/test_state_rules.py::TestNever::test_a_pod_that_comes_and_is_forbidden_is_not_evicted",
    ),
    Mutant(
        "drain-force-includes-emptydir",
        4,
        "The option force also allows the loss of emptyDir volumes.",
        Code(
            "forbidden",
            "pod.empty_dir and not options.delete_emptydir",
            "pod.empty_dir and not options.delete_emptydir and not options.force",
        ),
        "tests/unit/drain/test_rules.py::TestPlan::test_each_check_can_be_accepted_alone",
    ),
    Mutant(
        "drain-deletes-before-its-time",
        4,
        "A pod whose eviction a budget refuses is deleted at once.",
        Code("Drain._deletion_at", "self.started + self.delete_after", "self.started"),
        "tests/unit/drain/test_state_rules.py::TestDeletion::test_it_is_deleted_after_its_time",
    ),
    Mutant(
        "drain-deletes-without-a-budget",
        4,
        "A pod is deleted although no budget refused its eviction.",
        Code(
            "Drain._deletion_at", "entry.asked and entry.for_budget and entry.not_before < float('inf')", "entry.asked"
        ),
        "tests/unit/drain/test_state_rules.py::TestDeletion::test_a_refusal_for_another_reason_does_not_count",
    ),
    Mutant(
        "drain-deletes-pods-that-are-not-selected",
        4,
        "Each pod may be deleted, not only those of delete_selector.",
        Code("Drain._is_deletable", "entry.pod.uid in self.deletable", "bool(self.deletable)"),
        "tests/unit/drain/test_state_rules.py::TestDeletion::test_another_pod_is_not",
    ),
    Mutant(
        "drain-deletes-what-a-webhook-keeps",
        4,
        "A pod that a webhook refuses to evict is deleted after a while, as if a budget refused it.",
        Code("_refusal", "trouble or _BY_BUDGET in causes", "trouble or error.status == 429"),
        "tests/unit/drain/test_send.py::test_a_pod_that_a_webhook_keeps_is_not_deleted",
    ),
    # -- 5: the failure budget
    Mutant(
        "failures-plus-one",
        5,
        "One node more than max_failed may fail before the others are stopped.",
        Code(
            "decide",
            "ledger.failed(request.operation) > request.max_failed",
            "ledger.failed(request.operation) > request.max_failed + 1",
        ),
        "tests/unit/budget/test_ledger_rules.py::TestDecide::test_past_max_failed_nobody_gets_a_slot",
    ),
    Mutant(
        "failed-node-gives-its-slot-back",
        5,
        "The slot of a node that did not come back goes to the next one.",
        Code("fail", "node.ready and slot.state == ACTIVE", "slot.state == ACTIVE"),
        "tests/unit/budget/test_ledger_rules.py::TestFail::test_an_unhealthy_node_keeps_it_as_failed",
    ),
    Mutant(
        "failed-node-forgotten-by-the-next-run",
        5,
        "The next run does not count the node that has not come back.",
        Code("_still_failed", "name in kept or name not in nodes", "name not in nodes"),
        "tests/unit/budget/test_operation_rules.py::TestBegin::test_a_failure_counts_on_while_its_slot_stands",
    ),
    Mutant(
        "doctor-uncordons-before-the-check",
        3,
        "The doctor uncordons a node that a dead run has rebooted and not checked.",
        Code("_left_alone", "(unchecked(record) and not closed)", "False"),
        "tests/unit/doctor/test_rules.py::test_a_node_whose_reboot_a_dead_run_sent_is_left_until_a_person_releases_it",
    ),
    Mutant(
        "doctor-gives-back-a-node-that-may-go-down",
        5,
        "The doctor gives back the slot of a node whose reboot may still come.",
        Code("_left_alone", "_is_asked_to_reboot(node, record)", "False"),
        "tests/unit/doctor/test_rules.py::test_a_node_whose_reboot_a_dead_run_sent_is_left_until_a_person_releases_it",
    ),
    Mutant(
        "doctor-clears-a-node-that-is-down",
        5,
        "The doctor gives back the slot of a node that is down.",
        Code("_left_alone", "not node_rules.ready(node)", "False"),
        "tests/unit/doctor/test_rules.py::test_a_node_that_is_down_stays_as_it_is",
    ),
    Mutant(
        "canary-that-is-not-ready-passes",
        5,
        "A canary that goes not Ready during the soak lets the others be rebooted.",
        Code("_trouble", "not canary.ready", "False"),
        "tests/unit/reboot/test_canary_rules.py::TestCheck::test_one_that_is_not_ready_since",
    ),
    Mutant(
        "reboot-role-does-not-count-failures",
        5,
        "A failed node does not count, so the next one begins.",
        Code("_Failed._count", "'failed'", "'absent'"),
        "tests/unit/reboot/test_finish.py::test_a_healthy_node_is_given_back_after_a_failure",
    ),
    Mutant(
        "reboot-role-loses-an-unreachable-node",
        5,
        "An unreachable node drops out of the play and counts as no failure.",
        Code("ActionModule._needed", "AnsibleConnectionFailure", "KeyError"),
        "tests/integration/test_rolling_reboot.py::test_unreachable_hosts_are_failures_and_the_others_go_on",
    ),
    Mutant(
        "back-without-its-daemonsets",
        5,
        "The next node begins while a DaemonSet that served before the drain has no Ready pod on the node.",
        Code("daemonsets_before", "known.items()", "()"),
        "tests/integration/test_node_ready.py::TestDaemonSetPods"
        "::test_that_were_not_ready_before_the_drain_are_only_named",
    ),
    Mutant(
        "ready-as-before-the-reboot",
        5,
        "The next node begins while the status of a DaemonSet pod is still the one from before the reboot.",
        Code("daemonsets_before", "str(container) if rebooted else ''", "''"),
        "tests/integration/test_node_ready.py::TestDaemonSetPods"
        "::test_whose_status_is_from_before_the_reboot_are_waited_for",
    ),
    Mutant(
        "tenant-s-daemonset-fails-each-node",
        5,
        "A DaemonSet that was broken before the drain counts as a failure of each node, and stops the fleet.",
        Code("node_ready", "daemonsets_before(node, params.get('operation') or '')", "None"),
        "tests/integration/test_node_ready.py::TestDaemonSetPods"
        "::test_that_were_not_ready_before_the_drain_are_only_named",
    ),
    Mutant(
        "failed-node-loses-its-slot-to-another-run",
        5,
        "The slot of a failed node is taken over and returned, so it no longer fills the budget.",
        Code("Facts.left_behind", "node.failed", "False"),
        "tests/unit/reboot/test_journey_rules.py::test_the_next_step",
    ),
    Mutant(
        "slot-of-a-deleted-node-stays",
        5,
        "The other nodes wait for the slot of a Node that was deleted while a run worked on it.",
        Code("judge", 'node is None or (state == LOST and not node.get("claim"))', "False"),
        "tests/unit/reboot/test_finish.py::test_the_slot_of_a_deleted_node_is_given_back",
    ),
    Mutant(
        "reboot-without-a-new-boot",
        5,
        "A node that shows another boot time, but no new boot ID, counts as rebooted.",
        Code("ActionModule.check_boot_time", 'now in ("", self._boot_id)', "False"),
        "tests/unit/test_reboot_action.py::test_another_boot_time_without_another_boot_id_is_no_reboot",
    ),
    # -- 6: claims, operations, runs that die
    Mutant(
        "reboot-repeats-what-a-dead-run-requested",
        6,
        "A run that resumes reboots a node a second time if the requested reboot came after the run got its turn.",
        Code("boot_to_end", "reboot_began(record, operation)", "False"),
        "tests/unit/test_reboot_action.py::TestResumed::test_a_node_that_has_rebooted_is_not_rebooted_again",
    ),
    Mutant(
        "claim-of-a-live-run-passes",
        6,
        "A run takes the node of another run that is alive.",
        Code(
            "may_take",
            "present.run not in live and (restart or present.operation == wanted.operation)",
            "restart or present.operation == wanted.operation",
        ),
        "tests/unit/budget/test_claim_rules.py::test_only_a_dead_runs_claim_passes_and_to_its_own_operation",
    ),
    Mutant(
        "claim-lost-and-ignored",
        6,
        "A run that was paused for too long continues with a node that another run has taken over.",
        Code("check", "run and (present is None or present.run != run)", "run and present is None"),
        "tests/unit/budget/test_claim_rules.py::test_a_run_that_lost_its_claim_stops",
    ),
    Mutant(
        "operation-starts-beside-a-killed-run",
        6,
        "The same command, started after a crash, begins a new operation and reboots nodes twice.",
        Code("_to_join", "entry.get('runs') or left", "left"),
        "tests/unit/budget/test_operation_rules.py::TestBegin::test_one_that_is_under_way_is_joined",
    ),
    Mutant(
        "operation-keeps-slots-of-a-dead-run",
        6,
        "The slot of a killed run does not pass to the next run.",
        Code("_passing", "slot.run not in live", "slot.run in live"),
        "tests/unit/budget/test_operation_rules.py::TestBegin::test_slots_of_a_dead_run_pass_for_the_nodes_of_this_one",
    ),
    Mutant(
        "worker-outlives-its-controller",
        6,
        "A worker whose controller was killed before its task began works on.",
        Code("controller", "maker.pid if maker and maker.pid else os.getppid()", "os.getppid()"),
        "tests/unit/test_lease_renewer.py::test_a_worker_whose_controller_ended_before_its_task_started",
    ),
    Mutant(
        "doctor-clears-what-a-live-run-has",
        6,
        "The doctor takes every run for dead, and clears its claim, slot and cordon.",
        Code("Snapshot.alive", "run in self.runs and self.runs[run].alive(self.now)", "False"),
        "tests/unit/doctor/test_rules.py::test_nothing_of_a_live_run_may_go",
    ),
    Mutant(
        "guard-takes-a-machine-from-a-live-run",
        6,
        "Two runs run the user's tasks on one Machine at once.",
        Code(
            "may_take",
            "claimed_by(machine, guard.hook) in live",
            "False",
        ),
        "tests/unit/guard/test_rules.py::TestWhoWorks::test_a_live_run_keeps_it",
    ),
    Mutant(
        "guard-repeats-tasks-that-are-done",
        6,
        "A run that resumes runs the user's tasks again.",
        Code("begin", "known.get('done', {})", "{}"),
        "tests/unit/guard/test_rules.py::TestRecord::test_done_stays_for_the_next_run_and_the_next_point",
    ),
    Mutant(
        "guard-records-files-by-their-path",
        6,
        "The same playbook in another checkout runs the user's tasks again.",
        Code("_name", "posixpath.basename(path) if path.startswith('/') else path", "path"),
        "tests/unit/guard/test_begin_rules.py::test_a_file_has_the_same_name_in_each_checkout",
    ),
    Mutant(
        "guard-forgets-a-silent-node",
        6,
        "The guard runs the user's tasks and drains although the Node fell silent meanwhile.",
        Code("_silent", "work.state != UNREACHABLE", "True"),
        "tests/unit/guard/test_journey_rules.py::TestCourse::test_one_that_falls_silent_later_is_fenced",
    ),
    Mutant(
        "guard-looks-before-the-first-file-only",
        6,
        "The guard runs a later file of the user's tasks although the Node fell silent during an earlier one.",
        Code(
            "Work.file_is_done",
            "replace(self, done=done, asked='', file='', at='', begun='')",
            "replace(self, done=done, asked='', file='', at='')",
        ),
        "tests/unit/guard/test_journey_rules.py::TestFiles::test_the_node_is_looked_at_before_each",
    ),
    Mutant(
        "answer-of-a-proxy-is-an-empty-list",
        2,
        "An answer of something else than the API server is read as an empty list of holds.",
        Code("_content", "not isinstance(found, dict) or not ('kind' in found or path == _VERSION)", "found is None"),
        "tests/unit/api/test_connection.py::TestRequests"
        "::test_an_answer_of_something_else_is_not_taken_for_an_empty_list",
    ),
    Mutant(
        "gate-looks-before-the-record-only",
        2,
        "With the method command, a hold that comes while the reboot is recorded does not count.",
        Code(
            "reboot_gate",
            "look()\nrecord_phase(context.cluster, name, phase_of(params, 'reboot'))\ntry:\n"
            "    found = last_look.repeat(recent_look)\n"
            "except HoldfastError as error:\n    error.fields['gate'] = True\n    raise",
            "found = last_look.repeat(recent_look)\nrecord_phase(context.cluster, name, phase_of(params, 'reboot'))",
        ),
        "tests/unit/reboot/test_permit.py::test_a_hold_that_comes_while_the_reboot_is_recorded_counts",
    ),
    Mutant(
        "gate-that-fails-counts-as-a-reboot",
        3,
        "A healthy node stays cordoned because the last check before the user's tasks failed.",
        Code("reboot_gate", "error.fields['gate'] = True\nraise", "raise"),
        "tests/unit/reboot/test_permit.py::test_an_old_look_does_not_count",
    ),
    Mutant(
        "failure-forgotten-in-an-outage",
        5,
        "A failure is not counted if the run can give no sign of life when its cleanup begins.",
        Code("reboot_finish", "end is not _failed", "True"),
        "tests/unit/reboot/test_finish.py::test_a_failure_is_counted_although_the_run_gives_no_sign_of_life",
    ),
    Mutant(
        "slot-without-a-run-passes",
        1,
        "A run takes the slot of an owner whose life nothing shows.",
        Code(
            "_passing",
            "name in request.nodes and (slot.operation == operation or request.restart) and slot.state == ACTIVE"
            " and slot.run and slot.run != request.run and slot.run not in live",
            "name in request.nodes and (slot.operation == operation or request.restart) and slot.state == ACTIVE"
            " and slot.run != request.run and slot.run not in live",
        ),
        "tests/unit/budget/test_operation_rules.py::TestBegin::test_a_slot_without_a_run_stays_with_its_owner",
    ),
    Mutant(
        "guard-waits-for-no-holder",
        2,
        "The guard runs the user's tasks and drains although someone holds the Node.",
        Code("_holders", "_once(facts, HOLD, Step(AWAIT_HOLDERS)) if _may_be_held(facts) else None", "None"),
        "tests/unit/guard/test_journey_rules.py::TestCourse::test_before_the_drain",
    ),
    Mutant(
        "event-sent-twice",
        6,
        "An event source forgets what it has seen, and sends it again.",
        Code(
            "EventLog.see",
            "before.get(condition.key) or _Entry(_begun(condition, now, bool(before)) + self._after)",
            "_Entry(_begun(condition, now, bool(before)) + self._after)",
        ),
        "tests/unit/events/test_source.py::test_sends_once_whatever_the_watch_repeats",
    ),
    Mutant(
        "silence-lasts-as-long-as-its-run",
        6,
        "The silences of a node that is done, or that another run has, are extended.",
        Code("worked_on", 'claim is not None and claim.run == run and not record.get("result")', "True"),
        "tests/unit/reboot/test_silence_rules.py::test_whether_the_run_still_works_on_a_node",
    ),
    Mutant(
        "silence-does-not-expire",
        6,
        "The silence of a run that dies lasts for years.",
        Code("new", "to_text(now + timedelta(seconds=seconds))", "to_text(now + timedelta(days=seconds))"),
        "tests/unit/reboot/test_silence_rules.py::test_one_that_nobody_extends_expires",
    ),
    Mutant(
        "taint-without-a-record",
        6,
        "A run that dies leaves the taint of a node that waited, and no record of it.",
        Code(
            "Report.write",
            "self._write(_set_taints(cluster, node, patch.taints), marks, patch)",
            "_set_taints(cluster, self._write(node, marks, patch), patch.taints)",
        ),
        "tests/unit/budget/test_lifecycle.py::TestTaint::test_killed_between_its_writes",
    ),
    Mutant(
        "pause-of-a-dead-run-stays",
        6,
        "The next run leaves NodeHealthChecks that a dead run has paused.",
        Code("paused", "resumed(check, ended)", "requests_of(check)"),
        "tests/unit/nodes/test_health_checks.py::test_the_next_run_ends_the_pause_of_a_dead_one",
    ),
    Mutant(
        "slot-of-a-dead-run-stays-on-a-node-that-is-done",
        6,
        "A node that is done keeps the slot and the claim of a dead run, so the other nodes get no slot.",
        Code("next_step", "facts.left_behind and waits", "False"),
        "tests/unit/test_model_cases.py::test_the_next_run_returns_slot_and_claim_of_a_node_that_is_done",
    ),
    Mutant(
        "slot-of-a-skipped-node-stays-with-its-new-run",
        6,
        "A run keeps the slot that it got from a dead run when it began, although it skips the node.",
        Code("Facts.left_behind", "not self.attempts and node.slot_is(settings.run, settings.operation)", "False"),
        "tests/unit/reboot/test_admit.py::TestSlotThatPassedToThisRunAtItsBegin::test_the_paused_run_finished_the_node",
    ),
    Mutant(
        "run-ends-well-and-leaves-a-cordon",
        3,
        "A node that needs no reboot is skipped, and stays cordoned by a dead run of another operation.",
        Code("decision", "step.name in (SKIPPED, POSTPONED) and facts.stays_cordoned", "False"),
        "tests/unit/reboot/test_admit.py::TestNodeThatADeadRunLeftCordoned::test_a_run_of_another_operation_is_stopped",
    ),
    Mutant(
        "restart-leaves-a-cordon",
        3,
        "A run that starts over returns the slot and the claim of a dead run, and not its cordon.",
        Code("_restore", "facts.node.cordoned_by == PURPOSE", "False"),
        "tests/unit/reboot/test_admit.py::TestNodeThatADeadRunLeftCordoned::test_with_restart_it_is_restored",
    ),
    Mutant(
        "restart-uncordons-a-node-that-goes-down",
        3,
        "A run that starts over uncordons a node that a dead run has told to reboot.",
        Code("Seen.keeps_cordon", "self.record.unchecked", "False"),
        "tests/unit/reboot/test_admit.py::TestNodeThatADeadRunLeftCordoned"
        "::test_a_node_that_has_to_stay_cordoned_does_with_restart_too",
    ),
    Mutant(
        "failed-check-forgotten",
        3,
        "The record of another operation hides that the node has not passed its check, and its cordon is undone.",
        Code("advance", "{'unchecked': True} if stays else {}", "{}"),
        "tests/unit/reboot/test_admit.py::TestNodeThatADeadRunLeftCordoned"
        "::test_it_stays_cordoned_if_a_hold_comes_after_the_claim",
    ),
    Mutant(
        "failed-check-undone-by-a-failed-drain",
        3,
        "A drain that fails undoes the cordon of an earlier operation, after which the node has not passed its check.",
        Code("Work.uncordon", "not phase and stays_cordoned(read_node(self.context.cluster, self.node))", "False"),
        "tests/unit/reboot/test_finish.py::TestNodeThatHasNotPassedItsCheckSinceAnEarlierOperation"
        "::test_a_drain_that_fails_leaves_it_cordoned",
    ),
    Mutant(
        "own-node-goes-first",
        6,
        "A run that resumes reboots the node of its own controller before all others.",
        Code("_own_node", "facts.settings.own", "False"),
        "tests/unit/reboot/test_admit.py::TestThePassThatResumes"
        "::test_the_controller_s_own_node_goes_last_unless_its_reboot_was_sent",
    ),
    Mutant(
        "slot-of-another-operation-taken-from-a-live-run",
        1,
        "A run that starts over takes the slot of a live run.",
        Code("_restarts", "_left_behind(slot, request.live)", "True"),
        "tests/unit/budget/test_ledger_rules.py::TestDecide"
        "::test_a_slot_of_another_operation_passes_only_from_a_dead_run_and_on_restart",
    ),
    Mutant(
        "begun-nodes-come-late",
        6,
        "The other nodes of a run wait for the slots of nodes that an earlier run has begun, until their time is up.",
        Code("reboot_begin", "node in taken", "False"),
        "tests/unit/reboot/test_begin.py::TestNodesThatAnEarlierRunHasBegun",
    ),
    Mutant(
        "lease-of-a-paused-run-deleted",
        6,
        "A run that continues after a pause stays dead for others, because the next run has forgotten its Lease.",
        Code("begin", "run != request.run and run in runs", "run != request.run and run in live"),
        "tests/unit/budget/test_operations.py::test_the_lease_of_a_silent_run_stays_so_that_it_is_alive_when_it_wakes",
    ),
    Mutant(
        "lease-deleted-while-its-run-wakes",
        6,
        "The end of an operation deletes the Lease of a run that gives a sign of life at that moment.",
        Code("end_dead", "read(lease).alive(cluster.now())", "False"),
        "tests/unit/budget/test_operations.py::test_at_the_end_the_lease_of_a_run_that_wakes_just_then_stays",
    ),
    Mutant(
        "paused-run-stays-dead-in-its-task",
        6,
        "A run whose Lease was deleted counts as dead for the rest of its task, although it works.",
        Code("heartbeat", "not stop.is_set()", "False"),
        "tests/unit/budget/test_runs.py::TestLeaseThatIsGone::test_a_run_that_works_creates_it_again",
    ),
    Mutant(
        "busy-drain-ignores-its-claim",
        6,
        "A drain that evicts all the time continues after another run has taken the node over.",
        Code(
            "_DrainRun._keep_to_our_claim",
            "if run and now - self._looked > _LOOK_AGAIN:\n"
            "    claim_rules.require_claim(read_node(self._cluster, self._name), run)\n"
            "    self._looked = now",
            "if run and now - self._looked > _LOOK_AGAIN:\n"
            "    claim_rules.require_claim(read_node(self._cluster, self._name), run)\n"
            "self._looked = now",
        ),
        "tests/unit/drain/test_claim.py::test_a_drain_that_evicts_all_the_time_notices_that_another_run_took_over",
    ),
    Mutant(
        "claim-of-nobody-counts-as-taken-over",
        6,
        "A node whose claim is gone is left to a run that does not exist, and the operation ends.",
        Code("_is_nobodys", "node is None or node.get('claim')", "True"),
        "tests/unit/reboot/test_failure_rules.py::test_a_node_whose_claim_is_gone_is_no_run_s",
    ),
    Mutant(
        "two-live-runs-of-one-id",
        6,
        "A second job with the same rolling_reboot_run shares the claims and slots of the first one.",
        Code("refuse_live", "found is not None and found.alive(cluster.now())", "False"),
        "tests/unit/reboot/test_begin.py::test_the_id_of_a_live_run_is_refused",
    ),
    Mutant(
        "resumed-drain-forgets-volumes",
        4,
        "A drain that is resumed does not wait for the volumes of the pods that are gone.",
        Code("_drain", "volumes_before(node, params.get('operation') or '')", "set()"),
        "tests/unit/drain/test_send.py::test_a_drain_that_is_resumed_waits_for_the_volumes_of_pods_that_are_gone",
    ),
    Mutant(
        "drain-takes-a-conflict-for-a-pod-that-is-gone",
        4,
        "A conflict about a budget whose name contains uid counts as a pod that is gone.",
        Code("_refusal", "_OTHER_UID.search(error.body_message)", "'uid' in error.body_message.lower()"),
        "tests/unit/drain/test_send.py::test_only_a_pod_with_another_uid_counts_as_gone",
    ),
    Mutant(
        "reboot-without-a-drain-after-a-node-was-given-back",
        4,
        "A node is rebooted without a drain: a run failed in its reboot, gave the node back, and died.",
        Code(
            "steps_left",
            "facts.node.sent(facts.settings.operation) and facts.node.cordoned_by == PURPOSE "
            "and (not facts.node.uncordoned)",
            "facts.node.sent(facts.settings.operation)",
        ),
        "tests/unit/reboot/test_journey_rules.py::test_the_steps_that_are_left",
    ),
    Mutant(
        "quorum-without-a-wait",
        3,
        "A control-plane node is rebooted although nothing has seen that etcd keeps its quorum.",
        Code("_numbers", "settings[name] < number", "settings[name] < 0"),
        "tests/unit/reboot/test_check_settings.py::test_what_can_not_work_is_named",
    ),
    Mutant(
        "quorum-that-is-unknown-counts-as-kept",
        3,
        "A control-plane node is rebooted although etcd's pods are gone.",
        Code("_Admission._await_quorum", "not etcd.kept", "etcd.kept is False"),
        "tests/unit/reboot/test_admit.py::test_the_quorum_has_to_be_known_when_the_turn_comes",
    ),
    Mutant(
        "waiting-run-hides-a-reboot",
        6,
        "A run that waits for its turn writes over the record of a reboot that nobody claims, and reboots it again.",
        Code("_not_ours_to_write", "(claim is None and is_midway(record))", "False"),
        "tests/unit/budget/test_node_operation.py::"
        "test_a_run_that_waits_keeps_the_record_of_a_reboot_that_nobody_claims",
    ),
    Mutant(
        "shutdown-restart-forgotten",
        6,
        "A kubelet that has not started since a run changed its files and died stays as it is.",
        Code("graceful_shutdown", "node.unproven is not None", "False"),
        "tests/unit/shutdown/test_configure.py::TestUnprovenChange::test_the_next_run_restarts_the_kubelet",
    ),
    Mutant(
        "shutdown-back-to-what-failed",
        6,
        "After two changes that the kubelet does not start with, it gets back what the first one left.",
        Code("_remember", "{**data[name], **node.unproven[name]}", "data[name]"),
        "tests/unit/shutdown/test_configure.py::TestUnprovenChange::test_what_it_left_is_nothing_to_return_to",
    ),
    # -- 7: evidence and the taint
    Mutant(
        "failover-that-is-over-continues",
        7,
        "What an earlier failover sent counts for a node that a person has brought back since.",
        Code("open_record", "None if record and is_over(node, record) else record", "record"),
        "tests/unit/failover/test_steps.py::test_the_next_failover_of_a_node_that_a_person_brought_back_is_a_new_one",
    ),
    Mutant(
        "renewal-that-no-watch-showed",
        7,
        "A kubelet that renewed its Lease while the watch was away does not refute the evidence.",
        Code("_try_to_add", "_last_sign(_kubelets_lease(cluster, name)) not in (None, _last_sign(lease))", "False"),
        "tests/unit/failover/test_taint.py::test_a_renewal_that_no_watch_has_shown_is_a_sign_of_life",
    ),
    Mutant(
        "rolling-reboot-of-a-failed-over-node",
        7,
        "A rolling reboot switches a node on that is failed over.",
        Code("_other_work", "not why", "True"),
        "tests/unit/reboot/test_admit.py::test_a_node_that_is_failed_over_is_left_to_its_recovery",
    ),
    Mutant(
        "evidence-of-another-boot",
        7,
        "A node that came back since it was switched off gets the taint.",
        Code("check", "evidence.get('boot_id') and evidence['boot_id'] != boot_id", "False"),
        "tests/integration/test_out_of_service.py::test_down_again_after_a_boot",
    ),
    Mutant(
        "evidence-never-too-old",
        7,
        "Evidence never grows old.",
        Code("_check_age", "age > FRESH", "False"),
        "tests/unit/fencing/test_evidence_rules.py::TestAll::test_old",
    ),
    Mutant(
        "evidence-by-exit-status-alone",
        7,
        "A verify command that ends with 0 says off, whatever it prints.",
        Code("off_by_command", "verdict is not None and _plain(verdict['subject'] or '')", "status == 0"),
        "tests/unit/fencing/test_evidence_rules.py::test_a_command_that_does_not",
    ),
    Mutant(
        "evidence-older-than-the-last-sign-of-life",
        7,
        "A person's word counts although the kubelet was heard of later.",
        Code("check_silent_since", "seconds_between(from_text(at), last_sign) <= BEHIND", "True"),
        "tests/unit/fencing/test_evidence_rules.py::test_a_statement_that_is_older_than_the_last_sign_of_life",
    ),
    Mutant(
        "evidence-of-a-host-that-was-off-before",
        7,
        "A host that was off before, at a time that nothing tells, counts as off.",
        Code("off", "not written.powered_on", "False"),
        "tests/unit/fencing/test_host_rules.py::TestOff::test_never_without_all_of_it",
    ),
    Mutant(
        "taint-without-a-second-look",
        7,
        "Nothing checks the evidence again before the taint.",
        Code("confirm", "_confirm_command(name, evidence)", "{}"),
        "tests/integration/test_out_of_service.py::TestCommand::test_says_on",
    ),
    Mutant(
        "taint-on-a-node-that-came-back",
        7,
        "The taint is written over whatever the Node is by then.",
        Code(
            "_write",
            "{'resourceVersion': node['metadata']['resourceVersion'], 'annotations': {EVIDENCE: text}}",
            "{'annotations': {EVIDENCE: text}}",
        ),
        "tests/integration/test_out_of_service.py::test_a_node_that_comes_back_between_the_look_and_the_taint",
    ),
    Mutant(
        "taint-removed-without-a-new-boot",
        7,
        "The taint is removed from a node that never was off.",
        Code("check_back", "node_rules.boot_id(node) in ('', record['boot_id'])", "False"),
        "tests/unit/failover/test_taint_rules.py::TestBack::test_only_with_all_of_it",
    ),
    Mutant(
        "failover-keeps-proof-of-an-earlier-boot",
        7,
        "A node that is fenced again counts as off by the proof of an earlier boot.",
        Code("restarted", "('evidence', 'pods', 'volume_attachments')", "('pods', 'volume_attachments')"),
        "tests/unit/failover/test_rules.py::test_facts_of_an_earlier_boot_are_forgotten",
    ),
    Mutant(
        "failover-taints-without-a-last-look",
        7,
        "A node that came back after it was fenced is declared out of service.",
        Code("_taint", "Record('taint', look=True, host_version=version)", "Record('taint', host_version=version)"),
        "tests/unit/failover/test_journey_rules.py::test_the_node_is_looked_at_before_each_step_that_is_not_undone",
    ),
    Mutant(
        "recovery-of-a-node-that-was-never-off",
        7,
        "A node that never was off is put back into service, although its old pods still run.",
        Code("_never_off", "not before", "True"),
        "tests/unit/failover/test_journey_rules.py::test_the_next_step",
    ),
    Mutant(
        "failed-failover-undone-while-the-machine-goes-off",
        7,
        "After a failure, a machine that was requested to switch off counts as untouched: nothing keeps new pods away.",
        Code("was_sent", "failure.error not in NOTHING_WRITTEN", "False"),
        "tests/unit/failover/test_ending_rules.py::test_whether_the_machine_was_requested_to_switch_off",
    ),
    Mutant(
        "guard-lets-a-running-node-go",
        7,
        "The guard lets the volumes of a silent node go although it may still run.",
        Code("check_fenced", "state != UNREACHABLE", "True"),
        "tests/unit/guard/test_rules.py::TestRelease::test_a_silent_node_keeps_its_machine",
    ),
    Mutant(
        "proof-survives-a-recovery",
        7,
        "A node counts as off while an interrupted recovery may have switched it on.",
        Code("known_off", "record is None or record['phase'] not in GOING_BACK", "True"),
        "tests/unit/failover/test_taint.py::test_the_proof_before_a_recovery_that_was_interrupted_no_longer_counts",
    ),
    Mutant(
        "recovery-switches-on-what-another-run-fenced",
        7,
        "The claim is not checked again directly before the machine is switched on.",
        Code("_switch_on", "began = last_look.steady()\n_claimed(context, params)", "began = last_look.steady()"),
        "tests/unit/failover/test_power.py::TestBack::test_its_claim_is_checked_directly_before",
    ),
    Mutant(
        "recovery-of-a-deleted-node-leaves-its-key",
        7,
        "The recovery of a deleted Node succeeds although a key still keeps its machine off.",
        Code(
            "_of_a_deleted_node",
            "next((item['annotation'] for item in keys if item['key'] == facts.known.get('key')), '')",
            "''",
        ),
        "tests/unit/failover/test_journey_rules.py::test_the_next_step",
    ),
    Mutant(
        "failover-key-removed-after-a-move",
        7,
        "The key that keeps a fenced host off goes because its consumer has another UID, as after clusterctl move.",
        Code("former_use", "used_by(host) not in ('', written.used_by)", "True"),
        "tests/unit/fencing/test_annotation.py::test_a_key_stays_while_only_the_uid_of_the_consumer_has_changed",
    ),
    Mutant(
        "evidence-of-an-agent-that-switches-nothing-off",
        7,
        "A fence agent whose off is no proof is taken.",
        Code("read", "_NO_PROOF.get(name.rpartition('/')[2])", "None"),
        "tests/unit/fencing/test_agent_rules.py::test_an_agent_whose_off_is_no_proof",
    ),
    Mutant(
        "guard-leaves-its-key-on-the-host",
        7,
        "The failover's key keeps the host off in its next use.",
        Code("_ended", "FREE_HOST not in work.past", "False"),
        "tests/unit/guard/test_journey_rules.py::TestCourse::test_the_key_of_a_fenced_host_is_removed_at_the_end",
    ),
    Mutant(
        "evidence-of-an-agent-that-contradicts-itself",
        7,
        "A fence agent that prints ON, or nothing, counts as off by its exit status.",
        Code("state", 'found if said == {found} or (found == ON and not said) else ""', "found"),
        "tests/unit/fencing/test_agent_rules.py::test_the_power_state",
    ),
    Mutant(
        "evidence-of-an-agent-without-a-status",
        7,
        "A fence agent that can't tell the state of a machine is used.",
        Code("check_abilities", "{OFF, 'status'} - abilities.actions", "{OFF} - abilities.actions"),
        "tests/unit/fencing/test_agent_rules.py::test_an_agent_that_proves_nothing",
    ),
    Mutant(
        "evidence-of-a-machine-that-is-on",
        7,
        "The status after the power-off is not looked at.",
        Code("check_off", "found != rules.OFF", "False"),
        "tests/unit/fencing/test_agent.py::test_the_evidence",
    ),
    Mutant(
        "agent-switches-off-the-plug-of-another-node",
        7,
        "The list of a device's plugs is not compared with the node.",
        Code("check_machine", "rules.check_listed(agent, plugs, node, names())"),
        "tests/unit/fencing/test_agent.py::test_a_wrong_plug_is_refused_before_anything_is_sent",
    ),
    Mutant(
        "cordon-undone-although-the-taint-may-be-set",
        7,
        "After a failed task that had set the taint, the node is schedulable, and its recovery has not begun.",
        Code("after_failure", "TAINT in progress.doing and failure.error not in NOTHING_WRITTEN", "False"),
        "tests/unit/failover/test_ending_rules.py::test_what_a_failure_leaves",
    ),
    Mutant(
        "unfinished-failovers-forgotten",
        7,
        "After the failover of many nodes, nothing remembers how the machines of some were switched off.",
        Code("bounded", "_short(known[operation])", "''"),
        "tests/unit/failover/test_rules.py::test_what_the_recovery_needs_of_many_nodes_fits",
    ),
    Mutant(
        "earlier-cordon-of-the-owner-undone",
        3,
        "A drain that fails undoes the cordon that its owner had set before for another reason.",
        Code("_drain", "cordon_rules.reason_of(before, owner) in (None, reason)", "True"),
        "tests/unit/drain/test_send.py::test_a_drain_that_fails_undoes_its_own_cordon_only",
    ),
    Mutant(
        "request-forgotten-after-an-attestation",
        7,
        "A person's word hides an earlier request, so a node whose machine may still switch off counts as back.",
        Code("_attested", "facts.progress.sent and earlier not in (None, ATTESTATION)", "False"),
        "tests/unit/failover/test_journey_rules.py::test_what_is_known_of_the_way_to_fence",
    ),
    # -- 8: what belongs to others
    Mutant(
        "rolling-reboot-under-the-cordon-of-other-work",
        8,
        "A rolling reboot starts on a node that other work of the collection has cordoned.",
        Code("_other_work", 'node.cordoned_by not in ("", PURPOSE) and not facts.midway', "False"),
        "tests/unit/reboot/test_admit.py::test_a_plan_writes_nothing",
    ),
    Mutant(
        "others-taints-removed",
        8,
        "The out-of-service taint replaces the taints of others.",
        Code("with_taint", "without_taint(node)", "[]"),
        "tests/unit/failover/test_taint_rules.py::TestTaint::test_those_of_others_stay_as_they_are",
    ),
    Mutant(
        "others-reboot-keys-removed",
        8,
        "The reboot keys of others go with ours.",
        Code(
            "_Annotation._write",
            "{key_rules.annotation(self._key): value, REBOOT_KEYS: rules.records_with(host, self._key, written)}",
            "{**{found.annotation: None for found in rules.requests_of(host)},"
            " key_rules.annotation(self._key): value, REBOOT_KEYS: rules.records_with(host, self._key, written)}",
        ),
        "tests/unit/fencing/test_annotation.py::test_what_others_write_stays_byte_for_byte",
    ),
    Mutant(
        "others-deletion-hook-taken",
        8,
        "A deletion hook of the same name is taken over from its owner, or removed.",
        Code("change", "value is not None and value != owner", "False"),
        "tests/unit/capi/test_rules.py::TestChange::test_only_our_own_is_ever_written",
    ),
    Mutant(
        "others-deletion-hook-removed-by-the-guard",
        8,
        "The guard removes a hook of the same name that another owner has.",
        Code(
            "Guard.has",
            "node_rules.annotations_of(machine).get(self.key(point)) == self.owner",
            "self.key(point) in node_rules.annotations_of(machine)",
        ),
        "tests/unit/guard/test_rules.py::TestRelease::test_which_hooks_go",
    ),
    Mutant(
        "others-opt-outs-overwritten",
        8,
        "An opt-out that someone changed meanwhile is overwritten.",
        Code("_told", "ours if value == before else value", "ours"),
        "tests/unit/nodes/test_opt_outs.py::test_what_somebody_changes_meanwhile_stays",
    ),
    Mutant(
        "others-shutdown-file-taken",
        8,
        "A file of others that has our name is overwritten and removed.",
        Code("is_ours", "bool(text) and str(text).startswith(MARK)", "bool(text)"),
        "tests/unit/shutdown/test_plan_rules.py::test_a_file_of_others_is_not_taken_for_our_own",
    ),
    Mutant(
        "others-condition-overwritten",
        8,
        "A lifecycle condition that another writer has set to True is overwritten, and removed.",
        Code("patch_of", "kind in mine or not _is_true(node, kind)", "True"),
        "tests/unit/budget/test_lifecycle_rules.py::test_no_condition_or_taint_of_others_changes_and_none_of_ours_stays",
    ),
    Mutant(
        "others-condition-changed-meanwhile-removed",
        8,
        "A condition that another writer has changed counts as ours.",
        Code(
            "ours",
            'isinstance(entry, dict) and seen == ("True", REASON, entry.get("message"))',
            "isinstance(entry, dict)",
        ),
        "tests/unit/budget/test_lifecycle_rules.py::test_a_condition_that_another_writer_changed_is_theirs",
    ),
    Mutant(
        "others-taint-of-the-same-key-removed",
        8,
        "A taint with our key that no record names is removed.",
        Code("tainted", 'bool((node_rules.record(node, LIFECYCLE_CONDITIONS) or {}).get("taint"))', "True"),
        "tests/unit/budget/test_lifecycle.py::TestTaint::test_another_writer_s_stays",
    ),
    Mutant(
        "others-pauses-ended",
        8,
        "The pauses of others end with the run.",
        Code("resumed", "item not in {_OURS + run for run in runs}", "False"),
        "tests/unit/nodes/test_health_checks.py::test_pause_and_resume",
    ),
    Mutant(
        "others-silences-ended",
        8,
        "The silences of other runs and people are ended.",
        Code("own", 'silence.get("createdBy") == creator_of(run)', "True"),
        "tests/unit/reboot/test_silence_rules.py::test_only_its_own",
    ),
    Mutant(
        "labels-that-a-kubelet-must-not-change",
        8,
        "A record that a kubelet has made up changes a label that NodeRestriction keeps from it.",
        Code("record_of", "not _is_restricted(key)", "True"),
        "tests/unit/nodes/test_opt_outs.py::TestMarks::test_a_record_that_a_node_has_made_up_sets_nothing",
    ),
    Mutant(
        "guard-drains-for-another-owner",
        8,
        "A guard drains a Node while another owner of a pre-drain hook still works there.",
        Code("_drains", "work.leaves_drain", "False"),
        "tests/unit/guard/test_journey_rules.py::TestCourse::test_a_drain_that_is_not_for_a_guard_is_left_out",
    ),
    # -- 9: what people enter and see
    Mutant(
        "address-that-is-an-option",
        9,
        "The text that a kubelet reports as its address becomes an option of ssh on the controller.",
        Code("address", "spelled and spelled not in shared", "text"),
        "tests/unit/inventory/test_rules.py::TestAddress::test_what_is_no_address_is_left_out",
    ),
    Mutant(
        "client-key-stays-on-the-disk",
        9,
        "Each task leaves the client key of the kubeconfig in the temporary directory.",
        Code("connect", "_load(given, configuration, folder)", "_load(given, configuration, None)"),
        "tests/unit/api/test_certificates.py::test_no_key_stays_in_the_temporary_directory",
    ),
    Mutant(
        "token-with-a-line-break-is-shown",
        9,
        "A token with a line break appears in an error message.",
        Code("Cluster._send_once", '_printable(token["value"])', 'token["value"]'),
        "tests/unit/api/test_connection.py::TestIdentity::test_a_token_with_a_character_that_is_not_allowed_is_refused_and_not_shown",
    ),
    Mutant(
        "answer-blank-is-a-value",
        9,
        "A blank answer replaces the default.",
        Code("is_blank", "value is None or (isinstance(value, str) and not value.strip())", "value is None"),
        "tests/unit/test_settings.py::TestAnswer::test_blanks_count_as_not_set",
    ),
    Mutant(
        "answer-wrong-is-taken",
        9,
        "A wrong answer is taken as it is.",
        Code("answer", "found.problems.append(f'{name} {error}{_shown(value, option)}')"),
        "tests/unit/test_survey.py::TestQuestion::test_a_wrong_answer_is_refused_by_name",
    ),
    Mutant(
        "credentials-go-where-a-node-says",
        9,
        "The user's credentials of a BMC go to the URL that the Node's own record names.",
        Code("_another_machine", "not given and kept and urls == {kept}", "not given"),
        "tests/unit/failover/test_turn.py::test_a_node_does_not_say_where_the_credentials_go",
    ),
    Mutant(
        "answer-choice-unchecked",
        9,
        "An answer that is none of the choices is taken.",
        Code("typed", "if checked.error_messages: raise Unfit(_why(checked.error_messages, kind, option))"),
        "tests/unit/test_settings.py::TestText::test_choices_are_named",
    ),
    Mutant(
        "host-of-another-node",
        9,
        "A host with a prefix does not tell the roles which Node it is.",
        Code("variables", 'host != found["name"]', "False"),
        "tests/unit/inventory/test_rules.py::TestVariables::test_a_host_with_another_name_tells_the_roles_its_node",
    ),
    Mutant(
        "host-that-is-down-is-ready",
        9,
        "A node that is not Ready is in the group of those that are.",
        Code("groups", '"ready" if found["ready"] else "not_ready"', '"ready"'),
        "tests/unit/inventory/test_rules.py::TestGroups::test_not_ready",
    ),
    Mutant(
        "host-options-ignored",
        9,
        "The options in the file of the inventory are not used.",
        Code("InventoryModule._auth", "self._in_file.isdisjoint((name, *option.get('aliases', ())))", "True"),
        "tests/integration/test_inventory.py::test_groups_and_variables",
    ),
]
