# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role node_agent on a real node, from a bare one to a bare one.

A test takes the agent that an earlier one left, or brings the node into the state that it needs with :meth:`Agent.be`.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.support.agent import until
from integration.support.playbooks import Done, Run
from integration.support.turns import node_turns, turn
from integration.support.variables import as_texts, blank

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules, paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import rbac_rules
from lab import Lab
from lab.patience import PATIENCE

pytestmark = pytest.mark.nodes

NODE = "node-3"
CONDITION = "ShutdownInhibited"
INSTALL = "holdfast.kubernetes.install_agent"
SOURCES = Path(__file__).resolve().parents[2] / "roles/node_agent/files/holdfast_agent"
PLACES = (
    *("/etc/holdfast", "/etc/systemd/system", "/usr/local/lib", "/var/lib/holdfast-agent"),
    *("/run/holdfast-agent", "/run/systemd/system", "/run/metrics"),
)
# Counts the moments in which no lock is held or the target is not masked.
WATCH = """
manager="org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
looks=0 gaps=0
while :; do
    looks=$((looks + 1))
    if ! busctl call $manager ListInhibitors | grep -q holdfast || ! [ -L /run/systemd/system/reboot.target ]; then
        gaps=$((gaps + 1))
    fi
    echo "$looks $gaps" >/run/watch.new && mv /run/watch.new /run/watch
    sleep 0.05
done
"""


class Agent:
    """The role, run by playbooks, and what can be seen of it."""

    def __init__(self, world: Any, ansible: Any) -> None:
        self.ansible = ansible
        self.lab: Lab = ansible.lab
        self.cluster: Cluster = world.cluster
        self.namespace: str = world.namespace
        self.variables: dict[str, Any] = {"node_agent_textfile": "/run/metrics/holdfast_agent.prom"}
        self._count = 0
        # The initial state, and how far the tests have got.
        self.bare: dict[str, Any] = {}
        self.is_installed = False
        self.is_held = False

    def play(self, *arguments: str, playbook: str = INSTALL, hosts: Any = None, **variables: Any) -> Done:
        self._count += 1
        folder = self.ansible.folder / f"run-{self._count}"
        folder.mkdir()
        real = yaml.safe_load(self.lab.inventory.read_text())["all"]["children"]["real"]
        inventory = {
            name: {**real["hosts"][NODE], "node_agent_node_name": NODE, **own}
            for name, own in (hosts or {NODE: {}}).items()
        }
        (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": inventory, "vars": real["vars"]}}))
        (folder / "extra.json").write_text(json.dumps({**self.variables, **variables}))
        command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "inventory.yml"]
        environment = self.ansible.environment(K8S_AUTH_KUBECONFIG=str(self.lab.kubeconfig), ANSIBLE_NOCOLOR="1")
        run = Run([*command, "-e", "@extra.json", *arguments, playbook], environment, folder)
        try:
            return run.done(PATIENCE)
        finally:
            run.close()

    def hold(self) -> None:
        self._by_playbook("hold")
        self.is_held = True

    def release(self) -> None:
        self._by_playbook("release")
        self.is_held = False

    def _by_playbook(self, what: str) -> None:
        self.play(
            playbook=f"holdfast.kubernetes.{what}", hold_node=NODE, hold_namespace=self.namespace, hold_holder="alice"
        ).good()

    def install(self) -> Done:
        done = self.play().good()
        self.is_installed = True
        return done

    def remove(self) -> None:
        self.play(node_agent_state="absent", node_agent_remove_held=True).good()
        self.is_installed = self.is_held = False

    def be(self, *, held: bool) -> None:
        """Make sure that it is installed, and held or not; does nothing if an earlier test did."""
        if not self.is_installed:
            self.install()
        if held and not self.is_held:
            self.hold()
        if self.is_held and not held:
            self.release()

    def ssh(self, command: str) -> str:
        return self.lab.ssh(NODE, command).strip()

    def condition(self) -> dict[str, Any] | None:
        return node_rules.condition(self.cluster.get(paths.node(NODE)), CONDITION)

    def snapshot(self) -> dict[str, Any]:
        """Everything that the role and the agent could leave behind on the node; not the time of a heartbeat."""
        files = self.ssh(f"find {' '.join(PLACES)} -printf '%p %y %l\\n' 2>/dev/null | sort; true")
        return {
            "files": files.splitlines(),
            "locks": self.ssh("systemd-inhibit --list --no-legend --no-pager | grep -c holdfast; true"),
            "units": self.ssh(
                "systemctl show --property LoadState,ActiveState,FileDescriptorStoreMax holdfast-agent.service;"
                " systemctl show --property LoadState reboot.target systemd-poweroff.service"
            ),
            "condition": {**(self.condition() or {}), "lastHeartbeatTime": None},
        }


@pytest.fixture(scope="module")
def agent(stage: Callable[[], Any]) -> Iterator[Agent]:
    found = Agent(*stage())
    # The tests share the agent of one node, and the last one removes the rights of all agents.
    with node_turns(found.lab, [NODE]), turn(found.lab, "agents"):
        if any("holdfast" in file for file in found.snapshot()["files"]) or found.condition():
            found.remove()
        found.ssh("mkdir -p /run/metrics")
        found.bare = found.snapshot()
        yield found
        if found.snapshot() != found.bare:
            found.remove()
        found.ssh("rm -rf /run/metrics")


def changed(done: Done, host: str = NODE) -> int:
    return int(re.findall(rf"^{host} .*changed=(\d+)", done.output, re.MULTILINE)[-1])


def failed(done: Done, host: str) -> str:
    """The error of a host that failed."""
    lines = re.findall(rf"^fatal: \[{host}\].*?$", done.output, re.MULTILINE)
    return " ".join(lines)


@pytest.mark.long
def test_texts_and_blanks(agent):
    """Every variable as text, and every one blank, in check mode."""
    own = {"textfile": "/run/metrics/holdfast_agent.prom", "node_name": NODE}
    for variables in (as_texts("node_agent", **own), blank("node_agent", node_name=NODE)):
        agent.play("--check", **{f"node_agent_{name}": value for name, value in variables.items()}).good()

    mistyped = agent.play("--check", node_agent_enforcment="observe")
    assert "node_agent_enforcment is unknown. Did you mean node_agent_enforcement?" in mistyped.output


@pytest.mark.long
def test_check_mode_says_what_it_would_do_and_does_nothing(agent):
    done = agent.play("--check", "--diff").good()

    assert changed(done) > 3
    assert f"+node_name: {NODE}" in done.output
    assert "+ExecStart=/usr/bin/python3" in done.output
    assert agent.snapshot() == agent.bare


@pytest.mark.long
def test_what_cannot_work_is_refused_before_anything_is_changed(agent, world):
    (another,) = world.nodes()
    wrong = {
        "target": ({"node_agent_masked_targets": ["sleep"]}, "sleep"),
        "enforcement": ({"node_agent_enforcement": "maybe"}, "maybe"),
        "nobody": ({"node_agent_node_name": "nobody"}, "There is no Node nobody for host nobody"),
        "mistaken": ({"node_agent_node_name": another}, f"Host mistaken is not Node {another}"),
        "kubeconfig": ({"node_agent_kubeconfig": "/etc/nothing.conf"}, "has no /etc/nothing.conf"),
        "directory": ({"node_agent_textfile": "/nowhere/a.prom"}, "has no directory /nowhere"),
        "ending": ({"node_agent_textfile": "/run/a.txt"}, "ends in .prom"),
        "seconds": ({"node_agent_alert_timeout": -1}, "node_agent_alert_timeout must be 0 or more"),
        "namespace": ({"node_agent_namespaces": ["kube-node-lease"]}, "other than kube-node-lease"),
        "server": ({"node_agent_server": "https://192.0.2.1:6443"}, "node_agent_server needs"),
    }
    variables, agent.variables = agent.variables, {}

    done = agent.play(hosts={name: own for name, (own, _said) in wrong.items()})

    agent.variables = variables
    assert done.failed_hosts == set(wrong)
    for name, (_own, said) in wrong.items():
        assert said in failed(done, name), name
        assert changed(done, name) == 0
    assert agent.snapshot() == agent.bare


def test_installed(agent):
    done = agent.install()

    assert changed(done) > 3
    assert agent.ssh("systemctl is-active holdfast-agent; systemctl is-enabled holdfast-agent").split() == [
        "active",
        "enabled",
    ]
    assert agent.condition()["status"] == "False"
    assert agent.condition()["reason"] == "KubeletShutdownAllowed"
    assert agent.cluster.find(rbac_rules.path(rbac_rules.BINDING))
    assert "holdfast_agent_holds 0" in agent.ssh("cat /run/metrics/holdfast_agent.prom")
    assert "__pycache__" not in agent.ssh("find /usr/local/lib/holdfast-agent")


@pytest.mark.long
def test_a_second_time_nothing_is_changed(agent):
    agent.be(held=False)
    before = agent.ssh("systemctl show --property MainPID holdfast-agent")

    assert changed(agent.play().good()) == 0
    assert agent.ssh("systemctl show --property MainPID holdfast-agent") == before


def test_the_playbook_holds(agent):
    agent.be(held=True)

    assert agent.condition()["status"] == "True"
    assert agent.condition()["reason"] == f"{agent.namespace}/alice"
    assert "holdfast" in agent.ssh("systemd-inhibit --list --no-legend --no-pager")
    assert "Access denied" in agent.ssh("systemctl reboot 2>&1; true")


@pytest.mark.long
def test_a_configuration_that_was_changed_by_hand_is_restored_and_used(agent):
    agent.be(held=False)
    agent.ssh(
        "sed -i 's/^enforcement:.*/enforcement: observe/' /etc/holdfast/agent.yaml; systemctl restart holdfast-agent"
    )

    assert changed(agent.play().good()) > 0
    log = "journalctl --unit=holdfast-agent --boot --output=cat | grep ' for node ' | tail -n 2"
    assert [line.split(":")[0].rpartition(", ")[2] for line in agent.ssh(log).splitlines()] == ["observe", "strict"]


def test_an_upgrade_and_another_configuration_leave_no_gap_in_the_locks(agent):
    agent.be(held=True)
    newer = agent.ansible.folder / "newer/holdfast_agent"
    shutil.copytree(SOURCES, newer, ignore=shutil.ignore_patterns("__pycache__"))
    version = newer / "__init__.py"
    version.write_text(re.sub('__version__ = ".*"', '__version__ = "99.0.0"', version.read_text()))
    # As a file: systemd would expand what looks like a variable.
    agent.ssh(f"echo {shlex.quote(WATCH)} >/run/watch.sh && systemd-run --unit=watch-locks --collect sh /run/watch.sh")
    before = agent.ssh("systemctl show --property MainPID holdfast-agent")

    done = agent.play(
        __node_agent_sources=sorted(str(path) for path in newer.glob("*.py")), node_agent_alert_timeout=3600
    ).good()

    looks, gaps = agent.ssh("systemctl stop watch-locks; cat /run/watch; rm /run/watch /run/watch.sh").split()
    assert changed(done) > 2
    assert agent.ssh("systemctl show --property MainPID holdfast-agent") != before
    assert 'version="99.0.0"' in agent.ssh("cat /run/metrics/holdfast_agent.prom")
    assert int(looks) > 20
    assert int(gaps) == 0
    assert agent.condition()["status"] == "True"
    # Only the version that runs is left.
    assert agent.ssh("ls -d /usr/local/lib/holdfast-agent/*/holdfast_agent | wc -l") == "1"


@pytest.mark.long
def test_not_removed_while_the_node_is_held(agent):
    agent.be(held=True)
    before = agent.snapshot()

    done = agent.play(node_agent_state="absent")

    assert done.failed_hosts == {NODE}
    assert f"Node {NODE} is held by {agent.namespace}/alice since" in failed(done, NODE)
    assert agent.snapshot() == before
    assert "active" in agent.ssh("systemctl is-active holdfast-agent")


@pytest.mark.long
def test_not_removed_under_the_name_of_another_node(agent, world):
    agent.be(held=True)
    (another,) = world.nodes()
    before = agent.snapshot()

    for name in ("nobody", another):
        done = agent.play(node_agent_state="absent", node_agent_node_name=name)

        assert done.failed_hosts == {NODE}
        assert f"The agent of host {NODE} belongs to Node {NODE}, not to Node {name}" in failed(done, NODE)
    assert agent.snapshot() == before
    assert "active" in agent.ssh("systemctl is-active holdfast-agent")


@pytest.mark.long
def test_a_hold_that_comes_while_the_agent_is_stopped_keeps_it(agent):
    agent.be(held=False)
    drop_in, resume = "/etc/systemd/system/holdfast-agent.service.d", "/run/test-resume"
    # The stop lasts until the test has seen it.
    unit = f"[Service]\nExecStopPost=/bin/sh -c 'until [ -e {resume} ]; do sleep 0.1; done'\n"
    agent.ssh(
        f"rm -f {resume}; mkdir {drop_in}; printf %s {shlex.quote(unit)} >{drop_in}/wait.conf; systemctl daemon-reload"
    )
    leases = paths.leases(agent.namespace)
    spec = {"holderIdentity": "bob", "acquireTime": "2026-01-02T03:04:05.000000Z"}
    try:
        with ThreadPoolExecutor(max_workers=1) as pool:
            removing = pool.submit(agent.play, node_agent_state="absent")
            until(lambda: agent.ssh("systemctl is-active holdfast-agent; true") == "deactivating")
            if agent.cluster.find(paths.one(leases, NODE)):
                agent.cluster.merge(paths.one(leases, NODE), {"spec": spec})
            else:
                agent.cluster.create(leases, {"metadata": {"name": NODE}, "spec": spec})
            agent.ssh(f"touch {resume}")
            done = removing.result(PATIENCE)

        assert done.failed_hosts == {NODE}
        assert f"Node {NODE} is held by {agent.namespace}/bob since" in failed(done, NODE)
        assert agent.ssh("systemctl is-active holdfast-agent") == "active"
        assert agent.ssh("systemctl is-enabled holdfast-agent") == "enabled"
        until(lambda: agent.condition()["reason"] == f"{agent.namespace}/bob")
    finally:
        agent.ssh(f"touch {resume}; rm -r {drop_in}; systemctl daemon-reload")
        with contextlib.suppress(NotFound):
            agent.cluster.delete(paths.one(leases, NODE))


def test_removed_with_nothing_left_behind(agent, world):
    agent.be(held=False)
    nodes = world.record(paths.NODES)
    # As when the agent can't reach the API: then the controller does what the agent can't do.
    agent.ssh("sed -i 's#^kubeconfig: .*#kubeconfig: /etc/nothing.conf#' /etc/holdfast/agent.yaml")

    assert changed(agent.play("--check", node_agent_state="absent").good()) > 3
    assert agent.condition() is not None
    done = agent.play(node_agent_state="absent").good()
    agent.is_installed = False

    assert changed(done) > 3
    assert agent.snapshot() == agent.bare
    # The rights are gone too, unless another Node then had an agent's mark: other tests' marks come and go.
    others = [item.object for item in list(nodes.changes) if node_rules.name(item.object) != NODE]
    assert agent.cluster.find(rbac_rules.path(rbac_rules.ROLE)) is None or any(map(rbac_rules.has_agent, others))


@pytest.mark.long
def test_what_is_removed_is_not_removed_again(agent):
    agent.remove()

    assert changed(agent.play(node_agent_state="absent").good()) == 0
