# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run other programs to their end."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .errors import LabError


def direct_environment() -> dict[str, str]:
    """The environment without a proxy: a proxy can't reach the lab."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def run(
    argv: Sequence[str | Path],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> str:
    """Run a program and return its standard output; its standard error becomes the error."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            check=False,
            env=None if env is None else dict(env),
            cwd=cwd,
            timeout=timeout,
        )
    except FileNotFoundError as error:
        raise LabError(f"{words[0]} is missing") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(words[:4])}: no end after {timeout} s") from error
    _check(words, done.returncode, done.stderr)
    return done.stdout


def follow(
    argv: Sequence[str | Path],
    heard: Callable[[str], bool],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run a program that reports progress on standard error, and return its standard output.

    ``heard`` gets each line of standard error. It returns True for progress, which the error leaves out.
    """
    words = [str(word) for word in argv]
    with (
        tempfile.TemporaryFile("w+") as printed,
        subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            env=None if env is None else dict(env),
            cwd=cwd,
        ) as process,
    ):
        assert process.stderr
        complaints = [line for line in process.stderr if not heard(line.rstrip())]
        _check(words, process.wait(), "".join(complaints))
        printed.seek(0)
        return printed.read()


def _check(words: Sequence[str], status: int, complaints: str) -> None:
    if status != 0:
        raise LabError(f"{' '.join(words[:6])}: exit status {status}\n{complaints.strip()[-3000:]}")
