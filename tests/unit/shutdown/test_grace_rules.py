# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a kubelet divides the time of a shutdown."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import grace_rules as grace
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.grace_rules import (
    CRITICAL_PRIORITY,
    Group,
    Pod,
)

PLAIN = (Group(0, 20), Group(CRITICAL_PRIORITY, 10))
BOTH = ["total", "critical", "by_priority"]
THREE = (Group(-10, 5), Group(0, 20), Group(1000, 60))
priorities = st.integers(-(2**31), 2**31 - 1)
divisions = st.dictionaries(priorities, st.integers(0, 600), min_size=1, max_size=6).map(
    lambda found: tuple(Group(priority, found[priority]) for priority in sorted(found))
)


class TestGroups:
    def test_total_and_critical(self):
        assert grace.groups(30, 10) == PLAIN

    def test_without_critical_critical_pods_get_nothing(self):
        assert grace.groups(30) == (Group(0, 30), Group(CRITICAL_PRIORITY, 0))

    def test_nothing_is_off(self):
        assert grace.groups() == ()

    def test_by_priority_goes_from_the_lowest_up(self):
        assert grace.groups(by_priority=reversed(THREE)) == THREE

    def test_fractions_are_dropped_from_each_group(self):
        divided = grace.groups(Fraction("10.9"), Fraction("4.5"))

        assert [group.seconds for group in divided] == [6, 4]
        assert grace.needed(divided) == 10

    def test_needs_the_sum(self):
        assert grace.needed(THREE) == 85
        assert grace.needed(()) == 0


class TestWanted:
    def test_nothing_is_off(self):
        assert grace.wanted() == grace.wanted(by_priority=[]) == grace.wanted(0) == grace.wanted(0, 0) == ()

    def test_either_form(self):
        assert grace.wanted(30, 10) == PLAIN
        assert (
            grace.wanted(by_priority=[{"priority": 1000, "seconds": 60}, {"priority": 0, "seconds": 20}]) == THREE[1:]
        )

    @pytest.mark.parametrize(
        ("options", "named", "message"),
        [
            ({"total": 10, "critical": 11}, ["critical", "total"], "longer than total"),
            ({"critical": 5}, ["critical", "total"], "longer than total"),
            ({"total": 0, "critical": 5}, ["critical", "total"], "longer than total"),
            ({"total": -1}, ["total"], '"-1"'),
            ({"total": 10, "critical": -1}, ["critical"], '"-1"'),
            ({"total": 1.5}, ["total"], '"1.5"'),
            ({"total": "30"}, ["total"], "whole number"),
            (
                {"total": 10, "by_priority": [{"priority": 0, "seconds": 1}]},
                ["total", "critical", "by_priority"],
                "both",
            ),
            (
                {"critical": 0, "by_priority": [{"priority": 0, "seconds": 1}]},
                ["total", "critical", "by_priority"],
                "both",
            ),
            ({"by_priority": [{"priority": 0, "seconds": -1}]}, ["by_priority"], '"-1"'),
            ({"by_priority": [{"priority": 0, "seconds": 0.5}]}, ["by_priority"], '"0.5"'),
            ({"by_priority": [{"priority": 0}]}, ["by_priority"], '"None"'),
            ({"by_priority": [{"priority": 0, "seconds": 1}] * 2}, ["by_priority"], "priority 0 twice"),
            ({"by_priority": [{"priority": 2**31, "seconds": 1}]}, ["by_priority"], "32 bits"),
            ({"by_priority": [{"priority": True, "seconds": 1}]}, ["by_priority"], "32 bits"),
            ({"by_priority": [{"priority": 0, "seconds": 0}]}, ["by_priority"], "no pod any time"),
        ],
    )
    def test_refuses_what_cannot_work(self, options, named, message):
        with pytest.raises(InvalidInput, match=message) as caught:
            grace.wanted(**options)

        assert caught.value.fields == {"options": named}

    @given(st.integers(0, 10**6), st.integers(0, 10**6))
    def test_what_passes_the_kubelet_takes(self, total, critical):
        try:
            divided = grace.wanted(total, critical)
        except InvalidInput:
            assert critical > total
            return
        said = {grace.TOTAL: grace.duration(total), grace.CRITICAL: grace.duration(critical)}
        assert grace.configured(said) == grace.Configured(divided)
        assert grace.needed(divided) == total

    @given(st.dictionaries(priorities, st.integers(0, 10**6), max_size=6))
    def test_groups_that_pass_the_kubelet_takes(self, found):
        try:
            divided = grace.wanted(by_priority=[{"priority": key, "seconds": found[key]} for key in found])
        except InvalidInput:
            assert found
            assert not any(found.values())
            return
        items = [{"priority": key, "shutdownGracePeriodSeconds": found[key]} for key in found]
        assert grace.configured({grace.BY_PRIORITY: items}) == grace.Configured(divided)


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("0", 0),
            ("0s", 0),
            ("1m30s", 90),
            ("1h", 3600),
            ("1.5s", Fraction(3, 2)),
            (".5m", 30),
            ("500ms", Fraction(1, 2)),
            ("-3s", -3),
            ("+3s", 3),
            ("1s1s", 2),
            ("1µs", Fraction(1, 10**6)),
        ],
    )
    def test_reads_those_of_go(self, text, seconds):
        assert grace.parse_duration(text) == seconds

    @pytest.mark.parametrize("text", ["", "3", "s", "1 s", "3s ", "1d", "1m 30s", ".s", "--1s", "³s"])
    def test_refuses_what_go_refuses(self, text):
        with pytest.raises(ValueError, match="not a duration"):
            grace.parse_duration(text)

    @given(st.integers(0, 10**9))
    def test_reads_what_it_writes(self, seconds):
        assert grace.parse_duration(grace.duration(seconds)) == seconds


class TestConfigured:
    def test_nothing_is_off(self):
        assert grace.configured({}) == grace.configured({grace.TOTAL: "0s"}) == grace.Configured()

    def test_empty_list_is_off(self):
        assert grace.configured({grace.BY_PRIORITY: []}) == grace.Configured()

    def test_keys_left_out_of_an_entry_are_zero(self):
        found = grace.configured({grace.BY_PRIORITY: [{"shutdownGracePeriodSeconds": 7.0}, {"priority": 5}, None]})

        assert found.groups == (Group(0, 7), Group(0, 0), Group(5, 0))

    @pytest.mark.parametrize(
        ("values", "reason"),
        [
            ({grace.TOTAL: "10s", grace.CRITICAL: "11s"}, "longer than"),
            ({grace.CRITICAL: "1s"}, "longer than"),
            ({grace.TOTAL: "500ms"}, "neither 0 nor at least 1s"),
            ({grace.TOTAL: "10s", grace.CRITICAL: "999ms"}, "neither 0 nor at least 1s"),
            ({grace.TOTAL: "-10s"}, "neither 0 nor at least 1s"),
            ({grace.TOTAL: 30}, "30 (not a string)"),
            ({grace.TOTAL: "30"}, "not a duration"),
            ({grace.TOTAL: "1s", grace.BY_PRIORITY: [{"priority": 0, "shutdownGracePeriodSeconds": 1}]}, "both set"),
            ({grace.BY_PRIORITY: [{"priority": "0"}]}, "not a list of pairs of whole numbers"),
            ({grace.BY_PRIORITY: [{"priority": 1.5}]}, "not a list of pairs of whole numbers"),
            ({grace.BY_PRIORITY: [{"priority": 2**31}]}, "not a list of pairs of whole numbers"),
            ({grace.BY_PRIORITY: ["a"]}, "not a list of pairs of whole numbers"),
            ({grace.BY_PRIORITY: {"priority": 1}}, "not a list of pairs of whole numbers"),
            ({grace.BY_PRIORITY: "1s"}, "not a list of pairs of whole numbers"),
        ],
    )
    def test_says_what_the_kubelet_refuses(self, values, reason):
        refusal = grace.configured(values).refusals[0]

        assert reason in refusal


class TestFit:
    @pytest.mark.parametrize(
        ("priority", "group"), [(-11, -10), (-10, -10), (-1, -10), (0, 0), (999, 0), (1000, 1000), (2**31 - 1, 1000)]
    )
    def test_a_pod_is_of_the_largest_priority_not_above_its_own_or_of_the_lowest(self, priority, group):
        assert grace.group_of(THREE, priority).priority == group

    def test_what_each_gets(self):
        pods = [Pod("a", "long", 0, 120), Pod("a", "short", 0, 3), Pod("a", "done", 0, 30, counts=False)]

        found = grace.fit(PLAIN, [*pods, Pod("b", "critical", CRITICAL_PRIORITY + 1000, 30)])

        assert [(item.name, item.gets, item.short_by) for item in found] == [
            ("long", 20, 100),
            ("short", 3, 0),
            ("critical", 10, 20),
        ]

    def test_off_gives_nothing(self):
        assert [item.gets for item in grace.fit((), [Pod("a", "one", 0, 30)])] == [0]

    @given(divisions, st.lists(st.builds(Pod, st.just("a"), st.just("b"), priorities, st.integers(0, 900))))
    def test_no_pod_gets_more_than_it_wants_or_than_its_group_has(self, divided, pods):
        for pod, share in zip(pods, grace.fit(divided, pods)):
            below = [group for group in divided if group.priority <= pod.priority] or list(divided[:1])
            assert share.gets == min(pod.wants, below[-1].seconds)
            assert share.short_by == pod.wants - share.gets >= 0


class TestReadPod:
    def pod(self, phase="Running", **spec):
        return {"metadata": {"namespace": "a", "name": "b"}, "spec": spec, "status": {"phase": phase}}

    def test_fields_that_are_set(self):
        found = grace.read_pod(self.pod(priority=7, terminationGracePeriodSeconds=0))

        assert found == Pod("a", "b", 7, 0)

    def test_fields_that_are_not_set(self):
        assert grace.read_pod({"metadata": {"namespace": "a", "name": "b"}}) == Pod("a", "b", 0, 30)

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_finished_pods_do_not_count(self, phase):
        assert not grace.read_pod(self.pod(phase)).counts

    def test_mirror_pods_count(self):
        item = self.pod(priority=2_000_001_000, terminationGracePeriodSeconds=30)
        item["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}

        assert grace.read_pod(item).counts

    def test_deletion_may_leave_less(self):
        item = self.pod(terminationGracePeriodSeconds=30)
        item["metadata"]["deletionGracePeriodSeconds"] = 5

        assert grace.read_pod(item).wants == 5
