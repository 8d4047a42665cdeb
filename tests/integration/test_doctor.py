# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor on a real API server, next to the live runs of other tests: asked about one group or its nodes only.

Where it is asked about everything, it only reads.
"""

from __future__ import annotations

import re

import pytest
from integration.support import machines
from integration.support.ward import Ward

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor import doctor as doctor_module
from ansible_collections.holdfast.kubernetes.plugins.modules import (
    cordon,
    doctor,
    node_claim,
    node_opt_outs,
)

NOWHERE = {"host": "https://127.0.0.1:1", "api_key": "none", "validate_certs": False}
SKIP = "cluster.x-k8s.io/skip-remediation"
ALL = {"cordon", "opt_outs", "claim", "record", "slot", "operation", "run"}


@pytest.fixture(scope="module")
def installed(lab, cluster):
    with machines.installed(lab, cluster):
        yield


@pytest.fixture
def ward(world):
    return Ward(world)


def kinds(result, key="stale"):
    return {finding["kind"] for finding in result["findings"] if finding[key]}


def test_a_refused_write_to_one_node_keeps_nothing_else(world, monkeypatch):
    """For example, an admission policy denies it."""
    ward = Ward(world, 2)
    ward.begin()
    for node in ward.nodes:
        ward.work(node)
    ward.die()
    take = doctor_module.claims.take

    def denied(cluster, name, **options):
        if name == ward.first:
            raise ApiFailure("The API server refused it (403): a policy denies it.", status=403)
        return take(cluster, name, **options)

    monkeypatch.setattr(doctor_module.claims, "take", denied)
    result = ward.clear()
    assert result["failed"]
    assert f"Node {ward.first}: The API server refused it" in result["msg"]
    assert {item["node"] for item in result["findings"] if item["kind"] == "cordon" and item["cleared"]} == {
        ward.nodes[1]
    }
    assert world.cordoned(ward.first)
    assert not world.cordoned(ward.nodes[1])

    monkeypatch.undo()
    assert not ward.clear().get("failed")
    ward.assert_cleared()


@pytest.mark.core
def test_what_a_dead_run_left_is_cleared_and_then_nothing_is_left(ward):
    ward.left_by()
    report = ward.ask()
    assert report["changed"] is False
    assert kinds(report) == ALL
    assert kinds(report, "cleared") == set()
    assert report["stale"] == len(ALL)
    assert all(finding["silent_seconds"] > 90 for finding in report["findings"] if finding["kind"] == "claim")
    ward.assert_untouched()

    result = ward.clear()
    assert result["changed"]
    assert kinds(result, "cleared") == ALL
    assert result["diff"]["after"] == {"stale": []}
    ward.assert_cleared()
    assert not ward.lives()

    again = ward.clear()
    assert (again["changed"], again["stale"], again["findings"]) == (False, 0, [])


def test_nothing_of_a_live_run_is_cleared(ward):
    ward.begin()
    ward.work(ward.first)
    ward.live_on()
    before = ward.state()
    result = ward.clear()

    assert (result["changed"], result["stale"]) == (False, 0)
    assert {finding["kind"] for finding in result["findings"] if finding["alive"]} == ALL - {"operation"}
    assert ward.state() == before


def test_check_mode_reports_and_changes_nothing(ward):
    ward.left_by()
    before = ward.state()
    result = ward.clear(check_mode=True)

    assert result["changed"]
    assert kinds(result, "cleared") == ALL
    assert ward.state() == before


def test_everything_is_checked_without_a_scope(ward):
    ward.left_by()
    result = ward.world.run(doctor, state="cleared", check_mode=True)

    mine = [item for item in result["findings"] if ward.group in (item["group"], *item["run"].split("one-"))]
    mine += [item for item in result["findings"] if item["node"] == ward.first and item not in mine]
    assert {item["kind"] for item in mine if item["cleared"]} == ALL


@pytest.mark.parametrize("moment", ["before it begins", "once it has the claim"])
def test_a_run_that_is_live_again_keeps_its_objects(ward, monkeypatch, moment):
    ward.left_by()
    method = "clear" if moment == "before it begins" else "_claim"
    original = getattr(doctor_module._Clearing, method)

    def meanwhile(self, *arguments):
        first = original(self, *arguments) if method == "_claim" else None
        ward.come_to_life()
        return first if method == "_claim" else original(self, *arguments)

    monkeypatch.setattr(doctor_module._Clearing, method, meanwhile)
    result = ward.clear()

    assert kinds(result, "cleared") <= {"claim"}
    assert {item["kind"] for item in result["diff"]["after"]["stale"]} >= ALL - {"claim"}
    ward.assert_untouched()
    if moment == "before it begins":
        assert ward.ours()["claim"]["run"] == ward.run_of("one")
    assert ward.ledger()["operations"][-1]["runs"] == [ward.run_of("one")]


def test_a_run_that_resumed_the_node_keeps_it(ward):
    ward.left_by()
    ward.begin("two")
    assert ward.ledger()["slots"][ward.first]["run"] == ward.run_of("two")
    result = ward.clear()

    assert kinds(result, "cleared") == {"claim", "run"} & kinds(result)
    assert ward.world.cordoned(ward.first)
    assert {"cordon", "opt-outs", "operation"} <= set(ward.ours())
    ward.do(node_claim, name=ward.first, run=ward.run_of("two"), operation="kernel")
    assert (ward.clear()["changed"], ward.ours()["claim"]["run"]) == (False, ward.run_of("two"))


def test_another_owners_cordon_stays(ward):
    ward.do(cordon, name=ward.first, owner="storage", reason="disk")
    result = ward.clear(group=None, nodes=[ward.first])

    (found,) = result["findings"]
    assert not found["stale"]
    assert "only its owner" in found["why"]
    assert ward.world.cordoned(ward.first)


def test_a_node_that_is_not_ready_stays_as_it_is(ward):
    ward.left_by()
    ward.world.set_condition(ward.first, "Ready", "Unknown", "NodeStatusUnknown")
    before = ward.state()
    result = ward.clear()

    assert (result["changed"], result["stale"]) == (False, 0)
    assert ward.state() == before
    (todo,) = {item["todo"] for item in result["findings"] if item["todo"]}
    assert "NodeStatusUnknown" in todo
    assert f"doctor_release={ward.first}" in todo

    released = ward.clear(release=[ward.first])
    assert kinds(released, "cleared") == ALL - {"cordon"}
    assert ward.world.cordoned(ward.first)
    assert ward.clear(release=[ward.first])["changed"] is False

    ward.world.set_condition(ward.first, "Ready", "True", "KubeletReady")
    assert kinds(ward.clear(), "cleared") == {"cordon"}
    ward.assert_cleared()


def test_when_the_node_is_back_the_same_operation_continues(ward):
    ward.left_by()
    ward.world.set_condition(ward.first, "Ready", "Unknown", "NodeStatusUnknown")
    ward.clear()
    ward.world.set_condition(ward.first, "Ready", "True", "KubeletReady")
    found = ward.begin("two", operation="")

    assert (found["operation"], found["takes_over"]) == ("kernel", ward.nodes)
    ward.work(ward.first, "two")


def test_a_failed_slot_stays_until_it_is_released(ward):
    ward.left_by()
    ward.slot(ward.first, "", state="failed", reason="it hangs", healthy=False)
    before = ward.state()
    result = ward.clear()
    assert result["changed"] is False
    assert "(it hangs)" in "".join(result["report"])
    assert ward.state() == before

    assert kinds(ward.clear(release=[ward.first]), "cleared") == ALL
    ward.assert_cleared()
    assert ward.clear(release=[ward.first])["changed"] is False


def test_a_failed_slot_goes_once_the_node_is_back(ward):
    ward.left_by()
    ward.slot(ward.first, "", state="failed", reason="it hangs", healthy=False)
    ward.world.cluster.merge(f"{paths.node(ward.first)}/status", {"status": {"nodeInfo": {"bootID": "another"}}})

    assert kinds(ward.clear(), "cleared") == ALL
    ward.assert_cleared()


def test_objects_without_a_run_stay(ward):
    ward.slot(ward.first, "")
    ward.do(node_opt_outs, name=ward.first)
    before = ward.state()
    result = ward.clear()

    assert {item["kind"] for item in result["findings"] if item["todo"]} == {"slot", "opt_outs"}
    assert result["changed"] is False
    assert ward.state() == before


def test_the_slot_of_a_deleted_node(ward):
    ward.left_by()
    ward.world.cluster.delete(paths.node(ward.first))

    assert kinds(ward.clear(), "cleared") == {"slot", "operation", "run"}
    assert ward.ledger()["slots"] == {}


def test_some_nodes_only(world):
    ward = Ward(world, 2)
    ward.begin()
    for node in ward.nodes:
        ward.work(node)
    ward.die()
    first, second = ward.nodes
    before = ward.ours(second)

    assert ward.clear(nodes=[])["findings"] == []
    result = ward.clear(nodes=[first])
    assert {item["node"] for item in result["findings"]} == {first, ""}
    assert kinds(result, "cleared") == ALL - {"operation", "run"}
    assert set(ward.ours(first)) == {"operation"}
    assert ward.ours(second) == before
    assert set(ward.ledger()["slots"]) == {second}
    assert ward.lives(), "it has left something elsewhere"

    assert kinds(ward.clear(group=None, nodes=[second]), "cleared") == ALL - {"operation", "run"}
    assert kinds(ward.clear(), "cleared") == {"operation", "run"}


def test_another_group_is_not_touched(ward):
    ward.left_by()
    before = ward.state()
    result = ward.clear(group=f"not-{ward.group}")

    assert (result["changed"], result["findings"]) == (False, [])
    assert ward.group in result["warnings"][0]
    assert ward.state() == before
    assert ward.clear(group="Not A Name")["error"] == "invalid_input"


class TestMachine:
    @pytest.fixture
    def machine(self, installed, ward):
        return machines.Machine(ward.world, ward.first)

    def test_its_opt_out_is_taken_back(self, ward, machine):
        ward.left_by()
        assert machine.annotations == {SKIP: "holdfast.dev"}
        found = next(item for item in ward.ask()["findings"] if item["kind"] == "opt_outs")
        assert machine.full_name in found["why"]

        assert kinds(ward.clear(), "cleared") == ALL
        assert machine.annotations == {}
        ward.assert_cleared()

    def test_the_rest_is_cleared_while_the_management_cluster_is_away(self, ward, machine):
        ward.left_by()
        failed = ward.clear(management=NOWHERE, api_timeout=1)

        assert failed["failed"]
        assert failed["changed"]
        assert "127.0.0.1:1" in failed["msg"]
        assert kinds(failed, "cleared") >= ALL - {"opt_outs", "run"}
        assert set(ward.ours()) == {"opt-outs", "operation"}
        assert machine.annotations == {SKIP: "holdfast.dev"}

        assert "opt_outs" in kinds(ward.clear(), "cleared")
        assert machine.annotations == {}
        ward.assert_cleared()


class TestPlaybook:
    """Nodes in every bad state: what a person reads about them."""

    @pytest.fixture
    def ward(self, world):
        """Nodes that a dead run left, that a live run works on, that are down, and that others cordoned."""
        ward = Ward(world, 4)
        left, busy, down, theirs = ward.nodes
        ward.begin("dead")
        ward.work(left, "dead")
        ward.work(down, "dead")
        ward.slot(down, "dead", state="failed", reason="it does not answer", healthy=False)
        ward.begin("live", "another")
        ward.work(busy, "live", "another")
        ward.do(cordon, name=theirs, owner="storage", reason="disk")
        world.set_condition(down, "Ready", "Unknown", "NodeStatusUnknown")
        ward.live_on("live")
        ward.die("dead")
        return ward

    @pytest.fixture
    def play(self, ward, ansible):
        def play(*arguments):
            options = ("-e", f"doctor_group={ward.group}", *arguments)
            environment = {"K8S_AUTH_KUBECONFIG": ward.world.kubeconfig}
            done = ansible.command("ansible-playbook", "holdfast.kubernetes.doctor", *options, **environment)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        return play

    @staticmethod
    def rows(output):
        """The first words of each line, by node."""
        table = [
            line.strip().strip('",')
            for line in output.partition("LAST SIGN")[2].partition("What you have to do")[0].splitlines()
        ]
        rows = [re.split(r"  +", line) for line in table if "  " in line]
        return {
            node: {what: verdict for verdict, what, where, *_rest in rows if where == node}
            for node in {row[2] for row in rows}
        }

    def test_says_what_it_would_do_and_then_does_just_that(self, ward, play):
        left, busy, down, theirs = ward.nodes
        before = ward.state()
        said = self.rows(play("--check"))
        assert ward.state() == before

        on_node = ("cordon", "opt-outs", "claim", "record", "slot")
        assert said[left] == dict.fromkeys(on_node, "to clear")
        assert said[busy] == dict.fromkeys(on_node, "live")
        assert said[down] == dict.fromkeys(on_node, "stays")
        assert said[theirs] == {"cordon": "stays"}

        untouched = {node: ward.world.node(node)["metadata"]["annotations"] for node in (busy, down, theirs)}
        done = play()
        cleared = {
            node: {what: verdict.replace("to clear", "cleared") for what, verdict in row.items()}
            for node, row in said.items()
        }
        assert self.rows(done) == cleared
        assert f"doctor_release={down}" in done.partition("What you have to do")[2]
        assert {node: ward.world.node(node)["metadata"]["annotations"] for node in untouched} == untouched
        assert [ward.world.cordoned(node) for node in ward.nodes] == [False, True, True, True]
        assert set(ward.ledger()["slots"]) == {busy, down}
        assert "changed=0" in play()

    @pytest.mark.long
    def test_released_by_a_person(self, ward, play):
        left, busy, down, _theirs = ward.nodes
        done = self.rows(play("-e", f"doctor_nodes={down}", "-e", f"doctor_release={down}"))

        assert done[down] == {
            "cordon": "stays",
            **dict.fromkeys(("opt-outs", "claim", "record", "slot"), "cleared"),
        }
        assert left not in done
        assert set(ward.ledger()["slots"]) == {left, busy}
        assert ward.world.cordoned(down)


@pytest.mark.long
def test_the_playbook_says_what_went_wrong(ansible, kubeconfig):
    command = ("ansible-playbook", "holdfast.kubernetes.doctor", "-e", "doctor_group=Not_A_Name")
    done = ansible.command(*command, K8S_AUTH_KUBECONFIG=kubeconfig)

    assert done.returncode == 2
    assert "is not a valid name" in done.stdout
