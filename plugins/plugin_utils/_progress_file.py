# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tasks of a run tell its live view and its report, through a file that they share.

A worker process ends with its task, and a task that waits has no result yet. So each task adds lines to a file in the
folder of the ansible-playbook process. The callback follows the file, and the report reads it at the end.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ansible.module_utils.common.parameters import remove_values

from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import event_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _traffic

_FILE = "holdfast-progress"
_COLLECTION = "holdfast.kubernetes."
_HIDDEN = "hidden (no_log)"


def path() -> Path:
    """The file of this ansible-playbook process."""
    return Path(_traffic.folder()) / _FILE


class Task:
    """One task that tells what it waits for.

    Attributes:
        name: Name of the module, without the collection.
        outcome: The result of the task; empty before its end.
    """

    def __init__(self, task: Any, variables: Mapping[str, Any], unshown: Collection[str] = ()) -> None:
        self._shown, self._hidden, self._unshown = not task.check_mode, bool(task.no_log), unshown
        self.name = str(task.resolved_action or task.action).removeprefix(_COLLECTION)
        self._host = str(variables.get("inventory_hostname") or "")
        self._last: dict[str, Any] = {}
        self.outcome: dict[str, Any] = {}

    def tell(self, event: dict[str, Any]) -> None:
        """Add an event. A wait that repeats itself is told once."""
        if not self._shown or event == self._last:
            return
        self._last = event
        shown = remove_values(_without_words(event) if self._hidden else event, self._unshown)
        line = json.dumps({**shown, "at": time.time(), "host": self._host}, default=str)
        # View and report are for people only, so an error here stops no task. Appending is atomic.
        with suppress(OSError):
            file = os.open(path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, f"{line}\n".encode())
            finally:
                os.close(file)


@contextmanager
def telling(
    task: Any, variables: Mapping[str, Any], params: Mapping[str, Any], unshown: Collection[str] = ()
) -> Iterator[Task]:
    """Tell that a task begins and ends. The body sets the outcome.

    Args:
        unshown: Values of options that nobody may see (``no_log``).
    """
    told = Task(task, variables, unshown)
    told.tell(rules.begun(told.name, params))
    try:
        yield told
    except Exception as error:
        told.outcome = {"failed": True, "msg": str(error)}
        raise
    finally:
        told.tell(rules.ended(told.name, params, told.outcome))


def _without_words(event: Mapping[str, Any]) -> dict[str, Any]:
    """What a task with no_log tells, as Ansible hides its result."""
    words = {name: _HIDDEN for name in ("error", "why") if event.get(name)}
    results = {"results": [{**item, "detail": _HIDDEN} for item in event["results"]]} if event.get("results") else {}
    return {**event, **words, **results}


class Reader:
    """Reads the events in the order in which they were written."""

    def __init__(self) -> None:
        self._path = path()
        self._offset = 0

    def new(self) -> list[dict[str, Any]]:
        """Return the events since the last call. A line that is not complete yet comes with the next call."""
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(self._offset)
            whole, newline, _rest = file.read().rpartition(b"\n")
            self._offset += len(whole + newline)
            return [event for event in map(_event, whole.splitlines()) if event]
        return []


def _event(line: bytes) -> dict[str, Any]:
    """Return the event of a line; an empty one if the line is torn, because the disk was full."""
    with suppress(ValueError):
        found = json.loads(line)
        return found if isinstance(found, dict) else {}
    return {}
