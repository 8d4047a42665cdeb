# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's files. A write is complete or has no effect, and survives a power cut."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .bounds import cut
from .holds import Hold, ordered

LOG = logging.getLogger(__name__)
RUNTIME_DIRECTORY = Path("/run/holdfast-agent")


def write(path: Path, content: str, mode: int = 0o600) -> None:
    """Replace a file. The old content stays until the new content is on disk.

    Raises:
        OSError: It can't be written.
    """
    fresh = path.with_name(f".{path.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        # The mode must not depend on the umask.
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def remove(path: Path) -> bool:
    """Remove a file, and return whether it existed."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
        return True
    return False


class State:
    """The agent's own files."""

    def __init__(self, directory: Path, runtime: Path = RUNTIME_DIRECTORY) -> None:
        self._holds = directory / "holds.json"
        self._alerts = directory / "alerts.json"
        # Masks last until the next boot, and so does this directory.
        self._masks = runtime / "masks.json"

    def holds(self) -> tuple[Hold, ...]:
        """The holds to lock immediately after a boot."""
        found = (map(str, (item[key] for key in _FIELDS)) for item in _read(self._holds, _is_hold))
        return ordered(Hold(namespace, cut(holder), acquired) for namespace, holder, acquired in found)

    def write_holds(self, holds: Iterable[Hold]) -> None:
        items = [{key: getattr(hold, key) for key in _FIELDS} for hold in holds]
        write(self._holds, json.dumps(items, indent=1) + "\n")

    def alerts(self) -> frozenset[str]:
        """Marks of the holds that have an Event."""
        return frozenset(_read(self._alerts, lambda item: isinstance(item, str)))

    def write_alerts(self, marks: Iterable[str]) -> None:
        write(self._alerts, json.dumps(sorted(marks)) + "\n")

    def masks(self) -> frozenset[str]:
        """Units that the agent masked."""
        return frozenset(_read(self._masks, lambda item: isinstance(item, str)))

    def write_masks(self, units: Iterable[str]) -> None:
        write(self._masks, json.dumps(sorted(units)) + "\n")

    def clear(self) -> list[str]:
        """Remove all files, and return the paths of those that existed."""
        return [str(path) for path in (self._holds, self._alerts, self._masks) if remove(path)]


_FIELDS = ("namespace", "holder", "acquired")


def _is_hold(item: Any) -> bool:
    return isinstance(item, dict) and all(isinstance(item.get(key), str) for key in _FIELDS)


def _read(path: Path, fits: Any) -> list[Any]:
    """The items of a file; none if it is missing or damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        LOG.error("%s can't be read (%s): the agent treats it as empty until the API server answers.", path, error)
        return []
    return [item for item in content if fits(item)] if isinstance(content, list) else []
