# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a cluster as lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from .._api.times import to_text
from .._doctor.snapshot_rules import Finding
from .._progress.board_rules import duration
from .._progress.table_rules import columns, table
from .rules import Status

# No line is cut: a reason has to be complete.
_WIDTH = 1_000_000


def lines(status: Status) -> list[str]:
    """Return the lines. Parts without content are left out."""
    moment = to_text(status.now)[:19].replace("T", " ")
    now = status.now.timestamp()
    head, *rest = table(status.board, now, width=_WIDTH)
    found = [f"{head.text} at {moment} UTC", *(line.text for line in rest)]
    if not status.board.rows:
        found = [found[0], *(budget.words() for budget in status.board.budgets), "No run works on a node, or left one."]
    holds = [
        (hold["node"], f"{hold['namespace']}/{hold['holder']}", duration(hold["held_seconds"]), hold["reason"])
        for hold in status.holds
    ]
    found += _part(("HELD NODE", "BY", "SINCE", "WHY"), holds)
    runs = [
        (run["id"], "live" if run["alive"] else "dead", f"{duration(run['silent_seconds'])} ago", run["holder"])
        for run in status.runs
    ]
    found += _part(("RUN", "STATE", "LAST SIGN", "WHO"), runs)
    if status.stale:
        many = "1 object" if len(status.stale) == 1 else f"{len(status.stale)} objects"
        found += ["", f"The doctor would clear {many} that no live run has, unless a run resumes the work:"]
        found += [f"- {_what(item)}: {item.why}" for item in status.stale]
    if status.todo:
        found += ["", "What you have to do:", *(f"- {text}" for text in status.todo)]
    return found


def _what(item: Finding) -> str:
    return f"{item.kind.replace('_', '-')}{f' on {item.node}' if item.node else ''}"


def _part(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["", *columns([header, *rows], _WIDTH)] if rows else []
