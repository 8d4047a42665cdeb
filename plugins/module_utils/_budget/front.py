# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of a run's waiting nodes tries for the next slot of a group: one at a time, whatever their number.

The hosts of a run wait in processes of one machine. The kernel gives a lock on a file to one of them, and to the next
one as soon as that one is done, or dies.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


class Front:
    """The front of the queue for a group's slots.

    Args:
        folder: A folder that the tasks of the run share. Without it every waiting node is at the front.
        run: The run. Without it every waiting node is at the front.
        group: The group.
        arrived: Called from another thread when a node that waits for the front gets there.
    """

    def __init__(self, folder: str, run: str, group: str, arrived: Callable[[], None]) -> None:
        name = hashlib.sha256(f"{run}\0{group}".encode()).hexdigest()[:16]
        self._path = Path(folder) / f"holdfast-front-{name}" if folder and run else None
        self._arrived = arrived
        self._file: int | None = None
        self._queued = False
        self._left = False
        self._lock = threading.Lock()
        self.here = self._path is None

    def ask(self) -> bool:
        """Whether this node is at the front. If not, it gets into the queue."""
        if self.here or self._queued or self._path is None:
            return self.here
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.here = True
        except BlockingIOError:
            self._queued = True
            threading.Thread(target=self._queue, args=(self._file,), daemon=True, name="queue for a slot").start()
        except OSError:
            # Without locks, every node tries: that costs requests, and nothing else.
            self.here = True
        return self.here

    def _queue(self, file: int) -> None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        with self._lock:
            if self._left:
                os.close(file)
                return
            self.here = True
        self._arrived()

    def leave(self) -> None:
        """Let the next node get to the front."""
        with self._lock:
            self._left = True
            if self.here and self._file is not None:
                os.close(self._file)
                self._file = None

    def read(self) -> Any:
        """What the last node at the front left for the next one; ``None`` if it left nothing."""
        if self._file is None or not self.here:
            return None
        with suppress(OSError, ValueError):
            return json.loads(os.pread(self._file, 1 << 20, 0) or b"null")
        return None

    def write(self, data: Any) -> None:
        """Leave something for the next node at the front."""
        if self._file is not None and self.here:
            with suppress(OSError):
                text = json.dumps(data).encode()
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, text, 0)
