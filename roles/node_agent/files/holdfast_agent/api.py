# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the API server, for both threads."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3

from . import __version__
from .access import Access, AccessError, Signature, access_of, signature
from .bounds import cut
from .clock import ServerClock
from .config import Config

LOG = logging.getLogger(__name__)
MERGE = "application/strategic-merge-patch+json"

_CONNECT_SECONDS = 5
_READ_SECONDS = 15
# A holder waits for the agent, so a proxy must not silence it for hours.
_LONGEST_RETRY_AFTER = 60.0
# With these, a server that does not answer or a network that drops packets is noticed within half a minute.
_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30000),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
]


class Away(Exception):
    """The API server can't be reached, or answers with an error that may pass.

    Attributes:
        retry_after: Seconds that the server asks to wait before the next try; 0 if it does not say.
    """

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(Exception):
    """The API server refused a request."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """Connections to the API server, which are replaced when the kubelet's certificate rotates."""

    def __init__(self, config: Config, clock: ServerClock) -> None:
        self._config = config
        self.clock = clock
        self._lock = threading.Lock()
        self._pool: urllib3.HTTPSConnectionPool | None = None
        self._access: Access | None = None
        self._signature: Signature = ()

    def ask(self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **query: str) -> Any:
        """Send a request, and decode the answer.

        Raises:
            Away: There is no answer.
            Refused: The answer is a refusal.
        """
        answer = self._send(method, path, query, body=body, kind=kind)
        return _json(answer.data)

    def lines(self, path: str, read_seconds: float, **query: str) -> Iterator[bytes]:
        """The lines of a streamed answer as they arrive, after an empty one when the answer starts.

        Raises:
            Away: There is no answer, or the stream broke off.
            Refused: The answer is a refusal.
        """
        answer = self._send("GET", path, query, read_seconds=read_seconds, stream=True)
        rest = b""
        try:
            yield b""
            for chunk in answer.stream(None):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line for line in whole if line)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Away(_describe(error)) from error
        finally:
            # A connection with an unread answer can't be used again.
            answer.close()

    def _send(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        *,
        body: Any = None,
        kind: str = "",
        read_seconds: float = _READ_SECONDS,
        stream: bool = False,
    ) -> Any:
        headers = {"Accept": "application/json", "User-Agent": f"holdfast-agent/{__version__}"}
        if body is not None:
            headers["Content-Type"] = kind
        url = path + (f"?{urlencode(query)}" if query else "")
        for again in (True, False):
            pool = self._ready()
            sent = self.clock.monotonic()
            try:
                answer = pool.urlopen(
                    method,
                    url,
                    body=None if body is None else json.dumps(body).encode(),
                    headers=headers,
                    retries=False,
                    redirect=False,
                    timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=read_seconds),
                    preload_content=not stream,
                )
            except urllib3.exceptions.ProtocolError as error:
                # The server closed an idle connection just when it was used.
                if again:
                    continue
                raise Away(_describe(error)) from error
            except (urllib3.exceptions.HTTPError, OSError) as error:
                raise Away(_describe(error)) from error
            self.clock.observe(answer.headers.get("Date"), sent)
            if answer.status == 401:
                # The certificate of this connection is not valid any more.
                self._drop()
                if again:
                    answer.close()
                    continue
            if answer.status >= 300:
                raise _failure(method, path, answer)
            return answer
        raise Away("unreachable")

    def _ready(self) -> urllib3.HTTPSConnectionPool:
        with self._lock:
            if self._pool is None or signature(self._config, self._access) != self._signature:
                self._close()
                try:
                    self._access = access_of(self._config)
                    self._signature = signature(self._config, self._access)
                    self._pool = _pool(self._access)
                except AccessError as error:
                    raise Away(str(error)) from error
            return self._pool

    def _drop(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None


def _pool(access: Access) -> urllib3.HTTPSConnectionPool:
    parts = urlsplit(access.server)
    more: dict[str, Any] = {}
    if access.server_name:
        more = {"server_hostname": access.server_name, "assert_hostname": access.server_name}
    return urllib3.HTTPSConnectionPool(
        parts.hostname or "",
        parts.port or 443,
        maxsize=2,
        ssl_context=access.context(),
        socket_options=_KEEPALIVE,
        **more,
    )


def _failure(method: str, path: str, answer: Any) -> Exception:
    try:
        content = answer.data if answer.data is not None else answer.read()
    except (urllib3.exceptions.HTTPError, OSError) as error:
        message = f"{method} {path}: {answer.status}, and the answer broke off ({_describe(error)})"
        return Away(message, _retry_after(answer))
    try:
        text = cut(str(json.loads(content).get("message") or ""), 1000)
    except (ValueError, AttributeError):
        text = content[:200].decode("utf-8", "replace")
    message = f"{method} {path}: {answer.status} {text}".strip()
    # 401: the kubelet is about to rotate its certificate, or to join the cluster.
    if answer.status in (401, 429) or answer.status >= 500:
        return Away(message, _retry_after(answer))
    return Refused(message, answer.status)


def _retry_after(answer: Any) -> float:
    # The API server sends seconds. Something else, for example a date from a proxy, counts as not said.
    text = str(answer.headers.get("Retry-After") or "").strip()
    return min(float(text), _LONGEST_RETRY_AFTER) if text.isascii() and text.isdigit() else 0.0


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise Away(f"the answer is not JSON ({error})") from error


def _describe(error: Exception) -> str:
    cause = getattr(error, "reason", None) or error
    return f"{type(error).__name__}: {cause}"
