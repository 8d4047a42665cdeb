# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who writes and removes which annotation: a BareMetalHost, its Node and its holds live in memory."""

from __future__ import annotations

import copy
import json
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    Held,
    InvalidInput,
    NotFound,
    Outdated,
    Refused,
    TimedOut,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import Claimed, ClaimLost
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import annotation, last_look
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.annotation import NotOff, reboot_annotation
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.host_rules import Written
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.reboot_watch import Outcome
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.still_down_rules import CameBack
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.target import Target, may_remove_key

NODE = "/api/v1/nodes/n"
HOST = "/apis/metal3.io/v1alpha1/namespaces/metal/baremetalhosts/h"
BASE, RECORDS = "reboot.metal3.io", "holdfast.dev/reboot-keys"
THEIRS = {"theirs": " kept ", f"{BASE}/other": '{"mode":   "hard"}', "baremetalhost.metal3.io/dataimage": ""}


class Server:
    """The part of both API servers that is needed."""

    def __init__(self, **status):
        self.objects = {
            NODE: {
                "metadata": {"name": "n", "uid": "node", "annotations": {}, "resourceVersion": "1"},
                "spec": {"providerID": "metal3://metal/h/m"},
                "status": {"nodeInfo": {"bootID": "b"}},
            },
            HOST: {
                "metadata": {
                    "namespace": "metal",
                    "name": "h",
                    "uid": "host",
                    "annotations": dict(THEIRS),
                    "resourceVersion": "1",
                },
                "spec": {"online": True},
                "status": {"poweredOn": True, "provisioning": {"state": "provisioned"}, **status},
            },
        }
        self.holds = []
        self.before_write = None
        self.sent_once = []
        self.requests = 0
        self.dry_run = True
        self.serves_hosts = True

    def now(self):
        return datetime(2026, 5, 4, tzinfo=timezone.utc)

    def find(self, path):
        return copy.deepcopy(self.objects.get(path))

    def get(self, path):
        if path not in self.objects:
            raise NotFound(path)
        return self.find(path)

    def pages(self, path, **_options):
        if not self.serves_hosts:
            raise NotFound(path)
        yield {"metadata": {"resourceVersion": "1"}, "items": self.items(path)}

    def items(self, path, **_selectors):
        if path == "/api/v1/nodes":
            return [self.find(NODE)] if NODE in self.objects else []
        if path.endswith("/baremetalhosts"):
            return [self.find(HOST)]
        return copy.deepcopy(self.holds)

    def merge(self, path, patch, *, once=False):
        self.sent_once.append(once)
        if self.before_write:
            act, self.before_write = self.before_write, None
            act()
        metadata = self.objects[path]["metadata"]
        assert set(patch) == {"metadata"}
        if patch["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise ApiFailure("another client was faster", status=409)
        self.annotate(path, patch["metadata"]["annotations"])
        return self.find(path)

    def annotate(self, path, changes):
        metadata = self.objects[path]["metadata"]
        metadata["resourceVersion"] += "1"
        for key, value in changes.items():
            metadata["annotations"].pop(key, None)
            if value is not None:
                metadata["annotations"][key] = value

    @property
    def annotations(self):
        return self.objects[HOST]["metadata"]["annotations"]

    @property
    def keys(self):
        return {name: value for name, value in self.annotations.items() if name.startswith(BASE)}

    def hold(self):
        self.holds.append(
            {
                "metadata": {"name": "n", "namespace": "shop"},
                "spec": {"holderIdentity": "db", "acquireTime": "2026-05-03T00:00:00.000000Z"},
            }
        )

    def claim(self, run):
        self.annotate(NODE, {"holdfast.dev/claim": json.dumps({"run": run, "operation": "o"})})

    def run(self, last_check=None, **options):
        warnings = []
        context = Context({}, False, warnings.append)
        context.__dict__.update(cluster=self, management=self)
        params = {
            "node": "n",
            "key": "ours",
            "mode": "soft",
            "state": "present",
            "wait": False,
            "wait_timeout": 0,
            "override_holds": False,
            **options,
        }
        return {**reboot_annotation(context, params, last_check), "warnings": warnings}


def test_a_key_stays_while_only_the_uid_of_the_consumer_has_changed():
    """clusterctl move does that. The key keeps off what a failover has fenced."""
    server = Server()
    consumer = {"kind": "Metal3Machine", "namespace": "metal", "name": "m", "uid": "one"}
    server.objects[HOST]["spec"]["consumerRef"] = consumer
    server.run()
    consumer["uid"] = "two"
    moved = server.run(state="expired", node="")
    assert (moved["removed"], [item["annotation"] for item in moved["kept"]]) == ([], [f"{BASE}/ours"])
    (warning,) = moved["warnings"]
    assert "its consumer metal/m has another UID" in warning
    assert f"{BASE}/ours" in server.keys
    consumer["name"] = "m-2"
    assert [item["why"] for item in server.run(state="expired", node="")["removed"]] == ["it has another consumer now"]


def test_the_key_is_set_and_removed():
    server = Server()
    done = server.run(mode="hard")
    assert done["changed"]
    assert server.keys == {f"{BASE}/other": THEIRS[f"{BASE}/other"], f"{BASE}/ours": '{"mode": "hard"}'}
    assert json.loads(server.annotations[RECORDS])["ours"]["boot_id"] == "b"
    assert done["diff"]["after"]["annotations"][f"{BASE}/ours"] == '{"mode": "hard"}'
    assert server.run(mode="hard")["changed"] is False

    assert server.run(state="absent")["changed"]
    assert server.annotations == THEIRS
    assert server.run(state="absent")["changed"] is False


@pytest.mark.parametrize("key", ["ours", None])
def test_a_host_that_is_deleted_after_the_request_may_be_off(monkeypatch, key):
    """An error that a host is not found says that nothing was sent."""
    server = Server()
    del server.annotations[f"{BASE}/other"]
    for name in ("_wait_until_off", "_wait_until_rebooted"):
        monkeypatch.setattr(annotation._Annotation, name, lambda self, *_arguments: self._target.read())
    server.merge, merge = lambda *given, **more: (merge(*given, **more), server.objects.pop(HOST))[0], server.merge
    with pytest.raises(NotOff, match=r"metal/h no longer exists.* may have acted on the request") as failed:
        server.run(key=key, wait=True)
    assert (failed.value.kind, failed.value.fields["why"]) == ("not_off", "gone")


def test_another_mode_keeps_what_was_known():
    server = Server()
    server.run()
    record = server.annotations[RECORDS]
    server.objects[HOST]["status"]["poweredOn"] = False
    done = server.run(mode="hard")

    assert done["changed"]
    assert server.annotations[f"{BASE}/ours"] == '{"mode": "hard"}'
    assert server.annotations[RECORDS] == record
    assert done["evidence"]["seen"] == "poweredOn went from true to false after the key was written"


def test_the_evidence():
    server = Server()
    assert server.run(run="")["evidence"] is None
    server.objects[HOST]["status"]["poweredOn"] = False
    evidence = server.run()["evidence"]

    assert {key: evidence[key] for key in ("kind", "host", "namespace", "uid", "key", "node", "boot_id")} == {
        "kind": "BareMetalHost",
        "host": "h",
        "namespace": "metal",
        "uid": "host",
        "key": "ours",
        "node": "n",
        "boot_id": "b",
    }


def test_a_host_that_was_off_proves_nothing():
    server = Server(poweredOn=False, lastUpdated="2026-05-03T23:59:00Z")
    assert server.run()["evidence"] is None
    # metal3 saves the status for another reason.
    server.objects[HOST]["status"]["lastUpdated"] = "2026-05-04T00:01:00Z"
    assert server.run()["evidence"] is None


def test_a_host_that_was_off_and_is_seen_on_can_be_seen_to_go_off(monkeypatch):
    server = Server(poweredOn=False)
    seen = iter([True, False])

    def wait_for(_cluster, _path, _name, _until, _deadline):
        power = next(seen)
        server.objects[HOST]["status"]["poweredOn"] = power
        server.annotate(HOST, {})
        return server.find(HOST)

    monkeypatch.setattr(annotation, "wait_for", wait_for)
    done = server.run(wait=True, wait_timeout=60)
    assert done["evidence"]["seen"] == "poweredOn went from true to false after the key was written"


class TestOfAnEarlierBoot:
    """A key of an earlier try; the node has booted by itself since, and hangs again."""

    @pytest.fixture
    def server(self):
        found = Server()
        found.run(mode="hard")
        found.objects[NODE]["status"]["nodeInfo"]["bootID"] = "c"
        return found

    def test_the_record_is_written_again(self, server):
        assert server.run(mode="hard")["changed"]
        server.objects[HOST]["status"]["poweredOn"] = False
        assert server.run(mode="hard")["evidence"]["boot_id"] == "c"

    def test_the_gate_is_passed_again(self, server):
        server.hold()
        before = dict(server.annotations)
        with pytest.raises(Held):
            server.run(mode="hard")
        assert server.annotations == before

    def test_the_power_of_before_proves_nothing(self, server):
        server.objects[HOST]["status"]["poweredOn"] = False
        assert server.run(mode="hard")["evidence"] is None

    def test_a_single_reboot(self):
        server = Server()
        server.annotate(HOST, {f"{BASE}/other": None})
        server.run(key=None)
        server.objects[NODE]["status"]["nodeInfo"]["bootID"] = "c"
        server.run(key=None)
        assert json.loads(server.annotations[RECORDS])[""]["boot_id"] == "c"


class TestLastLook:
    """What has to be so directly before the host is told to go off."""

    def test_another_boot(self):
        server = Server()
        assert server.run(boot_id="b")["changed"]
        server = Server()
        with pytest.raises(Refused, match="was rebooted since") as refused:
            server.run(boot_id="a")
        assert refused.value.fields["why"] == "new_boot"
        assert server.annotations == THEIRS

    @pytest.mark.parametrize("back", ["ready", "booted"])
    def test_a_node_that_is_back(self, back):
        server = Server()
        if back == "ready":
            server.objects[NODE]["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        with pytest.raises(CameBack):
            server.run(boot_id="b" if back == "ready" else "a", not_ready=True)
        assert server.annotations == THEIRS

    def test_a_check_that_is_too_old_is_repeated(self, monkeypatch):
        """The process was paused between the look and the act; meanwhile the node came back."""
        server = Server()
        clock = [0.0]
        monkeypatch.setattr(last_look, "steady", lambda: clock[0])
        check, looks = last_look.gate.check, []

        def paused(*arguments, **options):
            seen = check(*arguments, **options)
            looks.append(seen)
            if len(looks) == 1:
                clock[0] += 60
                server.objects[NODE]["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
            return seen

        monkeypatch.setattr(last_look.gate, "check", paused)
        with pytest.raises(CameBack):
            server.run(boot_id="b", not_ready=True)
        assert (len(looks), server.annotations) == (2, THEIRS)

    def test_the_check_of_the_caller_is_part_of_it(self, monkeypatch):
        """The process was paused after the check; etcd lost a member before the next one."""
        server = Server()
        clock, checked = [0.0], []
        monkeypatch.setattr(last_look, "steady", lambda: clock[0])

        def check(cluster, node):
            checked.append((cluster, node))
            clock[0] += 60
            if len(checked) == 2:
                raise Refused("etcd would lose its quorum.")

        with pytest.raises(Refused, match="quorum"):
            server.run(check)
        assert (checked, server.annotations) == ([(server, "n")] * 2, THEIRS)

    def test_a_key_that_did_not_get_through_is_checked_again(self):
        """It is not sent again by itself: a hold came while the API server was unavailable."""
        server = Server()

        def away():
            server.hold()
            raise Outdated("The API server was unavailable.", patience=0)

        server.before_write = away
        with pytest.raises(Held):
            server.run()
        assert (server.sent_once, server.annotations) == ([True], THEIRS)

    def test_a_removal_whose_claim_was_checked_too_long_ago(self, monkeypatch):
        """The recovery was paused after the check; meanwhile a failover claimed the node and kept the key."""
        server = Server()
        server.run()
        server.claim("mine")
        before, clock, check = dict(server.annotations), [0.0], Target.check_claim

        def paused(target, run):
            check(target, run)
            clock[0] += 60
            server.claim("theirs")

        monkeypatch.setattr(last_look, "steady", lambda: clock[0])
        monkeypatch.setattr(Target, "check_claim", paused)
        with pytest.raises(ClaimLost):
            server.run(state="absent", run="mine")
        assert server.annotations == before

    def test_a_removal_is_not_sent_again_by_itself(self):
        server = Server()
        server.run()
        server.run(state="absent")
        assert server.sent_once == [True, True]

    def test_checks_that_are_always_too_old(self, monkeypatch):
        server = Server()
        clock = iter(range(0, 10**6, 11))
        monkeypatch.setattr(last_look, "steady", lambda: next(clock))
        with pytest.raises(TimedOut, match="older than") as slow:
            server.run()
        assert (server.annotations, slow.value.fields["sent"]) == (THEIRS, False)


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_a_key_that_keeps_the_host_off_for_another_node_stays_as_it_is(mode):
    """The host of node n is given for node m by mistake, and no object says which Node it is."""
    server = Server(poweredOn=False)
    server.run(mode="hard")
    del server.objects[NODE]["spec"]["providerID"]
    server.objects["/api/v1/nodes/m"] = copy.deepcopy(server.objects[NODE])
    server.objects["/api/v1/nodes/m"]["metadata"]["name"] = "m"
    before = server.find(HOST)
    with pytest.raises(Refused, match=f"{BASE}/ours keeps it off for node n, not for node m") as refused:
        server.run(node="m", bare_metal_host="h", mode=mode)
    assert (refused.value.fields["why"], server.find(HOST)) == ("other_host", before)
    # Nothing keeps it off any more.
    server.annotate(HOST, {f"{BASE}/ours": None})
    assert server.run(node="m", bare_metal_host="h", mode=mode)["changed"]
    assert json.loads(server.annotations[RECORDS])["ours"]["node"] == "m"


class TestTwoNodes:
    """A kubelet has the provider ID of another one, or the name of a machine has changed."""

    @pytest.fixture
    def server(self):
        server = Server()
        other = copy.deepcopy(server.objects[NODE])
        other["metadata"]["name"] = "a"
        server.objects["/api/v1/nodes/a"] = other
        items = server.items

        def both(path, **selectors):
            named = (NODE, "/api/v1/nodes/a")
            return [server.find(name) for name in named] if path == "/api/v1/nodes" else items(path, **selectors)

        server.items = both
        return server

    @pytest.mark.parametrize("node", ["n", "a"])
    @pytest.mark.parametrize("host", [None, "h"])
    def test_their_host_is_not_switched_off(self, server, node, host):
        with pytest.raises(Refused, match=r"Several Nodes may be BareMetalHost metal/h, .*: a, n\.") as refused:
            server.run(node=node, bare_metal_host=host)
        assert refused.value.fields["candidates"] == ["a", "n"]
        assert server.annotations == THEIRS

    def test_it_is_unknown_which_of_them_has_a_key(self, server):
        with pytest.raises(Refused, match="Several Nodes may be BareMetalHost metal/h"):
            server.run(node=None, bare_metal_host="h", override_holds=True)

    def test_the_old_name_of_a_machine(self, server, monkeypatch):
        """By its Machine, the host is the old Node alone, and only the new Node is held."""
        monkeypatch.setattr(annotation.find_host, "candidates_of", lambda *_arguments: {"host": ["n"]})
        with pytest.raises(Refused, match="Node n and Node a may be the same machine"):
            server.run()
        assert server.annotations == THEIRS
        server.objects[NODE]["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        assert server.run()["changed"]


class TestGate:
    def test_held(self):
        server = Server()
        server.hold()
        with pytest.raises(Held):
            server.run()
        assert server.annotations == THEIRS

        done = server.run(override_holds=True)
        assert done["overridden_holds"] == ["shop/db"]
        assert json.loads(server.annotations[RECORDS])["ours"]["overridden"] == ["shop/db"]

    @pytest.mark.parametrize("late", [False, True])
    def test_overridden_holds_are_recorded_before_the_annotation(self, late):
        """Also a hold that comes while the phase is recorded."""
        server, recorded = Server(), []
        server.claim("mine")
        if late:
            server.before_write = server.hold
        else:
            server.hold()
        write = server.annotate

        def annotate(path, changes):
            if path == HOST:
                record = server.objects[NODE]["metadata"]["annotations"]["holdfast.dev/operation"]
                recorded.append({name: json.loads(record).get(name) for name in ("phase", "overridden_holds")})
            write(path, changes)

        server.annotate = annotate
        server.run(override_holds=True, operation="kernel", run="mine")
        assert recorded == [{"phase": "reboot", "overridden_holds": ["shop/db"]}]

    def test_held_at_the_last_moment(self):
        server = Server()

        def interfere():
            server.hold()
            server.annotate(HOST, {})

        server.before_write = interfere
        with pytest.raises(Held):
            server.run()
        assert server.annotations == THEIRS

    @pytest.mark.parametrize("state", ["present", "absent"])
    def test_claimed(self, state):
        server = Server()
        if state == "absent":
            server.run()
        server.claim("theirs")
        before = dict(server.annotations)
        with pytest.raises(Claimed):
            server.run(state=state)
        with pytest.raises(ClaimLost):
            server.run(state=state, run="mine")
        assert server.annotations == before
        assert server.run(state=state, run="theirs")["changed"]

    def test_a_host_that_may_be_any_node(self):
        server = Server()
        server.objects[NODE]["spec"] = {}
        with pytest.raises(Refused, match="holds can't be checked"):
            server.run(node=None, host="h", namespace="metal")
        with pytest.raises(InvalidInput, match="Give node"):
            server.run(node=None, host="h", namespace="metal", run="mine")
        assert server.annotations == THEIRS
        assert server.run(host="h", namespace="metal")["node"] == "n"
        assert server.run(node=None, host="h", namespace="metal", key="b", override_holds=True)["node"] is None

    def test_by_its_host_it_is_the_same_node(self):
        server = Server()
        server.hold()
        with pytest.raises(Held):
            server.run(node=None, host="h", namespace="metal")

    def test_a_claim_that_was_lost_while_the_key_is_there(self):
        server = Server()
        server.run()
        server.claim("theirs")
        with pytest.raises(Claimed):
            server.run()
        with pytest.raises(ClaimLost):
            server.run(run="mine")

    def test_another_host(self):
        server = Server()
        wrong = HOST.replace("/h", "/g")
        server.objects[wrong] = copy.deepcopy(server.objects[HOST])
        server.objects[wrong]["metadata"].update(name="g", uid="another")
        with pytest.raises(Refused, match="is BareMetalHost metal/h, not metal/g"):
            server.run(host="g", namespace="metal")

    def test_another_node(self):
        with pytest.raises(Refused, match="is node n, not m"):
            Server().run(node="m", host="h", namespace="metal")


class TestOnce:
    """A reboot without a key."""

    def run(self, server, **options):
        server.annotate(HOST, {f"{BASE}/other": None})
        return server.run(key=None, **options)

    def test_asked_for(self):
        server = Server()
        assert self.run(server)["changed"]
        assert server.keys == {BASE: '{"mode": "soft"}'}
        assert self.run(server)["changed"] is False
        assert self.run(server, mode="hard")["changed"]
        assert server.keys == {BASE: '{"mode": "hard"}'}

    def test_a_host_of_a_held_node(self):
        server = Server()
        server.hold()
        with pytest.raises(Held):
            self.run(server)
        assert server.keys == {}

    def test_a_host_that_is_off(self):
        server = Server(poweredOn=False)
        with pytest.raises(Refused, match="without a reboot"):
            self.run(server)
        assert server.keys == {}

    def test_a_host_that_others_keep_off(self):
        server = Server()
        with pytest.raises(Refused, match=f"{BASE}/other"):
            server.run(key=None)
        assert server.annotations == THEIRS

    @pytest.mark.parametrize(("theirs", "mode"), [("", "soft"), ("gibberish", "soft"), ('{"mode":"hard"}', "hard")])
    def test_someone_else_has_already_requested_it(self, theirs, mode):
        server = Server()
        server.annotate(HOST, {BASE: theirs})
        assert self.run(server, mode=mode)["changed"] is False
        done = self.run(server, state="absent")
        assert done["changed"] is False
        assert "its owner removes it" in done["warnings"][0]
        assert server.keys == {BASE: theirs}

    def test_someone_else_has_requested_a_soft_reboot(self):
        server = Server()
        server.annotate(HOST, {BASE: ""})
        with pytest.raises(Refused, match="soft reboot"):
            self.run(server, mode="hard")
        assert server.keys == {BASE: ""}
        server.objects[HOST]["status"]["errorCount"] = 1
        assert self.run(server, mode="hard")["changed"] is False, "an error before makes it hard"

    def test_a_killed_run_is_resumed(self):
        server = Server()
        self.run(server)
        server.annotate(HOST, {BASE: None})
        assert self.run(server)["changed"] is False
        server.objects[NODE]["status"]["nodeInfo"]["bootID"] = "c"
        assert self.run(server)["changed"], "that one is over"

    @pytest.mark.parametrize(
        "before",
        [{BASE: '{"mode": "soft"}'}, {BASE: ""}, {BASE: None}],
        ids=["by an earlier run", "by others", "under way"],
    )
    def test_what_is_waited_for_is_recorded_as_the_reboot_of_this_run(self, before):
        """Otherwise a failure would give back a node that may still go down."""
        server = Server()
        if before != {BASE: ""}:
            self.run(server)
        server.annotate(HOST, before)
        drained = {"id": "o", "run": "dead", "phase": "drain", "phases": {}, "since": "2026-05-03T00:00:00.000000Z"}
        record = {**drained, "boot_id_before": "b", "result": "", "detail": ""}
        server.claim("mine")
        server.annotate(NODE, {"holdfast.dev/operation": json.dumps(record)})
        assert self.run(server, operation="o", run="mine")["changed"] is False
        found = json.loads(server.objects[NODE]["metadata"]["annotations"]["holdfast.dev/operation"])
        assert (found["phase"], found["run"]) == ("reboot", "mine")

    @pytest.fixture
    def unseen(self, monkeypatch):
        """No reboot is seen before the time is up."""
        changes = []

        def nothing(host, _node, _deadline, **_options):
            cluster, _collection, _name = host
            seen = cluster.find(HOST)
            for act in changes:
                act(cluster)
            return Outcome(host=seen, seen=True)

        monkeypatch.setattr(annotation, "wait_for_reboot", nothing)
        return changes

    @pytest.fixture
    def held(self, monkeypatch):
        """The Node confirms a hold while the host is still on."""
        after = SimpleNamespace(powered_on=True, rebooted=False)

        def watch(host, _node, _deadline, *, respect_holds=False):
            cluster, _collection, _name = host
            outcome = Outcome(respect_holds)
            outcome.saw_host(cluster.find(HOST))
            inhibited = {"type": "ShutdownInhibited", "status": "True", "reason": "shop/db"}
            outcome.saw_node({"status": {"nodeInfo": {"bootID": "b"}, "conditions": [inhibited]}}, "b")
            outcome.new_boot = not respect_holds and after.rebooted
            return outcome

        def wait_for(cluster, _collection, _name, _until, _deadline):
            cluster.objects[HOST]["status"]["poweredOn"] = after.powered_on
            return cluster.find(HOST)

        monkeypatch.setattr(annotation, "wait_for_reboot", watch)
        monkeypatch.setattr(annotation, "wait_for", wait_for)
        return after

    def test_a_hold_after_the_request(self, held):
        server = Server()
        with pytest.raises(Held, match=r"shop/db.*stayed on"):
            self.run(server, wait=True)
        assert server.keys == {}
        assert RECORDS not in server.annotations

    def test_a_hold_after_the_request_in_a_rolling_reboot(self, held):
        server = Server()
        server.claim("mine")
        record = {"id": "o", "run": "mine", "phase": "drain", "phases": {}, "since": "2026-05-03T00:00:00.000000Z"}
        server.annotate(NODE, {"holdfast.dev/operation": json.dumps(record)})
        assert self.run(server, wait=True, operation="o", run="mine")["step"] == "held"
        assert server.keys == {}

    def test_a_hold_after_the_request_that_is_overridden(self, held):
        with pytest.raises(TimedOut):
            self.run(Server(), wait=True, override_holds=True)

    def test_a_hold_after_the_request_of_others(self, held):
        server = Server()
        server.annotate(HOST, {BASE: ""})
        with pytest.raises(TimedOut):
            self.run(server, wait=True)
        assert server.keys == {BASE: ""}

    def test_a_hold_after_metal3_has_acted(self, held):
        held.powered_on, held.rebooted = False, True
        assert not self.run(Server(), wait=True).get("failed")

    def test_one_that_times_out_is_taken_back(self, unseen):
        """Later it would reboot a node that has its pods again."""
        server = Server()
        with pytest.raises(TimedOut, match="The annotation was removed, but metal3 may already act on it"):
            self.run(server, wait=True)
        assert server.annotations == {key: value for key, value in THEIRS.items() if key != f"{BASE}/other"}

    @pytest.mark.parametrize(
        "meanwhile",
        [
            lambda server: server.objects[HOST]["status"].update(poweredOn=False),
            lambda server: server.claim("theirs"),
            lambda server: setattr(server, "before_write", lambda: server.claim("theirs") or server.annotate(HOST, {})),
        ],
        ids=["metal3 acts on it", "claimed by another run", "claimed at the last moment"],
    )
    def test_one_that_times_out_stays_unless_it_is_ours_and_nothing_happened(self, unseen, meanwhile):
        server = Server()
        server.claim("mine")
        unseen.append(meanwhile)
        with pytest.raises(TimedOut, match="The annotation is still there"):
            self.run(server, run="mine", wait=True)
        assert server.keys == {BASE: '{"mode": "soft"}'}
        assert RECORDS in server.annotations

    @pytest.mark.parametrize("newer", [False, True])
    def test_the_record_of_a_later_request_stays(self, monkeypatch, newer):
        """The run was paused while another one requested a reboot of its own."""

        def done(host, _node, _deadline, **_options):
            cluster, _collection, _name = host
            cluster.annotate(HOST, {BASE: None})
            if newer:
                record = json.loads(cluster.annotations[RECORDS])
                record[""]["since"] = "2026-05-05T00:00:00.000000Z"
                cluster.annotate(HOST, {RECORDS: json.dumps(record)})
            return Outcome(host=cluster.find(HOST), seen=True, new_boot=True)

        monkeypatch.setattr(annotation, "wait_for_reboot", done)
        server = Server()
        self.run(server, wait=True)
        assert (RECORDS in server.annotations) is newer

    def test_one_of_others_that_times_out_stays(self, unseen):
        server = Server()
        server.annotate(HOST, {BASE: ""})
        with pytest.raises(TimedOut, match="The annotation is still there"):
            self.run(server, wait=True)
        assert server.keys == {BASE: ""}

    def test_removed_again(self):
        server = Server()
        self.run(server)
        assert self.run(server, state="absent")["changed"]
        assert BASE not in server.annotations
        assert RECORDS not in server.annotations


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"annotations": {"baremetalhost.metal3.io/paused": ""}}, "paused"),
        ({"annotations": {"baremetalhost.metal3.io/detached": ""}}, "detached"),
        ({"spec": {"online": False}}, "online"),
        ({"spec": {"disablePowerOff": True}}, "disablePowerOff"),
        ({"status": {"provisioning": {"state": "available"}}}, "available"),
    ],
)
@pytest.mark.parametrize("key", ["ours", None])
def test_a_host_on_which_it_would_do_nothing(how, why, key):
    server = Server(**how.get("status", {}))
    server.annotate(HOST, {f"{BASE}/other": None, **how.get("annotations", {})})
    server.objects[HOST]["spec"] |= how.get("spec", {})
    before = server.find(HOST)
    with pytest.raises(Refused, match=why) as refused:
        server.run(key=key)
    assert refused.value.fields["why"] == "inert"
    assert server.find(HOST) == before


@pytest.mark.parametrize("key", ["", "a/b", "x" * 64])
def test_no_key(key):
    with pytest.raises(InvalidInput):
        Server().run(key=key)


def test_neither_host_nor_node():
    with pytest.raises(InvalidInput, match="host"):
        Server().run(node=None)


def test_an_annotation_of_the_same_name_by_others():
    server = Server()
    server.annotate(HOST, {f"{BASE}/ours": ""})
    for _again in range(2):
        with pytest.raises(Refused, match="does not say that this collection wrote it") as refused:
            server.run(mode="hard")
        assert refused.value.fields["why"] == "foreign"
    assert server.annotations == {**THEIRS, f"{BASE}/ours": ""}
    assert server.run(state="absent")["changed"], "its name was given"
    assert server.run()["changed"]
    # A damaged record is ignored.
    kept = json.loads(server.annotations[RECORDS])
    kept["ours"]["powered_on"] = "false"
    server.annotate(HOST, {RECORDS: json.dumps(kept)})
    with pytest.raises(Refused, match="does not say"):
        server.run()


class TestRelease:
    """A key that is taken back from a host that is gone, or another node's by now."""

    def run(self, server, **options):
        return server.run(**{"state": "absent", "bare_metal_host": "h", "namespace": "metal", **options})

    def serve(self, server, name):
        server.objects[NODE]["metadata"]["name"] = name
        server.objects[f"/api/v1/nodes/{name}"] = server.objects[NODE]

    def test_gone(self):
        server = Server()
        server.run()
        version = server.find(HOST)["metadata"]["resourceVersion"]
        assert server.run()["resource_version"] == version
        del server.objects[HOST]
        for options in ({}, {"node": None}):
            done = self.run(server, **options)
            assert (done["changed"], done["host"], done["resource_version"]) == (False, "h", None)
            assert "switched on" in done["warnings"][0]
        assert self.run(server, key=None)["warnings"] == []
        server.serves_hosts = False
        with pytest.raises(NotFound, match="management"):
            self.run(server)

    def test_of_another_node_by_now(self):
        server = Server()
        server.run()
        self.serve(server, "m")
        assert self.run(server, node="k")["changed"] is False
        assert f"{BASE}/ours" in server.keys
        done = self.run(server)
        assert (done["changed"], f"{BASE}/ours" in server.keys) == (True, False)
        assert "is now node m" in done["warnings"][0]

    @pytest.mark.parametrize("run", ["r", None], ids=["by a run", "for a node that was deleted"])
    def test_not_written_by_us(self, run):
        server = Server()
        server.annotate(HOST, {f"{BASE}/ours": ""})
        if run:
            server.claim(run)
        before = server.find(HOST)
        done = self.run(server, run=run, wait=True)
        assert (done["changed"], server.find(HOST)) == (False, before)
        assert "does not say that this collection wrote it" in done["warnings"][0]

    def test_a_run_does_not_remove_the_key_of_another_cluster(self, monkeypatch):
        """A node has written this host into its record. The other cluster has a node of the same name."""
        server = Server()
        server.run()
        server.claim("r")
        machine = {
            "metadata": {"namespace": "metal", "name": "machine"},
            "spec": {"clusterName": "b"},
            "status": {"nodeRef": {"name": "n", "uid": "node of b"}},
        }
        monkeypatch.setattr(annotation.find_host, "claimed_by", lambda *_arguments: ("n", machine))
        with pytest.raises(Refused, match="BareMetalHost metal/h is node n of Cluster b"):
            self.run(server, run="r")
        assert f"{BASE}/ours" in server.keys
        machine["status"]["nodeRef"]["uid"] = "node"
        assert self.run(server, run="r")["changed"]

    def test_a_deleted_node_that_other_hardware_has_created_again(self):
        """The recovery was paused before it removed the key. It has no run, because there was no Node to claim."""
        server = Server()
        server.run()
        node, before = server.objects.pop(NODE), server.find(HOST)

        def join():
            server.objects[NODE] = {**node, "status": {"nodeInfo": {"bootID": "of other hardware"}}}
            server.annotate(HOST, {})

        server.before_write = join
        with pytest.raises(Refused, match="other hardware may have created it again") as refused:
            self.run(server)
        assert refused.value.fields["why"] == "created_again"
        assert server.annotations == before["metadata"]["annotations"]
        assert self.run(server, node=None)["changed"], "a person has looked"

    def test_a_node_that_was_not_deleted(self):
        server = Server()
        server.run()
        assert self.run(server)["changed"]

    def test_not_ours_of_another_node(self):
        server = Server()
        server.run()
        kept = json.loads(server.annotations[RECORDS])
        kept["ours"]["node"] = "m"
        server.annotate(HOST, {RECORDS: json.dumps(kept)})
        self.serve(server, "m")
        before = server.find(HOST)
        done = self.run(server, wait=True)
        assert (done["changed"], server.find(HOST)) == (False, before)
        assert "was not written for node n, and the host is now node m" in done["warnings"][0]
        assert self.run(server, node="m")["changed"]

    def test_not_ours_of_a_host_that_is_no_node_now(self):
        server = Server()
        server.run()
        del server.objects[NODE]["spec"]["providerID"]
        done = self.run(server, node="m")
        assert (done["changed"], f"{BASE}/ours" in server.keys) == (False, True)
        assert "was not written for node m, but for node n." in done["warnings"][0]


@pytest.mark.parametrize("written_for", ["", "n", "m"])
@pytest.mark.parametrize("serves", ["", "n", "m"])
def test_which_keys_may_be_removed(serves, written_for):
    assert may_remove_key("", serves, written_for)
    wanted = "n" in (serves, written_for) or (serves, written_for) == ("", "")
    assert may_remove_key("n", serves, written_for) is wanted


def test_no_host():
    server = Server()
    del server.objects[HOST]
    with pytest.raises(NotFound, match="provider ID"):
        server.run()


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from(["soft", "hard", "absent"])),
            st.tuples(st.just("theirs"), st.tuples(st.sampled_from(["/x", "/y", "/a.b"]), st.text() | st.none())),
        ),
        max_size=10,
    )
)
def test_what_others_write_stays_byte_for_byte(steps):
    server = Server()
    expected, ours = dict(THEIRS), {}
    for who, what in steps:
        if who == "theirs":
            suffix, value = what
            server.annotate(HOST, {BASE + suffix: value})
            expected.pop(BASE + suffix, None)
            if value is not None:
                expected[BASE + suffix] = value
            continue
        try:
            if what == "absent":
                server.run(key=who or None, state="absent")
                ours.pop(who, None)
            else:
                server.run(key=who or None, mode=what)
                ours[who] = json.dumps({"mode": what})
        except Refused:
            assert who == "", "a single reboot of a host that is kept off"
    found = {name: value for name, value in server.annotations.items() if name != RECORDS}
    mine = {(f"{BASE}/{key}" if key else BASE): value for key, value in ours.items()}
    assert found == {**expected, **mine}


@pytest.mark.parametrize(("since", "under_way"), [("2026-11-21T08:59:00Z", True), ("2999-01-01T00:00:00Z", False)])
def test_a_record_of_the_future_is_of_no_reboot_under_way(since, under_way):
    now = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
    asked = SimpleNamespace(
        _target=SimpleNamespace(node="n", read_node=lambda: {"status": {"nodeInfo": {"bootID": "b"}}}),
        _management=SimpleNamespace(now=lambda: now),
    )

    assert annotation._Annotation._under_way(asked, None, Written(since, False, boot_id="b")) is under_way
