# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the history of failovers: who, when, why, on which evidence, and how long each step took."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from .._api.errors import Refused
from .._api.names import FAILOVER
from .._api.times import from_text, to_text
from .._shared.bounds import bounded as bounded_data
from .._shared.bounds import cut
from .rules import (
    CLAIM,
    CONFIRM,
    DELETING,
    FAILED,
    FENCING,
    MOVED,
    PHASES,
    RECOVERED,
    STOPPED,
    WAY,
    Change,
    broken_facts,
)

# An object of etcd has at most 1.5 MiB.
KEEP, KEEP_STEPS, KEEP_RUNS, KEEP_BYTES = 50, 60, 100, 900_000
# The types of the fields of each entry; the others are the facts of the failover.
_TYPES: Mapping[str, type] = {
    "operation": str,
    "node": str,
    "by": str,
    "runs": list,
    "reason": str,
    "boot_id": str,
    "started": str,
    "ended": str,
    "result": str,
    "detail": str,
    "seconds": dict,
    "steps": list,
}
# The last phase that a run gave. Entries of earlier versions have none.
_PHASE = "phase"
_FIELDS = (*_TYPES, _PHASE)


def entry_after(
    entry: Mapping[str, Any] | None,
    node: str,
    record: Mapping[str, Any],
    versions: Mapping[str, str],
    now: str,
    *,
    phase: str = "",
    stated: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the entry of a failover for the present record on its Node.

    Args:
        phase: The phase that the run itself begins, or goes back to; empty for none. That of the record does not count,
            because a node can write its own record.
        stated: What the run itself says of the way to switch the machine off. A node can write its own annotations, so
            nothing of the way is taken from there: it may decide where the credentials of a BMC are sent.

    Raises:
        Refused: It is the entry of another node.
    """
    known = entry or {}
    run, detail = cut(record["run"]), cut(record["detail"], 1000)
    if known.get("node") not in (None, node):
        raise Refused(
            f"The annotation {FAILOVER} of Node {node} names failover {record['id']}, which is one of node "
            f"{known['node']}. Remove the annotation (kubectl annotate node {node} {FAILOVER}-), and run the playbook "
            "holdfast.kubernetes.recover.",
            node=node,
            why="broken_record",
        )
    # Nor may its facts replace the fields of the entry.
    seen = {name: value for name, value in (record.get("facts") or {}).items() if name not in (*WAY, *_FIELDS)}
    facts = {**seen, **sent_way(known), **way_of(stated or {})}
    begun = CLAIM if record["phase"] == CLAIM else FENCING
    return {
        "operation": record["id"],
        "node": node,
        _PHASE: phase or (phase_of(known) if known else begun),
        "by": cut(record["holder"]),
        "reason": cut(record["reason"]),
        "boot_id": cut(record["boot_id"]),
        # The entry that began last counts.
        "started": known.get("started") or now,
        "ended": now if record["result"] else "",
        "result": record["result"],
        "detail": detail,
        "seconds": {name: seconds for name, seconds in record["phases"].items() if name in (CONFIRM, *PHASES)},
        **bounded_data(facts),
        **_with_step(known, now, run, record["result"] or record["phase"], detail=detail, versions=versions),
    }


def _with_step(
    entry: Mapping[str, Any], now: str, run: str, name: str, *, detail: str, versions: Mapping[str, str]
) -> dict[str, Any]:
    """Return the runs and the steps of an entry after one more step."""
    told = {"detail": detail} if detail else {}
    step = {"at": now, "run": run, "step": name, "resource_versions": dict(versions), **told}
    steps = [*entry.get("steps", []), step]
    return {
        "runs": list(dict.fromkeys([*entry.get("runs", []), run]))[-KEEP_RUNS:],
        "steps": [*steps[:10], *steps[10:][-(KEEP_STEPS - 10) :]],
    }


def entry_closed(entry: Mapping[str, Any], change: Change, now: str) -> dict[str, Any]:
    """Return the entry of a failover that ends without the record on its Node."""
    run, result, detail = cut(change.run), change.result, cut(change.detail, 1000)
    if result != RECOVERED and (entry["result"] or entry["steps"][-1].get("run") != run):
        # No claim excludes other runs, so a failure replaces nothing that another run has recorded.
        return dict(entry)
    return {
        **entry,
        _PHASE: change.phase or phase_of(entry),
        "ended": now,
        "result": result,
        "detail": detail,
        **bounded_data(change.facts),
        **_with_step(entry, now, run, result, detail=detail, versions={}),
    }


def bounded(data: Mapping[str, str], newest: str) -> dict[str, str]:
    """Return as many entries as fit: finished failovers are dropped first, the oldest of them before others.

    The recovery needs the entries of the others. Before one of them is dropped, what moved is left out of them.
    """
    known = {operation: read_entry(text) for operation, text in data.items()}
    stays = {
        operation: operation == newest or (_is_valid(entry) and unfinished(entry)) for operation, entry in known.items()
    }

    def place(operation: str) -> tuple[bool, bool, str]:
        return (operation == newest, stays[operation], str(known[operation].get("started") or ""))

    order = sorted(data, key=place)
    kept = {operation: data[operation] for operation in order if stays[operation] or operation in order[-KEEP:]}
    others = [operation for operation in order[:-1] if stays[operation]]
    for operation in order:
        if not stays[operation]:
            _fit(kept, operation, "")
    for operation in others:
        _fit(kept, operation, _short(known[operation]))
    for operation in others:
        _fit(kept, operation, "")
    return {operation: kept[operation] for operation in sorted(kept)}


def _fit(kept: dict[str, str], operation: str, instead: str) -> None:
    """Replace an entry, or drop it, if all entries together are too large."""
    if operation not in kept or sum(map(len, kept.values())) <= KEEP_BYTES:
        return
    if instead:
        kept[operation] = min(kept[operation], instead, key=len)
    else:
        del kept[operation]


def _short(entry: Mapping[str, Any]) -> str:
    """Return the text of an entry with only what the recovery needs."""
    found = {name: value for name, value in entry.items() if name in (*_FIELDS, *WAY, "evidence")}
    if isinstance(found.get("steps"), list):
        found["steps"] = found["steps"][-10:]
    return json.dumps(found, sort_keys=True)


def entry_of(data: Mapping[str, str], node: str, operation: str) -> dict[str, Any] | None:
    """Return the valid entry of one failover of a node."""
    entry = read_entry(data.get(operation, ""))
    return entry if entry.get("node") == node and _is_valid(entry) else None


def last_of(data: Mapping[str, str], node: str) -> dict[str, Any] | None:
    """Return the last valid entry of a node."""
    return _last(entry for entry in _valid(data) if entry["node"] == node)


def last_sent_of(data: Mapping[str, str], node: str) -> dict[str, Any] | None:
    """Return the last valid entry of a node whose machine may have been requested to switch off.

    A later failover that sent nothing does not undo an earlier one.
    """
    return _last(entry for entry in _valid(data) if entry["node"] == node and may_have_sent(entry))


def _last(entries: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    return max(entries, key=lambda entry: str(entry["started"]), default=None)


def _valid(data: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    return filter(_is_valid, map(read_entry, data.values()))


def later_of_machine(data: Mapping[str, str], entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a failover of another node that began later and switched the same machine off; ``None`` if there is none.

    A plug is not compared: two devices have plugs of the same name.
    """
    machine = _machine(entry)
    return next(
        (
            later
            for later in _valid(data)
            if machine
            and (may_have_sent(later) or not later["result"])
            and later["node"] != entry["node"]
            and later["started"] > entry["started"]
            and _machine(later) == machine
        ),
        None,
    )


def _machine(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the machine in the entry of a failover; none if they are unknown."""
    if entry.get("host"):
        return (str(entry.get("namespace")), str(entry["host"]))
    return (str(entry["uri"]).rstrip("/"),) if entry.get("uri") else ()


def unfinished(entry: Mapping[str, Any]) -> bool:
    """Return whether the node was fenced, or may have been, and is not known to be back."""
    return not is_over(entry) and may_have_sent(entry)


def is_over(entry: Mapping[str, Any]) -> bool:
    """Return whether the node is known to be back."""
    return entry["result"] in (RECOVERED, STOPPED)


def to_resume(data: Mapping[str, str], node: str, boot_id: str) -> dict[str, Any] | None:
    """Return the last entry of a node that is not known to be back, and that has not booted since.

    Otherwise a person, or other hardware, has brought the node back since.
    """
    entry = unfinished_of(data).get(node)
    return entry if entry and entry["boot_id"] == boot_id else None


def restored(entry: Mapping[str, Any], *, run: str, now: datetime) -> dict[str, Any]:
    """Return the record of a failover that is no longer on the Node, from its entry."""
    return {
        "id": entry["operation"],
        "run": run,
        "holder": entry["by"],
        "reason": entry["reason"],
        "started": entry["started"],
        "since": to_text(now),
        "phase": phase_of(entry),
        "phases": {name: seconds for name, seconds in entry["seconds"].items() if type(seconds) in (int, float)},
        "boot_id": entry["boot_id"],
        "facts": facts_of(entry),
        # What the Node shows decides what is left to do.
        "result": FAILED,
        "detail": "",
    }


def may_have_sent(entry: Mapping[str, Any]) -> bool:
    """Return whether the machine may have been requested to switch off: a run that sent nothing goes back to claim."""
    return phase_of(entry) != CLAIM


def phase_of(entry: Mapping[str, Any]) -> str:
    """Return the last phase that a run gave."""
    if entry.get(_PHASE) in PHASES:
        return str(entry[_PHASE])
    steps = [step.get("step") for step in entry["steps"] if step.get("step") in PHASES]
    return str(next((step for step in reversed(steps) if step != CLAIM), CLAIM))


def unfinished_of(data: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the last entries of all nodes that are not known to be back."""
    entries = sorted(filter(may_have_sent, _valid(data)), key=lambda entry: str(entry["started"]))
    last = {str(entry["node"]): entry for entry in entries}
    return {node: entry for node, entry in last.items() if unfinished(entry)}


def deleted(entry: Mapping[str, Any]) -> bool:
    """Return whether everything has moved, so that the failover accounts for a Node that no longer exists."""
    if entry["result"] == MOVED:
        return True
    # A failure at the deletion comes after everything has moved.
    return not is_over(entry) and phase_of(entry) == DELETING


def way_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that say how the machine is switched off."""
    return {name: facts[name] for name in WAY if name in facts}


def sent_way(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the machine may have been switched off. A way with which nothing was sent does not count."""
    return way_of(entry) if entry and may_have_sent(entry) else {}


def facts_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that were recorded for later steps."""
    return {key: value for key, value in entry.items() if key not in _FIELDS}


def _is_valid(entry: Mapping[str, Any]) -> bool:
    if not all(isinstance(entry.get(name), kind) for name, kind in _TYPES.items()):
        return False
    try:
        from_text(entry["started"])
    except ValueError:
        return False
    steps = all(isinstance(step, dict) for step in entry["steps"])
    return bool(entry["operation"]) and steps and not broken_facts(facts_of(entry))


def read_entry(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        # An invalid entry is dropped first.
        return {}
    return content if isinstance(content, dict) else {}
