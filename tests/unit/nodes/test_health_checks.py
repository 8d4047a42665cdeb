# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run pauses NodeHealthChecks with an entry of its own, and nothing removes the entries of others."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError, NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import health_checks

WORKERS = f"{health_checks.PATH}/workers"
MINE, OTHERS = "holdfast.kubernetes run me", "cluster-upgrade"


@pytest.fixture
def cluster():
    return MemoryCluster()


@pytest.fixture
def context(cluster):
    warnings = []
    found = Context({}, warn=warnings.append)
    found.cluster, found.warnings = cluster, warnings
    return found


def check(cluster, *entries, name="workers"):
    cluster._store(
        "TEST", f"{health_checks.PATH}/{name}", {"metadata": {"name": name}, "spec": {"pauseRequests": list(entries)}}
    )


def entries(cluster):
    return cluster.objects[WORKERS]["spec"].get("pauseRequests", [])


def test_pause_and_resume(context, cluster):
    check(cluster, OTHERS)
    check(cluster, name="masters")
    health_checks.pause(context, "me")
    health_checks.pause(context, "me")
    assert entries(cluster) == [OTHERS, MINE]
    assert len(cluster.writes) == 2, "each check is written once"
    health_checks.resume(cluster, "me")
    assert entries(cluster) == [OTHERS]
    assert context.warnings == []


def test_a_pause_that_fails_leaves_none_paused(context, cluster):
    check(cluster, OTHERS)
    check(cluster, name="x")
    cluster.broken.append("nodehealthchecks/x$")
    with pytest.raises(HoldfastError):
        health_checks.pause(context, "me")
    assert entries(cluster) == [OTHERS]
    assert cluster.writes, "none was paused before the failure"


def test_each_run_has_its_own_entry(context, cluster):
    check(cluster)
    cluster.lives("other")
    health_checks.pause(context, "other")
    health_checks.pause(context, "me")
    health_checks.resume(cluster, "me")
    assert entries(cluster) == ["holdfast.kubernetes run other"]


def test_the_next_run_ends_the_pause_of_a_dead_one(context, cluster):
    check(cluster, "holdfast.kubernetes run dead", OTHERS)
    health_checks.pause(context, "me")
    assert entries(cluster) == [OTHERS, MINE]


def test_a_run_that_has_died_meanwhile_keeps_no_pause(context, cluster):
    check(cluster, "holdfast.kubernetes run dead", "holdfast.kubernetes run other", OTHERS)
    cluster.lives("other")
    cluster.lives("me")
    health_checks.resume(cluster, "me")
    assert entries(cluster) == ["holdfast.kubernetes run other", OTHERS]


def test_the_own_pause_ends_although_no_lease_can_be_read(context, cluster):
    check(cluster, "holdfast.kubernetes run dead", MINE)
    cluster.broken.append("/leases")
    with pytest.raises(HoldfastError, match="/leases"):
        health_checks.resume(cluster, "me")
    assert entries(cluster) == ["holdfast.kubernetes run dead"]


def test_a_run_that_begins_meanwhile_keeps_its_pause(context, cluster):
    check(cluster, name="a")
    check(cluster)

    def begin(verb, path, _body):
        if (verb, path) == ("PATCH", f"{health_checks.PATH}/a"):
            cluster.hooks.clear()
            cluster.lives("other")
            health_checks.pause(context, "other")

    cluster.hooks.append(begin)
    health_checks.pause(context, "me")
    assert entries(cluster) == ["holdfast.kubernetes run other", MINE]


def test_the_doctor_leaves_a_live_run(context, cluster):
    check(cluster, MINE, OTHERS)
    cluster.lives("me")
    assert health_checks.resume_one(cluster, "workers", "me") is False
    assert entries(cluster) == [MINE, OTHERS]


def test_the_doctor_ends_the_pause_of_a_dead_run(cluster):
    check(cluster, MINE, OTHERS)
    assert health_checks.resume_one(cluster, "workers", "me") is True
    assert entries(cluster) == [OTHERS]
    assert health_checks.resume_one(cluster, "gone", "me") is True


@pytest.mark.parametrize("installed", [True, False])
def test_a_cluster_without_any(context, cluster, monkeypatch, installed):
    def none(*_args, **_more):
        raise NotFound("GET nodehealthchecks: not found")

    if not installed:
        monkeypatch.setattr(cluster, "items", none)
    health_checks.pause(context, "me")
    health_checks.resume(cluster, "me")
    assert cluster.writes == []
    (warning,) = context.warnings
    assert "rolling_reboot_pause_health_checks" in warning
