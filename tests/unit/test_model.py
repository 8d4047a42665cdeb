# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Histories of fleets, tried on the rules: runs that start, die, revive and race, nodes that fail, people who cordon.

`make model` tries thousands.
"""

from __future__ import annotations

from examples import share
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from model.machine import Machine


def test_no_promise_is_broken():
    # What fails is made shorter by `make model`: it takes minutes.
    phases = [Phase.reuse, Phase.generate]
    how = settings(max_examples=share(0.6), stateful_step_count=40, phases=phases, report_multiple_bugs=False)
    run_state_machine_as_test(Machine, settings=how)
