# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The streaming answer of a watch, as events.

It takes the place of the client library's own watch, which behaves differently from version to version.
"""

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
        answer: urllib3's response, whose body has not been read yet.
        count: Called with the number of bytes of each chunk that arrives.
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
        """End the watch from another thread than the one that waits for its next event."""
        connection = getattr(self._answer.connection, "sock", None)
        if connection is not None:
            # close() would wait for a lock that the reading thread has.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _lines(self) -> Iterator[bytes]:
        incomplete = b""
        for chunk in self._answer.stream(amt=None, decode_content=False):
            self._count(len(chunk))
            *lines, incomplete = (incomplete + chunk).split(b"\n")
            yield from lines


def _event(line: bytes) -> dict[str, Any] | None:
    """Parse an event; ``None`` if the line is something else, for example an error page of a proxy."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "type" in event else None
