# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a state has not changed, and when to look again."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.standstill_rules import Standstill, pause


def test_counts_from_the_first_observation():
    standstill = Standstill()
    assert [standstill.seconds(("n",), now) for now in (100.0, 130.0, 190.0, 280.0)] == [0.0, 30.0, 90.0, 180.0]
    assert standstill.since == 100.0


def test_a_change_counts_again():
    standstill = Standstill()
    standstill.seconds(("n",), 100.0)
    assert standstill.seconds(("n", "m"), 130.0) == 0.0
    assert standstill.seconds(("n",), 140.0) == 0.0


def test_after_a_gap_the_state_may_have_changed_in_between():
    standstill = Standstill()
    standstill.seconds(("n",), 100.0)
    assert standstill.seconds(("n",), 190.1) == 0.0


def test_another_process_continues():
    first, second = Standstill(), Standstill()
    first.seconds(("n",), 100.0)
    # JSON has no tuples.
    second.resume([list(item) if isinstance(item, tuple) else item for item in first.to_data()])
    assert second.seconds(("n",), 150.0) == 50.0


@pytest.mark.parametrize("data", [None, {}, "abc", [], [1, 2], [1, 2, 3, 4]])
def test_data_of_another_form_is_ignored(data):
    standstill = Standstill()
    standstill.seconds(("n",), 100.0)
    standstill.resume(data)
    assert standstill.seconds(("n",), 120.0) == 20.0


@pytest.mark.parametrize(
    ("unchanged", "grace", "seconds"),
    [(0.0, 300.0, 2.0), (30.0, 300.0, 10.0), (150.0, 300.0, 30.0), (299.0, 300.0, 1.1), (400.0, 300.0, 0.1)],
)
def test_pauses_grow_and_end_just_after_the_grace_time(unchanged, grace, seconds):
    assert pause(unchanged, grace) == pytest.approx(seconds)
