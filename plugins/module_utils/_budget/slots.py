# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on slots: take one, return it, report a failure."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, Outdated, Refused, TimedOut
from .._api.names import CORDON, NAMESPACE
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.times import to_text
from .._api.watch import Deadline, Follower, only_object, retry_conflicts
from .._progress.event_rules import budget, given_back, waits
from . import ledger_rules, runs
from . import ledger_store as store
from .claim_rules import PURPOSE, claim_of
from .front import Front
from .ledger_rules import GRANTED, REFUSED, WAIT, Claimant, Decision, Ledger, Member, Request, Slot
from .node_operation_rules import stays_cordoned
from .policy_rules import Policy, policy_of
from .standstill_rules import Standstill, pause

# Above this number, list the Nodes instead of reading them one by one.
_MANY = 50
# The longest id of a run or an operation that a claim may bring into a ledger.
_LONGEST = 1000


def reboot_slot(context: Context, params: Params) -> Result:
    """Take or return the slot of one node, or mark it as failed."""
    store.check_group(params["group"])
    policy = policy_of(params)
    cluster = context.cluster
    if params["state"] == "present":
        node = read_node(cluster, params["name"])
        _refuse_in_two_groups(cluster, params["group"], params["name"])
        return _SlotRequest(context, params, policy, node).run()
    before, after = retry_conflicts(lambda: _give_back(cluster, params))
    if params["state"] == "absent":
        context.tell(given_back(params["group"], params["name"]))
    return {
        "changed": before != after,
        **_facts(params, after, waited=0.0),
        "diff": {"before": _shown(before, params["name"]), "after": _shown(after, params["name"])},
    }


def refuse_slot(context: Context, params: Params, *, returned: bool) -> None:
    """Raise an error if no wait brings the node a slot. The options are those of :func:`reboot_slot`.

    Args:
        returned: The run returns the slot that it has taken over from a dead run before it asks for one.

    Raises:
        Refused: For example, too many nodes of the operation have failed. A full budget is no refusal.
    """
    node = read_node(context.cluster, params["name"])
    _refuse_in_two_groups(context.cluster, params["group"], params["name"])
    _SlotRequest(context, params, policy_of(params), node).refuse(returned=returned)


def _queue(group: str, policy: Policy, node: Object) -> str:
    """Name the queue of a node. A node whose domain is full must not block the nodes of other domains."""
    if not policy.topology_key:
        return group
    return f"{group}\0{node_rules.labels_of(node).get(policy.topology_key, '')}"


class _SlotRequest:
    """One request for a slot, from the first look to the grant."""

    def __init__(self, context: Context, params: Params, policy: Policy, node: Object) -> None:
        self._cluster = context.cluster
        self._tell, self._warn = context.tell, context.warn
        self._check_mode = context.check_mode
        self._params = params
        self._policy = policy
        self._node = node
        self._deadline = Deadline(params["wait_timeout"])
        self._before = Ledger()
        self._looked = False
        self._folder = context.folder if params["wait_timeout"] and not context.check_mode else ""
        self._front = self._new_front()
        self._follower: Follower | None = None
        self._runs: runs.Look | None = None
        # How long the same nodes have filled the budget without a run that works on them.
        self._standstill = Standstill()
        # Seconds from the start of the request until a slot of the group was last taken or returned.
        self._went_on = 0.0

    def _new_front(self) -> Front:
        """Only the node at the front of its run's queue reads Nodes and runs."""
        params = self._params
        queue = _queue(params["group"], self._policy, self._node)
        return Front(self._folder, params.get("run") or "", queue, self._arrived)

    def run(self) -> Result:
        with runs.heartbeat(self._cluster, self._params.get("run") or ""):
            try:
                decision = retry_conflicts(
                    lambda: self._attempt(store.load(self._cluster, self._params["group"]), waiting=False)
                )
                if decision.outcome == WAIT:
                    decision = self._wait(decision)
            finally:
                self._front.leave()
        name = self._params["name"]
        before = self._before.slots.get(name)
        # Check a slot that this run had before, too: it may come from a write whose answer was lost.
        if (before is None or before.run == (self._params.get("run") or "")) and not self._check_mode:
            self._keep_out_of_two_groups()
        return {
            "changed": before != decision.ledger.slots[name],
            **self._found(decision),
            "diff": {"before": _shown(self._before, name), "after": _shown(decision.ledger, name)},
        }

    def refuse(self, *, returned: bool) -> None:
        """Decide as if the group had only this node and those that have the group's slots."""
        name, run = self._params["name"], self._params.get("run") or ""
        ledger = store.ledger_of(store.load(self._cluster, self._params["group"]))
        # The run returns the slots of the nodes that it resumes before this node asks for one.
        ours = {key for key, slot in ledger.slots.items() if run and slot.run == run and (returned or key != name)}
        slots = {key: slot for key, slot in ledger.slots.items() if key not in ours}
        self._refuse_past_failures_elsewhere()
        decision = self._decide(replace(ledger, slots=slots), waiting=False, among={*slots, name})
        if decision.outcome == REFUSED and (not decision.fills or name in decision.ledger.slots):
            raise self._refusal(decision)

    def _arrived(self) -> None:
        """This node is now at the front of the queue: end the wait, so that it asks for a slot."""
        if self._follower is not None:
            self._follower.stop()

    def _line_up(self, ledger: Ledger) -> bool:
        """Whether this node decides: it is at the front of the queue, or it has a slot and needs no other one.

        If a live run of another process works under that slot, the node must not stand before nodes that could start.
        """
        if self._params["name"] in ledger.slots:
            self._front.leave()
            self._front = self._new_front()
            return True
        if not self._front.here and self._front.ask():
            self._standstill.resume(self._front.read())
        return self._front.here

    def _wait(self, last: Decision) -> Decision:
        if self._check_mode and not self._deadline.passed:
            return self._after_the_wait(last)
        while not self._deadline.passed:
            last = self._watch(last)
            if last.outcome == GRANTED:
                return last
        params = self._params
        raise TimedOut(
            f"Node {params['name']} got no slot of group {params['group']} within {params['wait_timeout']} s: "
            f"{last.why}. Raise wait_timeout, or check why the other nodes take so long.",
            **self._found(last),
        )

    def _after_the_wait(self, last: Decision) -> Decision:
        """The grant that a real run would wait for, if nothing else prevents it."""
        params = self._params
        self._warn(f"Node {params['name']} would wait for a slot of group {params['group']}: {last.why}.")
        node = ledger_rules.member(self._node, self._policy.topology_key)
        run, since = params.get("run") or "", to_text(self._cluster.now())
        slot = Slot(node.name, params["operation"], run, since, domain=node.domain, boot_id=node.boot_id)
        return replace(last, ledger=replace(last.ledger, slots={**last.ledger.slots, node.name: slot}))

    def _found(self, decision: Decision) -> Result:
        waited = self._deadline.elapsed
        return {
            **_facts(self._params, decision.ledger, waited=waited, decision=decision),
            "idle": round(waited - self._went_on, 3),
        }

    def _watch(self, last: Decision) -> Decision:
        """Follow the ledger until a slot is granted, a run that has one may be dead, or the Nodes need a new look.

        A node that is not at the front follows the ledger until it gets there. If a dead run may have left its slot, it
        does not wait for the front: the node there may wait for that slot.
        """
        at_front = self._front.here
        decides = at_front or self._params["name"] in self._before.slots
        until = self._until_one_may_be_dead() if decides and self._params.get("run") else float("inf")
        if at_front and last.again_in:
            # The ledger need not change before the pause ends.
            until = min(until, last.again_in)
        passes = bool(last.fills)
        if passes:
            until = min(until, pause(time.monotonic() - self._standstill.since, self._params["unhealthy_grace"]))
        follower = Follower(
            self._cluster,
            paths.config_maps(NAMESPACE),
            Deadline(min(self._deadline.left, until)),
            field_selector=f"metadata.name={store.config_map_name(self._params['group'])}",
        )
        self._follower = follower
        if self._front.here != at_front:
            # It has just got to the front.
            self._standstill.resume(self._front.read())
            return last
        for news in follower:
            try:
                last = self._attempt(only_object(news), waiting=True)
            except Outdated:
                # No other run stored the ledger first, so no event may come: list and decide again.
                return last
            except ApiFailure as error:
                if error.status != 409:
                    raise
                # Another run stored the ledger first, so an event will come.
                continue
            if last.outcome == GRANTED or bool(last.fills) != passes or self._front.here != at_front:
                break
        if not at_front and self._front.here:
            self._standstill.resume(self._front.read())
        return last

    def _until_one_may_be_dead(self) -> float:
        """Seconds, from the last look at the runs while that is current."""
        if self._runs is None or not self._runs.tells_of(()):
            self._runs = runs.look(self._cluster)
        return max(0.0, self._runs.until - time.monotonic())

    def _attempt(self, config_map: Object | None, *, waiting: bool) -> Decision:
        """Decide and store.

        Raises:
            ApiFailure: With status 409 if another run stored the ledger first.
        """
        ledger = store.ledger_of(config_map)
        self._refuse_past_failures_elsewhere()
        decides = self._line_up(ledger)
        if decides:
            decision = self._decide(ledger, waiting=waiting)
        else:
            self._refuse_past_failures(ledger)
            decision = ledger_rules.in_queue(ledger, self._policy)
        if decision.outcome == REFUSED:
            self._check_that_it_stands(config_map)
            if not decision.fills or not self._passes(decision):
                raise self._refusal(decision)
            decision = replace(decision, outcome=WAIT)
        if decision.outcome == GRANTED and decision.ledger != ledger:
            store.store(self._cluster, self._params["group"], config_map, decision.ledger)
        self._show(decision, decides=decides)
        if self._looked and ledger.slots != self._before.slots:
            self._went_on = self._deadline.elapsed
        self._looked, self._before = True, ledger
        return decision

    def _show(self, decision: Decision, *, decides: bool) -> None:
        """Show the budget, and what the node waits for. Only a node that decides knows more than its place."""
        name, group = self._params["name"], self._params["group"]
        if decides:
            self._tell(budget(group, decision.budget, {*decision.unavailable, *decision.ledger.slots}))
        if decision.outcome == WAIT:
            self._tell(waits(name, "slot", decision.why if decides else ledger_rules.BEHIND))

    def _passes(self, decision: Decision) -> bool:
        """Whether the budget may become free by itself: after an outage of the API, many Nodes look down."""
        stood = self._standstill.seconds(decision.fills, time.monotonic())
        # The next node at the front continues from this data.
        self._front.write(self._standstill.to_data())
        return bool(stood < self._params["unhealthy_grace"])

    @property
    def _counted_in(self) -> str:
        """The group whose ledger counts the failures of the operation, and drops them when a run resumes it."""
        return str(self._params.get("operation_group") or self._params["group"])

    def _refuse_past_failures_elsewhere(self) -> None:
        """An operation over several groups has all its failures in the ledger of one group."""
        group, params = self._counted_in, self._params
        if group != params["group"]:
            self._refuse_past_failures(store.ledger_of(store.load(self._cluster, group)))

    def _refuse_past_failures(self, ledger: Ledger) -> None:
        params, operation = self._params, self._params["operation"]
        if ledger.failed(operation) > params["max_failed"]:
            raise Refused(
                f"Node {params['name']} gets no slot of group {params['group']}: "
                f"{ledger_rules.failed_words(ledger, operation, params['max_failed'])}. Fix them, then run this again.",
                failures=ledger.failures(operation),
            )

    def _check_that_it_stands(self, config_map: Object | None) -> None:
        """Make the caller decide again if the ledger changed before the Nodes were read.

        A node that got its slot in between, and went down, looks like a node that went down without a slot.

        Raises:
            ApiFailure: With status 409, as if another run had stored the ledger first.
        """
        group = self._params["group"]
        if _version(store.load(self._cluster, group)) != _version(config_map):
            raise ApiFailure(f"The ledger of group {group} has changed. Run this again.", status=409)

    def _keep_out_of_two_groups(self) -> None:
        """Check again after the grant: if two groups grant a slot at the same time, the later one sees the other's."""
        try:
            _refuse_in_two_groups(self._cluster, self._params["group"], self._params["name"])
        except Refused:
            retry_conflicts(lambda: _give_back(self._cluster, {**self._params, "state": "absent"}))
            raise

    def _decide(self, ledger: Ledger, *, waiting: bool, among: Collection[str] | None = None) -> Decision:
        params = self._params
        seen = self._seen_runs(ledger) if params.get("run") else None
        # After an outage, the run's own sign of life may still be old.
        live = seen.live | {params["run"]} if seen else None
        request = Request(
            node=params["name"],
            operation=params["operation"],
            run=params.get("run") or "",
            now=to_text(self._cluster.now()),
            max_failed=params["max_failed"] if self._counted_in == params["group"] else sys.maxsize,
            count_others=params["count_others"],
            live=live,
            passing=seen.passing if seen else frozenset(),
            pause=params.get("pause") or 0,
            restart=bool(params.get("restart")),
        )
        known = ledger_rules.at_a_glance(ledger, self._policy, request) if waiting else None
        return known or self._decide_by_nodes(ledger, request, among)

    def _seen_runs(self, ledger: Ledger) -> runs.Look:
        """The runs. Use the last look while it shows that all runs with a slot are alive."""
        if self._runs is None or not self._runs.tells_of(slot.run for slot in ledger.slots.values() if slot.run):
            self._runs = runs.look(self._cluster)
        return self._runs

    def _decide_by_nodes(self, ledger: Ledger, request: Request, among: Collection[str] | None) -> Decision:
        """Read the Nodes of the group after the ledger: from the table, and as objects if the table is not enough."""
        selector, key = self._policy.selector, self._policy.topology_key
        rows = self._cluster.rows(paths.NODES, label_selector=selector)
        if among is not None:
            rows = (row for row in rows if row["Name"] in among)
        members, names = ledger_rules.seen_in_rows(ledger, self._policy, rows, request)
        whole, others = names & members.keys(), names - members.keys()
        nodes: Iterable[Object | None] = (self._cluster.find(paths.node(name)) for name in sorted(whole))
        if among is None and len(whole) > _MANY:
            nodes = self._cluster.items(paths.NODES, label_selector=selector)
        read = [ledger_rules.member(node, key) for node in nodes if node]
        group = [*(item for name, item in members.items() if name not in whole), *(m for m in read if m.name in whole)]
        deleted = {name for name in others if self._cluster.find(paths.node(name)) is None}
        return ledger_rules.decide(ledger, self._policy, group, request, deleted)

    def _refusal(self, decision: Decision) -> Refused:
        return Refused(
            f"Node {self._params['name']} gets no slot of group {self._params['group']}: {decision.why}. "
            f"{decision.way_out}",
            **self._found(decision),
        )


def claim(cluster: Cluster, group: str, node: str, *, run: str, operation: str) -> None:
    """Count a claim on the slot under which the node was claimed."""

    def attempt() -> None:
        config_map = store.load(cluster, group)
        before = store.ledger_of(config_map)
        after = ledger_rules.claim(before, node, run, operation)
        if after is not before:
            store.store(cluster, group, config_map, after)

    retry_conflicts(attempt)


def _give_back(cluster: Cluster, params: Params) -> tuple[Ledger, Ledger]:
    config_map = store.load(cluster, params["group"])
    before = store.ledger_of(config_map)
    slot = before.slots.get(params["name"])
    run = params.get("run") or ""
    # If the slot has passed to a run of another operation, this run made no mistake.
    passed_on = run and slot is not None and slot.run not in ("", run)
    if slot is not None and slot.operation != params["operation"] and not passed_on:
        raise Refused(
            f"The slot of node {params['name']} in group {params['group']} belongs to operation {slot.operation} (run "
            f"{slot.run or '-'}, since {slot.since}), not to {params['operation']}. Only that operation can return it.",
            slot={"group": params["group"], **vars(slot)},
        )
    failed = params["state"] == "failed"
    node = cluster.find(paths.node(params["name"])) if failed or run else None
    claimant = claimant_of(node) if run else None
    if failed:
        member = ledger_rules.member(node, "") if node else Member(params["name"], ready=False, unschedulable=False)
        if params.get("healthy") is not None:
            member = replace(member, ready=params["healthy"])
        reason = params.get("reason") or "failed"
        after = ledger_rules.fail(before, member, params["operation"], reason, run=run, claimant=claimant)
    else:
        # That of an earlier operation is no work under this slot.
        cordoned = node is not None and cordoned_by_us(node) and not stays_cordoned(node)
        after = ledger_rules.give_back(before, params["name"], run, claimant, cordoned=cordoned)
    if params.get("ended") and after != before:
        after = ledger_rules.with_end(after, params["operation"], to_text(cluster.now()))
    if after != before:
        store.store(cluster, params["group"], config_map, after)
    return before, after


def claimant_of(node: Object | None) -> Claimant | None:
    """The run that works on a node under a slot; ``None`` if the node is claimed for another purpose.

    A node can write its claim. A slot of a run without a name counts as in use for ever, and the ledger is one object.
    """
    claim = claim_of(node) if node else None
    if claim is None or claim.purpose != PURPOSE or not claim.run:
        return None
    if max(len(claim.run), len(claim.operation)) > _LONGEST:
        return None
    return Claimant(claim.run, claim.operation)


def cordoned_by_us(node: Object) -> bool:
    """Whether a rolling reboot has cordoned a node and not restored it, no matter who else wants it cordoned."""
    record = node_rules.record(node, CORDON)
    return record is not None and record.get("owner") == PURPOSE


def _refuse_in_two_groups(cluster: Cluster, group: str, node: str) -> None:
    for other, ledger in store.all_ledgers(cluster):
        if other != group and node in ledger.slots:
            raise Refused(
                f"Node {node} has a slot of group {other}, so group {group} can't give it one. A node belongs to one "
                "group at a time: let its operation there end first.",
                slot={"group": other, **vars(ledger.slots[node])},
            )


def _version(config_map: Object | None) -> str:
    return str(config_map["metadata"]["resourceVersion"]) if config_map else ""


def _facts(params: Params, ledger: Ledger, *, waited: float, decision: Decision | None = None) -> Result:
    slot = ledger.slots.get(params["name"])
    return {
        "slot": {"group": params["group"], **vars(slot)} if slot else None,
        "waited": round(waited, 3),
        "in_flight": sorted(ledger.slots),
        "unavailable": sorted({*(decision.unavailable if decision else ()), *ledger.slots}),
        "budget": decision.budget if decision else None,
    }


def _shown(ledger: Ledger, node: str) -> dict[str, Any]:
    slot = ledger.slots.get(node)
    return {"slot": vars(slot) if slot else None}
