# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of a board as lines of text that fit the screen. Words and spaces only; the caller adds colours."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .._shared.bounds import plain
from .board_rules import DONE, FAILED, QUEUED, WAITING, WORKING, Board, Row, duration, natural, summary

TITLE = "title"
# With too little room, nodes in the first of these states come first.
_ORDER = (WORKING, FAILED, WAITING, QUEUED, DONE)
_GAP = "  "
_MORE = "..."
# Characters that the last column, which has the reasons, gets at least.
_REASON = 24


@dataclass(frozen=True)
class Line:
    """One line of the table, and its style: a state of a row, ``title``, or empty."""

    text: str
    style: str = ""


def table(board: Board, now: float, *, width: int, height: int | None = None) -> list[Line]:
    """Return the lines of the table.

    Args:
        board: What to show.
        now: The time, in seconds since the epoch.
        width: Columns of the screen; no line is longer.
        height: Rows of the screen; with ``None``, all nodes are shown.
    """
    head = [Line(board.title, TITLE), Line(summary(board, now)), *(Line(item.words()) for item in board.budgets)]
    room = None if height is None else max(2, height - len(head) - 1)
    shown, left = _choose(board.rows, room)
    rows = [_header(board.runs), *(_cells(row, now, runs=board.runs) for row in shown)] if shown else []
    texts = columns(rows, width)
    body = [Line(text, style) for text, style in zip(texts, ["", *(row.state for row in shown)])]
    foot = [Line(_rest(left))] if left else []
    return [Line(fit(line.text, width), line.style) for line in [*head, *body, *foot]]


def _choose(rows: Sequence[Row], room: int | None) -> tuple[list[Row], list[Row]]:
    """Return the rows to show, and the others. If all fit, a row keeps its place, so that the eye finds it again."""
    by_name = sorted(rows, key=lambda row: natural(row.name))
    if room is None or len(rows) <= room:
        return by_name, []
    order = {state: place for place, state in enumerate(_ORDER)}
    # Of those that wait, the ones with a reason of their own matter most, and of those that are done, the latest.
    chosen = sorted(by_name, key=lambda row: (order[row.state], row.phase == "slot", -(row.since or 0) * row.ended))
    return chosen[: room - 1], chosen[room - 1 :]


def _rest(rows: Sequence[Row]) -> str:
    phases = Counter(row.phase for row in rows)
    return f"and {len(rows)} more: {', '.join(f'{count} {phase}' for phase, count in phases.most_common())}"


def _header(runs: bool) -> tuple[str, ...]:
    return ("NODE", "PHASE", "SINCE", *(("RUN",) if runs else ()), "WAITS FOR, OR WHY")


def _cells(row: Row, now: float, *, runs: bool) -> tuple[str, ...]:
    since = duration(now - row.since) if row.since is not None else "-"
    return (row.name, row.phase, since, *((row.run or "-",) if runs else ()), row.why)


def columns(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return rows of cells as lines. If the screen is narrow, long names are cut first. The last column is not cut."""
    if not rows:
        return []
    last = len(rows[0]) - 1
    widths = [max(length(plain(row[column])) for row in rows) for column in range(last)]
    spare = width - sum(widths) - len(_GAP) * last - _REASON
    for column in sorted(range(last), key=lambda column: -widths[column]):
        if spare < 0 and widths[column] > 12:
            kept = max(12, widths[column] + spare)
            spare += widths[column] - kept
            widths[column] = kept
    return [
        _GAP.join([*(pad(fit(cell, size), size) for cell, size in zip(row, widths)), plain(row[last])]).rstrip()
        for row in rows
    ]


def length(text: str) -> int:
    """Return the number of columns that a text takes."""
    return sum(_size(character) for character in text)


def _size(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int) -> str:
    """Return a text in at most ``width`` columns."""
    known = plain(text)
    if length(known) <= width:
        return known
    mark = _MORE[: max(0, width)]
    kept, size = "", 0
    for character in known:
        size += _size(character)
        if size > width - len(mark):
            break
        kept += character
    return kept + mark


def pad(text: str, width: int) -> str:
    """Return a text in at least ``width`` columns."""
    return text + " " * (width - length(text))
