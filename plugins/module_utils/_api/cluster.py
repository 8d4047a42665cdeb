# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One Kubernetes API server: requests in, plain data out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from .._shared.bounds import cut
from .clock import ServerClock
from .connection import IMPORT_ERROR, connect
from .errors import ApiFailure, HoldfastError, InvalidInput, NotFound, Outdated, Unreachable
from .event_stream import EventStream
from .objects import Object
from .patience import API_TIMEOUT, Patience, contains, overloaded

if not IMPORT_ERROR:
    from urllib3 import Timeout
    from urllib3.exceptions import HTTPError, MaxRetryError

    try:
        from urllib3 import HTTPHeaderDict

        _REPEATS = True
    except ImportError:
        # urllib3 1.26 joins headers of one name into one header.
        from urllib3._collections import HTTPHeaderDict

        _REPEATS = False

PAGE = 500
# Rows of a table are small. The server compresses answers of more than 128 KiB, and a chunk of 500 rows is smaller.
_ROWS = 5000
_JSON = "application/json"
_MERGE, _STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
# The server's own table of a collection: what kubectl shows of each object. Source: the API concepts of Kubernetes,
# "Receiving resources as Tables".
_TABLE = f"{_JSON};as=Table;v=v1;g=meta.k8s.io"
# The only answer without a kind.
_VERSION = "/version"
_TIMEOUT = (10, 60)
# For patches that are sent only once, such as the renewal of a Lease: the next one is better than one that hangs.
_SHORT_TIMEOUT = (5, 10)
# Read the credentials again after 401 at most once in this many seconds. The library reads most of them only once, and
# the token in a file or the certificate of a plugin may expire during a long task.
_CREDENTIALS_EVERY = 60.0
# Maximum number of seconds to repeat a change. Later, the data behind the decision is too old: read and decide again.
_DECISION = 10


class Cluster:
    """A connection to an API server.

    Objects are plain dicts as the API has them (camelCase). Safe to use from several threads.

    While the server is unavailable or overloaded, requests are sent again for ``api_timeout`` seconds. Requests that
    are not ``patient`` are not sent again: their callers have their own loop. The server may have carried out a write
    that failed after it was sent. If the object then has the written content, the write counts as done.

    Args:
        options: Values of the common options.
        dry_run: Make every write a server-side dry run: admitted and validated, not stored.
    """

    def __init__(self, options: Mapping[str, Any], *, dry_run: bool = False) -> None:
        self._options = dict(options)
        self._client, self._connected = connect(options), time.monotonic()
        # Each time that the library reads a token, it sets the host back to that of the kubeconfig.
        self._host: str = self._client.configuration.host
        self._groups: list[str] = list(options.get("impersonate_groups") or [])
        if len(self._groups) > 1 and not _REPEATS:
            raise InvalidInput(
                f"impersonate_groups has {len(self._groups)} groups, but urllib3 before 2.0 sends one. Install "
                "urllib3 2.0 or later, or give one group."
            )
        timeout = options.get("api_timeout")
        self._api_timeout: float = API_TIMEOUT if timeout is None else timeout
        self.dry_run = dry_run
        self.clock = ServerClock()
        # What was sent and received: requests, and bytes of the answers' bodies as they came, perhaps compressed.
        self.requests = self.received = 0

    def now(self) -> datetime:
        """The API server's time, in UTC."""
        if not self.clock.known:
            self.get(_VERSION)
        return self.clock.now()

    def get(self, path: str, *, patient: bool = True, accept: str = _JSON, **query: Any) -> Object:
        """Read one object.

        Args:
            accept: The form of the answer.

        Raises:
            NotFound: It does not exist.
            ApiFailure: The server refused.
            Unreachable: The server did not answer.
        """
        retries = Patience.of(self._api_timeout) if patient else None
        return _content("GET", path, self._send("GET", path, query=query, retries=retries, accept=accept))

    def find(self, path: str) -> Object | None:
        """Read one object; ``None`` if it does not exist."""
        try:
            return self.get(path)
        except NotFound:
            return None

    def pages(
        self,
        path: str,
        *,
        field_selector: str = "",
        label_selector: str = "",
        limit: int = PAGE,
        patient: bool = True,
        accept: str = _JSON,
        **more: str,
    ) -> Iterator[Object]:
        """Read a collection in chunks; yields each answer (a List object) as it arrives."""
        query = {**_selectors(field_selector, label_selector), **more, "limit": limit}
        token = ""
        while True:
            page = self.get(path, patient=patient, accept=accept, **query, **({"continue": token} if token else {}))
            yield page
            token = page.get("metadata", {}).get("continue") or ""
            if not token:
                return

    def items(self, path: str, *, field_selector: str = "", label_selector: str = "") -> Iterator[Object]:
        """Read a collection in chunks; keeps only one chunk in memory."""
        for page in self.pages(path, field_selector=field_selector, label_selector=label_selector):
            yield from page.get("items") or []

    def rows(self, path: str, *, label_selector: str = "", limit: int = _ROWS) -> Iterator[Mapping[str, Any]]:
        """Read the columns of a collection's table, by their names, without the objects: a fraction of the bytes."""
        for page in self.pages(path, label_selector=label_selector, limit=limit, accept=_TABLE, includeObject="None"):
            names = [column["name"] for column in page["columnDefinitions"]]
            for row in page.get("rows") or []:
                yield dict(zip(names, row["cells"]))

    def create(self, path: str, body: Object, *, patient: bool = True, decided: bool = False) -> Object:
        """Create an object.

        Args:
            decided: The content depends on other objects. It is not sent again when these may have changed.
        """
        return self._write("POST", path, body, patient=patient, decided=decided)

    def replace(self, path: str, body: Object) -> Object:
        return self._write("PUT", path, body)

    def merge(self, path: str, body: Object, *, patient: bool = True, once: bool = False) -> Object:
        """JSON merge patch. With ``metadata.resourceVersion`` in it, a compare-and-swap (409 on conflict).

        Args:
            once: Never send the patch again: the data behind the decision may be too old. The caller decides again.
        """
        timeout = _TIMEOUT if patient and not once else _SHORT_TIMEOUT
        return self._write("PATCH", path, body, patient=patient, once=once, timeout=timeout)

    def merge_conditions(self, path: str, metadata: Object, conditions: Sequence[Object]) -> Object:
        """Change some conditions of an object, and its metadata in the same request; the other conditions stay.

        A strategic merge patch of the status: each entry changes the condition of its ``type``, and ``$patch: delete``
        removes it. With ``resourceVersion`` in the metadata, a compare-and-swap (409 on conflict).
        """
        body = {"metadata": metadata, "status": {"conditions": list(conditions)}}
        return self._write("PATCH", f"{path}/status", body, content_type=_STRATEGIC)

    def delete(self, path: str, options: Object | None = None, *, patient: bool = True) -> Object:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **(options or {})}
        if self.dry_run:
            # If there is a body, the server reads the options only from the body and ignores dryRun in the query.
            body["dryRun"] = ["All"]
        return self._write("DELETE", path, body, patient=patient)

    def open_watch(
        self,
        path: str,
        *,
        resource_version: str,
        timeout_seconds: int,
        field_selector: str = "",
        label_selector: str = "",
    ) -> EventStream:
        """Watch a collection from a resource version on.

        Raises:
            NotFound: The server does not serve the collection.
            ApiFailure: The server refused, with 410 because the resource version is too old.
            Unreachable: The server did not answer.
        """
        query = {
            **_selectors(field_selector, label_selector),
            "watch": True,
            "allowWatchBookmarks": True,
            "resourceVersion": resource_version,
            "timeoutSeconds": timeout_seconds,
        }
        answer = self._send("GET", path, query=query, timeout=(10, timeout_seconds + 15), stream=True)
        if answer.status >= 300:
            raise _failure("WATCH", path, answer, answer.data)
        return EventStream(answer, self._count)

    def _count(self, length: int) -> None:
        self.received += length

    def _write(
        self,
        method: str,
        path: str,
        body: Object,
        *,
        patient: bool = True,
        decided: bool = False,
        once: bool = False,
        timeout: tuple[float, float] = _TIMEOUT,
        content_type: str = "",
    ) -> Object:
        decided = decided or once or "resourceVersion" in (body.get("metadata") or {})
        seconds = 0 if once else min(self._api_timeout, _DECISION) if decided else self._api_timeout
        retries = Patience.of(seconds) if patient else None
        query = {"dryRun": "All"} if self.dry_run else {}
        try:
            answer = self._send(
                method, path, query=query, body=body, retries=retries, timeout=timeout, content_type=content_type
            )
            return _content(method, path, answer)
        except (ApiFailure, NotFound, Unreachable) as failure:
            if retries is None or self.dry_run:
                raise
            if content_type == _STRATEGIC:
                # Its conditions are instructions, not content. The metadata shows whether the patch was carried out.
                body = {"metadata": body["metadata"]}
            return self._settle(method, path, body, failure, decided=decided, doubtful=retries.attempts.doubtful)

    def _settle(
        self, method: str, path: str, body: Object, failure: HoldfastError, *, decided: bool, doubtful: bool
    ) -> Object:
        """Find out whether the server carried out a write that failed.

        Returns:
            The object as written; empty for a deleted object.

        Raises:
            Outdated: The server did not carry it out, and the caller has to decide again.
            ApiFailure, NotFound, Unreachable: The failure itself, in all other cases.
        """
        if isinstance(failure, NotFound):
            if method == "DELETE" and doubtful:
                return {}
            raise failure
        answer = failure if isinstance(failure, ApiFailure) else None
        away = answer is None or overloaded(answer.status, answer.body_message)
        conflict = answer is not None and answer.status == 409
        if method == "DELETE" or not ((away and decided and self._api_timeout > 0) or (conflict and doubtful)):
            raise failure
        present = self.find(_place(method, path, body))
        if present is not None and _is_written(method, present, body):
            return present
        if conflict:
            raise failure
        raise Outdated(
            f"{failure.message.rstrip('.')}. The change was not made and must be decided again.",
            patience=self._api_timeout,
        ) from failure

    def _send(self, method: str, path: str, **options: Any) -> Any:
        client = self._client
        answer = self._send_once(method, path, **options)
        # Another thread may have new credentials by now.
        renewed = self._client is not client
        if answer.status == 401 and (renewed or time.monotonic() - self._connected > _CREDENTIALS_EVERY):
            answer.close()
            if not renewed:
                self._client, self._connected = connect(self._options), time.monotonic()
            answer = self._send_once(method, path, **options)
        return answer

    def _send_once(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any],
        body: Object | None = None,
        timeout: tuple[float, float] = _TIMEOUT,
        retries: Patience | None = None,
        stream: bool = False,
        accept: str = _JSON,
        content_type: str = "",
    ) -> Any:
        content_type = content_type or (_MERGE if method == "PATCH" else _JSON)
        headers = HTTPHeaderDict(self._client.default_headers)
        # A watch is read line by line, as it comes.
        encoding = "identity" if stream else "gzip"
        headers.update({"Accept": accept, "Accept-Encoding": encoding, "Content-Type": content_type})
        # The name under which a token is kept differs between versions of the library. This also refreshes it.
        token = self._client.configuration.auth_settings().get("BearerToken")
        if token and token["value"]:
            headers["Authorization"] = _printable(token["value"])
        for group in self._groups:
            # The server wants one header for each group.
            headers.add("Impersonate-Group", group)
        connecting, reading = timeout
        self.requests += 1
        sent = time.monotonic()
        try:
            answer = self._client.rest_client.pool_manager.request(
                method,
                self._host + path + _query(query),
                body=None if body is None else json.dumps(body),
                headers=headers,
                timeout=Timeout(connect=connecting, read=reading),
                retries=retries or False,
                preload_content=not stream,
            )
        except MaxRetryError as error:
            raise self._unreachable(method, path, error.reason or error) from error
        except (HTTPError, OSError) as error:
            raise self._unreachable(method, path, error) from error
        self.clock.observe(answer.headers.get("Date"), sent)
        if not stream:
            self.received += answer.tell()
        return answer

    def _unreachable(self, method: str, path: str, error: BaseException) -> Unreachable:
        return Unreachable(
            f"The API server {self._host} did not answer {method} {path}: {error}. Check that it runs, and that this "
            "machine reaches it with these options.",
            host=self._host,
        )


def _printable(authorization: str) -> str:
    """Return the value of a header without the line break at the end of a file.

    Raises:
        InvalidInput: It has other characters that no header can have. An error of the library would show the secret.
    """
    text = authorization.strip()
    if not text.isascii() or not text.isprintable():
        raise InvalidInput(
            "The token or the password for the API server has a line break or another character that is not allowed. "
            "Check api_key, or the token in the kubeconfig."
        )
    return text


def _query(values: Mapping[str, Any]) -> str:
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in values.items()}
    return f"?{urlencode(texts)}" if texts else ""


def _selectors(field_selector: str, label_selector: str) -> dict[str, str]:
    given = {"fieldSelector": field_selector, "labelSelector": label_selector}
    return {key: value for key, value in given.items() if value}


def _place(method: str, path: str, body: Object) -> str:
    return f"{path}/{body['metadata']['name']}" if method == "POST" else path.removesuffix("/status")


def _is_written(method: str, present: Object, body: Object) -> bool:
    """Whether an object has the written content and, after a PUT, nothing that the request left out."""
    wanted = _lasting(method, body)
    if not contains(present, wanted):
        return False
    return method != "PUT" or contains(wanted, _lasting(method, {key: present[key] for key in body if key in present}))


def _lasting(method: str, body: Object) -> Object:
    """The written content without the metadata that the server manages itself."""
    metadata = body.get("metadata") or {}
    kept = ("labels", "annotations") if method == "PUT" else tuple(set(metadata) - {"resourceVersion"})
    return {**body, "metadata": {key: value for key, value in metadata.items() if key in kept}}


def _content(method: str, path: str, answer: Any) -> Object:
    if answer.status >= 300:
        raise _failure(method, path, answer, answer.data)
    try:
        found = json.loads(answer.data)
    except ValueError:
        found = None
    # A proxy may answer anything, also in JSON. Without this check, its answer to a list is an empty list: no holds.
    if not isinstance(found, dict) or not ("kind" in found or path == _VERSION):
        raise ApiFailure(
            f"The answer to {method} {path} (status {answer.status}) is not an object of Kubernetes, so it is not the "
            f"API server's: {cut(answer.data.decode('utf-8', 'replace'), 200)}. Check the proxy or load balancer in "
            "front of it.",
            status=answer.status,
        )
    return found


def _failure(method: str, path: str, answer: Any, data: Any) -> ApiFailure | NotFound:
    try:
        found = json.loads(data)
    except (TypeError, ValueError):
        found = {}
    status = found if isinstance(found, dict) else {}
    message = str(status.get("message") or data or answer.reason)
    if isinstance(data, bytes) and not status:
        message = data.decode("utf-8", "replace")
    # An admission webhook can send a text of any length.
    message = cut(message, 1000)
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
