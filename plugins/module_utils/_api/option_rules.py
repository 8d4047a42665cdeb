# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the values of options that Ansible's argument specs can't express."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import InvalidInput

# 100 years in seconds, rounded. Python can wait for three times as long.
LARGEST = 3_000_000_000


def check_numbers(params: Mapping[str, Any]) -> None:
    """Refuse numbers that no operation can work with, also in ``settings``, the variables of a role.

    Raises:
        InvalidInput: A timeout is negative, or a number is too large for a time.
    """
    settings = params.get("settings")
    for name, value in {**(settings if isinstance(settings, Mapping) else {}), **params}.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if value < 0 and name.endswith("timeout"):
            raise InvalidInput(f"{name} must not be negative, it is {value}.", option=name)
        if value > LARGEST:
            raise InvalidInput(f"{name} must be at most {LARGEST} (about 100 years), it is {value}.", option=name)


def as_texts(values: Mapping[str, Any], what: str) -> dict[str, str]:
    """Labels or annotations as texts; a YAML ``true`` means the text that kubectl would write.

    Args:
        what: The name of the option, for the message.

    Raises:
        InvalidInput: A value is a list or a dictionary.
    """
    for key, value in values.items():
        if isinstance(value, (dict, list)):
            raise InvalidInput(f"{what} must have a text as the value of {key}.")
    return {key: _as_text(value) for key, value in values.items()}


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
