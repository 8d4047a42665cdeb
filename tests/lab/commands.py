# Copyright (c) 2026 holdfast contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""Other programs, run to their end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import LabError


def direct_environment() -> dict[str, str]:
    """The environment without a proxy: it could not reach the lab."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def run(
    argv: Sequence[str | Path],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> str:
    """Run a program and return what it printed; what it complained of becomes the error."""
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
    if done.returncode != 0:
        raise LabError(f"{' '.join(words[:6])}: exit status {done.returncode}\n{done.stderr.strip()[-3000:]}")
    return done.stdout
