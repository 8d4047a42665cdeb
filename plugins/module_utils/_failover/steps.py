# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Begin or resume a failover or the way back: check that it may be done, and claim the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from .._api import node_rules, paths
from .._api.errors import HoldfastError, InvalidInput, NotFound, Refused
from .._api.names import NAMESPACE
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.times import to_text
from .._api.watch import Deadline, Follower
from .._budget import claim_rules, claims, gate, run_rules, runs
from .._budget import ledger_store as store
from .._budget.claim_rules import Claimed
from .._budget.ledger_rules import ACTIVE
from .._budget.lifecycle import Report
from .._budget.lifecycle_rules import STARTS, Work, others_words
from .._fencing import evidence_rules
from .._fencing.still_down_rules import down_since
from .._reboot import quorum
from .._reboot.quorum_rules import is_control_plane
from . import audit, audit_rules, rules
from . import record as writer
from . import taint_rules as out_of_service
from .confirm import again_if_ready_changes, confirm
from .facts_rules import ATTESTATION
from .rules import DONE, FENCE

_ETCD_NAMESPACE = "kube-system"


Before = Callable[[Object, Mapping[str, Any]], None]


def failover_step(context: Context, params: Params, before: Before = lambda node, known: None) -> Result:
    """Claim the node, and return the next step of its failover or recovery.

    Args:
        context: The cluster.
        params: The options.
        before: Looks at what else may refuse to fence the node, before anything is written; or to recover it, before
            anything is recorded, with ``boot_id`` and ``facts`` of its failover.

    Returns:
        ``step``, one of the steps of :mod:`.rules`; ``operation``, ``record`` and ``facts`` of the failover;
        ``sent``, whether the machine may have been requested to switch off; ``stated``, which of these facts are
        also in the history, for a failover that is resumed or recovered;
        ``exists``, whether there is a Node; ``resumed``, whether an earlier run started it; ``taken_from``, the dead
        run that had the claim; ``maintained_by``, a text about another writer that maintains the node; ``boot_id``;
        ``boot_id_before``, the boot ID that must have changed when the node is back; ``now``, and ``waited`` in
        seconds.
    """
    if not params["run"].strip():
        raise InvalidInput("run must not be empty. Name the run that works on the node.")
    work = _FailoverStep(context, params, before)
    return work.recover() if params["direction"] == rules.RECOVER else work.fail_over()


class _FailoverStep:
    def __init__(self, context: Context, params: Params, before: Before) -> None:
        self._context, self._params, self._before = context, params, before
        self._cluster = context.cluster
        self._name: str = params["name"]
        self._run: str = params["run"]
        self._deadline = Deadline(None)
        self._taken_from: str | None = None

    # -- there

    def fail_over(self) -> Result:
        found = self._cluster.find(paths.node(self._name))
        if found is None and (done := self._deleted_before()):
            return done
        node = found or read_node(self._cluster, self._name)
        record, _entry, step = self._read_for_failover(node)
        if step == DONE:
            return self._result(node, record, step)
        if step == FENCE:
            self._check(node, record)
            self._before(node, {})
            # What an earlier run saw may be old. A node that stayed down is confirmed at once.
            if rules.seconds_to_confirm(node, self._params["confirm_seconds"], self._cluster.now()) > 0:
                node = again_if_ready_changes(lambda: self._confirm(read_node(self._cluster, self._name)))
                record, _entry, step = self._read_for_failover(node)
                if step == FENCE:
                    self._check(node, record)
        confirmed = down_since(node) if step == FENCE else ""
        try:
            self._claim(record, node)
        except Claimed as error:
            # A caller that waits for the claim first checks what the step needs.
            error.fields["step"] = step
            raise
        return self._claimed(lambda: again_if_ready_changes(lambda: self._begin_there(confirmed)))

    def _begin_there(self, confirmed: str) -> Result:
        """Look again under the claim, because another run may have worked on the node, and take the record over."""
        node = read_node(self._cluster, self._name)
        record, entry, step = self._read_for_failover(node)
        if step == FENCE:
            with runs.heartbeat(self._cluster, self._run):
                node = self._confirm(node, confirmed)
            record, entry, step = self._read_for_failover(node)
        if step == FENCE:
            self._check(node, record)
        return _with_history(self._begin(node, record, step), entry)

    def _read_for_failover(self, node: Object) -> tuple[dict[str, Any] | None, dict[str, Any] | None, str]:
        """Return the record of the failover to resume, its entry in the history, and the step."""
        record, history = rules.open_record(node), audit.read(self._cluster)
        entry = audit_rules.entry_of(history, self._name, record["id"]) if record else None
        lost = audit_rules.to_resume(history, self._name, node_rules.boot_id(node))
        if lost and (record is None or record["id"] != lost["operation"]):
            record, entry = audit_rules.restored(lost, run=self._run, now=self._cluster.now()), lost
        elif entry and audit_rules.is_over(entry):
            # A run was killed before it removed the record, or the node has written the id of an earlier failover.
            record = entry = None
        record = _with_way(record, entry)
        return record, entry, rules.next_step(node, record)

    def _deleted_before(self) -> Result | None:
        """Return the result for a Node that its failover deleted; ``None`` if it did not delete it."""
        entry = audit_rules.last_of(audit.read(self._cluster), self._name)
        if entry is None or not audit_rules.deleted(entry):
            return None
        return {**self._empty_result(), "exists": False, "operation": entry["operation"]}

    def _begin(self, node: Object, record: dict[str, Any] | None, step: str) -> Result:
        """Take over the record, unless nothing is left to do."""
        if step == DONE:
            return self._result(node, record, step)
        waited = self._deadline.elapsed
        node, taken = writer.take_over(self._context, self._params, node, record, step=step, waited=waited)
        return {**self._result(node, taken, step), "resumed": record is not None}

    def _confirm(self, node: Object, confirmed: str = "") -> Object:
        return confirm(self._context, node, self._params["confirm_seconds"], confirmed)

    def _check(self, node: Object, record: Mapping[str, Any] | None) -> None:
        slots = [(group, slot) for group, ledger in store.all_ledgers(self._cluster) for slot in ledger.slots.values()]
        live = runs.live_ids(self._cluster) if slots else frozenset()
        mine = [(group, slot) for group, slot in slots if slot.node == self._name]
        rules.check_begin(node, record, out_of_service.live_slot(mine, live, self._run))
        counted = self._cluster.items(paths.NODES, label_selector=self._params.get("selector") or "")
        # A rolling reboot takes nodes down on purpose.
        rebooting = {slot.node for _group, slot in slots if slot.state == ACTIVE and slot.run in live}
        nodes = {
            node_rules.name(item): node_rules.ready(item) or node_rules.name(item) in rebooting for item in counted
        }
        rules.check_storm(self._name, nodes, self._params["max_unhealthy"])
        if self._params["fence"] != ATTESTATION:
            # The selector may leave out the other Node of a machine.
            evidence_rules.check_one_node(node, self._cluster.items(paths.NODES))
        self._check_quorum(node)
        # Before the claim is ours, there is none, or a dead run has it.
        gate.check(self._cluster, self._name, override_holds=self._params["override_holds"], run=_claimant(node))

    def _check_quorum(self, node: Object) -> None:
        etcd = {"name": self._name, "namespace": _ETCD_NAMESPACE, "selector": self._params["etcd_selector"]}
        without = quorum.look(self._cluster, etcd).quorum
        # A member of etcd may run on a node without the label of the control plane.
        if is_control_plane(node) or self._name in without.members:
            rules.check_quorum(self._name, without, asked_elsewhere=self._params["quorum_asked"])

    # -- back

    def recover(self) -> Result:
        node = self._cluster.find(paths.node(self._name))
        if node is None:
            return self._recover_deleted_node()
        record, _entry, step = self._read_for_recovery(node)
        if step == DONE:
            return self._result(node, record, step)
        self._claim(record, node)
        return self._claimed(self._begin_back)

    def _begin_back(self) -> Result:
        node = read_node(self._cluster, self._name)
        record, entry, step = self._read_for_recovery(node)
        if record:
            self._before(node, record)
        return _with_history(self._begin(node, record, step), entry)

    def _read_for_recovery(self, node: Object) -> tuple[dict[str, Any] | None, dict[str, Any] | None, str]:
        """Return the record of the failover that the node is not back from, its entry in the history, and the step."""
        record, history = rules.record_of(node), audit.read(self._cluster)
        entry = audit_rules.entry_of(history, self._name, record["id"]) if record else None
        # The Node may have been deleted and created again, or its record removed or written by the node.
        lost = audit_rules.unfinished_of(history).get(self._name)
        if lost and (entry is None or audit_rules.is_over(entry) or _sent_nothing(entry, lost)):
            record, entry = audit_rules.restored(lost, run=self._run, now=self._cluster.now()), lost
        record = _with_way(record, entry)
        return record, entry, rules.next_recovery(node, record)

    def _recover_deleted_node(self) -> Result:
        """Return what to do for a Node that was deleted after its failover: its host may still be kept off.

        Raises:
            Refused: Its machine is another node now.
        """
        history = audit.read(self._cluster)
        entry = audit_rules.last_sent_of(history, self._name)
        if entry is None:
            raise NotFound(
                f"There is no Node {self._name}, and no record of a failover that switched it off. Check the name.",
                node=self._name,
            )
        if audit_rules.is_over(entry):
            return {**self._empty_result(), "exists": False, "operation": entry["operation"]}
        if later := audit_rules.later_of_machine(history, entry):
            raise Refused(
                f"Node {self._name} was deleted after its failover {entry['operation']}, and its machine has been node "
                f"{later['node']} since: failover {later['operation']} switched it off again. Nothing was switched on. "
                f"Recover node {later['node']}.",
                node=later["node"],
                why="another_node",
            )
        stated = audit_rules.way_of(entry)
        # It names the machine that was proven off.
        evidence = {"evidence": entry["evidence"]} if entry.get("evidence") else {}
        return {
            **self._empty_result(),
            "changed": True,
            "step": rules.POWER_ON,
            "exists": False,
            "operation": entry["operation"],
            "facts": {**stated, **evidence},
            "stated": stated,
        }

    # -- both

    def _claim(self, record: Mapping[str, Any] | None, node: Object) -> None:
        """Take the claim; wait only until it is known whether the run that holds it is live.

        Raises:
            Claimed: It is.
        """
        operation = record["id"] if record else rules.operation_of(self._name, self._cluster.now())
        before = claim_rules.claim_of(node)
        try:
            with runs.heartbeat(self._cluster, self._run, self._params.get("holder") or ""):
                self._wait_for_claim(operation)
        except HoldfastError:
            # The answer to the claim may be lost.
            self._give_up()
            raise
        self._taken_from = before.run if before and before.run != self._run else None
        resumes = before is not None and before.purpose in (rules.FAIL_OVER, rules.RECOVER)
        if resumes and self._taken_from and not self._context.check_mode:
            # This run finishes its work. A node can write the name of a live run into its claim, whose Lease stays.
            runs.end_dead(self._cluster, self._taken_from)

    def _claimed(self, begin: Callable[[], Result]) -> Result:
        """Begin under the claim, and return the claim if that fails, or if nothing is left to do."""
        try:
            found = begin()
        except HoldfastError as error:
            error.message += self._give_up()
            raise
        if found["step"] == DONE:
            self._release()
        return found

    def _wait_for_claim(self, operation: str) -> None:
        first, direction = "", self._params["direction"]
        work = Work(direction, operation, self._run)
        report = Report(self._context, STARTS, work) if self._params.get("lifecycle_conditions") else None
        patience = Deadline(self._params["claim_timeout"])
        while True:
            try:
                claims.take(
                    self._cluster,
                    self._name,
                    run=self._run,
                    operation=operation,
                    purpose=direction,
                    restart=True,
                    report=report,
                )
                return
            except Claimed as error:
                run = str((error.fields.get("claim") or {}).get("run") or "")
                sign = self._sign_of(run)
                if (first and sign not in ("", first)) or patience.passed or self._context.check_mode:
                    # It has given a sign of life since our first attempt, so it is at work.
                    raise
                first = first or sign
                self._await_sign(run, first, patience)

    def _sign_of(self, run: str) -> str:
        lease = self._cluster.find(paths.lease(NAMESPACE, run_rules.lease_name(run)))
        return str((lease.get("spec") or {}).get("renewTime") or "") if lease else ""

    def _await_sign(self, run: str, known: str, patience: Deadline) -> None:
        """Wait until the run gives a sign of life, ends, or is dead."""
        pause = Deadline(min(patience.left, runs.until_one_may_be_dead(self._cluster)))
        selector = f"metadata.name={run_rules.lease_name(run)}"
        for _news in Follower(self._cluster, paths.leases(NAMESPACE), pause, field_selector=selector):
            if self._sign_of(run) != known:
                return

    def _release(self) -> None:
        if not self._context.check_mode:
            claims.give_back(self._cluster, self._name, run=self._run, context=self._context)
            self._end()

    def _give_up(self) -> str:
        """Return the claim after a failure. Return a sentence for its message if the claim stays."""
        why_not = ""
        if not self._context.check_mode:
            try:
                claims.give_back(self._cluster, self._name, run=self._run, context=self._context)
            except HoldfastError as error:
                why_not = f" The claim stays, and the next run takes it over: {error.message}"
        with suppress(HoldfastError):
            self._end()
        return why_not

    def _end(self) -> None:
        if not self._context.check_mode:
            runs.end(self._cluster, self._run)

    def _empty_result(self) -> Result:
        return {
            "changed": False,
            "step": DONE,
            "exists": True,
            "resumed": False,
            "taken_from": None,
            "operation": "",
            "record": None,
            "facts": {},
            "sent": False,
            "stated": {},
            "boot_id": "",
            "boot_id_before": "",
            "maintained_by": "",
            "now": to_text(self._cluster.now()),
            "waited": round(self._deadline.elapsed, 3),
        }

    def _result(self, node: Object, record: Mapping[str, Any] | None, step: str) -> Result:
        return {
            **self._empty_result(),
            "changed": step != DONE,
            "step": step,
            "taken_from": self._taken_from,
            "operation": record["id"] if record else "",
            "record": record,
            "facts": dict(record["facts"]) if record else {},
            "sent": record is not None and record["phase"] != rules.CLAIM,
            "boot_id": node_rules.boot_id(node),
            "boot_id_before": rules.boot_id_before(node, record),
            "maintained_by": others_words(node),
        }


def _sent_nothing(entry: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a failover has sent nothing, so that its recovery has to look after an earlier one.

    After another boot, the node may be other hardware. But a key keeps a host off until it is removed.
    """
    here = entry["boot_id"] == earlier["boot_id"] or bool(earlier.get("key"))
    return here and not audit_rules.may_have_sent(entry)


def _with_way(record: dict[str, Any] | None, entry: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the record with what the history says of the power-off, because a node can write its own record."""
    if record is None or (entry is None and record["phase"] != rules.CLAIM):
        return record
    others = {name: value for name, value in record["facts"].items() if name not in rules.WAY}
    # Nothing is sent before the history has the failover.
    if entry is not None and audit_rules.may_have_sent(entry):
        # If the history was lost, only the record is left, and the user must confirm it.
        way = audit_rules.way_of(entry) or audit_rules.way_of(record["facts"])
    else:
        # A person has switched the machine off before.
        way = {"fence": ATTESTATION} if record["facts"].get("fence") == ATTESTATION else {}
    return {**record, "facts": {**others, **way}}


def _with_history(found: Result, entry: Mapping[str, Any] | None) -> Result:
    """Add what the history says of the power-off, because a node can write its own record."""
    if entry is None:
        return found
    return {
        **found,
        "sent": found["sent"] or audit_rules.may_have_sent(entry),
        "stated": audit_rules.sent_way(entry),
    }


def _claimant(node: Object) -> str:
    claim = claim_rules.claim_of(node)
    return claim.run if claim else ""
