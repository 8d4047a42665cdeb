# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""logind over D-Bus: locks, and news of a shutdown. Source: org.freedesktop.login1(5)."""

from __future__ import annotations

import logging
import os
from typing import Any, Callable

import dbus

from .holds import Hold
from .notify import Supervisor, inherited

LOG = logging.getLogger(__name__)
NAME = "org.freedesktop.login1"
PATH = "/org/freedesktop/login1"
INTERFACE = "org.freedesktop.login1.Manager"
WHO = "holdfast"
_SECONDS = 10


class Logind:
    """The node's login manager. Its errors are dbus.DBusException."""

    def __init__(self, bus: Any) -> None:
        self._bus = bus

    @property
    def _manager(self) -> Any:
        # Made anew each time: logind may have been restarted, and may not run yet.
        return dbus.Interface(self._bus.get_object(NAME, PATH, introspect=False), INTERFACE)

    def inhibit(self, why: str) -> int:
        """Take a block lock on shutdown; it is held while the descriptor is open."""
        answer = self._manager.Inhibit("shutdown", WHO, why, "block", timeout=_SECONDS)
        return int(answer.take())

    def held(self) -> set[str]:
        """What our block locks on shutdown say, as logind lists them."""
        return {
            str(why)
            for what, who, why, mode, _uid, _pid in self._manager.ListInhibitors(timeout=_SECONDS)
            if str(who) == WHO and str(mode) == "block" and "shutdown" in str(what).split(":")
        }

    def preparing_for_shutdown(self) -> bool:
        properties = dbus.Interface(
            self._bus.get_object(NAME, PATH, introspect=False), "org.freedesktop.DBus.Properties"
        )
        return bool(properties.Get(INTERFACE, "PreparingForShutdown", timeout=_SECONDS))

    def on_shutdown(self, call: Callable[[bool], None]) -> None:
        """Call with True when a shutdown begins, with False when it was given up."""
        self._bus.add_signal_receiver(
            lambda active: call(bool(active)),
            signal_name="PrepareForShutdown",
            dbus_interface=INTERFACE,
            bus_name=NAME,
            path=PATH,
        )

    def on_restart(self, call: Callable[[], None]) -> None:
        """Call when logind has come, or come back."""
        self._bus.watch_name_owner(NAME, lambda owner: call() if owner else None)


class Locks:
    """The locks that we hold, each also by PID 1, under the key of its hold."""

    def __init__(self, logind: Logind, supervisor: Supervisor) -> None:
        self._logind = logind
        self._supervisor = supervisor
        self._descriptors: dict[str, list[int]] = {}
        # Ours as far as we know, but not listed: taken once more, and kept until then, for they may be held yet.
        self._doubted: set[str] = set()

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(self._descriptors) - self._doubted

    def adopt(self) -> int:
        """Make those ours that a former process left with PID 1; how many there were."""
        found = inherited(os.environ)
        for name, descriptor in found:
            self._descriptors.setdefault(name, []).append(descriptor)
        return len(found)

    def take(self, holds: tuple[Hold, ...]) -> dict[str, str]:
        """Take a lock for each hold; what went wrong, by key."""
        failed = {}
        for number, hold in enumerate(holds):
            try:
                descriptor = self._logind.inhibit(hold.why)
            except (dbus.DBusException, ValueError) as error:
                failed[hold.key] = _in_words(error)
                continue
            if hold.key in self._doubted:
                self._drop(hold.key)
            self._descriptors.setdefault(hold.key, []).append(descriptor)
            self._supervisor.keep(hold.key, descriptor)
            if number % 100 == 99:
                self._supervisor.alive()
        try:
            self._supervisor.barrier()
        except OSError as error:
            LOG.warning("The locks are held, but may not outlast this process: %s.", error)
        return failed

    def lost(self, holds: tuple[Hold, ...]) -> frozenset[str]:
        """Those that logind does not list, though we hold them: to be taken again; their keys."""
        listed = self._logind.held()
        gone = frozenset(hold.key for hold in holds if hold.key in self.keys and hold.why not in listed)
        self._doubted |= gone
        return gone

    def drop_unneeded(self, holds: tuple[Hold, ...]) -> None:
        """Let those go that need not be taken again any more."""
        self.let_go(frozenset(self._doubted - {hold.key for hold in holds}))

    def let_go(self, keys: frozenset[str]) -> None:
        for key in keys:
            self._drop(key)
        if keys:
            try:
                self._supervisor.barrier()
            except OSError as error:
                LOG.warning("Locks were let go, but PID 1 may still hold them: %s.", error)

    def _drop(self, key: str) -> None:
        # PID 1 first: what it had still would hold the lock.
        self._supervisor.forget(key)
        for descriptor in self._descriptors.pop(key, ()):
            os.close(descriptor)
        self._doubted.discard(key)


def _in_words(error: Exception) -> str:
    name = error.get_dbus_name() if isinstance(error, dbus.DBusException) else None
    message = error.get_dbus_message() if isinstance(error, dbus.DBusException) else str(error)
    return str(message or name or error).strip()
