# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of the user that switch a node off or on, or say whether it is off. They run where the operation runs."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from .._api.errors import HoldfastError, InvalidInput

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_LINES = 3


class CommandFailed(HoldfastError):
    """A command of the user did not work."""

    kind = "command"


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        status: Its exit status; ``None`` where it took too long and was killed.
        output: What it wrote to its output.
        complaint: What it wrote to its error output.
    """

    status: int | None
    output: str = ""
    complaint: str = ""

    @property
    def said(self) -> str:
        """The last that it said. It may have secrets in it, so it is shown, but not kept where others read it."""
        lines = (self.complaint.strip() or self.output.strip()).splitlines()
        return " ".join(lines[-_LINES:])


def split(command: str, name: str) -> list[str]:
    """A command as words, as a shell would split it.

    Raises:
        InvalidInput: It can't be split, or is empty.
    """
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise InvalidInput(f"{name} can't be split into words: {error}.") from error
    if not found:
        raise InvalidInput(f"{name} must not be empty.")
    return found


def expand(argv: list[str], environment: Mapping[str, str]) -> list[str]:
    """The words with their variables and home directories, as ansible.builtin.command has them."""
    known = {**os.environ, **environment}

    def value(found: re.Match[str]) -> str:
        return known.get(found[1] or found[2], found[0])

    return [os.path.expanduser(_VARIABLE.sub(value, word)) for word in argv]


def run(argv: list[str], environment: Mapping[str, str], seconds: float) -> Ended:
    """Run a command with more in its environment. One that takes too long is killed with all that it has started.

    Raises:
        InvalidInput: It can't be started.
    """
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            start_new_session=True,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise InvalidInput(f"The command {argv[0]} can't be started: {error}.") from error
    with process:
        try:
            output, complaint = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            # Whatever it has started holds the pipes open, too.
            os.killpg(process.pid, signal.SIGKILL)
            return Ended(None)
    return Ended(process.returncode, output, complaint)
