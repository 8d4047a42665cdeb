# This is a stand-in for AWX, which can not run in a test: how it checks the answers of a survey, from its source.
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launch of a job template: the answers of its survey become extra variables, or AWX refuses them.

The rules come from ``SurveyJobTemplateMixin`` in ``awx/main/models/mixins.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refused(Exception):
    """AWX does not start the job."""


def launch(
    survey_spec: Mapping[str, Any], answers: Mapping[str, Any], template_variables: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the extra variables of the job.

    Raises:
        Refused: An answer does not fit its question, is missing, or there is no question for it.
    """
    questions = {question["variable"]: question for question in survey_spec["spec"]}
    errors = [error for question in questions.values() for error in _errors(question, answers)]
    errors += [f"Variables {name} are not allowed on launch." for name in answers if name not in questions]
    if errors:
        raise Refused("; ".join(errors))
    defaults = {
        name: question["default"]
        for name, question in questions.items()
        if question.get("default") is not None and not _errors(question, {name: question["default"]})
    }
    return {**(template_variables or {}), **defaults, **answers}


def _errors(question: Mapping[str, Any], data: Mapping[str, Any]) -> list[str]:
    name, kind = question["variable"], question["type"]
    if name not in data:
        return [f"'{name}' value missing"] if question["required"] else []
    value = data[name]
    if kind in ("text", "textarea", "password"):
        if not isinstance(value, str):
            return [f"Value {value} for '{name}' expected to be a string."]
        if len(value) < int(question.get("min") or 0):
            return [f"'{name}' value {value} is too small (length is {len(value)} must be at least {question['min']})."]
        if question.get("max") and len(value) > int(question["max"]):
            return [f"'{name}' value {value} is too large (must be no more than {question['max']})."]
    elif kind == "integer":
        if isinstance(value, bool) or not isinstance(value, int):
            return [f"Value {value} for '{name}' expected to be an integer."]
    elif kind == "multiplechoice" and value not in question["choices"]:
        return [f"Value {value} for '{name}' expected to be one of {question['choices']}."]
    return []
