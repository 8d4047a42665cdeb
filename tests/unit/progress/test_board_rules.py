# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The estimate, the order of names, and lengths of time."""

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
    duration,
    natural,
    seconds_left,
    state_of,
    summary,
)

TWO = (Budget("workers", 2, ("a",)),)


def test_names_sort_as_people_count():
    assert sorted(["node-10", "node-2", "10", "b", "node-1"], key=natural) == ["10", "b", "node-1", "node-2", "node-10"]


@given(st.lists(st.text(max_size=8)))
def test_all_names_can_be_sorted(names):
    assert len(sorted(names, key=natural)) == len(names)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0 s"),
        (99, "99 s"),
        (100, "1 min 40 s"),
        (599, "9 min 59 s"),
        (600, "10 min"),
        (3599, "59 min"),
        (3600, "1 h 00 min"),
        (3 * 3600 + 300, "3 h 05 min"),
        (48 * 3600 - 1, "47 h 59 min"),
        (48 * 3600, "2 d 0 h"),
        (74 * 3600, "3 d 2 h"),
    ],
)
def test_length_of_time_has_two_units(seconds, words):
    assert duration(seconds) == words


class TestEstimate:
    def test_is_unknown_before_the_first_node_is_done(self):
        assert seconds_left(Board("", (Row("a", WORKING, "drain", 0, began=0),), TWO), 10) is None

    def test_is_unknown_with_nothing_left(self):
        assert seconds_left(Board("", (Row("a", DONE, "rebooted"),), TWO, (60.0,)), 10) is None

    def test_takes_as_many_nodes_at_a_time_as_the_budget_allows(self):
        rows = tuple(Row(name) for name in "abcd")

        assert seconds_left(Board("", rows, TWO, (50.0, 70.0)), 0) == 120
        assert seconds_left(Board("", rows, (), (60.0,)), 0) == 240

    @pytest.mark.parametrize(("began", "left"), [(100, 15), (145, 60), (146, 60), (None, 60), (0, 0)])
    def test_counts_the_time_that_a_node_has_already_worked(self, began, left):
        assert seconds_left(Board("", (Row("a", WORKING, "drain", 0, began=began),), TWO, (60.0,)), 145) == left

    def test_nodes_that_are_at_work_end_at_the_same_time_whatever_the_budget_says(self):
        rows = tuple(Row(name, WORKING, "drain", 0, began=0) for name in "abc")

        assert seconds_left(Board("", rows, TWO, (60.0,)), 0) == 60

    def test_a_node_begins_when_one_at_work_is_done(self):
        rows = (Row("a", WORKING, "drain", 0, began=0), Row("b", WORKING, "drain", 40, began=40), Row("c"))

        assert seconds_left(Board("", rows, TWO, (90.0,)), 60) == 30 + 90
        assert seconds_left(Board("", rows[1:], TWO, (90.0,)), 60) == 90

    def test_a_budget_whose_limit_is_unknown_lets_no_node_begin(self):
        rows = tuple(Row(name) for name in "abcdef")

        assert seconds_left(Board("", rows, (*TWO, Budget("unknown")), (60.0,)), 0) == 180

    def test_leaves_out_nodes_that_wait_for_others(self):
        rows = (Row("a", WAITING, "hold"), Row("b", WAITING, "slot"), Row("c", DONE, "rebooted"))
        more = (Row("d", WAITING, "window"), Row("e"), Row("f", WORKING, "drain", 10, began=10))

        assert seconds_left(Board("", rows, TWO, (9.0,)), 0) == 9
        for board, words in (
            (Board("", rows, TWO, (9.0,)), "1 of 3 done, 2 left, about 9 s to go, plus 1 that waits for others"),
            (
                Board("", (*rows, *more), TWO, (9.0,)),
                "1 of 6 done, 1 at work, 4 left, about 15 s to go, plus 2 that wait for others",
            ),
            (Board("", rows[1:], TWO, (9.0,)), "1 of 2 done, 1 left, about 9 s to go"),
            (Board("", rows[:1], TWO), "0 of 1 done, 1 left"),
        ):
            assert summary(board, 13) == words

    @given(
        st.lists(st.sampled_from([QUEUED, WAITING, WORKING, DONE, FAILED]), max_size=30),
        st.lists(st.floats(0, 1e5), min_size=1, max_size=5),
        st.integers(0, 50),
        st.floats(0, 1e6),
    )
    def test_is_between_the_time_of_one_node_and_of_all_one_at_a_time(self, states, took, allowed, now):
        rows = tuple(Row(str(number), state, state, 0, began=0) for number, state in enumerate(states))
        found = seconds_left(Board("", rows, (Budget("g", allowed),), tuple(took)), now)

        ahead = sum(state in (QUEUED, WAITING, WORKING) for state in states)
        assert (found is None) == (ahead == 0)
        least = min(took) if QUEUED in states else 0
        assert found is None or least * 0.999 <= found <= ahead * max(took) * 1.001


def test_an_unknown_result_is_a_failure():
    assert state_of("rebooted") == DONE
    assert state_of("anything") == FAILED
