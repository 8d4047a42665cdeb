# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Histories of fleets, tried on the rules: runs that start, die, revive and race, nodes that fail, people who cordon.

`make model` tries thousands.
"""

from __future__ import annotations

from hypothesis import settings
from model.machine import Machine

TestFleet = Machine.TestCase
TestFleet.settings = settings(max_examples=150, stateful_step_count=40)
