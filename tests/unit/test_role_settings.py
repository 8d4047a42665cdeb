# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action role_settings in a real ansible-playbook, with a role of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
SECRET = "hunter2"
SPEC = {
    "main": {
        "options": {
            "demo_force": {"type": "bool", "default": True},
            "demo_wait": {"type": "int", "default": 60},
            "demo_grace": {"type": "int"},
            "demo_nodes": {"type": "list", "elements": "str", "default": []},
            "demo_windows": {"type": "list", "elements": "dict", "default": []},
            "demo_name": {"type": "str"},
            "demo_lazy": {"type": "str"},
            "demo_check_tasks": {"type": "str"},
            "demo_more_tasks": {"type": "list", "elements": "str"},
            "demo_repeat_tasks": {"type": "bool"},
            "demo_notify": {"type": "str"},
            "demo_password": {"type": "str", "default": "", "no_log": True},
            "demo_auth": {"type": "dict", "default": {}, "no_log": True},
        }
    },
    "other": {"options": {"demo_other": {"type": "str"}}},
}


@pytest.fixture
def play(tmp_path):
    """Runs the role with extra variables; what it answered, and all that was printed."""
    role = tmp_path / "roles/demo"
    for folder in ("tasks", "meta", "defaults"):
        (role / folder).mkdir(parents=True)
    answer = tmp_path / "answer.json"
    tasks = [
        {"holdfast.kubernetes.role_settings": {"known": ["demo_known"]}, "register": "read"},
        {"ansible.builtin.copy": {"content": "{{ [read, read.settings, read.settings] }}", "dest": str(answer)}},
    ]
    (role / "tasks/main.yml").write_text(yaml.safe_dump(tasks))
    (role / "meta/argument_specs.yml").write_text(yaml.safe_dump({"argument_specs": SPEC}))
    (role / "defaults/main.yml").write_text("demo_name: '{{ inventory_hostname }}'\ndemo_password: ''\ndemo_auth: {}\n")
    include = {"ansible.builtin.include_role": {"name": "demo", "rolespec_validate": False}}
    book = [{"hosts": "localhost", "gather_facts": False, "tasks": [include]}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(book))

    def run(**variables: Any) -> tuple[dict[str, Any], str]:
        (tmp_path / "extra.json").write_text(json.dumps(variables))
        env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        collections = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or str(CHECKOUT / "build/collections")
        done = subprocess.run(
            [str(Path(sys.executable).parent / "ansible-playbook"), "-vvv", "-e", "@extra.json", "play.yml"],
            cwd=tmp_path,
            env={**env, "ANSIBLE_COLLECTIONS_PATH": collections, "ANSIBLE_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )
        output = done.stdout + done.stderr
        return (json.loads(answer.read_text())[0] if done.returncode == 0 else {}), output

    return run


def test_files_of_tasks_are_checked(play, tmp_path):
    (tmp_path / "broken.yml").write_text("- name: [")
    (tmp_path / "text.yml").write_text("just text")
    tasks = [{"block": [{"no.such.module": {}}]}]
    (tmp_path / "unknown.yml").write_text(yaml.safe_dump(tasks))
    (tmp_path / "block.yml").write_text("- block: 5")
    read, output = play(
        demo_check_tasks=f"{tmp_path}/broken.yml",
        demo_more_tasks=[f"{tmp_path}/{name}.yml" for name in ("text", "unknown", "block")],
        demo_notify="nowhere.yml",
    )

    assert read == {}
    text = " ".join(output.split())
    assert "so nothing was done" in text
    assert f"demo_check_tasks: {tmp_path}/broken.yml can't be used: " in text
    assert f"demo_more_tasks: {tmp_path}/text.yml is not a list of tasks." in text
    assert (
        f"demo_more_tasks: {tmp_path}/unknown.yml can't be used: couldn't resolve module/action 'no.such.module'"
        in text
    )
    assert f"demo_more_tasks: {tmp_path}/block.yml can't be used: 5 is not a list of tasks." in text
    assert "demo_notify: there is no file nowhere.yml. Give its full path" in text


def test_files_of_tasks_are_found_as_they_are_included(play, tmp_path):
    (tmp_path / "roles/demo/tasks/own.yml").write_text("- ansible.builtin.debug:\n")
    (tmp_path / "empty.yml").write_text("---\n")
    tasks = [
        {"action": "{{ any }}"},
        {"local_action": "command true"},
        {"block": [{"lease_hold": {}}], "rescue": [{"shell": "true"}], "collections": ["holdfast.kubernetes"]},
        {"import_tasks": "own.yml"},
        {"lease_hold": {}, "collections": "holdfast.kubernetes"},
        None,
    ]
    (tmp_path / "mine.yml").write_text(yaml.safe_dump(tasks))
    read, output = play(
        demo_check_tasks=f"{tmp_path}/mine.yml",
        demo_more_tasks=f"{tmp_path}/empty.yml",
        demo_notify="own.yml",
        demo_repeat_tasks=True,
    )

    assert "settings" in read, output
    assert read["settings"]["check_tasks"] == f"{tmp_path}/mine.yml", output


def test_texts_get_their_types_templates_are_evaluated_once_and_secrets_stay_secret(play, tmp_path):
    count = tmp_path / "count"
    read, output = play(
        demo_force="false",
        demo_wait="",
        demo_grace="0",
        demo_nodes="a, b",
        demo_windows='[{"start": "22:00"}]',
        demo_name=" ",
        demo_lazy=f"{{{{ lookup('ansible.builtin.pipe', 'echo once | tee -a {count}') }}}}",
        demo_password=SECRET,
        demo_auth=json.dumps({"password": SECRET}),
        demo_known="a fact of the role",
        awx_job_id="4711",
        awx_user_name="alice",
    )

    assert read["settings"] == {
        "force": False,
        "wait": 60,
        "grace": 0,
        "nodes": ["a", "b"],
        "windows": [{"start": "22:00"}],
        "name": "localhost",
        "lazy": "once",
    }
    assert read["who"]["job"] == "4711"
    assert read["who"]["person"] == f"alice@{read['who']['host']}"
    assert count.read_text().split() == ["once"]
    assert SECRET not in output


def test_invalid_values_are_reported_at_once_without_secrets(play):
    read, output = play(
        demo_wait="soon",
        demo_forse="true",
        demo_auth=f'{{"password": "{SECRET}"',
        demo_password=[SECRET],
        demo_other="x",
    )

    assert read == {}
    assert "demo_wait has to be a whole number; it is 'soon'." in output
    assert "demo_forse is unknown. Did you mean demo_force?" in output
    assert "demo_auth has to be a dictionary, in JSON or YAML. Its value is not shown." in output
    assert "demo_password has to be a string. Its value is not shown." in output
    assert "demo_other is unknown" not in output, "another entry point has it"
    assert SECRET not in output


def test_a_template_that_can_not_be_evaluated_names_its_variable(play):
    _read, output = play(demo_lazy="{{ nowhere.x }}", demo_password="{{ nowhere.y }}")

    assert "demo_lazy can't be evaluated: " in output
    assert "demo_password can't be evaluated." in output
