# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fence agents as processes."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import agent, check_evidence, evidence_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.agent_rules import FenceAgent
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.command import CommandFailed
from lab.patience import PATIENCE

METADATA = """<resource-agent name="fence_test"><parameters>
<parameter name="action"/><parameter name="plug"/><parameter name="password"/></parameters><actions>
<action name="on"/><action name="off"/><action name="reboot"/><action name="status"/><action name="list"/>
<action name="metadata"/></actions></resource-agent>"""


@pytest.fixture
def device(tmp_path):
    """An agent whose device has plug 1, and what it was asked."""
    return Device(tmp_path)


class Device:
    def __init__(self, folder):
        self.folder = folder
        (folder / "metadata.xml").write_text(METADATA)
        (folder / "state").write_text("on")
        (folder / "list").write_text("1,node-1\n")
        self.program()

    def program(self, before=""):
        path = self.folder / "fence_test"
        path.write_text(
            f"""#!/bin/sh
cd {self.folder}
plug=; password=; action=
while IFS= read -r line; do
  name=${{line%%=*}}; value=${{line#*=}}
  case $name in plug) plug=$value;; password) password=$value;; action) action=$value;; esac
done
echo "$action $plug args=$*" >> asked
{before}
case $action in
  metadata) cat metadata.xml; exit 0;;
  list) cat list; exit 0;;
esac
[ "$plug" = 1 ] || {{ echo "no plug $plug for $password" >&2; exit 1; }}
case $action in
  status) [ "$(cat state)" = on ]; code=$?; echo "Status: $(cat state)"; exit $((code * 2));;
  off|on) echo $action > state;;
esac
"""
        )
        path.chmod(0o755)

    def agent(self, plug="1", **options):
        return FenceAgent(str(self.folder / "fence_test"), plug, {"password": "let-me-in", **options})

    @property
    def asked(self):
        return [line.split() for line in (self.folder / "asked").read_text().splitlines()]


def look(found, node="node-1", seconds=PATIENCE):
    return agent.look(found, node, seconds, lambda: {"node-1", "node-2"})


def test_it_is_asked_on_its_standard_input(device):
    assert look(device.agent()) == "on"
    assert device.asked == [["metadata", "args="], ["list", "1", "args="], ["status", "1", "args="]]
    assert agent.run(device.agent(), "off", PATIENCE).status == 0
    assert look(device.agent()) == "off"


def test_a_wrong_plug_is_refused_before_anything_is_sent(device):
    with pytest.raises(Refused, match="has no plug 9, only 1"):
        look(device.agent("9"))
    with pytest.raises(Refused, match="is the one of node node-1"):
        look(device.agent(), "node-2")
    # The device has no list.
    (device.folder / "metadata.xml").write_text(METADATA.replace('<action name="list"/>', ""))
    with pytest.raises(CommandFailed, match="ended its action status with 1") as caught:
        look(device.agent("9"))
    assert caught.value.fields["output"] == "no plug 9 for ***"
    assert {asked[0] for asked in device.asked} <= {"metadata", "list", "status"}
    assert (device.folder / "state").read_text() == "on"


def test_a_device_without_a_list(device):
    (device.folder / "list").write_text("N/A\n")
    assert look(device.agent()) == "on"


def check_off(found):
    """As the evidence is confirmed."""
    with agent.confirms("node-1"):
        agent.check_machine(found, "node-1", PATIENCE, set)
    agent.check_off(found, "node-1", PATIENCE)


def test_options_that_the_agent_can_not_use_prove_nothing(device):
    # As fence_ibm_vpc does without the file of its key: it ends with EC_BAD_ARGS, and prints nothing.
    device.program(before="[ $action = metadata ] || { echo 'no such file' >&2; exit 2; }")
    with pytest.raises(Refused, match="ended its action list with 2") as caught:
        check_off(device.agent())
    assert caught.value.fields["why"] == "not_off"
    (device.folder / "metadata.xml").write_text(METADATA.replace('<action name="list"/>', ""))
    with pytest.raises(Refused, match=r'ended its action status with 2\. It did not print "Status: OFF"') as caught:
        check_off(device.agent())
    assert caught.value.fields["output"] == "no such file"


def test_a_plug_that_the_device_no_longer_lists_is_not_off(device):
    (device.folder / "state").write_text("off")
    check_off(device.agent())
    for listed, words in (("2,node-2\n", "has no plug 1, only 2"), ("1 uuid off\n", "prints no plug")):
        (device.folder / "list").write_text(listed)
        with pytest.raises(Refused, match=words):
            check_off(device.agent())


def test_an_agent_that_hangs_is_killed_with_all_that_it_started(device):
    # No other process of this machine has this command line.
    child = f"sleep {90000 + os.getpid()}"
    device.program(before=f"{child} & {child}")
    with pytest.raises(CommandFailed, match="did not end its action metadata within 1 s"):
        look(device.agent(), seconds=1)
    # A process ends a moment after its signal.
    deadline = time.monotonic() + PATIENCE
    while subprocess.run(["pgrep", "-f", child], capture_output=True, check=False).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("metadata", ["", "no XML"])
def test_a_program_that_is_no_fence_agent(device, metadata):
    (device.folder / "metadata.xml").write_text(metadata)
    with pytest.raises(CommandFailed, match="must be a fence agent of ClusterLabs"):
        look(device.agent())


def test_an_agent_that_is_not_installed():
    with pytest.raises(InvalidInput, match="Install the package that has it: fence-agents, or fence-agents-nowhere"):
        look(FenceAgent("fence_nowhere"))


def test_the_evidence(device):
    given = {
        "kind": evidence_rules.FENCE_AGENT,
        "agent": f'{{"name": "{device.folder}/fence_test", "plug": "1", "options": {{"password": "let-me-in"}}}}',
        "timeout": PATIENCE,
    }
    node = {"metadata": {"name": "node-1"}}
    with pytest.raises(Refused, match="reports that it is on") as caught:
        check_evidence.confirm(None, node, given)
    assert caught.value.fields["why"] == "not_off"
    (device.folder / "state").write_text("off")
    seen = check_evidence.confirm(None, node, given)
    assert seen == {"agent": "fence_test", "plug": "1", "power_state": "off"}
    kept = evidence_rules.record(given, seen, node="node-1", boot_id="b", looked_at="now", run="r")
    assert "let-me-in" not in str(kept)
    assert (kept["kind"], kept["agent"]) == ("FenceAgent", "fence_test")
    assert check_evidence.max_seconds({**given, "timeout": 7}) == 7
    # The device does not answer any more: that is no proof, but it may be one a moment later.
    device.program(before="[ $action = status ] && exit 1")
    with pytest.raises(Refused, match="ended its action status with 1") as caught:
        check_evidence.confirm(None, node, given)
    assert caught.value.fields["why"] == "not_off"
