# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that are not heard of: since when, without interruption."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._events import dead_node_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.log_rules import EventLog

START = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)


def at(seconds):
    return START + timedelta(seconds=seconds)


def text(seconds):
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(status="Unknown", since=0, *, boot="b", uid="u", annotations=None, taints=(), **metadata):
    ready = {"type": "Ready", "status": status, "reason": "NodeStatusUnknown", "message": "silent"}
    if since is not None:
        ready["lastTransitionTime"] = ready["lastHeartbeatTime"] = text(since)
    return {
        "metadata": {"name": "n", "uid": uid, "annotations": annotations or {}, **metadata},
        "spec": {"providerID": "metal3://x", "taints": list(taints)},
        "status": {"conditions": [ready] if status else [], "nodeInfo": {"bootID": boot}},
    }


def lease(seconds):
    return {"spec": {"renewTime": at(seconds).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}


def key(*arguments, reporting=False, **more):
    found = rules.silence(node(*arguments, **more), reporting=reporting)
    return found and found.key


class TestSilence:
    def test_unknown_since_the_node_controller_said_so(self):
        found = rules.silence(node(since=7), reporting=False)

        assert found.since == at(7)

    @pytest.mark.parametrize("status", ["True", "False", "", None])
    def test_a_node_with_a_sign_of_life_is_not_silent(self, status):
        assert key(status) is None

    def test_a_node_that_reports_not_ready_counts_on_request_from_when_it_is_seen(self):
        found = rules.silence(node("False", since=-99999), reporting=True)

        assert found.since is None
        assert key("True", reporting=True) is None

    def test_a_node_that_is_being_deleted_needs_no_failover(self):
        assert key(deletionTimestamp=text(0)) is None

    def test_a_condition_without_a_time_counts_from_when_it_is_seen(self):
        assert rules.silence(node(since=None), reporting=False).since is None

    def test_another_silence(self):
        changes = [{"since": 1}, {"boot": "c"}, {"uid": "v"}]

        assert len({key(), *(key(**change) for change in changes)}) == 4
        assert key() == key(labels={"a": "b"})
        assert key("False", reporting=True) != key(reporting=True)


TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


class TestMoved:
    def failed_over(self, result, *taints):
        record = {"phase": "move", "result": result}
        return node(annotations={"holdfast.dev/failover": json.dumps(record)}, taints=taints)

    def test_a_node_that_was_failed_over_is_not_sent(self):
        assert rules.silence(self.failed_over("moved", TAINT), reporting=False) is None

    @pytest.mark.parametrize("result", ["", "failed"])
    def test_a_node_whose_failover_is_not_finished_is_sent(self, result):
        assert rules.silence(self.failed_over(result, TAINT), reporting=False)

    def test_a_node_whose_taint_is_gone_is_sent(self):
        assert rules.silence(self.failed_over("moved"), reporting=False)

    def test_a_taint_of_others_says_nothing(self):
        assert rules.silence(node(taints=[TAINT]), reporting=False)


class TestSignOfLife:
    def sign(self, found, now, before=None):
        return rules.sign_of_life(found, at(0), at(now), before)

    def test_a_lease_renewed_since(self):
        assert self.sign(lease(5), 9).moment == at(5)

    @pytest.mark.parametrize("found", [None, {}, {"spec": {}}])
    def test_no_lease(self, found):
        assert self.sign(found, 9) is None

    @pytest.mark.parametrize("seconds", [0, -40])
    def test_none_since(self, seconds):
        assert self.sign(lease(seconds), 9).moment == at(0)

    @pytest.mark.parametrize("ahead", [70, 120, 99999])
    def test_a_clock_that_is_ahead_postpones_the_event_once(self, ahead):
        first = self.sign(lease(ahead), 60)

        assert first.moment == at(60)
        assert self.sign(lease(ahead), 120, first) == first
        assert self.sign(lease(ahead), 99999, first) == first

    @pytest.mark.parametrize("clock", [-99999, 0, 99999])
    def test_a_lease_that_changes_is_a_sign_whatever_the_clock(self, clock):
        first = self.sign(lease(clock), 60)

        assert self.sign(lease(clock + 10), 120, first).moment == at(120)


def test_evidence():
    assert rules.evidence(node(since=10), lease(-30), at(70)) == {
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "silent",
        "since": text(10),
        "seconds": 60,
        "last_heartbeat": text(10),
        "lease_renewed": "2026-05-04T11:59:30.000000Z",
        "looked_at": "2026-05-04T12:01:10.000000Z",
    }


@pytest.mark.parametrize("reason", ["{{ lookup('pipe', 'id') }}", "not ready", "", "1"])
def test_a_reason_that_is_not_a_word_is_no_evidence(reason):
    found = node()
    found["status"]["conditions"][0]["reason"] = reason

    assert rules.evidence(found, None, at(70))["reason"] is None


def test_description_of_a_node_that_is_worked_on():
    marks = {
        "holdfast.dev/claim": json.dumps({"run": "r", "operation": "o", "purpose": "failover", "since": text(0)}),
        "holdfast.dev/failover": json.dumps({"phase": "fence", "result": ""}),
        "cluster.x-k8s.io/machine": "m",
        "cluster.x-k8s.io/cluster-namespace": "metal",
    }
    found = rules.describe(node(annotations=marks, labels={"zone": "a"}))

    assert (found["name"], found["machine"], found["failover"]) == ("n", "metal/m", "fence")
    assert found["claim"]["run"] == "r"
    assert (found["labels"], found["provider_id"], found["boot_id"]) == ({"zone": "a"}, "metal3://x", "b")
    assert (found["unschedulable"], found["out_of_service"]) == (False, False)


def test_a_node_of_which_little_is_known():
    found = rules.describe(node())

    assert (found["machine"], found["claim"], found["failover"]) == (None, None, None)
    assert rules.describe({"metadata": {"name": "n", "uid": "u"}})["provider_id"] is None
    assert rules.describe(node(taints=[TAINT]))["out_of_service"] is True
    silent = rules.evidence({"metadata": {"name": "n"}}, None, at(70))
    assert set(silent.values()) == {None, "2026-05-04T12:01:10.000000Z"}


# State, seconds until the next one, and whether it boots then.
HISTORY = st.lists(
    st.tuples(st.sampled_from(["True", "Unknown", "False"]), st.integers(1, 40), st.booleans()), max_size=20
)


class Clockwork:
    """A node that does this and that, and a log that is sent of it, second by second."""

    def __init__(self, after):
        self.log = EventLog(after=after, repeat=0)
        self.after = after
        self.second = 0
        self.state, self.since, self.boot = "True", 0, 0
        # The silence that there is, by its begin and boot; all that there were; those that were sent.
        self.silence, self.silences, self.sent = None, {}, []

    def become(self, state, reboots):
        self.boot += reboots
        if state != self.state:
            self.state, self.since = state, self.second
            self.silence = None
        elif reboots:
            self.silence = None
        if state == "Unknown" and self.silence is None:
            self.silence = (self.second, self.boot)

    def conditions(self):
        found = rules.silence(node(self.state, self.since, boot=str(self.boot)), reporting=False)
        return [found] if found else []

    def see(self):
        self.log.see("n", self.conditions(), at(self.second))

    def tick(self):
        for due in self.log.due(at(self.second)):
            # As it is looked at again before it is sent.
            if due.key not in [condition.key for condition in self.conditions()]:
                self.see()
                continue
            self.sent.append(self.silence)
            assert self.second - self.silence[0] >= self.after
            self.log.sent(due, at(self.second))
        if self.silence:
            self.silences[self.silence] = self.second - self.silence[0]
        self.second += 1


@given(HISTORY, st.integers(1, 60))
def test_only_silences_that_last_are_sent_and_only_once(history, after):
    node = Clockwork(after)
    for state, seconds, reboots in history:
        node.become(state, reboots)
        node.see()
        for _tick in range(seconds):
            node.tick()

    assert node.sent == [silence for silence, lasted in node.silences.items() if lasted >= after]


@given(HISTORY, st.integers(1, 60), st.sets(st.integers(0, 20)))
@example([("Unknown", 3, False), ("True", 1, False), ("Unknown", 5, False)], 6, {1})
def test_no_gap_is_overlooked_whichever_changes_nobody_has_watched(history, after, blind):
    node = Clockwork(after)
    for number, (state, seconds, reboots) in enumerate(history):
        node.become(state, reboots)
        if reboots:
            # A kubelet reports a boot together with its condition, and was heard of at least for that long.
            node.since = node.second
        if number not in blind:
            node.see()
        for _tick in range(seconds):
            node.tick()

    assert len(node.sent) == len(set(node.sent))
