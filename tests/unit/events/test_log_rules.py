# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events: when a condition is sent, and that it is sent once."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.log_rules import Condition, EventLog

START = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)


def at(seconds):
    return START + timedelta(seconds=seconds)


def send(log, seconds):
    """What is sent at a moment."""
    sent = log.due(at(seconds))
    for due in sent:
        log.sent(due, at(seconds))
    return [(due.name, due.key, due.sent) for due in sent]


class TestBook:
    def test_sent_when_it_has_lasted(self):
        log = EventLog(after=60, repeat=0)
        log.see("n", [Condition("k", at(0))], at(30))

        assert log.next() == at(60)
        assert send(log, 59) == []
        assert send(log, 60) == [("n", "k", 0)]
        assert log.next() is None

    def test_that_it_lasts_already_counts(self):
        log = EventLog(after=60, repeat=0)
        log.listed({"n": [Condition("k", at(-3600))]}, at(0))

        assert send(log, 0) == [("n", "k", 0)]

    def test_a_condition_without_a_time_counts_from_when_it_is_seen(self):
        log = EventLog(after=60, repeat=0)
        log.see("n", [Condition("k")], at(30))
        log.see("n", [Condition("k")], at(50))

        assert log.next() == at(90)

    def test_sent_once_however_often_it_is_seen(self):
        log = EventLog(after=0, repeat=0)
        log.see("n", [Condition("k", at(0))], at(0))
        assert send(log, 0) == [("n", "k", 0)]
        log.see("n", [Condition("k", at(0))], at(1))
        # As after a watch that expired.
        log.listed({"n": [Condition("k", at(0))], "m": []}, at(2))

        assert send(log, 3) == []

    def test_reminders(self):
        log = EventLog(after=0, repeat=100)
        log.see("n", [Condition("k")], at(0))

        assert send(log, 0) == [("n", "k", 0)]
        assert send(log, 99) == []
        assert send(log, 100) == [("n", "k", 1)]
        assert log.next() == at(200)

    def test_a_condition_that_ended_starts_again(self):
        log = EventLog(after=60, repeat=0)
        log.see("n", [Condition("k")], at(0))
        log.see("n", [], at(59))
        log.see("n", [Condition("k")], at(59))

        assert send(log, 118) == []
        assert send(log, 119) == [("n", "k", 0)]

    def test_what_takes_the_place_of_another_begins_when_it_is_seen(self):
        log = EventLog(after=60, repeat=0)
        log.see("n", [Condition("k", at(0))], at(0))
        log.see("n", [Condition("l", at(0))], at(50))

        assert log.next() == at(110)

    def test_another_condition_of_the_same_object_is_sent_too(self):
        log = EventLog(after=0, repeat=0)
        log.see("m", [Condition("drain")], at(0))
        assert send(log, 0) == [("m", "drain", 0)]
        log.see("m", [Condition("drain"), Condition("terminate")], at(1))

        assert send(log, 1) == [("m", "terminate", 0)]

    def test_what_is_not_in_the_list_is_gone(self):
        log = EventLog(after=60, repeat=0)
        log.listed({"n": [Condition("k", at(0))], "m": [Condition("k", at(0))]}, at(0))
        log.listed({"m": [Condition("k", at(0))]}, at(1))

        assert send(log, 60) == [("m", "k", 0)]

    def test_postponed(self):
        log = EventLog(after=0, repeat=0)
        log.see("n", [Condition("k")], at(0))
        (due,) = log.due(at(0))
        log.later(due, at(7))

        assert send(log, 6) == []
        assert send(log, 7) == [("n", "k", 0)]

    def test_an_event_that_was_sent_while_the_condition_ended_is_forgotten(self):
        log = EventLog(after=0, repeat=100)
        log.see("n", [Condition("k")], at(0))
        (due,) = log.due(at(0))
        log.see("n", [], at(0))
        log.sent(due, at(0))
        log.later(due, at(5))

        assert len(log) == 0
        assert log.next() is None

    def test_longest_due_first(self):
        log = EventLog(after=10, repeat=0)
        log.listed({"a": [Condition("k", at(3))], "b": [Condition("k", at(1))], "c": [Condition("k", at(2))]}, at(4))

        assert [name for name, _key, _told in send(log, 20)] == ["b", "c", "a"]

    def test_keeps_nothing_of_what_is_well(self):
        log = EventLog(after=10, repeat=0)
        log.listed({f"node-{number}": [] for number in range(5000)}, at(0))
        for number in range(5000):
            log.see(f"node-{number}", [], at(1))

        assert len(log) == 0
        assert not log._open


SEEN = st.tuples(st.integers(0, 30), st.sampled_from("ab"), st.sampled_from([(), ("x",), ("y",), ("x", "y")]))


@given(st.lists(SEEN), st.integers(0, 40), st.sampled_from([0, 25]))
def test_each_condition_is_sent_as_often_as_it_lasts(steps, after, repeat):
    """Against the plainest way to say so: second by second."""
    log = EventLog(after=after, repeat=repeat)
    begun, told_at = {}, {}
    moment = 0
    for pause, name, keys in [*steps, (100, "a", ())]:
        for second in range(moment, moment + pause + 1):
            expected = set()
            for condition, since in begun.items():
                lasted = second - since - after
                if (condition not in told_at and lasted >= 0) or (
                    repeat and condition in told_at and second >= told_at[condition] + repeat
                ):
                    expected.add(condition)
            found = send(log, second)
            assert {(one, key) for one, key, _told in found} == expected
            assert len(found) == len(expected)
            told_at |= dict.fromkeys(expected, second)
        moment += pause
        log.see(name, [Condition(key) for key in keys], at(moment))
        now = {(name, key) for key in keys}
        for condition in [one for one in begun if one[0] == name and one not in now]:
            del begun[condition]
            told_at.pop(condition, None)
        for condition in now:
            begun.setdefault(condition, moment)
