# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""logind over D-Bus: locks, and signals of a shutdown. Source: org.freedesktop.login1(5)."""

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
    """The node's login manager. All methods raise dbus.DBusException."""

    def __init__(self, bus: Any) -> None:
        self._bus = bus

    @property
    def _manager(self) -> Any:
        # A new proxy each time: logind may have been restarted, and may not run yet.
        return dbus.Interface(self._bus.get_object(NAME, PATH, introspect=False), INTERFACE)

    def inhibit(self, why: str) -> int:
        """Take a block lock on shutdown, which lasts while the descriptor is open."""
        answer = self._manager.Inhibit("shutdown", WHO, why, "block", timeout=_SECONDS)
        return int(answer.take())

    def held(self) -> set[str]:
        """The texts of the agent's block locks on shutdown, as logind lists them."""
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
        """Call with True when a shutdown starts, with False when it is cancelled."""
        self._bus.add_signal_receiver(
            lambda active: call(bool(active)),
            signal_name="PrepareForShutdown",
            dbus_interface=INTERFACE,
            bus_name=NAME,
            path=PATH,
        )

    def on_restart(self, call: Callable[[], None]) -> None:
        """Call when logind starts or restarts."""
        self._bus.watch_name_owner(NAME, lambda owner: call() if owner else None)


class Locks:
    """The agent's locks, by the keys of their holds. PID 1 keeps a copy of each."""

    def __init__(self, logind: Logind, supervisor: Supervisor) -> None:
        self._logind = logind
        self._supervisor = supervisor
        self._descriptors: dict[str, list[int]] = {}
        # logind does not list these. They may work all the same, so they are kept until new ones are taken.
        self._unlisted: set[str] = set()

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(self._descriptors) - self._unlisted

    def adopt(self) -> int:
        """Adopt the locks that the previous process left with PID 1, and count them."""
        found = inherited(os.environ)
        for name, descriptor in found:
            self._descriptors.setdefault(name, []).append(descriptor)
        return len(found)

    def take(self, holds: tuple[Hold, ...]) -> dict[str, str]:
        """Take a lock for each hold, and return the causes of failures by key."""
        failed = {}
        for number, hold in enumerate(holds):
            try:
                descriptor = self._logind.inhibit(hold.why)
            except (dbus.DBusException, ValueError) as error:
                failed[hold.key] = _cause(error)
                if _timed_out(error):
                    # The other locks would time out one after the other, and the masks come after the locks.
                    failed.update(dict.fromkeys((other.key for other in holds[number:]), failed[hold.key]))
                    break
                continue
            if hold.key in self._unlisted:
                self._drop(hold.key)
            self._descriptors.setdefault(hold.key, []).append(descriptor)
            self._supervisor.keep(hold.key, descriptor)
            if number % 100 == 99:
                self._supervisor.alive()
        try:
            self._supervisor.barrier()
        except OSError as error:
            LOG.warning("The locks are held, but may end with this process: %s.", error)
        return failed

    def lost(self, holds: tuple[Hold, ...]) -> frozenset[str]:
        """Keys of the locks that logind does not list any more."""
        listed = self._logind.held()
        gone = frozenset(hold.key for hold in holds if hold.key in self.keys and hold.why not in listed)
        self._unlisted |= gone
        return gone

    def drop_unneeded(self, holds: tuple[Hold, ...]) -> None:
        """Release the unlisted locks that no hold needs any more."""
        self.release(frozenset(self._unlisted - {hold.key for hold in holds}))

    def release(self, keys: frozenset[str]) -> None:
        for key in keys:
            self._drop(key)
        if keys:
            try:
                self._supervisor.barrier()
            except OSError as error:
                LOG.warning("Locks were released, but PID 1 may still hold them: %s.", error)

    def _drop(self, key: str) -> None:
        # PID 1 first: its copy alone keeps the lock.
        self._supervisor.forget(key)
        for descriptor in self._descriptors.pop(key, ()):
            os.close(descriptor)
        self._unlisted.discard(key)


def _timed_out(error: Exception) -> bool:
    names = ("org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Timeout")
    return isinstance(error, dbus.DBusException) and error.get_dbus_name() in names


def _cause(error: Exception) -> str:
    name = error.get_dbus_name() if isinstance(error, dbus.DBusException) else None
    message = error.get_dbus_message() if isinstance(error, dbus.DBusException) else str(error)
    return str(message or name or error).strip()
