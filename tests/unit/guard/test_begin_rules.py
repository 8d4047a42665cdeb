# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The start of a guard: settings that can't work, names of files, and the Machines that get hooks."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    InvalidInput,
    NotFound,
    Refused,
    Unreachable,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.rules import CannotHold
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import begin_rules as rules

GIVEN = {
    "machines": ["m"],
    "selector": "",
    "cluster": "",
    "templates": [],
    "namespace": "metal",
    "set_hooks": True,
    "state": "present",
    "parallel": 1,
    "timeout": 0,
    "retry_seconds": 0,
    "points": ["pre-drain"],
    "pre_drain_tasks": [],
    "pre_terminate_tasks": [],
}


def problem(**given):
    known = {**GIVEN, **given}
    return rules.problem(known, rules.files_of(known, "/srv/play"))


def test_settings_that_work():
    assert problem() == ""
    assert problem(machines=[], set_hooks=False, namespace="") == ""
    assert problem(machines=[], templates=[{"name": "t", "kind": "MachineSet"}]) == ""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"machines": []}, "Select the Machines that get hooks"),
        ({"machines": [], "set_hooks": False, "state": "absent"}, "Select the Machines that get hooks"),
        ({"namespace": ""}, "need machine_guard_namespace"),
        ({"parallel": 0}, "must be at least 1"),
        ({"timeout": -1}, "at least 0"),
        ({"retry_seconds": -1}, "at least 0"),
        ({"points": []}, "must name pre-drain, pre-terminate or both"),
        ({"pre_drain_tasks": ["/a/x.yml", "/b/x.yml"]}, "the same name, x.yml, x.yml"),
    ],
)
def test_settings_that_can_not_work(given, why):
    assert why in problem(**given)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/srv/play/tasks/a.yml", "tasks/a.yml"),
        ("/srv/play//a.yml", "a.yml"),
        ("/srv/player/a.yml", "a.yml"),
        ("/elsewhere/tasks/a.yml", "a.yml"),
        ("tasks/a.yml", "tasks/a.yml"),
    ],
)
def test_a_file_has_the_same_name_in_each_checkout(path, name):
    found = rules.files_of({**GIVEN, "pre_drain_tasks": [path]}, "/srv/play/")
    assert [(file.path, file.name) for file in found["pre-drain"]] == [(path, name)]


def machine(name, phase="NotDeleting", cluster="c"):
    return {"name": name, "namespace": "metal", "phase": phase, "cluster": cluster}


ALL = [machine("m"), machine("n"), machine("o", cluster="d"), machine("p", "DrainingNode")]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, "m"),
        ({"machines": [], "selector": "a=b"}, "mnop"),
        ({"machines": [], "cluster": "d"}, "o"),
        ({"machines": ["n", "p"], "state": "absent"}, "n"),
        ({"machines": [], "cluster": "c", "templates": [{"name": "t"}]}, ""),
        ({"templates": [{"name": "t"}]}, "m"),
    ],
)
def test_which_machines_get_hooks(given, names):
    assert [item["name"] for item in rules.chosen(ALL, {**GIVEN, **given})] == list(names)


def test_names_that_no_machine_has():
    assert rules.unknown(ALL, {**GIVEN, "machines": ["x", "m", "x"]}) == ["x"]


@pytest.mark.parametrize(
    ("error", "answered", "reported"),
    [
        (ApiFailure("no", status=403), True, True),
        (ApiFailure("no", status=422), True, True),
        (ApiFailure("busy", status=503), False, False),
        (Unreachable("away"), False, False),
        (CannotHold("past", why="past"), True, True),
        (Refused("theirs"), True, True),
        (NotFound("gone"), True, True),
        (InvalidInput("wrong"), True, False),
    ],
    ids=lambda item: getattr(item, "message", None),
)
def test_what_an_error_means(error, answered, reported):
    assert (rules.is_answered(error), rules.is_reported(error)) == (answered, reported)


@pytest.mark.parametrize(
    ("state", "check_mode", "steps"),
    [("present", False, "serve report"), ("present", True, "plan report"), ("absent", False, "report")],
)
def test_what_follows(state, check_mode, steps):
    assert rules.steps({"state": state}, check_mode=check_mode) == steps.split()


@pytest.mark.parametrize(
    ("set_hooks", "state", "changes"),
    [(True, "present", True), (False, "present", False), (False, "absent", True), (True, "absent", True)],
)
def test_which_runs_change_hooks(set_hooks, state, changes):
    assert rules.changes_hooks({"set_hooks": set_hooks, "state": state}) is changes


@pytest.mark.parametrize("name", ["machines", "selector", "cluster"])
def test_each_of_them_selects_machines(name):
    nothing = {"machines": [], "selector": "", "cluster": ""}
    assert not rules.selects(nothing)
    assert rules.selects({**nothing, name: "a"})


def test_slashes_after_the_playbook_s_folder():
    given = {"pre_drain_tasks": ["/srv//tasks/a.yml"], "pre_terminate_tasks": []}
    assert [file.name for file in rules.files_of(given, "/srv/")["pre-drain"]] == ["tasks/a.yml"]
