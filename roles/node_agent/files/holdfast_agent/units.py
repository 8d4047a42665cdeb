# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd over D-Bus: the masks that root's slip meets. Source: org.freedesktop.systemd1(5)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Callable

import dbus

from .store import State

LOG = logging.getLogger(__name__)
NAME = "org.freedesktop.systemd1"
PATH = "/org/freedesktop/systemd1"
INTERFACE = "org.freedesktop.systemd1.Manager"
PROPERTIES = "org.freedesktop.DBus.Properties"
RUNTIME = Path("/run/systemd/system")
# A reload takes long where there are many units.
_SECONDS = 90


def units_of(targets: Iterable[str]) -> frozenset[str]:
    """What has to be masked for each: the target, and the service that does it, which can be started by itself."""
    return frozenset(name for target in targets for name in (f"{target}.target", f"systemd-{target}.service"))


class Units:
    """Masks, for this boot, and which of them are ours. Its errors are dbus.DBusException and OSError."""

    def __init__(self, bus: Any, state: State, runtime: Path = RUNTIME) -> None:
        self._bus = bus
        self._state = state
        self._runtime = runtime
        self.ours = state.masks()

    @property
    def _manager(self) -> Any:
        return dbus.Interface(self._bus.get_object(NAME, PATH, introspect=False), INTERFACE)

    def mask(self, units: frozenset[str]) -> None:
        """Mask units; whether it helped is to be looked at."""
        # Before the act: a mask that we made and did not remember would stay for good.
        self._remember(self.ours | {unit for unit in units if not self.has_file(unit)})
        try:
            # Not by force: what lies there already may be somebody's.
            self._manager.MaskUnitFiles(sorted(units), True, False, timeout=_SECONDS)
        except dbus.DBusException as error:
            if any(not self.has_file(unit) for unit in units):
                raise
            LOG.warning("systemd masked not all: %s", error.get_dbus_message())
        # A reload takes a while, and is needed only for what systemd had loaded before.
        if set(self.states(units).values()) != {"masked"}:
            self._manager.Reload(timeout=_SECONDS)

    def unmask(self, units: frozenset[str]) -> None:
        """Take away masks that are ours."""
        mine = units & self.ours
        if mine:
            self._manager.UnmaskUnitFiles(sorted(mine), True, timeout=_SECONDS)
            if "masked" in self.states(mine).values():
                self._manager.Reload(timeout=_SECONDS)
        self._remember(self.ours - units)

    def states(self, units: Iterable[str]) -> dict[str, str]:
        """The LoadState of each."""
        found = self._manager.ListUnitsByNames(sorted(units), timeout=_SECONDS)
        return {str(item[0]): str(item[2]) for item in found}

    def has_file(self, unit: str) -> bool:
        """Whether a file or link of this name lies where runtime masks do."""
        return os.path.lexists(self._runtime / unit)

    def on_change(self, call: Callable[[], None]) -> None:
        """Call when unit files were masked, unmasked or read again, by whomever."""
        # Without it systemd sends no signals; with it, only those asked for reach us.
        self._manager.Subscribe(timeout=_SECONDS)

        def changed(*beginning: Any) -> None:
            if not any(beginning):
                call()

        for signal in ("UnitFilesChanged", "Reloading"):
            self._bus.add_signal_receiver(
                changed, signal_name=signal, dbus_interface=INTERFACE, bus_name=NAME, path=PATH
            )

    def _remember(self, units: frozenset[str]) -> None:
        if units != self.ours:
            self._state.write_masks(units)
            self.ours = units
