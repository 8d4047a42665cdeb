# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power state of one machine, as its BMC tells over Redfish."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._connection import IMPORT_ERROR
from ._errors import HoldfastError
from ._evidence import check_uri

if not IMPORT_ERROR:
    import urllib3
    from urllib3.exceptions import HTTPError

_TIMEOUT = (5.0, 20.0)
OFF = "Off"


class BmcFailure(HoldfastError):
    """The BMC did not answer, or not with what it was asked for."""

    kind = "bmc"


def power(options: Mapping[str, Any]) -> dict[str, Any]:
    """PowerState and UUID of a ComputerSystem.

    Args:
        options: ``uri`` of the system, ``username``, ``password``, ``validate_certs``, ``ca_cert``.

    Raises:
        InvalidInput: The uri is none, or has credentials in it.
        BmcFailure: It does not tell.
    """
    uri = str(options["uri"])
    check_uri(uri)
    system = _get(uri, options)
    state = system.get("PowerState")
    if not isinstance(state, str):
        raise BmcFailure(f"{uri} has no PowerState. Give the URL of the system: https://BMC/redfish/v1/Systems/ID.")
    return {"power_state": state, "uuid": str(system.get("UUID") or "")}


def _get(uri: str, options: Mapping[str, Any]) -> dict[str, Any]:
    verify = options.get("validate_certs")
    pool = urllib3.PoolManager(
        cert_reqs="CERT_NONE" if verify is False else "CERT_REQUIRED",
        ca_certs=options.get("ca_cert"),
        timeout=urllib3.Timeout(connect=_TIMEOUT[0], read=_TIMEOUT[1]),
        retries=urllib3.Retry(total=2, redirect=0, backoff_factor=0.5, raise_on_redirect=False),
    )
    headers = {"Accept": "application/json"}
    if options.get("username"):
        headers |= urllib3.make_headers(basic_auth=f"{options['username']}:{options.get('password') or ''}")
    try:
        answer = pool.request("GET", uri, headers=headers, redirect=False)
        content = json.loads(answer.data) if answer.status == 200 else None
    except (HTTPError, OSError, ValueError) as error:
        raise BmcFailure(
            f"{uri} did not tell its power state: {error}. Check that the BMC is reached from here."
        ) from error
    if not isinstance(content, dict):
        raise BmcFailure(
            f"{uri} did not tell its power state: HTTP status {answer.status}. Check the URL, the user and "
            "the password."
        )
    return content
