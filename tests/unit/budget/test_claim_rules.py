# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may work on a node."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import (
    Claim,
    Claimed,
    ClaimLost,
    check,
    claim_of,
    may_take,
    require_claim,
    taken_by_another,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import lease_name

MINE = Claim("two", "kernel", "rolling_reboot", "2026-11-21T09:00:00Z")


def claim(run="one", operation="kernel"):
    return Claim(run, operation, "failover", "2026-11-21T08:00:00Z")


def node(present=None):
    marks = {"holdfast.dev/claim": json.dumps(vars(present))} if present else {}
    return {"metadata": {"name": "alfa", "annotations": marks}}


@pytest.mark.parametrize(
    ("present", "live", "restart", "expected"),
    [
        (None, (), False, True),
        (claim("two"), (), False, True),
        (claim(), ("one",), False, False),
        (claim(), ("one",), True, False),
        (claim(), (), False, True),
        (claim(operation="other"), (), False, False),
        (claim(operation="other"), (), True, True),
    ],
)
def test_only_a_dead_runs_claim_passes_and_to_its_own_operation(present, live, restart, expected):
    assert may_take(present, MINE, live, restart=restart) is expected


def test_a_claim_of_another_operation_passes_only_if_that_is_asked_for():
    assert not may_take(claim(operation="other"), MINE, ())


def test_a_run_that_lost_its_claim_stops():
    with pytest.raises(ClaimLost) as lost:
        check(node(claim("one")), "two")

    assert "run one (failover, operation kernel" in lost.value.message
    with pytest.raises(ClaimLost):
        check(node(), "two")
    check(node(MINE), "two")


def test_used_alone_nobody_may_have_a_claim():
    check(node(), "")
    with pytest.raises(Claimed):
        check(node(claim()), "")


def test_modules_without_a_run_are_not_kept_from_a_claimed_node():
    assert require_claim(node(claim()), "")["metadata"]["name"] == "alfa"


def test_a_run_that_lost_its_claim_gets_no_node():
    assert require_claim(node(MINE), "two")["metadata"]["name"] == "alfa"
    with pytest.raises(ClaimLost):
        require_claim(node(claim()), "two")


def test_if_no_claim_is_required_no_other_run_may_have_it():
    for present in (None, MINE):
        assert require_claim(node(present), "two", claimed=False)["metadata"]["name"] == "alfa"
    with pytest.raises(ClaimLost):
        require_claim(node(claim()), "two", claimed=False)


def test_a_claim_is_read_as_it_was_written():
    some = {"metadata": {"name": "alfa", "annotations": {"holdfast.dev/claim": '{"run": "one"}'}}}

    assert claim_of(node(MINE)) == MINE
    assert claim_of(some) == Claim("one", "", "", "")


@pytest.mark.parametrize(
    ("present", "live", "alive", "way_out"),
    [
        (claim(), ["one"], True, "Wait"),
        (claim(), ["two"], False, "rolling_reboot_restart"),
        (None, [], True, "Wait"),
    ],
)
def test_a_refusal_says_whether_waiting_helps(present, live, alive, way_out):
    refused = taken_by_another("alfa", present, live)

    assert refused.fields["run_alive"] is alive
    assert refused.fields["claim"] == (vars(present) if present else None)
    assert way_out in refused.message


def test_a_broken_claim_is_none():
    broken = {"metadata": {"name": "alfa", "annotations": {"holdfast.dev/claim": "no json"}}}

    assert claim_of(broken) is None


def test_ids_make_valid_and_distinct_names():
    names = {lease_name(text) for text in ("4711", "Bob@host/1", "bob@host/1", "bob-host-1", "...", "x" * 300)}

    assert len(names) == 6
    assert all(name.startswith("run.") and len(name) <= 253 and name == name.lower() for name in names)


@given(st.text(st.sampled_from("aB0.-/@"), min_size=1, max_size=200))
@example("a..b")
@example("a/.b")
@example("x" * 179 + ".y")
def test_ids_make_names_that_the_api_takes(run):
    label = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"

    assert re.fullmatch(rf"{label}(\.{label})*", lease_name(run))
