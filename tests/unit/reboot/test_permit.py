# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last checks of a node before the user's own tasks, or the annotation of its host, reboot it."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Refused, TimedOut, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import last_look
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import permit
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.permit import reboot_gate
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.quorum_rules import CONTROL_PLANE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shared.hold_rules import entry_of, reason_of

CLAIM = {"run": "me", "operation": "kernel", "purpose": "rolling_reboot", "since": AT}
OPERATION = {"id": "kernel", "run": "me", "phase": "drain", "since": AT, "phases": {}, "boot_id_before": "boot-1"}


@pytest.fixture
def cluster():
    found = MemoryCluster()
    found.node(claim=CLAIM, operation=OPERATION)
    return found


def ask(cluster, **options):
    given = {"name": "node-1", "operation": "kernel", "run": "me", "boot_id": "boot-1", "override_holds": False}
    context = Context({**given, **options})
    context.cluster = cluster
    return reboot_gate(context, {**given, **options})


def test_a_free_node_may_go_down(cluster):
    assert ask(cluster) == {"changed": True, "step": "go", "why": "", "overridden_holds": []}
    assert cluster.marks()["operation"]["phase"] == "reboot"


def test_a_held_node_stays_and_nothing_is_recorded(cluster):
    cluster.hold()
    found = ask(cluster)

    assert found["step"] == "held"
    assert "shop/app" in found["why"]
    assert cluster.writes == []


@pytest.mark.parametrize("room", [100, 0])
def test_a_hold_that_the_condition_names_too_counts_once(cluster, room):
    """The agent names the holder as the Lease has it, and results show it without its control characters."""
    holder = "app\x1b[2J"
    cluster.hold(holder=holder)
    reason, _short = reason_of([entry_of("shop", holder)], room)
    cluster.condition("ShutdownInhibited", reason=reason)

    assert ask(cluster, override_holds=True)["step"] == "go"
    assert cluster.marks()["operation"]["overridden_holds"] == ["shop/app [2J"]


def test_a_hold_that_comes_while_the_reboot_is_recorded_counts(cluster):
    cluster.hooks.append(lambda _verb, path, _body: cluster.hold() if path == paths.node("node-1") else None)

    assert ask(cluster)["step"] == "held"


@pytest.mark.parametrize("late", [False, True])
def test_the_quorum_of_etcd_is_checked_with_the_holds(cluster, late):
    """The run may be paused after the role's wait for the quorum, or while the reboot is recorded."""
    for name in ("node-1", "node-2", "node-3"):
        cluster.etcd_pod(name)
    cluster.node("node-2")
    cluster.node("node-3", ready=late)
    cluster.hooks.append(lambda *_write: cluster.node("node-3", ready=False))

    with pytest.raises(Refused, match="node-1 has to stay up") as caught:
        ask(cluster, etcd_selector="component=etcd")
    assert caught.value.fields["gate"] is True
    assert bool(cluster.writes) is late


@pytest.mark.parametrize("kept", [True, False])
def test_the_annotation_of_a_host_needs_the_quorum_too(cluster, monkeypatch, kept):
    for name in ("node-1", "node-2", "node-3"):
        cluster.node(name, labels={CONTROL_PLANE: ""}, ready=kept or name != "node-3")
        cluster.etcd_pod(name)

    def last_look(context, params, check):
        check(context.cluster, params["node"])
        return {"changed": True}

    monkeypatch.setattr(permit, "reboot_annotation", last_look)
    context = Context({})
    context.cluster = cluster
    with nullcontext() if kept else pytest.raises(Refused, match="has to stay up"):
        assert permit.annotate(context, {"node": "node-1", "etcd_selector": "component=etcd"})["changed"]


def test_an_annotation_without_a_selector_asks_for_no_quorum(monkeypatch):
    monkeypatch.setattr(permit, "reboot_annotation", lambda _context, _params, check: check)
    assert permit.annotate(Context({}), {"node": "node-1"}) is None


def test_overridden_holds_are_recorded_before_the_reboot(cluster):
    cluster.hold()
    assert ask(cluster, override_holds=True)["step"] == "go"
    assert cluster.marks()["operation"]["overridden_holds"] == ["shop/app"]


def test_an_overridden_hold_that_comes_while_the_reboot_is_recorded_is_recorded_too(cluster):
    cluster.hooks.append(lambda _verb, path, _body: cluster.hold() if path == paths.node("node-1") else None)
    ask(cluster, override_holds=True)
    assert cluster.marks()["operation"]["overridden_holds"] == ["shop/app"]


def test_an_old_look_does_not_count(cluster, monkeypatch):
    clock = iter(range(0, 10_000, 60))
    monkeypatch.setattr(last_look, "steady", lambda: next(clock))

    with pytest.raises(TimedOut, match="older than 10 s") as caught:
        ask(cluster)
    assert caught.value.fields["gate"] is True


def test_a_record_that_fails_says_that_nothing_was_sent(cluster, monkeypatch):
    def record(*_arguments, **_options):
        raise Unreachable("away")

    monkeypatch.setattr(last_look, "record_phase", record)
    with pytest.raises(Unreachable) as caught:
        ask(cluster)
    assert caught.value.fields["gate"] is True


def test_another_boot_is_refused_and_nothing_is_recorded(cluster):
    with pytest.raises(Refused, match="was rebooted since"):
        ask(cluster, boot_id="boot-0")
    assert cluster.writes == []
