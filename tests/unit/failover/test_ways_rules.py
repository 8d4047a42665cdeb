# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several ways to switch a machine off."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import ways_rules as rules


@pytest.mark.parametrize(
    ("error", "fields", "expected"),
    [
        ("bmc", {"sent": False}, True),
        ("command", {"sent": False}, True),
        ("invalid_input", {"sent": False}, True),
        ("not_found", {"sent": False}, True),
        ("timed_out", {"sent": False}, True),
        ("refused", {"sent": False, "why": "other_host"}, True),
        ("refused", {"sent": False, "why": "inert"}, True),
        # The host is off, and its key keeps it off.
        ("not_datable", {"sent": True}, True),
        # Another way would interrupt it.
        ("timed_out", {"sent": False, "why": "shutting_down"}, False),
        # A request was sent, or may have been.
        ("bmc", {"sent": True}, False),
        ("bmc", {}, False),
        ("timed_out", {"sent": True}, False),
        # This concerns the node, not the way.
        ("refused", {"sent": False, "why": "new_boot"}, False),
        ("refused", {"sent": False}, False),
        ("came_back", {"sent": False}, False),
        ("held", {"sent": False}, False),
        ("claim_lost", {"sent": False}, False),
        ("api_unreachable", {"sent": False}, False),
    ],
)
def test_when_the_next_way_is_tried(error, fields, expected):
    assert rules.may_try_next(error, fields) is expected


@pytest.mark.parametrize(
    ("begun", "sent", "expected"),
    [
        ("", False, ("metal3", "redfish")),
        ("metal3", False, ("metal3", "redfish")),
        ("redfish", True, ("redfish",)),
        ("metal3", True, ("metal3",)),
        # The user chooses another way.
        ("command", True, ("metal3", "redfish")),
    ],
)
def test_a_run_continues_with_the_way_that_was_begun(begun, sent, expected):
    assert rules.order(("metal3", "redfish"), begun, sent=sent) == expected


def test_a_key_that_was_not_written_is_not_removed_later():
    facts = {"fence": "metal3", "host": "h", "namespace": "n", "key": "k", "mode": "soft"}
    assert rules.facts_after("refused", facts) == {"host": None, "namespace": None, "key": None, "mode": None}
    assert rules.facts_after("not_datable", facts) == {}
    assert rules.facts_after("bmc", {"fence": "redfish", "uri": "u"}) == {}


def test_failed_ways_are_described():
    assert rules.told([]) == ""
    assert rules.told([{"method": "metal3", "why": "It is paused."}]) == "metal3 failed: It is paused. "
