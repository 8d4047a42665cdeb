# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of the user that switch a node off or on, or report whether it is off. They run where the operation runs."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .._api.errors import HoldfastError, InvalidInput

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_LINES = 3
# Seconds that a command gets beyond its deadline, so that timeout(1) can end it.
_GRACE = 30.0


class CommandFailed(HoldfastError):
    """A command of the user failed."""

    kind = "command"


@dataclass(frozen=True)
class CommandResult:
    """How a command ended.

    Attributes:
        status: Its exit status; ``None`` if it took too long and was killed.
        output: Its standard output.
        error_output: Its standard error.
    """

    status: int | None
    output: str = ""
    error_output: str = ""

    @property
    def lines(self) -> list[str]:
        """Return its last lines. They may contain secrets: show them, but do not store them where others can read."""
        return (self.error_output.strip() or self.output.strip()).splitlines()[-_LINES:]

    @property
    def last_lines(self) -> str:
        return " ".join(self.lines)

    def how(self, seconds: float) -> str:
        """Return how it ended, after the name of the command; ``seconds`` is the time that it had."""
        if self.status is None:
            return f"did not end within {seconds} s, and was killed"
        return f"ended with {self.status}"


def split(command: str, name: str) -> list[str]:
    """Split a command into words, as a shell does.

    Raises:
        InvalidInput: It cannot be split, or is empty.
    """
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise InvalidInput(f"{name} can't be split into words: {error}.") from error
    if not found:
        raise InvalidInput(f"{name} must not be empty.")
    return found


def expand(argv: list[str], environment: Mapping[str, str]) -> list[str]:
    """Expand variables and home directories in the words, as ansible.builtin.command does."""
    known = {**os.environ, **environment}

    def value(found: re.Match[str]) -> str:
        return known.get(found[1] or found[2], found[0])

    return [os.path.expanduser(_VARIABLE.sub(value, word)) for word in argv]


def run(argv: list[str], environment: Mapping[str, str], seconds: float, *, stdin: str = "") -> CommandResult:
    """Run a command with additions to its environment. If it takes too long, kill it and all processes it started.

    Args:
        stdin: What it reads. Other users of the machine can see its words and not this.

    Raises:
        InvalidInput: It cannot be started.
    """
    try:
        process = subprocess.Popen(  # pylint: disable=ansible-bad-function
            argv,
            stdin=subprocess.PIPE,
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
            output, error_output = process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired:
            # Processes that the command started hold the pipes open, too.
            os.killpg(process.pid, signal.SIGKILL)
            return CommandResult(None)
    return CommandResult(process.returncode, output, error_output)


def run_bounded(argv: list[str], environment: Mapping[str, str], seconds: float, *, stdin: str = "") -> CommandResult:
    """Run a command as :func:`run` does; its deadline also holds if this process is killed meanwhile.

    Returns:
        Its result, without a status if it took too long.
    """
    ended = run(["timeout", "-s", "KILL", f"{seconds:.0f}", *argv], environment, seconds + _GRACE, stdin=stdin)
    # timeout(1) ends by the signal that it sends to itself and to all processes that it started.
    return replace(ended, status=None) if ended.status == -signal.SIGKILL else ended
