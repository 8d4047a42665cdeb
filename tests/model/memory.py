# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The world in memory: Nodes, a ledger and Leases of runs as plain data, changed by the rules of the collection."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from model.acts import Act, Outcome
from model.seen import ZONE, ledger_seen, node_seen, slot_seen

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import (
    CLAIM,
    CORDON,
    EXCLUDE,
    KEEP_CORDONED,
    OPERATION,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import (
    claim_rules,
    ledger_rules,
    node_operation,
    node_operation_rules,
    operation_rules,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import Claim
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import (
    GRANTED,
    WAIT,
    Ledger,
    Request,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.operation_rules import StartRequest
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import Policy
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import (
    DEAD_AFTER,
    PASSING_FOR,
    Run,
    silent_since,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.slots import claimant_of, cordoned_by_us
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor import rules as doctor_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.ready_rules import is_back


@dataclass(frozen=True)
class _Read:
    """What a run has read of the world before it takes a slot."""

    ledger: Ledger
    nodes: Mapping[str, Object]
    live: frozenset[str]
    passing: frozenset[str]
    now: str


START = datetime(2026, 11, 21, tzinfo=timezone.utc)
OWNER = doctor_rules.ROLE_OWNER


def node(name: str, zone: str) -> Object:
    """A Ready Node, with only the fields that the rules read."""
    return {
        "metadata": {"name": name, "labels": {ZONE: zone}, "annotations": {}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": f"{name}-1"}},
    }


class Memory:
    """Carries out what runs ask for, and what else happens. Each act is one instant."""

    def __init__(self, zones: Mapping[str, str], *, peeks: bool = True) -> None:
        self.now = START
        self.nodes = {name: node(name, zone) for name, zone in zones.items()}
        self._ledger = Ledger()
        self.signs: dict[str, Run] = {}
        self.held: set[str] = set()
        # Whether what a run reads before it takes a slot may be out of date by then; and what each run has read last.
        self._peeks = peeks
        self._read: dict[tuple[str, str], _Read] = {}
        # The picture of the Nodes that did not change since.
        self._seen: dict[str, dict[str, Any]] = {}

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    @ledger.setter
    def ledger(self, ledger: Ledger) -> None:
        """A ledger that is stored unchanged gets no new version, as on the API server."""
        if ledger != self._ledger:
            self._ledger = ledger

    def perform(self, act: Act) -> Outcome:
        self._seen.pop(act.node, None)
        # So that the order of two acts is always known.
        self.now += timedelta(milliseconds=1)
        try:
            facts = getattr(self, f"do_{act.name}")(act.node, **act.options)
        except HoldfastError as error:
            return Outcome(error.kind)
        return facts if isinstance(facts, Outcome) else Outcome("", facts or {})

    def picture(self) -> dict[str, Any]:
        return {
            "nodes": {name: self.look_at(name) for name in self.nodes},
            "ledger": ledger_seen(self.ledger),
        }

    def runs(self) -> list[str]:
        """The runs that have a Lease."""
        return list(self.signs)

    def look_at(self, name: str) -> dict[str, Any]:
        slot = slot_seen(self.ledger.slots.get(name))
        if name not in self._seen:
            self._seen[name] = node_seen(self.nodes[name])
        return {**self._seen[name], "held": name in self.held, "slot": slot}

    # -- what happens to nodes and runs

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def beat(self, run: str) -> None:
        """The renewer renews the Lease of a run that has begun and not ended."""
        if run in self.signs:
            self.renew(run)

    def report(self, name: str, *, ready: bool, boot_id: str = "") -> None:
        self._seen.pop(name, None)
        status = self.nodes[name]["status"]
        status["conditions"] = [{"type": "Ready", "status": str(ready)}]
        if boot_id:
            status["nodeInfo"] = {"bootID": boot_id}

    def hold(self, name: str, *, held: bool) -> None:
        (self.held.add if held else self.held.discard)(name)

    def exclude(self, name: str, *, excluded: bool) -> None:
        self._seen.pop(name, None)
        labels = self.nodes[name]["metadata"]["labels"]
        if excluded:
            labels[EXCLUDE] = ""
        else:
            labels.pop(EXCLUDE, None)

    def person_cordons(self, name: str, *, cordoned: bool, keep: bool) -> None:
        self._seen.pop(name, None)
        self.nodes[name]["spec"]["unschedulable"] = cordoned
        annotations = self.nodes[name]["metadata"]["annotations"]
        if keep:
            annotations[KEEP_CORDONED] = ""
        else:
            annotations.pop(KEEP_CORDONED, None)

    def doctor(self, release: list[str]) -> list[str]:
        """The doctor clears what belongs to no live run."""
        self._seen.clear()
        runs = self.signs
        picture = doctor_rules.Picture(self._marked(), {"group": self.ledger}, runs, self.now)
        stale = [finding for finding in doctor_rules.examine(picture, release=release) if finding.stale]
        for finding in stale:
            if finding.node:
                claim = claim_rules.claim_of(self.nodes[finding.node])
                if claim is None or claim.run not in self._live():
                    self._clear(finding)
        for finding in stale:
            if finding.kind == "operation":
                self._close(finding.operation)
            elif finding.kind == "run":
                self.signs.pop(finding.run, None)
        return sorted(f"{finding.kind} {finding.node or finding.operation or finding.run}" for finding in stale)

    def _marked(self) -> dict[str, Object]:
        marks = {CORDON, CLAIM, OPERATION}
        return {
            name: item
            for name, item in self.nodes.items()
            if marks & set(node_rules.annotations_of(item)) or name in self.ledger.slots
        }

    def _clear(self, finding: doctor_rules.Finding) -> None:
        name = finding.node
        self._write(name, CLAIM, None)
        if finding.kind == "cordon":
            self.do_uncordon(name, run="")
        elif finding.kind == "record":
            record = self._record(name, OPERATION)
            if record and not record["result"] and record["id"] == finding.operation:
                self._write(name, OPERATION, {**record, "result": "failed"})
        elif finding.kind == "slot":
            slot = self.ledger.slots.get(name)
            if slot and (slot.operation, slot.run) == (finding.operation, finding.run):
                self.ledger = ledger_rules.release(self.ledger, name)

    def _close(self, operation: str) -> None:
        ended = operation_rules.end(self.ledger, operation, "", self._live(), complete=True, now=self.now)
        self.ledger = ledger_rules.with_entry(
            ended, {**ledger_rules.operation_entry(ended, operation), "unfinished": False}
        )

    # -- what runs do

    def do_begin(
        self, _node_name: str, *, run: str, operation: str, fresh: str, nodes: list[str], restart: bool
    ) -> dict[str, Any]:
        self.renew(run)
        request = StartRequest(run=run, new_id=fresh, operation=operation, nodes=frozenset(nodes), restart=restart)
        before = self.ledger
        made = operation_rules.begin(self._healed(self._live()), request, self.signs, self.now)
        self.ledger = made.ledger
        self._bury(before, made.operation)
        return {"operation": made.operation, "adopted": made.adopted, "takes_over": list(made.takes_over)}

    def do_end(self, _node_name: str, *, run: str, operation: str, complete: bool) -> Outcome | None:
        before = self.ledger
        runs = ledger_rules.operation_entry(before, operation).get("runs", [])
        if complete and silent_since(run, [item for item in self.signs.values() if item.id in runs], self.now):
            return Outcome("timed_out")
        live = self._live()
        healed = self._healed(live - {run})
        self.ledger = operation_rules.end(healed, operation, run, live, complete=complete, now=self.now)
        self._bury(before, operation)
        self.signs.pop(run, None)
        return None

    def _healed(self, live: frozenset[str]) -> Ledger:
        return ledger_rules.heal(
            self.ledger, {name: ledger_rules.member(item, "") for name, item in self.nodes.items()}, live
        )

    def _bury(self, before: Ledger, operation: str) -> None:
        left = ledger_rules.operation_entry(self.ledger, operation).get("runs", [])
        for run in ledger_rules.operation_entry(before, operation).get("runs", []):
            if run not in left:
                self.signs.pop(run, None)

    def do_look(self, name: str) -> dict[str, Any]:
        return self.look_at(name)

    def _look(self) -> _Read:
        live = self._live()
        recent = {item.id for item in self.signs.values() if item.age(self.now) < DEAD_AFTER + PASSING_FOR}
        return _Read(self.ledger, copy.deepcopy(self.nodes), live, frozenset(recent - live), to_text(self.now))

    def do_peek(self, name: str, *, run: str, operation: str) -> None:
        """A run reads ledger, runs and Nodes; between that and its write anything may happen."""
        if self._peeks:
            self.renew(run)
            self._read[run, name] = self._look()

    def do_slot(
        self, name: str, *, run: str, operation: str, policy: dict[str, Any], max_failed: int, count_others: bool
    ) -> Outcome | dict[str, Any]:
        self.renew(run)
        read = self._read.pop((run, name), None)
        if read is None or read.ledger is not self.ledger:
            # Another run wrote the ledger first, so this run reads everything again.
            read = self._look()
        agreed = Policy(**policy)
        request = Request(name, operation, run, read.now, max_failed, count_others, read.live, read.passing)
        members = [ledger_rules.member(item, agreed.topology_key) for item in read.nodes.values()]
        glance = ledger_rules.at_a_glance(self.ledger, agreed, request)
        decision = ledger_rules.decide(self.ledger, agreed, members, request)
        assert glance is None or decision.outcome == WAIT, "a glance says wait, a look says otherwise"
        if decision.outcome == GRANTED:
            self.ledger = decision.ledger
            gone = {item.name: not item.ready or item.unschedulable for item in members}
            return {"slot": slot_seen(self.ledger.slots[name]), "gone": gone}
        return Outcome("timed_out" if decision.outcome == WAIT else "refused")

    def do_mark(self, name: str, *, run: str, operation: str) -> None:
        self.ledger = ledger_rules.claim(self.ledger, name, run, operation)

    def do_release(self, name: str, *, run: str, operation: str) -> dict[str, Any] | Outcome:
        slot = self.ledger.slots.get(name)
        if slot and slot.operation != operation and slot.run in ("", run):
            return Outcome("refused")
        item = self.nodes[name]
        cordoned = cordoned_by_us(item)
        self.ledger = ledger_rules.give_back(self.ledger, name, run, claimant_of(item), cordoned=cordoned)
        return {"slot": slot_seen(self.ledger.slots.get(name))}

    def do_fail(self, name: str, *, run: str, operation: str, healthy: bool) -> dict[str, Any] | Outcome:
        slot = self.ledger.slots.get(name)
        if slot and slot.operation != operation and slot.run in ("", run):
            return Outcome("refused")
        member = replace(ledger_rules.member(self.nodes[name], ""), ready=healthy)
        claimant = claimant_of(self.nodes[name])
        self.ledger = ledger_rules.fail(self.ledger, member, operation, "failed", run=run, claimant=claimant)
        return {"slot": slot_seen(self.ledger.slots.get(name))}

    def do_claim(self, name: str, *, run: str, operation: str, restart: bool) -> Outcome | dict[str, Any]:
        self.renew(run)
        present = claim_rules.claim_of(self.nodes[name])
        wanted = Claim(run, operation, claim_rules.PURPOSE, to_text(self.now))
        if not claim_rules.may_take(present, wanted, self._live(), restart=restart):
            return Outcome("timed_out" if present and present.run in self._live() else "claimed")
        self._write(name, CLAIM, vars(wanted))
        return {"taken_from": present.run if present and present.run != run else None}

    def do_unclaim(self, name: str, *, run: str) -> None:
        self.renew(run)
        present = claim_rules.claim_of(self.nodes[name])
        if present and present.run == run:
            self._write(name, CLAIM, None)

    def do_note(
        self, name: str, *, run: str, operation: str, phase: str = "", result: str = "", claimed: bool = False
    ) -> None:
        item = self.nodes[name]
        params = {"operation": operation, "run": run, "phase": phase, "result": result, "claimed": claimed}
        if claimed:
            claim_rules.check(item, run)
        record, claim = self._record(name, OPERATION), claim_rules.claim_of(item)
        if node_operation._not_ours_to_write(record, claim, params):
            return
        self._write(name, OPERATION, node_operation_rules.advance(record, item, params, to_text(self.now)))
        if result and claim and claim.run == run:
            self._write(name, CLAIM, None)

    def do_cordon(self, name: str, *, run: str, operation: str) -> None:
        item = claim_rules.ours(self.nodes[name], run)
        record = self._record(name, CORDON)
        before = node_rules.unschedulable(item) and bool(record is None or record["unschedulable_before"])
        self._write(name, CORDON, {"owner": OWNER, "reason": operation, "unschedulable_before": before})
        item["spec"]["unschedulable"] = True

    def do_uncordon(self, name: str, *, run: str) -> None:
        item = claim_rules.ours(self.nodes[name], run)
        record = self._record(name, CORDON)
        if record:
            keep = record["unschedulable_before"] or KEEP_CORDONED in node_rules.annotations_of(item)
            item["spec"]["unschedulable"] = keep and node_rules.unschedulable(item)
            self._write(name, CORDON, None)

    def do_drain(self, name: str, *, run: str, operation: str) -> None:
        self.do_cordon(name, run=run, operation=operation)

    def do_free(self, name: str) -> Outcome:
        return Outcome("timed_out" if name in self.held else "")

    def do_reboot(self, name: str, *, run: str, operation: str, boot_id_before: str) -> Outcome | dict[str, Any]:
        """Only the gate; the fleet decides whether the node then goes down."""
        item = self.nodes[name]
        if node_rules.boot_id(item) != boot_id_before:
            return Outcome("failed")
        self.do_note(name, run=run, operation=operation, phase="reboot", claimed=True)
        return {"held": name in self.held}

    def do_back(self, name: str, *, boot_id_before: str) -> Outcome:
        return Outcome("" if is_back(self.nodes[name], boot_id_before) else "timed_out")

    def do_check(self, _name: str) -> None:
        """The user's own check; the fleet decides whether it fails."""

    # -- what both need

    def renew(self, run: str) -> None:
        now = to_text(self.now)
        self.signs[run] = Run(run, run, now, began=self.signs[run].began if run in self.signs else now)

    def live(self, run: str) -> bool:
        return self.signs[run].alive(self.now)

    def _live(self) -> frozenset[str]:
        return frozenset(run for run in self.signs if self.live(run))

    def _record(self, name: str, mark: str) -> dict[str, Any] | None:
        return node_rules.record(self.nodes[name], mark)

    def _write(self, name: str, mark: str, value: dict[str, Any] | None) -> None:
        annotations = self.nodes[name]["metadata"]["annotations"]
        if value is None:
            annotations.pop(mark, None)
        else:
            annotations[mark] = json.dumps(value)
