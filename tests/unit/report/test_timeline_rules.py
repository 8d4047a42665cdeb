# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of a run, from the events of its tasks, from records and from the history of failovers."""

from __future__ import annotations

import json

import pytest
from unit.report import runs

from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import event_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._report import content_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._report import timeline_rules as rules

END = runs.START + 200


def phases(spans):
    return [span.phase for span in spans]


@pytest.fixture
def timeline():
    return rules.from_events(runs.events(["a", "b", "c"], held="b", bad="c"), END)


def test_phases_follow_each_other(timeline):
    work = ["cordon", "drain", "reboot", "ready", "uncordon", "rebooted"]
    assert phases(timeline.nodes["a"]) == ["queued", "look", "slot", *work]
    assert phases(timeline.nodes["c"]) == ["queued", "look", "slot", "cordon", "drain", "failed"]
    for spans in timeline.nodes.values():
        assert all(before.end == after.start for before, after in zip(spans, spans[1:]))
    assert (timeline.start, timeline.end) == (runs.START, END)


def test_what_a_node_waits_for_is_kept(timeline):
    (held,) = [span for span in timeline.nodes["b"] if span.phase == "hold"]
    assert held.why == "held by firmware/alice since 2026-11-23T03:08:00Z"
    drains = [span.why for span in timeline.nodes["a"] if span.phase == "drain"]
    assert drains == ["2 pods: shop/web-5: web allows no disruption"]


def test_short_waits_are_left_out(timeline):
    assert [(name, span.phase) for name, span in rules.waits(timeline)] == [("b", "hold")]


def test_changes_of_the_budget_are_kept(timeline):
    assert [(look.at - runs.START, look.unavailable, look.allowed) for look in timeline.budgets["workers"]] == [
        (2.0, 1, 2),
        (2.0, 2, 2),
        (62.0, 1, 2),
    ]


def test_a_run_that_ends_early_leaves_an_open_phase():
    events = [event for event in runs.events(["a"]) if event["at"] < runs.START + 15]
    last = rules.from_events(events, END).nodes["a"][-1]
    assert (last.phase, last.ended, last.end) == ("drain", False, END)


def test_of_many_phases_the_first_and_the_last_are_kept():
    events = [
        {**event_rules.waits("a", ("hold", "slot")[number % 2]), "at": runs.START + number, "host": "a"}
        for number in range(500)
    ]
    spans = rules.from_events(events, runs.START + 500).nodes["a"]
    assert len(spans) == rules.KEEP_SPANS
    assert (spans[0].start, spans[-1].end) == (runs.START, runs.START + 500)
    assert all(before.end == after.start for before, after in zip(spans, spans[1:]))


def test_json_keeps_it(timeline):
    data = json.loads(json.dumps(rules.to_data(timeline)))
    again = rules.from_data(data)
    assert rules.to_data(again) == data
    assert phases(again.nodes["b"]) == phases(timeline.nodes["b"])


def test_no_events_are_no_timeline():
    assert rules.to_data(rules.from_events([], END)) == {}
    assert rules.from_data({}) == rules.Timeline()


def test_record_has_its_phases_before_its_last_change():
    since = rules.text(END)
    node = {
        "name": "a",
        "result": "rebooted",
        "detail": "",
        "since": since,
        "phases": {"cordon": 1, "reboot": 30, "hold": 9},
    }
    spans = rules.from_nodes([node, {"name": "b", "result": "skipped"}]).nodes["a"]
    assert [(span.phase, span.end - END) for span in spans] == [
        ("hold", -31.0),
        ("cordon", -30.0),
        ("reboot", 0.0),
        ("rebooted", 0.0),
    ]


@pytest.mark.parametrize("seconds", ["x", None, float("inf"), float("nan"), 1e12, 10**400, -1, [], {}])
def test_record_that_a_node_has_broken_has_no_length(seconds):
    """A node can write its own record. The page is about the other nodes, too."""
    node = {"name": "a", "result": "rebooted", "since": rules.text(END), "phases": {"drain": seconds, "ready": 3}}
    spans = rules.from_nodes([node]).nodes["a"]
    assert [(span.phase, span.end - span.start) for span in spans][:2] == [("drain", 0.0), ("ready", 3.0)]


def test_failover_has_its_history_and_the_moment_of_the_proof():
    report = runs.failover()
    report["nodes"][0]["evidence"]["at"] = rules.text(runs.START + 9.5)
    report["nodes"][0]["entry"]["seconds"]["confirm"] = 4.0
    found = content_rules.timeline_of(report)
    assert phases(found.nodes["worker-3"]) == ["confirm", "claim", "fence", "taint", "proof", "move", "moved"]
