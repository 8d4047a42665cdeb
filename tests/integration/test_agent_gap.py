# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No gap: whatever happens to the agent while a node is held, the node is not switched off and the lock stays."""

from __future__ import annotations

import itertools

import pytest
from integration.support.agent import UNITS, until

pytestmark = pytest.mark.long

TIMES = 20

# Tries to reboot and looks at the locks every 50 ms, until its own file is gone.
TRIES = r"""
cat > /run/tries.sh <<'END'
touch /run/tries
call="org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager ListInhibitors"
while [ -e /run/tries ]; do
    echo tried >> /run/tries.log
    systemctl reboot >/dev/null 2>&1 && echo accepted >> /run/tries.log
    busctl call $call | grep -q '"holdfast"' || echo unlocked >> /run/tries.log
    sleep 0.05
done
END
rm -f /run/tries.log
systemd-run --quiet --unit=tries --collect sh /run/tries.sh
"""


def tries(agent):
    return int(agent.ssh("grep -c tried /run/tries.log || true"))


def kill(agent, _number):
    agent.ssh("systemctl kill --signal=KILL holdfast-agent")


def restart(agent, _number):
    agent.restart()


def upgrade(agent, number):
    agent.program(f"0.1.{number}")
    agent.restart()


def configure(agent, number):
    agent.configure(alert_timeout=10000 + number)
    agent.restart()


def test_no_gap_while_the_agent_is_killed_restarted_upgraded_and_configured(agent, world):
    before = agent.boot_id
    agent.hold(world.namespace)
    since = agent.until(f"{world.namespace}/me", "True")["lastTransitionTime"]
    agent.ssh(TRIES)
    try:
        for number, change in zip(range(TIMES), itertools.cycle((kill, restart, upgrade, configure))):
            pid = agent.pid
            change(agent, number)
            until(lambda pid=pid: agent.pid not in {0, pid})
            until(lambda: agent.ssh("systemctl is-active holdfast-agent || true").strip() == "active")
            # At least one try that began afterwards.
            enough = tries(agent) + 2
            until(lambda enough=enough: tries(agent) >= enough)
    finally:
        agent.ssh("rm /run/tries; while systemctl is-active --quiet tries; do sleep 0.1; done")
    counts = agent.ssh("sort /run/tries.log | uniq -c").split()
    assert counts[1::2] == ["tried"], counts
    assert agent.boot_id == before
    assert agent.ssh("systemctl show -P NFileDescriptorStore holdfast-agent").strip() == "1"
    assert agent.locks() == [f"{world.namespace}/me"]
    found = agent.until(f"{world.namespace}/me", "True")
    assert found["lastTransitionTime"] == since


def test_no_gap_if_logind_restarts_and_then_the_agent_is_killed(agent, world):
    before = agent.boot_id
    # logind does not return this holder unchanged.
    agent.hold(world.namespace, "bäck up\\")
    agent.until(f"{world.namespace}/bäck up\\", "True")
    locks = agent.locks()
    agent.ssh("systemctl restart systemd-logind && until busctl status org.freedesktop.login1 >/dev/null; do :; done")
    until(lambda: agent.locks() == locks, agent.locks)
    agent.ssh(TRIES)
    try:
        for _time in range(3):
            pid = agent.pid
            kill(agent, 0)
            until(lambda pid=pid: agent.pid not in {0, pid})
            until(lambda: agent.ssh("systemctl is-active holdfast-agent || true").strip() == "active")
    finally:
        agent.ssh("rm /run/tries; while systemctl is-active --quiet tries; do sleep 0.1; done")
    assert agent.ssh("sort /run/tries.log | uniq -c").split()[1::2] == ["tried"]
    assert agent.boot_id == before
    assert agent.locks() == locks


def test_stopped_with_a_hold_it_is_still_refused(agent, world):
    before = agent.boot_id
    agent.hold(world.namespace)
    agent.until(f"{world.namespace}/me", "True")
    try:
        agent.ssh("systemctl stop holdfast-agent")
        assert agent.masked() == UNITS
        if agent.systemd >= 254:
            assert agent.locks() == [f"{world.namespace}/me"]
        for attempt in ("systemctl reboot", "shutdown -r now", "systemctl start systemd-reboot.service"):
            assert agent.ssh(f"{attempt} >/dev/null 2>&1; echo $?").strip() == "1"
        agent.ssh("kill -s RTMIN+5 1; sleep 1")
        assert agent.boot_id == before
    finally:
        agent.ssh("systemctl start holdfast-agent")
    assert agent.locks() == [f"{world.namespace}/me"]
