# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a failover begins, or is resumed."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from unit.failover.play import RECORD, ready_is
from unit.reboot.memory_cluster import AT, NOW, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Held, Refused, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger, Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import audit, confirm, steps
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.rules import FENCE, STOP
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.turn import _STEP

RECORDS = [
    None,
    {**RECORD, "phase": "claim", "result": ""},
    {**RECORD, "phase": "claim", "result": "failed"},
    # Nothing says that a power-off was sent.
    {**RECORD, "phase": "fence", "result": ""},
]


def silent_node(record, since):
    cluster = MemoryCluster()
    cluster.node(ready=False, **({"failover": record} if record else {}))
    ready_is(cluster, "Unknown", f"{NOW - timedelta(seconds=since):%FT%TZ}")
    return cluster


def step(cluster, max_unhealthy="100%", **more):
    options = {**more, "name": "node-1", "run": "r2", "direction": "failover", "holder": "me", "quorum_asked": False}
    context = Context({})
    context.cluster = cluster
    return steps.failover_step(context, {**_STEP, "max_unhealthy": max_unhealthy, "claim_timeout": 0, **options})


@pytest.mark.parametrize(
    ("run", "state", "refused"), [("live", "active", False), ("dead", "active", True), ("live", "failed", True)]
)
def test_a_node_that_a_rolling_reboot_has_taken_down_is_not_part_of_a_storm(run, state, refused):
    cluster = silent_node(None, since=60)
    cluster.node("node-2", ready=False)
    cluster.node("node-3")
    cluster.lives("live")
    cluster.ledger(ledger=Ledger(slots={"node-2": Slot("node-2", "kernel", run, AT, state=state)}))
    if refused:
        with pytest.raises(Refused, match="2 of 3 nodes are not Ready"):
            step(cluster, "40%")
    else:
        assert step(cluster, "40%")["step"] == FENCE


class TestRenamed:
    """The name of a machine has changed: its kubelet runs as another Node, and the old Node is silent."""

    @pytest.fixture
    def cluster(self):
        found = silent_node(None, since=60)
        found.node("new-name")
        found.hold("new-name")
        for name in ("node-1", "new-name"):
            found.objects[paths.node(name)]["spec"]["providerID"] = "metal3://metal/host-3"
        return found

    @pytest.mark.parametrize("fence", ["metal3", "redfish", "command", "fence_agent"])
    def test_it_is_not_failed_over(self, cluster, fence):
        # The new Node has not the labels of the old one.
        cluster.objects[paths.node("node-1")]["metadata"]["labels"]["pool"] = "a"
        with pytest.raises(Refused, match="Node node-1 and Node new-name may be the same machine"):
            step(cluster, fence=fence, selector="pool=a")
        assert cluster.writes == []

    def test_it_is_if_a_person_vouches_for_it(self, cluster):
        assert step(cluster, fence="attestation")["step"] == FENCE


@pytest.mark.parametrize(
    ("purpose", "alive", "ended"),
    [
        ("failover", False, True),
        ("rolling_reboot", False, False),
        # The claim that it had named a run that lives: a node can write its own claim.
        ("failover", True, False),
    ],
)
def test_the_lease_of_the_run_that_it_resumes_is_deleted(purpose, alive, ended, monkeypatch):
    cluster = silent_node({**RECORD, "phase": "claim", "result": ""}, since=60)
    claim = {"run": "dead", "operation": "op", "purpose": purpose, "since": AT}
    cluster.objects[paths.node("node-1")]["metadata"]["annotations"]["holdfast.dev/claim"] = json.dumps(claim)
    cluster.lives("dead")
    lease = next(item for path, item in cluster.objects.items() if "/leases/" in path)
    renewed, lease["spec"]["renewTime"] = lease["spec"]["renewTime"], "2026-11-20T09:00:00.000000Z"
    take = steps.claims.take

    def taken(*arguments, **options):
        found = take(*arguments, **options)
        lease["spec"]["renewTime"] = renewed if alive else lease["spec"]["renewTime"]
        return found

    monkeypatch.setattr(steps.claims, "take", taken)
    assert step(cluster)["taken_from"] == "dead"
    assert ("dead" in [run.id for run in runs.all_runs(cluster)]) is not ended


def test_the_next_failover_of_a_node_that_a_person_brought_back_is_a_new_one():
    """Its first failover is over: it keeps its entry, and what was sent then says nothing about now."""
    old = {**RECORD, "phase": "move", "result": "moved", "boot_id": "an-earlier-boot", "facts": {"fence": "redfish"}}
    cluster = silent_node(old, since=60)
    audit.note(cluster, "node-1", old, {}, check=lambda: None)

    found = step(cluster)

    new = json.loads(cluster.find(paths.node("node-1"))["metadata"]["annotations"]["holdfast.dev/failover"])
    assert (found["step"], found["resumed"]) == (FENCE, False)
    assert (new["phase"], new["result"], new["holder"], new["boot_id"]) == ("claim", "", "me", "boot-1")
    assert new["id"] != old["id"]
    entries = {entry["operation"]: entry for entry in map(json.loads, audit.read(cluster).values())}
    assert entries[old["id"]]["result"] == "recovered"
    assert entries[old["id"]]["reason"] == old["reason"]
    assert entries[new["id"]]["boot_id"] == "boot-1"


@pytest.mark.parametrize("record", RECORDS)
class TestConfirm:
    """A node that has just become silent is watched first, whatever an earlier run has seen."""

    def test_one_that_comes_back_is_left_alone(self, record, monkeypatch):
        cluster, waits = silent_node(record, since=5), []

        def comes_back(api, _collection, _name, until, deadline):
            waits.append(deadline.seconds)
            cluster.objects[paths.node("node-1")]["status"]["conditions"][0]["status"] = "True"
            found = api.find(paths.node("node-1"))
            assert until(found)
            return found

        monkeypatch.setattr(confirm, "wait_for", comes_back)
        if record:
            # What the earlier run did is undone.
            assert step(cluster)["step"] == STOP
        else:
            with pytest.raises(Refused, match="is Ready"):
                step(cluster)
        assert waits == [25]

    def test_one_that_has_been_silent_for_so_long_is_not_waited_for(self, record, monkeypatch):
        monkeypatch.setattr(confirm, "wait_for", lambda *_arguments: pytest.fail("it waits"))
        assert step(silent_node(record, since=60))["step"] == FENCE


@pytest.fixture
def waits(monkeypatch):
    """The seconds for which the node is watched. It stays down."""
    found = []

    def stays_down(api, _collection, _name, _until, deadline):
        found.append(deadline.seconds)
        return api.find(paths.node("node-1"))

    monkeypatch.setattr(confirm, "wait_for", stays_down)
    return found


def test_one_that_may_have_been_ready_during_the_wait_for_the_claim_is_watched_again(monkeypatch, waits):
    cluster = silent_node(None, since=60)
    claimed = steps._FailoverStep._claim

    def claim(self, *arguments):
        claimed(self, *arguments)
        ready_is(cluster, "False", AT)

    monkeypatch.setattr(steps._FailoverStep, "_claim", claim)
    assert step(cluster)["step"] == FENCE
    assert waits == [30]


def test_one_whose_condition_changes_before_the_record_is_watched_again(monkeypatch, waits):
    """The node controller gives the node up after the confirmation: the node stays down."""
    cluster, changes = silent_node(None, since=60), [("Unknown", AT)]
    begin = steps._FailoverStep._begin

    def pause(self, *arguments, **more):
        if changes:
            ready_is(cluster, *changes.pop())
        return begin(self, *arguments, **more)

    monkeypatch.setattr(steps._FailoverStep, "_begin", pause)
    assert step(cluster)["step"] == FENCE
    assert waits == [30]
    assert cluster.marks()["failover"]["confirmed"] == f"Unknown since {AT}"


def test_one_whose_condition_keeps_changing_is_not_claimed(monkeypatch):
    cluster, seconds = silent_node(None, since=5), iter(range(9))

    def changes(api, *_arguments):
        ready_is(cluster, "False", f"2026-11-21T08:59:5{next(seconds)}Z")
        return api.find(paths.node("node-1"))

    monkeypatch.setattr(confirm, "wait_for", changes)
    with pytest.raises(Refused, match="Find out why the condition changes") as refused:
        step(cluster)
    assert (refused.value.fields["why"], cluster.writes) == ("changed", [])


def test_one_that_another_run_has_given_back_during_the_wait_for_the_claim_is_watched(monkeypatch, waits):
    """It had booted again, so the other run ended its failover. It is not Ready yet."""
    record = {**RECORD, "phase": "fence", "result": "", "boot_id": "boot-0"}
    cluster = silent_node(record, since=5)
    claimed = steps._FailoverStep._claim

    def claim(self, *arguments):
        cluster.objects[paths.node("node-1")]["metadata"]["annotations"].pop("holdfast.dev/failover")
        claimed(self, *arguments)

    monkeypatch.setattr(steps._FailoverStep, "_claim", claim)
    assert step(cluster)["step"] == FENCE
    assert waits == [25]


def test_a_claim_that_can_not_be_returned_does_not_hide_the_reason(monkeypatch):
    cluster = silent_node(None, since=60)
    claimed = steps._FailoverStep._claim

    def claim(self, *arguments):
        claimed(self, *arguments)
        cluster.hold()

    def fails(*_arguments, **_options):
        raise Unreachable("The API server gives no answer.")

    monkeypatch.setattr(steps._FailoverStep, "_claim", claim)
    monkeypatch.setattr(steps.claims, "give_back", fails)
    with pytest.raises(Held) as held:
        step(cluster)
    assert "is held" in held.value.message
    assert "The claim stays, and the next run takes it over: The API server gives no answer." in held.value.message
    assert runs.all_runs(cluster) == [], "so the next run takes the claim over at once"


def test_one_that_is_held_during_its_confirmation_stays_as_it_is(monkeypatch):
    """The claim of a dead run stays, too."""
    cluster = silent_node({**RECORD, "phase": "claim", "result": ""}, since=5)

    def is_held(api, *_arguments):
        cluster.hold()
        return api.find(paths.node("node-1"))

    monkeypatch.setattr(confirm, "wait_for", is_held)
    with pytest.raises(Held):
        step(cluster)
    assert cluster.writes == []
