# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a text of the command line or of a survey means."""

from __future__ import annotations

import datetime
import json
from typing import ClassVar

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _settings
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._settings import Unfit, typed

BOOL = {"type": "bool"}
INT = {"type": "int"}
NAMES = {"type": "list", "elements": "str"}
DICT = {"type": "dict"}
WINDOWS = {"type": "list", "elements": "dict"}
SPACES = st.text(alphabet=" \t\n", max_size=3)
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
NAME = st.text(alphabet=LETTERS + "-.", min_size=1, max_size=12).map(lambda text: f"n{text}")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


class TestBoolean:
    @given(
        SPACES,
        st.sampled_from(["false", "no", "off", "0", "n", "f"]),
        st.sampled_from([str, str.upper, str.title]),
        SPACES,
    )
    def test_the_words_for_false_are_false(self, before, word, form, after):
        assert typed(f"{before}{form(word)}{after}", BOOL) is False

    @given(
        SPACES,
        st.sampled_from(["true", "yes", "on", "1", "y", "t"]),
        st.sampled_from([str, str.upper, str.title]),
        SPACES,
    )
    def test_the_words_for_true_are_true(self, before, word, form, after):
        assert typed(f"{before}{form(word)}{after}", BOOL) is True

    @given(st.booleans())
    def test_a_boolean_stays_itself_as_text_too(self, value):
        assert typed(value, BOOL) is value
        assert typed(str(value), BOOL) is value
        assert typed(json.dumps(value), BOOL) is value
        assert typed(yaml.safe_dump(value).split("\n")[0], BOOL) is value

    @pytest.mark.parametrize("value", ["flase", "2", 2, "nein", [True], {"a": 1}])
    def test_an_invalid_boolean_is_refused(self, value):
        with pytest.raises(Unfit, match="has to be true or false"):
            typed(value, BOOL)


class TestNumber:
    @given(st.integers(-(10**12), 10**12), SPACES, SPACES)
    def test_a_number_and_its_text_are_the_same(self, value, before, after):
        assert typed(value, INT) == value
        assert typed(f"{before}{value}{after}", INT) == value

    @pytest.mark.parametrize("value", ["many", "1.5", "10%", "1_000", True, False, [1], "0x10", "inf", "-Infinity"])
    def test_an_invalid_whole_number_is_refused(self, value):
        with pytest.raises(Unfit, match="has to be a whole number"):
            typed(value, INT)


class TestList:
    @given(st.lists(NAME, min_size=1, max_size=5))
    def test_a_list_is_the_same_in_every_form(self, names):
        forms = [names, ",".join(names), ", ".join(names), "\n".join(names), json.dumps(names), yaml.safe_dump(names)]
        forms.append(yaml.safe_dump(names, default_flow_style=True))

        assert [typed(form, NAMES) for form in forms] == [names] * len(forms)

    def test_an_empty_list_can_be_given(self):
        assert typed("[]", NAMES) == typed([], NAMES) == []

    def test_numbers_become_texts(self):
        assert typed([1, "a"], NAMES) == ["1", "a"]
        assert typed(3, NAMES) == ["3"]

    @pytest.mark.parametrize("value", ["[a", {"a": 1}, True, "[{"])
    def test_an_invalid_list_is_refused(self, value):
        with pytest.raises(Unfit, match="has to be a list"):
            typed(value, NAMES)

    def test_windows_as_json_and_as_yaml(self):
        windows = [{"days": ["sat"], "start": "22:00", "end": "04:00"}]

        assert typed(json.dumps(windows), WINDOWS) == windows
        assert typed(yaml.safe_dump(windows), WINDOWS) == windows

    @pytest.mark.parametrize("value", ["22:00", "sat,sun", ["a"], '["a"]'])
    def test_a_list_of_texts_is_not_a_list_of_dictionaries(self, value):
        with pytest.raises(Unfit):
            typed(value, WINDOWS)

    def test_choices_are_checked_for_each_element(self):
        points = {**NAMES, "choices": ["pre-drain", "pre-terminate"]}

        assert typed("pre-drain", points) == ["pre-drain"]
        with pytest.raises(Unfit, match="has to be some of pre-drain, pre-terminate"):
            typed("pre-drain,post", points)

    def test_numbers_in_dictionaries_get_their_types(self):
        groups = {**WINDOWS, "options": {"priority": {"type": "int", "required": True}, "seconds": {"type": "int"}}}

        assert typed('[{"priority": "5", "seconds": "60"}]', groups) == [{"priority": 5, "seconds": 60}]
        with pytest.raises(Unfit, match="priority"):
            typed('[{"seconds": "60"}]', groups)
        with pytest.raises(Unfit, match="prioriti"):
            typed('[{"priority": 1, "prioriti": 2}]', groups)


class TestDictionary:
    @given(st.dictionaries(st.text(min_size=1, max_size=6), PLAIN, max_size=4))
    def test_a_dictionary_is_the_same_as_json(self, value):
        assert typed(json.dumps(value), DICT) == value
        assert typed(value, DICT) == value

    @given(st.dictionaries(NAME, NAME, min_size=1, max_size=4))
    def test_a_dictionary_is_the_same_as_yaml(self, value):
        assert typed(yaml.safe_dump(value), DICT) == value

    @pytest.mark.parametrize("value", ["a=b", "[1]", [1], "{", "x: [", 5])
    def test_an_invalid_dictionary_is_refused(self, value):
        with pytest.raises(Unfit, match="has to be a dictionary"):
            typed(value, DICT)


class TestText:
    def test_a_number_becomes_a_text(self):
        assert typed(1, {"type": "str"}) == "1"
        assert typed("10%", {}) == "10%"

    def test_a_path_is_not_expanded_on_the_controller(self):
        assert typed("~/x/$HOME", {"type": "path"}) == "~/x/$HOME"

    def test_a_time_of_yaml_stays_one_that_others_read(self):
        at = datetime.datetime(2026, 11, 21, 9, 0, tzinfo=datetime.timezone.utc)

        assert typed(at, {"type": "str"}) == "2026-11-21T09:00:00+00:00"

    def test_choices_are_named(self):
        with pytest.raises(Unfit, match="has to be one of required, always"):
            typed("allways", {"type": "str", "choices": ["required", "always"]})

    @pytest.mark.parametrize("value", [["a"], {"a": "b"}])
    def test_a_list_is_not_a_text(self, value):
        with pytest.raises(Unfit, match="has to be a string"):
            typed(value, {"type": "str"})


class TestAnswer:
    SPEC: ClassVar[dict] = {
        "r_force": {"type": "bool", "default": False},
        "r_wait": {"type": "int", "default": 60},
        "r_grace": {"type": "int"},
        "r_nodes": {"type": "list", "elements": "str", "default": []},
        "r_password": {"type": "str", "default": "", "no_log": True},
        "r_auth": {"type": "dict", "default": {}, "no_log": True},
    }

    def test_defaults_fill_what_is_not_given_and_the_rest_is_left_out(self):
        found = _settings.answer(self.SPEC, {}, "r_")

        assert found.settings == {"force": False, "wait": 60, "nodes": []}
        assert found.problems == []

    def test_zero_is_a_value(self):
        assert _settings.answer(self.SPEC, {"r_grace": 0, "r_wait": "0"}, "r_").settings["grace"] == 0

    def test_secrets_are_neither_in_the_answer_nor_in_a_problem(self):
        given = {"r_password": ["hunter2"], "r_auth": '{"password": "hunter2"', "r_force": "true"}
        found = _settings.answer(self.SPEC, given, "r_")

        assert len(found.problems) == 2
        assert "hunter2" not in repr(found)
        assert all("Its value is not shown." in problem for problem in found.problems)

    def test_every_problem_is_reported_at_once_and_by_name(self):
        found = _settings.answer(
            {**self.SPEC, "r_name": {"required": True, "description": ["Its name."]}}, {"r_wait": "x"}, "r_"
        )

        assert found.problems == [
            "r_wait has to be a whole number; it is 'x'.",
            "r_name is not set. Its name.",
        ]

    @given(st.text(alphabet=" \t\n\r", max_size=4) | st.none())
    def test_blanks_count_as_not_set(self, value):
        assert _settings.is_blank(value)

    @pytest.mark.parametrize("value", [0, False, [], {}, "0", "false"])
    def test_only_blanks_count_as_not_set(self, value):
        assert not _settings.is_blank(value)


class TestUnknown:
    KNOWN: ClassVar[list] = ["r_override_holds", "r_wait"]

    def test_the_nearest_name_is_reported(self):
        assert _settings.unknown(["r_overide_holds"], self.KNOWN, "r_") == [
            "r_overide_holds is unknown. Did you mean r_override_holds?"
        ]

    def test_a_name_without_a_near_one_is_refused_too(self):
        assert _settings.unknown(["r_zzzzzzzz"], self.KNOWN, "r_") == ["r_zzzzzzzz is unknown."]

    def test_names_of_others_are_left_alone(self):
        assert _settings.unknown(["r_wait", "other_wait", "rwait", "__r_internal"], self.KNOWN, "r_") == []
