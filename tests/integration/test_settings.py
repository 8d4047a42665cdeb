# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks with variables as AWX and the command line give them: texts, blanks, a --limit, a mistyped name."""

from __future__ import annotations

import json

import pytest
from integration.support.variables import as_texts, blank, extra

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths


@pytest.fixture
def victim(failovers):
    found = failovers.victim()
    failovers.world.nodes(2)
    return found


def needed(rolling, folder):
    """The variables that a rolling reboot of simulated nodes needs."""
    return {
        "group": rolling.group,
        "selector": rolling.selector,
        "when": "always",
        "method": "command",
        "command_tasks": rolling._reboot,
        "report": str(folder / "run-0/report.json"),
    }


# -- rolling_reboot ---------------------------------------------------------------------------------------------------


def test_a_held_node_survives_a_run_in_which_every_boolean_is_the_text_false(rolling, nodes, ansible):
    held, free = names = nodes(2)
    rolling.hold(held)
    before = rolling.boot_ids(names)
    texts = as_texts("rolling_reboot", **needed(rolling, ansible.folder), hold_timeout=3, operation="texts")

    done = rolling.run(names, *extra(ansible.folder, "rolling_reboot", texts))

    assert done.results == {held: "stopped", free: "rebooted"}, done.output
    assert "app" in done.detail(held)
    assert rolling.boot_id(held) == before[held]
    assert rolling.boot_id(free) != before[free]
    rolling.assert_nothing_left(names)

    texts |= {"override_holds": "true", "report": str(ansible.folder / "run-1/report.json")}
    done = rolling.run(names, *extra(ansible.folder, "rolling_reboot", texts)).good()

    assert done.results == {held: "rebooted", free: "skipped"}
    assert rolling.boot_id(held) != before[held]
    assert f"holds were overridden: {rolling.world.namespace}/app" in done.detail(held)
    assert f"{rolling.world.namespace}/app" in rolling.record(held)["detail"]


@pytest.mark.long
def test_blank_answers_of_a_survey_are_unset(rolling, nodes, ansible):
    (name,) = nodes(1)
    before = rolling.boot_id(name)
    blanks = blank("rolling_reboot", **needed(rolling, ansible.folder))
    # The user's own tasks read it, and extra variables have the highest precedence.
    del blanks["node_name"]

    done = rolling.run([name], *extra(ansible.folder, "rolling_reboot", blanks)).good()

    assert done.results == {name: "rebooted"}
    assert rolling.boot_id(name) != before
    rolling.assert_nothing_left([name])


def test_a_mistyped_name_stops_the_run_before_anything_is_checked(rolling, nodes):
    (name,) = nodes(1)
    before = rolling.versions([name])

    done = rolling.run([name], "-e", "rolling_reboot_overide_holds=true")

    assert done.code != 0
    assert "rolling_reboot_overide_holds is unknown. Did you mean rolling_reboot_override_holds?" in done.output
    assert rolling.versions([name]) == before
    assert rolling.ledger() == {}


@pytest.mark.long
def test_a_limit_keeps_the_report_the_artifacts_and_the_end_of_the_operation(rolling, nodes):
    one, other = names = nodes(2)
    before = rolling.boot_ids(names)

    done = rolling.run(names, "--limit", one).good()

    assert done.results == {one: "rebooted"}
    assert done.report["summary"]["not_reported"] == []
    assert (done.stats["rolling_reboot_rebooted"], done.stats["rolling_reboot_failed"]) == (1, 0)
    assert rolling.boot_id(other) == before[other]
    after = rolling.boot_id(one)

    done = rolling.run(names).good()

    assert done.results == {one: "rebooted", other: "rebooted"}, "the operation had ended, so this is a new one"
    assert rolling.boot_id(one) != after


@pytest.mark.long
def test_a_limit_that_leaves_no_node_fails(rolling, nodes):
    one, other = names = nodes(2)

    done = rolling.run(names, "--limit", one, "-e", f"rolling_reboot_hosts={other}")

    assert done.code != 0
    assert "There is no host to reboot" in done.output
    assert f"--limit is {one}" in done.output

    plan = rolling.run(names, "--check", "--limit", one, "-e", f"rolling_reboot_hosts={other}")

    assert plan.code != 0
    assert "There is no host to plan" in plan.output


# -- failover ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_failover_with_texts_keeps_a_held_node_and_deletes_none(failovers, victim, ansible):
    world = victim.world
    own = {
        "node": victim.name,
        "selector": f"pool={world.namespace}",
        "max_unhealthy": 1,
        "confirm_seconds": 0,
        "report": str(ansible.folder / "run-0/report.json"),
        **failovers.by_command(),
    }
    texts = as_texts("failover", **own)
    texts.pop("node_name")
    victim.hang()
    world.create("leases", victim.name, {"spec": {"holderIdentity": "a", "acquireTime": "2026-01-02T03:04:05.000000Z"}})

    held = failovers.run(victim.name, arguments=extra(ansible.folder, "failover", texts), **own)

    assert held.code != 0
    assert held.report["nodes"][0]["result"] == "refused", held.output
    assert failovers.commands == []
    assert victim.untouched
    world.delete("leases", victim.name)

    own["report"] = str(ansible.folder / "run-1/report.json")
    done = failovers.run(victim.name, **{**texts, **{name: str(value) for name, value in own.items()}}).good()

    assert done.results == {victim.name: "moved"}
    assert failovers.commands == ["off"]
    assert victim.taint == "nodeshutdown"
    assert world.cluster.find(paths.node(victim.name)) is not None


@pytest.mark.long
def test_a_failover_with_blanks(failovers, victim):
    blanks = {name: value for name, value in blank("failover").items() if name not in ("node", "node_name")}
    own = {name: value for name, value in failovers.by_command().items() if name != "power_on_command"}
    limits = {"selector": f"pool={victim.world.namespace}", "max_unhealthy": "1", "confirm_seconds": "0"}
    blanks.pop("report")
    victim.hang()

    done = failovers.run(victim.name, **{**blanks, **own, **limits}).good()

    assert done.results == {victim.name: "moved"}
    assert victim.taint == "nodeshutdown"


@pytest.mark.long
@pytest.mark.usefixtures("control_plane")
def test_the_quorum_is_asked_again_directly_before_the_act(failovers, victim):
    world = victim.world
    world.cluster.merge(
        paths.node(victim.name), {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}
    )
    victim.hang()
    # One member may be down at first, but none once the node is claimed.
    quorum = failovers.command(
        "quorum",
        "claim=$($kubectl get node $HOLDFAST_NODE -o jsonpath='{.metadata.annotations.holdfast\\.dev/claim}')\n"
        '[ -z "$claim" ] || { echo member etcd-2 is down; exit 1; }',
    )

    done = failovers.run(victim.name, quorum_command=quorum, **failovers.by_command())

    assert done.code != 0
    assert "failover_quorum_command" in done.detail(victim.name)
    assert "member etcd-2 is down" in done.output
    assert "member etcd-2 is down" not in str(done.report) + str(failovers.audit()) + str(victim.marks)
    assert failovers.commands == [], "the machine was told to go off"
    assert victim.untouched


# -- a --limit without localhost --------------------------------------------------------------------------------------


@pytest.fixture
def inventory(ansible):
    path = ansible.folder / "limited.yml"
    path.write_text(json.dumps({"all": {"hosts": {"worker-1": {"ansible_host": "192.0.2.1"}}}}))
    return str(path)


@pytest.mark.long
def test_failover_works_or_fails_under_a_limit(failovers, victim, inventory):
    arguments = ("-i", inventory, "--limit", "worker-1")

    done = failovers.run(victim.name, arguments=arguments, **failovers.by_command())

    assert done.code != 0, "the node is healthy"
    assert done.report["nodes"][0]["result"] == "refused"


@pytest.mark.long
def test_doctor_hold_and_release_work_under_a_limit(world, nodes, ansible, inventory):
    (name,) = nodes(1)
    arguments = ("-i", inventory, "--limit", "worker-1")
    known = {"K8S_AUTH_KUBECONFIG": world.kubeconfig}
    about = ("-e", f"node={name} hold_namespace={world.namespace} holder=me hold_wait=false hold_wait_timeout=")

    held = ansible.command("ansible-playbook", *arguments, *about, "holdfast.kubernetes.hold", **known)
    assert held.returncode == 0, held.stdout + held.stderr
    assert world.get("leases", name)["spec"]["holderIdentity"] == "me"

    doctor = ansible.command(
        "ansible-playbook", *arguments, "--check", "-e", f"doctor_nodes={name}", "holdfast.kubernetes.doctor", **known
    )
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "TASK [Show the report]" in doctor.stdout

    released = ansible.command("ansible-playbook", *arguments, *about, "holdfast.kubernetes.release", **known)
    assert released.returncode == 0, released.stdout + released.stderr
    assert world.cluster.find(paths.one(world.path("leases"), name)) is None


def test_a_playbook_without_a_role_names_its_own_variables(ansible):
    missing = ansible.command("ansible-playbook", "-e", "hold_nod=n", "holdfast.kubernetes.hold")

    assert missing.returncode != 0
    assert "hold_nod is unknown. Did you mean hold_node?" in missing.stdout + missing.stderr
    assert "hold_namespace is not set" in missing.stdout + missing.stderr


# -- graceful_shutdown ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_graceful_shutdown_stops_after_a_host_that_could_not_be_reached(ansible, world):
    deaf = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9, "ansible_ssh_retries": 0}
    hosts = {"a-deaf": deaf, "b": {"ansible_connection": "local"}, "c": {"ansible_connection": "local"}}
    (ansible.folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts}}))

    done = ansible.command(
        "ansible-playbook",
        *("-i", "inventory.json", "-e", "graceful_shutdown_serial=1"),
        "holdfast.kubernetes.graceful_shutdown",
        K8S_AUTH_KUBECONFIG=world.kubeconfig,
    )

    assert done.returncode != 0
    # Ansible itself ends a play in which a whole batch is unreachable; the playbook's own check ends the others.
    assert "[b]" not in done.stdout
    assert "[c]" not in done.stdout
