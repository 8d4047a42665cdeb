# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events: when a matter is told, and that it is told once."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.log_rules import Book, Matter

START = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)


def at(seconds):
    return START + timedelta(seconds=seconds)


def tell(book, seconds):
    """What is told at a moment."""
    told = book.due(at(seconds))
    for due in told:
        book.told(due, at(seconds))
    return [(due.name, due.key, due.told) for due in told]


class TestBook:
    def test_told_when_it_has_lasted(self):
        book = Book(after=60, repeat=0)
        book.see("n", [Matter("k", at(0))], at(30))

        assert book.next() == at(60)
        assert tell(book, 59) == []
        assert tell(book, 60) == [("n", "k", 0)]
        assert book.next() is None

    def test_that_it_lasts_already_counts(self):
        book = Book(after=60, repeat=0)
        book.listed({"n": [Matter("k", at(-3600))]}, at(0))

        assert tell(book, 0) == [("n", "k", 0)]

    def test_what_only_seeing_tells_counts_from_then(self):
        book = Book(after=60, repeat=0)
        book.see("n", [Matter("k")], at(30))
        book.see("n", [Matter("k")], at(50))

        assert book.next() == at(90)

    def test_told_once_however_often_it_is_seen(self):
        book = Book(after=0, repeat=0)
        book.see("n", [Matter("k", at(0))], at(0))
        assert tell(book, 0) == [("n", "k", 0)]
        book.see("n", [Matter("k", at(0))], at(1))
        # As after a watch that expired.
        book.listed({"n": [Matter("k", at(0))], "m": []}, at(2))

        assert tell(book, 3) == []

    def test_reminders(self):
        book = Book(after=0, repeat=100)
        book.see("n", [Matter("k")], at(0))

        assert tell(book, 0) == [("n", "k", 0)]
        assert tell(book, 99) == []
        assert tell(book, 100) == [("n", "k", 1)]
        assert book.next() == at(200)

    def test_what_is_over_begins_anew(self):
        book = Book(after=60, repeat=0)
        book.see("n", [Matter("k")], at(0))
        book.see("n", [], at(59))
        book.see("n", [Matter("k")], at(59))

        assert tell(book, 118) == []
        assert tell(book, 119) == [("n", "k", 0)]

    def test_what_takes_the_place_of_another_begins_when_it_is_seen(self):
        book = Book(after=60, repeat=0)
        book.see("n", [Matter("k", at(0))], at(0))
        book.see("n", [Matter("l", at(0))], at(50))

        assert book.next() == at(110)

    def test_another_matter_of_the_same_object_is_told_too(self):
        book = Book(after=0, repeat=0)
        book.see("m", [Matter("drain")], at(0))
        assert tell(book, 0) == [("m", "drain", 0)]
        book.see("m", [Matter("drain"), Matter("terminate")], at(1))

        assert tell(book, 1) == [("m", "terminate", 0)]

    def test_what_is_not_in_the_list_is_gone(self):
        book = Book(after=60, repeat=0)
        book.listed({"n": [Matter("k", at(0))], "m": [Matter("k", at(0))]}, at(0))
        book.listed({"m": [Matter("k", at(0))]}, at(1))

        assert tell(book, 60) == [("m", "k", 0)]

    def test_put_off(self):
        book = Book(after=0, repeat=0)
        book.see("n", [Matter("k")], at(0))
        (due,) = book.due(at(0))
        book.later(due, at(7))

        assert tell(book, 6) == []
        assert tell(book, 7) == [("n", "k", 0)]

    def test_what_was_told_while_it_ended_is_forgotten(self):
        book = Book(after=0, repeat=100)
        book.see("n", [Matter("k")], at(0))
        (due,) = book.due(at(0))
        book.see("n", [], at(0))
        book.told(due, at(0))
        book.later(due, at(5))

        assert len(book) == 0
        assert book.next() is None

    def test_longest_due_first(self):
        book = Book(after=10, repeat=0)
        book.listed({"a": [Matter("k", at(3))], "b": [Matter("k", at(1))], "c": [Matter("k", at(2))]}, at(4))

        assert [name for name, _key, _told in tell(book, 20)] == ["b", "c", "a"]

    def test_keeps_nothing_of_what_is_well(self):
        book = Book(after=10, repeat=0)
        book.listed({f"node-{number}": [] for number in range(5000)}, at(0))
        for number in range(5000):
            book.see(f"node-{number}", [], at(1))

        assert len(book) == 0
        assert not book._open


SEEN = st.tuples(st.integers(0, 30), st.sampled_from("ab"), st.sampled_from([(), ("x",), ("y",), ("x", "y")]))


@given(st.lists(SEEN), st.integers(0, 40), st.sampled_from([0, 25]))
def test_each_matter_is_told_as_often_as_it_lasts(steps, after, repeat):
    """Against the plainest way to say so: second by second."""
    book = Book(after=after, repeat=repeat)
    begun, told_at = {}, {}
    moment = 0
    for pause, name, keys in [*steps, (100, "a", ())]:
        for second in range(moment, moment + pause + 1):
            expected = set()
            for matter, since in begun.items():
                lasted = second - since - after
                if (matter not in told_at and lasted >= 0) or (
                    repeat and matter in told_at and second >= told_at[matter] + repeat
                ):
                    expected.add(matter)
            found = tell(book, second)
            assert {(one, key) for one, key, _told in found} == expected
            assert len(found) == len(expected)
            told_at |= dict.fromkeys(expected, second)
        moment += pause
        book.see(name, [Matter(key) for key in keys], at(moment))
        now = {(name, key) for key in keys}
        for matter in [one for one in begun if one[0] == name and one not in now]:
            del begun[matter]
            told_at.pop(matter, None)
        for matter in now:
            begun.setdefault(matter, moment)
