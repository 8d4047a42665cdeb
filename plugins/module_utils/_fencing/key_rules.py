# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about metal3's reboot annotations: their names, their values, and how the controller reads them.

Sources: internal/controller/metal3.io/baremetalhost_controller.go and internal/webhooks of the baremetal-operator
(2026).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._api.errors import InvalidInput

BASE = "reboot.metal3.io"
SOFT, HARD = "soft", "hard"

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class Request:
    """One reboot annotation as the controller reads it.

    Attributes:
        key: The name after the slash; empty for the annotation without one.
        value: The annotation's value, unchanged.
        mode: How the controller reads it.
        force: Whether it also counts on a host that is not provisioned.
        valid: Whether metal3's webhook accepts it.
    """

    key: str
    value: str
    mode: str
    force: bool
    valid: bool

    @property
    def annotation(self) -> str:
        return annotation(self.key)

    def to_data(self) -> dict[str, Any]:
        return {"annotation": self.annotation, **vars(self)}


def annotation(key: str) -> str:
    """Return the name of a key's annotation; of the one that asks for a single reboot if the key is empty."""
    return f"{BASE}/{key}" if key else BASE


def check_key(key: str) -> None:
    """Refuse a key that cannot be the name part of an annotation.

    Raises:
        InvalidInput: It is longer than 63 characters, or has others than letters, digits, ``-``, ``_`` and ``.``.
    """
    if not _NAME.fullmatch(key):
        raise InvalidInput(
            f'key "{key}" can\'t be part of the annotation {BASE}/KEY: give 1 to 63 letters, digits, "-", "_" and ".", '
            "a letter or digit at both ends, and leave the key out for a single reboot.",
            key=key,
        )


def value_of(mode: str) -> str:
    """Return the value that we write."""
    return json.dumps({"mode": mode})


def requests_of(annotations: Mapping[str, str]) -> list[Request]:
    """Return all reboot annotations of a host, by key."""
    keys = (
        (name[len(BASE) + 1 :], value)
        for name, value in annotations.items()
        if name == BASE or name.startswith(f"{BASE}/")
    )
    return sorted((_read(key, value) for key, value in keys), key=lambda request: request.key)


def effective_mode(requests: Iterable[Request], error_count: int = 0) -> str:
    """Return how the host is switched off: one hard request makes it hard, and so does an earlier error."""
    return HARD if error_count > 0 or any(request.mode == HARD for request in requests) else SOFT


def _read(key: str, text: str) -> Request:
    if text == "":
        return Request(key, text, SOFT, force=False, valid=True)
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        # The controller reports this in an event, and still reboots the host.
        return Request(key, text, SOFT, force=False, valid=False)
    if content is None:
        return Request(key, text, SOFT, force=False, valid=True)
    if not isinstance(content, dict):
        return Request(key, text, SOFT, force=False, valid=False)
    # Go matches field names in any case, and keeps the fields that it read before or after one of the wrong type.
    fields = [(name.lower(), value) for name, value in content.items()]
    modes = [value for name, value in fields if name == "mode" and value is not None]
    forces = [value for name, value in fields if name == "force" and value is not None]
    asked = [value for value in modes if isinstance(value, str)]
    wanted = [value for value in forces if isinstance(value, bool)]
    mode = asked[-1] if asked else ""
    well_typed = len(asked) == len(modes) and len(wanted) == len(forces)
    return Request(
        key,
        text,
        mode=HARD if mode == HARD else SOFT,
        force=bool(wanted and wanted[-1]),
        valid=well_typed and mode in (HARD, SOFT, ""),
    )


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
