# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server's clock, learned from its answers."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import clock as clock_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.clock import ServerClock
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import from_text, seconds_between, to_text

NAIVE = st.datetimes(datetime(2001, 1, 1), datetime(2090, 1, 1))  # noqa: DTZ001 (hypothesis wants them so)
MOMENTS = NAIVE.map(lambda moment: moment.replace(tzinfo=timezone.utc))
THEN = datetime(2026, 5, 4, 3, 2, 1, tzinfo=timezone.utc)


@pytest.fixture
def at(monkeypatch):
    """Sets the monotonic clock."""

    def set_(seconds: float) -> None:
        monkeypatch.setattr(clock_module.time, "monotonic", lambda: seconds)

    return set_


def header(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)


def test_unknown_until_an_answer_came():
    clock = ServerClock()

    assert not clock.known
    with pytest.raises(RuntimeError):
        clock.now()


@pytest.mark.parametrize("text", [None, "", "yesterday", "Mon, 99 Foo 2026 00:00:00 GMT"])
def test_what_can_not_be_read_teaches_nothing(text):
    clock = ServerClock()
    clock.observe(text, 0.0)

    assert not clock.known


def test_follows_the_server_not_the_controller(at):
    clock = ServerClock()
    at(1000.0)
    clock.observe(header(THEN), 1000.0)
    at(1007.5)

    assert clock.now() == THEN + timedelta(seconds=7.5)


@given(MOMENTS, st.lists(st.floats(0, 3600), min_size=1, max_size=10))
def test_within_a_second_below_the_truth_and_never_above(truth, waits):
    clock = ServerClock()
    real = time.monotonic
    passed = 0.0
    try:
        for wait in waits:
            passed += wait
            time.monotonic = lambda passed=passed: passed
            clock.observe(header(truth + timedelta(seconds=passed)), passed)
            error = seconds_between(clock.now(), truth + timedelta(seconds=passed))
            assert -1e-3 <= error <= 1.001
    finally:
        time.monotonic = real


# Of one request: seconds before it, until the server writes the header, and until the answer is read.
REQUESTS = st.tuples(*[st.one_of(st.floats(0, 1), st.floats(0, 3600))] * 3)


@given(MOMENTS, st.lists(REQUESTS, min_size=1, max_size=10))
def test_no_delay_sets_it_back(truth, requests):
    """However long requests and answers take, by the network or a pause of this process."""
    clock, passed = ServerClock(), 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock_module.time, "monotonic", lambda: passed)
        closest = float("inf")
        for gap, there, back in requests:
            sent = passed + gap
            passed = sent + there + back
            known = clock.now() if clock.known else None
            clock.observe(header(truth + timedelta(seconds=sent + there)), sent)
            closest = min(closest, back)
            error = seconds_between(clock.now(), truth + timedelta(seconds=passed))
            assert known is None or clock.now() >= known
            assert -1e-3 <= error <= closest + 1.001, "the tightest estimate is kept"


@given(MOMENTS, st.floats(10, 1e6), st.floats(0, 3))
def test_a_server_whose_clock_is_set_back_is_followed(truth, by, took):
    clock, passed = ServerClock(), 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock_module.time, "monotonic", lambda: passed)
        clock.observe(header(truth), 0.0)
        passed = took
        clock.observe(header(truth - timedelta(seconds=by)), 0.0)

        assert clock.now() < truth - timedelta(seconds=by - 1)


@pytest.mark.parametrize("answers", [1, 2, 3])
def test_answers_that_waited_for_a_paused_process_set_no_clock_back(at, answers):
    clock = ServerClock()
    at(1000.0)
    clock.observe(header(THEN), 1000.0)
    at(1100.0)
    for _answer in range(answers):
        clock.observe(header(THEN), 1000.0)
    assert clock.now() == THEN + timedelta(seconds=100)


@given(MOMENTS)
def test_text_is_read_as_it_is_written(moment):
    assert from_text(to_text(moment)) == moment


def test_forms_of_kubernetes():
    assert from_text("2026-05-04T03:02:01Z") == THEN
    assert from_text(" 2026-05-04T03:02:01.000000Z ") == THEN
    assert from_text("2026-05-04T05:02:01+02:00") == THEN
    assert to_text(THEN) == "2026-05-04T03:02:01.000000Z"


def test_text_that_is_not_a_time():
    with pytest.raises(ValueError, match="soon"):
        from_text("soon")
