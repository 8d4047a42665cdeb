# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls from threads into the GLib loop, timers, and the handling of errors."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from gi.repository import GLib

LOG = logging.getLogger(__name__)


def post(call: Callable[..., None], *arguments: Any) -> None:
    """Make a call in the loop. Any thread may use this."""

    def once() -> bool:
        call(*arguments)
        return False

    GLib.idle_add(once, priority=GLib.PRIORITY_DEFAULT)


class Newest:
    """Passes values from a thread to a call in the loop. A value that still waits is replaced by a newer one."""

    def __init__(self, call: Callable[[Any], None]) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._waiting: list[Any] = []

    def post(self, value: Any) -> None:
        with self._lock:
            is_scheduled = bool(self._waiting)
            self._waiting = [value]
        if not is_scheduled:
            post(self._due)

    def _due(self) -> None:
        with self._lock:
            (value,), self._waiting = self._waiting, []
        self._call(value)


def report(call: Callable[..., None], *arguments: Any) -> None:
    """Make a call that only reports, and log its failure: it must not affect locks and holds."""
    try:
        call(*arguments)
    except Exception as error:  # noqa: BLE001 - reports contain text of others, which may be anything
        LOG.error("A report failed: %r", error)


class Timer:
    """Makes a call once, after some seconds."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._source = 0

    @property
    def runs(self) -> bool:
        return bool(self._source)

    def start(self, seconds: float) -> None:
        """Start, or start again with another time."""
        self.stop()
        self._source = GLib.timeout_add(int(seconds * 1000), self._due)

    def stop(self) -> None:
        if self._source:
            GLib.source_remove(self._source)
            self._source = 0

    def _due(self) -> bool:
        self._source = 0
        self._call()
        return False


def end_on_error() -> None:
    """End the process if any thread fails: the others would miss news. systemd starts it again, with its locks."""

    def end(kind: Any, error: Any, trace: Any) -> None:
        LOG.critical("This is a bug in the agent. It ends, and systemd starts it again.", exc_info=(kind, error, trace))
        logging.shutdown()
        os._exit(1)

    sys.excepthook = end
    threading.excepthook = lambda found: end(found.exc_type, found.exc_value, found.exc_traceback)
