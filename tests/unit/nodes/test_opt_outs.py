# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the autoscaler and MachineHealthChecks are told, and what is put back: a Node and a Machine live in memory."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
from datetime import datetime, timezone
from typing import ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    InvalidInput,
    NotFound,
    Unreachable,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import ClaimLost
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.opt_outs import node_opt_outs

NODE = "/api/v1/nodes/n"
GROUP = "/apis/cluster.x-k8s.io"
MACHINE = GROUP + "/{}/namespaces/metal/machines/m"
OTHER_MACHINE = GROUP + "/v1beta2/namespaces/metal/machines/other"
EXCLUDED = "remediation.medik8s.io/exclude-from-remediation"
DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SKIP = "cluster.x-k8s.io/skip-remediation"
RECORD = "holdfast.dev/opt-outs"
# The value on the Machine.
OURS = "holdfast.dev"
IS_MACHINE = {"cluster.x-k8s.io/machine": "m", "cluster.x-k8s.io/cluster-namespace": "metal"}
OTHERS = {"theirs": "kept"}


class KilledError(BaseException):
    """The process is gone, right after a write."""


class Server:
    """The part of an API server that opt-outs need."""

    def __init__(self):
        self.objects = {}
        self.away = False
        self.kill_after = None
        self.before = lambda path: None
        self.before_write = None
        self.writes = []

    def now(self):
        return datetime(2026, 5, 4, tzinfo=timezone.utc)

    def find(self, path):
        self.before(path)
        if self.away:
            raise Unreachable("away")
        return copy.deepcopy(self.objects.get(path))

    def merge(self, path, patch):
        self.before(path)
        if self.before_write:
            self.before_write(path)
        metadata = self.objects[path]["metadata"] if path in self.objects else None
        if metadata is None:
            raise NotFound(path)
        if patch["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise ApiFailure("another client was faster", status=409)
        assert set(patch) == {"metadata"}
        assert set(patch["metadata"]) <= {"resourceVersion", "annotations", "labels"}
        self.annotate(path, patch["metadata"].get("annotations", {}))
        self.label(path, patch["metadata"].get("labels", {}))
        self.writes.append(path)
        if self.kill_after is not None and len(self.writes) >= self.kill_after:
            raise KilledError
        return copy.deepcopy(self.objects[path])

    def annotate(self, path, changes):
        self._change(path, "annotations", changes)

    def label(self, path, changes):
        self._change(path, "labels", changes)

    def _change(self, path, kind, changes):
        metadata = self.objects[path]["metadata"]
        metadata["resourceVersion"] += "1"
        values = metadata.setdefault(kind, {})
        for key, value in changes.items():
            values.pop(key, None)
            if value is not None:
                values[key] = value


class World:
    """One Node, and in the management cluster its Machine."""

    def __init__(
        self, on_node=None, on_machine=None, label=None, *, machine=True, version="v1beta2", served=None, marks=None
    ):
        self.server = Server()
        self.path = MACHINE.format(version)
        self.warnings = []
        self._add(NODE, {"name": "n"}, {DISABLED: on_node, **(IS_MACHINE if marks is None else marks)})
        self.server.label(NODE, {EXCLUDED: label})
        if machine:
            self._add(self.path, {"name": "m", "namespace": "metal"}, {SKIP: on_machine})
        versions = [version] if served is None else served
        if versions:
            self.server.objects[GROUP] = {"versions": [{"version": name} for name in versions]}
        self.start = self.state

    def _add(self, path, metadata, annotations):
        kept = {key: value for key, value in {**OTHERS, **annotations}.items() if value is not None}
        self.server.objects[path] = {"metadata": {**metadata, "resourceVersion": "1", "annotations": kept}}

    def run(self, state="present", *, check_mode=False, **options):
        context = Context({}, check_mode, self.warnings.append)
        context.__dict__.update(cluster=self.server, management=self.server)
        params = {"name": "n", "state": state, "autoscaler": True, "run": None, **options}
        params = {"machine_health_check": True, "node_health_check": True, **params}
        return node_opt_outs(context, params)

    def killed(self, state, after):
        """The same, by a process that dies after so many writes, or has fewer to do."""
        self.server.writes.clear()
        self.server.kill_after = after
        try:
            if after:
                self.run(state)
        except KilledError:
            pass
        finally:
            self.server.kill_after = None
            self.server.writes.clear()

    @property
    def state(self):
        """Annotations of the Node and of the Machine, and the labels of the Node."""
        objects = (self.server.objects.get(path) for path in (NODE, self.path))
        annotations = (dict(item["metadata"]["annotations"]) if item else None for item in objects)
        return (*annotations, dict(self.server.objects[NODE]["metadata"]["labels"]))

    @property
    def values(self):
        node, machine, _labels = self.state
        return node.get(DISABLED), machine.get(SKIP) if machine else None

    @property
    def label(self):
        return self.state[2].get(EXCLUDED)

    @property
    def record(self):
        return json.loads(self.state[0].get(RECORD, "null"))


def test_there_and_back_leaves_nothing():
    world = World()
    told = world.run(run="")

    assert told["changed"]
    assert told["opt_outs"] == {"autoscaler": True, "machine": "metal/m", "node_health_check": True}
    assert told["why_not"] == ""
    assert world.values == ("true", OURS)
    assert world.label == "true"
    assert world.record == {
        "run": "",
        "since": "2026-05-04T00:00:00.000000Z",
        "autoscaler": {"before": None},
        "machine": {"namespace": "metal", "name": "m", "before": None, "value": OURS},
        "node_health_check": {"before": None},
    }
    assert told["diff"]["before"] == {DISABLED: None, EXCLUDED: None, SKIP: None, RECORD: None}
    assert told["diff"]["after"] == {DISABLED: "true", EXCLUDED: "true", SKIP: OURS, RECORD: world.record}
    assert world.run()["changed"] is False

    back = world.run("absent")
    assert back["changed"]
    assert back["opt_outs"] == {"autoscaler": False, "machine": None, "node_health_check": False}
    assert world.state == world.start
    assert world.run("absent")["changed"] is False
    assert world.warnings == []


def test_the_record_is_written_with_the_opt_out_and_before_the_machine():
    world = World()
    world.killed("present", 1)

    assert world.values == ("true", None)
    assert world.record["machine"] == {"namespace": "metal", "name": "m", "before": None, "value": OURS}


def test_the_machine_comes_first_on_the_way_back():
    world = World()
    world.run()
    record = world.record
    world.killed("absent", 1)

    assert world.values == ("true", None)
    assert world.record == record


VALUES = {
    "node": [None, "true", "false", ""],
    "machine": [None, "", "by another"],
    "label": [None, "true", "false"],
}
STARTS = list(itertools.product(*VALUES.values()))


@pytest.mark.parametrize(("on_node", "on_machine", "label"), STARTS)
@pytest.mark.parametrize(("state", "writes"), [("present", 0), ("present", 1), ("present", 2), ("absent", 1)])
def test_killed_after_any_write_the_next_run_has_the_same_result(on_node, on_machine, label, state, writes):
    undisturbed = World(on_node, on_machine, label)
    undisturbed.run()
    worlds = [World(on_node, on_machine, label) for _next in range(2)]
    for world in worlds:
        if state == "absent":
            world.run()
        world.killed(state, writes)

    worlds[0].run("present")
    worlds[1].run("absent")

    assert worlds[0].state == undisturbed.state
    assert worlds[1].state == worlds[1].start


def test_an_empty_value_of_a_user_stays():
    world = World()
    world.run()
    world.server.annotate(world.path, {SKIP: ""})
    world.run("absent")

    assert world.values[1] == ""


@pytest.mark.parametrize("conflict", [0, 2])
@pytest.mark.parametrize("taken_over_by", [[], ["present"], ["absent"], ["present", "absent"], ["absent", "present"]])
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("at", range(1, 9))
def test_the_machine_of_a_run_that_is_paused_matches_the_record(at, state, begun, taken_over_by, conflict):
    """Another run takes the claim over during the pause before a request, and works on the node or restores it.

    A controller of Cluster API may react to its write of the Machine, so that its second write has a conflict.
    """
    world, claim = World(), {"operation": "o", "purpose": "rolling_reboot", "since": ""}
    world.server.annotate(NODE, {"holdfast.dev/claim": json.dumps({**claim, "run": "paused"})})
    if begun:
        world.run(run="paused")

    def request(_path):
        requests.append(_path)
        if len(requests) == at:
            world.server.annotate(NODE, {"holdfast.dev/claim": json.dumps({**claim, "run": "other"})})
            for step in taken_over_by:
                world.run(step, run="other")

    def controller(path):
        if path == world.path and len(requests) > at:
            writes.append(path)
            if len(writes) == conflict:
                world.server.annotate(path, {"controller": "1"})

    requests, writes = [], []
    world.server.before, world.server.before_write = request, controller
    with contextlib.suppress(ClaimLost):
        world.run(state, run="paused")

    record = world.record
    assert world.values[1] == (OURS if record and record["machine"] else None)


@pytest.mark.parametrize("value", [OURS, ""])
def test_the_opt_out_of_a_machine_without_a_record(value):
    """A run died directly after it had set the opt-out, and another run had removed the record. Or it is a user's."""
    world = World(on_machine=value)
    world.run()
    world.run("absent")

    assert world.values[1] == (None if value == OURS else "")


def test_the_opt_out_of_an_earlier_version_is_undone():
    world = World()
    world.run()
    record = world.record
    del record["machine"]["value"]
    world.server.annotate(NODE, {RECORD: json.dumps(record)})
    world.server.annotate(world.path, {SKIP: ""})
    assert not world.run()["changed"]
    world.run("absent")

    assert world.state == world.start


@given(
    st.sampled_from(STARTS),
    st.lists(st.tuples(st.sampled_from(["present", "absent"]), st.integers(0, 3)), max_size=8),
)
def test_killed_as_often_as_you_like_nothing_is_lost(start, killed):
    world = World(*start)
    for state, writes in killed:
        world.killed(state, writes)
    world.run("absent")

    assert world.state == world.start


@given(
    st.sampled_from(STARTS),
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["present", "absent"]), st.integers(0, 3)),
            st.tuples(st.just("node"), st.sampled_from(["false", "mine", ""])),
            st.tuples(st.just("machine"), st.sampled_from(["other", "mine"])),
            st.tuples(st.just("label"), st.sampled_from(["false", "mine", ""])),
        ),
        max_size=10,
    ),
)
@example(STARTS[0], [("present", 3), ("node", "false"), ("present", 3)])
def test_a_value_that_someone_else_changes_stays(start, steps):
    world = World(*start)
    expected = list(start)
    for what, how in steps:
        if what in ("present", "absent"):
            world.killed(what, how)
        elif what == "label":
            world.server.label(NODE, {EXCLUDED: how})
            expected[2] = how
        else:
            index, key = (0, DISABLED) if what == "node" else (1, SKIP)
            world.server.annotate((NODE, world.path)[index], {key: how})
            expected[index] = how
    world.run("absent")

    assert (*world.values, world.label) == tuple(expected)
    assert world.record is None


def test_present_again_does_not_undo_the_change_of_someone_else():
    world = World()
    world.run()
    record = world.record
    world.server.annotate(NODE, {DISABLED: "false"})
    again = world.run()

    assert again["changed"] is False
    assert again["opt_outs"] == {"autoscaler": False, "machine": "metal/m", "node_health_check": True}
    assert world.record == record
    assert "'false'" in world.warnings[0]


def test_an_opt_out_that_its_owner_removes_stays_removed():
    world = World(on_machine="since last week")
    world.run()
    world.server.annotate(world.path, {SKIP: None})
    again = world.run()

    assert again["opt_outs"]["machine"] is None
    assert "metal/m" in world.warnings[0]
    world.run("absent")
    assert world.values == (None, None)


def test_a_machine_that_was_left_alone_before_is_not_written():
    world = World(on_machine="since last week")
    world.run()
    world.run("absent")

    assert world.path not in world.server.writes
    assert world.values[1] == "since last week"


def test_what_is_asked_for_later_is_added_to_the_record():
    world = World("false")
    world.run(machine_health_check=False, node_health_check=False)
    assert {"machine", "node_health_check"}.isdisjoint({key for key, value in world.record.items() if value})
    assert world.values == ("true", None)
    world.run(autoscaler=False, run="")

    assert world.record["autoscaler"] == {"before": "false"}
    assert world.record["machine"]["before"] is None
    assert world.values == ("true", OURS)
    world.run("absent")
    assert world.state == world.start


def test_nothing_asked_for_is_nothing_done():
    world = World()

    assert world.run(autoscaler=False, machine_health_check=False, node_health_check=False)["changed"] is False
    assert world.state == world.start


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"marks": {}}, "Cluster API did not create it"),
        ({"marks": {"cluster.x-k8s.io/machine": "m"}}, "Cluster API did not create it"),
        ({"served": []}, "is not installed in the management cluster"),
        ({"served": ["v1alpha4"]}, "is not installed in the management cluster"),
        ({"machine": False}, "there is no Machine metal/m"),
    ],
)
def test_without_a_machine_there_is_nothing_to_do_with_it(how, why):
    world = World(**how)
    told = world.run()

    assert told["changed"]
    assert told["opt_outs"] == {"autoscaler": True, "machine": None, "node_health_check": True}
    assert why in told["why_not"]
    assert world.record["machine"] is None
    assert world.run("absent")["changed"]
    assert world.state == world.start


def test_the_older_version_of_the_api():
    for served in (["v1beta1"], ["v1beta1", "v1beta2"]):
        world = World(version="v1beta1", served=served)
        world.run()
        assert world.values == ("true", OURS)
        world.run("absent")
        assert world.state == world.start


def test_a_machine_that_was_deleted_is_fine():
    world = World()
    world.run()
    del world.server.objects[world.path]
    again = world.run()
    assert again["changed"] is False
    assert again["why_not"] == "Machine metal/m is gone"
    back = world.run("absent")

    assert back["why_not"] == "Machine metal/m is gone"
    assert world.state[0] == world.start[0]


def test_a_machine_that_goes_at_the_last_moment_is_fine_too():
    world = World()
    world.run()
    world.server.before_write = lambda path: world.server.objects.pop(world.path, None)
    world.run("absent")

    assert world.state == (world.start[0], None, world.start[2])


def test_a_cluster_without_cluster_api_is_not_the_management_cluster():
    world = World()
    world.run()
    before = world.state
    del world.server.objects[GROUP]

    with pytest.raises(NotFound, match="management"):
        world.run("absent")
    assert world.state == before


def test_management_away_fails_and_the_record_stays():
    world = World()
    there, away = world.server, Server()
    away.away = True
    context = Context({})
    context.__dict__.update(cluster=there, management=away)
    params = {"name": "n", "autoscaler": True, "machine_health_check": True, "node_health_check": True, "run": ""}
    with pytest.raises(Unreachable):
        node_opt_outs(context, {**params, "state": "present"})
    assert world.state == world.start, "nothing was begun"

    world.run()
    before = world.state
    with pytest.raises(Unreachable):
        node_opt_outs(context, {**params, "state": "absent"})
    assert world.state == before


@pytest.mark.parametrize("state", ["present", "absent"])
def test_another_client_writes_first(state):
    world = World()
    if state == "absent":
        world.run()
    seen = set()

    def meddle(path):
        if path not in seen:
            seen.add(path)
            world.server.annotate(path, {"news": "of another user"})

    world.server.before_write = meddle
    assert world.run(state)["changed"]

    assert seen == {NODE, world.path}
    assert world.values == (("true", OURS) if state == "present" else (None, None))


def test_a_run_that_lost_its_claim_stops():
    world = World()
    with pytest.raises(ClaimLost):
        world.run(run="one")
    world.server.annotate(NODE, {"holdfast.dev/claim": json.dumps({"run": "one"})})
    world.run(run="one")
    world.server.annotate(NODE, {"holdfast.dev/claim": json.dumps({"run": "two"})})
    before = world.state
    for state in ("present", "absent"):
        with pytest.raises(ClaimLost):
            world.run(state, run="one")

    assert world.state == before


def test_a_claim_lost_between_the_two_writes_leaves_the_machine_alone():
    world = World()
    world.server.annotate(NODE, {"holdfast.dev/claim": json.dumps({"run": "one"})})

    def lose(path):
        if path == world.path:
            world.server.annotate(NODE, {"holdfast.dev/claim": json.dumps({"run": "two"})})
            world.server.annotate(path, {})

    world.server.before_write = lose
    with pytest.raises(ClaimLost):
        world.run(run="one")
    assert world.values == ("true", None)


@pytest.mark.parametrize("text", ["no json", "[]", '{"autoscaler": 7, "machine": "m"}'])
def test_an_invalid_record_changes_nothing(text):
    world = World()
    world.server.annotate(NODE, {RECORD: text})
    world.run()
    world.run("absent")

    assert world.state == world.start


def test_the_label_for_medik8s_comes_with_the_record_and_the_change_of_someone_else_stays():
    world = World(label="false")
    world.killed("present", 1)
    assert (world.label, world.record["node_health_check"]) == ("true", {"before": "false"})

    world.server.label(NODE, {EXCLUDED: "by another"})
    again = world.run()

    assert again["opt_outs"]["node_health_check"] is False
    assert "may fence" in world.warnings[0]
    world.run("absent")
    assert world.label == "by another"


def test_a_record_of_an_older_version_knows_nothing_of_the_label():
    world = World()
    world.run(node_health_check=False)
    record = {key: value for key, value in world.record.items() if key != "node_health_check"}
    world.server.annotate(NODE, {RECORD: json.dumps(record)})
    world.run()

    assert world.record["node_health_check"] == {"before": None}
    world.run("absent")
    assert world.state == world.start


class TestMarks:
    """Labels and annotations that the user wants during the work."""

    WANTED: ClassVar = {"labels": {"db/maintenance": "on", "tier": "x"}, "annotations": {"db/note": True}}

    def marks(self, world):
        node, _machine, labels = world.state
        return labels.get("db/maintenance"), labels.get("tier"), node.get("db/note")

    def test_there_and_back(self):
        world = World()
        world.server.label(NODE, {"tier": "gold"})
        start = world.state
        told = world.run(**self.WANTED)
        assert told["changed"]
        assert self.marks(world) == ("on", "x", "true")
        assert world.record["labels"]["tier"] == {"value": "x", "before": "gold"}
        assert told["diff"]["after"]["db/maintenance"] == "on"
        assert world.run(**self.WANTED)["changed"] is False
        # A run that resumes with other variables does not lose the earlier values.
        world.run(labels={"tier": "y"})
        assert self.marks(world) == ("on", "x", "true")
        world.run("absent")
        assert world.state == start

    def test_without_opt_outs(self):
        world = World()
        quiet = {"autoscaler": False, "machine_health_check": False, "node_health_check": False}
        world.run(**quiet, **self.WANTED)
        assert (world.values, world.label) == ((None, None), None)
        assert self.marks(world) == ("on", "x", "true")
        world.run("absent")
        assert world.state == world.start

    def test_what_someone_else_has_changed_stays(self):
        world = World()
        world.run(**self.WANTED)
        world.server.label(NODE, {"tier": "theirs"})
        world.server.annotate(NODE, {"db/note": None})
        world.run("absent")
        assert self.marks(world) == (None, "theirs", None)
        assert RECORD not in world.state[0]

    @pytest.mark.parametrize("writes", range(1, 4))
    def test_a_killed_run_leaves_a_record(self, writes):
        world = World()
        world.server.kill_after = writes
        with contextlib.suppress(KilledError):
            world.run(**self.WANTED)
        world.server.kill_after = None
        world.run("absent")
        assert world.state == world.start

    @pytest.mark.parametrize(
        "restricted",
        [
            "node-restriction.kubernetes.io/tier",
            "example.com.node-restriction.kubernetes.io/tier",
            "node-role.kubernetes.io/quarantine",
            "topology.k8s.io/tier",
        ],
    )
    def test_a_record_that_a_node_has_made_up_sets_nothing(self, restricted):
        world = World(on_machine="")
        world._add(OTHER_MACHINE, {"name": "other", "namespace": "metal"}, {})
        world.server.label(NODE, {restricted: "low", "pool": "a"})
        made_up = {
            "run": "x",
            "since": "",
            "labels": {
                "role": {"value": "trusted", "before": None},
                restricted: {"value": "low", "before": "high"},
            },
            "machine": {"namespace": "metal", "name": "other", "before": None},
        }
        world.server.annotate(NODE, {RECORD: json.dumps(made_up)})
        theirs = copy.deepcopy(world.server.objects[OTHER_MACHINE])
        world.run()
        assert (world.state[2].get("role"), world.state[2][restricted]) == (None, "low")
        world.run("absent")
        assert (world.state[2].get("role"), world.state[2][restricted]) == (None, "low")
        assert world.server.objects[OTHER_MACHINE] == theirs

    def test_a_label_that_kubelets_must_not_change_is_refused(self):
        with pytest.raises(InvalidInput, match="it is in a domain of Kubernetes"):
            World().run(labels={"node-restriction.kubernetes.io/tier": "x"})

    def test_a_label_of_the_kubelets_own_domain_is_set_and_removed(self):
        world, key = World(), "node.kubernetes.io/exclude-from-external-load-balancers"
        world.run(labels={key: ""})
        assert world.state[2][key] == ""
        world.run("absent")
        assert world.state == world.start

    @pytest.mark.parametrize("key", ["holdfast.dev/claim", EXCLUDED, DISABLED])
    def test_what_this_collection_sets_itself_is_refused(self, key):
        world = World()
        with pytest.raises(InvalidInput, match="this collection sets and removes it itself"):
            world.run(labels={key: "x"})
        with pytest.raises(InvalidInput, match="must have a text"):
            world.run(annotations={"a": ["x"]})
        assert world.state == world.start
