# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role awx_objects, with the real modules of awx.awx against a stand-in of AWX's API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from awx.server import TOKEN, Awx
from integration.support.awx_jobs import TEMPLATES, survey_of

from lab.paths import CHECKOUT
from lab.patience import PATIENCE

# Beside the environment that runs the tests, wherever the tested tree is. The package ansible contains awx.awx.
PEERS = Path(sys.prefix).parent / "venv-peers"
pytestmark = pytest.mark.long
NAMES = {
    "credentials": ["cluster", "bmc", "nodes"],
    "execution_environments": ["holdfast"],
    "inventories": ["nodes"],
    "organizations": ["Platform"],
    "projects": ["maintenance"],
}
# Variables of the job template. The second one is among the role's questions.
FIXED = {"rolling_reboot_selector": "pool=blue", "rolling_reboot_when": "required"}
# All variables that the survey of the report asks for.
ALL_OF_REPORT = {"report_operation": "", "report_group": "workers"}
MADE = ("credential_types", "job_templates", "workflow_job_templates", "workflow_job_template_nodes")


@pytest.fixture(scope="session")
def peers():
    done = subprocess.run(
        [CHECKOUT / "tools/venv.sh", PEERS, "requirements/peers.txt", "--constraint", "requirements/constraints.txt"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return PEERS / "bin"


@pytest.fixture
def awx():
    found = Awx()
    for kind, names in NAMES.items():
        for name in names:
            found.create(kind, name=name)
    organization = found.named("organizations")["Platform"]["id"]
    for project in found.named("projects").values():
        project["organization"] = organization
    yield found
    found.close()


@pytest.fixture
def play(peers, awx, tmp_path):
    variables = {
        "organization": "Platform",
        "project": "maintenance",
        "execution_environment": "holdfast",
        "credentials": ["cluster", "bmc"],
        "ssh_credentials": ["nodes"],
        "slices": "4",
        "variables": {"rolling_reboot": FIXED, "report": ALL_OF_REPORT},
    }

    def run(*arguments, token=TOKEN, **more):
        given = {f"awx_objects_{name}": value for name, value in {**variables, **more}.items()}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "CONTROLLER_"))}
        return subprocess.run(
            [peers / "ansible-playbook", *arguments, "-e", json.dumps(given), "holdfast.kubernetes.awx_objects"],
            cwd=tmp_path,
            env={
                **kept,
                "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / "build/collections"),
                "ANSIBLE_LOCALHOST_WARNING": "False",
                "ANSIBLE_NOCOLOR": "1",
                "CONTROLLER_HOST": awx.url,
                "CONTROLLER_OAUTH_TOKEN": token,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    return run


def test_creates_the_objects_changes_nothing_the_second_time_and_removes_them(play, awx):
    first = play()
    assert first.returncode == 0, first.stdout + first.stderr

    templates = {item["playbook"]: item for item in awx.named("job_templates").values()}
    assert set(templates) == {f"playbooks/{name}.yml" for name in TEMPLATES}
    for name in TEMPLATES:
        item = templates[f"playbooks/{name}.yml"]
        connects = name in ("rolling_reboot", "install_agent", "graceful_shutdown")
        credentials = {credential["name"] for credential in awx.linked(item, "credentials")}
        assert credentials == {"cluster", "bmc", *(["nodes"] if connects else [])}, name
        asked = survey_of(name)
        # The answer to a question would replace the variable of the job template.
        asked["spec"] = [question for question in asked["spec"] if question["variable"] not in (*FIXED, *ALL_OF_REPORT)]
        assert awx.survey(item) == (asked if asked["spec"] else {}), name
        assert item["survey_enabled"] is bool(asked["spec"])
        assert item["allow_simultaneous"] is item["ask_job_type_on_launch"] is True
        assert item["ask_limit_on_launch"] is connects
        assert item["job_slice_count"] == (4 if name == "rolling_reboot" else 1)
    reboot = templates["playbooks/rolling_reboot.yml"]
    assert json.loads(reboot["extra_vars"]) == FIXED
    assert (CHECKOUT / reboot["playbook"]).is_file()
    assert_workflow(awx, reboot["id"], templates["playbooks/report.yml"]["id"])
    assert_credential_types(awx)

    awx.writes.clear()
    second = play()
    assert second.returncode == 0, second.stdout + second.stderr
    assert awx.writes == []
    assert "changed=0" in second.stdout

    planned = play("--check", slices=2)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "changed=1" in planned.stdout
    assert awx.writes == []

    gone = play(state="absent")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert {kind: awx.named(kind) for kind in MADE} == {kind: {} for kind in MADE}
    assert set(awx.named("credentials")) == set(NAMES["credentials"])

    awx.writes.clear()
    assert "changed=0" in play(state="absent").stdout
    assert awx.writes == []


def assert_workflow(awx, reboot, report):
    (workflow,) = awx.named("workflow_job_templates").values()
    asked, of_template = (
        [question["variable"] for question in survey["spec"]]
        for survey in (awx.survey(workflow), survey_of("rolling_reboot"))
    )
    # An answer to the question for the operation would replace the one of the plan.
    assert asked == [variable for variable in of_template if variable not in ("rolling_reboot_operation", *FIXED)]
    nodes = awx.named("workflow_job_template_nodes")

    def after(name, result):
        return [node["identifier"] for node in awx.linked(nodes[name], f"{result}_nodes")]

    assert set(nodes) == {"plan", "approve", "reboot", "report"}
    assert (nodes["plan"]["unified_job_template"], nodes["plan"]["job_type"]) == (reboot, "check")
    assert nodes["plan"]["job_slice_count"] == 1
    assert after("plan", "success") == ["approve"]
    assert nodes["approve"]["unified_job_template"] in awx.objects["workflow_approval_templates"]
    assert after("approve", "success") == ["reboot"]
    assert (nodes["reboot"]["unified_job_template"], nodes["reboot"]["job_type"]) == (reboot, None)
    assert after("reboot", "always") == ["report"]
    assert nodes["report"]["unified_job_template"] == report
    assert [after("plan", "always"), after("approve", "always"), after("report", "always")] == [[], [], []]


def assert_credential_types(awx):
    """The templates of the injectors reach AWX as they are, and make what the roles read."""
    import jinja2

    types = awx.named("credential_types")
    cluster, bmc = (types[f"holdfast: {name}"] for name in ("management cluster", "BMC"))
    secret = {field["id"] for item in (cluster, bmc) for field in item["inputs"]["fields"] if field.get("secret")}
    assert {"bearer_token", "password"} <= secret
    assert bmc["injectors"]["extra_vars"]["failover_redfish_password"] == "{{ password }}"
    template = cluster["injectors"]["extra_vars"]["rolling_reboot_management"]
    given = {"host": "https://m:6443", "bearer_token": 'a"b', "verify_ssl": True}
    paths = {"filename": {"ca_cert": "/runner/env/ca"}}
    assert yaml.safe_load(jinja2.Template(template).render(**given, tower=paths)) == {
        "host": "https://m:6443",
        "api_key": 'a"b',
        "validate_certs": True,
    }
    with_ca = yaml.safe_load(jinja2.Template(template).render(**given, ssl_ca_cert="PEM", tower=paths))
    assert with_ca["ca_cert"] == "/runner/env/ca"


def test_a_wrong_token_is_one_clear_error(play, awx):
    done = play(token="wrong")

    assert done.returncode != 0
    assert (done.stdout.count("fatal: ["), done.stdout.count("failed: [")) == (1, 0)
    assert "HTTP 401" in done.stdout + done.stderr
    assert awx.writes == []
    assert awx.refused == 1
    assert awx.named("job_templates") == {}
