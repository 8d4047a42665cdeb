# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The survey of an AWX job template, from the argument spec of a role. Rules only.

AWX itself checks the answers of integers and of multiple choices. All other answers are texts; ``role_settings`` reads
and checks them, so a list is a question for a text with commas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

Option = Mapping[str, Any]

# Ansible's markup, for example O(name=value), M(module) or P(name#role), and the text in it.
_MARKUP = re.compile(r"\b(?:RV|[BCEIMOPUV])\(([^()]*?)(?:#\w+)?\)")
_INTEGER, _FLOAT, _CHOICE, _LINES, _TEXT, _SECRET = "integer", "float", "multiplechoice", "textarea", "text", "password"
_BOOLEANS = ["true", "false"]


class UnknownQuestion(ValueError):
    """A question has no option. The message names it."""


def survey(options: Mapping[str, Option], questions: Iterable[str], prefix: str = "") -> dict[str, Any]:
    """Return the ``survey_spec`` of a job template.

    Args:
        options: The argument spec, by the full names of the variables.
        questions: Names of the variables to ask for, in this order, without the prefix.
        prefix: The prefix of the names.

    Raises:
        UnknownQuestion: There is no such option.
    """
    names = [f"{prefix}{name}" for name in questions]
    unknown = [name for name in names if name not in options]
    if unknown:
        raise UnknownQuestion(f"There is no variable {', '.join(unknown)}, so a survey can't ask for it.")
    return {"name": "", "description": "", "spec": [question(name, options[name], prefix) for name in names]}


def question(name: str, option: Option, prefix: str = "") -> dict[str, Any]:
    """Return the question for one variable, with the option's description, type, choices and default."""
    kind = _kind(option)
    asked: dict[str, Any] = {
        "question_name": name[len(prefix) :].replace("_", " ").capitalize(),
        "question_description": _description(option),
        "variable": name,
        "required": bool(option.get("required")),
        "type": kind,
    }
    if asked["required"] and kind in (_TEXT, _LINES, _SECRET):
        # AWX accepts a blank text for a required question without this.
        asked["min"] = 1
    if kind == _CHOICE:
        asked["choices"] = _BOOLEANS if option.get("type") == "bool" else [str(choice) for choice in option["choices"]]
    default = option.get("default")
    # Without a default AWX passes no variable for a question that nobody answers.
    if default not in (None, "", [], {}) and kind != _SECRET:
        asked["default"] = default if kind in (_INTEGER, _FLOAT) else _text(default)
    return asked


def _kind(option: Option) -> str:
    """The type of the question."""
    kind = option.get("type", "str")
    if option.get("no_log"):
        return _SECRET
    if kind == "bool" or (kind == "str" and option.get("choices")):
        return _CHOICE
    if kind == "dict" or option.get("elements") == "dict":
        return _LINES
    return {"int": _INTEGER, "float": _FLOAT}.get(kind, _TEXT)


def _description(option: Option) -> str:
    described = option.get("description") or []
    text = " ".join(" ".join([described] if isinstance(described, str) else described).split())
    text = _MARKUP.sub(r"\1", text)
    if _kind(option) == _LINES:
        return f"{text} In JSON or YAML.".strip()
    if option.get("type") == "list":
        some = f"Some of {', '.join(map(str, option['choices']))}, separated" if option.get("choices") else "Separated"
        return f"{text} {some} by commas.".strip()
    return text


def _text(value: Any) -> str:
    """The text of a default, as ``role_settings`` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and not any(isinstance(item, (dict, list)) for item in value):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)
