# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutants fit the code as it is. `make mutants` tries them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PATCHES = sorted((CHECKOUT / "tests/mutants").glob("*.patch"))


@pytest.mark.skipif(not PATCHES, reason="no mutants yet")
@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
class TestMutant:
    def test_says_what_it_is(self, patch):
        said = dict(re.findall(r"^# (test|promise|breaks): *(.+)$", patch.read_text(), re.MULTILINE))
        file, *_classes, function = said["test"].split("::")

        assert set(said) == {"test", "promise", "breaks"}
        assert re.search(rf"def {re.escape(function.split('[')[0])}\(", (CHECKOUT / file).read_text())

    def test_applies(self, patch, tmp_path):
        # In a directory of its own, so that git takes paths from there and not from a repository around it.
        for name in re.findall(r"^--- a/(\S+)", patch.read_text(), re.MULTILINE):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes((CHECKOUT / name).read_bytes())
        subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
        done = subprocess.run(
            ["git", "apply", "--check", "-C1", "--recount", str(patch)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 0, done.stderr
