# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many nodes of a group may be unavailable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import (
    Policy,
    amount,
    check_amount,
)


class TestCheckAmount:
    @pytest.mark.parametrize("value", ["0", "1", "250", "0%", "10%", "100%"])
    def test_keeps_what_is_canonical(self, value):
        assert check_amount(value, "max_unavailable") == value

    @pytest.mark.parametrize(
        ("value", "canonical"), [(3, "3"), (" 3 ", "3"), ("03", "3"), (" 10% ", "10%"), ("010%", "10%"), ("00", "0")]
    )
    def test_makes_the_same_of_the_same(self, value, canonical):
        assert check_amount(value, "max_unavailable") == canonical

    @pytest.mark.parametrize("value", ["", "-1", "1.5", "101%", "%", "10 %", "ten", "10%%", "²", "1e3", None, True])
    def test_names_the_option_and_the_value(self, value):
        with pytest.raises(InvalidInput, match="max_unavailable must be a whole number or a share") as caught:
            check_amount(value, "max_unavailable")

        assert f'"{value}"' in caught.value.message
        assert caught.value.fields == {"option": "max_unavailable"}

    @given(st.text(max_size=6))
    def test_what_passes_can_be_counted_with(self, text):
        try:
            canonical = check_amount(text, "max_unavailable")
        except InvalidInput:
            return

        assert check_amount(canonical, "max_unavailable") == canonical
        assert amount(canonical, 10) >= 0


class TestAmount:
    @pytest.mark.parametrize(
        ("value", "total", "allowed"),
        [
            ("0", 10, 0),
            ("3", 10, 3),
            ("3", 2, 3),
            ("0%", 1000, 0),
            ("10%", 10, 1),
            ("10%", 19, 1),
            ("10%", 20, 2),
            ("34%", 3, 1),
            ("67%", 3, 2),
            ("99%", 3, 2),
            ("100%", 3, 3),
            ("10%", 3, 1),
            ("1%", 0, 1),
        ],
    )
    def test_examples(self, value, total, allowed):
        assert amount(value, total) == allowed

    @given(percent=st.integers(1, 100), total=st.integers(0, 10_000))
    def test_a_share_is_rounded_down_but_at_least_one(self, percent, total):
        allowed = amount(f"{percent}%", total)

        assert allowed >= 1
        assert allowed == 1 or allowed * 100 <= percent * total
        assert (allowed + 1) * 100 > percent * total


POLICIES = st.builds(
    Policy,
    selector=st.sampled_from(["", "type=real", "zone in (a, b)"]),
    max_unavailable=st.sampled_from(["0", "1", "10%"]),
    topology_key=st.sampled_from(["", "topology.kubernetes.io/zone"]),
    max_unavailable_per_domain=st.none() | st.integers(1, 3),
    max_domains=st.none() | st.integers(1, 3),
)


class TestPolicy:
    @given(POLICIES)
    def test_survives_being_stored(self, policy):
        assert Policy.from_data(policy.to_data()) == policy

    def test_what_an_older_version_stored_has_the_defaults(self):
        assert Policy.from_data({"max_unavailable": 2}) == Policy(max_unavailable="2")

    @given(POLICIES, POLICIES)
    def test_differs_names_every_difference_and_no_other(self, one, other):
        named = one.differs(other)

        assert bool(named) == (one != other)
        assert all(getattr(one, name) != getattr(other, name) for name in named)
        assert named == other.differs(one)
