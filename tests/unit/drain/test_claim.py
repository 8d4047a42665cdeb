# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drain looks again whether its run still has the claim on the node."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import ClaimLost
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.drain import _DrainRun

CLAIM = {"run": "me", "operation": "kernel", "purpose": "rolling_reboot", "since": ""}


@pytest.fixture
def drain():
    found = _DrainRun.__new__(_DrainRun)
    found._cluster, found._name, found._params, found._looked = MemoryCluster(), "node-1", {"run": "me"}, 1000.0
    found._cluster.node(claim=CLAIM)
    return found


def evict_every(seconds, drain):
    for number in range(2, 10):
        drain._keep_to_our_claim(1000.0 + number * seconds)


@pytest.mark.parametrize("every", [5, 100])
def test_a_drain_that_evicts_all_the_time_notices_that_another_run_took_over(drain, every):
    drain._keep_to_our_claim(1000.0 + every)
    drain._cluster.node(claim={**CLAIM, "run": "other"})

    with pytest.raises(ClaimLost, match=r"it now belongs to run other \(rolling_reboot, .* which continues"):
        evict_every(every, drain)


def test_it_does_not_look_before_each_eviction(drain):
    drain._cluster.objects.clear()
    for number in range(10):
        drain._keep_to_our_claim(1000.0 + number)
