# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The removal of the agent from a node: releases locks, masks and holds."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import dbus

from .api import Api, Away, Refused
from .bounds import some
from .clock import ServerClock
from .condition import ALLOWED
from .config import Config
from .publisher import Publisher
from .store import State, remove
from .units import INTERFACE, NAME, PATH, PROPERTIES, Units

LOG = logging.getLogger(__name__)
SERVICE = "holdfast-agent.service"
# systemd before 254 forgets descriptors when a service stops, and has no such method or resource.
_NOTHING_TO_CLEAN = (
    "org.freedesktop.DBus.Error.UnknownMethod",
    "org.freedesktop.DBus.Error.InvalidArgs",
    "org.freedesktop.systemd1.NoSuchUnit",
    "org.freedesktop.systemd1.NothingToClean",
)


def release(config: Config, *, even_held: bool) -> int:
    """Release the locks, masks and holds on disk. Returns the exit status, 0 if nothing is left.

    Args:
        even_held: Release them even if there are holds on disk.
    """
    bus = dbus.SystemBus()
    running = _state(bus)
    if running not in ("inactive", "failed"):
        sys.stderr.write(f"{SERVICE} is {running}: stop it first (systemctl stop {SERVICE}).\n")
        return 1
    state = State(Path(config.state_directory))
    held = state.holds()
    if held and not even_held:
        sys.stderr.write(
            f"Node {config.node_name} is held by {some([hold.entry for hold in held], 5)}, as far as the agent knows. "
            f"If these holds ended, start {SERVICE}, which then releases them. To remove the protection of the "
            "holders, add --even-held.\n"
        )
        return 1
    left = [
        # First, so that the condition names no hold without a lock.
        *_attempt("the condition", lambda: _condition(config)),
        *_attempt("the locks in PID 1's store", lambda: _clean(bus)),
        *_attempt("the masks", lambda: _unmask(Units(bus, state))),
        *_attempt("the files", lambda: _remove(state, config)),
    ]
    sys.stderr.write("".join(f"{line}\n" for line in left))
    return int(bool(left))


def _attempt(what: str, act: Any) -> list[str]:
    try:
        for line in act():
            sys.stdout.write(f"{line}\n")
    except (dbus.DBusException, OSError, Away, Refused) as error:
        # The role compares these words, and may meet an older agent: tasks/absent.yml.
        return [f"Not released: {what}: {error}"]
    return []


def _state(bus: Any) -> str:
    manager = dbus.Interface(bus.get_object(NAME, PATH, introspect=False), INTERFACE)
    unit = bus.get_object(NAME, manager.LoadUnit(SERVICE), introspect=False)
    return str(dbus.Interface(unit, PROPERTIES).Get("org.freedesktop.systemd1.Unit", "ActiveState"))


def _clean(bus: Any) -> list[str]:
    manager = dbus.Interface(bus.get_object(NAME, PATH, introspect=False), INTERFACE)
    unit = bus.get_object(NAME, manager.LoadUnit(SERVICE), introspect=False)
    try:
        count = int(dbus.Interface(unit, PROPERTIES).Get("org.freedesktop.systemd1.Service", "NFileDescriptorStore"))
        if not count:
            return []
        manager.CleanUnit(SERVICE, ["fdstore"])
    except dbus.DBusException as error:
        if error.get_dbus_name() in _NOTHING_TO_CLEAN:
            return []
        raise
    return [f"released: {count} locks"]


def _unmask(units: Units) -> list[str]:
    own = units.own
    units.unmask(own)
    return [f"unmasked: {unit}" for unit in sorted(own)]


def _remove(state: State, config: Config) -> list[str]:
    paths = state.clear()
    if config.textfile and remove(Path(config.textfile)):
        paths.append(config.textfile)
    return [f"removed: {path}" for path in paths]


def _condition(config: Config) -> list[str]:
    publisher = Publisher(Api(config, ServerClock()), config)
    try:
        before = publisher.look()
    except Refused as error:
        # The Node is gone, and the condition with it.
        if error.status == 404:
            return []
        raise
    if before is None or (before.get("status"), before.get("reason")) == (ALLOWED.status, ALLOWED.reason):
        return []
    publisher.write_condition(ALLOWED)
    return [f"condition: {before.get('status')} ({before.get('reason')}) -> {ALLOWED.status} ({ALLOWED.reason})"]
