# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one HTML page that loads nothing: its style, its script and its charts are in it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from .._progress import traffic_rules
from .._progress.board_rules import duration
from .._shared.bounds import cut
from . import chart_rules, content_rules, timeline_rules
from .chart_rules import escape
from .style_rules import SCRIPT, SHEET
from .timeline_rules import Timeline

# With more nodes, the page has a filter.
_FEW = 8
_MOST_WAITS = 100
_LONGEST = 2000


def page(report: Mapping[str, Any]) -> str:
    """Return the page of a report.

    Args:
        report: The JSON of a run. Without a ``timeline``, the page has that of the records on the Nodes.
    """
    timeline = content_rules.timeline_of(report)
    parts = [
        _head(report, timeline),
        _failures(report),
        _timeline(timeline, len(content_rules.nodes_of(report))),
        _waits(timeline),
        _failovers(report),
        _nodes(report),
        _about(report),
    ]
    # The policy forbids all requests, and all scripts but this one.
    allowed = f"style-src {_source(SHEET)}; script-src {_source(SCRIPT)}"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(content_rules.title(report))}</title>\n<style>{SHEET}</style>\n</head>\n<body>\n<main>\n"
        f"{''.join(parts)}</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _section(heading: str, *parts: str) -> str:
    content = "".join(parts)
    return f"<section>\n<h2>{escape(heading)}</h2>\n{content}</section>\n" if content else ""


def _head(report: Mapping[str, Any], timeline: Timeline) -> str:
    about, summary = report.get("about") or {}, report.get("summary") or {}
    facts = {
        "run": summary.get("run") or about.get("run"),
        "group": about.get("group"),
        "began": _moment(timeline.start),
        "ended": _moment(timeline.end),
    }
    said = ", ".join(f"{name} {value}" for name, value in facts.items() if value)
    tiles = [(found, str(number), content_rules.look_of(found)) for found, number in content_rules.counts(report)]
    if timeline.nodes:
        tiles.append(("took", duration(timeline.seconds), ""))
    tiles += [
        (f"unavailable in {group}, of {_allowed(looks)} allowed", str(max(look.unavailable for look in looks)), "")
        for group, looks in timeline.budgets.items()
        if looks
    ]
    shown = "".join(f'<li class="{look}"><b>{escape(value)}</b>{escape(name)}</li>' for name, value, look in tiles)
    return (
        f'<header>\n<h1>{escape(content_rules.title(report))}</h1>\n<p class="muted">{escape(said)}</p>\n'
        f'<ul class="tiles">{shown}</ul>\n</header>\n'
    )


def _allowed(looks: Sequence[timeline_rules.Look]) -> str:
    return str(next((look.allowed for look in reversed(looks) if look.allowed is not None), "?"))


def _moment(at: float) -> str:
    return content_rules.seconds_of(timeline_rules.text(at)) if at else ""


def _failures(report: Mapping[str, Any]) -> str:
    cards = [
        f'<article class="card bad" data-node="{_key(node)}"><h3>{escape(node.get("name"))}: '
        f'<span class="word bad">{escape(content_rules.result(node))}</span></h3>'
        f'<p class="text">{escape(cut(str(node.get("detail") or ""), _LONGEST))}</p>'
        f"{_output(node)}"
        f'<p class="todo">{escape(todo)}</p></article>\n'
        for node, todo in content_rules.troubled(report)
    ]
    return _section("What needs attention", *cards)


def _output(node: content_rules.Node) -> str:
    output = str(node.get("output") or "")
    return f'<p class="text"><code>{escape(cut(output, _LONGEST))}</code></p>' if output else ""


def _key(node: content_rules.Node) -> str:
    return escape(f"{node.get('name')} {content_rules.result(node)}".lower())


def _timeline(timeline: Timeline, number: int) -> str:
    if not timeline.nodes:
        return ""
    legend = "".join(
        f'<li><svg viewBox="0 0 12 12" aria-hidden="true"><rect class="{name}" width="12" height="12" rx="2"/></svg>'
        f"{escape(chart_rules.legend_word(timeline, name))}</li>"
        for name in chart_rules.used_colours(timeline)
    )
    legend += "".join(
        f'<li><svg viewBox="0 0 12 12" aria-hidden="true"><circle class="{name}" cx="6" cy="6" r="5"/></svg>'
        f"{escape(word)}</li>"
        for name, word in chart_rules.used_marks(timeline)
    )
    box = (
        '<p class="no-print"><input id="filter" type="search" placeholder="Filter: a name or a result" '
        'aria-label="Filter the nodes"></p>\n'
        if number > _FEW
        else ""
    )
    note = (
        '<p class="muted">From the records on the Nodes: they tell the seconds of each phase, but no pauses between '
        "phases.</p>\n"
        if timeline.estimated and not timeline.budgets
        else ""
    )
    budgets = "".join(
        _lane(f"budget {group}", chart_rules.BUDGET, chart_rules.budget(timeline, looks))
        for group, looks in timeline.budgets.items()
    )
    lanes = "".join(
        _lane(name, chart_rules.BAR, chart_rules.lane(timeline, timeline.nodes[name]), key=_lane_key(timeline, name))
        for name in chart_rules.order(timeline)
    )
    axis = _lane("node", chart_rules.BAR, chart_rules.axis(timeline), style="lane head muted")
    return _section("Timeline", note, f'<ul class="legend">{legend}</ul>\n', box, budgets, axis, lanes)


def _lane(name: str, height: int, chart: str, *, key: str = "", style: str = "lane") -> str:
    """One row of the timeline: a name, and a chart."""
    found = f' data-node="{escape(key)}"' if key else ""
    shown = f'<span title="{escape(name)}">{escape(name)}</span>'
    return f'<div class="{style}"{found}>{shown}<svg height="{height}" aria-hidden="true">{chart}</svg></div>\n'


def _lane_key(timeline: Timeline, name: str) -> str:
    last = timeline.nodes[name][-1]
    return f"{name} {last.phase}".lower()


def _waits(timeline: Timeline) -> str:
    found = timeline_rules.waits(timeline)
    rows = [
        (
            ("name", escape(name)),
            ("", escape(span.phase)),
            ("number", escape(chart_rules.clock(span.start))),
            ("number", escape(duration(span.seconds))),
            ("wide", escape(span.why)),
        )
        for name, span in found[:_MOST_WAITS]
    ]
    more = f'<p class="muted">and {len(found) - _MOST_WAITS} shorter waits</p>\n' if len(found) > _MOST_WAITS else ""
    return _section("Holds and waits", _table(("node", "phase", "from (UTC)", "for", "why"), rows), more)


def _table(head: Sequence[str], rows: Sequence[Sequence[tuple[str, str]]], keys: Sequence[str] = ()) -> str:
    """A table of cells: each is the name of its style, and its escaped content."""
    if not rows:
        return ""
    # A column without any content is left out.
    used = [place for place in range(len(head)) if any(row[place][1] for row in rows)]
    titles = "".join(f"<th>{escape(head[place])}</th>" for place in used)
    lines = []
    for number, row in enumerate(rows):
        key = f' data-node="{keys[number]}"' if keys else ""
        cells = "".join(f'<td class="{row[place][0]}">{row[place][1]}</td>' for place in used)
        lines.append(f"<tr{key}>{cells}</tr>\n")
    body = "".join(lines)
    return f'<div class="scroll"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n'


def _list(values: Mapping[str, Any]) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(_value(value))}</dd>" for name, value in values.items())
    return f"<dl>{items}</dl>\n" if items else ""


def _value(value: Any) -> str:
    if isinstance(value, str):
        return cut(value, _LONGEST)
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int)) for item in value):
        return cut(", ".join(map(str, value)), _LONGEST)
    return cut(json.dumps(value, sort_keys=True, default=str), _LONGEST)


def _failovers(report: Mapping[str, Any]) -> str:
    return "".join(map(_failover, content_rules.nodes_of(report))) if content_rules.is_failover(report) else ""


def _failover(node: content_rules.Node) -> str:
    proof, found = content_rules.evidence(node), content_rules.steps(node)
    rows = [
        (
            ("number", escape(content_rules.seconds_of(step.get("at")))),
            ("state", escape(step.get("step"))),
            ("wide", escape(cut(str(step.get("detail") or ""), _LONGEST))),
            ("", escape(step.get("run"))),
        )
        for step in found
    ]
    name = escape(node.get("name"))
    return _section(
        f"{node.get('name')}: what happened, and on which proof",
        _list(content_rules.story(node)),
        f'<div class="card good"><h3>Proof that {name} was off</h3>{_list(proof)}</div>\n' if proof else "",
        _table(("time", "step", "detail", "run"), rows),
    )


def _nodes(report: Mapping[str, Any]) -> str:
    nodes = content_rules.nodes_of(report)
    rows = [
        (
            ("name", escape(node.get("name"))),
            (f"state {content_rules.look_of(content_rules.result(node))}", escape(content_rules.result(node))),
            ("wide", escape(cut(str(node.get("detail") or ""), 300))),
            ("wide", escape(_spent(node))),
            ("", _boots(node)),
            ("", escape(content_rules.versions(node))),
            ("number", escape((node.get("api") or {}).get("requests", ""))),
        )
        for node in nodes
    ]
    head = ("node", "result", "why", "seconds", "boot ID", "versions", "requests")
    return _section("Nodes", _table(head, rows, [_key(node) for node in nodes]))


def _spent(node: content_rules.Node) -> str:
    phases = node.get("phases") or node.get("seconds") or {}
    known = timeline_rules.in_order(phases) if isinstance(phases, Mapping) else []
    return ", ".join(f"{name} {seconds}" for name, seconds in known)


def _boots(node: content_rules.Node) -> str:
    """The first characters of the boot IDs. The whole ones are in the JSON."""
    before, after = (str(node.get(f"boot_id_{when}") or "")[:8] for when in ("before", "after"))
    if not before:
        return ""
    return f"<code>{escape(before)}{f' → {escape(after)}' if after and after != before else ''}</code>"


def _about(report: Mapping[str, Any]) -> str:
    about = report.get("about") or {}
    traffic = traffic_rules.words(report.get("api") or {})
    versions = {**(about.get("versions") or {}), **({"API": traffic} if traffic else {})}
    return _section("Versions", _list(versions)) + _section("Options", _columns(about.get("options") or {}))


def _columns(values: Mapping[str, Any]) -> str:
    items = "".join(
        f'<li><span class="muted">{escape(name)}</span> {escape(_value(value))}</li>' for name, value in values.items()
    )
    return f'<ul class="columns">{items}</ul>\n' if items else ""
