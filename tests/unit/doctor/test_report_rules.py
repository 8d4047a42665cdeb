# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person reads of the doctor's findings."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.report_rules import lines
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.snapshot_rules import Finding

SINCE = "2026-11-21T09:00:17.123456Z"
DEAD = Finding("slot", "b", "g", "kernel", "awx-1", since=SINCE, silent_seconds=300, stale=True, why="active")
LIVE = Finding("opt_outs", "a", run="awx-22", since=SINCE, silent_seconds=7, alive=True, why="told")
DOWN = Finding("cordon", "b", holder="us", why="it stays", todo="Mend b.")
RUN = Finding("run", run="awx-1", silent_seconds=300, stale=True)


def report(*findings, cleared=(), clearing=True, check_mode=False):
    return lines(findings, cleared, clearing=clearing, check_mode=check_mode)


def test_a_table_by_node_and_what_is_to_be_done():
    assert report(DEAD, LIVE, DOWN, DOWN, RUN, cleared=[DEAD, RUN]) == [
        "         WHAT      NODE  OWNER   SINCE (UTC)       LAST SIGN",
        "live     opt-outs  a     awx-22  2026-11-21 09:00  7 s ago    told",
        "cleared  slot      b     awx-1   2026-11-21 09:00  5 min ago  active",
        "stays    cordon    b     us      -                 -          it stays",
        "stays    cordon    b     us      -                 -          it stays",
        "cleared  run       -     awx-1   -                 5 min ago",
        "",
        "What you have to do:",
        "- Mend b.",
    ]


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"cleared": [DEAD]}, "cleared"),
        ({"cleared": [DEAD], "check_mode": True}, "to clear"),
        ({}, "not cleared"),
        ({"clearing": False}, "stale"),
    ],
)
def test_the_verdict_about_stale_objects(how, word):
    assert report(DEAD, **how)[1].split("  ")[0] == word


@pytest.mark.parametrize(("finding", "word"), [(LIVE, "live"), (DOWN, "stays")])
def test_what_is_left(finding, word):
    assert report(finding)[1].split("  ")[0] == word
    assert len(report(finding)) == (5 if finding.todo else 2)


def test_what_is_of_a_live_run_but_needs_a_person_stays():
    failed = Finding("slot", "b", alive=True, todo="Mend b.")

    assert report(failed)[1].startswith("stays")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"), (172799, "47 h"), (172800, "2 d")],
)
def test_how_long_ago(seconds, words):
    assert report(Finding("run", silent_seconds=seconds))[1].endswith(f"{words} ago")


def test_nothing():
    assert report() == ["No run left anything."]
