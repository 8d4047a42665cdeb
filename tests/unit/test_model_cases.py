# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Histories in which a promise was broken once, as the model found them."""

from __future__ import annotations

from model.machine import Machine


def test_a_slot_that_was_taken_over_by_a_fresh_start_goes_back_to_who_has_the_claim():
    model = Machine()
    model.begin(policy=1, max_failed=0, others=False)
    model.sleeps_long_and_another_takes_over(number=0, run=0, times=0)
    model.is_excluded_or_included(number=1)
    model.start(operation="", restart=True)
    model.sleeps_long_and_another_takes_over(number=1, run=1, times=3)
    model.a_person_cordons_or_uncordons(number=0)
    model.a_person_cordons_or_uncordons(number=0)
    model.a_person_cordons_or_uncordons(number=0)
    model.goes_on(number=0, run=0, times=3)
    model.is_paused_or_wakes(run=1)
    model.sleeps_long_and_another_takes_over(number=0, run=0, times=1)
    model.works(fate="bad", number=2, patient=False, run=1, times=9)
    model.teardown()


def test_a_slot_stays_on_a_node_that_a_killed_run_left_cordoned():
    model = Machine()
    model.begin(policy=0, max_failed=0, others=False)
    model.start_with_another_policy(max_failed=0, policy={"max_unavailable": "2"})
    model.all_goes_well(number=1, run=0, times=6)
    model.sleeps_long_and_another_takes_over(number=0, run=0, times=0)
    model.sleeps_long_and_another_takes_over(number=1, run=1, times=1)
    model.is_killed(run=0)
    model.the_doctor_comes(release=[])
    model.all_goes_well(number=0, run=0, times=9)
    model.teardown()
