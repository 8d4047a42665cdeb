# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of a run: for each node its phases with their times, and for each group its budget. Plain data.

It comes from the events of the tasks, from the records of operations on the Nodes, or from the history of failovers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from .._api.times import to_text
from .._failover.rules import RESULTS
from .._progress.board_rules import DONE, FAILED, QUEUED, WAITING, WORKING, Row, state_of
from .._progress.event_rules import IDLE_PHASES, Event, View
from .._progress.table_rules import fit
from .._shared.bounds import moment

# A node that waits in turns changes its phase often. Its first and its last phases are kept.
KEEP_SPANS = 60
KEEP_LOOKS = 500
# Of a failover: the moment at which the node was proven to be off.
PROOF = "proof"
_LONGEST = 240
# Seconds: a year.
_LONGEST_PHASE = 366 * 86400
# The phases of a record in their order. A record has only the seconds of each.
_ORDER = (
    *("hold", "slot", "confirm", "claim", "cordon", "fence", "taint", "move", "delete"),
    *("drain", "reboot", "power_on", "ready", "in_service", "uncordon"),
)


@dataclass(frozen=True)
class Span:
    """A phase of a node, or at the end its result.

    Attributes:
        phase: The phase or the result.
        state: A state of ``_progress/board_rules.py``.
        start: In seconds since the epoch.
        end: In seconds since the epoch; that of a result is its start.
        why: What the node waited for, or the reason of the result.
    """

    phase: str
    state: str
    start: float
    end: float
    why: str = ""

    @property
    def ended(self) -> bool:
        return self.state in (DONE, FAILED)

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Look:
    """The budget of a group at one time.

    Attributes:
        at: In seconds since the epoch.
        unavailable: How many nodes were unavailable.
        allowed: How many may be; ``None`` if unknown.
    """

    at: float
    unavailable: int
    allowed: int | None = None


@dataclass(frozen=True)
class Timeline:
    """What happened when.

    Attributes:
        start: In seconds since the epoch; 0 if nothing is known.
        end: In seconds since the epoch.
        nodes: The phases of each node, in their order.
        budgets: The budgets of each group, in their order.
        estimated: Whether it comes from the seconds in records, which do not tell pauses.
    """

    start: float = 0.0
    end: float = 0.0
    nodes: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    budgets: Mapping[str, tuple[Look, ...]] = field(default_factory=dict)
    estimated: bool = False

    @property
    def seconds(self) -> float:
        return self.end - self.start


def from_events(events: Iterable[Event], now: float) -> Timeline:
    """Return the timeline of a run.

    Args:
        events: What its tasks told.
        now: When it ends, in seconds since the epoch.
    """
    view, rows, looks = View(), _Rows(), _Looks()
    start = None
    for event in events:
        at = float(event["at"])
        start = at if start is None else start
        before, view = view, view.after(event)
        if view.budgets is not before.budgets:
            looks.add(view, str(event.get("group")), at)
        if view.rows is not before.rows:
            for name, row in view.rows.items():
                if before.rows.get(name) is not row:
                    rows.add(row, at)
    if start is None:
        return Timeline()
    return Timeline(start, max(start, now), rows.spans(now), looks.all())


class _Rows:
    """The phases of each node, from the changes of its row."""

    def __init__(self) -> None:
        self._found: dict[str, list[Span]] = {}

    def add(self, row: Row, at: float) -> None:
        spans = self._found.setdefault(row.name, [])
        why = fit(row.why, _LONGEST)
        last = spans[-1] if spans else None
        if last is not None and (last.phase, last.state) == (row.phase, row.state):
            spans[-1] = Span(last.phase, last.state, last.start, at, why or last.why)
            return
        if last is not None and not last.ended:
            spans[-1] = Span(last.phase, last.state, last.start, at, last.why)
        spans.append(Span(row.phase, row.state, at, at, why))
        if len(spans) > KEEP_SPANS:
            # What was left out counts as the phase before it.
            kept, gone = spans[KEEP_SPANS // 2 - 1], spans.pop(KEEP_SPANS // 2)
            spans[KEEP_SPANS // 2 - 1] = Span(kept.phase, kept.state, kept.start, gone.end, kept.why)

    def spans(self, now: float) -> dict[str, tuple[Span, ...]]:
        return {name: tuple(_until_now(spans, now)) for name, spans in self._found.items()}


def _until_now(spans: Sequence[Span], now: float) -> list[Span]:
    last = spans[-1]
    if last.ended:
        return list(spans)
    return [*spans[:-1], Span(last.phase, last.state, last.start, max(last.start, now), last.why)]


class _Looks:
    """The budgets, without looks that saw nothing new."""

    def __init__(self) -> None:
        self._found: dict[str, list[Look]] = {}

    def add(self, view: View, group: str, at: float) -> None:
        budget = view.budgets[group]
        looks = self._found.setdefault(group, [])
        if looks and (looks[-1].unavailable, looks[-1].allowed) == (len(budget.unavailable), budget.allowed):
            return
        looks.append(Look(at, len(budget.unavailable), budget.allowed))
        if len(looks) > KEEP_LOOKS:
            del looks[KEEP_LOOKS // 2]

    def all(self) -> dict[str, tuple[Look, ...]]:
        return {group: tuple(looks) for group, looks in self._found.items()}


def from_nodes(nodes: Sequence[Mapping[str, Any]]) -> Timeline:
    """Return the timeline from the entries of a report: failovers by their history, the others by their records."""
    found = {str(node.get("name")): _spans_of(node) for node in nodes}
    known = {name: spans for name, spans in found.items() if spans}
    if not known:
        return Timeline()
    start = min(spans[0].start for spans in known.values())
    end = max(span.end for spans in known.values() for span in spans)
    return Timeline(start, end, known, estimated=not any(node.get("entry") for node in nodes))


def _spans_of(node: Mapping[str, Any]) -> tuple[Span, ...]:
    entry = node.get("entry") or {}
    return _of_history(entry) if entry.get("steps") else _of_record(node)


def _of_history(entry: Mapping[str, Any]) -> tuple[Span, ...]:
    steps = entry["steps"]
    known = [(_seconds(step.get("at")), step) for step in steps if isinstance(step, Mapping)]
    timed = [(at, step) for at, step in known if at is not None]
    spans: list[Span] = []
    for number, (at, step) in enumerate(timed):
        phase = str(step.get("step"))
        ended = phase in RESULTS
        end = at if ended or number + 1 == len(timed) else max(at, timed[number + 1][0])
        state = state_of(phase) if ended else WORKING
        if spans and spans[-1].phase == phase and not ended:
            spans[-1] = Span(phase, state, spans[-1].start, end, spans[-1].why)
        else:
            spans.append(Span(phase, state, at, end, fit(str(step.get("detail") or ""), _LONGEST)))
    return tuple(spans)


def _of_record(node: Mapping[str, Any]) -> tuple[Span, ...]:
    """The phases one after the other, until the last change of the record."""
    end, phases = _seconds(node.get("since")), node.get("phases")
    if end is None or not isinstance(phases, Mapping):
        return ()
    spans: list[Span] = []
    for name, seconds in reversed(in_order(phases)):
        start = end - _length(seconds)
        spans.append(Span(name, WAITING if name in IDLE_PHASES else WORKING, start, end))
        end = start
    result = str(node.get("result") or "")
    at = spans[0].end if spans else end
    why = fit(str(node.get("detail") or ""), _LONGEST)
    return (*reversed(spans), Span(result, state_of(result), at, at, why))


def _length(seconds: Any) -> float:
    """The length of a phase. A node can write its own record, so it may be anything."""
    known = isinstance(seconds, (int, float)) and 0 <= seconds < _LONGEST_PHASE
    return float(seconds) if known else 0.0


def in_order(phases: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the seconds of phases in the order of the phases. JSON has them by name."""
    place = {name: number for number, name in enumerate(_ORDER)}
    return sorted(phases.items(), key=lambda item: place.get(item[0], len(place)))


def _seconds(text: object) -> float | None:
    found = moment(text)
    return found.timestamp() if found else None


def with_failover(timeline: Timeline, name: str, confirmed: float, proven: object, proof: str) -> Timeline:
    """Return the timeline with what the tasks of a failover do not tell.

    Args:
        name: The node.
        confirmed: Seconds for which the run saw that the node is down, before it claimed the node.
        proven: When the node was proven to be off.
        proof: The kind of the proof.
    """
    known, at = timeline.nodes.get(name, ()), _seconds(proven)
    spans = known
    if spans and spans[0].phase == "claim" and confirmed:
        start = max(timeline.start, spans[0].start - confirmed)
        spans = (Span("confirm", WORKING, start, spans[0].start, "it is not Ready"), *spans)
    if spans and at is not None and timeline.start <= at <= timeline.end:
        later = next((place for place, span in enumerate(spans) if span.start > at), len(spans))
        spans = (*spans[:later], Span(PROOF, DONE, at, at, proof), *spans[later:])
    return timeline if spans is known else replace(timeline, nodes={**timeline.nodes, name: spans})


def waits(timeline: Timeline) -> list[tuple[str, Span]]:
    """Return what nodes waited for, the longest first. A wait for the other nodes of the run needs no reason."""
    found = [
        (name, span)
        for name, spans in timeline.nodes.items()
        for span in spans
        if span.state == WAITING and span.phase not in (QUEUED, "look") and span.seconds >= 1
    ]
    return sorted(found, key=lambda item: (item[1].phase == "slot", -item[1].seconds))


def to_data(timeline: Timeline) -> dict[str, Any]:
    """Return the timeline as JSON has it, with times as the API writes them."""
    if not timeline.nodes:
        return {}
    return {
        "began": text(timeline.start),
        "ended": text(timeline.end),
        "nodes": {
            name: [
                {
                    "phase": span.phase,
                    "state": span.state,
                    "since": text(span.start),
                    "seconds": round(span.seconds, 3),
                    "why": span.why,
                }
                for span in spans
            ]
            for name, spans in timeline.nodes.items()
        },
        "budgets": {
            group: [{"at": text(look.at), "unavailable": look.unavailable, "allowed": look.allowed} for look in looks]
            for group, looks in timeline.budgets.items()
        },
    }


def from_data(data: Mapping[str, Any]) -> Timeline:
    """Return the timeline of a report. What has no valid time is left out."""
    start, end = _seconds(data.get("began")), _seconds(data.get("ended"))
    if start is None or end is None:
        return Timeline()
    nodes = {str(name): tuple(_spans(items)) for name, items in (data.get("nodes") or {}).items()}
    budgets = {str(group): tuple(_looks(items)) for group, items in (data.get("budgets") or {}).items()}
    return Timeline(start, max(start, end), {name: spans for name, spans in nodes.items() if spans}, budgets)


def _spans(items: Iterable[Mapping[str, Any]]) -> Iterable[Span]:
    for item in items:
        start = _seconds(item.get("since"))
        if start is not None:
            end = start + max(0.0, float(item.get("seconds") or 0))
            yield Span(str(item.get("phase")), str(item.get("state")), start, end, str(item.get("why") or ""))


def _looks(items: Iterable[Mapping[str, Any]]) -> Iterable[Look]:
    for item in items:
        at = _seconds(item.get("at"))
        if at is not None:
            yield Look(at, int(item.get("unavailable") or 0), item.get("allowed"))


def text(seconds: float) -> str:
    """Return a time as the API writes it."""
    return to_text(datetime.fromtimestamp(seconds, timezone.utc))
