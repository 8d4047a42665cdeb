# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor found, as lines for people: a table with one row for each object, and what is left to do by hand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from .snapshot_rules import Finding

_KINDS = {"opt_outs": "opt-outs"}
_HEADER = ("", "WHAT", "NODE", "OWNER", "SINCE (UTC)", "LAST SIGN", "")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def lines(findings: Sequence[Finding], cleared: Collection[Finding], *, clearing: bool, check_mode: bool) -> list[str]:
    """Return a table, then what a person has to do.

    Args:
        findings: What was found.
        cleared: The findings that are cleared or, in check mode, would be.
        clearing: Whether the doctor was asked to clear.
        check_mode: Whether it only reports what it would do.
    """
    if not findings:
        return ["No run left anything."]
    gone = "to clear" if check_mode else "cleared"

    def verdict(finding: Finding) -> str:
        if finding in cleared:
            return gone
        if finding.stale:
            return "not cleared" if clearing else "stale"
        return "stays" if finding.todo or not finding.alive else "live"

    return [*_table(sorted(findings, key=_place), verdict), *_to_do(findings)]


def _place(finding: Finding) -> tuple[bool, str]:
    """Return a sort key: findings on one node together, operations and runs last."""
    return (not finding.node, finding.node)


def _table(findings: Collection[Finding], verdict: Callable[[Finding], str]) -> list[str]:
    rows = [
        _HEADER,
        *(
            (
                verdict(finding),
                _KINDS.get(finding.kind, finding.kind),
                finding.node or "-",
                finding.run or finding.holder or "-",
                _minute(finding.since),
                _ago(finding.silent_seconds),
                finding.why,
            )
            for finding in findings
        ),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _to_do(findings: Collection[Finding]) -> list[str]:
    texts = dict.fromkeys(finding.todo for finding in findings if finding.todo)
    return ["", "What you have to do:", *(f"- {text}" for text in texts)] if texts else []


def _minute(moment: str) -> str:
    """Return a time of the API as ``2026-11-21 09:00``, in UTC."""
    return moment[:16].replace("T", " ") or "-"


def _ago(seconds: int | None) -> str:
    if seconds is None:
        return "-"
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit} {name} ago"
    return f"{seconds} s ago"
