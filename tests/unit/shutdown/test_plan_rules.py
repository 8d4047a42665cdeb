# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is set comes to what was asked for, and what is set back is what was there, whatever happened in between."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import grace_rules as grace
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import logind_files, logind_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import plan_rules as plans
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.plan_rules import Memory, Wanted, plan

MAIN, OURS, LATER = "/config.yaml", "/logind.conf.d/zz-holdfast.conf", "/logind.conf.d/zzz_holdfast.conf"
CONFIGS = [
    "kind: KubeletConfiguration\n",
    "kind: KubeletConfiguration\nshutdownGracePeriod: 0s\nshutdownGracePeriodCriticalPods: 0s\nzone: a\n",
    "shutdownGracePeriod: 0m10s # ten\r\nkind: KubeletConfiguration\r\nshutdownGracePeriodCriticalPods: '4s'",
    "shutdownGracePeriodByPodPriority:\n  # two\n  - {priority: 0, shutdownGracePeriodSeconds: 5}\nkind: Config\n",
    '{"kind": "KubeletConfiguration", "shutdownGracePeriod": "30s"}',
    "kind: KubeletConfiguration\nshutdownGracePeriodByPodPriority: []\n",
]
SECONDS = st.integers(0, 100)
PAIRS = st.tuples(st.integers(-5, 5), st.integers(1, 90))
GROUPS = st.one_of(
    st.tuples(SECONDS, SECONDS).map(lambda pair: (grace.wanted(max(pair), min(pair)), False)),
    st.lists(PAIRS, min_size=1, max_size=3, unique_by=lambda pair: pair[0]).map(
        lambda pairs: (grace.wanted(by_priority=[{"priority": p, "seconds": s} for p, s in pairs]), True)
    ),
)


class Node:
    """Its files, and what is remembered, as it is after a way through JSON."""

    def __init__(self, text: str) -> None:
        self.texts: dict[str, str | None] = {MAIN: text}
        self.memory = Memory()

    def follow(self, wanted: Wanted) -> bool:
        outcome = plan(self.memory, {**dict.fromkeys([MAIN, OURS, LATER]), **self.texts}, wanted)
        self.texts.update(outcome.after)
        self.texts = {path: text for path, text in self.texts.items() if text is not None}
        self.memory = Memory.from_data(json.loads(json.dumps(outcome.memory.to_data())))
        return bool(outcome.after)

    def set(self, groups: grace.Groups, by_priority: bool, name: str = OURS) -> bool:
        files = {name: plans.logind_drop_in(groups, plans.delay(groups, 5))} if groups else {}
        return self.follow(Wanted(MAIN, plans.values(groups, by_priority), files))

    def says(self) -> grace.Configured:
        return grace.configured(yaml.safe_load(str(self.texts[MAIN])))


@given(st.sampled_from(CONFIGS), st.lists(GROUPS, min_size=1, max_size=4))
def test_settings_take_effect_and_are_restored(text, wishes):
    node = Node(text)
    for groups, by_priority in wishes:
        node.set(groups, by_priority)
        assert node.says() == grace.Configured(groups, ())
        assert not node.set(groups, by_priority)
    node.follow(Wanted())

    assert node.texts == {MAIN: text}
    assert not node.memory
    assert not node.follow(Wanted())


@given(st.sampled_from(CONFIGS), GROUPS, GROUPS, SECONDS)
def test_a_value_that_others_set_is_the_one_to_restore(text, first, second, seconds):
    node = Node(text)
    node.set(*first)
    # The whole file is written again, as kubeadm does it.
    theirs = f"shutdownGracePeriod: {seconds}s\nshutdownGracePeriodCriticalPods: 0s\nkind: KubeletConfiguration\n"
    node.texts[MAIN] = theirs
    node.set(*second)
    assert node.says().groups == second[0]
    node.follow(Wanted())

    # What is as we had set it can't be told from ours.
    left = yaml.safe_load(str(node.texts[MAIN]))
    ours = plans.values(*first)
    if ours[grace.TOTAL] != f"{seconds}s":
        assert left[grace.TOTAL] == f"{seconds}s"


@given(st.sampled_from(CONFIGS), GROUPS)
def test_what_others_changed_is_not_restored(text, wish):
    node = Node(text)
    node.set(*wish)
    node.texts[MAIN] = "shutdownGracePeriod: 1h1s\n" + "kind: KubeletConfiguration\n"

    node.follow(Wanted())

    assert node.texts == {MAIN: "shutdownGracePeriod: 1h1s\nkind: KubeletConfiguration\n"}


def test_values_that_are_there_already_are_left_as_they_are_written():
    node = Node(CONFIGS[2])

    node.set(grace.wanted(10, 4), False)

    assert node.texts[MAIN] == CONFIGS[2]
    assert not node.memory.before


def test_a_file_of_another_name_replaces_our_file():
    node = Node(CONFIGS[0])
    node.set(grace.wanted(20), False)
    node.set(grace.wanted(20), False, LATER)

    assert set(node.texts) == {MAIN, LATER}


def test_our_own_file_is_known_although_nothing_is_recorded():
    node = Node(CONFIGS[0])
    node.set(grace.wanted(20), False)
    node.memory = Memory()

    node.follow(Wanted())

    assert set(node.texts) == {MAIN}


def test_a_file_of_others_is_not_taken_for_our_own():
    node = Node(CONFIGS[0])
    node.texts[OURS] = "[Login]\nInhibitDelayMaxSec=1\n"

    with pytest.raises(Refused, match=r"zz-holdfast\.conf exists, but this module did not write it"):
        node.set(grace.wanted(20), False)
    node.follow(Wanted())
    assert OURS in node.texts


def test_a_file_that_is_gone_is_forgotten():
    node = Node(CONFIGS[0])
    node.set(grace.wanted(20), False)
    del node.texts[MAIN]

    node.follow(Wanted())

    assert node.texts == {}
    assert not node.memory


@given(GROUPS)
def test_a_drop_in_of_the_kubelet_says_all_three(wish):
    groups, by_priority = wish
    said: dict[str, Any] = yaml.safe_load(plans.kubelet_drop_in(plans.values(groups, by_priority)))

    assert set(said) == {"apiVersion", "kind", *grace.KEYS}
    # Over a file that has the other form.
    for other in ({grace.TOTAL: "9s"}, {grace.BY_PRIORITY: [{"priority": 1, "shutdownGracePeriodSeconds": 9}]}):
        assert grace.configured({**other, **said}) == grace.Configured(groups, ())


@pytest.mark.parametrize(("others", "given_"), [(5, 35), (35, 35), (90, 90), (40.5, 41), (inf, inf)])
def test_logind_gives_what_is_needed_and_no_less_than_others_want(others, given_):
    groups = grace.wanted(30, 10)

    assert logind_rules.delay(plans.logind_drop_in(groups, plans.delay(groups, others))) == given_


@pytest.mark.parametrize(
    ("entries", "name"),
    [
        ([], "zz-holdfast.conf"),
        ([("50-a.conf", False), ("zzz.txt", False)], "zz-holdfast.conf"),
        ([("zzz.conf", False)], "zzz_holdfast.conf"),
        ([("zzz", True)], "zzz_holdfast.conf"),
        ([("zzz.conf", True)], "zzz.conf_holdfast.conf"),
    ],
)
def test_a_name_comes_after_files_and_directories(entries, name):
    found = logind_files.winning_name(plans.names_to_sort_after(entries))

    assert found == name
    assert all(found > entry for entry, _folder in entries if entry != "zzz.txt")
