# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hold is, and how it is named."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.node_rules import confirms, inhibited_by
from ansible_collections.holdfast.kubernetes.plugins.module_utils._holds.rules import (
    age,
    check_names,
    describe,
    holds,
    sentence,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shared.hold_rules import (
    FIELD_SELECTOR,
    FORBIDDEN_NAMESPACES,
    entry_of,
    reason_of,
)

SINCE = "2026-05-04T03:02:01.000000Z"
NAMES = st.text(st.characters(codec="ascii", exclude_characters="/", exclude_categories=["Cc"]), min_size=1, max_size=8)


def lease(namespace="app", holder="app", acquired=SINCE, **spec):
    return {
        "metadata": {"name": "node-1", "namespace": namespace},
        "spec": {"holderIdentity": holder, "acquireTime": acquired, **spec},
    }


def node(reason, status="True"):
    return {
        "metadata": {"name": "node-1"},
        "status": {"conditions": [{"type": "ShutdownInhibited", "status": status, "reason": reason}]},
    }


@pytest.mark.parametrize(("holder", "acquired"), [("", SINCE), (None, SINCE), ("app", None), (None, None), ("app", "")])
def test_an_incomplete_hold_counts_as_none(holder, acquired):
    assert not holds(lease(holder=holder, acquired=acquired))


def test_a_lease_without_a_spec_is_none():
    assert not holds({"metadata": {"name": "node-1", "namespace": "app"}})


def test_a_hold_never_lapses():
    assert holds(lease(acquired="2001-01-01T00:00:00Z", leaseDurationSeconds=1, renewTime="2001-01-01T00:00:01Z"))


@pytest.mark.parametrize("namespace", FORBIDDEN_NAMESPACES)
def test_reserved_namespaces(namespace):
    assert not holds(lease(namespace=namespace))
    assert f"metadata.namespace!={namespace}" in FIELD_SELECTOR
    with pytest.raises(InvalidInput, match=namespace):
        check_names(namespace, "app")


@pytest.mark.parametrize("holder", ["", " ", "a,b", ","])
def test_holders_that_can_not_be(holder):
    with pytest.raises(InvalidInput):
        check_names("app", holder)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=4), st.tuples(NAMES, NAMES))
def test_only_a_whole_entry_confirms(others, mine):
    """A name that is part of another's, or holds a comma, is neither mistaken nor missed."""
    reason = ",".join(entry_of(namespace, holder) for namespace, holder in others if "," not in namespace)
    expected = any(
        namespace == mine[0] and holder.replace(",", "%2C") == mine[1].replace(",", "%2C")
        for namespace, holder in others
        if "," not in namespace
    )

    assert (entry_of(*mine) in inhibited_by(node(reason))) == (expected and "," not in mine[0])


@pytest.mark.parametrize("reason", ["ns/app2", "ns/ap", "xns/app", "ns/app2,ns/my-app", "ns/app/x", ""])
def test_alike_is_not_the_same(reason):
    assert "ns/app" not in inhibited_by(node(reason))


@pytest.mark.parametrize("status", ["False", "Unknown", None])
def test_a_condition_that_is_not_true_names_no_holder(status):
    assert inhibited_by(node("ns/app", status)) == []


def test_description():
    now = datetime(2026, 5, 4, 3, 3, 1, tzinfo=timezone.utc)
    found = describe(
        {**lease(), "metadata": {**lease()["metadata"], "annotations": {"holdfast.dev/reason": "why"}}}, now
    )

    assert found == {
        "node": "node-1",
        "namespace": "app",
        "holder": "app",
        "acquired": SINCE,
        "held_seconds": 60,
        "reason": "why",
    }
    assert sentence([found]) == f"app/app since {SINCE} (why)"


@pytest.mark.parametrize("absurd", ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "10000-01-01T00:00:00Z"])
def test_held_since_an_absurd_time_is_held_for_zero_seconds(absurd):
    assert describe(lease(acquired=absurd), datetime(2026, 1, 1, tzinfo=timezone.utc))["held_seconds"] == 0


def test_what_a_tenant_writes_is_cut_when_it_is_read():
    metadata = {"name": "node-1", "namespace": "app", "annotations": {"holdfast.dev/reason": "y" * 200_000}}
    long = {**lease(holder="x" * 220_000), "metadata": metadata}
    found = describe(long, datetime(2026, 5, 4, tzinfo=timezone.utc))

    assert len(sentence([found] * 300)) < 8000
    assert "and 290 more" in sentence([found] * 300)
    # The node names it as the result does.
    assert confirms(node(entry_of("app", "x" * 220_000)), entry_of("app", found["holder"]))


def test_control_characters_of_a_tenant_are_not_described():
    metadata = {"name": "node-1", "namespace": "app", "annotations": {"holdfast.dev/reason": "why\nok: [node-1]"}}
    found = describe({**lease(holder="app\x1b[2J"), "metadata": metadata}, datetime(2026, 5, 4, tzinfo=timezone.utc))

    assert (found["holder"], found["reason"]) == ("app [2J", "why ok: [node-1]")


def test_a_hold_without_room_for_its_name_is_confirmed_nevertheless():
    mine = entry_of("app", "mine")
    reason, short = reason_of([entry_of("app", "mine"), entry_of("app", "you")], 0)

    assert short == 2
    assert confirms(node(reason), mine)
    assert not confirms(node(reason), entry_of("app", "min"))
    assert not confirms(node(reason, "False"), mine)


def test_the_holder_of_an_own_hold_is_not_cut():
    check_names("app", "x" * 253)
    with pytest.raises(InvalidInput, match="254 characters"):
        check_names("app", "x" * 254)


def test_held_since_the_future_is_held_for_zero_seconds():
    assert describe(lease(), datetime(2020, 1, 1, tzinfo=timezone.utc))["held_seconds"] == 0


def test_the_oldest_hold_comes_first_and_one_of_an_absurd_time_last():
    now = datetime(2026, 5, 4, tzinfo=timezone.utc)
    held = [
        describe(lease(namespace, holder, acquired), now)
        for namespace, holder, acquired in [
            ("a", "a", "0001-01-01T00:00:00Z"),
            ("b", "b", SINCE),
            ("b", "a", SINCE),
            ("a", "b", SINCE),
            ("z", "z", "2026-05-03T00:00:00Z"),
        ]
    ]

    assert [hold["namespace"] + hold["holder"] for hold in sorted(held, key=age)] == ["zz", "ab", "ba", "bb", "aa"]


def test_a_hold_without_a_reason_has_no_empty_brackets():
    found = describe(lease(), datetime(2026, 5, 4, tzinfo=timezone.utc))

    assert found["reason"] == ""
    assert sentence([found, found]) == f"app/app since {SINCE}; app/app since {SINCE}"
