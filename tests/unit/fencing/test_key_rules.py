# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reboot annotations as metal3 reads them, from any writer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import key_rules as rules


def read(text):
    (request,) = rules.requests_of({f"{rules.BASE}/a": text})
    return request


@pytest.mark.parametrize(
    ("text", "mode", "valid"),
    [
        ("", "soft", True),
        ('{"mode": "hard"}', "hard", True),
        ('{"mode":"soft"}', "soft", True),
        ('{"mode": ""}', "soft", True),
        ("{}", "soft", True),
        ("null", "soft", True),
        ('{"mode": "hard", "force": false}', "hard", True),
        ('{"mode": "hard", "by": "another"}', "hard", True),
        ('{"mode": null}', "soft", True),
        ('{"Mode": "hard"}', "hard", True),
        ('{"mode": "HARD"}', "soft", False),
        ('{"mode": "cold"}', "soft", False),
        ('{"mode": 1}', "soft", False),
        ('{"mode": "hard", "force": "yes"}', "hard", False),
        ("hard", "soft", False),
        ("'{}'", "soft", False),
        ('{"mode": "hard"', "soft", False),
        ('{"mode": NaN}', "soft", False),
        ('{"mode": "hard", "by": NaN}', "soft", False),
        ('{"mode": "hard", "Mode": "soft"}', "soft", True),
        ('"hard"', "soft", False),
        ('["hard"]', "soft", False),
        ("true", "soft", False),
    ],
)
def test_what_metal3_makes_of_a_value(text, mode, valid):
    found = read(text)

    assert (found.mode, found.valid, found.value) == (mode, valid, text)
    assert (found.key, found.force) == ("a", False)


@given(st.text())
def test_no_value_breaks_anything(text):
    assert read(text).mode in (rules.SOFT, rules.HARD)


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda more: st.dictionaries(st.text(), more))
)
def test_any_json_is_read(content):
    assert read(json.dumps(content)).mode in (rules.SOFT, rules.HARD)


@pytest.mark.parametrize("mode", [rules.SOFT, rules.HARD])
def test_what_we_write_is_strict(mode):
    found = read(rules.value_of(mode))

    assert json.loads(rules.value_of(mode)) == {"mode": mode}
    assert (found.mode, found.valid, found.force) == (mode, True, False)


def test_force_is_read():
    assert read('{"force": true}').force
    assert read('{"force": null}').valid


def test_which_annotations_they_are():
    others = {"reboot.metal3.ioo": "", "x.reboot.metal3.io": "", "reboot.metal3.io.x/y": "", "metal3.io/reboot": ""}
    found = rules.requests_of({**others, f"{rules.BASE}/b": "", f"{rules.BASE}/a": "", rules.BASE: ""})

    assert [request.key for request in found] == ["", "a", "b"]
    assert [request.annotation for request in found] == [rules.BASE, f"{rules.BASE}/a", f"{rules.BASE}/b"]


@given(st.lists(st.sampled_from(["", '{"mode": "soft"}', '{"mode": "hard"}', "hard"])), st.integers(0, 2))
def test_hard_wins_and_so_does_an_error_before(values, errors):
    requests = rules.requests_of({f"{rules.BASE}/{number}": value for number, value in enumerate(values)})
    hard = errors > 0 or '{"mode": "hard"}' in values

    assert rules.effective_mode(requests, errors) == (rules.HARD if hard else rules.SOFT)
    assert rules.effective_mode(requests) == rules.effective_mode(requests, 0)


@pytest.mark.parametrize("key", ["a", "A9", "holdfast", "metal3-remediation-1", "a.b_c-d", "x" * 63])
def test_keys(key):
    rules.check_key(key)


@pytest.mark.parametrize("key", ["", "-a", "a-", "a/b", "reboot.metal3.io/a", "a b", "ä", "x" * 64, "a\n"])
def test_invalid_keys(key):
    with pytest.raises(InvalidInput, match="63"):
        rules.check_key(key)
