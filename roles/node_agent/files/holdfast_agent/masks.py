# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masks: changes and checks them, and records in the facts which units are masked."""

from __future__ import annotations

import logging

import dbus

from .plan import Facts
from .units import Units

LOG = logging.getLogger(__name__)


class Masks:
    def __init__(self, facts: Facts, units: Units) -> None:
        self._facts = facts
        self._units = units
        facts.own_masks = units.own

    @property
    def worth_retrying(self) -> list[str]:
        """Failed units, without those whose mask exists but another file overrides."""
        facts = self._facts
        return [*(unit for unit in facts.failed_masks if not self._units.has_file(unit)), *facts.failed_unmasks]

    def forget_failures(self) -> None:
        for unit in self.worth_retrying:
            self._facts.failed_masks.pop(unit, None)
        self._facts.failed_unmasks = frozenset()

    def look(self) -> None:
        """Ask systemd which units are masked.

        Raises:
            dbus.DBusException: systemd does not answer.
        """
        facts = self._facts
        if not (facts.wanted_units or facts.own_masks):
            # Masks of others don't matter until the agent wants some itself.
            facts.masked = frozenset()
            return
        states = self._units.states(facts.units)
        facts.masked = frozenset(unit for unit, state in states.items() if state == "masked")
        bare = facts.wanted_units - facts.masked
        # Without its file a mask was removed, and the plan restores it, unless that failed before.
        facts.failed_masks = {unit: cause for unit, cause in facts.failed_masks.items() if unit in bare} | {
            unit: _cause(states[unit]) for unit in bare if self._units.has_file(unit)
        }

    def mask(self, units: frozenset[str]) -> None:
        facts = self._facts
        try:
            self._units.mask(units)
            self.look()
        except (dbus.DBusException, OSError) as error:
            LOG.error("%s can't be masked: %s", ", ".join(sorted(units)), error)
            facts.failed_masks.update(dict.fromkeys(units, str(error)))
        for unit in units - facts.masked - facts.failed_masks.keys():
            facts.failed_masks[unit] = "systemd did not mask it"
        for unit in sorted(units & facts.failed_masks.keys()):
            LOG.error("%s is not masked: %s", unit, facts.failed_masks[unit])
        facts.own_masks = self._units.own

    def unmask(self, units: frozenset[str]) -> None:
        facts = self._facts
        try:
            self._units.unmask(units)
        except (dbus.DBusException, OSError) as error:
            LOG.error("%s can't be unmasked: %s", ", ".join(sorted(units)), error)
            facts.failed_unmasks |= units
            return
        facts.own_masks = self._units.own
        facts.failed_masks = {unit: cause for unit, cause in facts.failed_masks.items() if unit not in units}
        try:
            self.look()
        except (dbus.DBusException, OSError) as error:
            LOG.warning("%s", error)


def _cause(state: str) -> str:
    return "a file in /etc/systemd/system overrides the mask" if state == "loaded" else state
