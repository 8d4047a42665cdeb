# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others write: how long a text may be, and which times are plausible."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._shared.bounds import (
    LONGEST,
    bounded,
    cut,
    merged,
    moment,
    oldest_first,
    seconds_since,
    some,
)

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=timezone.utc)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)


@given(TEXTS, TEXTS)
def test_what_is_cut_is_short_and_stays_distinct_and_is_cut_once(one, other):
    assert len(cut(one)) <= LONGEST + 17
    assert (cut(one) == cut(other)) == (one == other)
    assert cut(cut(one)) == cut(one)


def test_long_texts_with_the_same_beginning_stay_distinct():
    one, other = ("x" * 220_000 + end for end in "ab")

    assert cut(one) != cut(other)
    assert cut(one)[:LONGEST] == "x" * LONGEST
    assert cut("x" * LONGEST) == "x" * LONGEST


def test_a_list_says_how_many_it_leaves_out():
    assert some(["a", "b"], 2) == "a, b"
    assert some(["a", "b", "c", "d"], 2) == "a, b, and 2 more"
    assert some([]) == ""


def test_what_is_written_has_limits_and_says_what_is_missing():
    pods = [{"namespace": "shop", "name": f"web-{number}", "reason": "x" * 5000} for number in range(1550)]
    found = bounded({"pods": pods, "evidence": {"output": "y" * 5000, "lines": list("abc") * 50}, "seconds": 4.5})

    assert [item["name"] for item in found["pods"]] == [f"web-{number}" for number in range(100)]
    assert found["left_out"] == {"pods": 1450, "evidence.lines": 50}
    assert len(json.dumps(found)) < 120_000
    assert (bounded(found), found["seconds"]) == (found, 4.5)
    assert bounded({"a": ["b"]}) == {"a": ["b"]}


def test_what_is_left_out_is_that_of_the_last_word():
    first = merged({}, {"pods": ["x"] * 150, "uri": "https://bmc"})
    second = merged(first, {"pods": ["y"], "volumes": ["z"] * 101})

    assert first["left_out"] == {"pods": 50}
    assert second == {"pods": ["y"], "uri": "https://bmc", "volumes": ["z"] * 100, "left_out": {"volumes": 1}}
    assert merged(second, {"volumes": []}) == {"pods": ["y"], "uri": "https://bmc", "volumes": []}


@pytest.mark.parametrize(
    "text",
    [
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00.000000Z",
        "1970-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "9999-12-31T23:59:59Z",
        "2026-02-30T00:00:00Z",
        "yesterday",
        "",
        None,
        12,
    ],
)
def test_an_absurd_time_counts_as_now(text):
    assert seconds_since(text, NOW) == 0.0


@given(st.text())
def test_no_time_raises_an_exception(text):
    assert seconds_since(text, NOW) >= 0.0


def test_a_time_is_as_long_ago_as_it_says():
    assert seconds_since("2026-05-04T03:01:01Z", NOW) == 60
    assert seconds_since("2026-05-04T03:01:01.500000Z", NOW) == 59.5
    assert seconds_since("2026-05-04T05:01:01+02:00", NOW) == 60
    assert moment("2026-05-04T03:01:01Z") == NOW - timedelta(seconds=60)


def test_a_time_near_the_end_of_the_calendar_is_no_time():
    assert moment("9999-12-31T23:59:59Z") is None
    assert moment("2999-12-31T23:59:59Z")


def test_an_absurd_time_is_not_the_oldest():
    times = ["0000-01-01T00:00:00Z", "2026-05-04T03:01:01Z", "2026-05-04T03:01:00Z"]

    assert sorted(times, key=oldest_first) == [times[2], times[1], times[0]]
