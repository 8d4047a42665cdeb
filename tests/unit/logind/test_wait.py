# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long to wait for a state of the node."""

from __future__ import annotations

import itertools

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind import wait


class Clock:
    """A clock that only a sleep moves."""

    def __init__(self, oversleeps):
        self.now, self.oversleeps = 0.0, oversleeps

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds + self.oversleeps


@pytest.mark.parametrize(
    ("oversleeps", "true_at", "found", "checks"),
    [(0, 0, True, 1), (0, 3, True, 4), (0, 5, True, 6), (0, 99, False, 7), (3600, 1, True, 2), (3600, 99, False, 2)],
)
def test_a_condition_is_checked_once_more_after_the_deadline(monkeypatch, oversleeps, true_at, found, checks):
    monkeypatch.setattr(wait, "time", Clock(oversleeps))
    asked = itertools.count()
    assert wait.until(lambda: next(asked) >= true_at, 5.0, 1.0) is found
    assert next(asked) == checks
