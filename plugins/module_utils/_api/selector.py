# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Match labels against label selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import InvalidInput


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether labels match a ``LabelSelector`` object.

    ``None`` matches nothing and an empty selector matches everything, as in policy/v1.

    Raises:
        InvalidInput: The selector has an unknown operator.
    """
    if selector is None:
        return False
    exact = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return exact and all(_expression(item, labels) for item in selector.get("matchExpressions") or [])


def _expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator = expression["key"], expression["operator"]
    values = expression.get("values") or []
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    raise InvalidInput(
        f'The label selector for {key} has the unknown operator "{operator}". Use In, NotIn, Exists or DoesNotExist.'
    )
