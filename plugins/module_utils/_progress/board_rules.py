# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a run, or of all runs in a cluster, as people see them: rows, budgets and an estimate. Plain data."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heapreplace

QUEUED, WAITING, WORKING, FAILED, DONE = "queued", "waiting", "working", "failed", "done"
# Results after which nothing is left to do for a node. All other results count as failures.
GOOD = ("rebooted", "skipped", "postponed", "moved", "recovered", "released", "planned")
# Phases that end when a person or another program acts, so the run's speed says nothing about them.
_UP_TO_OTHERS = ("hold", "window", "blocked")
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Row:
    """One node, or one Machine.

    Attributes:
        name: Its name.
        state: ``queued``, ``waiting``, ``working``, ``failed`` or ``done``.
        phase: The phase or, at the end, the result.
        since: When the phase began, in seconds since the epoch; ``None`` if unknown.
        why: What it waits for, or the reason of the result.
        run: The run that works on it; empty for the run that shows the table.
        began: When the work on it began, in seconds since the epoch; ``None`` before that.
    """

    name: str
    state: str = QUEUED
    phase: str = QUEUED
    since: float | None = None
    why: str = ""
    run: str = ""
    began: float | None = None

    @property
    def ended(self) -> bool:
        return self.state in (DONE, FAILED)


@dataclass(frozen=True)
class Budget:
    """The budget of a group.

    Attributes:
        group: Name of the group.
        allowed: How many nodes may be unavailable; ``None`` if unknown.
        unavailable: The nodes that are.
    """

    group: str
    allowed: int | None = None
    unavailable: tuple[str, ...] = ()

    def words(self) -> str:
        """The budget in one line."""
        allowed = "?" if self.allowed is None else self.allowed
        names = f": {', '.join(self.unavailable)}" if self.unavailable else ""
        return f"Group {self.group}: {len(self.unavailable)} of {allowed} allowed unavailable{names}"


@dataclass(frozen=True)
class Board:
    """All that the table shows.

    Attributes:
        title: What is going on.
        rows: The nodes.
        budgets: The budgets of their groups.
        took: Seconds that each finished node took.
        runs: Whether the table names the run of each node.
    """

    title: str
    rows: tuple[Row, ...] = ()
    budgets: tuple[Budget, ...] = ()
    took: tuple[float, ...] = ()
    runs: bool = False


def state_of(result: str) -> str:
    """Return the state of a node that has a result."""
    return DONE if result in GOOD else FAILED


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key by which node-2 comes before node-10."""
    parts = _DIGITS.split(name)
    return tuple((int(part), "") if part.isdecimal() else (0, part) for part in parts)


def seconds_left(board: Board, now: float) -> float | None:
    """Estimate the seconds until the last node is done; ``None`` without a finished node, or with nothing left.

    Nodes take as long as the finished ones did on average, as many at a time as the budgets allow; a node that is ahead
    starts when one at work is done. Nodes that wait for others, such as a holder, do not count.
    """
    going = [row for row in board.rows if row.state == WORKING]
    ahead = [row for row in board.rows if row.state in (QUEUED, WAITING) and row.phase not in _UP_TO_OTHERS]
    if not board.took or not (going or ahead):
        return None
    mean = sum(board.took) / len(board.took)
    lanes = [max(0.0, mean - max(0.0, now - (now if row.began is None else row.began))) for row in going]
    allowed = sum(budget.allowed or 0 for budget in board.budgets)
    lanes += [0.0] * (max(1, min(allowed, len(going) + len(ahead))) - len(lanes))
    heapify(lanes)
    for _row in ahead:
        heapreplace(lanes, lanes[0] + mean)
    return max(lanes)


def summary(board: Board, now: float) -> str:
    """Return how far the run is, in one line."""
    found, total = Counter(row.state for row in board.rows), len(board.rows)
    parts = [f"{found[DONE]} of {total} done"]
    parts += [f"{found[state]} {word}" for state, word in ((FAILED, "failed"), (WORKING, "at work")) if found[state]]
    left = found[WAITING] + found[QUEUED]
    if left:
        parts.append(f"{left} left")
    seconds = seconds_left(board, now)
    if seconds is not None:
        parts.append(f"about {duration(seconds)} to go")
    held = sum(row.state == WAITING and row.phase in _UP_TO_OTHERS for row in board.rows)
    if held and seconds is not None:
        parts.append(f"plus {held} {'that waits' if held == 1 else 'that wait'} for others")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a length of time in its two largest units."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return f"{minutes} min {whole % 60:02} s"
    if hours < 1:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60:02} min"
    return f"{hours // 24} d {hours % 24} h"
