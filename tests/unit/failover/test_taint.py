# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The age of the look by which a node is declared out of service."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.gate import Pass
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import taint as operation
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import last_look, redfish

NODE = {"metadata": {"name": "n", "resourceVersion": "1"}, "spec": {}, "status": {}}
SLOW = last_look.GOOD_FOR * 2
BMC = sum(redfish.TIMEOUT)


class Api:
    dry_run = False

    def now(self):
        return datetime(2026, 11, 21, 9, tzinfo=timezone.utc)

    def merge(self, _path, patch, *, once=False):
        assert once
        return {**NODE, **patch}


@pytest.fixture
def declare(monkeypatch):
    """Declares a node out of service by a second look that takes so many seconds, so many seconds after it."""
    clock = [0.0]

    def passes(seconds):
        def happens(*_arguments, **_options):
            clock[0] += seconds
            return {}

        return happens

    def act(kind, took=SLOW, later=0.0):
        monkeypatch.setattr(last_look, "steady", lambda: clock[0])
        monkeypatch.setattr(operation, "read_node", lambda *_arguments: NODE)
        monkeypatch.setattr(operation.gate, "look", lambda *_arguments, **_options: Pass("b"))
        monkeypatch.setattr(operation.rules, "check_down", lambda *_arguments: None)
        monkeypatch.setattr(operation, "_live_slot", lambda *_arguments: None)
        monkeypatch.setattr(operation, "_check_silence", lambda *_arguments: False)
        monkeypatch.setattr(operation.evidence_rules, "check", lambda *_arguments, **_options: None)
        monkeypatch.setattr(operation.evidence_rules, "record", passes(later))
        monkeypatch.setattr(operation.check_evidence, "look", passes(took))
        params = {"name": "n", "value": "nodeshutdown", "evidence": {"kind": kind}, "override_holds": False}
        context = Context(params)
        context.__dict__.update(cluster=Api(), management=Api())
        return operation._try_to_add(context, params)

    return act


def test_a_second_check_that_took_too_long_is_too_old(declare):
    with pytest.raises(last_look.Stale):
        declare(operation.evidence_rules.BARE_METAL_HOST)


def test_a_command_reports_the_state_at_its_end(declare):
    assert declare(operation.evidence_rules.COMMAND).changed


@pytest.mark.parametrize("took", [SLOW, BMC])
def test_a_bmc_may_take_as_long_as_its_time_out(declare, took):
    assert declare(operation.evidence_rules.REDFISH, took).changed


@pytest.mark.parametrize(
    ("kind", "took", "later"),
    [
        (operation.evidence_rules.REDFISH, 0.0, SLOW),
        (operation.evidence_rules.REDFISH, BMC, SLOW),
        (operation.evidence_rules.REDFISH, 3600.0, 0.0),
        (operation.evidence_rules.COMMAND, 0.0, SLOW),
        # It ended long ago, and this process was paused.
        (operation.evidence_rules.COMMAND, 3600.0, 0.0),
    ],
)
def test_a_pause_at_any_time_makes_the_check_too_old(declare, kind, took, later):
    with pytest.raises(last_look.Stale):
        declare(kind, took, later)
