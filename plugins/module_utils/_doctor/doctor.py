# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at all our objects in a cluster, and clear those that belong to no live run."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import HoldfastError, NotFound, Refused, Unreachable
from .._api.names import CLAIM, CORDON, FAILOVER, LIFECYCLE_CONDITIONS, OPERATION, OPT_OUTS
from .._api.runner import Context, Params, Result
from .._api.times import to_text
from .._api.watch import retry_conflicts
from .._budget import claim_rules, claims, ledger_rules, lifecycle_rules
from .._budget import ledger_store as store
from .._budget import runs as run_leases
from .._budget.ledger_rules import Ledger
from .._budget.lifecycle import Report
from .._budget.operation_rules import end
from .._drain import cordon, cordon_rules
from .._failover.taint_rules import taint_of
from .._nodes import health_checks, opt_outs
from .._shared.bounds import some
from . import related_objects, report_rules
from .rules import ROLE_OWNER, abandoned, examine
from .snapshot_rules import Finding, Scope, Snapshot

_MARKS = (CORDON, OPT_OUTS, CLAIM, OPERATION, FAILOVER, LIFECYCLE_CONDITIONS)


def doctor(context: Context, params: Params) -> Result:
    """Report, and with ``state: cleared`` clear what is stale."""
    snapshot = related_objects.seen(context, take_snapshot(context.cluster))
    scope = scope_of(context, params, snapshot)
    _warn_of_unknown(context, {*(params.get("nodes") or ()), *params["release"]}, snapshot)
    findings = examine(replace(snapshot, scope=scope), release=params["release"])
    stale = [finding for finding in findings if finding.stale]
    clearing, failure = _Clearing(context, params["release"]), None
    if params["state"] == "cleared" and stale:
        try:
            clearing.clear(stale)
        except HoldfastError as error:
            failure = error
    left = [finding for finding in stale if finding not in clearing.cleared]
    result = {
        "changed": bool(clearing.cleared),
        "findings": [{**finding.to_data(), "cleared": finding in clearing.cleared} for finding in findings],
        "stale": len(stale),
        "report": report_rules.lines(
            findings, clearing.cleared, clearing=params["state"] == "cleared", check_mode=context.check_mode
        ),
        "diff": {
            "before": {"stale": [finding.to_data() for finding in stale]},
            "after": {"stale": [finding.to_data() for finding in left]},
        },
    }
    if failure:
        # The report says what was cleared until then.
        failure.fields.update(result)
        raise failure
    if clearing.troubles:
        raise Refused(
            f"Not everything could be cleared: {' '.join(clearing.troubles)} The other stale objects are cleared.",
            **result,
        )
    return result


def take_snapshot(cluster: Cluster, only: str = "") -> Snapshot:
    """Return the Nodes that have our marks or a slot (or ``only`` this one), all ledgers and all runs."""
    ledgers = dict(store.all_ledgers(cluster))
    if only:
        node = cluster.find(paths.node(only))
        nodes, names = {only: node} if node else {}, None
    else:
        wanted = {name for ledger in ledgers.values() for name in ledger.slots}
        nodes, names = {}, set()
        for node in cluster.items(paths.NODES):
            name = node_rules.name(node)
            names.add(name)
            marked = any(mark in node_rules.annotations_of(node) for mark in _MARKS)
            if name in wanted or marked or taint_of(node):
                nodes[name] = cordon_rules.slim(node)
    runs = {run.id: run for run in run_leases.all_runs(cluster)}
    return Snapshot(nodes, ledgers, runs, cluster.now(), names=names)


def scope_of(context: Context, params: Params, snapshot: Snapshot) -> Scope:
    """Return what to look at, from the options ``nodes`` and ``group``."""
    group, nodes = params.get("group") or "", params.get("nodes")
    if nodes is not None:
        return Scope(frozenset(nodes), group, operations=False)
    if not group:
        return Scope()
    store.check_group(group)
    ledger = snapshot.ledgers.get(group)
    if ledger is None:
        context.warn(f"There is no group {group}. Known groups: {', '.join(sorted(snapshot.ledgers)) or 'none'}.")
        return Scope(frozenset(), group)
    # Before its first slot, no run has said which nodes the group has.
    selector = ledger.policy.selector if ledger.policy else None
    members = context.cluster.items(paths.NODES, label_selector=selector) if selector is not None else ()
    return Scope(frozenset({node_rules.name(node) for node in members} | set(ledger.slots)), group)


def _warn_of_unknown(context: Context, names: Collection[str], snapshot: Snapshot) -> None:
    slots = {name for ledger in snapshot.ledgers.values() for name in ledger.slots}
    unknown = set(names) - set(snapshot.names or ()) - slots - set(snapshot.failovers)
    if unknown:
        context.warn(f"No Node, slot or failover has these names: {some(sorted(unknown))}. Check the spelling.")


class _Clearing:
    """Clears what is stale, each node under our own claim, so that no run begins to work on it meanwhile.

    A run may be live again since the first look. So each object is checked again directly before it is cleared.

    Attributes:
        cleared: What is cleared now.
        troubles: What could not be cleared, and why.
    """

    def __init__(self, context: Context, release: Collection[str]) -> None:
        self._context = context
        self._cluster = context.cluster
        self._release = release
        self._own_run = f"doctor/{to_text(context.cluster.now())}"
        self.cleared: set[Finding] = set()
        self.troubles: list[str] = []

    def clear(self, stale: list[Finding]) -> None:
        try:
            with run_leases.heartbeat(self._cluster, self._own_run, "doctor"):
                on_nodes = [finding for finding in stale if finding.node and finding.kind != "conditions"]
                for name in sorted({finding.node for finding in on_nodes}):
                    of_node = [finding for finding in on_nodes if finding.node == name]
                    with self._apart(f"Node {name}"):
                        self._clear_node(name, of_node)
                others: dict[str, Callable[[Finding], bool]] = {
                    "conditions": self._remove_conditions,
                    "operation": self._end_operation,
                    "pause": self._resume_checks,
                    "run": self._end_run,
                }
                for finding in stale:
                    if finding.kind in others:
                        named = finding.node or finding.operation or finding.run
                        with self._apart(f"{finding.kind.capitalize()} of {named}"):
                            self._note(finding, others[finding.kind](finding))
        finally:
            run_leases.end(self._cluster, self._own_run)

    @contextmanager
    def _apart(self, what: str) -> Iterator[None]:
        """Keep a refusal of one object from the others: an admission policy may deny some writes."""
        try:
            yield
        except Unreachable:
            raise
        except HoldfastError as error:
            self.troubles.append(f"{what}: {error.message}")

    def _note(self, finding: Finding, gone: bool) -> None:
        if gone:
            self.cleared.add(finding)

    def _clear_node(self, name: str, stale: list[Finding]) -> None:
        if not self._claim(name):
            return
        steps: dict[str, Callable[[Finding], bool]] = {
            "cordon": self._uncordon,
            "opt_outs": self._restore_opt_outs,
            # We have taken over the claim of the dead run, and release it when we are done with the node.
            "claim": lambda finding: True,
            "record": self._close_record,
            "slot": self._release_slot,
        }
        try:
            still = {finding.about for finding in self._look_again(name) if finding.stale}
            for finding in stale:
                if finding.kind == "claim" or finding.about in still:
                    # What is on a Node is deleted with it.
                    with suppress(NotFound):
                        self._note(finding, steps[finding.kind](finding))
        finally:
            claims.give_back(self._cluster, name, run=self._own_run)

    def _claim(self, name: str) -> bool:
        """Return whether we may clear the node: not if its run is live again, but also if the Node no longer exists."""
        try:
            claims.take(self._cluster, name, run=self._own_run, operation="doctor", purpose="doctor", restart=True)
        except claim_rules.Claimed:
            return False
        except NotFound:
            return True
        return True

    def _look_again(self, name: str) -> list[Finding]:
        """Return what is on one node now; our own work on it does not count."""
        snapshot = take_snapshot(self._cluster, only=name)
        others = {run.id: run for run in snapshot.runs.values() if run.id != self._own_run}
        return examine(replace(snapshot, runs=others), release=self._release)

    @property
    def _claimant(self) -> str:
        """The run that must hold the claim; in check mode none, because it was not really taken."""
        return "" if self._context.check_mode else self._own_run

    def _uncordon(self, finding: Finding) -> bool:
        cordon.give_back(self._cluster, finding.node, ROLE_OWNER, run=self._claimant)
        return True

    def _restore_opt_outs(self, finding: Finding) -> bool:
        try:
            opt_outs.put_back(self._context, finding.node, run=self._claimant)
        except HoldfastError as error:
            # The management cluster may be another one: a refusal there must not prevent the rest.
            self.troubles.append(f"The opt-outs of node {finding.node}: {error.message}")
            return False
        return True

    def _close_record(self, finding: Finding) -> bool:
        def attempt() -> bool:
            node = claim_rules.require_claim(self._cluster.get(paths.node(finding.node)), self._claimant)
            record = node_rules.record(node, OPERATION)
            if not record or record.get("result") or record.get("id") != finding.operation:
                return False
            metadata = {
                "resourceVersion": node["metadata"]["resourceVersion"],
                "annotations": {OPERATION: json.dumps(abandoned(record), sort_keys=True)},
            }
            self._cluster.merge(paths.node(finding.node), {"metadata": metadata})
            return True

        return bool(retry_conflicts(attempt))

    def _remove_conditions(self, finding: Finding) -> bool:
        """Remove our conditions. This needs no claim: it changes nothing that a run decides by."""

        def attempt() -> bool:
            node = self._cluster.find(paths.node(finding.node))
            setter = lifecycle_rules.run_of(node) if node else None
            if node is None or setter is None:
                return True
            if setter != finding.run or setter in run_leases.live_ids(self._cluster):
                return False
            Report(self._context, lifecycle_rules.ENDS, lifecycle_rules.Work("doctor")).write(node, {})
            return True

        return bool(retry_conflicts(attempt))

    def _resume_checks(self, finding: Finding) -> bool:
        return health_checks.resume_one(self._cluster, finding.operation, finding.run)

    def _release_slot(self, finding: Finding) -> bool:
        def release(ledger: Ledger) -> Ledger:
            slot = ledger.slots.get(finding.node)
            same = slot is not None and (slot.operation, slot.run) == (finding.operation, finding.run)
            return ledger_rules.release(ledger, finding.node) if same else ledger

        return self._change(finding.group, release)

    def _end_operation(self, finding: Finding) -> bool:
        # In check mode, cleared slots are still in the ledger.
        cleared = {item.node for item in self.cleared if item.kind == "slot" and item.group == finding.group}

        def close(ledger: Ledger) -> Ledger:
            live = run_leases.live_ids(self._cluster)
            known = next((item for item in ledger.operations if item["id"] == finding.operation), None)
            if known is None or live & set(known.get("runs", [])):
                return ledger
            if any(slot.operation == finding.operation for slot in ledger.slots.values() if slot.node not in cleared):
                return ledger
            ended = end(ledger, finding.operation, "", live, complete=True, now=self._cluster.now())
            entry = {**ledger_rules.operation_entry(ended, finding.operation), "unfinished": False}
            return ledger_rules.with_entry(ended, entry)

        return self._change(finding.group, close)

    def _change(self, group: str, change: Callable[[Ledger], Ledger]) -> bool:
        """Change a ledger by compare-and-swap; return whether it changed."""

        def attempt() -> bool:
            config_map = store.load(self._cluster, group)
            before = store.ledger_of(config_map)
            after = change(before)
            if after == before:
                return False
            store.store(self._cluster, group, config_map, after)
            return True

        return bool(retry_conflicts(attempt))

    def _end_run(self, finding: Finding) -> bool:
        return run_leases.end_dead(self._cluster, finding.run)
