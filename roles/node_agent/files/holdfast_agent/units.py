# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd over D-Bus: masks that prevent a shutdown by root. Source: org.freedesktop.systemd1(5)."""

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
# A reload takes long on a node with many units.
_SECONDS = 90


def units_of(targets: Iterable[str]) -> frozenset[str]:
    """The units to mask: each target, and the service behind it, which root can start directly."""
    return frozenset(name for target in targets for name in (f"{target}.target", f"systemd-{target}.service"))


class Units:
    """Masks that last until the next boot. All methods raise dbus.DBusException, and OSError for the agent's files.

    Attributes:
        own: The units that the agent masked.
    """

    def __init__(self, bus: Any, state: State, runtime: Path = RUNTIME) -> None:
        self._bus = bus
        self._state = state
        self._runtime = runtime
        self.own = state.masks()

    @property
    def _manager(self) -> Any:
        return dbus.Interface(self._bus.get_object(NAME, PATH, introspect=False), INTERFACE)

    def mask(self, units: frozenset[str]) -> None:
        """Mask units. :meth:`states` says which masks took effect."""
        # Before the act: the agent would never remove a mask that it has no record of.
        self._record(self.own | {unit for unit in units if not self.has_file(unit)})
        try:
            # Without force: an existing file may belong to an administrator.
            self._manager.MaskUnitFiles(sorted(units), True, False, timeout=_SECONDS)
        except dbus.DBusException as error:
            if any(not self.has_file(unit) for unit in units):
                raise
            LOG.warning("systemd did not mask all units: %s", error.get_dbus_message())
        # A reload takes a while, and only units that systemd had loaded before need it.
        if set(self.states(units).values()) != {"masked"}:
            self._manager.Reload(timeout=_SECONDS)

    def unmask(self, units: frozenset[str]) -> None:
        """Remove the masks that the agent made."""
        own = units & self.own
        if own:
            self._manager.UnmaskUnitFiles(sorted(own), True, timeout=_SECONDS)
            if "masked" in self.states(own).values():
                self._manager.Reload(timeout=_SECONDS)
        self._record(self.own - units)

    def states(self, units: Iterable[str]) -> dict[str, str]:
        """The LoadState of each."""
        names = sorted(units)
        found = self._manager.ListUnitsByNames(names, timeout=_SECONDS)
        # In the order of the request: an alias is answered with the name of its unit.
        return {name: str(item[2]) for name, item in zip(names, found)}

    def shutting_down(self) -> bool:
        """Whether PID 1 shuts the node down. logind does not know of a SIGRTMIN+5 or of a start of reboot.target."""
        (target,) = self._manager.ListUnitsByNames(["shutdown.target"], timeout=_SECONDS)
        # Its ActiveState, and the type of its job.
        return str(target[3]) == "active" or str(target[8]) == "start"

    def has_file(self, unit: str) -> bool:
        """Whether the directory of runtime masks has a file or link of this name."""
        return os.path.lexists(self._runtime / unit)

    def on_change(self, call: Callable[[], None]) -> None:
        """Call when any program masks, unmasks or reloads units."""
        # systemd sends these signals to subscribers only.
        self._manager.Subscribe(timeout=_SECONDS)

        def changed(*starts: Any) -> None:
            # Reloading comes twice: True when it starts, False when it ends.
            if not any(starts):
                call()

        for signal in ("UnitFilesChanged", "Reloading"):
            self._bus.add_signal_receiver(
                changed, signal_name=signal, dbus_interface=INTERFACE, bus_name=NAME, path=PATH
            )

    def _record(self, units: frozenset[str]) -> None:
        if units != self.own:
            self._state.write_masks(units)
            self.own = units
