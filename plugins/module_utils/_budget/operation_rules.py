# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operations of a group, in its ledger: runs start and end them, or die and leave them behind.

Rules only. An operation is open while it has a run that has not ended. It is unfinished if its last run did not do all
nodes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import inf
from typing import Any

from .._api.times import seconds_between
from .._shared.bounds import moment
from .ledger_rules import ACTIVE, FAILED, Ledger, Slot, operation_entry, with_entry
from .run_rules import DEAD_AFTER, Run

# Seconds after its last sign of life in which an operation can be resumed: a day and some hours, so that a nightly run
# resumes what the run of the night before left unfinished.
ADOPT_WITHIN = 93600
# How many nodes an operation names that its runs have not done.
KEPT_LEFT = 300
# The ids of fresh_id.
_FRESH = re.compile(r"reboot-\d{8}T\d{6}Z")


def fresh_id(now: datetime) -> str:
    """An id for a new operation that the user does not name."""
    return f"reboot-{now:%Y%m%dT%H%M%SZ}"


def is_fresh_id(operation: str) -> bool:
    """Whether the user has not named the operation. A workflow of AWX passes such an id from its plan to its jobs."""
    return _FRESH.fullmatch(operation) is not None


@dataclass(frozen=True)
class StartDecision:
    """How a run of this group starts.

    Attributes:
        operation: Id of the operation.
        adopted: Whether the operation already existed: an earlier run started it.
        takes_over: Nodes whose slots pass from dead runs to this one.
        ledger: What to store.
    """

    operation: str
    adopted: bool
    takes_over: tuple[str, ...]
    ledger: Ledger


@dataclass(frozen=True)
class StartRequest:
    """What a run asks for when it starts.

    Attributes:
        run: Its id.
        operation: Id of the operation that the user named; empty to resume one left behind, or start a new one.
        new_id: Id for a new operation.
        nodes: The nodes that the run will work on.
        restart: Do not resume an operation that was left behind; take over slots of dead runs of any operation.
        adopt_within: Seconds since the last sign of life after which an operation is no longer resumed.
    """

    run: str
    new_id: str
    operation: str = ""
    nodes: frozenset[str] = frozenset()
    restart: bool = False
    adopt_within: float = ADOPT_WITHIN


def begin(
    ledger: Ledger, request: StartRequest, runs: Mapping[str, Run], now: datetime, down: Collection[str] = ()
) -> StartDecision:
    """Add a run to an operation: the named one, else the one that is open or unfinished, else a new one.

    A run joins an open operation instead of starting a second one. A dead run still counts as alive for a while. A user
    who starts the same command again right after a crash resumes its work, and does not start a second operation.

    Args:
        down: The nodes with a failed slot in the ledger of another group. The slots of control-plane nodes are in one.
    """
    live = {run.id for run in runs.values() if run.alive(now)}
    adopted = "" if request.operation or request.restart else _to_join(ledger, request, runs, now)
    operation = request.operation or adopted or request.new_id
    entry = operation_entry(ledger, operation)
    known = bool(entry.get("runs") or entry.get("seen"))
    # A dead run may only be paused. Its Lease stays until the operation ends, so that it counts as alive when it wakes.
    others = [run for run in entry.get("runs", []) if run != request.run and run in runs]
    left = _names(entry, now, request.adopt_within)
    # Without names, this run counts as one that does all nodes.
    entry = {**entry, "runs": [*others, request.run], "seen": now.isoformat(), "unfinished": bool(left), "left": left}
    if not left:
        del entry["left"]
    if known and live.isdisjoint(others):
        entry["failures"] = _still_failed(ledger, entry["failures"], request.nodes - {*down})
        if not entry["failures"]:
            # Failed nodes whose names were dropped are tried again, too.
            entry.pop("left_out", None)
    ledger = with_entry(ledger, entry)
    taken = _passing(ledger, operation, request, live)
    slots = {
        name: replace(slot, operation=operation, run=request.run) if name in taken else slot
        for name, slot in ledger.slots.items()
    }
    return StartDecision(operation, bool(adopted) or known, tuple(sorted(taken)), replace(ledger, slots=slots))


def end(
    ledger: Ledger,
    operation: str,
    run: str,
    live: Collection[str],
    *,
    complete: bool,
    now: datetime,
    done: Collection[str] | None = None,
    undone: Collection[str] = (),
    postponed: Collection[str] = (),
    elsewhere: Collection[Slot] = (),
) -> Ledger:
    """Remove a run from its operation, together with the operation's dead runs.

    Args:
        complete: Whether the run has done all its nodes.
        done: The nodes that it has done; ``None`` if they are all that the operation has.
        undone: The nodes that it has not done, if they are known.
        postponed: Those of them that wait for the next maintenance window.
        elsewhere: The slots in the ledgers of other groups.
    """
    entry = operation_entry(ledger, operation)
    runs = [other for other in entry.get("runs", []) if other != run and other in live]
    # Another group may have an operation of the same name.
    slots = [*ledger.slots.values(), *(slot for slot in elsewhere if slot.run in entry.get("runs", []))]
    abandoned = {
        slot.node
        for slot in slots
        if slot.operation == operation and slot.state == ACTIVE and (slot.run == run or slot.run not in live)
    }
    names = _names(entry, now)
    # Another run has left nodes without names.
    unnamed = bool(entry.get("unfinished")) and not names
    kept = {} if complete and done is None else {key: since for key, since in names.items() if key not in (done or ())}
    left = {**kept, **dict.fromkeys((*undone, *abandoned), now.isoformat())}
    unfinished = not complete or unnamed or bool(left)
    known = len(left) <= KEPT_LEFT and (complete or bool(undone)) and not unnamed
    waiting = sorted({*postponed, *(postponed_of(entry) - {*undone})} & left.keys())
    told = (complete or bool(undone)) and (not unnamed or only_postponed(entry))
    only_waiting = told and left.keys() == {*waiting}
    kept_names = {"left": left, "postponed": waiting} if known else {"postponed": True} if only_waiting else {}
    entry = {key: value for key, value in entry.items() if key not in ("left", "postponed")}
    entry |= {"runs": runs, "seen": now.isoformat(), "unfinished": unfinished}
    if unfinished:
        entry |= {key: value for key, value in kept_names.items() if value}
    return with_entry(ledger, entry)


def only_postponed(entry: Mapping[str, Any]) -> bool:
    """Whether ended runs have left only nodes that wait for the next maintenance window, too many to name them."""
    return entry.get("postponed") is True


def postponed_of(entry: Mapping[str, Any]) -> set[str]:
    """The nodes that an ended run has left for the next maintenance window. Some may be done by now."""
    found = entry.get("postponed")
    return set(map(str, found)) if isinstance(found, list) else set()


def _names(entry: Mapping[str, Any], now: datetime, within: float = inf) -> dict[str, str]:
    """The nodes that ended runs have left, and since when.

    A node that no run has done for longer than ``within`` seconds does not count. It may be gone, or no longer be in
    the inventory, and would keep its operation open for ever.
    """
    left = entry.get("left") if entry.get("unfinished") else None
    times = {name: moment(since) for name, since in left.items()} if isinstance(left, dict) else {}
    # A time in the future would never be old.
    ages = {name: seconds_between(since, now) for name, since in times.items() if since is not None}
    return {name: str(left[name]) for name, age in ages.items() if left and -DEAD_AFTER < age <= within}


def _to_join(ledger: Ledger, request: StartRequest, runs: Mapping[str, Run], now: datetime) -> str:
    """The latest open or unfinished operation with a recent enough sign of life; empty if there is none."""
    for entry in reversed(ledger.operations):
        left = bool(entry.get("unfinished")) and ("left" not in entry or _names(entry, now, request.adopt_within))
        if (entry.get("runs") or left) and _rested(entry, runs, now) <= request.adopt_within:
            return str(entry["id"])
    return ""


def _rested(entry: Mapping[str, Any], runs: Mapping[str, Run], now: datetime) -> float:
    renewed = [moment(runs[run].renewed) for run in entry.get("runs", []) if run in runs]
    # A time in the future would keep the operation open until then.
    latest = now + timedelta(seconds=DEAD_AFTER)
    signs = [sign for sign in (*renewed, moment(entry.get("seen"))) if sign and sign < latest]
    return seconds_between(max(signs), now) if signs else float("inf")


def _still_failed(ledger: Ledger, failures: Mapping[str, str], nodes: Collection[str]) -> dict[str, str]:
    """Failures that still count when a run resumes: of nodes that it does not try again, or that are not healthy.

    Args:
        nodes: The nodes that the run tries again, if they have no failed slot.
    """
    kept = {name for name, slot in ledger.slots.items() if slot.state == FAILED}
    return {name: reason for name, reason in failures.items() if name in kept or name not in nodes}


def _passing(ledger: Ledger, operation: str, request: StartRequest, live: Collection[str]) -> set[str]:
    # Nothing shows whether the owner of a slot without a run is dead.
    return {
        name
        for name, slot in ledger.slots.items()
        if name in request.nodes
        and (slot.operation == operation or request.restart)
        and slot.state == ACTIVE
        and slot.run
        and slot.run != request.run
        and slot.run not in live
    }
