# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on operations: begin one, go on with one that was left behind, end one."""

from __future__ import annotations

from collections.abc import Collection

from . import _ledger, _operation_book, _run
from . import _ledger_store as store
from . import _paths as paths
from ._cluster import Cluster
from ._errors import InvalidInput
from ._face import Context, Params, Result
from ._hold import FIELD_SELECTOR, holds
from ._ledger import FAILED, Ledger
from ._names import NAMESPACE
from ._operation_book import Beginning, Wish
from ._watch import Changed, Deadline, Follower, retry_conflicts


def reboot_operation(context: Context, params: Params) -> Result:
    """Enter or leave an operation of a group in the name of a run."""
    store.check_group(params["group"])
    if params["state"] == "begun":
        if params.get("forks"):
            _warn_of_few_forks(context, params)
        return _begin(context.cluster, params)
    return _end(context.cluster, params)


def _begin(cluster: Cluster, params: Params) -> Result:
    if not params.get("operation") and not params.get("fresh"):
        raise InvalidInput("reboot_operation needs operation, or fresh: the id of a new one.")
    with _run.heartbeat(cluster, params["run"], params.get("holder") or ""):
        before, beginning = retry_conflicts(lambda: _enter(cluster, params))
    _bury(cluster, before, beginning.ledger, beginning.operation)
    return {
        "changed": before != beginning.ledger,
        "operation": beginning.operation,
        "adopted": beginning.adopted,
        "takes_over": list(beginning.takes_over),
    }


def _warn_of_few_forks(context: Context, params: Params) -> None:
    """Each node whose holders are waited for takes a fork, and those behind it are not looked at meanwhile."""
    nodes, forks = set(params.get("nodes") or []), params["forks"]
    leases = context.cluster.items(paths.LEASES, field_selector=FIELD_SELECTOR)
    held = {lease["metadata"]["name"] for lease in leases if lease["metadata"]["name"] in nodes and holds(lease)}
    if len(held) > forks:
        context.warn(
            f"{len(held)} of the nodes are held, and each that is waited for takes one of {forks} forks: the others "
            f"are not looked at meanwhile. Start it with --forks {len(held)} or more."
        )


def _enter(cluster: Cluster, params: Params) -> tuple[Ledger, Beginning]:
    config_map = store.load(cluster, params["group"])
    before = store.ledger_of(config_map)
    wish = Wish(
        run=params["run"],
        fresh=params.get("fresh") or "",
        operation=params.get("operation") or "",
        nodes=frozenset(params.get("nodes") or []),
        restart=params["restart"],
        adopt_within=params["adopt_within"],
    )
    runs = {run.id: run for run in _run.all_runs(cluster)}
    now = cluster.now()
    live = {run.id for run in runs.values() if run.alive(now)}
    beginning = _operation_book.begin(_healed(cluster, before, live), wish, runs, now)
    if beginning.ledger != before:
        store.store(cluster, params["group"], config_map, beginning.ledger)
    return before, beginning


def _healed(cluster: Cluster, ledger: Ledger, live: Collection[str]) -> Ledger:
    doubtful = [name for name, slot in ledger.slots.items() if slot.state == FAILED or slot.run not in live]
    nodes = (cluster.find(paths.node(name)) for name in doubtful)
    return _ledger.heal(ledger, {node["metadata"]["name"]: _ledger.member(node, "") for node in nodes if node}, live)


def _end(cluster: Cluster, params: Params) -> Result:
    def attempt() -> tuple[Ledger, Ledger]:
        config_map = store.load(cluster, params["group"])
        before = store.ledger_of(config_map)
        live = _run.live_ids(cluster)
        after = _operation_book.end(
            _healed(cluster, before, live - {params["run"]}),
            params["operation"],
            params["run"],
            live,
            complete=params["complete"],
            now=cluster.now(),
        )
        store.store(cluster, params["group"], config_map, after)
        return before, after

    if not params.get("operation"):
        raise InvalidInput("reboot_operation needs operation, the id of the one that ends.")
    if params["complete"] and not cluster.dry_run:
        _await_silent(cluster, params)
    before, after = retry_conflicts(attempt)
    _bury(cluster, before, after, params["operation"])
    _run.end(cluster, params["run"])
    return {"changed": before != after, "operation": params["operation"], "adopted": False, "takes_over": []}


def _await_silent(cluster: Cluster, params: Params) -> None:
    """Wait until runs of the operation that were silent since we began are dead, or give a sign of life.

    Where the same command is started again right after a crash and is done soon, the dead run still counts as alive. If
    it was left at that, the operation would stay open, and whoever comes next would go on with it, with nothing to do.
    """
    with _run.heartbeat(cluster, params["run"]):
        while silent := _silent(cluster, params):
            pause = Deadline(_run.until_one_may_be_dead(cluster))
            for news in Follower(cluster, paths.leases(NAMESPACE), pause):
                if isinstance(news, Changed) and _run.read(news.object).id in silent:
                    break


def _silent(cluster: Cluster, params: Params) -> list[str]:
    ledger = store.ledger_of(store.load(cluster, params["group"]))
    ids = _ledger.operation_entry(ledger, params["operation"]).get("runs", [])
    return _run.silent_since(params["run"], [run for run in _run.all_runs(cluster) if run.id in ids], cluster.now())


def _bury(cluster: Cluster, before: Ledger, after: Ledger, operation: str) -> None:
    """Take away what is left of the runs that the operation has dropped: they were dead."""
    known = set(_ledger.operation_entry(before, operation).get("runs", []))
    for run in sorted(known - set(_ledger.operation_entry(after, operation).get("runs", []))):
        _run.end(cluster, run)
