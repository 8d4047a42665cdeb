# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine at its BMC, over Redfish."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from .._api.connection import IMPORT_ERROR
from .._api.errors import InvalidInput
from . import redfish_rules as rules
from .evidence_rules import check_uri
from .redfish_rules import BmcFailure, System

if not IMPORT_ERROR:
    import urllib3
    from urllib3.exceptions import HTTPError

# Seconds to connect to the BMC, and to wait for its answer.
TIMEOUT = (5.0, 20.0)
_ADVICE = "Check the URL, the user and the password, and whether this machine reaches the BMC."


class Bmc:
    """One ComputerSystem.

    Args:
        options: ``uri`` of the system, ``username``, ``password``, ``validate_certs``, ``ca_cert``, ``insecure_http``.

    Raises:
        InvalidInput: The URI is invalid, has credentials in it, or is not https; or user or password are no UTF-8.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.uri = str(options["uri"])
        check_uri(self.uri, insecure_http=bool(options.get("insecure_http")))
        self._pool = urllib3.PoolManager(
            cert_reqs="CERT_NONE" if options.get("validate_certs") is False else "CERT_REQUIRED",
            ca_certs=options.get("ca_cert"),
            timeout=urllib3.Timeout(connect=TIMEOUT[0], read=TIMEOUT[1]),
        )
        self._headers = {"Accept": "application/json"}
        if options.get("username"):
            self._headers["Authorization"] = _basic(str(options["username"]), str(options.get("password") or ""))

    def read(self) -> System:
        """Return the present state of the system.

        Raises:
            BmcFailure: The BMC does not give it.
        """
        retries = urllib3.Retry(total=2, redirect=0, backoff_factor=0.5, raise_on_redirect=False)
        status, data = self._send("GET", self.uri, "tell its power state", retries=retries)
        try:
            content = json.loads(data) if status == 200 else None
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise BmcFailure(f"{self.uri} did not report its power state: HTTP status {status}. {_ADVICE}")
        return rules.read(self.uri, content)

    def reset(self, system: System, wanted: str) -> None:
        """Ask the system once to change its power: a repeated request may arrive too late.

        Raises:
            BmcFailure: The BMC refused it, or its effect is unknown.
        """
        url, kind = rules.reset_url(system), rules.reset_type(system, wanted)
        body = json.dumps({"ResetType": kind})
        headers = {"Content-Type": "application/json"}
        status, data = self._send("POST", url, f"take {kind}", retries=False, body=body, headers=headers)
        if status >= 300:
            said = data.decode("utf-8", "replace").strip()[:500]
            raise BmcFailure(f"{url} refused {kind}: HTTP status {status}. {_ADVICE}", output=said)

    def _send(
        self, method: str, url: str, what: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> tuple[int, bytes]:
        try:
            answer = self._pool.request(
                method, url, headers={**self._headers, **(headers or {})}, redirect=False, **more
            )
        except (HTTPError, OSError) as error:
            raise BmcFailure(f"{url} did not {what}: {error}. Check whether this machine reaches the BMC.") from error
        return int(answer.status), bytes(answer.data)


def _basic(username: str, password: str) -> str:
    """Return the header for a user and a password, in UTF-8 as RFC 7617 says: urllib3 would take Latin-1.

    Raises:
        InvalidInput: They can't be encoded. Neither the message nor a cause has a character of them.
    """
    try:
        # Ansible keeps bytes that are no UTF-8 as surrogates.
        given = f"{username}:{password}".encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        given = None
    if given is None:
        raise InvalidInput(
            "The user or the password of the BMC has a character that does not exist in UTF-8. Nothing was sent. "
            "Give both as text in UTF-8."
        )
    return f"Basic {base64.b64encode(given).decode()}"
