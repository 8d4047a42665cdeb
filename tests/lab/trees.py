# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove directories that may have mounts of others in them."""

from __future__ import annotations

import shutil
from pathlib import Path

from .commands import run
from .errors import LabError

MOUNTINFO = Path("/proc/self/mountinfo")


def mounts_below(path: Path, mountinfo: str) -> list[Path]:
    """The mount points at a path or below it, the innermost first."""
    # The kernel writes blanks and similar characters as octal.
    points = [Path(line.split()[4].encode().decode("unicode_escape")) for line in mountinfo.splitlines()]
    return sorted((point for point in points if point.is_relative_to(path)), reverse=True)


def remove(path: Path) -> None:
    """Remove a directory, but nothing that is mounted in it: that may be the machine's own /dev."""
    for point in mounts_below(path, MOUNTINFO.read_text()):
        run(["umount", "--lazy", point])
    if left := mounts_below(path, MOUNTINFO.read_text()):
        raise LabError(f"not removed, because something is mounted in it: {path} ({left[0]})")
    if path.exists():
        shutil.rmtree(path)
