# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The typed values of a role's variables, by its argument spec. Rules only."""

from __future__ import annotations

import datetime
import difflib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

Option = Mapping[str, Any]

_WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "list": "a list",
    "dict": "a dictionary",
    "str": "a string",
}
# These concern the variable as a whole. The rest of an option concerns the value.
_NOT_OF_THE_VALUE = ("aliases", "default", "description", "no_log", "required", "version_added")


class Unfit(ValueError):
    """A value does not fit its option. The message says what is wrong, but does not contain the value."""


@dataclass
class Answer:
    """The settings that a role uses.

    Attributes:
        settings: Typed values by name without the prefix. It omits secrets, and variables that are not set and have no
            default.
        problems: What is wrong, one sentence each; empty if everything fits.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def is_blank(value: Any) -> bool:
    """Return whether a variable counts as not set: a survey sends an empty text for an unanswered question."""
    return value is None or (isinstance(value, str) and not value.strip())


def answer(options: Mapping[str, Option], given: Mapping[str, Any], prefix: str) -> Answer:
    """Type the given values, and add defaults.

    Args:
        options: The argument spec, by the full names of the variables.
        given: Values that are not blank, by the full names of the variables.
        prefix: The prefix of the names.
    """
    found = Answer()
    for name, option in options.items():
        if name in given:
            value = given[name]
        elif option.get("required"):
            found.problems.append(f"{name} is not set. {_first_sentence(option)}".strip())
            continue
        else:
            value = option.get("default")
        if value is None:
            continue
        try:
            fitting = typed(value, option)
        except Unfit as error:
            found.problems.append(f"{name} {error}{_shown(value, option)}")
            continue
        if not option.get("no_log"):
            found.settings[name[len(prefix) :]] = fitting
    return found


def unknown(names: Iterable[str], known: Collection[str], prefix: str) -> list[str]:
    """Return one sentence for each unknown name with the prefix, with the most similar known name."""
    problems = []
    for name in sorted(names):
        if not name.startswith(prefix) or name in known:
            continue
        near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
        problems.append(f"{name} is unknown." + (f" Did you mean {near[0]}?" if near else ""))
    return problems


def typed(value: Any, option: Option) -> Any:
    """Return a value in the type of its option.

    Raises:
        Unfit: It cannot have that type.
    """
    kind = option.get("type", "str")
    value = plain(value)
    if kind == "raw":
        return value
    # A path is often one on the node, so nothing in it is expanded here.
    kind = "str" if kind == "path" else kind
    if isinstance(value, str):
        value = _read(value, kind, option)
    if _is_other(value, kind):
        raise Unfit(f"has to be {_WORDS[kind]}")
    rest = {key: item for key, item in option.items() if key not in _NOT_OF_THE_VALUE}
    try:
        checked = ArgumentSpecValidator({"value": {**rest, "type": kind}}).validate({"value": value})
    except OverflowError:
        # Infinity is no integer.
        raise Unfit(f"has to be {_WORDS[kind]}") from None
    if checked.error_messages:
        raise Unfit(_why(checked.error_messages, kind, option))
    return plain(checked.validated_parameters["value"])


def plain(value: Any) -> Any:
    """Return the value in plain types, without the tags of Ansible's own types."""
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, type(None))):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str.__str__(value) if isinstance(value, str) else str(value)


def _read(text: str, kind: str, option: Option) -> Any:
    """Return the value of a text from the command line or a survey."""
    if kind in ("bool", "int", "float"):
        return text.strip()
    if kind == "dict" or (kind == "list" and _is_structured(text, option)):
        return _parsed(text, kind)
    if kind == "list":
        return [item.strip() for item in text.replace("\n", ",").split(",") if item.strip()]
    return text


def _is_structured(text: str, option: Option) -> bool:
    """Return whether the text of a list is JSON or YAML, and not names separated by commas."""
    return option.get("elements") == "dict" or text.lstrip()[:1] in ("[", "{") or text.lstrip()[:2] == "- "


def _parsed(text: str, kind: str) -> Any:
    try:
        return plain(json.loads(text))
    except ValueError:
        pass
    try:
        return plain(yaml.safe_load(text))
    except (yaml.YAMLError, ValueError):
        # The parser's error contains the text.
        raise Unfit(f"has to be {_WORDS[kind]}, in JSON or YAML") from None


def _is_other(value: Any, kind: str) -> bool:
    """Return whether a value has another type, although the validator would accept it."""
    if kind in ("int", "float"):
        # Python reads "1_000" as a number.
        return isinstance(value, bool) or (isinstance(value, str) and "_" in value)
    if kind == "str":
        return isinstance(value, (dict, list))
    return (kind == "dict" and not isinstance(value, dict)) or (kind == "list" and isinstance(value, (dict, bool)))


def _why(messages: list[str], kind: str, option: Option) -> str:
    if "choices" in option:
        return f"has to be {'some' if kind == 'list' else 'one'} of {', '.join(map(str, option['choices']))}"
    if "options" in option or "elements" in option:
        return f"is invalid: {'; '.join(messages)}"
    return f"has to be {_WORDS[kind]}"


def _shown(value: Any, option: Option) -> str:
    return ". Its value is not shown." if option.get("no_log") else f"; it is {_short(value)}."


def _short(value: Any, most: int = 100) -> str:
    text = repr(plain(value))
    return text if len(text) <= most else f"{text[:most]}..."


def _first_sentence(option: Option) -> str:
    lines = option.get("description") or [""]
    return " ".join(str(lines if isinstance(lines, str) else lines[0]).split())
