# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent while the API server is stopped. No other test runs from the installation of the agent on."""

from __future__ import annotations

import time

import pytest
from integration.support.agent import until

pytestmark = [pytest.mark.long, pytest.mark.alone]


# One systemd is as good as the other.
@pytest.mark.parametrize("installed", ["node-1"], indirect=True)
def test_the_api_server_is_stopped_and_its_history_is_gone(agent, stage):
    first, second, third = (stage()[0].namespace for _count in range(3))
    agent.hold(first)
    agent.until(f"{first}/me", "True")
    with agent.cut_off():
        until(lambda: agent.metrics()["holdfast_agent_api_up"] == 0)
        agent.hold(second)
        agent.end_hold(first)
        agent.lab.stop_apiserver()
        time.sleep(20)
        agent.lab.start_apiserver()
        agent.hold(third)
        # The server's history begins after the agent's last event.
        assert agent.locks() == [f"{first}/me"]
    agent.until(f"{second}/me,{third}/me", "True")
    assert "The watch starts again" in agent.journal() or "410" in agent.journal()
    until(lambda: agent.locks() == sorted([f"{second}/me", f"{third}/me"]), agent.locks)
