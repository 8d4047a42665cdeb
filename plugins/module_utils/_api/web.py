# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A web server other than the API server: a Prometheus, an Alertmanager, or a push gateway."""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from .clock import ServerClock
from .connection import IMPORT_ERROR
from .errors import InvalidInput
from .watch import Deadline

if not IMPORT_ERROR:
    import urllib3
    from kubernetes.client import Configuration
    from kubernetes.client.rest import RESTClientObject
    from urllib3.exceptions import HTTPError

# Size limit of an answer in bytes. The rules of a big cluster take some hundred kilobytes.
_LARGEST = 32 * 1024 * 1024
_CHUNK = 64 * 1024
_TOKEN = re.compile(r"[\x21-\x7e]+")


class RequestFailed(Exception):
    """The server did not answer, or refused, or its answer is not usable."""


class WebServer:
    """One server below a base URL. It does not follow redirects, and tries each request once.

    Args:
        options: ``url``, ``token``, ``username``, ``password``, ``ca_cert``, ``validate_certs``, and ``timeout`` in
            seconds for one request.
        option: Name of the option that has them, for messages.
        example: An example of a valid URL.

    Raises:
        InvalidInput: An option has a value that can never work; no request was sent.
    """

    def __init__(self, options: Mapping[str, Any], option: str, example: str) -> None:
        self.url = _base_url(options["url"], option, example)
        self.clock = ServerClock()
        self._headers = {
            "Accept": "application/json",
            "User-Agent": "holdfast.kubernetes",
            **_authorization(options, option),
        }
        self._verify: bool = options["validate_certs"]
        self._ca_cert: str | None = options.get("ca_cert")
        self._timeout: int = options["timeout"]
        if self._timeout < 1:
            raise InvalidInput(f"{option}.timeout must be at least 1 s, it is {self._timeout}.")
        if self._ca_cert and self._verify:
            _check_certificates(self._ca_cert, option)

    def get(self, path: str) -> Any:
        """Read JSON.

        Raises:
            RequestFailed: There is no answer with status 200 and JSON.
        """
        content = self.send("GET", path)
        if content is None:
            raise RequestFailed(f"{path}: its answer is not JSON")
        return content

    def send(self, method: str, path: str, body: bytes | None = None, content_type: str = "application/json") -> Any:
        """Send a request; return the JSON of the answer, or ``None`` if it has none.

        Raises:
            RequestFailed: The server did not answer in time, or with a status other than 200 and 202.
        """
        deadline, sent = Deadline(self._timeout), time.monotonic()
        headers = self._headers if body is None else {**self._headers, "Content-Type": content_type}
        try:
            # Use a pool for each request: the server may close a kept connection just as the next request starts.
            with self._pool() as pool:
                answer = pool.request(
                    method,
                    f"{self.url}{path}",
                    body=body,
                    headers=headers,
                    timeout=urllib3.Timeout(total=self._timeout),
                    retries=False,
                    preload_content=False,
                )
                with closing(answer):
                    content = _decoded(_read(answer, deadline))
        except (HTTPError, OSError) as error:
            raise RequestFailed(f"{path}: {error}") from error
        self.clock.observe(answer.headers.get("Date"), sent)
        if answer.status not in (200, 202):
            raise RequestFailed(f"{path}: {_refusal(answer, content)}")
        return content

    def _pool(self) -> Any:
        """A connection pool with the proxies of the environment."""
        configuration = Configuration(host=self.url)
        configuration.verify_ssl = self._verify
        configuration.ssl_ca_cert = self._ca_cert
        return RESTClientObject(configuration).pool_manager


def _base_url(text: str, option: str, example: str) -> str:
    advice = f"Give {example}."
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(f"{option}.url is not a URL: {error}. {advice}") from error
    if "@" in parts.netloc:
        raise InvalidInput(f"{option}.url contains a user name. Use {option}.username and {option}.password.")
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise InvalidInput(f'{option}.url "{text}" is not an http or https URL. {advice}')
    if "?" in text or "#" in text:
        raise InvalidInput(f'{option}.url "{text}" has a query or a fragment. {advice}')
    return text.rstrip("/")


def _authorization(options: Mapping[str, Any], option: str) -> dict[str, str]:
    token = (options.get("token") or "").strip()
    if token:
        if not _TOKEN.fullmatch(token):
            # Do not show the token: it is a secret.
            raise InvalidInput(f"{option}.token contains blanks or other characters that a token can't have.")
        return {"Authorization": f"Bearer {token}"}
    if options.get("username"):
        both = f"{options['username']}:{options.get('password') or ''}"
        return {"Authorization": f"Basic {base64.b64encode(both.encode()).decode('ascii')}"}
    return {}


def _check_certificates(path: str, option: str) -> None:
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        raise InvalidInput(f"{option}.ca_cert {path} has no readable certificates: {error}.") from error


def _read(answer: Any, deadline: Deadline) -> bytes:
    """Read the whole answer.

    Raises:
        RequestFailed: The answer is too big, or not complete in time.
    """
    body = bytearray()
    # read1() returns what is there. read() would wait for a full chunk, past the deadline if the server is slow.
    while chunk := answer.read1(_CHUNK, decode_content=False):
        body += chunk
        if len(body) > _LARGEST:
            raise RequestFailed(f"its answer is bigger than {_LARGEST} bytes")
        if deadline.passed:
            raise RequestFailed(f"its answer was not complete after {deadline.seconds} s")
    return bytes(body)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _refusal(answer: Any, content: Any) -> str:
    what = f"it answered {answer.status} {answer.reason or ''}".rstrip()
    if answer.headers.get("Location"):
        return f"{what} with a redirect to {answer.headers['Location']}; redirects are not followed"
    said = content.get("error") if isinstance(content, dict) else content if isinstance(content, str) else None
    return f"{what}: {said}" if said else what
