# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last answers of a module whose answers lead from task to task, in the folder of the ansible-playbook process.

Ansible passes them in a registered variable. If a task fails before its module runs, for example because of a lookup in
a variable, or if Ansible's own time limit ends it, Ansible registers a result without an answer instead.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def keep(folder: str, key: str, answer: Mapping[str, Any]) -> None:
    """Keep the answer.

    Args:
        folder: The folder that all tasks share; empty if there is none, so nothing is kept.
        key: Names the module and what it works on.
        answer: Data that JSON knows.
    """
    if not folder:
        return
    path = _path(folder, key)
    new = path.with_suffix(f".{os.getpid()}")
    try:
        new.write_text(json.dumps(answer))
        new.replace(path)
    except OSError:
        # For example on a full disk. No answer is better than an old one.
        for left in (new, path):
            with suppress(OSError):
                left.unlink()


def last(folder: str, key: str) -> dict[str, Any]:
    """The last answer that was kept; empty if there is none."""
    if not folder:
        return {}
    with suppress(OSError, ValueError):
        found = json.loads(_path(folder, key).read_text())
        return found if isinstance(found, dict) else {}
    return {}


def _path(folder: str, key: str) -> Path:
    return Path(folder) / f"holdfast-answer-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
