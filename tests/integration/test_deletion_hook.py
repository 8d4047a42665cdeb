# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletion hooks with Cluster API's own controller, which decides what a hook does."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from integration.support.machines_capi import NAME, PRE_DRAIN, PRE_TERMINATE, Fleet, controlled, deleting, silent

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi import find as capi_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi import rules
from ansible_collections.holdfast.kubernetes.plugins.modules import deletion_hook, deletion_hook_info
from lab.patience import PATIENCE

FOREIGN = {
    f"{PRE_DRAIN}/theirs": "them",
    PRE_TERMINATE: "bare",
    f"{PRE_TERMINATE}/kcp-cleanup": "",
    f"{PRE_TERMINATE}/odd": ' "quoted"\n\tünï ',
}
OURS = f"{PRE_DRAIN}/backup"


@pytest.fixture(scope="module")
def capi(lab):
    with controlled(lab) as found:
        yield found


@pytest.fixture
def fleet(capi, world):
    found = Fleet(world)
    yield found
    found.close()


class Hooked:
    """One Machine, and the module applied to it."""

    def __init__(self, fleet, name):
        self.fleet, self.name = fleet, name

    def options(self, **options):
        given = {"point": "pre-drain", "hook": "backup", "owner": "team", **options}
        if not {"machine", "node"} & given.keys():
            given["machine"] = self.name
        return given if "node" in given else {"namespace": self.fleet.namespace, **given}

    def run(self, *, check_mode=False, **options):
        return self.fleet.world.run(deletion_hook, check_mode=check_mode, **self.options(**options))

    def start(self, **options):
        return self.fleet.world.start(deletion_hook, **self.options(**options))

    def wait(self, **options):
        return self.run(wait_for="deletion", wait_timeout=PATIENCE, **options)

    def remove(self, **options):
        return self.run(state="absent", **options)

    def info(self):
        (found,) = self.fleet.world.run(deletion_hook_info, machine=self.name, namespace=self.fleet.namespace)[
            "machines"
        ]
        return found


@pytest.fixture
def hooked(fleet, world):
    (node,) = world.nodes()
    return Hooked(fleet, fleet.machine(node))


@pytest.fixture
def hopeless(fleet):
    """A Machine without a Node; enough for everything that is decided before a deletion."""
    return Hooked(fleet, fleet.unbound("lonely"))


class TestSetAndRemove:
    @pytest.mark.core
    def test_the_hook_is_set_and_removed(self, hooked):
        outcome = hooked.run()
        assert outcome["changed"]
        assert outcome["phase"] == "NotDeleting"
        assert outcome["waiting_since"] is None
        assert outcome["hooks"] == [{"point": "pre-drain", "hook": "backup", "owner": "team", "annotation": OURS}]
        assert outcome["diff"] == {"before": {"hooks": {}}, "after": {"hooks": {OURS: "team"}}}
        assert outcome["warnings"] == []
        assert hooked.run()["changed"] is False

        assert hooked.remove()["changed"]
        assert hooked.fleet.hooks(hooked.name) == {}
        assert hooked.remove()["changed"] is False

    @pytest.mark.parametrize("state", ["present", "absent"])
    def test_check_mode_reports_and_changes_nothing(self, hooked, state):
        if state == "absent":
            hooked.run()
        before = hooked.fleet.get(hooked.name)
        outcome = hooked.run(state=state, check_mode=True, wait_for="deletion" if state == "present" else "none")

        assert outcome["changed"]
        assert hooked.fleet.get(hooked.name)["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        real = hooked.run(state=state)
        assert (outcome["hooks"], outcome["diff"]) == (real["hooks"], real["diff"])

    def test_what_is_others_stays_byte_for_byte(self, hooked):
        hooked.fleet.annotate(hooked.name, FOREIGN)
        for _again in range(2):
            hooked.run()
            hooked.run(point="pre-terminate")
            assert hooked.fleet.hooks(hooked.name) == {
                **FOREIGN,
                OURS: "team",
                f"{PRE_TERMINATE}/backup": "team",
            }
        for hook in ("theirs", "kcp-cleanup", "odd"):
            point = "pre-drain" if hook == "theirs" else "pre-terminate"
            for state in ("present", "absent"):
                assert hooked.run(hook=hook, point=point, state=state)["failed"], hook
        hooked.remove()
        hooked.remove(point="pre-terminate")
        assert hooked.fleet.hooks(hooked.name) == FOREIGN

    def test_a_hook_of_the_same_name_is_its_owners(self, hooked):
        hooked.run(owner="one")
        for state in ("present", "absent"):
            refused = hooked.run(owner="two", state=state)
            assert refused["error"] == "refused"
            assert '"one"' in refused["msg"]
            assert refused["owner"] == "one"
        assert hooked.fleet.hooks(hooked.name) == {OURS: "one"}

    def test_many_at_once(self, hooked):
        """Conflicts are retried: no hook is lost."""
        waiting = [hooked.start(hook=f"h-{number}", owner=f"o-{number}") for number in range(12)]
        assert all(item.result(PATIENCE)["changed"] for item in waiting)
        expected = {f"{PRE_DRAIN}/h-{number}": f"o-{number}" for number in range(12)}
        assert hooked.fleet.hooks(hooked.name) == expected

        waiting = [hooked.start(hook=f"h-{number}", owner=f"o-{number}", state="absent") for number in range(0, 12, 2)]
        assert all(item.result(PATIENCE)["changed"] for item in waiting)
        assert len(hooked.fleet.hooks(hooked.name)) == 6

    def test_by_node(self, hooked, capi):
        node = hooked.fleet.get(hooked.name)["status"]["nodeRef"]["name"]
        outcome = hooked.run(node=node)
        assert (outcome["machine"], outcome["node"]) == (hooked.name, node)
        assert hooked.fleet.hooks(hooked.name) == {OURS: "team"}
        assert hooked.run(node=node, namespace="elsewhere")["error"] == "invalid_input"

        # Where the Node says nothing, the Machine may belong to the Node of the same name in another Cluster.
        marks = {f"cluster.x-k8s.io/{name}": None for name in ("machine", "cluster-namespace", "cluster-name")}
        before = hooked.fleet.world.node(node)["metadata"]["annotations"]
        # Cluster API would write them again.
        with silent(capi):
            hooked.fleet.world.cluster.merge(paths.node(node), {"metadata": {"annotations": marks}})
            assert hooked.remove(node=node, namespace=hooked.fleet.namespace)["error"] == "refused"
            hooked.fleet.world.cluster.merge(paths.node(node), {"metadata": {"annotations": before}})
        assert hooked.remove(node=node, namespace=hooked.fleet.namespace)["changed"]

    def test_no_such_machine(self, hopeless, world):
        assert hopeless.run(machine="nobody")["error"] == "not_found"
        gone = hopeless.remove(machine="nobody")
        assert (gone["changed"], gone["phase"], gone["hooks"]) == (False, "Deleted", [])
        (node,) = world.nodes()
        assert hopeless.run(node=node)["error"] == "not_found"
        assert hopeless.remove(node=node)["changed"] is False

    @pytest.mark.parametrize(
        "options",
        [
            {"owner": " "},
            {"wait_timeout": -1},
            {"node": "n", "machine": "m"},
            {"namespace": None},
            {"kind": "MachineSet", "node": "n"},
            {"kind": "MachineSet", "wait_for": "deletion"},
            {"state": "absent", "wait_for": "deletion"},
            {"unless_deleting": True},
            {"kind": "MachineSet", "state": "absent", "unless_deleting": True},
            {"hook": "kcp-cleanup", "point": "pre-terminate"},
            {"hook": ""},
            {"hook": "a/b"},
            {"hook": "x" * 64},
        ],
        ids=str,
    )
    def test_options_that_can_t_work(self, hopeless, options):
        assert hopeless.run(**options)["error"] == "invalid_input"
        assert hopeless.fleet.hooks("lonely") == {}


names = st.text(st.sampled_from("aZ09-_./ é\u212a\u0130\u0131\n"), max_size=5) | st.integers(60, 66).map("x".__mul__)


class TestNames:
    def test_as_the_api_does(self, hopeless, cluster):
        """The module refuses, before it writes anything, what the API server would refuse."""
        trial = Cluster({"kubeconfig": hopeless.fleet.world.kubeconfig}, dry_run=True)
        path = paths.one(hopeless.fleet.path("machines"), "lonely")

        @settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
        @given(names)
        @example("x" * 63)
        @example("x" * 64)
        @example("K\u212a")
        @example("\u0130")
        @example("\u017f")
        def same(name):
            ours = theirs = True
            try:
                rules.key_of("pre-drain", name)
            except InvalidInput:
                ours = False
            try:
                trial.merge(path, {"metadata": {"annotations": {f"{PRE_DRAIN}/{name}": "x"}}})
            except ApiFailure as error:
                theirs = error.status != 422
            assert ours == theirs, name

        same()

    def test_the_longest(self, hopeless):
        outcome = hopeless.run(hook="x" * 63)
        assert outcome["changed"]
        assert hopeless.run(hook="x" * 64)["error"] == "invalid_input"
        assert hopeless.fleet.hooks("lonely") == {f"{PRE_DRAIN}/{'x' * 63}": "team"}


class TestDeletion:
    def test_both_points(self, hooked, world):
        node = hooked.info()["node"]
        hooked.run()
        hooked.run(point="pre-terminate")
        waiting = hooked.start(wait_for="deletion", wait_timeout=PATIENCE)
        time.sleep(1)
        assert not waiting.done(), "nobody deletes it yet"
        hooked.fleet.delete(hooked.name)

        outcome = waiting.result(PATIENCE)
        assert outcome["phase"] == "WaitingForPreDrainHook", outcome
        assert outcome["waiting_since"]
        assert outcome["changed"] is False
        assert hooked.info()["waiting_for"] == "pre-drain"
        assert not world.cordoned(node)
        assert hooked.remove()["changed"]

        outcome = hooked.wait(point="pre-terminate")
        assert outcome["phase"] == "WaitingForPreTerminateHook"
        assert world.cordoned(node)
        hooked.remove(point="pre-terminate")
        hooked.fleet.until_gone(hooked.name)
        assert world.cluster.find(paths.node(node)) is None
        assert hooked.remove(point="pre-terminate")["phase"] == "Deleted"

    def test_removed_unless_it_is_being_deleted(self, hooked, monkeypatch):
        hooked.run()
        outcome = hooked.remove(unless_deleting=True)
        assert (outcome["changed"], outcome["kept"]) == (True, False)
        hooked.run()
        asked = Cluster.find

        def deleted_meanwhile(cluster, path):
            """Between the look and the write."""
            found = asked(cluster, path)
            if path.endswith(f"/{hooked.name}"):
                monkeypatch.undo()
                hooked.fleet.delete(hooked.name)
            return found

        monkeypatch.setattr(Cluster, "find", deleted_meanwhile)
        outcome = hooked.remove(unless_deleting=True)
        assert (outcome["changed"], outcome["kept"]) == (False, True)
        assert "is being deleted" in outcome["warnings"][0]
        assert hooked.fleet.hooks(hooked.name) == {OURS: "team"}
        assert hooked.remove()["changed"]
        assert hooked.remove(unless_deleting=True)["kept"] is False

    def test_two_owners(self, hooked):
        """Each removes its own, in any order; the Machine continues after the last."""
        for owner in ("one", "two"):
            hooked.run(hook=owner, owner=owner)
        hooked.fleet.delete(hooked.name)
        for owner in ("one", "two"):
            assert hooked.wait(hook=owner, owner=owner)["phase"] == "WaitingForPreDrainHook"
        hooked.remove(hook="two", owner="two")
        assert hooked.wait(hook="one", owner="one")["hooks"] == [
            {"point": "pre-drain", "hook": "one", "owner": "one", "annotation": f"{PRE_DRAIN}/one"}
        ]
        hooked.remove(hook="one", owner="one")
        hooked.fleet.until_gone(hooked.name)

    def test_a_wait_that_lasts_too_long(self, hooked):
        for changed in (True, False):
            failed = hooked.run(wait_for="deletion", wait_timeout=1)
            assert (failed["error"], failed["changed"]) == ("timed_out", changed)
        assert failed["phase"] == "NotDeleting"
        assert hooked.fleet.hooks(hooked.name) == {OURS: "team"}

    def test_the_hook_is_removed_during_the_wait(self, hooked):
        waiting = hooked.start(wait_for="deletion", wait_timeout=PATIENCE)
        hooked.fleet.until(hooked.name, lambda item: OURS in (item["metadata"].get("annotations") or {}))
        hooked.fleet.annotate(hooked.name, {OURS: None})
        outcome = waiting.result(PATIENCE)
        assert (outcome["error"], outcome["why"]) == ("cannot_hold", "removed")

    @pytest.mark.long
    def test_ten_at_once(self, fleet, world):
        hooked = [Hooked(fleet, fleet.machine(node)) for node in world.nodes(10)]
        waiting = [item.start(wait_for="deletion", wait_timeout=PATIENCE) for item in hooked]
        for item in hooked:
            fleet.until(item.name, lambda found: OURS in (found["metadata"].get("annotations") or {}))
        for item in hooked:
            fleet.delete(item.name)
        outcome = [item.result(PATIENCE) for item in waiting]
        assert {item.get("phase") for item in outcome} == {"WaitingForPreDrainHook"}, outcome
        listed = world.run(deletion_hook_info, namespace=fleet.namespace, hook="backup")["machines"]
        assert [item["waiting_for"] for item in listed] == ["pre-drain"] * 10
        for item in hooked:
            item.remove()
        for item in hooked:
            fleet.until_gone(item.name)


class TestInVain:
    """The module reports it and does not wait."""

    def test_past_that_point(self, hooked):
        hooked.run(point="pre-terminate")
        hooked.fleet.delete(hooked.name)
        hooked.wait(point="pre-terminate")
        before = hooked.fleet.hooks(hooked.name)
        for wait_for in ("none", "deletion"):
            late = hooked.run(wait_for=wait_for)
            assert (late["error"], late["why"]) == ("cannot_hold", "past")
            assert late["phase"] == "WaitingForPreTerminateHook"
        assert hooked.fleet.hooks(hooked.name) == before

        more = hooked.run(point="pre-terminate", hook="more")
        assert more["changed"], "this point is not past"

    def test_while_it_is_drained(self, hooked, world):
        node = hooked.info()["node"]
        world.owned("slow", node, slow={"delete": "3600s"})
        hooked.fleet.delete(hooked.name)
        hooked.fleet.until_reason(hooked.name, "DrainingNode")
        assert hooked.run()["why"] == "past"
        assert hooked.fleet.hooks(hooked.name) == {}
        assert hooked.run(point="pre-terminate")["changed"]

    def test_no_node(self, hopeless):
        outcome = hopeless.run()
        assert outcome["changed"]
        assert "has no Node" in outcome["warnings"][0]
        failed = hopeless.wait()
        assert (failed["error"], failed["why"]) == ("cannot_hold", "no_node")
        assert hopeless.run(point="pre-terminate")["warnings"] == []

        hopeless.fleet.delete("lonely")
        hopeless.fleet.until_reason("lonely", "WaitingForPreTerminateHook")
        assert hopeless.run(hook="another")["why"] in ("no_node", "past")

    def test_the_cluster_is_being_deleted(self, fleet, world):
        hooked = Hooked(fleet, fleet.machine(world.nodes()[0]))
        hooked.run(point="pre-terminate")
        fleet.delete_cluster()
        refused = hooked.run()
        assert refused["error"] == "cannot_hold"
        assert refused["why"] in ("cluster_deleting", "past")
        assert hooked.wait(point="pre-terminate")["phase"] == "WaitingForPreTerminateHook"
        assert hooked.fleet.hooks(hooked.name) == {f"{PRE_TERMINATE}/backup": "team"}

    def test_no_control_plane_that_stays(self, hooked):
        hooked.fleet.annotate("control-plane", {f"{PRE_TERMINATE}/keep": "x"})
        hooked.fleet.delete("control-plane")
        hooked.fleet.until_reason("control-plane", "WaitingForPreTerminateHook")
        outcome = hooked.run()
        assert outcome["changed"]
        assert "no other control-plane Machine" in outcome["warnings"][0]
        assert hooked.wait()["why"] == "no_control_plane"
        hooked.run(point="pre-terminate")
        hooked.fleet.delete(hooked.name)
        assert hooked.wait(point="pre-terminate")["phase"] == "WaitingForPreTerminateHook", "as was said"
        assert OURS in hooked.fleet.hooks(hooked.name)

    def test_the_control_plane_is_being_deleted(self, hooked):
        path = hooked.fleet.control_plane(finalizers=["holdfast.dev/test"])
        try:
            hooked.run(hook="early")
            hooked.fleet.cluster.delete(path)
            refused = hooked.run()
            assert (refused["error"], refused["why"]) == ("cannot_hold", "control_plane_deleting")
            hooked.run(point="pre-terminate")
            hooked.fleet.delete(hooked.name)
            assert hooked.wait(point="pre-terminate")["phase"] == "WaitingForPreTerminateHook", "as was said"
            assert set(hooked.fleet.hooks(hooked.name)) == {f"{PRE_DRAIN}/early", f"{PRE_TERMINATE}/backup"}
        finally:
            hooked.fleet.cluster.merge(path, {"metadata": {"finalizers": None}})

    def test_the_cluster_is_deleted_during_the_wait(self, hooked):
        hooked.run(point="pre-terminate")
        waiting = hooked.start(wait_for="deletion", wait_timeout=PATIENCE)
        hooked.fleet.until(hooked.name, lambda item: OURS in (item["metadata"].get("annotations") or {}))
        hooked.fleet.delete_cluster()
        outcome = waiting.result(PATIENCE)
        assert (outcome["error"], outcome["why"]) == ("cannot_hold", "past")


class TestTemplates:
    @pytest.mark.parametrize("kind", ["MachineDeployment", pytest.param("MachineSet", marks=pytest.mark.long)])
    def test_guarded_from_birth(self, fleet, kind):
        template = Hooked(fleet, "pool")
        fleet.workers("pool", 1, kind)
        outcome = template.run(kind=kind)
        assert outcome["changed"]
        assert [item["hook"] for item in outcome["hooks"]] == ["backup"]
        assert outcome["phase"] is None
        assert template.run(kind=kind)["changed"] is False
        collection = paths.one(fleet.path(f"{kind.lower()}s"), "pool")
        fleet.cluster.merge(collection, {"spec": {"replicas": 3}})
        names = fleet.until_running("pool", 3)
        for name in names:
            # Also on the Machine that was there before.
            fleet.until(name, lambda item: item["metadata"].get("annotations", {}).get(OURS) == "team")

        fleet.cluster.merge(collection, {"spec": {"replicas": 2}})
        (going,) = wait_for_one_going(fleet, names)
        assert Hooked(fleet, going).wait()["phase"] == "WaitingForPreDrainHook"

        assert template.remove(kind=kind)["changed"]
        for name in set(names) - {going}:
            fleet.until(name, lambda item: OURS not in (item["metadata"].get("annotations") or {}))
        assert fleet.hooks(going) == {OURS: "team"}, "what is being deleted keeps it"
        removed = Hooked(fleet, going).remove()
        assert (removed["changed"], removed["warnings"]) == (True, [])
        fleet.until_gone(going)

    def test_a_hook_that_the_template_brings_back(self, fleet):
        fleet.workers("pool", 1)
        Hooked(fleet, "pool").run(kind="MachineDeployment")
        (name,) = fleet.until_running("pool", 1)
        fleet.until(name, lambda item: OURS in (item["metadata"].get("annotations") or {}))
        removed = Hooked(fleet, name).remove()
        assert removed["changed"]
        assert "template" in removed["warnings"][0]
        fleet.until(name, lambda item: OURS in (item["metadata"].get("annotations") or {}))

    def test_others_on_a_template(self, fleet):
        fleet.workers("pool", 0)
        path = paths.one(fleet.path("machinedeployments"), "pool")
        fleet.cluster.merge(path, {"spec": {"template": {"metadata": {"annotations": {**FOREIGN, "a": "b"}}}}})
        template = Hooked(fleet, "pool")
        template.run(kind="MachineDeployment")
        assert template.run(kind="MachineDeployment", hook="theirs")["error"] == "refused"
        template.remove(kind="MachineDeployment")
        metadata = fleet.cluster.get(path)["spec"]["template"]["metadata"]
        assert metadata["annotations"] == {**FOREIGN, "a": "b"}

    def test_the_control_plane(self, fleet):
        path = fleet.control_plane()
        template = Hooked(fleet, NAME)
        assert template.run(kind="KubeadmControlPlane")["changed"]
        metadata = fleet.cluster.get(path)["spec"]["machineTemplate"]["metadata"]
        assert metadata == {"annotations": {OURS: "team"}}
        assert template.run(kind="KubeadmControlPlane")["changed"] is False
        assert template.remove(kind="KubeadmControlPlane")["changed"]
        assert template.remove(kind="KubeadmControlPlane")["hooks"] == []

    def test_no_such_template(self, fleet):
        template = Hooked(fleet, "nobody")
        assert template.run(kind="MachineDeployment")["error"] == "not_found"
        assert template.remove(kind="MachineDeployment")["changed"] is False
        assert template.remove(kind="KubeadmControlPlane")["changed"] is False


def wait_for_one_going(fleet, names):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        going = [name for name in names if fleet.get(name)["metadata"].get("deletionTimestamp")]
        if going:
            return going
        time.sleep(0.2)
    raise AssertionError("none is being deleted")


class TestOlderApi:
    """The module only sees v1beta1; Cluster API itself converts the objects."""

    @pytest.fixture(autouse=True)
    def older(self, monkeypatch, cluster):
        find = Cluster.find

        def without_the_newer(self, path):
            found = find(self, path)
            if path == "/apis/cluster.x-k8s.io" and found:
                found["versions"] = [item for item in found["versions"] if item["version"] == "v1beta1"]
            return found

        monkeypatch.setattr(Cluster, "find", without_the_newer)
        assert capi_module.version_of(cluster, "cluster.x-k8s.io") == "v1beta1"

    def test_both_points(self, hooked):
        hooked.run()
        hooked.run(point="pre-terminate")
        hooked.fleet.delete(hooked.name)
        outcome = hooked.wait()
        assert outcome["phase"] == "WaitingForPreDrainHook"
        assert outcome["waiting_since"]
        hooked.remove()
        assert hooked.wait(point="pre-terminate")["phase"] == "WaitingForPreTerminateHook"
        assert hooked.info()["waiting_for"] == "pre-terminate"
        assert hooked.run()["why"] == "past"
        hooked.remove(point="pre-terminate")
        hooked.fleet.until_gone(hooked.name)

    def test_no_node(self, hopeless):
        assert "has no Node" in hopeless.run()["warnings"][0]

    def test_a_template(self, fleet):
        fleet.workers("pool", 0)
        assert Hooked(fleet, "pool").run(kind="MachineDeployment")["changed"]


class TestInfo:
    def test_what_it_lists(self, hooked, world):
        fleet = hooked.fleet
        hooked.run()
        listed = world.run(deletion_hook_info, namespace=fleet.namespace)["machines"]
        assert [item["name"] for item in listed] == sorted(["control-plane", hooked.name])
        mine = world.run(deletion_hook_info, hook="backup", namespace=fleet.namespace)["machines"]
        assert mine == [
            {
                "name": hooked.name,
                "namespace": fleet.namespace,
                "cluster": NAME,
                "node": hooked.name.removeprefix("m-"),
                "phase": "NotDeleting",
                "waiting_for": None,
                "waiting_since": None,
                "paused": False,
                "hooks": [{"point": "pre-drain", "hook": "backup", "owner": "team", "annotation": OURS}],
            }
        ]
        none = world.run(deletion_hook_info, machine="nobody", namespace=fleet.namespace)
        assert none["machines"] == []
        assert world.run(deletion_hook_info, namespace="no-such-namespace")["machines"] == []
        control = world.run(deletion_hook_info, namespace=fleet.namespace, selector="cluster.x-k8s.io/control-plane")[
            "machines"
        ]
        assert [item["name"] for item in control] == ["control-plane"]

    def test_waits_for_the_first_that_waits(self, hooked, world):
        hooked.run()
        options = {"namespace": hooked.fleet.namespace, "hook": "backup", "wait_for": "waiting"}
        early = world.run(deletion_hook_info, wait_timeout=1, **options)
        assert [item["waiting_for"] for item in early["machines"]] == [None]
        waiting = world.start(deletion_hook_info, wait_timeout=PATIENCE, **options)
        hooked.fleet.delete(hooked.name)
        (found,) = waiting.result(PATIENCE)["machines"]
        assert found["waiting_for"] == "pre-drain"
        assert found["waiting_since"]


@pytest.mark.long
def test_in_a_play(hooked, ansible):
    """Check mode, diff, two clusters: as in a task."""
    access = {"kubeconfig": hooked.fleet.world.kubeconfig, "management": {"kubeconfig": hooked.fleet.world.kubeconfig}}
    nowhere = {"host": "https://127.0.0.1:1", "api_key": "none", "validate_certs": False}
    options = {**hooked.options(), **access}
    name = "holdfast.kubernetes.deletion_hook"
    trial, outcome, lost, info, back = ansible.tasks(
        [
            {name: options, "check_mode": True},
            {name: options},
            {name: {**options, "management": nowhere, "api_timeout": 1}},
            {"holdfast.kubernetes.deletion_hook_info": {**access, "hook": "backup"}},
            {name: {**options, "state": "absent"}},
        ]
    )[0]
    assert trial["changed"]
    assert outcome["changed"]
    assert lost["error"] == "api_unreachable"
    assert hooked.name in [item["name"] for item in info["machines"]]
    assert back["changed"]
    assert hooked.fleet.hooks(hooked.name) == {}


def test_a_busy_object(hooked):
    """Another client writes all the time; the hook is still set, and none of their writes is lost."""
    over = threading.Event()

    def write():
        number = 0
        while not over.is_set():
            number += 1
            hooked.fleet.annotate(hooked.name, {"busy": str(number)})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert hooked.run()["changed"]
        assert hooked.remove()["changed"]
    finally:
        over.set()
        writer.join()
    assert deleting(hooked.fleet.get(hooked.name)) == "NotDeleting"
