# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each benchmark starts: nothing else runs them, so a moved file would go unnoticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = [
    file
    for file in sorted((Path(__file__).resolve().parents[2] / "benchmarks").glob("*.py"))
    if '__name__ == "__main__"' in file.read_text()
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda file: file.stem)
def test_it_says_how_to_use_it(program: Path) -> None:
    ran = subprocess.run([sys.executable, program, "--help"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.startswith("usage:")) == (0, True), ran.stderr
