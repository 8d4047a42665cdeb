# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The live view of the callback ``progress``: reads the events of the run's tasks, and prints a table or lines."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import threading
import time
from contextlib import suppress
from typing import Any, TextIO

from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import board_rules, event_rules, table_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shared.bounds import plain
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _progress_file

try:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text
except ImportError:
    # Without the library, the view prints lines.
    HAS_RICH = False
else:
    HAS_RICH = True

_LOOK_EVERY = 0.25
# Seconds after which the table is drawn again although nothing happened: the times change.
_DRAW_EVERY = 1.0
_STYLES = {
    table_rules.TITLE: "bold",
    board_rules.WORKING: "cyan",
    board_rules.WAITING: "yellow",
    board_rules.FAILED: "bold red",
    board_rules.DONE: "green",
    board_rules.QUEUED: "dim",
}


class LiveView:
    """The view of one ansible-playbook process, in a thread of its own.

    Args:
        display: Ansible's display, for lines.
        table: Whether to show a table if this is a terminal that can.
    """

    def __init__(self, display: Any, *, table: bool) -> None:
        self._display = display
        self._screen = _Screen() if table and HAS_RICH and _is_terminal() else None
        self._view = event_rules.View()
        self._drawn = 0.0
        self._broken = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._reader = _progress_file.Reader()
        self._thread = threading.Thread(target=self._follow, daemon=True, name="live view")
        self._thread.start()
        # After an interrupt, Ansible does not call the end of the callback.
        atexit.register(self.stop)

    def own_task(self, host: str, name: str) -> None:
        """Show that a task of the user begins on a host."""
        self._add({"kind": event_rules.OWN_TASK, "host": host, "why": name})

    def lost(self, host: str, why: str) -> None:
        """Show that a task failed, or that its host can't be reached."""
        self._add({"kind": event_rules.LOST, "host": host, "why": why})

    def stop(self) -> None:
        """Show the last events, and leave the table on the screen. A second call does nothing."""
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join()
        self._look([])
        if self._screen:
            self._screen.end(self._lines(whole=True))

    def _add(self, event: dict[str, Any]) -> None:
        self._look([{**event, "at": time.time()}])

    def _follow(self) -> None:
        while not self._over.wait(_LOOK_EVERY):
            self._look([])

    def _look(self, more: list[dict[str, Any]]) -> None:
        """Read what tasks told, and show it. After an error, show nothing more: the run continues without its view."""
        with self._lock:
            if self._broken:
                return
            try:
                self._show(more, time.time())
            except Exception as error:  # noqa: BLE001 - the view must not disturb the run
                self._broken = True
                if self._screen:
                    self._screen.end([])
                    self._screen = None
                self._display.warning(f"The live view ended because of an error: {type(error).__name__}: {error}")

    def _show(self, more: list[dict[str, Any]], now: float) -> None:
        for event in [*self._reader.new(), *more]:
            before, self._view = self._view, self._view.after(event)
            for line in event_rules.lines(before, self._view, now):
                self._say(line, event["at"])
                self._drawn = 0.0
        if self._screen and self._view.rows and now - self._drawn >= _DRAW_EVERY:
            self._drawn = now
            self._screen.draw(self._lines(whole=False))

    def _say(self, line: str, at: float) -> None:
        if not self._screen:
            self._display.display(f"{time.strftime('%H:%M:%S', time.localtime(at))} {plain(line)}")

    def _lines(self, *, whole: bool) -> list[table_rules.Line]:
        """Return the table: as large as the screen or, at the end, with all nodes."""
        width, height = shutil.get_terminal_size()
        return table_rules.table(
            self._view.board, time.time(), width=max(20, width - 1), height=None if whole else max(6, height - 2)
        )


def _is_terminal() -> bool:
    return os.isatty(1) and os.environ.get("TERM", "dumb") != "dumb"


class _Screen:
    """The lower part of the terminal, which is drawn again and again. All other output goes above it."""

    def __init__(self) -> None:
        sys.stdout.flush()
        plain = "NO_COLOR" in os.environ or "ANSIBLE_NOCOLOR" in os.environ
        # Ansible's display locks sys.stdout. With a file of our own, two threads can't wait for each other's locks.
        file = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
        self._console = Console(file=file, no_color=plain, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._given = (sys.stdout, sys.stderr)

    def draw(self, lines: list[table_rules.Line]) -> None:
        """Draw the table again."""
        if self._live is None:
            self._live = Live(
                console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False, transient=True
            )
            self._live.start()
            sys.stdout = _Above(self._console, self._given[0])
            if os.isatty(2):
                sys.stderr = _Above(self._console, self._given[1])
        self._live.update(_text(lines), refresh=True)

    def end(self, lines: list[table_rules.Line]) -> None:
        """Stop, and leave these lines on the screen."""
        if self._live is not None:
            sys.stdout, sys.stderr = self._given
            self._live.stop()
            self._live = None
            self._console.print(_text(lines), soft_wrap=True)


def _text(lines: list[table_rules.Line]) -> Text:
    return Text("\n").join(Text(line.text, style=_STYLES.get(line.style, "")) for line in lines)


class _Above:
    """A stream whose lines appear above the table, as they are: a long line is neither cut nor broken."""

    def __init__(self, console: Console, stream: TextIO) -> None:
        self._console = console
        self._stream = stream

    def write(self, text: str) -> int:
        shown = text.removesuffix("\n")
        with suppress(BrokenPipeError):
            self._console.print(Text.from_ansi(shown) if shown else "", soft_wrap=True)
        return len(text)

    def flush(self) -> None:
        """The console writes each line at once."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
