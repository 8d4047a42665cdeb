# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The streaming answer of a watch, as events. The watch of the library differs with its version."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

from .errors import ApiFailure


class EventStream:
    """The events of one watch, each as the API server sends it.

    Args:
        answer: The answer of urllib3, which is not read yet.
        count: Gets the number of bytes of each part that arrives.
    """

    def __init__(self, answer: Any, count: Callable[[int], None]) -> None:
        self._answer = answer
        self._count = count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield events until the server ends the watch.

        Raises:
            ApiFailure: The server sent an error, for example 410 because the resource version is too old.
        """
        try:
            for line in self._lines():
                event = _event(line)
                if event is None:
                    continue
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiFailure(
                        f"The API server ended a watch: {status.get('reason')}: {status.get('message')}",
                        status=status["code"],
                        reason=str(status.get("reason") or ""),
                    )
                yield event
        finally:
            self._answer.close()
            self._answer.release_conn()

    def stop(self) -> None:
        """End the watch from another thread, which may wait for the next event."""
        connected = getattr(self._answer.connection, "sock", None)
        if connected is not None:
            # close() would wait for the lock of the thread that reads.
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        for part in self._answer.stream(amt=None, decode_content=False):
            self._count(len(part))
            *lines, rest = (rest + part).split(b"\n")
            yield from lines


def _event(line: bytes) -> dict[str, Any] | None:
    """Read an event; ``None`` if the line is something else, for example from a proxy."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "type" in event else None
