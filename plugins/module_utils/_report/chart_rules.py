# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline as SVG: for each node a bar of its phases, for each group a line of its budget.

Places along the time are percentages, so that a chart fits any width without a script. All texts of others are escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import datetime, timezone

from .._progress.board_rules import DONE, FAILED, WORKING, duration, natural
from .._progress.table_rules import fit
from .._shared.bounds import plain
from .style_rules import COLOURS, FAILOVER, PICTURE, colour
from .timeline_rules import PROOF, Look, Span, Timeline

BAR, BUDGET = 18, 44
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_MOST_TICKS = 6
# The picture, in pixels.
_WIDTH, _NAMES, _EDGE, _ROW = 960, 120, 24, 26
_LETTER = 6.6


def escape(text: object) -> str:
    """Return a text of others as text of a page: without markup, and without characters that XML forbids."""
    return html.escape("\n".join(plain(line) for line in str(text).splitlines()))


def percent(timeline: Timeline, at: float) -> str:
    """Return a time as its place on the chart."""
    whole = timeline.seconds or 1.0
    return f"{min(100.0, max(0.0, (at - timeline.start) / whole * 100)):.2f}%"


def order(timeline: Timeline) -> list[str]:
    """Return the nodes in the order of their turns."""

    def place(name: str) -> tuple[float, object]:
        begun = [span.start for span in timeline.nodes[name] if span.state == WORKING]
        return (min(begun, default=timeline.end + 1), natural(name))

    return sorted(timeline.nodes, key=place)


def clock(at: float) -> str:
    """Return a time of day."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%H:%M:%S")


def lane(timeline: Timeline, spans: Sequence[Span], *, width: float = 0) -> str:
    """Return the phases of a node.

    Args:
        width: Pixels of the whole time, where that is known: then phases with enough room have their names.
    """
    parts, middle = [f'<rect class="track" y="2" width="100%" height="{BAR - 4}" rx="2"/>'], BAR // 2
    for span in spans:
        if span.ended:
            continue
        share = span.seconds / (timeline.seconds or 1.0)
        parts.append(
            f'<rect class="{colour(span.phase)}" x="{percent(timeline, span.start)}" y="2" '
            f'width="{max(0.1, share * 100):.2f}%" height="{BAR - 4}"><title>{escape(_words(span))}</title></rect>'
        )
        if width and share * width > len(span.phase) * _LETTER + 8 and colour(span.phase) not in ("wait", "cordon"):
            parts.append(
                f'<text class="in" dx="5" x="{percent(timeline, span.start)}" y="13">{escape(span.phase)}</text>'
            )
    parts += [
        f'<circle class="{"good" if span.state == DONE else "bad"} mark" cx="{percent(timeline, span.start)}" '
        f'cy="{middle}" r="5" transform="translate(6 0)"><title>{escape(_words(span))}</title></circle>'
        for span in spans
        if span.ended
    ]
    return "".join(parts)


def _words(span: Span) -> str:
    took = f" {duration(span.seconds)}" if not span.ended else ""
    return f"{span.phase}{took}, {clock(span.start)} UTC{f': {span.why}' if span.why else ''}"


def budget(timeline: Timeline, looks: Sequence[Look]) -> str:
    """Return the number of unavailable nodes over the time, and how many are allowed."""
    most = max([1, *(look.unavailable for look in looks), *(look.allowed or 0 for look in looks)])
    ends = [*(look.at for look in looks[1:]), timeline.end]
    # The first answer of a group holds for the time before, too.
    allowed = next((look.allowed for look in looks if look.allowed is not None), None)
    parts = []
    for look, end in zip(looks, ends):
        start, stop = percent(timeline, look.at), percent(timeline, end)
        share = f"{max(0.0, float(stop[:-1]) - float(start[:-1])):.2f}%"
        height = (BUDGET - 8) * look.unavailable / most
        if look.unavailable:
            parts.append(
                f'<rect class="used" x="{start}" y="{BUDGET - 2 - height:.1f}" width="{share}" height="{height:.1f}">'
                f"<title>{escape(f'{look.unavailable} unavailable from {clock(look.at)} UTC')}</title></rect>"
            )
        allowed = look.allowed if look.allowed is not None else allowed
        if allowed is not None:
            y = f"{BUDGET - 2 - (BUDGET - 8) * allowed / most:.1f}"
            parts.append(f'<line class="allowed" x1="{start}" x2="{stop}" y1="{y}" y2="{y}"/>')
    floor = f'<line class="grid" x1="0" x2="100%" y1="{BUDGET - 2}" y2="{BUDGET - 2}"/>'
    return floor + "".join(parts)


def axis(timeline: Timeline) -> str:
    """Return the ticks of the time, with the time since the start."""
    step = next((step for step in _STEPS if timeline.seconds / step <= _MOST_TICKS), _STEPS[-1])
    while timeline.seconds / step > _MOST_TICKS:
        step *= 2
    found = []
    for number in range(int(timeline.seconds // step) + 1):
        place = percent(timeline, timeline.start + number * step)
        # A text in the middle of the last tick would leave the chart.
        anchor = "start" if number == 0 else "end" if float(place[:-1]) > 95 else "middle"
        text = duration(number * step) if number else "0"
        # A narrow screen has room for every other text.
        style = "muted more" if number % 2 else "muted"
        found.append(f'<text class="{style}" x="{place}" y="13" text-anchor="{anchor}">{text}</text>')
    return "".join(found)


def used_colours(timeline: Timeline) -> list[str]:
    """Return the colours of the phases that occur, in the order of the legend."""
    used = {colour(span.phase) for spans in timeline.nodes.values() for span in spans if not span.ended}
    known = {**FAILOVER, **COLOURS} if _is_failover(timeline) else COLOURS
    return [name for name in known if name in used]


def used_marks(timeline: Timeline) -> list[tuple[str, str]]:
    """Return the marks that occur, each with what it means."""
    spans = [span for found in timeline.nodes.values() for span in found if span.ended]
    proof = ["proof that it is off"] if any(span.phase == PROOF for span in spans) else []
    done = ["done"] if any(span.state == DONE and span.phase != PROOF for span in spans) else []
    good = [("good", ", or ".join([*proof, *done]))] if proof or done else []
    return good + ([("bad", "failed")] if any(span.state == FAILED for span in spans) else [])


def legend_word(timeline: Timeline, name: str) -> str:
    """Return what a colour means in this timeline."""
    return FAILOVER.get(name, COLOURS[name][0]) if _is_failover(timeline) else COLOURS[name][0]


def _is_failover(timeline: Timeline) -> bool:
    phases = {span.phase for spans in timeline.nodes.values() for span in spans}
    return bool(phases & {"fence", "taint", "move", "power_on", "in_service", "delete"})


def picture(timeline: Timeline, title: str) -> str:
    """Return the timeline as an SVG document of a fixed width. It follows the reader's light or dark style."""
    wide = _WIDTH - _NAMES - 2 * _EDGE
    rows: list[tuple[str, int, str]] = [
        (name, _ROW, lane(timeline, timeline.nodes[name], width=wide)) for name in order(timeline)
    ]
    rows += [(f"budget {group}", BUDGET + 10, budget(timeline, looks)) for group, looks in timeline.budgets.items()]
    y, parts = 62, []
    for name, height, inner in rows:
        parts.append(
            f'<text x="{_EDGE}" y="{y + (13 if height == _ROW else height // 2)}">{escape(fit(name, 18))}</text>'
            f'<svg x="{_EDGE + _NAMES}" y="{y}" width="{wide}" height="{height}" overflow="visible">{inner}</svg>'
        )
        y += height
    parts.append(
        f'<svg x="{_EDGE + _NAMES}" y="{y}" width="{wide}" height="20" overflow="visible">{axis(timeline)}</svg>'
    )
    y += 34
    x = float(_EDGE + _NAMES)
    for colour_name in used_colours(timeline):
        word = legend_word(timeline, colour_name)
        parts.append(
            f'<rect class="{colour_name}" x="{x:.0f}" y="{y - 10}" width="12" height="12" rx="2"/>'
            f'<text class="muted" x="{x + 17:.0f}" y="{y}">{escape(word)}</text>'
        )
        x += 32 + len(word) * _LETTER
    height = y + _EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img"><title>{escape(title)}</title><style>{PICTURE}</style>'
        f'<rect class="paper" x=".5" y=".5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>'
        f'<text class="title" x="{_EDGE}" y="32">{escape(title)}</text>'
        f"{''.join(parts)}</svg>\n"
    )
