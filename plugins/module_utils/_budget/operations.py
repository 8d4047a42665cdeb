# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on a group's operations: start one, resume one that was left behind, end one."""

from __future__ import annotations

from collections.abc import Collection

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.names import NAMESPACE
from .._api.runner import Context, Params, Result
from .._api.watch import Changed, Deadline, Follower, retry_conflicts
from .._holds.rules import holds
from .._shared.hold_rules import FIELD_SELECTOR
from . import ledger_rules, operation_rules, run_rules
from . import ledger_store as store
from . import runs as run_leases
from .ledger_rules import FAILED, Ledger, Slot
from .operation_rules import StartDecision, StartRequest


def enter(context: Context, params: Params) -> Result:
    """Let a run enter an operation of a group: ``operation``, one that was left, or a new one with the id ``fresh``."""
    cluster = context.cluster
    store.check_group(params["group"])
    if params.get("forks"):
        _warn_of_few_forks(context, params)
    with run_leases.heartbeat(cluster, params["run"], params.get("holder") or ""):
        before, decision = retry_conflicts(lambda: _start(cluster, params))
        taken = _taken(cluster, decision.operation, params.get("nodes") or [])
    return {
        "changed": before != decision.ledger,
        "operation": decision.operation,
        "adopted": decision.adopted,
        "takes_over": list(decision.takes_over),
        "taken": taken,
    }


def _taken(cluster: Cluster, operation: str, nodes: Collection[str]) -> list[str]:
    """The nodes that have a slot of the operation in any group, without those that failed and are still down."""
    slots = [slot for slot in _slots(cluster) if slot.operation == operation and slot.node in nodes]
    found = {slot.node: cluster.find(paths.node(slot.node)) for slot in slots if slot.state == FAILED}
    down = {name for name, node in found.items() if node is None or not node_rules.ready(node)}
    return sorted({slot.node for slot in slots} - down)


def _slots(cluster: Cluster, but: str = "") -> list[Slot]:
    """The slots of all groups but one. Those of control-plane nodes are in a ledger of their own."""
    ledgers = [ledger for group, ledger in store.all_ledgers(cluster) if group != but]
    return [slot for ledger in ledgers for slot in ledger.slots.values()]


def _warn_of_few_forks(context: Context, params: Params) -> None:
    """Warn if more nodes wait for holders than there are forks: each takes a fork, so Ansible starts no other node."""
    nodes, forks = set(params.get("nodes") or []), params["forks"]
    leases = context.cluster.items(paths.LEASES, field_selector=FIELD_SELECTOR)
    held = {lease["metadata"]["name"] for lease in leases if lease["metadata"]["name"] in nodes and holds(lease)}
    if len(held) > forks:
        context.warn(
            f"{len(held)} of the nodes are held, and each node that waits for its holders takes one of {forks} forks. "
            f"Until then the other nodes do not start. Use --forks {len(held)} or more."
        )


def _start(cluster: Cluster, params: Params) -> tuple[Ledger, StartDecision]:
    config_map = store.load(cluster, params["group"])
    before = store.ledger_of(config_map)
    request = StartRequest(
        run=params["run"],
        new_id=params.get("fresh") or "",
        operation=params.get("operation") or "",
        nodes=frozenset(params.get("nodes") or []),
        restart=params["restart"],
        adopt_within=params["adopt_within"],
    )
    runs = {run.id: run for run in run_leases.all_runs(cluster)}
    now = cluster.now()
    live = {run.id for run in runs.values() if run.alive(now)}
    down = {
        name
        for group, ledger in store.all_ledgers(cluster)
        if group != params["group"]
        for name, slot in _healed(cluster, ledger, live).slots.items()
        if slot.state == FAILED
    }
    decision = operation_rules.begin(_healed(cluster, before, live), request, runs, now, down)
    if decision.ledger != before:
        store.store(cluster, params["group"], config_map, decision.ledger)
    return before, decision


def _healed(cluster: Cluster, ledger: Ledger, live: Collection[str]) -> Ledger:
    doubtful = [name for name, slot in ledger.slots.items() if slot.state == FAILED or slot.run not in live]
    nodes = {name: cluster.find(paths.node(name)) for name in doubtful}
    members = {name: ledger_rules.member(node, "") for name, node in nodes.items() if node}
    return ledger_rules.heal(ledger, members, live, nodes.keys() - members.keys())


def leave(cluster: Cluster, params: Params) -> None:
    """Let a run leave an operation of a group, which ends it if no other run is in it."""

    def attempt() -> tuple[Ledger, Ledger]:
        config_map = store.load(cluster, params["group"])
        before = store.ledger_of(config_map)
        live = run_leases.live_ids(cluster)
        after = operation_rules.end(
            _healed(cluster, before, live - {params["run"]}),
            params["operation"],
            params["run"],
            live,
            complete=params["complete"],
            done=params.get("done"),
            undone=params.get("undone") or (),
            postponed=params.get("postponed") or (),
            elsewhere=_slots(cluster, but=params["group"]),
            now=cluster.now(),
        )
        store.store(cluster, params["group"], config_map, after)
        return before, after

    store.check_group(params["group"])
    if params["complete"]:
        _await_silent(cluster, params)
    before, after = retry_conflicts(attempt)
    _delete_dead_runs(cluster, before, after, params["operation"])
    run_leases.end(cluster, params["run"])


def _await_silent(cluster: Cluster, params: Params) -> None:
    """Wait until runs of the operation that were silent since this run began are dead, or give a sign of life.

    If a user starts the same command again right after a crash, and it ends soon, the dead run still counts as alive.
    Without this wait the operation would stay open, and the next run would resume it with nothing to do.
    """
    with run_leases.heartbeat(cluster, params["run"]):
        while silent := _silent(cluster, params):
            pause = Deadline(run_leases.until_one_may_be_dead(cluster))
            for news in Follower(cluster, paths.leases(NAMESPACE), pause):
                if isinstance(news, Changed) and run_rules.read(news.object).id in silent:
                    break


def _silent(cluster: Cluster, params: Params) -> list[str]:
    ledger = store.ledger_of(store.load(cluster, params["group"]))
    ids = ledger_rules.operation_entry(ledger, params["operation"]).get("runs", [])
    return run_rules.silent_since(
        params["run"], [run for run in run_leases.all_runs(cluster) if run.id in ids], cluster.now()
    )


def _delete_dead_runs(cluster: Cluster, before: Ledger, after: Ledger, operation: str) -> None:
    """Delete the Leases of the runs that the operation has dropped: they were dead."""
    known = set(ledger_rules.operation_entry(before, operation).get("runs", []))
    for run in sorted(known - set(ledger_rules.operation_entry(after, operation).get("runs", []))):
        run_leases.end_dead(cluster, run)
