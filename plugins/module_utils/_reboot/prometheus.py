# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a Prometheus for its alerts. If it does not answer, it blocks the reboot, because its alerts are unknown."""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from .._api.connection import IMPORT_ERROR
from .._api.errors import InvalidInput
from .._api.watch import Deadline
from .blocker_rules import ALERT, Blocker, InvalidAnswer, of_alerts, read_alerts, read_filter, read_unevaluated

if not IMPORT_ERROR:
    import urllib3
    from kubernetes.client import Configuration
    from kubernetes.client.rest import RESTClientObject
    from urllib3.exceptions import HTTPError

# Size limit of an answer in bytes. The rules of a big cluster take some hundred kilobytes.
_LARGEST = 32 * 1024 * 1024
_CHUNK = 64 * 1024
_TOKEN = re.compile(r"[\x21-\x7e]+")


class QueryFailed(Exception):
    """Prometheus did not answer, or its answer is not usable."""


class Prometheus:
    """One Prometheus, and which of its alerts block a node.

    Args:
        options: The option ``alerts`` of the task.
        node: Name of the Node.

    Raises:
        InvalidInput: An option has a value that can never work; no request was sent.
    """

    def __init__(self, options: Mapping[str, Any], node: str) -> None:
        self.url = _base_url(options["url"])
        self._filter = read_filter(options, node)
        self._headers = {"Accept": "application/json", "User-Agent": "holdfast.kubernetes", **_authorization(options)}
        self._verify: bool = options["validate_certs"]
        self._ca_cert: str | None = options.get("ca_cert")
        self._timeout: int = options["timeout"]
        if self._timeout < 1:
            raise InvalidInput(f"alerts.timeout must be at least 1 s, it is {self._timeout}.")
        if self._ca_cert and self._verify:
            _check_certificates(self._ca_cert)

    def blockers(self) -> list[Blocker]:
        """The current blockers. A Prometheus that does not report its alerts is itself a blocker."""
        try:
            # The rules first: the second answer has the alerts of every rule that was evaluated by then.
            unevaluated = read_unevaluated(self._ask("/api/v1/rules?type=alert"))
            alerts = read_alerts(self._ask("/api/v1/alerts"))
        except (QueryFailed, InvalidAnswer) as error:
            return [Blocker(ALERT, None, self.url, f"this Prometheus does not report its alerts: {error}")]
        return of_alerts(alerts, unevaluated, self._filter)

    def _ask(self, path: str) -> Any:
        deadline = Deadline(self._timeout)
        try:
            # Use a pool for each request: the server may close a kept connection just as the next request starts.
            with self._pool() as pool:
                answer = pool.request(
                    "GET",
                    f"{self.url}{path}",
                    headers=self._headers,
                    timeout=urllib3.Timeout(total=self._timeout),
                    retries=False,
                    preload_content=False,
                )
                with closing(answer):
                    body = _read(answer, deadline)
        except (HTTPError, OSError) as error:
            raise QueryFailed(f"{path}: {error}") from error
        content = _decoded(body)
        if answer.status != 200:
            raise QueryFailed(f"{path}: {_refusal(answer, content)}")
        if content is None:
            raise QueryFailed(f"{path}: its answer is not JSON")
        return content

    def _pool(self) -> Any:
        """A connection pool with the proxies of the environment, as for the API server."""
        configuration = Configuration(host=self.url)
        configuration.verify_ssl = self._verify
        configuration.ssl_ca_cert = self._ca_cert
        return RESTClientObject(configuration).pool_manager


def _base_url(text: str) -> str:
    advice = "Give the base URL of a Prometheus, for example http://prometheus.monitoring:9090."
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(f"alerts.url is not a URL: {error}. {advice}") from error
    if "@" in parts.netloc:
        raise InvalidInput("alerts.url contains a user name. Use alerts.username and alerts.password.")
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise InvalidInput(f'alerts.url "{text}" is not an http or https URL. {advice}')
    if "?" in text or "#" in text:
        raise InvalidInput(f'alerts.url "{text}" has a query or a fragment. {advice}')
    return text.rstrip("/")


def _authorization(options: Mapping[str, Any]) -> dict[str, str]:
    token = (options.get("token") or "").strip()
    if token:
        if not _TOKEN.fullmatch(token):
            # Do not show the token: it is a secret.
            raise InvalidInput("alerts.token contains blanks or other characters that a token can't have.")
        return {"Authorization": f"Bearer {token}"}
    if options.get("username"):
        both = f"{options['username']}:{options.get('password') or ''}"
        return {"Authorization": f"Basic {base64.b64encode(both.encode()).decode('ascii')}"}
    return {}


def _check_certificates(path: str) -> None:
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        raise InvalidInput(f"alerts.ca_cert {path} has no readable certificates: {error}.") from error


def _read(answer: Any, deadline: Deadline) -> bytes:
    """Read the whole answer.

    Raises:
        QueryFailed: The answer is too big, or not complete in time.
    """
    body = bytearray()
    # read1() returns what is there. read() would wait for a full chunk, past the deadline if the server is slow.
    while chunk := answer.read1(_CHUNK, decode_content=False):
        body += chunk
        if len(body) > _LARGEST:
            raise QueryFailed(f"its answer is bigger than {_LARGEST} bytes")
        if deadline.passed:
            raise QueryFailed(f"its answer was not complete after {deadline.seconds} s")
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
    said = content.get("error") if isinstance(content, dict) else None
    return f"{what}: {said}" if said else what
