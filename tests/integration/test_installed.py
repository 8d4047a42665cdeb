# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every playbook from the artefact, with ansible-core 2.21 and the oldest client, and without anything else.

No program is in PATH but those of the virtual environment: no hostname, no kubectl. There is no home directory. No run
prints a deprecation.
"""

from __future__ import annotations

import subprocess

import pytest
import yaml
from integration.support import bare

from lab.paths import CHECKOUT

FQCN = "holdfast.kubernetes"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    venv = bare.make_venv()
    return venv, bare.install(venv, tmp_path_factory.mktemp("installed"))


@pytest.fixture
def ansible(installed, tmp_path, lab):
    return bare.Bare(tmp_path, lab, *installed)


@pytest.fixture
def play(ansible, world):
    """Run a playbook; a host has no other Python than the one of the environment."""

    def run(playbook, *arguments, hosts=(), succeeds=True, **variables):
        own = {"ansible_connection": "local", "ansible_python_interpreter": str(ansible.bin / "python")}
        inventory = ansible.folder / "hosts.yml"
        inventory.write_text(yaml.safe_dump({"all": {"hosts": {name: {} for name in hosts}, "vars": own}}))
        given = ansible.folder / "variables.yml"
        given.write_text(yaml.safe_dump(variables))
        done = ansible.command(
            "ansible-playbook",
            *("-i", str(inventory), "-e", f"@{given}", *arguments, f"{FQCN}.{playbook}"),
            K8S_AUTH_KUBECONFIG=world.kubeconfig,
        )
        output = done.stdout + done.stderr
        assert succeeds is None or (done.returncode == 0) is succeeds, output
        assert_quiet(output)
        return output

    return run


def assert_quiet(output):
    assert "DEPRECAT" not in output.upper(), output
    assert "Traceback" not in output, output


def test_the_library_is_the_oldest(installed):
    venv, _collections = installed
    code = "import ansible, kubernetes; print(ansible.__version__, kubernetes.__version__)"
    versions = subprocess.run([venv / "bin/python", "-c", code], check=True, capture_output=True, text=True).stdout

    assert [text.split(".")[:2] for text in versions.split()] == [["2", "21"], ["31", "0"]]


def test_rolling_reboot(rolling, nodes):
    names = nodes(3)
    before = rolling.boot_ids(names)
    planned = rolling.run(names, "--check", "--diff").good()
    done = rolling.run(names, max_unavailable=2).good()

    assert set(planned.results.values()) == {"planned"}
    assert set(done.results.values()) == {"rebooted"}
    assert all(rolling.boot_id(name) != before[name] for name in names)
    rolling.assert_nothing_left(names)
    assert_quiet(planned.output)
    assert_quiet(done.output)


def test_failover_and_recover(failovers):
    victim = failovers.victim()
    failovers.world.nodes(2)
    vouched = {
        "fence": "attestation",
        "attestation_by": "alice",
        "attestation_at": failovers.world.cluster.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "attestation_statement": f"{victim.name} is off, I pulled its power cord.",
    }
    victim.hang()
    done = failovers.run(victim.name, **vouched).good()
    back = failovers.recover(victim.name, arguments=("--check",))

    assert victim.taint == "nodeshutdown"
    assert_quiet(done.output)
    assert_quiet(back.output)


def test_hold_doctor_and_release(play, world):
    (node,) = world.nodes()
    hold = {"hold_node": node, "hold_namespace": world.namespace, "hold_holder": "alice", "hold_wait": False}
    play("hold", **hold)

    assert world.get("leases", node)["spec"]["holderIdentity"] == "alice"
    play("doctor", "--check", doctor_nodes=[node])
    play("release", **hold)
    assert not [item for item in world.cluster.items(world.path("leases")) if item["metadata"]["name"] == node]


def test_guard_machine(play, world):
    # Other tests may install Cluster API's kinds meanwhile.
    said = play(
        "guard_machine",
        "--check",
        succeeds=None,
        machine_guard_namespace=world.namespace,
        machine_guard_machines=["gone"],
    )

    assert "PLAY [Report]" in said or "cluster.x-k8s.io" in said


@pytest.mark.parametrize("playbook", sorted(path.stem for path in (CHECKOUT / "playbooks").glob("*.yml")))
def test_every_playbook_is_found(ansible, playbook):
    done = ansible.command("ansible-playbook", "--syntax-check", "-i", "localhost,", f"{FQCN}.{playbook}")

    assert done.returncode == 0, done.stderr
    assert_quiet(done.stdout + done.stderr)


@pytest.mark.parametrize("path", sorted((CHECKOUT / "environments").glob("*.yml")), ids=lambda path: path.stem)
def test_ansible_builder_accepts_the_environment(path, tmp_path):
    venv = CHECKOUT / "build/venv-builder"
    subprocess.run([CHECKOUT / "tools/venv.sh", str(venv), "requirements/builder.txt"], check=True, cwd=CHECKOUT)
    context = tmp_path / "context"
    command = [str(venv / "bin/ansible-builder"), "create", "--file", str(path), "--context", str(context)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "holdfast.kubernetes" in (context / "_build/requirements.yml").read_text()
    assert (context / "Containerfile").is_file() or (context / "Dockerfile").is_file()
