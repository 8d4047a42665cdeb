# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors that operations raise and runners report.

Every message names the object, the cause and the way out. ``kind`` and ``fields`` say the same for programs.
"""

from __future__ import annotations

from typing import Any

from .._shared.bounds import plain


class HoldfastError(Exception):
    """Base of all errors of this collection.

    Args:
        message: One or more sentences: object, cause, way out.
        fields: Machine-readable facts, returned as top-level results.
    """

    kind = "error"

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    def as_result(self) -> dict[str, Any]:
        """The result of a task that fails with this error.

        Others write parts of a message, for example the holder of a hold, and Ansible prints it as it is.
        """
        return {"changed": False, **self.fields, "failed": True, "msg": plain(self.message), "error": self.kind}


class InvalidInput(HoldfastError):
    """An option has a value that can never work; nothing was changed."""

    kind = "invalid_input"


class NotFound(HoldfastError):
    """An object that is needed does not exist."""

    kind = "not_found"


class Refused(HoldfastError):
    """The operation is possible, but a rule of this collection forbids it; nothing was changed."""

    kind = "refused"


class Held(Refused):
    """Another holder holds the node or the Lease."""

    kind = "held"


class TimedOut(HoldfastError):
    """A deadline passed."""

    kind = "timed_out"


class ApiFailure(HoldfastError):
    """The API server refused a request.

    Args:
        message: The request and the server's answer.
        status: HTTP status code.
        reason: The server's ``reason``, for example ``Forbidden``.
        retry_after: Seconds that the server asks the client to wait; ``None`` if it does not ask.
        causes: ``details.causes`` of the server's Status object.
    """

    kind = "api"

    def __init__(
        self,
        message: str,
        *,
        status: int,
        reason: str = "",
        retry_after: float | None = None,
        causes: list[dict[str, str]] | None = None,
        body_message: str = "",
    ) -> None:
        super().__init__(message, status=status, reason=reason)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        self.causes = causes or []
        self.body_message = body_message


def passing(status: int) -> bool:
    """Whether the same request may get another answer a moment after one with this status."""
    return status in (0, 429) or status >= 500


class Outdated(ApiFailure):
    """A change could not be written while the API server was unavailable: read again, and decide again.

    Attributes:
        patience: Seconds that requests wait for the API server.
    """

    def __init__(self, message: str, *, patience: float) -> None:
        super().__init__(message, status=409, reason="Conflict", body_message=message)
        self.patience = patience


class Unreachable(HoldfastError):
    """The API server did not answer."""

    kind = "api_unreachable"


class MissingLibrary(HoldfastError):
    """A Python library is not installed where the module runs."""

    kind = "missing_library"

    def __init__(self, message: str, traceback: str) -> None:
        super().__init__(message)
        self.traceback = traceback
