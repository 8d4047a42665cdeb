# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds against a real API server: which one wins, what is left alone, and what a node must confirm."""

from __future__ import annotations

import json
import threading

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Held
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import gate
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shared.hold_rules import short_entry
from ansible_collections.holdfast.kubernetes.plugins.modules import lease_hold, lease_hold_info, node_info
from lab.patience import PATIENCE

SINCE = "2026-01-02T03:04:05.000006Z"
SHUTDOWN_INHIBITED = "ShutdownInhibited"
REASON = "holdfast.dev/reason"


class Holds:
    """Holds on one node in one namespace."""

    def __init__(self, world, node):
        self.world = world
        self.node = node
        self.common = {"node": node, "namespace": world.namespace}
        self.path = paths.lease(world.namespace, node)

    def take(self, holder="app", **more):
        return self.world.run(lease_hold, holder=holder, **{"wait": False, **self.common, **more})

    def release(self, holder="app", **more):
        return self.take(holder, state="absent", **more)

    def lease(self):
        return self.world.cluster.find(self.path)

    def all_but_the_renewal(self):
        """The Lease without what a repeated hold changes."""
        lease = self.lease()
        metadata = {
            key: value for key, value in lease["metadata"].items() if key not in ("resourceVersion", "managedFields")
        }
        return {**lease, "metadata": metadata, "spec": {**lease["spec"], "renewTime": None}}

    def bytes(self):
        """The Lease as the API has it, with its resourceVersion."""
        return json.dumps(self.lease(), sort_keys=True)

    def foreign(self, spec, **metadata):
        body = {"metadata": {"name": self.node, **metadata}, "spec": spec}
        return self.world.cluster.create(paths.leases(self.world.namespace), body)

    def confirm(self, *entries, status="True"):
        self.world.set_condition(self.node, SHUTDOWN_INHIBITED, status, ",".join(entries) or "NoLease")


@pytest.fixture
def holds(world):
    (node,) = world.nodes()
    return Holds(world, node)


class TestTaking:
    def test_what_is_written(self, holds):
        result = holds.take(reason="firmware", labels={"team": "storage"})
        lease = holds.lease()

        assert result["changed"]
        assert result["lease"] == lease
        assert lease["spec"]["holderIdentity"] == "app"
        assert lease["spec"]["acquireTime"]
        assert lease["metadata"]["name"] == holds.node
        assert lease["metadata"]["annotations"] == {REASON: "firmware"}
        assert lease["metadata"]["labels"]["team"] == "storage"
        assert (result["inhibited"], result["waited"]) == (False, 0)

    def test_twice_only_renews(self, holds):
        """The second write tells the task of the first one that another task relies on the Lease."""
        first = holds.take(reason="why")["lease"]
        before = holds.all_but_the_renewal()

        result = holds.take()

        assert (result["changed"], result["lease"]) == (False, holds.lease())
        assert result["diff"]["before"] == result["diff"]["after"]
        assert result["lease"]["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
        assert holds.all_but_the_renewal() == before

    @pytest.mark.core
    def test_of_many_at_once_exactly_one_wins(self, holds):
        futures = [
            holds.world.start(lease_hold, holder=f"app-{number}", wait=False, **holds.common) for number in range(20)
        ]
        results = [future.result() for future in futures]
        winner = holds.lease()["spec"]["holderIdentity"]

        won = [number for number, result in enumerate(results) if not result.get("failed")]
        lost = [result for result in results if result.get("failed")]
        assert [f"app-{number}" for number in won] == [winner]
        assert {result["error"] for result in lost} == {"held"}
        assert {result["holder"] for result in lost} == {winner}

    def test_a_released_lease_is_taken_by_one_of_many_too(self, holds):
        holds.foreign({"holderIdentity": "", "leaseTransitions": 3})
        futures = [
            holds.world.start(lease_hold, holder=f"app-{number}", wait=False, **holds.common) for number in range(10)
        ]

        assert sum(not future.result().get("failed") for future in futures) == 1
        assert holds.lease()["spec"]["leaseTransitions"] == 4

    def test_one_holder_many_times_at_once(self, holds):
        futures = [holds.world.start(lease_hold, holder="app", wait=False, **holds.common) for _round in range(10)]

        assert sum(future.result()["changed"] for future in futures) == 1
        assert not any(future.result().get("failed") for future in futures)

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"node": "no-such-node"}, "not_found", "no Node no-such-node"),
            ({"namespace": "no-such-namespace"}, "not_found", "no-such-namespace"),
            ({"namespace": "kube-node-lease"}, "invalid_input", "reserved"),
            ({"namespace": "holdfast"}, "invalid_input", "reserved"),
            ({"holder": "a,b"}, "invalid_input", "comma"),
            ({"holder": " "}, "invalid_input", "empty"),
            ({"wait_timeout": -1}, "invalid_input", "negative"),
        ],
    )
    def test_what_can_not_be(self, holds, options, error, words):
        result = holds.take(**options)

        assert (result["failed"], result["changed"], result["error"]) == (True, False, error)
        assert words in result["msg"]

    def test_check_mode(self, holds):
        result = holds.take(check_mode=True, wait=True, reason="why")
        assert result["changed"]
        assert result["lease"]["spec"]["holderIdentity"] == "app"
        assert holds.lease() is None

        holds.take()
        before = holds.bytes()
        assert holds.take(check_mode=True)["changed"] is False
        assert holds.release(check_mode=True)["changed"]
        assert holds.take("other", check_mode=True)["error"] == "held"
        assert holds.bytes() == before


class TestForeignLeases:
    def test_are_never_taken_and_never_released(self, holds):
        holds.foreign({"holderIdentity": "them", "acquireTime": SINCE}, annotations={"theirs": "1"})
        before = holds.bytes()

        taken, released = holds.take(reason="mine", labels={"mine": "1"}), holds.release()

        for result in (taken, released):
            assert (result["failed"], result["changed"], result["error"]) == (True, False, "held")
            assert (result["holder"], result["acquired"]) == ("them", SINCE)
            assert f"belongs to them since {SINCE}, not to app" in result["msg"]
        assert holds.bytes() == before

    def test_also_without_an_acquire_time(self, holds):
        holds.foreign({"holderIdentity": "them"})
        before = holds.bytes()

        assert holds.take()["error"] == "held"
        assert holds.release()["error"] == "held"
        assert holds.bytes() == before

    def test_a_released_lease_of_an_election_is_used_and_emptied(self, holds):
        """As client-go's leader election leaves it with ReleaseOnCancel."""
        theirs = {"labels": {"app": "theirs"}, "annotations": {"theirs": "1"}}
        left = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": SINCE, "renewTime": SINCE}
        made = holds.foreign({**left, "leaseTransitions": 7}, **theirs)

        holds.take(reason="why")
        taken = holds.lease()
        assert taken["spec"]["holderIdentity"] == "app"
        assert taken["spec"]["acquireTime"] != SINCE
        assert taken["spec"]["leaseTransitions"] == 8
        result = holds.release()
        after = holds.lease()

        assert result["changed"]
        assert after["metadata"]["uid"] == made["metadata"]["uid"]
        assert after["spec"] == {"leaseDurationSeconds": 1, "leaseTransitions": 8}
        assert after["metadata"]["labels"] == theirs["labels"]
        assert after["metadata"]["annotations"] == theirs["annotations"]

    def test_an_old_reason_does_not_stay_for_the_next_holder(self, holds):
        holds.foreign({}, annotations={REASON: "of the holder before"})
        holds.take()

        (found,) = holds.world.run(lease_hold_info, node=holds.node)["holds"]
        assert found["reason"] == ""


class TestReleasing:
    def test_our_own_lease_is_deleted(self, holds):
        holds.take()
        result = holds.release()

        assert (result["changed"], result["lease"]) == (True, None)
        assert holds.lease() is None
        assert holds.release()["changed"] is False

    def test_an_empty_lease_is_left(self, holds):
        holds.foreign({"leaseTransitions": 1})
        before = holds.bytes()

        assert holds.release()["changed"] is False
        assert holds.bytes() == before

    @pytest.mark.parametrize("wait", [True, False])
    def test_does_not_need_the_node(self, holds, wait):
        holds.take()
        holds.world.cluster.delete(paths.node(holds.node))

        result = holds.release(wait=wait)

        assert (result["changed"], result["inhibited"]) == (True, False)

    def test_waits_for_the_confirmation_of_the_node(self, holds):
        holds.take()
        holds.confirm(f"{holds.world.namespace}/app", "other/one")
        leases = holds.world.record(paths.leases(holds.world.namespace))
        waiting = holds.world.start(lease_hold, holder="app", state="absent", wait_timeout=PATIENCE, **holds.common)
        leases.until(lambda changes: any(change.deleted for change in changes))
        assert not waiting.done()
        holds.confirm("other/one", f"{holds.world.namespace}/app2")

        result = waiting.result()

        assert (result["changed"], result["inhibited"]) == (True, False)
        assert not result.get("warnings"), result

    def test_a_node_that_does_not_say_so_is_a_warning(self, holds):
        holds.take()
        holds.confirm(f"{holds.world.namespace}/app")

        for changed in (True, False):
            result = holds.release(wait=True, wait_timeout=1)
            assert (result.get("failed"), result["changed"], result["inhibited"]) == (None, changed, True)
            (warning,) = result["warnings"]
            assert "is released, but the condition ShutdownInhibited" in warning
        assert holds.lease() is None


class TestConfirmation:
    def test_waits_for_the_node_to_say_so(self, holds):
        mine = f"{holds.world.namespace}/app"
        leases = holds.world.record(paths.leases(holds.world.namespace))

        def agent():
            leases.until(lambda changes: changes)
            holds.confirm("other/one", status="True")
            holds.confirm("other/one", mine)

        thread = threading.Thread(target=agent)
        thread.start()
        result = holds.take(wait=True, wait_timeout=PATIENCE)
        thread.join()

        assert not result.get("failed"), result
        assert result["inhibited"] is True
        assert holds.release()["inhibited"] is True

    @pytest.mark.parametrize(
        ("entry", "status"),
        [
            ("{}2", "True"),
            ("x{}", "True"),
            ("other/one,{}-2", "True"),
            ("{}", "False"),
            ("{}", "Unknown"),
            (None, None),
        ],
    )
    def test_a_similar_name_is_no_confirmation_and_the_new_lease_is_removed(self, holds, entry, status):
        if entry:
            holds.confirm(entry.format(f"{holds.world.namespace}/app"), status=status)

        result = holds.take(wait=True, wait_timeout=1)

        assert (result["failed"], result["error"], result["inhibited"]) == (True, "timed_out", False)
        assert result["taken_back"] is True
        assert "did not confirm the hold" in result["msg"]
        assert "node agent" in result["msg"]
        assert holds.lease() is None

    def test_confirmed_before_needs_no_time(self, holds):
        holds.confirm(f"{holds.world.namespace}/app")

        assert holds.take(wait=True, wait_timeout=0)["inhibited"] is True

    def test_a_hold_of_the_same_holder_stays(self, holds):
        holds.take()
        before = holds.all_but_the_renewal()

        result = holds.take(wait=True, wait_timeout=1)

        assert (result["error"], result["taken_back"], result["changed"]) == ("timed_out", False, False)
        assert holds.all_but_the_renewal() == before

    def test_a_lease_of_others_is_emptied_not_deleted(self, holds):
        made = holds.foreign({"holderIdentity": ""})

        assert holds.take(wait=True, wait_timeout=1)["taken_back"] is True
        after = holds.lease()
        assert after["metadata"]["uid"] == made["metadata"]["uid"]
        assert "holderIdentity" not in after["spec"]


class TestInfo:
    def test_lists_holds_of_all_namespaces_and_nothing_else(self, holds):
        holds.take(reason="why")
        leases = paths.leases(holds.world.namespace)
        election = {"holderIdentity": "leader", "acquireTime": SINCE}
        holds.world.cluster.create(leases, {"metadata": {"name": "an-election"}, "spec": election})
        info = holds.world.run(lease_hold_info, namespace=holds.world.namespace)

        assert info["changed"] is False
        (found,) = info["holds"]
        assert (found["node"], found["holder"], found["reason"]) == (holds.node, "app", "why")
        assert found["held_seconds"] >= 0
        assert holds.world.run(lease_hold_info, node=holds.node)["holds"][0] | {"held_seconds": 0} == found | {
            "held_seconds": 0
        }

    def test_never_fails_on_what_is_not_there(self, holds):
        for options in ({"node": "no-such-node"}, {"namespace": "no-such-namespace"}):
            assert holds.world.run(lease_hold_info, **options)["holds"] == []

    def test_waits_until_it_is_free(self, holds):
        holds.take()
        waiting = holds.world.start(lease_hold_info, node=holds.node, wait_for="free", wait_timeout=PATIENCE)
        holds.release()

        assert waiting.result()["holds"] == []

    @pytest.mark.parametrize("wait_timeout", [0, 1])
    def test_names_the_remaining_holders(self, holds, wait_timeout):
        holds.take(reason="why")

        result = holds.world.run(lease_hold_info, node=holds.node, wait_for="free", wait_timeout=wait_timeout)

        assert (result["failed"], result["error"]) == (True, "timed_out")
        assert [item["holder"] for item in result["holds"]] == ["app"]
        assert f"{holds.world.namespace}/app since" in result["msg"]


class TestGate:
    """The check before every power-off."""

    def look(self, holds, *, override=False):
        return gate.check(holds.world.cluster, holds.node, override_holds=override)

    def test_the_node_is_free(self, holds):
        passed = self.look(holds)

        assert passed.boot_id == holds.world.node(holds.node)["status"]["nodeInfo"]["bootID"]
        assert passed.overridden == []

    def test_a_lease_alone_counts(self, holds):
        holds.take(reason="why")

        with pytest.raises(Held, match="why") as caught:
            self.look(holds)
        assert [item["holder"] for item in caught.value.fields["holds"]] == ["app"]

    def test_the_condition_alone_counts(self, holds):
        holds.confirm("ns/gone")

        with pytest.raises(Held, match=r"ns/gone.*No Lease holds the node any longer.*systemctl status holdfast-agent"):
            self.look(holds)
        (overridden,) = self.look(holds, override=True).overridden
        assert (overridden["namespace"], overridden["holder"]) == ("ns", "gone")
        # No agent is there to clear it.
        holds.world.set_condition(holds.node, "Ready", "Unknown", "NodeStatusUnknown")
        with pytest.raises(Held, match="No Lease holds the node any longer"):
            self.look(holds)

    @pytest.mark.parametrize(("entry", "status"), [("ns/gone", "False"), ("ns/gone", "Unknown")])
    def test_a_condition_that_is_not_true_does_not(self, holds, entry, status):
        holds.confirm(entry, status=status)

        assert self.look(holds).overridden == []

    def test_override_passes_and_is_recorded(self, holds):
        holds.take()

        assert [item["holder"] for item in self.look(holds, override=True).overridden] == ["app"]

    def test_after_the_release(self, holds):
        holds.take()
        holds.release()

        assert self.look(holds).overridden == []


@pytest.mark.parametrize("acquired", ["0000-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000001Z"])
def test_what_one_tenant_writes_stops_no_reader(holds, acquired):
    """An absurd time and a holder of 220 KB: the node is held, and each reader reports that in a few words."""
    holds.foreign({"holderIdentity": "x" * 220_000, "acquireTime": acquired})
    name = holds.node

    (listed,) = holds.world.run(lease_hold_info, node=name)["holds"]
    (seen,) = holds.world.run(node_info, name=name)["nodes"]
    with pytest.raises(Held) as held:
        gate.check(holds.world.cluster, name, override_holds=False)
    refused = holds.take("mine")

    assert (listed["held_seconds"], len(listed["holder"])) == (0, 270)
    assert seen["holds"] == [listed]
    assert len(held.value.message) < 1000
    assert refused["error"] == "held"
    assert len(refused["msg"]) < 1000


def test_a_hold_that_is_named_by_its_hash_is_confirmed_and_released(holds):
    """A node names a hold by its hash when it has too many holds to fit."""
    mine = short_entry(f"{holds.world.namespace}/app")
    holds.confirm("other/holder", mine)

    assert holds.take(wait=True)["inhibited"]
    assert gate.check(holds.world.cluster, holds.node, override_holds=True).overridden[0]["holder"] == "app"
    holds.confirm("other/holder")
    released = holds.release(wait=True)
    assert (released["inhibited"], released["warnings"]) == (False, [])
