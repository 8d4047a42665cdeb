# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines whose deletion waits, served by a real ansible-rulebook. Deleted by Cluster API's own controller."""

from __future__ import annotations

import time

import pytest
from integration.support.machines_capi import PRE_DRAIN, PRE_TERMINATE, Fleet, controlled
from integration.support.rulebooks import Listening, Rulebooks, events, until, until_runs

OURS = {f"{PRE_DRAIN}/machine-guard": "holdfast.kubernetes", f"{PRE_TERMINATE}/machine-guard": "holdfast.kubernetes"}
THEIRS = {f"{PRE_DRAIN}/machine-guard": "another-owner", f"{PRE_DRAIN}/backup": "holdfast.kubernetes"}


@pytest.fixture(scope="module")
def capi(lab):
    with controlled(lab) as found:
        yield found


@pytest.fixture
def fleet(capi, world):
    found = Fleet(world)
    yield found
    found.close()


@pytest.fixture
def listen(fleet):
    """Start the source for this fleet's Machines."""
    started = []

    def start(**args):
        common = {"kubeconfig": fleet.world.kubeconfig, "namespace": fleet.namespace, "hook": "machine-guard"}
        started.append(Listening("waiting_machine", **common, **args))
        return started[-1]

    yield start
    for source in started:
        source.stop()


@pytest.fixture
def rulebooks(ansible, kubeconfig):
    found = Rulebooks(ansible, kubeconfig)
    yield found
    found.close()


def guarded(fleet, count=1, annotations=None):
    """Machines with hooks, by default ours, on simulated nodes."""
    return [fleet.machine(node, annotations=annotations or OURS) for node in fleet.world.nodes(count)]


@pytest.mark.long
def test_each_point_is_reported_once_and_again_after_a_restart(fleet, listen):
    (name,) = guarded(fleet)
    listener = listen(owner="holdfast.kubernetes")
    fleet.delete(name)

    (event,) = listener.until(machine=name)
    assert (event["hook"]["point"], event["hook"]["owner"]) == ("pre-drain", "holdfast.kubernetes")
    assert event["machine"]["phase"] == "WaitingForPreDrainHook"
    assert event["machine"]["node"] == name.removeprefix("m-")
    assert event["key"] == f"{event['machine']['uid']}/pre-drain/machine-guard"
    # Only the source starts again here: it remembers nothing, and gets the same events.
    (again,) = listen(owner="holdfast.kubernetes").until(machine=name)
    assert again["key"] == event["key"]
    fleet.annotate(name, {f"{PRE_DRAIN}/machine-guard": None})
    events_ = listener.until(2, machine=name)
    assert [item["hook"]["point"] for item in events_] == ["pre-drain", "pre-terminate"]
    fleet.annotate(name, {f"{PRE_TERMINATE}/machine-guard": None})
    fleet.until_gone(name)
    assert len(listener.events(machine=name)) == 2


@pytest.mark.long
def test_hooks_of_others_and_machines_that_stay_are_not_reported(fleet, listen):
    (theirs,) = guarded(fleet, annotations=THEIRS)
    ours, stays = guarded(fleet, 2)
    listener = listen(owner="holdfast.kubernetes")
    fleet.delete(theirs)
    fleet.until_reason(theirs, "WaitingForPreDrainHook")
    fleet.delete(ours)

    listener.until(machine=ours)
    assert listener.events(machine=theirs) == []
    assert listener.events(machine=stays) == []


@pytest.mark.long
def test_a_machine_that_is_deleted_is_served_within_seconds_and_goes(fleet, rulebooks):
    first, second = guarded(fleet, 2)
    run = rulebooks.start("guard_machine", waiting_machine_namespace=fleet.namespace)
    started = time.monotonic()
    fleet.delete(first)
    until(run, lambda: events(run, first), "the event")
    sent_after = time.monotonic() - started
    until(run, lambda: "PLAY [" in run.output, "the playbook")
    started_after = time.monotonic() - started
    fleet.until_gone(first)
    # One run serves both points; the run for the second point finds nothing to do.
    until_runs(run, 2)

    print(f"the event was sent after {sent_after:.1f} s, the playbook began after {started_after:.1f} s")
    fleet.delete(second)
    fleet.until_gone(second)
    until_runs(run, 4)
    assert "fatal:" not in run.output


@pytest.mark.long
def test_the_second_point_is_not_taken_for_the_first(fleet, rulebooks):
    (name,) = guarded(fleet)

    def say(ruleset):
        text = "{{ event.hook.point }} of {{ event.machine.cluster }}"
        ruleset["rules"][0]["action"] = {"run_playbook": {"name": "say.yml", "extra_vars": {"text": text}}}

    says = {"ansible.builtin.debug": {"msg": "it waits at {{ text }}"}}
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [says]}
    variables = {"waiting_machine_namespace": fleet.namespace}
    run = rulebooks.start("guard_machine", change=say, files={"say.yml": [play]}, **variables)
    fleet.delete(name)
    for point, annotation in (("pre-drain", PRE_DRAIN), ("pre-terminate", PRE_TERMINATE)):
        until(run, lambda point=point: f"it waits at {point} of capi" in run.output, f"the event of {point}")
        fleet.annotate(name, {f"{annotation}/machine-guard": None})
    fleet.until_gone(name)


@pytest.mark.long
def test_killed_with_its_playbook_it_resumes_when_it_is_started_again(fleet, rulebooks):
    (name,) = guarded(fleet)
    run = rulebooks.start("guard_machine", waiting_machine_namespace=fleet.namespace)
    fleet.delete(name)
    until(run, lambda: "PLAY [" in run.output, "the playbook")
    run.close()

    again = rulebooks.start("guard_machine", waiting_machine_namespace=fleet.namespace)
    fleet.until_gone(name)
    until_runs(again, 1)
    assert "fatal:" not in again.output
