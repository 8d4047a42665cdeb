# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long to retry a request while the API server is unavailable or overloaded, and whether a write is in place."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

try:
    from urllib3 import Retry
    from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError, ResponseError, SSLError
except ImportError:
    # Where the kubernetes library is missing, connect() says so.
    Retry = object  # type: ignore[assignment,misc]

# Seconds; the default.
API_TIMEOUT = 30
# After these statuses, the same request may get another answer a moment later.
_PASSING = (429, 500, 502, 503, 504)
# What the text of a 500 says if the same request may succeed later.
_PASSING_500 = ("etcdserver", "failed calling webhook")
# With these statuses, the API server has not carried out the request.
_NOT_DONE = (429,)
# An API server that has just started may deny what it allowed before, until its authorizer has read the roles: for so
# many seconds at most. Source: issue 101422 of Kubernetes.
DENIED = (401, 403)
MAY_DENY = 60.0
_LONGEST_PAUSE = 5.0


@dataclass
class Attempts:
    """State that all attempts of one request share.

    Attributes:
        until: Monotonic time in seconds after which the request is not sent again.
        doubtful: An attempt failed after it was sent, so that the API server may have carried it out.
        away: Monotonic time in seconds of the last attempt that found the API server unavailable.
    """

    until: float
    doubtful: bool = False
    away: float = -MAY_DENY

    @property
    def left(self) -> float:
        return max(0.0, self.until - time.monotonic())

    def has_just_started(self, status: int) -> bool:
        """Whether the API server denies a request because it has just started."""
        return status in DENIED and time.monotonic() - self.away < MAY_DENY


class Patience(Retry):
    """Sends a request with any method again, until a number of seconds after its start."""

    def __init__(self, *args: Any, attempts: Attempts, **more: Any) -> None:
        super().__init__(*args, **more)
        self.attempts = attempts

    @classmethod
    def of(cls, seconds: float) -> Patience:
        return cls(
            total=None,
            redirect=0,
            raise_on_redirect=False,
            allowed_methods=None,
            status_forcelist=_PASSING,
            raise_on_status=False,
            attempts=Attempts(time.monotonic() + seconds),
        )

    def new(self, **more: Any) -> Patience:
        return super().new(attempts=self.attempts, **more)

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: Any = None,
        error: Exception | None = None,
        _pool: Any = None,
        _stacktrace: Any = None,
    ) -> Patience:
        self.attempts.doubtful = self.attempts.doubtful or _may_be_done(response, error)
        starts = response is not None and self.attempts.has_just_started(response.status)
        if response is None or response.status >= 500:
            self.attempts.away = time.monotonic()
        if not starts and not _passes(response, error):
            raise MaxRetryError(_pool, url or "", error or ResponseError(f"status {response.status}"))
        return super().increment(method, url, response, error, _pool, _stacktrace)

    def is_retry(self, method: str, status_code: int, *more: Any, **options: Any) -> bool:
        return self.attempts.has_just_started(status_code) or super().is_retry(method, status_code, *more, **options)

    def is_exhausted(self) -> bool:
        return self.attempts.left <= 0 or super().is_exhausted()

    def get_backoff_time(self) -> float:
        pause = min(_LONGEST_PAUSE, 0.1 * 2.0 ** min(len(self.history), 10))
        # Hosts that lost the API server at the same time must not all return at the same time.
        return min(pause * random.uniform(0.5, 1.0), self.attempts.left)  # noqa: S311 - no secret

    def get_retry_after(self, response: Any) -> float | None:
        asked = super().get_retry_after(response)
        return None if asked is None else min(asked, self.attempts.left)


def _may_be_done(response: Any, error: Exception | None) -> bool:
    if error is not None:
        return not isinstance(error, (ConnectTimeoutError, NewConnectionError))
    return response is not None and response.status in _PASSING and response.status not in _NOT_DONE


def _passes(response: Any, error: Exception | None) -> bool:
    """Whether another attempt may succeed."""
    if isinstance(error, SSLError):
        # A bad certificate stays bad. A server that stops in the middle of the handshake comes back.
        return any(isinstance(cause, ssl.SSLEOFError) for cause in error.args)
    return response is None or overloaded(response.status, (response.data or b"").decode("utf-8", "replace"))


def overloaded(status: int, text: str) -> bool:
    """Whether the cause of an answer is the state of the API server and not the request."""
    # Requests that can never work also get 500. The others are those without a leader of etcd, and those whose
    # admission webhook does not answer: its pods may be on the node that is rebooted.
    return status in _PASSING and (status != 500 or any(words in text for words in _PASSING_500))


def contains(found: Any, wanted: Any) -> bool:
    """Whether an object has everything that was written. ``None`` means that a field was removed."""
    if isinstance(wanted, Mapping):
        # The server leaves out empty fields.
        found = {} if found is None else found
        return isinstance(found, Mapping) and all(contains(found.get(key), value) for key, value in wanted.items())
    return bool(found == wanted) or (not found and not wanted)
