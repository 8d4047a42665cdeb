# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role machine_guard shows the order of the steps and the user's own tasks, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import begin_rules, journey_rules

ROLE = Path(__file__).resolve().parents[3] / "roles/machine_guard"
FILES = sorted((ROLE / "tasks").glob("*.yml"))
# A module's answer: the steps that are left, or the next step.
ON_A_STEP = re.compile(r"__machine_guard_turn\.step [=!]= '(\w+)'|'(\w+)' in __machine_guard_(?:begun|end)\.steps")


def tasks(path):
    def walk(items):
        for item in items:
            parts = [part for key in ("block", "rescue", "always") for part in walk(item.get(key) or [])]
            yield item
            yield from parts

    return list(walk(yaml.safe_load(path.read_text())))


def steps(path):
    """The steps on which the tasks of a file depend."""
    found = [ON_A_STEP.fullmatch(task["when"]) for task in tasks(path) if "when" in task]
    return [step for match in found if match for step in match.groups() if step]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_task_waits_fails_or_keeps_anything(path):
    for task in tasks(path):
        assert not {"until", "failed_when", "ansible.builtin.set_fact"} & task.keys(), task["name"]


def test_every_answer_of_the_module_has_its_task():
    answers = {*journey_rules.ANSWERS} - {journey_rules.CONTINUE}
    assert {*steps(ROLE / "tasks/step.yml"), *steps(ROLE / "tasks/serve.yml")} == answers
    assert {*steps(ROLE / "tasks/main.yml"), *steps(ROLE / "tasks/begin.yml")} == {begin_rules.SERVE, begin_rules.PLAN}


def test_a_worker_takes_steps_until_the_module_says_that_it_is_done():
    """The role has no count and no time of its own, and ends by the module's answer alone."""
    (block,) = yaml.safe_load((ROLE / "tasks/serve.yml").read_text())
    first, *others = block["block"]
    assert (first["ansible.builtin.include_tasks"], "when" in first) == ("step.yml", False)
    assert {task["when"] for task in others} == {"__machine_guard_turn.step != 'done'"}
    assert includes(ROLE / "tasks/further_steps.yml")[-1] == "further_steps.yml"
    for path in FILES:
        for task in tasks(path):
            assert not {"loop", "ansible.builtin.meta", "ansible.builtin.wait_for"} & task.keys(), task["name"]


def test_files_that_include_each_other_form_a_tree():
    """Each file inside another one makes the tasks of a worker slower, and Ansible fails at about 300 of them."""
    assert includes(ROLE / "tasks/serve.yml") == ["step.yml", "ten_steps.yml", "further_steps.yml"]
    assert includes(ROLE / "tasks/ten_steps.yml") == ["step.yml"] * 10
    assert includes(ROLE / "tasks/hundred_steps.yml") == ["ten_steps.yml"] * 10
    assert includes(ROLE / "tasks/further_steps.yml") == [*["hundred_steps.yml"] * 10, "further_steps.yml"]


def includes(path):
    """The files that a file includes. Each include except the first has a condition that the last step was not done."""
    found = [task for task in tasks(path) if "ansible.builtin.include_tasks" in task]
    assert all("when" in task for task in found if task["name"] != "Take a step")
    return [task["ansible.builtin.include_tasks"] for task in found]
