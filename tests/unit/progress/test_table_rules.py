# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table fits every screen, names what matters, and shows texts of others without their control characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress.board_rules import (
    DONE,
    FAILED,
    QUEUED,
    WAITING,
    WORKING,
    Board,
    Budget,
    Row,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress.table_rules import (
    Line,
    columns,
    fit,
    length,
    table,
)

ROWS = st.lists(
    st.builds(
        Row,
        name=st.text(max_size=70),
        state=st.sampled_from([QUEUED, WAITING, WORKING, DONE, FAILED]),
        phase=st.text(max_size=12),
        since=st.none() | st.floats(0, 1e9),
        why=st.text(max_size=200),
    ),
    max_size=40,
    unique_by=lambda row: row.name,
)


@given(ROWS, st.integers(20, 250), st.none() | st.integers(6, 60), st.booleans())
def test_table_fits_every_screen(rows, width, height, runs):
    lines = table(
        Board("title", tuple(rows), (Budget("g", 2, ("a", "b")),), runs=runs), 1e9, width=width, height=height
    )

    assert all(length(line.text) <= width for line in lines)
    assert all(line.text.isprintable() for line in lines)
    assert height is None or len(lines) <= height


@given(ROWS, st.integers(6, 60))
def test_every_node_is_shown_or_counted(rows, height):
    lines = table(Board("title", tuple(rows)), 1e9, width=200, height=height)

    foot = lines[-1].text
    counted = int(foot.split()[1]) if foot.startswith("and ") and " more: " in foot else 0
    shown = len(lines) - 2 - bool(counted) - bool(rows and len(lines) > 2 + bool(counted))
    assert shown + counted == len(rows)


@pytest.mark.parametrize("height", [24, 6])
def test_small_run_keeps_the_place_of_each_node(height):
    rows = (Row("n-10", WORKING, "drain"), Row("n-2", DONE, "rebooted"), Row("n-1"))

    lines = table(Board("t", rows), 0, width=80, height=height)
    assert [line.text.split()[0] for line in lines[3:]] == ["n-1", "n-2", "n-10"]


def test_each_line_has_the_style_of_its_state():
    rows = (Row("n-1", WORKING, "drain", 40, "3 pods", "4711", began=40), Row("n-2"))

    assert table(Board("t", rows, (Budget("g", 2, ("n-1",)),), (90.0,), runs=True), 100, width=80) == [
        Line("t", "title"),
        Line("0 of 2 done, 1 at work, 1 left, about 90 s to go"),
        Line("Group g: 1 of 2 allowed unavailable: n-1"),
        Line("NODE  PHASE   SINCE  RUN   WAITS FOR, OR WHY"),
        Line("n-1   drain   60 s   4711  3 pods", WORKING),
        Line("n-2   queued  -      -", QUEUED),
    ]


@pytest.mark.parametrize(("height", "shown"), [(3, ["n-3"]), (6, ["n-3", "n-2"])])
def test_of_the_nodes_that_are_done_the_latest_are_shown(height, shown):
    rows = tuple(Row(f"n-{number}", DONE, "rebooted", since) for number, since in enumerate((None, 10, 20, 30)))

    *lines, foot = table(Board("t", rows), 60, width=80, height=height)
    assert [line.text.split()[0] for line in lines[3:]] == shown
    assert foot.text == f"and {4 - len(shown)} more: {4 - len(shown)} rebooted"


def test_large_run_shows_who_works_fails_and_waits_for_others_first():
    rows = [Row(f"n-{number}", WAITING, "slot", 0, "other nodes") for number in range(290)]
    rows[150] = Row("n-150", FAILED, "failed", 0, "did not come back")
    rows[7] = Row("n-7", WAITING, "hold", 0, "held by apps/alice")
    rows += [Row(f"done-{number}", DONE, "rebooted", number) for number in range(8)]
    rows += [Row("work-1", WORKING, "drain", 0), Row("work-2", WORKING, "reboot", 0)]

    lines = [line.text for line in table(Board("t", tuple(rows)), 60, width=80, height=24)]

    assert len(lines) == 24
    assert [line.split()[0] for line in lines[3:8]] == ["work-1", "work-2", "n-150", "n-7", "n-0"]
    assert lines[-1].startswith("and 280 more: 272 slot, 8 rebooted")


def test_a_long_name_leaves_room_for_the_reason():
    row = Row("node-" + "x" * 80, WAITING, "hold", 0, "held by apps/alice since 2026-11-21T09:00:00Z")

    line = table(Board("t", (row,)), 60, width=80)[3]
    assert "held by apps/alice" in line.text


@pytest.mark.parametrize(
    ("sizes", "width", "kept"),
    [
        ((20, 5), 200, (20, 5)),
        ((20, 40), 78, (20, 30)),
        ((40, 20), 53, (12, 13)),
        ((13, 40), 40, (12, 12)),
        ((12, 5), 10, (12, 5)),
    ],
)
def test_longest_column_is_cut_first_and_none_to_less_than_12(sizes, width, kept):
    cells = [letter * size for letter, size in zip("np", sizes)]

    (line,) = columns([(*cells, "why")], width)
    assert line == "  ".join([*map(fit, cells, kept), "why"])


def test_texts_of_others_cannot_move_the_cursor():
    row = Row("n", WAITING, "hold", 0, "held by \x1b[2J\x1b[1;1Hnobody\nnode-2  rebooted")

    text = table(Board("t", (row,)), 0, width=200)[-1].text
    assert "\x1b" not in text
    assert "\n" not in text


def test_wide_characters_count_twice():
    assert length("日本") == 4
    assert fit("日本語", 5) == "日..."


def test_accents_do_not_count():
    assert length("e\u0301") == 1


def test_no_column_is_left():
    assert fit("n-1", 0) == ""
