# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text in events is never a template, whatever a tenant writes into the cluster."""

from __future__ import annotations

import jinja2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.text_rules import plain

JINJA = jinja2.Environment(keep_trailing_newline=True, autoescape=False)
TEXT = st.text(alphabet="{%#}a -'")


@given(TEXT)
@example("{{ lookup('pipe', 'id') }}")
@example("{{{a}}}")
@example("{%raw%}{{a}}{%endraw%}")
def test_renders_as_itself(text):
    assert JINJA.from_string(plain(text)).render() == plain(text)


@given(TEXT, TEXT.filter(lambda text: not text.startswith(("%", "#"))))
@example("{", "{ a }}")
def test_a_marker_that_joins_from_two_texts_is_removed_too(one, other):
    together = plain(one) + plain(other)

    assert JINJA.from_string(together).render() == together


@given(TEXT)
def test_nothing_but_blanks_is_added_and_once(text):
    assert plain(text).replace(" ", "") == text.replace(" ", "")
    assert plain(plain(text)) == plain(text)


@pytest.mark.parametrize("text", ["Kubelet stopped posting node status.", "{a}", "a }} b", "", "# jinja", "10 %"])
def test_plain_text_stays(text):
    assert plain(text) == text


def test_a_header_of_ansible_that_says_what_begins_a_template():
    assert not plain("#jinja2: variable_start_string:'[['\n[[ lookup('pipe', 'id') ]]").startswith("#jinja2:")


@given(st.text(alphabet="{%#}a\n\x1b\x85"))
@example("{\x1b{ a }}")
@example("\n#jinja2:")
def test_control_characters_are_replaced_and_once(text):
    assert plain(text).isprintable()
    assert plain(plain(text)) == plain(text)
    assert JINJA.from_string(plain(text)).render() == plain(text)


def test_at_any_depth():
    found = plain({"{{a}}": [{"b": "{{b}}"}, ("{%c",)], "n": 1, "none": None, "yes": True})

    assert found == {"{ {a}}": [{"b": "{ {b}}"}, ["{ %c"]], "n": 1, "none": None, "yes": True}
