# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process: the bus, the GLib loop, and signals."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import dbus
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

from .agent import Agent
from .config import Config
from .loop import end_on_error
from .notify import Supervisor
from .store import State


def run(config: Config) -> int:
    """Serve until SIGTERM or SIGINT. Locks and masks stay in place."""
    end_on_error()
    supervisor = Supervisor(os.environ)
    loop = GLib.MainLoop()
    # The agent needs the bus: if the connection is lost, the process ends and systemd starts it again.
    bus = dbus.SystemBus(mainloop=DBusGMainLoop())
    agent = Agent(config, bus, supervisor, State(Path(config.state_directory)))

    def stop() -> bool:
        loop.quit()
        return False

    for number in (signal.SIGTERM, signal.SIGINT):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, stop)
    agent.start()
    loop.run()
    supervisor.stopping()
    logging.shutdown()
    # A normal exit would wait for the threads, which have nothing to finish.
    os._exit(0)
