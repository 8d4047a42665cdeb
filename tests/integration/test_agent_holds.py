# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent on real nodes, systemd 252 and 257: what holds, what it reports, and that nothing switches off."""

from __future__ import annotations

import re
import time

import pytest
from integration.support.agent import NODES, UNITS, until

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shared.hold_rules import entry_of

LONG_AGO = "2026-01-02T03:04:05.000000Z"

# What a slip, a tool or a script does; each with a timeout, because one that works never returns.
ATTEMPTS = (
    "systemctl reboot",
    "systemctl poweroff",
    "systemctl halt",
    "systemctl kexec",
    "systemctl soft-reboot",
    "shutdown -r now",
    "reboot",
    "init 6",
    "busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager Reboot b false",
    "systemctl start reboot.target",
    "systemctl start systemd-reboot.service",
    "systemctl start kexec.target",
    "systemctl start systemd-poweroff.service",
    "systemctl exit",
    "systemctl start systemd-exit.service",
)
SIGNALS = ("RTMIN+3", "RTMIN+4", "RTMIN+5", "INT")


@pytest.fixture
def spaces(stage):
    """The test's own namespaces."""
    return [stage()[0].namespace for _count in range(5)]


def kubelet_heard(agent):
    """Whether the kubelet noticed a shutdown, in this boot. test_graceful_shutdown.py shows that it logs one."""
    return "node is shutting down" in agent.journal("kubelet")


def test_a_held_node_can_not_be_switched_off(agent, world):
    world.pod("works", agent.name)
    before = agent.boot_id
    pods = {
        name: item["status"]["containerStatuses"][0]["containerID"] for name, item in world.pods(agent.name).items()
    }
    agent.hold(world.namespace)
    found = agent.until(f"{world.namespace}/me", "True")
    assert found["message"] == "kubelet inhibited node shutdown"
    assert agent.locks() == [f"{world.namespace}/me"]
    assert agent.masked() == UNITS
    assert agent.load_states() == {"masked"}

    lines = [f'timeout 10 {attempt} </dev/null >/dev/null 2>&1; echo "$? {attempt}"' for attempt in ATTEMPTS]
    said = agent.ssh("\n".join(lines)).splitlines()
    assert [line for line in said if line.startswith(("0 ", "124 "))] == []
    agent.ssh("\n".join(f"kill -s {signal} 1" for signal in SIGNALS))
    time.sleep(2)

    assert agent.boot_id == before
    assert not kubelet_heard(agent)
    now = {name: item["status"]["containerStatuses"][0]["containerID"] for name, item in world.pods(agent.name).items()}
    assert now == pods
    assert not agent.ssh("ls /run/nologin 2>/dev/null || true")


@pytest.mark.long
def test_after_the_release_it_can_and_by_force_always(agent, world):
    before = agent.boot_id
    agent.hold(world.namespace)
    agent.until(f"{world.namespace}/me", "True")
    agent.end_hold(world.namespace)
    agent.until_free()
    agent.ask_to_reboot()
    between = until(lambda: (found := agent.lab.node(agent.name).wait_boot_id()) != before and found)
    agent.lab.wait_ready([agent.name])

    agent.hold(world.namespace)
    agent.until(f"{world.namespace}/me", "True")
    agent.ask_to_reboot("--force")
    until(lambda: agent.lab.node(agent.name).wait_boot_id() != between)
    agent.lab.wait_ready([agent.name])
    # The agent knew the hold from the disk, not from the API: the kubelet started after it.
    assert agent.locks() == [f"{world.namespace}/me"]
    assert agent.masked() == UNITS
    first = agent.journal().splitlines()
    assert any("1 holds on disk" in line for line in first)
    began = agent.ssh("systemctl show -P ActiveEnterTimestampMonotonic holdfast-agent kubelet | sed '/^$/d'").split()
    assert int(began[0]) <= int(began[1])
    agent.end_hold(world.namespace)
    agent.until_free()


@pytest.mark.long_on("node-1")
def test_what_holds_and_what_does_not(agent, spaces):
    first, second, third, fourth, fifth = spaces
    before = agent.condition()
    agent.hold(first, acquired="")
    agent.hold(second, holder="")
    agent.hold("kube-node-lease", holder=agent.name)
    # Events come in order: once this one is seen, so are the earlier ones.
    agent.hold(third, acquired="2026-01-02T03:04:07.000000Z")
    agent.until(f"{third}/me", "True")
    since = agent.condition()["lastTransitionTime"]
    assert since >= before["lastTransitionTime"]

    # Renewed, and expired long ago: no change.
    agent.hold(third, acquired="2026-01-02T03:04:07.000000Z", renewTime=LONG_AGO, leaseDurationSeconds=1)
    # Older, and with a comma in the holder.
    agent.hold(fourth, holder="a,b", acquired=LONG_AGO)
    agent.until(f"{fourth}/a%2Cb,{third}/me", "True")
    assert agent.condition()["lastTransitionTime"] == since
    # Now the Leases that lacked something get it.
    agent.hold(first, acquired="2026-01-02T03:04:08.000000Z")
    agent.hold(second, holder="you", acquired="2026-01-02T03:04:09.000000Z")
    agent.hold(fifth, acquired="2026-01-02T03:04:10.000000Z")
    agent.until(f"{fourth}/a%2Cb,{third}/me,{first}/me,{second}/you,{fifth}/me", "True")
    whys = [f"{fourth}/a,b", f"{third}/me", f"{first}/me", f"{second}/you", f"{fifth}/me"]
    assert agent.locks() == sorted(whys)
    until(lambda: agent.metrics()["holdfast_agent_holds"] == 5)
    assert agent.metrics()["holdfast_agent_locks"] == 5
    assert agent.metrics()["holdfast_agent_masked_units"] == len(UNITS)

    # Another holder in the same Lease; a Lease that is deleted and made again.
    agent.hold(third, holder="heir", acquired="2026-01-02T03:04:07.000000Z")
    agent.end_hold(fifth)
    agent.until(f"{fourth}/a%2Cb,{third}/heir,{first}/me,{second}/you", "True")
    agent.hold(fifth, acquired="2026-01-02T03:04:11.000000Z")
    agent.until(f"{fourth}/a%2Cb,{third}/heir,{first}/me,{second}/you,{fifth}/me", "True")

    for namespace in (first, second, third, fourth):
        agent.end_hold(namespace)
    found = agent.until(f"{fifth}/me", "True")
    assert found["lastTransitionTime"] == since
    assert agent.masked() == UNITS
    # The agent returns the locks of the others after it has written the condition.
    until(lambda: agent.locks() == [f"{fifth}/me"], agent.locks)
    agent.cluster.merge(paths.lease(fifth, agent.name), {"spec": {"holderIdentity": ""}})
    free = agent.until_free()
    assert free["message"] == "kubelet allows shutdown node shutdown"
    agent.cluster.merge(paths.lease("kube-node-lease", agent.name), {"spec": {"acquireTime": None}})


@pytest.mark.long_on("node-1")
def test_masks_of_others_stay_and_an_overridden_mask_is_reported(agent, world):
    agent.ssh(
        "systemctl mask --quiet --runtime halt.target; "
        "printf '[Unit]\nDescription=x\n' > /etc/systemd/system/kexec.target"
    )
    try:
        agent.hold(world.namespace)
        found = agent.until(f"{world.namespace}/me", "True")
        assert "not masked: kexec.target" in found["message"]
        assert "/etc/systemd/system" in found["message"]
        until(lambda: agent.metrics()["holdfast_agent_failed_masks"] == 1)
        # A mask is removed from outside: the agent restores it.
        agent.ssh("systemctl unmask --quiet --runtime reboot.target")
        until(lambda: "reboot.target" in agent.masked())
        agent.ssh("rm /etc/systemd/system/kexec.target; systemctl daemon-reload")
        until(lambda: agent.condition()["message"] == "kubelet inhibited node shutdown")
        agent.end_hold(world.namespace)
        agent.until("KubeletShutdownAllowed", "False")
        until(lambda: agent.masked() == {"halt.target"}, agent.masked)
    finally:
        agent.ssh(
            "systemctl unmask --quiet --runtime halt.target; rm -f /etc/systemd/system/kexec.target; "
            "systemctl daemon-reload"
        )


@pytest.mark.long_on("node-1")
def test_enforcement_inhibitor_and_observe(agent, world):
    try:
        agent.hold(world.namespace)
        agent.until(f"{world.namespace}/me", "True")
        agent.configure(enforcement="inhibitor")
        agent.restart()
        until(lambda: not agent.masked(), agent.masked)
        assert agent.locks() == [f"{world.namespace}/me"]
        assert agent.condition()["status"] == "True"

        agent.configure(enforcement="observe")
        agent.restart()
        found = agent.until("ObserveOnly", "False")
        assert f"{world.namespace}/me" in found["message"]
        until(lambda: not agent.locks())

        # What each systemd does with a lock alone.
        agent.configure(enforcement="inhibitor")
        agent.restart()
        agent.until(f"{world.namespace}/me", "True")
        before, old = agent.boot_id, agent.systemd < 257
        agent.ask_to_reboot()
        if old:
            until(lambda: agent.lab.node(agent.name).wait_boot_id() != before)
            agent.lab.wait_ready([agent.name])
        else:
            time.sleep(2)
            assert agent.boot_id == before
        assert agent.locks() == [f"{world.namespace}/me"]
    finally:
        agent.configure()
        agent.restart()


@pytest.mark.long_on("node-1")
def test_the_agent_has_no_more_rights_than_it_needs(agent):
    other = next(name for name in NODES if name != agent.name)
    program = f"""
import sys; sys.path.insert(0, "/usr/local/lib/holdfast-agent")
from holdfast_agent import api, cli, clock
from pathlib import Path
found = api.Api(cli.read(Path("/etc/holdfast/agent.yaml")), clock.ServerClock())
for method, path, body in (
    ("PATCH", "/api/v1/nodes/{other}/status", {{"status": {{"conditions": []}}}}),
    ("GET", "/api/v1/secrets", None),
    ("GET", "/api/v1/namespaces/default/secrets", None),
    ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/{agent.name}", None),
    ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/default/leases/{agent.name}", {{"spec": {{}}}}),
):
    try:
        found.ask(method, path, body, kind=api.MERGE)
        print("allowed", method, path)
    except api.Refused as error:
        print(error.status)
"""
    agent.send(program, "cat > /tmp/rights.py")
    assert agent.ssh("python3 -B /tmp/rights.py").split() == ["403"] * 5
    said = agent.ssh("systemd-analyze security --no-pager holdfast-agent | tail -1")
    assert float(re.search(r"holdfast-agent.service: ([\d.]+)", said)[1]) <= 3.0, said
    assert agent.memory < 40


@pytest.mark.long_on("node-1")
def test_the_end_leaves_nothing(agent, world):
    agent.hold(world.namespace)
    agent.until(f"{world.namespace}/me", "True")
    try:
        assert "stop it first" in agent.ssh(
            "/usr/bin/python3 -I -B /usr/local/lib/holdfast-agent/holdfast_agent --release 2>&1 || true"
        )
        agent.ssh("systemctl stop holdfast-agent")
        assert agent.masked() == UNITS
        assert "Access denied" in agent.ssh("systemctl reboot 2>&1 || true")
        assert f"is held by {world.namespace}/me" in agent.ssh(
            "/usr/bin/python3 -I -B /usr/local/lib/holdfast-agent/holdfast_agent --release 2>&1 || true"
        )
        assert agent.masked() == UNITS
        said = agent.release()
        assert "unmasked: reboot.target" in said
        assert f"condition: True ({world.namespace}/me)" in said
        assert agent.condition()["reason"] == "KubeletShutdownAllowed"
        assert (agent.locks(), agent.masked()) == ([], set())
        assert (
            agent.ssh("ls -A /var/lib/holdfast-agent /run/holdfast-agent /var/lib/node_exporter | grep -v :").split()
            == []
        )
        assert agent.release() == ""
    finally:
        agent.ssh("systemctl start holdfast-agent")
    agent.until(f"{world.namespace}/me", "True")


@pytest.mark.long
def test_a_reboot_planned_before_the_hold_is_refused_when_its_time_comes(agent, world):
    before = agent.boot_id
    agent.ssh("shutdown -r +1 2>/dev/null")
    agent.hold(world.namespace)
    agent.until(f"{world.namespace}/me", "True")
    time.sleep(75)
    # The time of the shutdown has passed once logins are allowed again.
    until(lambda: not agent.ssh("ls /run/nologin 2>/dev/null || true"))
    assert agent.boot_id == before
    assert not kubelet_heard(agent)


REBOOTS = (
    "shutdown -r now",
    "init 6",
    "busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager Reboot b false",
    "systemctl start systemd-reboot.service",
    "kill -s RTMIN+5 1",
    "kill -s INT 1",
)


@pytest.mark.long
def test_after_the_release_each_way_works(agent, world):
    for attempt in REBOOTS:
        agent.hold(world.namespace)
        agent.until(f"{world.namespace}/me", "True")
        before = agent.boot_id
        agent.ssh(f"{attempt} >/dev/null 2>&1 || true")
        agent.end_hold(world.namespace)
        agent.until_free()
        assert agent.boot_id == before, attempt
        agent.lab.node(agent.name).ask_to_end(attempt)
        until(lambda before=before: agent.lab.node(agent.name).wait_boot_id() != before, lambda tried=attempt: tried)
        agent.lab.wait_ready([agent.name])


@pytest.mark.long
@pytest.mark.parametrize("attempt", ["systemctl poweroff", "systemctl halt", "kill -s RTMIN+4 1"])
def test_after_the_release_it_can_be_switched_off(agent, attempt):
    agent.lab.node(agent.name).ask_to_end(attempt)
    until(lambda: not agent.lab.powered(agent.name))
    # Its supervisor may be about to end, too.
    agent.lab.power_off(agent.name)
    agent.lab.power_on(agent.name)
    agent.lab.wait_ready([agent.name])


@pytest.mark.long_on("node-1")
def test_what_one_tenant_writes_does_not_keep_another_s_hold_from_being_confirmed(agent, spaces):
    first, second, third, *_rest = spaces
    pid = agent.pid
    agent.hold(first, holder="x" * 220_000)
    agent.hold(second, holder="y", acquired="0000-01-01T00:00:00.000000Z")
    agent.hold(third, holder="mine")

    until(lambda: f"{third}/mine" in agent.condition()["reason"].split(","), agent.condition)

    entry = entry_of(first, "x" * 220_000)
    assert set(agent.condition()["reason"].split(",")) == {entry, f"{second}/y", f"{third}/mine"}
    assert agent.locks() == sorted([entry, f"{second}/y", f"{third}/mine"])
    until(lambda: agent.metrics()["holdfast_agent_holds"] == 3)
    # A restart is the most vulnerable moment.
    agent.restart()
    until(lambda: agent.pid not in (0, pid))
    until(lambda: agent.metrics()["holdfast_agent_locks"] == 3)
    assert agent.locks() == sorted([entry, f"{second}/y", f"{third}/mine"])
