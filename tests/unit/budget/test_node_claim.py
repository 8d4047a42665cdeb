# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In check mode, a claim that another run has is foreseen where a real run waits, and refused where it is."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import TimedOut
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import Claimed
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_claim import node_claim
from ansible_collections.holdfast.kubernetes.plugins.modules import node_claim as module

THEIRS = {"run": "other", "operation": "kernel", "purpose": "rolling_reboot", "since": AT}


@pytest.fixture
def cluster():
    found = MemoryCluster(dry_run=True)
    found.node(claim=THEIRS)
    return found


def claim(cluster, warn=lambda message: None, **options):
    params = {name: option.get("default") for name, option in module.SPEC["argument_spec"].items()}
    context = Context({**params, "name": "node-1", "run": "me", "operation": "firmware", **options}, True, warn)
    context.cluster = cluster
    return node_claim(context, context.params)


def test_the_claim_that_it_would_wait_for_is_foreseen(cluster):
    cluster.lives("other")
    warnings = []

    found = claim(cluster, warnings.append, wait_timeout=3600)

    assert (found["changed"], found["claim"]["run"], found["taken_from"]) == (True, "me", None)
    assert found["diff"]["before"] == {"claim": None}
    assert cluster.marks()["claim"] == THEIRS
    assert len(warnings) == 1
    assert "Node node-1 is claimed by run other" in warnings[0]
    assert "would wait for it, for up to 3600 s" in warnings[0]


def test_without_a_wait_it_fails_as_the_real_run_does(cluster):
    cluster.lives("other")
    with pytest.raises(TimedOut, match="claimed by run other"):
        claim(cluster)


def test_the_claim_of_a_dead_run_of_another_operation_is_refused(cluster):
    with pytest.raises(Claimed, match="That run is dead"):
        claim(cluster, wait_timeout=3600)
