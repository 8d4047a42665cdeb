# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many requests a run sent for each node, and how many bytes came back.

A worker process ends with its task, and most results are not registered. So each task adds a line to a file in the
folder that Ansible makes for one ansible-playbook process and removes at its end.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ansible import constants

_FILE = "holdfast-traffic"


def add(node: str, traffic: Mapping[str, int]) -> None:
    """Add what a task took.

    Args:
        node: Name of the Node that it was about; empty for the run itself.
        traffic: ``requests`` and ``bytes``; empty if it is not known.
    """
    if not traffic.get("requests"):
        return
    line = json.dumps([node, traffic["requests"], traffic["bytes"]])
    # It is only told, so it stops nothing. A short line that is appended is whole, whoever else appends one.
    with suppress(OSError):
        file = os.open(_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)


def totals() -> dict[str, dict[str, int]]:
    """``requests`` and ``bytes`` of each node; those of the run itself under the empty name."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"requests": 0, "bytes": 0})
    with suppress(FileNotFoundError), _path().open(encoding="utf-8") as lines:
        for node, requests, size in map(json.loads, lines):
            found[node]["requests"] += requests
            found[node]["bytes"] += size
    return dict(found)


def folder() -> str:
    """The folder that all tasks of this ansible-playbook process share."""
    return str(vars(constants)["DEFAULT_LOCAL_TMP"])


def _path() -> Path:
    return Path(folder()) / _FILE
