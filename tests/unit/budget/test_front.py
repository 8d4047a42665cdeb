# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node of a run is at the front of the queue for a slot, and the next one follows, however it ends."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.front import Front
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.standstill_rules import Standstill

PATIENCE = 600


@pytest.fixture
def front(tmp_path):
    """Makes a node's place in the queue, and an event that is set when it gets to the front later."""
    made = []

    def make(run="run-1", group="default", folder=str(tmp_path)):
        arrived = threading.Event()
        made.append(Front(folder, run, group, arrived.set))
        return made[-1], arrived

    yield make
    for one in made:
        one.leave()


def test_one_is_at_the_front_and_the_next_one_follows(front):
    (first, _time), (second, arrived) = front(), front()
    assert (first.ask(), second.ask(), second.ask()) == (True, False, False)

    first.leave()

    assert arrived.wait(PATIENCE)
    assert second.here
    third, late = front()
    assert not third.ask()
    second.leave()
    assert late.wait(PATIENCE)


def test_who_stops_waiting_blocks_nobody(front):
    (first, _time), (second, arrived), (third, late) = front(), front(), front()
    assert [one.ask() for one in (first, second, third)] == [True, False, False]
    second.leave()

    first.leave()

    assert late.wait(PATIENCE)
    assert (second.here, arrived.is_set()) == (False, False)


def test_a_process_that_dies_blocks_nobody(front):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        mine, _time = front()
        os.write(writing, b"1" if mine.ask() else b"0")
        signal.pause()
        os._exit(0)
    try:
        assert os.read(reading, 1) == b"1"
        second, arrived = front()
        assert not second.ask()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert arrived.wait(PATIENCE)


@pytest.mark.parametrize(
    "other", [{"run": "run-2"}, {"group": "control-plane"}, {"run": ""}, {"folder": ""}, {"folder": "/nowhere"}]
)
def test_another_queue_waits_for_nobody(front, other):
    (first, _time), (second, _later) = front(), front(**other)
    assert first.ask()
    assert second.ask()


def test_the_time_of_a_standstill_counts_for_the_next_node(front):
    (first, _time), (second, arrived) = front(), front()
    first.ask(), second.ask()
    standstill, next_standstill = Standstill(), Standstill()
    standstill.seconds(("alfa is not Ready",), 100)
    first.write(standstill.to_data())
    assert second.read() is None
    first.leave()
    assert arrived.wait(PATIENCE)

    next_standstill.resume(second.read())

    assert next_standstill.seconds(("alfa is not Ready",), 160) == 60


def test_an_unreadable_note_says_nothing(front):
    (first, _time) = front()
    first.ask()
    standstill = Standstill()
    standstill.resume(first.read())
    standstill.resume({"odd": True})
    assert standstill.seconds("a", 5) == 0
