# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How metal3 reads its annotations on a BareMetalHost. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

REBOOT = "reboot.metal3.io"
PAUSED = "baremetalhost.metal3.io/paused"
DETACHED = "baremetalhost.metal3.io/detached"
SOFT = "soft"
HARD = "hard"


@dataclass(frozen=True)
class Arguments:
    """The value of one reboot annotation, as far as it can be read."""

    mode: str = SOFT
    force: bool = False
    valid: bool = True


@dataclass(frozen=True)
class Request:
    """The request that all reboot annotations make together."""

    reboot: bool
    mode: str
    invalid: tuple[str, ...]


def is_reboot(key: str) -> bool:
    return key == REBOOT or key.startswith(f"{REBOOT}/")


def parse(value: str) -> Arguments:
    """Parse as Go's decoder fills a struct: skip values of the wrong type, and read the rest."""
    if not value:
        return Arguments()
    try:
        pairs = json.loads(value, object_pairs_hook=_Pairs, parse_constant=_refuse)
    except ValueError:
        return Arguments(valid=False)
    if pairs is None:
        return Arguments()
    if not isinstance(pairs, _Pairs):
        return Arguments(valid=False)
    found = Arguments()
    for key, item in pairs.items:
        # Go's decoder ignores the case of keys, and null changes nothing.
        known = {"mode": str, "force": bool}.get(key.lower())
        if known is None or item is None:
            continue
        found = replace(found, **{key.lower(): item} if isinstance(item, known) else {"valid": False})
    return found


def request(annotations: Mapping[str, str], *, expect_force: bool) -> Request:
    """A hard request overrides the others; where force is expected, only forced requests count."""
    invalid: list[str] = []
    asked: list[Arguments] = []
    for key, value in annotations.items():
        if is_reboot(key):
            arguments = parse(value)
            if not arguments.valid:
                invalid.append(value)
            if arguments.force or not expect_force:
                asked.append(arguments)
    mode = HARD if any(arguments.mode == HARD for arguments in asked) else SOFT
    return Request(bool(asked), mode, tuple(invalid))


def complaints(annotations: Mapping[str, str]) -> list[str]:
    """The objections of the validating webhook, in clusters that have it."""
    found = []
    for key, value in annotations.items():
        if not is_reboot(key):
            continue
        arguments = parse(value)
        if not arguments.valid:
            found.append(f"failed to unmarshal the data from the {REBOOT} annotation: {value}")
        elif arguments.mode not in (HARD, SOFT, ""):
            found.append(f'invalid mode in the {REBOOT} annotation, allowed are "hard", "soft" or ""')
    return found


class _Pairs:
    """A JSON object that keeps duplicate keys: the last one counts, whatever its case."""

    def __init__(self, items: list[tuple[str, Any]]) -> None:
        self.items = items


def _refuse(constant: str) -> None:
    raise ValueError(constant)
