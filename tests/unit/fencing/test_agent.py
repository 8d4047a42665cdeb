# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fence agent is a program: what it is asked before a machine counts as off. The agent here is a shell script."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import agent
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.agent_rules import OFF, ON, FenceAgent

SCRIPT = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
while read -r line; do
    case $line in action=*) action=${line#action=} ;; esac
done
echo "$action" >> asked
case $action in
    metadata) cat metadata ;;
    list) echo "7,node-1"; echo "8,node-2" ;;
    status) exit "$(cat status)" ;;
    *) exit 1 ;;
esac
"""
ACTIONS = ("on", "off", "reboot", "status", "list", "monitor", "metadata")
SECONDS = 30


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "fence_test").write_text(SCRIPT)
    (tmp_path / "fence_test").chmod(0o755)
    actions = "".join(f'<action name="{name}"/>' for name in ACTIONS)
    options = '<parameters><parameter name="plug"/></parameters>'
    text = f"<resource-agent>{options}<actions>{actions}</actions></resource-agent>"
    (tmp_path / "metadata").write_text(text)
    (tmp_path / "status").write_text("2")
    return tmp_path


@pytest.fixture
def device(folder):
    return lambda plug="7": FenceAgent(str(folder / "fence_test"), plug)


def asked(folder):
    return (folder / "asked").read_text().split()


def test_off_is_checked_by_its_status(folder, device):
    agent.check_off(device(), "node-1", SECONDS)
    assert asked(folder) == ["metadata", "list", "status"]
    for status, words in (("0", "reports that it is on"), ("1", "status with 1")):
        (folder / "status").write_text(status)
        with pytest.raises(Refused, match=words):
            agent.check_off(device(), "node-1", SECONDS)


def test_what_it_reports(folder, device):
    assert agent.look(device(), "node-1", SECONDS) == OFF
    (folder / "status").write_text("0")
    assert agent.look(device(), "node-1", SECONDS) == ON


@pytest.mark.parametrize("plug", ["8", "9"])
def test_a_wrong_plug_is_refused(folder, device, plug):
    with pytest.raises(Refused, match=r"(?i)plug"):
        agent.look(device(plug), "node-1", SECONDS, lambda: ("node-1", "node-2"))
    assert asked(folder) == ["metadata", "list"], "its state is not asked"
