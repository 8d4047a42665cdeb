# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label selectors against a naive model of the API's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.selector import matches

KEYS = st.sampled_from(["app", "tier", "zone"])
VALUES = st.sampled_from(["", "a", "b", "c"])
LABELS = st.dictionaries(KEYS, VALUES)
EXPRESSIONS = st.one_of(
    st.fixed_dictionaries(
        {"key": KEYS, "operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(VALUES, min_size=1, max_size=3)}
    ),
    st.fixed_dictionaries(
        {"key": KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}, optional={"values": st.none()}
    ),
)
SELECTORS = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.none() | st.dictionaries(KEYS, VALUES, max_size=2),
        "matchExpressions": st.none() | st.lists(EXPRESSIONS, max_size=3),
    },
)


def naive(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Every requirement is a set of allowed values, and whether absence is allowed."""
    requirements = [
        {"key": key, "operator": "In", "values": [value]} for key, value in (selector.get("matchLabels") or {}).items()
    ] + list(selector.get("matchExpressions") or [])
    for requirement in requirements:
        present = requirement["key"] in labels
        value = labels.get(requirement["key"])
        fits = {
            "In": lambda present=present, value=value, wanted=requirement: present and value in wanted["values"],
            "NotIn": lambda present=present, value=value, wanted=requirement: (
                not present or value not in wanted["values"]
            ),
            "Exists": lambda present=present: present,
            "DoesNotExist": lambda present=present: not present,
        }[requirement["operator"]]()
        if not fits:
            return False
    return True


@given(SELECTORS, LABELS)
def test_like_the_model(selector, labels):
    assert matches(selector, labels) == naive(selector, labels)


@given(LABELS)
def test_none_matches_nothing_and_empty_everything(labels):
    assert not matches(None, labels)
    assert matches({}, labels)


def test_an_empty_value_is_not_an_absent_label():
    assert not matches({"matchLabels": {"app": ""}}, {})
    assert matches({"matchLabels": {"app": ""}}, {"app": ""})


def test_unknown_operator():
    with pytest.raises(InvalidInput, match="Gt"):
        matches({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}, {})
