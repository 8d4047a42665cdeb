# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal of a fixed size for one program, and pictures of what it shows. tmux is the terminal."""

from __future__ import annotations

import html
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.ansi import AnsiDecoder
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

from . import packages
from .errors import LabError
from .paths import Paths
from .patience import PATIENCE

_LOOK_EVERY = 0.25
# Of a picture, in pixels.
_CELL, _ROW, _EDGE = 8.0, 18, 14
_PAPER, _INK = "#14181d", "#d7dde4"
# A long pause of a recording is cut, and the last frame stays, before it begins again.
_LONGEST_PAUSE, _LAST = 1.2, 6.0


@dataclass(frozen=True)
class Frame:
    """What a terminal shows from a time on.

    Attributes:
        at: Seconds since the start.
        lines: The lines, with the escape sequences of their colours.
    """

    at: float
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(line.plain for line in self.decoded)

    @property
    def decoded(self) -> list[Text]:
        """The lines with their colours. A colour continues over the end of a line until the next one."""
        return list(AnsiDecoder().decode("\n".join(self.lines)))


class Terminal:
    """Runs a program in a terminal.

    Args:
        command: The program with its arguments.
        width: Columns.
        height: Rows.
        environment: Variables of the program.
        cwd: Its folder.
    """

    def __init__(
        self, command: Sequence[str], width: int, height: int, environment: Mapping[str, str], cwd: Path
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-terminal-")
        self._socket = f"{self._folder.name}/tmux"
        self._status = Path(self._folder.name, "status")
        self._size = (width, height)
        program = Path(self._folder.name, "program")
        # The environment goes through a file: that of tmux's server is the one of its first client.
        kept = {**environment, "TERM": "tmux-256color", "COLUMNS": str(width), "LINES": str(height)}
        exports = "".join(
            f"export {name}={shlex.quote(value)}\n" for name, value in kept.items() if name.isidentifier()
        )
        program.write_text(
            f"unset NO_COLOR ANSIBLE_NOCOLOR\n{exports}cd {shlex.quote(str(cwd))}\n{shlex.join(command)}\n"
            f"echo $? > {self._status}.new\nmv {self._status}.new {self._status}\nsleep {PATIENCE}\n"
        )
        self.frames: list[Frame] = []
        self._started = time.monotonic()
        options = ("-d", "-x", str(width), "-y", str(height))
        self._tmux("-f", "/dev/null", "new-session", *options, f"exec bash {program}")

    def follow(self, meanwhile: Callable[[Frame], None] = lambda _frame: None) -> int:
        """Keep what the terminal shows until the program ends; return its exit status.

        Args:
            meanwhile: Called with each new frame.
        """
        try:
            while True:
                # The screen is read after the end, too.
                ended = self._status.exists()
                self._look(meanwhile)
                if ended:
                    return int(self._status.read_text())
                if time.monotonic() - self._started > PATIENCE:
                    raise LabError(f"it does not end:\n{self.frames[-1].text}")
                time.sleep(_LOOK_EVERY)
        finally:
            self._tmux("kill-server")
            self._folder.cleanup()

    def _look(self, meanwhile: Callable[[Frame], None]) -> None:
        lines = tuple(self._tmux("capture-pane", "-e", "-p").rstrip("\n").split("\n"))
        if not self.frames or self.frames[-1].lines != lines:
            self.frames.append(Frame(time.monotonic() - self._started, lines))
            meanwhile(self.frames[-1])

    def _tmux(self, *words: str) -> str:
        binary = packages.program(Paths.default().cache, "tmux", whole=True)
        libraries = "" if str(binary).startswith("/usr") else str(binary.parents[1] / "lib/x86_64-linux-gnu")
        environment = {**os.environ, "TERM": "xterm-256color", **({"LD_LIBRARY_PATH": libraries} if libraries else {})}
        done = subprocess.run(
            [str(binary), "-S", self._socket, *words], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LabError(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout


def still(frame: Frame, width: int, height: int) -> str:
    """Return a frame as SVG.

    Args:
        width: Columns of the terminal.
        height: Rows that the picture has.
    """
    rows = "".join(_row(line, number) for number, line in enumerate(frame.decoded[:height]))
    return _window(rows, width, height)


def recording(frames: Sequence[Frame], width: int, height: int) -> str:
    """Return frames as one SVG that shows them one after the other, again and again."""
    starts, now = [], 0.0
    for frame, after in zip(frames, [*frames[1:], None]):
        starts.append(now)
        now += min(_LONGEST_PAUSE, after.at - frame.at) if after else _LAST
    # Most lines of a frame are those of the frame before, so each different line is in the file once.
    known: dict[str, int] = {}
    groups, steps = [], []
    for number, (frame, start) in enumerate(zip(frames, starts)):
        uses = [
            f'<use href="#l{known.setdefault(line, len(known))}" y="{row * _ROW}"/>'
            for row, line in enumerate(_row(decoded, 0) for decoded in frame.decoded[:height])
            if line
        ]
        groups.append(f'<g transform="translate(0 {number * height * _ROW})">{"".join(uses)}</g>')
        steps.append(f"{start / now * 100:.3f}%{{transform:translateY(-{number * height * _ROW}px)}}")
    defined = "".join(f'<g id="l{number}">{line}</g>' for line, number in known.items())
    last = (len(frames) - 1) * height * _ROW
    style = (
        f"<style>@keyframes play{{{''.join(steps)}}}#film{{animation:play {now:.2f}s step-end infinite}}"
        f"@media (prefers-reduced-motion:reduce){{#film{{animation:none;transform:translateY(-{last}px)}}}}</style>"
    )
    return _window(f'<g id="film">{"".join(groups)}</g>', width, height, f"{style}<defs>{defined}</defs>")


def _window(content: str, width: int, height: int, head: str = "") -> str:
    wide, high = round(width * _CELL) + 2 * _EDGE, height * _ROW + 2 * _EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">{head}'
        "<style>text{font:13.3px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}</style>"
        f'<rect width="{wide}" height="{high}" rx="8" fill="{_PAPER}"/>'
        f'<svg x="{_EDGE}" y="{_EDGE}" width="{wide - 2 * _EDGE}" height="{height * _ROW}">{content}</svg></svg>\n'
    )


def _row(text: Text, number: int) -> str:
    """One line as SVG. Each run of letters of one style has its own length, whatever the font."""
    styles = [Style() for _letter in text.plain]
    for span in text.spans:
        for place in range(span.start, min(span.end, len(styles))):
            styles[place] = styles[place] + (span.style if isinstance(span.style, Style) else Style())
    parts, start = [], 0
    for place in range(1, len(styles) + 1):
        if place == len(styles) or styles[place] != styles[start]:
            parts.append(_run(text.plain[start:place], styles[start], start, number))
            start = place
    return "".join(parts)


def _run(letters: str, style: Style, column: int, number: int) -> str:
    shown = letters.strip()
    if not shown:
        return ""
    column += len(letters) - len(letters.lstrip())
    ink = _INK
    if style.color and not style.color.is_default:
        ink = style.color.get_truecolor(MONOKAI).hex
    bold = ' font-weight="600"' if style.bold else ""
    dim = ' opacity=".6"' if style.dim else ""
    place = f'x="{column * _CELL:g}" y="{number * _ROW + 13}" textLength="{len(shown) * _CELL:g}"'
    return f'<text {place} fill="{ink}"{bold}{dim}>{html.escape(shown)}</text>'
