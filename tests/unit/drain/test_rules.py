# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods go, stay, or may not; and what budgets say of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.rules import (
    LATER,
    NEVER,
    NOW,
    Budget,
    Drains,
    Options,
    Pod,
    Verdict,
    blockers,
    by_namespace,
    check_drain,
    forbidden,
    plan,
    read_budget,
    read_pod,
    ready_daemonsets,
    stays,
    verdict,
)

WEB = Pod("shop", "web-0", "u1", {"app": "web"}, controller="ReplicaSet")
BUDGET = Budget("shop", "web", {"matchLabels": {"app": "web"}}, allowed=1, healthy=3, desired=2, expected=3)
ALL_ALLOWED = Options(force=True, delete_emptydir=True)


def pod_object(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "shop", "name": "web-0", "uid": "u1", **metadata},
        "spec": spec or {},
    }


class TestCheckDrain:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"timeout": 1},
            {"grace_period": 0},
            {"delete_after": 1},
            {"delete_after": 299, "delete_selector": "app=web"},
        ],
    )
    def test_options_that_work(self, options):
        check_drain({"timeout": 300, **options})

    @pytest.mark.parametrize(
        ("options", "name"),
        [
            ({"timeout": 0}, "timeout"),
            ({"timeout": -1}, "timeout"),
            ({"delete_after": 0}, "delete_after"),
            ({"delete_after": 300}, "delete_after"),
            ({"delete_selector": "app=web"}, "delete_after"),
            ({"grace_period": -1}, "grace_period"),
        ],
    )
    def test_options_that_can_not_work_are_named(self, options, name):
        with pytest.raises(InvalidInput, match=name):
            check_drain({"timeout": 300, **options})


class TestReadyDaemonSets:
    DAEMON = replace(WEB, controller="DaemonSet", controller_name="log")

    def test_have_a_ready_pod(self):
        others = (
            replace(WEB, controller_name="log"),
            replace(self.DAEMON, namespace="a", ready=False),
            replace(self.DAEMON, namespace="b", terminating="2026-11-21"),
        )
        ops = replace(self.DAEMON, namespace="ops", container="1f")
        assert ready_daemonsets([self.DAEMON, ops, *others]) == {"ops/log": "1f", "shop/log": ""}

    def test_a_new_pod_next_to_one_that_ends_counts(self):
        assert ready_daemonsets([replace(self.DAEMON, terminating="2026-11-21"), self.DAEMON]) == {"shop/log": ""}

    def test_long_names_are_cut(self):
        (name,) = ready_daemonsets([replace(self.DAEMON, controller_name="x" * 5000)])
        assert len(name) < 300


class TestReadPod:
    def test_the_least_that_the_api_gives(self):
        pod = read_pod({"metadata": {"namespace": "a", "name": "b", "uid": "c"}})

        assert (pod.full_name, pod.controller, pod.ready, pod.claims) == ("a/b", "", False, ())

    def test_the_controller_is_the_owner_that_says_so(self):
        owners = [{"kind": "Job", "name": "web"}, {"kind": "ReplicaSet", "name": "web-5d8", "controller": True}]

        pod = read_pod(pod_object(ownerReferences=owners))
        assert (pod.controller, pod.controller_name) == ("ReplicaSet", "web-5d8")
        assert read_pod(pod_object(ownerReferences=owners[:1])).controller == ""

    def test_all_that_the_api_gives(self):
        item = {
            "metadata": {
                "namespace": "shop",
                "name": "web-0",
                "uid": "u1",
                "labels": {"app": "web"},
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["a", "b"],
            },
            "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]},
        }

        assert read_pod(item) == Pod(
            "shop",
            "web-0",
            "u1",
            {"app": "web"},
            phase="Pending",
            terminating="2026-01-01T00:00:00Z",
            finalizers=("a", "b"),
        )

    @pytest.mark.parametrize(
        ("conditions", "ready"),
        [
            ([("Ready", "True")], True),
            ([("Initialized", "True"), ("Ready", "True")], True),
            ([("Initialized", "True"), ("Ready", "False")], False),
            ([("Ready", "Unknown")], False),
            ([], False),
        ],
    )
    def test_ready(self, conditions, ready):
        shown = [{"type": kind, "status": status} for kind, status in conditions]

        assert read_pod({**pod_object(), "status": {"conditions": shown}}).ready is ready

    @pytest.mark.parametrize(
        ("containers", "found"),
        [
            ([{}, {"containerID": "containerd://0123456789abcdef0123"}, {"containerID": "cri-o://f"}], "0123456789abc"),
            ([{"containerID": "cri-o://f"}], "f"),
            ([{"containerID": ""}], ""),
            ([], ""),
            (None, ""),
        ],
    )
    def test_the_container_of_a_daemonset_pod(self, containers, found):
        owner = {"kind": "DaemonSet", "name": "log", "controller": True}
        status = {"status": {"containerStatuses": containers}}

        assert read_pod({**pod_object(ownerReferences=[owner]), **status}).container == found
        # Nobody needs that of other pods, of which there are many.
        assert read_pod({**pod_object(), **status}).container == ""

    def test_mirror(self):
        assert read_pod(pod_object(annotations={"kubernetes.io/config.mirror": "hash"})).mirror
        assert not read_pod(pod_object(annotations={"other": ""})).mirror

    def test_claims_are_named_also_for_ephemeral_volumes(self):
        volumes = [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "cache", "emptyDir": {}},
        ]
        pod = read_pod(pod_object({"volumes": volumes}))

        assert pod.claims == ("data-web-0", "web-0-scratch")
        assert pod.empty_dir
        assert not read_pod(pod_object({"volumes": volumes[:2]})).empty_dir

    @pytest.mark.parametrize(
        ("toleration", "tolerates"),
        [
            ({"operator": "Exists"}, True),
            ({"key": "", "operator": "Exists", "effect": ""}, True),
            ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}, True),
            ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"}, False),
            ({"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, False),
        ],
    )
    def test_tolerates_cordon(self, toleration, tolerates):
        assert read_pod(pod_object({"tolerations": [toleration]})).tolerates_cordon is tolerates


class TestReadBudget:
    def test_without_a_status_nothing_is_allowed_and_it_is_not_current(self):
        budget = read_budget({"metadata": {"namespace": "a", "name": "b", "generation": 1}, "spec": {}})

        assert budget == Budget("a", "b", current=False)

    def test_all_that_the_api_says(self):
        status = {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 4}
        budget = read_budget(
            {
                "metadata": {"namespace": "shop", "name": "web", "generation": 7},
                "spec": {"selector": {"matchLabels": {"app": "web"}}},
                "status": {**status, "observedGeneration": 7},
            }
        )

        assert budget == replace(BUDGET, expected=4)

    @pytest.mark.parametrize(("seen", "current"), [(6, False), (7, True), (8, True)])
    def test_current_when_the_controller_has_seen_it(self, seen, current):
        metadata = {"namespace": "shop", "name": "web", "generation": 7}

        assert read_budget({"metadata": metadata, "status": {"observedGeneration": seen}}).current is current

    @pytest.mark.parametrize(
        "condition",
        [
            {"type": "DisruptionAllowed", "reason": "SufficientPods", "message": "no"},
            {"type": "Other", "reason": "SyncFailed", "message": "no"},
        ],
    )
    def test_no_sync_failure(self, condition):
        budget = read_budget({"metadata": {"namespace": "a", "name": "b"}, "status": {"conditions": [condition]}})

        assert budget == Budget("a", "b")

    def test_sync_failure(self):
        condition = {"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "no scale"}
        budget = read_budget({"metadata": {"namespace": "a", "name": "b"}, "status": {"conditions": [condition]}})

        assert budget.sync_failure == "no scale"

    def test_policy_for_unhealthy_pods(self):
        spec = {"unhealthyPodEvictionPolicy": "AlwaysAllow"}

        assert read_budget({"metadata": {"namespace": "a", "name": "b"}, "spec": spec}).always_allow_unhealthy


class TestPlan:
    def test_daemon_set_and_mirror_pods_are_left(self):
        daemon, mirror = replace(WEB, controller="DaemonSet"), replace(WEB, mirror=True, controller="Node")

        assert [pod for pod, _why in plan([daemon, mirror], ALL_ALLOWED).skipped] == [daemon, mirror]

    def test_a_finished_daemon_set_pod_goes(self):
        assert not stays(replace(WEB, controller="DaemonSet", phase="Failed"))

    @pytest.mark.parametrize(
        ("pod", "options", "words"),
        [
            (replace(WEB, controller=""), Options(), ["no owner"]),
            (replace(WEB, controller=""), Options(delete_emptydir=True), ["no owner"]),
            (replace(WEB, empty_dir=True), Options(), ["emptyDir"]),
            (replace(WEB, empty_dir=True), Options(force=True), ["emptyDir"]),
            (replace(WEB, controller="", empty_dir=True), Options(), ["no owner", "emptyDir"]),
            (replace(WEB, controller="", empty_dir=True), Options(force=True), ["emptyDir"]),
            (replace(WEB, controller="", empty_dir=True), Options(delete_emptydir=True), ["no owner"]),
        ],
    )
    def test_each_check_can_be_accepted_alone(self, pod, options, words):
        whys = forbidden(pod, options)

        assert len(whys) == len(words)
        assert all(word in why for word, why in zip(words, whys, strict=True))

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_a_finished_pod_has_nothing_to_lose(self, phase):
        pod = replace(WEB, controller="", empty_dir=True, phase=phase)

        assert plan([pod], Options()).evict == [pod]

    def test_a_terminating_pod_is_waited_for_whatever_it_is(self):
        pod = replace(WEB, controller="", terminating="2026-01-01T00:00:00Z")

        assert plan([pod], Options()).wait == [pod]

    @given(
        st.lists(
            st.builds(
                Pod,
                st.just("a"),
                st.text(min_size=1, max_size=3),
                st.uuids().map(str),
                controller=st.sampled_from(["", "DaemonSet", "ReplicaSet", "Job"]),
                mirror=st.booleans(),
                empty_dir=st.booleans(),
                phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
                terminating=st.sampled_from(["", "2026-01-01T00:00:00Z"]),
            )
        ),
        st.builds(Options, st.booleans(), st.booleans()),
    )
    def test_every_pod_is_in_exactly_one_place(self, pods, options):
        made = plan(pods, options)
        sorted_ = [*made.evict, *made.wait, *(pod for pod, _why in made.skipped), *(pod for pod, _why in made.refused)]

        assert sorted(pod.uid for pod in sorted_) == sorted(pod.uid for pod in pods)
        assert not [pod for pod in made.evict if stays(pod) or forbidden(pod, options) or pod.terminating]


class TestVerdict:
    """Against the eviction handler of the API server, line by line."""

    def test_no_budget(self):
        assert verdict(WEB, []).verdict == NOW

    def test_a_budget_of_another_namespace_or_of_other_pods_says_nothing(self):
        others = [
            replace(BUDGET, namespace="other", allowed=0),
            replace(BUDGET, selector={"matchLabels": {"app": "db"}}, allowed=0),
            replace(BUDGET, selector=None, allowed=0),
        ]

        assert verdict(WEB, others).verdict == NOW

    def test_an_empty_selector_covers_the_whole_namespace(self):
        assert verdict(WEB, [replace(BUDGET, selector={}, allowed=0)]).verdict == LATER

    def test_allowed(self):
        assert verdict(WEB, [BUDGET]) == Verdict(NOW, "web")

    def test_used_up_means_later(self):
        found = verdict(WEB, [replace(BUDGET, allowed=0, healthy=2)])

        assert (found.verdict, found.budget) == (LATER, "web")
        assert "2 pods healthy, 2 wanted" in found.reason

    @pytest.mark.parametrize("pods", [1, 3])
    def test_as_many_wanted_as_there_are_means_never(self, pods):
        found = verdict(WEB, [replace(BUDGET, allowed=0, desired=pods, expected=pods)])

        assert (found.verdict, found.budget) == (NEVER, "web")
        assert f"{pods} of {pods}" in found.reason

    def test_two_budgets_mean_never(self):
        found = verdict(WEB, [BUDGET, replace(BUDGET, name="also")])

        assert (found.verdict, found.budget) == (NEVER, "also, web")
        assert "also, web" in found.reason

    def test_stale_means_later_though_it_says_allowed(self):
        found = verdict(WEB, [replace(BUDGET, current=False)])

        assert (found.verdict, found.budget) == (LATER, "web")
        assert "being processed" in found.reason

    def test_a_budget_without_pods_may_still_get_some(self):
        assert verdict(WEB, [replace(BUDGET, allowed=0, desired=0, expected=0)]).verdict == LATER

    def test_a_budget_that_cannot_be_computed_means_never(self):
        found = verdict(WEB, [replace(BUDGET, allowed=0, expected=0, desired=0, sync_failure="no controller found")])

        assert (found.verdict, found.budget) == (NEVER, "web")
        assert "no controller found" in found.reason

    @pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
    def test_pods_that_do_not_run_are_no_matter_of_budgets(self, phase):
        two = [replace(BUDGET, allowed=0), replace(BUDGET, name="also", allowed=0)]

        assert verdict(replace(WEB, phase=phase), two).verdict == NOW

    @pytest.mark.parametrize(
        ("budget", "expected"),
        [
            (replace(BUDGET, allowed=0, healthy=2, desired=2), NOW),
            (replace(BUDGET, allowed=0, healthy=1, desired=1), NOW),
            (replace(BUDGET, allowed=0, healthy=1, desired=2), LATER),
            (replace(BUDGET, allowed=0, healthy=0, desired=0), LATER),
            (replace(BUDGET, allowed=0, healthy=1, desired=2, always_allow_unhealthy=True), NOW),
            (replace(BUDGET, allowed=0, healthy=2, desired=2, current=False), NOW),
        ],
    )
    def test_a_pod_that_is_not_ready(self, budget, expected):
        found = verdict(replace(WEB, ready=False), [budget])

        assert (found.verdict, found.budget) == (expected, "web")


class TestBlockers:
    def test_nothing_on_it(self):
        assert blockers(plan([], Options()), {}) == []

    def test_no_budget_in_its_namespace(self):
        other = by_namespace([replace(BUDGET, namespace="other", allowed=0)])
        assert blockers(plan([WEB], Options()), other) == []

    def test_all_are_named(self):
        pods = [WEB, replace(WEB, uid="u2", name="db-0", labels={"app": "db"})]
        full = replace(BUDGET, allowed=0)
        never = replace(BUDGET, name="db", selector={"matchLabels": {"app": "db"}}, allowed=0, desired=3)

        found = blockers(plan(pods, Options()), by_namespace([full, never]))

        assert [(item["name"], item["verdict"], item["pdb"]) for item in found] == [
            ("web-0", LATER, "web"),
            ("db-0", NEVER, "db"),
        ]
        assert "allows no eviction now" in found[0]["reason"]
        assert "3 of 3" in found[1]["reason"]

    def test_a_pod_that_can_go_now_is_none(self):
        other = replace(WEB, uid="u2", name="db-0", labels={"app": "db"})
        found = blockers(plan([other, WEB], Options()), by_namespace([replace(BUDGET, allowed=0)]))

        assert [(item["name"], item["verdict"]) for item in found] == [("web-0", LATER)]

    def test_a_refused_pod_is_never(self):
        (found,) = blockers(plan([replace(WEB, controller="")], Options()), {})

        assert (found["pdb"], found["verdict"]) == (None, NEVER)
        assert "no owner" in found["reason"]


class TestDrains:
    OWNER = ({"kind": "ReplicaSet", "name": "web", "controller": True},)
    FULL = replace(BUDGET, allowed=0)
    BROKEN = replace(FULL, name="db", selector={"matchLabels": {"app": "db"}}, desired=3)

    def pod(self, name, node, app="web", owners=OWNER):
        found = pod_object({"nodeName": node}, name=name, labels={"app": app}, ownerReferences=owners)
        return {**found, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}

    def test_each_node_has_its_own_verdict(self):
        drains = Drains([self.FULL, self.BROKEN], Options())
        for pod in (
            self.pod("web-0", "later"),
            self.pod("web-1", "never"),
            self.pod("db-0", "never", app="db"),
            self.pod("alone", "never", app="", owners=()),
            self.pod("free", "now", app=""),
        ):
            drains.add(pod)

        found = {node: drains.of(node) for node in ("now", "later", "never", "unknown")}
        assert {node: drain["verdict"] for node, drain in found.items()} == {
            "now": NOW,
            "later": LATER,
            "never": NEVER,
            "unknown": NOW,
        }
        # What the user has to allow comes first, then what never goes.
        assert [blocker["name"] for blocker in found["never"]["blockers"]] == ["alone", "db-0", "web-1"]
        assert found["now"]["blockers"] == []

    @pytest.mark.parametrize(("named", "kept"), [(2, 2), (None, 3)])
    def test_a_limit_holds_for_each_kind(self, named, kept):
        drains = Drains([self.FULL], Options(), named)
        for number in range(3):
            drains.add(self.pod(f"web-{number}", "node"))
        drains.add(self.pod("alone", "node", owners=()))

        assert [blocker["name"] for blocker in drains.of("node")["blockers"]] == ["alone", "web-0", "web-1", "web-2"][
            : kept + 1
        ]
