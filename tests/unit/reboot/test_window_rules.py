# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maintenance windows: against a calendar read by hand, and against an oracle that goes from minute to minute."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.window_rules import (
    Outlook,
    Window,
    look,
    read_windows,
)

UTC = timezone.utc
BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = timedelta(minutes=1)


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def window(start, end, *days):
    return {"start": start, "end": end, "days": list(days) or None}


def seen(entries, now, *, zone=UTC, margin=0):
    """Open, and when it opens and closes, as texts."""
    outlook = look(read_windows(entries), zone, utc(now), timedelta(seconds=margin))
    return (outlook.open, *(f"{at:%a %d %H:%M}" if at else None for at in (outlook.opens, outlook.closes)))


class TestRead:
    def test_every_way_to_write_a_day(self):
        (read,) = read_windows([window("22:00", "23:00", "mon", "Tuesday", " WED ", "sUn")])

        assert read == Window(frozenset({0, 1, 2, 6}), 22 * 60, 23 * 60)

    def test_every_day_if_none_is_named(self):
        assert read_windows([{"start": "0:00", "end": "24:00"}]) == (Window(frozenset(range(7)), 0, 1440),)

    @pytest.mark.parametrize(
        ("start", "end", "minutes"),
        [("22:00", "06:00", 480), ("22:00", "22:00", 1440), ("22:00", "00:00", 120), ("22:00", "24:00", 120)],
    )
    def test_an_end_not_after_the_start_is_on_the_next_day(self, start, end, minutes):
        (read,) = read_windows([window(start, end)])

        assert read.end - read.start == minutes

    @pytest.mark.parametrize(
        "value", ["24:00", "24:01", "25:00", "12:60", "12", "1320", "12:0", "noon", "", "\u0662\u0662:\u0660\u0660", -1]
    )
    def test_a_start_that_is_no_time(self, value):
        with pytest.raises(InvalidInput, match=r"windows, entry 2: start .* between 00:00 and 23:59") as caught:
            read_windows([window("22:00", "23:00"), window(value, "23:00")])

        assert f'"{value}"' in caught.value.message

    @pytest.mark.parametrize("value", ["24:01", "25:00", "1440", "now"])
    def test_an_end_that_is_no_time(self, value):
        with pytest.raises(InvalidInput, match=r"windows, entry 1: end .* between 00:00 and 24:00"):
            read_windows([window("22:00", value)])

    @pytest.mark.parametrize("key", ["day", "weekdays", "Days"])
    def test_a_key_that_is_not_known(self, key):
        with pytest.raises(InvalidInput, match=f"windows, entry 1: {key} is not known"):
            read_windows([{key: ["sat"], "start": "22:00", "end": "05:00"}])

    @pytest.mark.parametrize("key", ["start", "end"])
    def test_half_a_window(self, key):
        with pytest.raises(InvalidInput, match=f"windows, entry 1: {key} is missing"):
            read_windows([{**window("22:00", "23:00"), key: None}])

    def test_days_that_are_none(self):
        with pytest.raises(InvalidInput, match=r'windows, entry 1: "mon-fri" is not a day\. Use mon, tue'):
            read_windows([window("22:00", "23:00", "mon-fri")])
        with pytest.raises(InvalidInput, match="windows, entry 1: days is empty"):
            read_windows([{"start": "22:00", "end": "23:00", "days": []}])


class TestLook:
    """21 November 2026 is a Saturday."""

    def test_without_windows_it_is_always_open(self):
        assert look((), UTC, utc("2026-11-21T12:00:00")) == Outlook(open=True, opens=None, closes=None)

    @pytest.mark.parametrize(
        ("now", "expected"),
        [
            ("2026-11-21T21:59:59", (False, "Sat 21 22:00", "Sat 21 23:00")),
            ("2026-11-21T22:00:00", (True, None, "Sat 21 23:00")),
            ("2026-11-21T22:59:59", (True, None, "Sat 21 23:00")),
            ("2026-11-21T23:00:00", (False, "Sat 28 22:00", "Sat 28 23:00")),
        ],
    )
    def test_begin_belongs_to_it_and_end_does_not(self, now, expected):
        assert seen([window("22:00", "23:00", "sat")], now) == expected

    def test_the_day_is_the_one_on_which_it_starts(self):
        night = [window("22:00", "06:00", "fri")]

        assert seen(night, "2026-11-21T05:00:00") == (True, None, "Sat 21 06:00")
        assert seen(night, "2026-11-20T05:00:00") == (False, "Fri 20 22:00", "Sat 21 06:00")

    def test_the_day_is_that_of_the_time_zone(self):
        saturday = [window("00:00", "24:00", "sat")]

        assert seen(saturday, "2026-11-20T23:30:00", zone=BERLIN) == (True, None, "Sat 21 23:00")
        assert seen(saturday, "2026-11-21T23:30:00", zone=BERLIN) == (False, "Fri 27 23:00", "Sat 28 23:00")

    def test_windows_that_touch_or_overlap_are_one(self):
        split = [window("22:00", "24:00", "sat"), window("00:00", "02:00", "sun"), window("01:00", "03:00", "sun")]

        assert seen(split, "2026-11-21T22:30:00") == (True, None, "Sun 22 03:00")

    def test_all_the_time_has_no_end(self):
        assert seen([window("00:00", "24:00")], "2026-11-21T12:00:00") == (True, None, None)
        assert seen([window("12:00", "12:00")], "2026-11-21T12:00:00", margin=10**9) == (True, None, None)

    def test_a_break_of_a_minute_a_week_is_an_end(self):
        rest = [window("00:00", "24:00", "mon", "tue", "wed", "thu", "fri", "sat"), window("00:00", "23:59", "sun")]

        assert seen(rest, "2026-11-23T00:00:00") == (True, None, "Sun 29 23:59")

    @pytest.mark.parametrize(
        ("margin", "expected"),
        [
            (1800, (True, None, "Sat 21 23:00")),
            (1801, (False, "Sun 22 10:00", "Sun 22 12:00")),
            (7200, (False, "Sun 22 10:00", "Sun 22 12:00")),
            (7201, (False, None, None)),
        ],
    )
    def test_one_of_which_too_little_is_left_does_not_count(self, margin, expected):
        some = [window("22:00", "23:00", "sat"), window("10:00", "12:00", "sun")]

        assert seen(some, "2026-11-21T22:30:00", margin=margin) == expected


class TestDaylightSaving:
    """Berlin, in UTC: 29 March 2026 01:00 the clock jumps from 02:00 to 03:00; 25 October 01:00 from 03:00 to 02:00."""

    def test_a_night_is_an_hour_shorter_in_spring_and_longer_in_autumn(self):
        night = [window("22:00", "06:00")]

        assert seen(night, "2026-03-28T21:00:00", zone=BERLIN) == (True, None, "Sun 29 04:00")
        assert seen(night, "2026-10-24T20:00:00", zone=BERLIN) == (True, None, "Sun 25 05:00")

    def test_a_start_that_the_clock_jumps_over_is_the_jump(self):
        assert seen([window("02:30", "04:00")], "2026-03-29T00:59:00", zone=BERLIN) == (
            False,
            "Sun 29 01:00",
            "Sun 29 02:00",
        )

    def test_an_end_that_the_clock_jumps_over_is_the_jump(self):
        assert seen([window("01:00", "02:30")], "2026-03-29T00:30:00", zone=BERLIN) == (True, None, "Sun 29 01:00")

    def test_one_that_the_clock_jumps_over_altogether_is_not(self):
        assert seen([window("02:00", "03:00", "sun")], "2026-03-29T00:00:00", zone=BERLIN)[1] == "Sun 05 00:00"

    def test_a_break_that_the_clock_jumps_over_is_none(self):
        rest = [window("03:00", "24:00"), window("00:00", "02:00")]

        assert seen(rest, "2026-03-29T00:30:00", zone=BERLIN) == (True, None, "Mon 30 00:00")

    def test_times_that_come_twice_are_the_first(self):
        assert seen([window("01:00", "02:30")], "2026-10-25T00:00:00", zone=BERLIN) == (True, None, "Sun 25 00:30")
        assert seen([window("02:30", "02:45")], "2026-10-25T01:35:00", zone=BERLIN)[0] is False
        assert seen([window("02:30", "04:00")], "2026-10-25T01:10:00", zone=BERLIN) == (True, None, "Sun 25 03:00")

    def test_a_day_that_the_calendar_leaves_out(self):
        # Samoa went from Thursday the 29th of December 2011 to Saturday the 31st.
        apia = ZoneInfo("Pacific/Apia")

        assert seen([window("10:00", "12:00", "fri")], "2011-12-30T09:00:00", zone=apia)[1] == "Thu 05 20:00"
        assert seen([window("22:00", "06:00", "thu")], "2011-12-30T09:00:00", zone=apia) == (
            True,
            None,
            "Fri 30 10:00",
        )


# Jumps of an hour, of half an hour, at midnight, of a day; westwards, eastwards; none.
JUMPS = [
    ("UTC", "2026-11-21T12:00:00"),
    ("Asia/Kathmandu", "2026-11-21T12:00:00"),
    ("Europe/Berlin", "2026-03-29T01:00:00"),
    ("Europe/Berlin", "2026-10-25T01:00:00"),
    ("America/New_York", "2026-03-08T07:00:00"),
    ("America/New_York", "2026-11-01T06:00:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00"),
    ("America/Sao_Paulo", "2018-02-18T02:00:00"),
    ("Pacific/Apia", "2011-12-30T10:00:00"),
    ("Pacific/Kwajalein", "1993-08-21T12:00:00"),
]
TIMES = st.integers(0, 1439) | st.sampled_from([0, 60, 90, 120, 150, 180, 1380, 1439])
WINDOWS = st.lists(
    st.builds(
        lambda days, start, end: Window(days, start, end if end > start else end + 1440),
        st.frozensets(st.integers(0, 6), min_size=1) | st.just(frozenset(range(7))),
        TIMES,
        TIMES | st.just(1440),
    ),
    min_size=1,
    max_size=4,
)


def minute_by_minute(windows, zone, begin, minutes):
    """Whether it is open, minute by minute: by a clock on the wall that stands still instead of going back."""
    shown = (begin - timedelta(days=2)).astimezone(zone).replace(tzinfo=None)
    found = []
    for number in range(-2 * 1440, minutes):
        shown = max(shown, (begin + number * MINUTE).astimezone(zone).replace(tzinfo=None, fold=0))
        if number >= 0:
            minute, today = shown.hour * 60 + shown.minute, shown.weekday()
            found.append(
                any(
                    (today in item.days and item.start <= minute < item.end)
                    or ((today - 1) % 7 in item.days and minute + 1440 < item.end)
                    for item in windows
                )
            )
    return found


@given(
    windows=WINDOWS,
    jump=st.sampled_from(JUMPS),
    before=st.integers(-2 * 86400, 2 * 86400),
    margin=st.sampled_from([0, 0, 1, 3600, 86400]),
)
def test_agrees_with_the_oracle(windows, jump, before, margin):
    zone, now = ZoneInfo(jump[0]), utc(jump[1]) - timedelta(seconds=before)
    begin = now.replace(second=0)
    days = 9
    oracle = minute_by_minute(windows, zone, begin, days * 1440)
    spans, start = [], None
    for number, is_open in enumerate([*oracle, False]):
        if is_open and start is None:
            start = number
        elif not is_open and start is not None:
            spans.append((begin + start * MINUTE, begin + number * MINUTE, number == len(oracle)))
            start = None

    outlook = look(windows, zone, now, timedelta(seconds=margin))

    # The oracle sees a week and a bit: what reaches its end is longer than it can tell.
    enough = next((s for s in spans if s[2] or s[1] - max(s[0], now) >= timedelta(seconds=margin)), None)
    if enough is None:
        assert not outlook.open
        assert outlook.opens is None or outlook.opens > begin + timedelta(days=days) - timedelta(seconds=margin)
        return
    opens, closes, cut = enough
    if cut and closes - opens < timedelta(seconds=margin):
        return
    assert outlook.open is (opens <= now)
    assert outlook.opens == (None if outlook.open else opens)
    if cut:
        assert outlook.closes is None or outlook.closes >= closes
    else:
        assert outlook.closes == closes
