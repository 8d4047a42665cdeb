# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of requests that a run sent for each node, and the number of bytes that it received.

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
    """Add the traffic of a task.

    Args:
        node: Name of the task's Node; empty for the run itself.
        traffic: ``requests`` and ``bytes``; empty if unknown.
    """
    if not traffic.get("requests"):
        return
    line = json.dumps([node, traffic["requests"], traffic["bytes"]])
    # These figures are only for the report, so an error here stops no task. Appending a short line is atomic.
    with suppress(OSError):
        file = os.open(_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)


def totals() -> dict[str, dict[str, int]]:
    """``requests`` and ``bytes`` of each node; the empty name has the numbers of the run itself."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"requests": 0, "bytes": 0})
    with suppress(FileNotFoundError), _path().open(encoding="utf-8") as lines:
        for line in lines:
            # A line is torn if the disk was full.
            with suppress(ValueError):
                node, requests, size = json.loads(line)
                found[node]["requests"] += requests
                found[node]["bytes"] += size
    return dict(found)


def folder() -> str:
    """The folder that all tasks of this ansible-playbook process share."""
    return str(vars(constants)["DEFAULT_LOCAL_TMP"])


def _path() -> Path:
    return Path(folder()) / _FILE
