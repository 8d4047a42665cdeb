# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's fence agents of ClusterLabs. They are no part of a lab that is up."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .errors import LabError
from .host import install

_SBIN = Path("/usr/sbin")
# Debian 12 has all agents in one package, Debian 13 has one for each.
_PACKAGES = ("fence-agents-redfish", "fence-agents")


def program(name: str) -> Path:
    """Return the program of an agent. Install Debian's package if needed.

    Raises:
        LabError: It can't be installed here.
    """
    found = shutil.which(name, path=f"{os.environ['PATH']}:{_SBIN}")
    if found:
        return Path(found)
    for package in _PACKAGES:
        known = subprocess.run(["apt-cache", "show", package], capture_output=True, check=False) if _has_apt() else None
        if known and known.returncode == 0:
            install([package])
            return _SBIN / name
    raise LabError(f"the test of fence agents needs what Debian calls {' or '.join(_PACKAGES)}; install it")


def _has_apt() -> bool:
    return shutil.which("apt-cache") is not None
