# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch a host off by metal3: a soft power-off becomes a hard one, and the phase is recorded before each."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import UUID

import pytest
from unit.failover.play import ready_is
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    Held,
    HoldfastError,
    InvalidInput,
    Refused,
    TimedOut,
    Unreachable,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import confirm, power, record
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.annotation import NotDatable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.redfish_rules import BmcFailure, System

RECORD = {
    "id": "op",
    "run": "me",
    "holder": "",
    "reason": "",
    "started": AT,
    "since": AT,
    "phase": "claim",
    "phases": {},
    "boot_id": "boot-1",
    "facts": {"fence": "metal3"},
    "result": "",
    "detail": "",
}
CLAIM = {"run": "me", "operation": "op", "purpose": "failover", "since": AT}
FACTS = {"fence": "metal3", "host": "unit-7", "namespace": "metal", "key": "k", "mode": "soft"}


class Metal3:
    """What metal3 answers, one after the other, and what was recorded by then."""

    def __init__(self, cluster, *answers):
        self.cluster, self.answers, self.asked = cluster, list(answers), []

    def __call__(self, context, params, last_check):
        last_check(context.cluster, params["node"])
        record = self.cluster.marks()["failover"]
        assert (record["phase"], record["facts"]["mode"]) == ("fence", params["mode"])
        assert params["run"] == "me"
        self.asked.append((params["mode"], params["wait_timeout"]))
        answer = self.answers.pop(0)
        if isinstance(answer, HoldfastError):
            raise answer
        return {"changed": True, "evidence": answer}


@pytest.fixture
def cluster():
    found = MemoryCluster()
    found.node(ready=False, failover=RECORD, claim=CLAIM)
    return found


def switch(monkeypatch, cluster, *answers, **options):
    metal3 = Metal3(cluster, *answers)
    monkeypatch.setattr(power, "reboot_annotation", metal3)
    params = {
        "name": "node-1",
        "power": "off",
        "method": "metal3",
        "operation": "op",
        "run": "me",
        "facts": FACTS,
        "soft_timeout": 4,
        "timeout": 9,
        "confirm_seconds": 0,
        "override_holds": False,
        **options,
    }
    context = Context(params)
    context.cluster = cluster
    try:
        return power.failover_power(context, params), metal3.asked
    except HoldfastError as error:
        return error, metal3.asked


def test_a_soft_power_off(monkeypatch, cluster):
    done, asked = switch(monkeypatch, cluster, {"kind": "BareMetalHost"})
    assert done["evidence"] == {"kind": "BareMetalHost"}
    assert asked == [("soft", 4)]


def test_it_becomes_a_hard_one(monkeypatch, cluster):
    done, asked = switch(monkeypatch, cluster, TimedOut("It is on."), {"kind": "BareMetalHost"})
    assert done["changed"]
    assert asked == [("soft", 4), ("hard", 9)]
    assert cluster.marks()["failover"]["facts"]["mode"] == "hard"


def test_a_node_that_still_shuts_down_was_not_requested_to(monkeypatch, cluster):
    """The look timed out, and no soft power-off was sent. So no hard one follows."""
    reason = "node is shutting down"
    ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": reason}
    cluster.objects[paths.node("node-1")]["status"]["conditions"] = [ready]
    failed, asked = switch(monkeypatch, cluster, {}, timeout=0)
    assert (failed.kind, failed.fields["why"], failed.fields["sent"]) == ("timed_out", "shutting_down", False)
    assert asked == []


def test_a_look_that_was_too_slow_has_sent_nothing(monkeypatch, cluster):
    slow = TimedOut("5 times, the last check of the node did not count.", why="slow", sent=False)
    failed, asked = switch(monkeypatch, cluster, slow)
    assert (failed.fields["sent"], asked) == (False, [("soft", 4)])


def test_it_is_hard_at_once(monkeypatch, cluster):
    _done, asked = switch(monkeypatch, cluster, {}, facts={**FACTS, "mode": "hard"})
    assert asked == [("hard", 9)]


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        ([Held("It is held.")], False),
        ([Unreachable("The API is unavailable.")], True),
        ([TimedOut("It is on."), TimedOut("It is still on.")], True),
        ([TimedOut("It is on."), Held("It is held.")], True),
    ],
)
def test_a_failure_says_whether_the_host_may_go_off(monkeypatch, cluster, answers, sent):
    failed, _asked = switch(monkeypatch, cluster, *answers)
    assert failed.fields["sent"] is sent


@pytest.mark.parametrize("node", [{"ready": True}, {"ready": False, "boot_id": "boot-2"}])
def test_a_node_that_is_back_is_not_switched_off(monkeypatch, cluster, node):
    cluster.node(**node, failover=RECORD, claim=CLAIM)
    failed, asked = switch(monkeypatch, cluster)
    assert (failed.kind, failed.fields["sent"], asked) == ("came_back", False, [])


class TestItMayHaveBeenReady:
    """The run was paused: Ready has changed since the failover was recorded, and the boot ID has not."""

    @pytest.fixture
    def cluster(self, cluster):
        known = {**RECORD, "confirmed": "Unknown since 2026-11-21T08:00:00Z"}
        cluster.node(ready=False, failover=known, claim=CLAIM)
        ready_is(cluster, "False", AT)
        return cluster

    def switch(self, monkeypatch, cluster, comes_back, *answers):
        waits = []

        def wait_for(api, _collection, _name, _until, deadline):
            waits.append(deadline.seconds)
            if comes_back:
                ready_is(cluster, "True", AT)
            return api.find(paths.node("node-1"))

        monkeypatch.setattr(confirm, "wait_for", wait_for)
        return (*switch(monkeypatch, cluster, *answers, confirm_seconds=30), waits)

    def test_it_is_watched_again(self, monkeypatch, cluster):
        done, asked, waits = self.switch(monkeypatch, cluster, False, TimedOut("It is on."), {})
        assert (done["changed"], asked, waits) == (True, [("soft", 4), ("hard", 9)], [30])

    def test_it_is_ready_again(self, monkeypatch, cluster):
        failed, asked, _waits = self.switch(monkeypatch, cluster, True)
        assert (failed.kind, failed.fields["sent"], asked) == ("came_back", False, [])

    def changes(self, monkeypatch, cluster, *times):
        """Ready changes at these times, each time between the record and the key."""
        recorded, times = power._record, list(times)

        def pause(*arguments):
            found = recorded(*arguments)
            if times:
                ready_is(cluster, "False", times.pop(0))
            return found

        monkeypatch.setattr(power, "_record", pause)

    def test_it_changes_between_the_record_and_the_key(self, monkeypatch, cluster):
        self.changes(monkeypatch, cluster, "2026-11-21T08:59:59Z")
        done, asked, waits = self.switch(monkeypatch, cluster, False, {})
        assert (done["changed"], asked, waits) == (True, [("soft", 4)], [30, 30])
        assert cluster.marks()["failover"]["confirmed"] == "False since 2026-11-21T08:59:59Z"

    def test_it_keeps_changing(self, monkeypatch, cluster):
        self.changes(monkeypatch, cluster, *(f"2026-11-21T08:59:5{second}Z" for second in range(9)))
        failed, asked, _waits = self.switch(monkeypatch, cluster, False)
        assert (failed.kind, failed.fields["why"], failed.fields["sent"]) == ("refused", "changed", False)
        assert asked == []

    def test_it_keeps_changing_after_a_soft_power_off(self, monkeypatch, cluster):
        """The host has the key, and may go off."""
        times = (f"2026-11-21T08:59:5{second}Z" for second in range(1, 9))
        self.changes(monkeypatch, cluster, AT, *times)
        failed, asked, _waits = self.switch(monkeypatch, cluster, False, TimedOut("It is on."))
        assert (failed.fields["why"], failed.fields["sent"], asked) == ("changed", True, [("soft", 4)])

    def test_it_changes_between_the_look_and_the_record(self, monkeypatch, cluster):
        """The node controller gives the node up: Ready goes from False to Unknown, and the node stays down."""
        attempt, changes = record._attempt, [("Unknown", AT)]

        def pause(*arguments):
            if changes:
                ready_is(cluster, *changes.pop())
            return attempt(*arguments)

        monkeypatch.setattr(record, "_attempt", pause)
        done, _asked, waits = self.switch(monkeypatch, cluster, False, {})
        assert (done["changed"], waits) == (True, [30, 30])

    def test_it_changes_during_the_wait(self, monkeypatch, cluster):
        """The machine of the run was suspended during the wait, and the watch had to list again."""
        times = ["2026-11-21T08:59:59Z"]

        def wait_for(api, *_arguments):
            if times:
                ready_is(cluster, "False", times.pop())
            else:
                ready_is(cluster, "True", AT)
            return api.find(paths.node("node-1"))

        monkeypatch.setattr(confirm, "wait_for", wait_for)
        failed, asked = switch(monkeypatch, cluster, confirm_seconds=30)
        assert (failed.kind, failed.fields["sent"], asked) == ("came_back", False, [])

    def test_one_that_has_been_silent_for_so_long_is_not_waited_for(self, monkeypatch, cluster):
        ready_is(cluster, "Unknown", "2026-11-21T08:30:00Z")
        done, _asked, waits = self.switch(monkeypatch, cluster, False, {})
        assert (done["changed"], waits) == (True, [])


def test_a_hold_keeps_it_on(monkeypatch, cluster):
    cluster.hold()
    failed, asked = switch(monkeypatch, cluster)
    assert (failed.kind, failed.fields["sent"], asked) == ("held", False, [])


def test_a_host_is_not_switched_on_here(monkeypatch, cluster):
    failed, asked = switch(monkeypatch, cluster, power="on")
    assert isinstance(failed, InvalidInput)
    assert asked == []


class Machine:
    """A machine that does what the test says."""

    def __init__(self, cluster, *, reads=None, switches=None):
        self.cluster, self.reads, self.switches, self.sent = cluster, reads, switches, []
        self.facts = {"power_state": "Off", "uuid": None}

    def look(self, _node, _wanted):
        if self.reads:
            raise self.reads
        return True

    def switch(self, wanted, _look):
        self.record = self.cluster.marks()["failover"]
        self.sent.append(wanted)
        if self.switches:
            raise self.switches

    def wait(self, _wanted):
        pass


def by(monkeypatch, cluster, machines, *answers, first=None, ways=None):
    monkeypatch.setattr(power, "_machine", lambda _context, params: machines[params["method"]])
    ways = ways or [{"method": way, "facts": {"fence": way}} for way in machines]
    if first:
        ways = [first, *ways]
    return switch(monkeypatch, cluster, *answers, **ways[0], then=ways[1:])


class TestSeveralWays:
    def test_the_next_one_is_tried_if_nothing_was_sent(self, monkeypatch, cluster):
        machines = {
            "redfish": Machine(cluster, reads=BmcFailure("It does not answer.")),
            "fence_agent": Machine(cluster),
            "command": Machine(cluster),
        }
        done, _asked = by(monkeypatch, cluster, machines)
        assert done["method"] == "fence_agent"
        assert machines["redfish"].sent == machines["command"].sent == []
        attempt = {"method": "redfish", "why": "It does not answer."}
        assert done["facts"]["attempts"] == [attempt]
        # The record says with which way it was begun, before the request.
        record = machines["fence_agent"].record
        assert (record["phase"], record["facts"]["fence"], record["facts"]["attempts"]) == (
            "fence",
            "fence_agent",
            [attempt],
        )

    @pytest.mark.parametrize("error", [BmcFailure("It does not answer."), TimedOut("It is still on.")])
    def test_no_other_one_is_tried_after_a_request(self, monkeypatch, cluster, error):
        machines = {"redfish": Machine(cluster, switches=error), "fence_agent": Machine(cluster)}
        failed, _asked = by(monkeypatch, cluster, machines)
        assert (failed.fields["method"], failed.fields["sent"]) == ("redfish", True)
        assert machines["fence_agent"].sent == []

    def test_all_fail(self, monkeypatch, cluster):
        machines = {
            "redfish": Machine(cluster, reads=BmcFailure("It does not answer.")),
            "fence_agent": Machine(cluster, reads=InvalidInput("It is not installed.")),
        }
        failed, _asked = by(monkeypatch, cluster, machines)
        assert failed.message == "redfish failed: It does not answer. It is not installed."
        assert (failed.fields["method"], failed.fields["sent"]) == ("fence_agent", False)
        assert cluster.marks()["failover"]["phase"] == "claim"

    def test_a_host_that_would_not_act_leaves_no_key_to_remove(self, monkeypatch, cluster):
        refused = Refused("The host is paused.", why="inert")
        machines = {"redfish": Machine(cluster)}
        first = {"method": "metal3", "facts": FACTS}
        done, _asked = by(monkeypatch, cluster, machines, refused, first=first)
        assert done["method"] == "redfish"
        known = machines["redfish"].record["facts"]
        assert (known["fence"], known["key"], known["host"]) == ("redfish", None, None)

    def test_a_host_that_was_off_before_keeps_its_key(self, monkeypatch, cluster):
        machines = {"redfish": Machine(cluster)}
        first = {"method": "metal3", "facts": {**FACTS, "mode": "hard"}}
        done, _asked = by(monkeypatch, cluster, machines, NotDatable("It was off before."), first=first)
        assert done["method"] == "redfish"
        known = machines["redfish"].record["facts"]
        assert (known["fence"], known["key"], known["host"]) == ("redfish", "k", "unit-7")

    def test_its_key_takes_the_place_of_that_of_an_earlier_host(self, monkeypatch, cluster):
        before = {"fence": "redfish", "host": "unit-6", "namespace": "old", "key": "j", "mode": "hard"}
        machines = {"redfish": Machine(cluster, reads=BmcFailure("It does not answer.")), "command": Machine(cluster)}
        ways = [{"method": way, "facts": {**before, "fence": way}} for way in machines]
        first = {"method": "metal3", "facts": {**FACTS, "mode": "hard"}}
        done, _asked = by(monkeypatch, cluster, machines, NotDatable("It was off before."), first=first, ways=ways)
        known = machines["command"].record["facts"]
        assert (done["method"], known["key"], known["host"], known["namespace"]) == ("command", "k", "unit-7", "metal")

    def test_its_key_stays_on_record_if_the_next_way_fails(self, monkeypatch, cluster):
        machines = {"redfish": Machine(cluster, reads=BmcFailure("It does not answer."))}
        first = {"method": "metal3", "facts": {**FACTS, "mode": "hard"}}
        failed, _asked = by(monkeypatch, cluster, machines, NotDatable("It was off before."), first=first)
        assert (failed.fields["sent"], failed.fields["method"]) == (True, "redfish")
        assert cluster.marks()["failover"]["facts"]["key"] == "k"

    def test_a_hold_ends_it(self, monkeypatch, cluster):
        cluster.hold()
        machines = {"redfish": Machine(cluster), "fence_agent": Machine(cluster)}
        failed, _asked = by(monkeypatch, cluster, machines)
        assert failed.kind == "held"
        assert machines["redfish"].sent == machines["fence_agent"].sent == []


class Slow:
    """A BMC, a command or an agent whose controller is stopped before or after the look at the machine."""

    def __init__(self, clock, *, stopped_at, meanwhile):
        self.facts = {"power_state": "Off", "uuid": None}
        self.clock, self.stopped_at, self.meanwhile, self.sent = clock, stopped_at, meanwhile, []

    def look(self, _node, _wanted):
        self.stop("look")
        return True

    def stop(self, place):
        if self.stopped_at == place:
            self.stopped_at = None
            self.clock.now += 3600
            self.meanwhile()

    def switch(self, wanted, _look):
        self.sent.append(wanted)

    def wait(self, _wanted):
        pass


@pytest.mark.parametrize("stopped_at", ["look", "check"])
class TestBack:
    """A recovery that was stopped for so long that other runs have finished with the node."""

    @pytest.fixture
    def clock(self, monkeypatch):
        clock = SimpleNamespace(now=0.0)
        monkeypatch.setattr(power.last_look, "steady", lambda: clock.now)
        return clock

    def back(self, monkeypatch, cluster, machine, run="me"):
        monkeypatch.setattr(power, "_machine", lambda _context, _params: machine)
        find, asked = cluster.find, []

        def slow(path):
            found = find(path)
            if path.endswith("/nodes/node-1"):
                asked.append(path)
                if len(asked) == 2:
                    machine.stop("check")
            return found

        cluster.find = slow
        return switch(monkeypatch, cluster, power="on", method="redfish", run=run)[0]

    def test_its_claim_is_checked_directly_before(self, monkeypatch, cluster, clock, stopped_at):
        def lose():
            cluster.node(ready=False, failover=RECORD, claim={**CLAIM, "run": "another"})

        machine = Slow(clock, stopped_at=stopped_at, meanwhile=lose)
        failed = self.back(monkeypatch, cluster, machine)
        assert (failed.kind, machine.sent) == ("claim_lost", [])

    def test_while_nothing_changes_it_looks_again(self, monkeypatch, cluster, clock, stopped_at):
        machine = Slow(clock, stopped_at=stopped_at, meanwhile=lambda: None)
        assert self.back(monkeypatch, cluster, machine)["sent"]
        assert machine.sent == ["On"]

    def test_a_deleted_node_that_is_there_again_is_left_alone(self, monkeypatch, cluster, clock, stopped_at):
        del cluster.objects[paths.node("node-1")]
        machine = Slow(clock, stopped_at=stopped_at, meanwhile=lambda: cluster.node(ready=False, failover=RECORD))
        failed = self.back(monkeypatch, cluster, machine, run="")
        assert (failed.kind, failed.fields["why"], machine.sent) == ("refused", "created_again", [])


OF_NODE_2 = UUID("4c4c4544-0042-3510-8053-b9c04f564333")


@pytest.fixture(params=[OF_NODE_2, UUID(bytes=OF_NODE_2.bytes_le)], ids=["as the Node", "swapped"])
def uuid_of_node_2(cluster, request):
    """As the BMC writes it."""
    cluster.node("node-2", system_uuid=str(OF_NODE_2))
    return str(request.param).upper()


@pytest.mark.parametrize("deleted", [False, True])
def test_a_machine_that_is_another_node_now_stays_off(monkeypatch, cluster, uuid_of_node_2, deleted):
    if deleted:
        del cluster.objects[paths.node("node-1")]
    machine = Machine(cluster)
    machine.facts = {"power_state": "Off", "uuid": uuid_of_node_2}
    monkeypatch.setattr(power, "_machine", lambda _context, _params: machine)
    run = "" if deleted else "me"
    failed, _asked = switch(monkeypatch, cluster, power="on", method="redfish", run=run)
    assert (failed.kind, failed.fields["why"], machine.sent) == ("refused", "another_node", [])
    assert "node node-2 has this systemUUID" in failed.message


def by_redfish(monkeypatch, cluster, system, **options):
    """Switch by a BMC that reports this system, with the UUID that the user gives."""
    bmc = SimpleNamespace(uri=system.uri, read=lambda: system)
    monkeypatch.setattr(power, "Bmc", lambda _options: bmc)
    facts, given = {"fence": "redfish", "uri": system.uri}, {"uri": system.uri, "uuid": system.uuid}
    return switch(monkeypatch, cluster, method="redfish", facts=facts, bmc=given, **options)[0]


@pytest.mark.parametrize("state", [power.ON, power.OFF])
def test_the_machine_of_another_node_is_not_switched_off(monkeypatch, cluster, uuid_of_node_2, state):
    """Also if a person has copied the UUID from the wrong BMC."""
    system = System("https://bmc/redfish/v1/Systems/1", state, uuid_of_node_2, "https://bmc/reset")
    failed = by_redfish(monkeypatch, cluster, system)
    assert (failed.kind, failed.fields["why"], failed.fields["sent"]) == ("refused", "other_host", False)
    assert "is the systemUUID of node node-2" in failed.message


@pytest.mark.parametrize(
    ("system", "said"),
    [({"target": ""}, "it names none"), ({"resets": ("Nmi",)}, "allows no reset of type")],
    ids=["no target", "no reset"],
)
def test_a_system_that_can_not_be_switched_is_found_before_anything_is_sent(monkeypatch, cluster, system, said):
    """Then the next way is tried."""
    uri = "https://bmc/redfish/v1/Systems/1"
    known = {"uuid": "u", "target": f"{uri}/Actions/ComputerSystem.Reset", **system}
    found = by_redfish(monkeypatch, cluster, System(uri, power.ON, **known))
    assert said in found.message
    assert found.fields["sent"] is False
