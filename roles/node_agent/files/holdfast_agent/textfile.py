# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the file that node_exporter's text-file collector reads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from .loop import Timer, report

LOG = logging.getLogger(__name__)


class TextFile:
    """Written with each change, and after a while without one: seconds go by, and a file that is old says so."""

    def __init__(self, path: str, text: Callable[[], str]) -> None:
        self._path = Path(path) if path else None
        self._text = text
        self._seconds = 0
        self._timer = Timer(lambda: report(self.write, self._seconds))

    def write(self, seconds: int) -> None:
        """Write it now, and again in ``seconds`` if nobody does before."""
        if self._path is None:
            return
        self._seconds = seconds
        self._timer.start(seconds)
        fresh = self._path.with_name(f".{self._path.name}.new")
        try:
            fresh.write_text(self._text(), encoding="utf-8")
            # Whoever collects is not root.
            fresh.chmod(0o644)
            fresh.replace(self._path)
        except OSError as error:
            LOG.debug("The metrics can't be written: %s", error)
