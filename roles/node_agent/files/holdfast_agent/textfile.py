# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the file that node_exporter's text-file collector reads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from .loop import Timer, report

LOG = logging.getLogger(__name__)


class TextFile:
    """The file is written after each change, and regularly between changes, because the held seconds grow."""

    def __init__(self, path: str, text: Callable[[], str]) -> None:
        self._path = Path(path) if path else None
        self._text = text
        self._seconds = 0
        self._fails = False
        self._timer = Timer(lambda: report(self.write, self._seconds))

    def write(self, seconds: int) -> None:
        """Write the file now, and again after ``seconds`` without a change."""
        if self._path is None:
            return
        self._seconds = seconds
        self._timer.start(seconds)
        fresh = self._path.with_name(f".{self._path.name}.new")
        try:
            fresh.write_text(self._text(), encoding="utf-8")
            # The collector does not run as root.
            fresh.chmod(0o644)
            fresh.replace(self._path)
            self._fails = False
        except OSError as error:
            # The service has no capabilities, so root needs the rights of the directory. Without metrics, no alert
            # fires.
            LOG.log(logging.DEBUG if self._fails else logging.ERROR, "The metrics can't be written: %s", error)
            self._fails = True
