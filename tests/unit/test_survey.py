# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The surveys that the role awx_objects makes: every answer means what the survey says."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from awx.survey import Refused, launch

from ansible_collections.holdfast.kubernetes.plugins.filter.survey import survey
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _settings

CHECKOUT = Path(__file__).resolve().parents[2]
ROLE = CHECKOUT / "roles/awx_objects"
TEMPLATES = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__awx_objects_job_templates"]
# A text for every type that the type does not allow. Any text is a valid str.
WRONG = {"int": "soon", "bool": "perhaps", "dict": "{", "list of dict": "{"}


@functools.cache
def _specs(file):
    return yaml.safe_load((ROLE / file).read_text())["argument_specs"]


def specs_of(template):
    return _specs(template["specs"])


def options_of(template):
    specs = specs_of(template)
    return {name: option for entry in template["entry_points"] for name, option in specs[entry]["options"].items()}


def survey_of(template):
    return survey(specs_of(template), template["questions"], template["entry_points"], template["prefix"])


QUESTIONS = [
    pytest.param(template, question, id=f"{template['playbook']}-{question['variable']}")
    for template in TEMPLATES
    for question in survey_of(template)["spec"]
]


def read(template: dict[str, Any], question: dict[str, Any], **answers: Any) -> _settings.Answer:
    """What the playbook reads after a launch with this answer to the question; the other questions are not asked."""
    option = options_of(template)[question["variable"]]
    extra = launch({"name": "", "description": "", "spec": [question]}, answers)
    given = {name: value for name, value in extra.items() if not _settings.is_blank(value)}
    return _settings.answer({question["variable"]: option}, given, template["prefix"])


def expected(template, question):
    """The settings if nobody answers: the default of the argument spec."""
    name = question["variable"]
    default = options_of(template)[name].get("default")
    return {} if default is None else {name[len(template["prefix"]) :]: default}


@pytest.mark.parametrize(("template", "question"), QUESTIONS)
class TestQuestion:
    def test_no_answer_and_a_blank_one_mean_the_default(self, template, question):
        name = question["variable"]
        blanks = [{}, {name: ""}] if question["type"] in ("text", "textarea") else [{}]
        for blank in blanks:
            if question["required"]:
                with pytest.raises(Refused, match=name):
                    read(template, question, **blank)
            else:
                assert read(template, question, **blank) == _settings.Answer(expected(template, question))

    def test_the_default_means_itself(self, template, question):
        if "default" not in question:
            assert not any(expected(template, question).values()), "the survey hides a default"
            return
        answer = {question["variable"]: question["default"]}

        assert read(template, question, **answer) == _settings.Answer(expected(template, question))

    def test_every_choice_is_valid(self, template, question):
        for choice in question.get("choices", []):
            found = read(template, question, **{question["variable"]: choice})
            assert found.problems == []
            assert [str(value).lower() for value in found.settings.values()] == [choice.lower()]

    def test_a_wrong_answer_is_refused_by_name(self, template, question):
        name, option = question["variable"], options_of(template)[question["variable"]]
        kind = "list of dict" if option.get("elements") == "dict" else option.get("type", "str")
        wrong = "perhaps" if option.get("choices") else WRONG.get(kind)
        if wrong is None:
            found = read(template, question, **{name: "any text"})
            assert found.problems == []
            assert found.settings[name[len(template["prefix"]) :]] in ("any text", ["any text"])
            return
        if question["type"] not in ("text", "textarea"):
            with pytest.raises(Refused, match=name):
                read(template, question, **{name: wrong})
            return
        (problem,) = read(template, question, **{name: wrong}).problems
        assert problem.startswith(name)

    def test_says_what_the_argument_spec_says(self, template, question):
        option = options_of(template)[question["variable"]]

        assert question["required"] is bool(option.get("required"))
        assert question["question_description"]
        assert not any(mark in question["question_description"] for mark in ("O(", "V(", "C(", "M(", "P("))
        assert len(question["question_description"]) > len(question["question_name"])


def test_there_is_a_job_template_for_every_playbook():
    playbooks = {path.stem for path in (CHECKOUT / "playbooks").glob("*.yml")}

    assert {template["playbook"] for template in TEMPLATES} == playbooks - {"awx_objects"}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template["playbook"])
def test_no_survey_asks_for_secrets_and_each_required_variable_is_asked_for(template):
    options, asked = options_of(template), {question["variable"] for question in survey_of(template)["spec"]}

    assert not {name for name in asked if options[name].get("no_log")}
    assert {name for name, option in options.items() if option.get("required")} <= asked


OPTIONS = {
    "demo_secret": {"type": "str", "no_log": True, "default": "x", "description": ["A secret."]},
    "demo_points": {
        "type": "list",
        "elements": "str",
        "choices": ["a", "b"],
        "default": ["a", "b"],
        "description": "P.",
    },
    "demo_windows": {"type": "list", "elements": "dict", "default": [{"start": "22:00"}], "description": ["W."]},
    "demo_share": {"type": "float", "default": 0.5, "description": ["Like O(demo_points=a) and P(a.b.c#role)."]},
}


def asked(name):
    (question,) = survey({"main": {"options": OPTIONS}}, [name], ["main"], "demo_")["spec"]
    return question


def test_a_secret_is_a_password_without_a_default():
    assert asked("secret")["type"] == "password"
    assert "default" not in asked("secret")


def test_a_list_is_a_text_that_names_its_choices():
    assert asked("points")["type"] == "text"
    assert asked("points")["default"] == "a, b"
    assert asked("points")["question_description"] == "P. Some of a, b, separated by commas."


def test_a_list_of_dictionaries_is_json():
    assert asked("windows")["type"] == "textarea"
    assert asked("windows")["default"] == '[{"start": "22:00"}]'


def test_a_number_stays_a_number_and_markup_goes():
    assert (asked("share")["type"], asked("share")["default"]) == ("float", 0.5)
    assert asked("share")["question_description"] == "Like demo_points=a and a.b.c."


@pytest.mark.parametrize(
    ("names", "entry_points", "message"),
    [(["soak"], ["main"], "There is no variable demo_soak"), ([], ["plan"], "There is no entry point plan")],
)
def test_what_does_not_exist_is_named(names, entry_points, message):
    with pytest.raises(AnsibleFilterError, match=message):
        survey({"main": {"options": OPTIONS}}, names, entry_points, "demo_")
