# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the events of a run to its board: each event is what a task reported when it began, waited or ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .board_rules import DONE, FAILED, GOOD, QUEUED, WAITING, WORKING, Board, Budget, Row, state_of, summary

Event = Mapping[str, Any]
BEGUN, WAITS, ENDED, BUDGET, OWN_TASK, LOST = "begun", "waits", "ended", "budget", "own_task", "lost"
# Phases in which a node waits and nothing was changed on it. In the others a run works on it.
IDLE_PHASES = ("look", "canaries", "window", "hold", "blocked", "slot", "claim", "quorum")
_TITLES = {
    "reboot_begin": "Rolling reboot",
    "failover": "Failover",
    "recover": "Recovery",
    "machine_guard_begin": "Machine guard",
}
# The phase that a module begins. Modules that are not listed leave the phase as it is.
_PHASES = {
    "cordon": "cordon",
    "drain": "drain",
    "reboot": "reboot",
    "reboot_gate": "reboot",
    "reboot_annotation": "reboot",
    "node_ready": "ready",
    "reboot_finish": "uncordon",
}
# The options of a module that tell its phases apart. All other options stay in the task: they may have secrets.
_KEPT = ("name", "node", "state", "power", "wait", "direction", "operation", "run")


def begun(task: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of a task of this collection that begins.

    Args:
        task: Name of the module, without the collection.
        params: Its validated options.
    """
    kept = {name: params[name] for name in _KEPT if params.get(name) is not None}
    return {"kind": BEGUN, "task": task, **kept, "failed": params.get("failed") is not None}


def waits(name: str, phase: str, why: str = "") -> dict[str, Any]:
    """Return the event of a node that waits.

    Args:
        name: The node.
        phase: The phase in which it waits.
        why: What it waits for.
    """
    return {"kind": WAITS, "name": name, "phase": phase, "why": why}


def given_back(group: str, name: str) -> dict[str, Any]:
    """Return the event of a slot that a node gave back.

    It does not say who has slots: by now, another task may have reported a slot that was taken after this.
    """
    return {"kind": BUDGET, "group": group, "given_back": name}


def budget(group: str, allowed: int | None, unavailable: Iterable[str]) -> dict[str, Any]:
    """Return the event of a budget that was looked at.

    Args:
        group: The group.
        allowed: How many nodes may be unavailable; ``None`` if that is unknown.
        unavailable: The nodes that are.
    """
    return {"kind": BUDGET, "group": group, "allowed": allowed, "unavailable": sorted(unavailable)}


def ended(task: str, params: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of a task of this collection that ended."""
    found = {**begun(task, params), "kind": ENDED}
    for name in ("step", "why", "machine", "namespace", "file_name", "point"):
        if isinstance(outcome.get(name), str):
            found[name] = outcome[name]
    if outcome.get("failed"):
        found["error"] = str(outcome.get("msg") or "unknown")
    found["results"] = [
        {"name": _name_of(item), "result": str(item["result"]), "detail": str(item.get("detail") or "")}
        for item in _results(task, outcome)
        if item.get("result")
    ]
    if task == "reboot_begin":
        found["hosts"] = dict(params.get("hosts") or {})
        found.update({name: str(outcome.get(name) or "") for name in ("operation", "run")})
    return found


def _results(task: str, outcome: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if task in ("reboot_turn", "reboot_finish"):
        result = outcome.get("result")
        return [result] if isinstance(result, Mapping) else []
    if task == "failover_turn":
        content = (outcome.get("report") or {}).get("content") or {}
        return list(content.get("nodes") or ())
    if task == "reboot_report":
        return list(outcome.get("nodes") or ())
    if task == "machine_guard_step":
        # A step ends the work on one Machine at most.
        return list((outcome.get("kept") or {}).get("results") or ())[-1:]
    return []


def _name_of(item: Mapping[str, Any]) -> str:
    return f"{item['namespace']}/{item['name']}" if item.get("namespace") else str(item["name"])


@dataclass(frozen=True)
class View:
    """What is known of the run that shows its progress.

    Attributes:
        title: What the run does.
        rows: The nodes by name.
        budgets: The budgets by group.
        hosts: The row that each host works on now.
        took: Seconds that each finished node took.
    """

    title: str = ""
    rows: Mapping[str, Row] = field(default_factory=dict)
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    took: tuple[float, ...] = ()

    @property
    def board(self) -> Board:
        return Board(self.title, tuple(self.rows.values()), tuple(self.budgets.values()), self.took)

    def after(self, event: Event) -> View:
        """Return the view after an event. An event of a kind that is not known changes nothing."""
        change = _CHANGES.get(event["kind"])
        return change(self, event) if change else self

    def row_of(self, event: Event) -> str:
        """Return the name of the row that an event is about; empty if there is none."""
        current = self.hosts.get(str(event.get("host") or ""), "")
        # A guard works on Machines. The tasks on their nodes belong to the row of the Machine.
        return current if "/" in current else str(event.get("name") or event.get("node") or current)

    def moved(self, name: str, event: Event, phase: str, state: str, why: str = "") -> View:
        """Return the view after the row is in this phase since the event."""
        known, at = self.rows.get(name) or Row(name), float(event["at"])
        same = (known.phase, known.state) == (phase, state)
        began = known.began
        if state == WORKING and began is None:
            began = at
        elif state == WAITING:
            began = None
        row = replace(known, phase=phase, state=state, why=why, since=known.since if same else at, began=began)
        hosts = {**self.hosts, str(event["host"]): name} if event.get("host") else self.hosts
        return replace(self, rows={**self.rows, name: row}, hosts=hosts)


def _begun(view: View, event: Event) -> View:
    task, name = event["task"], view.row_of(event)
    # Only failover_turn has this option.
    if event.get("direction"):
        view = replace(view, title=view.title or _TITLES[event["direction"]])
    if task == "reboot_turn" and name:
        known = view.rows.get(name)
        return view if known and known.state == WAITING else view.moved(name, event, "look", WAITING)
    phase = _phase_of(event)
    if not phase or name not in view.rows:
        return view
    return view.moved(name, event, phase, WORKING)


def _phase_of(event: Event) -> str:
    task = event["task"]
    if task == "cordon" and event.get("state") == "uncordoned":
        return "uncordon"
    if task == "failover_power":
        return "fence" if event.get("power") == "off" else "power_on"
    if task == "out_of_service":
        if event.get("state") == "absent":
            return "in_service"
        return "taint" if event.get("wait") is False else "move"
    if event.get("failed"):
        # It undoes what it can. The phase in which the node failed says more.
        return ""
    return _PHASES.get(task, "")


def _waits(view: View, event: Event) -> View:
    name, phase = view.row_of(event), str(event["phase"])
    if not name or not phase:
        return view
    return view.moved(name, event, phase, WAITING if phase in IDLE_PHASES else WORKING, str(event.get("why") or ""))


def _budget(view: View, event: Event) -> View:
    group = str(event["group"])
    known = view.budgets.get(group) or Budget(group)
    allowed = event["allowed"] if event.get("allowed") is not None else known.allowed
    if event.get("given_back"):
        names = tuple(name for name in known.unavailable if name != event["given_back"])
    else:
        names = tuple(sorted(map(str, event.get("unavailable") or ())))
    return replace(view, budgets={**view.budgets, group: Budget(group, allowed, names)})


def _ended(view: View, event: Event) -> View:
    task = event["task"]
    if task == "reboot_begin" and not event.get("error"):
        return _started(view, event)
    if task == "machine_guard_begin" and not event.get("error"):
        view = replace(view, title=_TITLES[task])
    if task == "machine_guard_step":
        view = _served(view, event)
    for item in event.get("results") or ():
        view = _with_result(view, event, item)
    name = view.row_of(event)
    if name not in view.rows or view.rows[name].ended:
        return _begun_failover(view, event, name)
    if event.get("error"):
        return view.moved(name, event, view.rows[name].phase, FAILED, event["error"])
    if event.get("step") == "put_off":
        return view.moved(name, event, "hold", WAITING, str(event.get("why") or ""))
    if task == "reboot_turn" and event.get("step") == "go":
        return view.moved(name, event, "cordon", WORKING)
    return view


def _begun_failover(view: View, event: Event, name: str) -> View:
    """A failover has no task that names all nodes, so a node gets its row when its turn comes."""
    if event["task"] == "failover_turn" and event.get("step") == "go" and name and name not in view.rows:
        return view.moved(name, event, "claim", WORKING)
    return view


def _started(view: View, event: Event) -> View:
    hosts = {host: name or host for host, name in (event.get("hosts") or {}).items()}
    title = f"{_TITLES['reboot_begin']}, operation {event['operation']}, run {event['run']}"
    rows = {name: Row(name) for name in hosts.values()}
    return replace(view, title=title, rows={**rows, **view.rows}, hosts={**hosts, **view.hosts})


def _served(view: View, event: Event) -> View:
    if not event.get("machine") or event.get("step") in ("done", "continue", None):
        return view
    name = f"{event.get('namespace')}/{event['machine']}"
    # Only the step "tasks" has a file.
    phase = str(event.get("file_name") or event["step"])
    return view.moved(name, {key: item for key, item in event.items() if key != "name"}, phase, WORKING)


def _with_result(view: View, event: Event, item: Mapping[str, str]) -> View:
    name, result = item["name"], item["result"]
    known = view.rows.get(name)
    if known is not None and (known.phase, known.why) == (result, item["detail"]) and known.ended:
        return view
    took = view.took
    if known is not None and known.began is not None and result in GOOD and not known.ended:
        took = (*took, max(0.0, float(event["at"]) - known.began))
    # A host reports the results of all nodes that it has worked on. It stays with the one that it works on now.
    found = view.moved(name, {"at": event["at"]}, result, state_of(result), item["detail"])
    return replace(found, took=took)


def _own_task(view: View, event: Event) -> View:
    """A task of the user, in a phase or between two of them."""
    name = view.row_of(event)
    known = view.rows.get(name)
    if known is None or known.ended:
        return view
    return view.moved(name, event, known.phase, known.state, f"your task: {event.get('why')}")


def _lost(view: View, event: Event) -> View:
    """A task of the user failed, or its host can't be reached. The role may still rescue the node."""
    name = view.row_of(event)
    known = view.rows.get(name)
    if known is None or known.state == DONE:
        return view
    return view.moved(name, event, known.phase, FAILED, str(event.get("why") or ""))


_CHANGES: Mapping[str, Callable[[View, Event], View]] = {
    BEGUN: _begun,
    WAITS: _waits,
    ENDED: _ended,
    BUDGET: _budget,
    OWN_TASK: _own_task,
    LOST: _lost,
}


def lines(before: View, after: View, now: float) -> list[str]:
    """Return a line for each node whose phase changed, for a log.

    A failed task is not a change: Ansible prints it, and the result of the node follows.
    """
    found = []
    if after.title and after.title != before.title:
        found.append(f"{after.title}: {len(after.rows)} {'node' if len(after.rows) == 1 else 'nodes'}")
    for name, row in after.rows.items():
        old = before.rows.get(name)
        if row is old or row.phase in _SILENT or (old is not None and old.phase == row.phase):
            continue
        text = f"{name}: {row.phase}{f': {row.why}' if row.why else ''}"
        found.append(f"{text} ({summary(after.board, now)})" if row.ended else text)
    return found


# Phases that last a moment, or have not begun.
_SILENT = (QUEUED, "look")
