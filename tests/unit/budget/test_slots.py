# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for a slot, by a clock that tests set: for how long what fills the budget must have stood."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths, watch
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    InvalidInput,
    Refused,
    TimedOut,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import CLAIM
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline, Listed
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import ledger_store as store
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import slots, standstill_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger, Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import Policy, policy_of
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.standstill_rules import Standstill, pause
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_slot

START = datetime(2026, 11, 21, tzinfo=timezone.utc)
NAMES = ["alfa", "bravo", "charlie", "delta"]


class Api:
    """Nodes and one ledger. Time passes while the code waits for news; what happens then was told before."""

    dry_run = False

    def __init__(self, ledger=Ledger()):  # noqa: B008
        self.seconds = 0.0
        self.not_ready = set()
        self.plan = []
        self.config_map = {"metadata": {"resourceVersion": "1"}, "data": ledger.to_data()}
        self.looks = 0

    def now(self):
        return START + timedelta(seconds=self.seconds)

    def at(self, seconds, happens):
        self.plan.append((seconds, happens))
        self.plan.sort(key=lambda item: item[0])

    def wait(self, seconds):
        end = self.seconds + seconds
        while self.plan and self.plan[0][0] <= end:
            self.seconds, happens = self.plan.pop(0)
            happens()
        self.seconds = end

    def find(self, path):
        if "configmaps" in path:
            return self.config_map
        name = path.rpartition("/")[2]
        return next(item for item in self.items("/api/v1/nodes") if item["metadata"]["name"] == name)

    def get(self, path):
        return self.find(path)

    def items(self, path, **_selectors):
        if path != "/api/v1/nodes":
            return []
        return [
            {
                "metadata": {"name": name},
                "status": {"conditions": [{"type": "Ready", "status": str(name not in self.not_ready)}]},
            }
            for name in NAMES
        ]

    def rows(self, path, **selectors):
        self.looks += 1
        for item in self.items(path, **selectors):
            ready = item["status"]["conditions"][0]["status"] == "True"
            yield {"Name": item["metadata"]["name"], "Status": "Ready" if ready else "NotReady"}

    def replace(self, _path, body):
        version = body["metadata"]["resourceVersion"]
        if version != self.config_map["metadata"]["resourceVersion"]:
            raise ApiFailure("conflict", status=409)
        self.config_map = {**body, "metadata": {"resourceVersion": str(int(version) + 1)}}
        return self.config_map

    def ledger(self, ledger):
        self.config_map = {"metadata": {"resourceVersion": "99"}, "data": ledger.to_data()}


@pytest.fixture
def ask(monkeypatch):
    """Asks for a slot for delta; what came of it, and after how many seconds."""

    def act(api, *, check_mode=False, warn=lambda message: None, **options):
        class Waits:
            """A watch that tells what is so, and ends when its time has passed."""

            def __init__(self, _cluster, _path, deadline, **_selectors):
                self.deadline = deadline

            def __iter__(self):
                yield Listed([api.config_map])
                api.wait(self.deadline.left)

        monkeypatch.setattr(watch.time, "monotonic", lambda: api.seconds)
        monkeypatch.setattr(slots, "Deadline", lambda seconds: Deadline(seconds, api.seconds))
        monkeypatch.setattr(slots, "Follower", Waits)
        spec = {
            name: option.get("default") for name, option in reboot_slot.SPEC["argument_spec"].items() if name != "state"
        }
        params = {**spec, "name": "delta", "operation": "kernel", "state": "present", **options}
        context = Context(params, check_mode, warn)
        context.__dict__["cluster"] = api
        return slots.reboot_slot(context, params)

    return act


def test_nodes_that_look_down_for_a_moment_stop_nobody(ask):
    api = Api()
    api.not_ready = set(NAMES[:3])
    api.at(40, api.not_ready.clear)

    result = ask(api)

    assert result["slot"]["node"] == "delta"
    assert 40 <= result["waited"] < 60
    assert api.looks < 15


def test_a_wait_behind_an_unhealthy_node_is_refused_after_the_grace_time(ask):
    api = Api()
    api.not_ready = {"alfa"}

    with pytest.raises(Refused, match="alfa is not Ready") as refused:
        ask(api)

    assert 300 <= refused.value.fields["waited"] < 302
    assert api.looks < 40, "each look reads all Nodes"


def test_what_changes_begins_another_grace(ask):
    api = Api()
    api.not_ready = {"alfa"}
    api.at(200, lambda: api.not_ready.add("bravo"))

    with pytest.raises(Refused, match="bravo is not Ready") as refused:
        ask(api)

    assert refused.value.fields["waited"] >= 500


def test_without_a_grace_it_is_refused_at_once(ask):
    api = Api()
    api.not_ready = {"alfa"}

    with pytest.raises(Refused) as refused:
        ask(api, unhealthy_grace=0)

    assert refused.value.fields["waited"] == 0


@pytest.mark.parametrize(
    ("ledger", "options"),
    [
        (Ledger(operations=({"id": "kernel", "failures": {"alfa": "no boot"}},)), {}),
        (Ledger(), {"max_unavailable": "0"}),
        (Ledger(Policy(max_unavailable="2"), {"alfa": Slot("alfa", "kernel", "", "")}), {}),
    ],
    ids=["max_failed", "paused", "another policy"],
)
def test_what_no_time_changes_is_refused_at_once(ask, ledger, options):
    with pytest.raises(Refused) as refused:
        ask(Api(ledger), **options)

    assert refused.value.fields["waited"] == 0


def test_a_time_out_names_what_was_waited_for(ask):
    api = Api()
    api.not_ready = {"alfa"}

    with pytest.raises(TimedOut, match="alfa is not Ready") as timed_out:
        ask(api, wait_timeout=100)

    assert timed_out.value.fields["idle"] == timed_out.value.fields["waited"] == 100


WORKING = Ledger(Policy(), {"alfa": Slot("alfa", "kernel", "run-1", AT)})


def test_check_mode_foresees_the_slot_that_a_node_waits_for(ask):
    api, warnings = Api(WORKING), []

    found = ask(api, check_mode=True, warn=warnings.append)

    assert (found["changed"], found["slot"]["node"]) == (True, "delta")
    assert found["diff"]["before"] == {"slot": None}
    assert found["diff"]["after"]["slot"]["node"] == "delta"
    assert api.seconds == 0
    assert store.ledger_of(api.config_map) == WORKING
    assert ["delta would wait for a slot of group default: " in warning for warning in warnings] == [True]
    assert "alfa has a slot of operation kernel, run run-1" in warnings[0]


def test_check_mode_fails_if_no_wait_is_allowed(ask):
    with pytest.raises(TimedOut, match=r"got no slot of group default within 0 s: .*alfa has a slot"):
        ask(Api(WORKING), check_mode=True, wait_timeout=0)


def test_a_negative_grace_is_refused(ask):
    with pytest.raises(Exception, match="unhealthy_grace must be 0 or more"):
        ask(Api(), unhealthy_grace=-1)


class TestStandstill:
    def test_a_standstill_counts_while_its_cause_is_the_same(self):
        standstill = Standstill()

        assert [standstill.seconds(what, now) for what, now in (("a", 5), ("a", 35), ("b", 65), ("b", 70))] == [
            0,
            30,
            0,
            5,
        ]

    def test_what_nobody_looked_at_for_long_does_not_count(self):
        standstill = Standstill()
        standstill.seconds("a", 5)

        assert standstill.seconds("a", 5 + standstill_rules._LONGEST_GAP + 1) == 0

    def test_looks_are_many_at_first_and_end_with_the_grace(self):
        assert pause(0, 300) < 5
        assert pause(200, 300) == 30
        assert 0 < pause(299, 300) < 2
        assert pause(400, 300) > 0


def test_each_claim_changes_the_ledger():
    mine = Slot("alfa", "kernel", "4711", "")
    api = Api(Ledger(Policy(), {"alfa": mine}))
    slots.claim(api, "default", "alfa", run="4711", operation="kernel")
    slots.claim(api, "default", "alfa", run="4711", operation="kernel")

    assert store.ledger_of(api.config_map).slots["alfa"].claims == 2
    assert api.config_map["metadata"]["resourceVersion"] == "3"


@pytest.mark.parametrize("claims", [0, 1])
def test_a_claim_while_the_nodes_are_read_keeps_the_slot(ask, claims):
    """Its run counts as dead, and claims the node again. So a decision without that claim is not stored."""
    api = Api(Ledger(Policy(), {"alfa": Slot("alfa", "other", "4711", "", claims=claims)}))
    api.dry_run = True  # Without signs of life.
    read, marks = api.items, {}

    def items(path, **selectors):
        found = [{**item, "metadata": {**item["metadata"], "annotations": {}}} for item in read(path, **selectors)]
        for item in found:
            item["metadata"]["annotations"] = dict(marks) if item["metadata"]["name"] == "alfa" else {}
        if found and not marks:
            marks[CLAIM] = "{}"
            slots.claim(api, "default", "alfa", run="4711", operation="other")
        return found

    api.items = items
    with pytest.raises(Refused, match="alfa has a slot of operation other"):
        ask(api, run="4712", unhealthy_grace=0)

    assert store.ledger_of(api.config_map).slots["alfa"].claims == claims + 1


def test_what_stood_at_the_first_look_is_no_change(ask):
    api = Api(Ledger(Policy(max_unavailable="2"), {"alfa": Slot("alfa", "other", "", "")}))
    items = api.items

    def slow(path, **selectors):
        api.seconds += 5
        return items(path, **selectors)

    api.items = slow
    found = ask(api, max_unavailable="2")

    assert found["idle"] == found["waited"] > 0


@pytest.mark.parametrize("run", ["", "another"])
def test_a_slot_from_a_lost_answer_is_looked_at_in_two_groups(ask, run):
    """A slot that another run left was looked at when it was given."""
    api = Api(Ledger(Policy(), {"delta": Slot("delta", "kernel", run, "")}))
    items = api.items

    def with_another_group(path, **selectors):
        if "configmaps" not in path or not api.looks:
            return items(path, **selectors)
        theirs = Ledger(Policy(), {"delta": Slot("delta", "kernel", "", "")})
        return [{"metadata": {"name": "group.other"}, "data": theirs.to_data()}]

    api.items = with_another_group
    if run:
        assert ask(api)["slot"]["group"] == "default"
        return
    with pytest.raises(Refused, match="slot of group other"):
        ask(api)
    assert not store.ledger_of(api.config_map).slots


def ended(seconds, operation="kernel"):
    """A ledger in which the last node of an operation ended at that time."""
    return Ledger(operations=({"id": operation, "failures": {}, "ended": to_text(START + timedelta(seconds=seconds))},))


@pytest.mark.parametrize("ahead", [0, 0.1, 2], ids=["the same clock", "a clock a little ahead", "a clock 2 s ahead"])
def test_the_next_node_waits_for_the_pause(ask, ahead):
    result = ask(Api(ended(ahead)), pause=120)
    assert 120 + ahead <= result["waited"] < 125 + ahead
    assert result["slot"]["node"] == "delta"


@pytest.mark.parametrize(
    ("ledger", "pause_"),
    [(ended(0), 0), (ended(-120), 120), (ended(0, "firmware"), 120), (Ledger(), 120), (ended(3600), 120)],
    ids=["no pause", "it is over", "another operation", "the first node", "a clock that was wrong"],
)
def test_no_node_waits_longer_than_the_pause(ask, ledger, pause_):
    assert ask(Api(ledger), pause=pause_)["waited"] == 0


def test_a_node_that_ends_during_the_pause_starts_it_again(ask):
    api = Api(ended(0))
    api.at(60, lambda: api.ledger(ended(60)))
    assert 180 <= ask(api, pause=120)["waited"] < 250


def test_a_node_that_has_its_slot_does_not_wait(ask):
    taken = {"delta": Slot("delta", "kernel", "", "", boot_id="")}
    assert ask(Api(replace(ended(0), policy=Policy(), slots=taken)), pause=120)["waited"] == 0


def test_a_pause_can_not_be_negative(ask):
    with pytest.raises(InvalidInput, match="pause must be 0 or more"):
        ask(Api(), pause=-1)


@pytest.mark.parametrize("state", ["absent", "failed"])
@pytest.mark.parametrize("counts", [True, False])
def test_the_end_of_a_node_is_recorded(ask, state, counts):
    api = Api(Ledger(Policy(), {"delta": Slot("delta", "kernel", "", "")}))
    api.seconds = 50.0
    ask(api, state=state, ended=counts)
    (entry,) = [*store.ledger_of(api.config_map).operations] or [{}]
    assert entry.get("ended") == (to_text(api.now()) if counts else None)


@pytest.mark.parametrize(
    ("limits", "names", "outcome"),
    [
        ({"max_unavailable_per_domain": 1}, ("a2", "b1"), "granted"),
        ({"max_domains": 1}, ("b1", "a2"), "granted"),
        ({}, ("a2", "b1"), "wait"),
    ],
)
def test_a_node_whose_domain_is_full_does_not_block_another_domain(tmp_path, limits, names, outcome):
    cluster = MemoryCluster()
    cluster.lives("me")
    claim = {"run": "me", "operation": "kernel", "purpose": "rolling_reboot", "since": AT}
    cluster.node("a1", labels={"zone": "a"}, claim=claim)
    cluster.node("a2", labels={"zone": "a"})
    cluster.node("b1", labels={"zone": "b"})
    params = {"group": "default", "selector": "", "max_unavailable": "2" if limits else "1", "topology_key": "zone"}
    params |= {"max_failed": 0, **limits}
    params |= {"operation": "kernel", "run": "me", "wait_timeout": 60, "unhealthy_grace": 300, "count_others": True}
    cluster.ledger(ledger=Ledger(policy_of(params), {"a1": Slot("a1", "kernel", "me", AT, domain="a", claims=1)}))
    with waiting(cluster, params, *names, folder=str(tmp_path)) as (first, second):
        assert first() == "wait"
        assert second() == outcome


@contextmanager
def waiting(cluster, params, *names, folder):
    """The looks of nodes that wait for a slot, as functions that return the outcomes."""
    requests = []
    for name in names:
        context = Context({}, folder=folder)
        context.cluster = cluster
        node = cluster.get(paths.node(name))
        requests.append(
            slots._SlotRequest(context, {**params, "name": name, "state": "present"}, policy_of(params), node)
        )

    def look(request):
        return request._attempt(store.load(cluster, params["group"]), waiting=False).outcome

    try:
        yield [partial(look, request) for request in requests]
    finally:
        for request in requests:
            request._front.leave()


def test_a_node_under_the_slot_of_another_run_blocks_no_other_node(tmp_path):
    """It is not at the front of the queue, whether the other run gets the slot before or during the wait."""
    cluster = MemoryCluster()
    theirs = {"run": "other", "operation": "kernel", "purpose": "rolling_reboot", "since": AT}
    for run in ("me", "other"):
        cluster.lives(run)
    for name in ("a1", "a2", "a3"):
        cluster.node(name)
    params = {"group": "default", "selector": "", "max_unavailable": "2", "topology_key": "", "max_failed": 0}
    params |= {"operation": "kernel", "run": "me", "wait_timeout": 60, "unhealthy_grace": 300, "count_others": True}
    full = {name: Slot(name, "kernel", "other", AT, claims=1) for name in ("x", "y")}
    under_theirs = {"a1": Slot("a1", "kernel", "other", AT, claims=1)}

    def ledger(taken):
        cluster.ledger(ledger=Ledger(policy_of(params), taken))
        cluster.node("a1", claim=theirs if "a1" in taken else None)

    with waiting(cluster, params, "a1", "a2", folder=str(tmp_path)) as (first, second):
        ledger(full)
        assert first() == "wait"
        ledger(under_theirs)
        assert first() == "wait"
        ledger({})
        assert first() == "granted", "it has lined up again"
        ledger(under_theirs)
        assert first() == "wait"
        assert second() == "granted"


@pytest.mark.parametrize(
    ("run", "operation", "passes"),
    [("r", "op", True), ("", "op", False), ("r" * 1001, "op", False), ("r", "o" * 1001, False)],
)
def test_a_slot_passes_to_no_run_that_a_node_has_made_up(run, operation, passes):
    claim = json.dumps({"run": run, "operation": operation, "purpose": "rolling_reboot"})
    node = {"metadata": {"name": "n", "annotations": {"holdfast.dev/claim": claim}}}
    assert (slots.claimant_of(node) is not None) is passes
