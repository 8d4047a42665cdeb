# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One Kubernetes API server: requests in, plain data out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ._clock import ServerClock
from ._connection import IMPORT_ERROR, connect
from ._errors import ApiFailure, NotFound, Unreachable

if not IMPORT_ERROR:
    from kubernetes.client.exceptions import ApiException
    from urllib3 import HTTPHeaderDict
    from urllib3.exceptions import HTTPError

Object = dict[str, Any]
PAGE = 500
_TIMEOUT = (10, 60)


class Cluster:
    """A connection to an API server.

    Objects are plain dicts as the API has them (camelCase). Safe to use from several threads.

    Args:
        options: Values of the common options.
        dry_run: Writes are server-side dry runs: admitted and validated, not stored.
    """

    def __init__(self, options: Mapping[str, Any], *, dry_run: bool = False) -> None:
        self._client = connect(options)
        self._groups: list[str] = list(options.get("impersonate_groups") or [])
        self.dry_run = dry_run
        self.clock = ServerClock()
        self.requests = 0

    def now(self) -> datetime:
        """The API server's time, in UTC."""
        if not self.clock.known:
            self.get("/version")
        return self.clock.now()

    def get(self, path: str, **query: Any) -> Object:
        """Read one object.

        Raises:
            NotFound: It does not exist.
            ApiFailure: The server refused.
            Unreachable: The server did not answer.
        """
        return self._json("GET", path, query=query)

    def find(self, path: str) -> Object | None:
        """Read one object, ``None`` where it does not exist."""
        try:
            return self.get(path)
        except NotFound:
            return None

    def pages(
        self, path: str, *, field_selector: str = "", label_selector: str = "", limit: int = PAGE
    ) -> Iterator[Object]:
        """Read a collection in chunks; yields each answer (a List object) as it comes."""
        query = _selectors(field_selector, label_selector)
        token = ""
        while True:
            page = self.get(path, **query, limit=limit, **({"continue": token} if token else {}))
            yield page
            token = page.get("metadata", {}).get("continue") or ""
            if not token:
                return

    def items(
        self, path: str, *, field_selector: str = "", label_selector: str = "", limit: int = PAGE
    ) -> Iterator[Object]:
        """Read a collection in chunks; holds one chunk at a time."""
        for page in self.pages(path, field_selector=field_selector, label_selector=label_selector, limit=limit):
            yield from page.get("items") or []

    def create(self, path: str, body: Object) -> Object:
        return self._json("POST", path, body=body, write=True)

    def replace(self, path: str, body: Object) -> Object:
        return self._json("PUT", path, body=body, write=True)

    def merge(self, path: str, body: Object, *, timeout: tuple[float, float] = _TIMEOUT) -> Object:
        """JSON merge patch. With ``metadata.resourceVersion`` in it, a compare-and-swap (409 on conflict)."""
        kind = "application/merge-patch+json"
        return self._json("PATCH", path, body=body, write=True, content_type=kind, timeout=timeout)

    def delete(self, path: str, options: Object | None = None) -> Object:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **(options or {})}
        if self.dry_run:
            # With a body, the server reads its options from there alone: the query's dryRun would be ignored.
            body["dryRun"] = ["All"]
        return self._json("DELETE", path, body=body, write=True)

    def open_watch(
        self,
        path: str,
        *,
        resource_version: str,
        timeout_seconds: int,
        field_selector: str = "",
        label_selector: str = "",
        watch: bool = True,
        _preload_content: bool = False,
    ) -> Any:
        """The streaming answer of a watch; made to be called by ``kubernetes.watch.Watch.stream``."""
        query = {
            **_selectors(field_selector, label_selector),
            "watch": watch,
            "allowWatchBookmarks": True,
            "resourceVersion": resource_version,
            "timeoutSeconds": timeout_seconds,
        }
        answer = self._send("GET", path, query=query, timeout=(10, timeout_seconds + 15))
        if answer.status >= 300:
            answer.read()
            raise ApiException(http_resp=answer, body=None, data=None)
        return answer.response

    def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Object | None = None,
        write: bool = False,
        content_type: str = "application/json",
        timeout: tuple[float, float] = _TIMEOUT,
    ) -> Object:
        parameters = dict(query or {})
        if write and self.dry_run:
            parameters["dryRun"] = "All"
        answer = self._send(method, path, query=parameters, body=body, content_type=content_type, timeout=timeout)
        try:
            data = answer.read()
        except HTTPError as error:
            raise self._unreachable(method, path, error) from error
        if answer.status >= 300:
            raise _failure(method, path, answer, data)
        return json.loads(data) if data else {}

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any],
        body: Object | None = None,
        content_type: str = "application/json",
        timeout: tuple[float, float] = _TIMEOUT,
    ) -> Any:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        parameters = list(query.items())
        request = self._client.param_serialize(
            method, path, query_params=parameters, header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        verb, url, sent_headers, payload, _post = request
        if self._groups:
            # A plain dict can't repeat a header; the server wants one Impersonate-Group a group.
            sent_headers = HTTPHeaderDict(sent_headers)
            for group in self._groups:
                sent_headers.add("Impersonate-Group", group)
        self.requests += 1
        try:
            answer = self._client.call_api(verb, url, sent_headers, payload, _request_timeout=timeout)
        except ApiException as error:
            # Status 0 is the library's way to tell of TLS trouble.
            raise self._unreachable(method, path, error) from error
        except (HTTPError, OSError) as error:
            raise self._unreachable(method, path, error) from error
        self.clock.observe(answer.headers.get("Date"))
        return answer

    def _unreachable(self, method: str, path: str, error: Exception) -> Unreachable:
        host = self._client.configuration.host
        return Unreachable(
            f"The API server {host} did not answer {method} {path}: {error}. Check that it runs and that "
            "this machine reaches it with these options.",
            host=host,
        )


def _selectors(field_selector: str, label_selector: str) -> dict[str, str]:
    given = {"fieldSelector": field_selector, "labelSelector": label_selector}
    return {key: value for key, value in given.items() if value}


def _failure(method: str, path: str, answer: Any, data: Any) -> ApiFailure | NotFound:
    try:
        status = json.loads(data)
    except (TypeError, ValueError):
        status = {}
    message = str(status.get("message") or data or answer.reason)
    if isinstance(data, bytes) and not status:
        message = data.decode("utf-8", "replace")
    if answer.status == 404:
        return NotFound(f"{method} {path}: {message}", path=path)
    retry_after = answer.headers.get("Retry-After")
    return ApiFailure(
        f"The API server refused {method} {path} ({answer.status}): {message}",
        status=answer.status,
        reason=str(status.get("reason") or ""),
        retry_after=float(retry_after) if retry_after and retry_after.isdigit() else None,
        causes=(status.get("details") or {}).get("causes") or [],
        body_message=message,
    )
