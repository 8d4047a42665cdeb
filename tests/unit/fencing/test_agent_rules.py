# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fence agent is told, and what its answers mean."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import agent_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.agent_rules import Abilities, FenceAgent

POWER = Abilities(
    frozenset({"action", "ip", "plug", "port", "password", "ssl_insecure"}),
    frozenset({"on", "off", "reboot", "status", "list", "metadata"}),
)


def text(name="fence_pdu", **more):
    return json.dumps({"name": name, **more})


def test_what_it_reads():
    options = {"ip": "bmc-7", "ssl_insecure": True, "ipport": 8443, "password": " s p ", "login_timeout": None}
    agent = rules.read(text("/usr/sbin/fence_pdu", plug=7, options=options))
    assert (agent.name, agent.program, agent.plug) == ("/usr/sbin/fence_pdu", "fence_pdu", "7")
    assert rules.stdin(agent, "off").splitlines() == [
        "ip=bmc-7",
        "ssl_insecure=1",
        "ipport=8443",
        "password=s p",
        "plug=7",
        "action=off",
    ]
    assert agent.shown == "/usr/sbin/fence_pdu (plug 7)"
    assert rules.read(text(options={"verbose": False})).options == {"verbose": "0"}
    assert "plug" not in rules.stdin(rules.read(text()), "status")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "must be a dictionary"),
        ("[]", "must be a dictionary"),
        (text(ip="bmc"), "must be a dictionary"),
        ("{'name': 'fence_pdu'}", "must be a dictionary"),
        ("{}", "must be the name of a program"),
        (text("rm"), "must be the name of a program"),
        (text("fence_pdu -h"), "must be the name of a program"),
        (text("/opt/../fence_pdu"), "must be the name of a program"),
        (text("bin/fence_pdu"), "must be the name of a program"),
        (text(options=[1]), "must be a dictionary"),
        (text(options={"action": "on"}), "the role sets the action"),
        (text(options={"missing-as-off": 1}), "would count as off"),
        (text(options={"delay": 30}), "counts for 10 s only"),
        (text(options={"port": "7"}), "set plug next to name"),
        (text(options={"domain": "worker-9"}), "set plug next to name"),
        (text(options={"uuid": "u-9"}), "set plug next to name"),
        (text(options={"network-fencing": 1}), "cut off from its network"),
        (text(options={"password": "hunter2\naction=on"}), "one line of text"),
        (text(options={"a=b": "hunter2"}), "one line of text"),
        (text(options={"password": ["hunter2"]}), "one line of text"),
        (text(plug="7\naction=on"), "one line of text"),
    ],
)
def test_what_is_no_agent(given, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        rules.read(given)
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("fence_virt", "does not know; use fence_virsh"),
        ("/usr/sbin/fence_xvm", "does not know; use fence_virsh"),
        ("fence_sbd", "before the machine has read it"),
        ("fence_aws_vpc_net", "from its network, and leaves it on"),
        ("fence_scsi", "from its storage, and leaves it on"),
        ("fence_evacuate", "whether OpenStack uses the host"),
        ("fence_crosslink", "does not answer a ping"),
        ("fence_dummy", "switches nothing off"),
    ],
)
def test_an_agent_whose_off_is_no_proof(program, words):
    with pytest.raises(InvalidInput, match=f"{program} can't prove that a machine is off: .*{words}"):
        rules.read(text(program, options={"ip": "bmc"}))


@given(st.dictionaries(st.sampled_from(["ip", "password", "ipport"]), st.text() | st.integers() | st.booleans()))
def test_no_value_adds_a_line(options):
    try:
        agent = rules.read(text(options=options))
    except InvalidInput:
        return
    lines = rules.stdin(agent, "off").split("\n")
    assert [line.partition("=")[0] for line in lines] == [*options, "action", ""]
    assert lines[-2] == "action=off"


@pytest.mark.parametrize(
    ("agent", "abilities", "words"),
    [
        (FenceAgent("fence_a"), Abilities(POWER.options, POWER.actions - {"status"}), "no action status"),
        (FenceAgent("fence_a"), Abilities(POWER.options, POWER.actions - {"off"}), "no action off"),
        (FenceAgent("fence_a"), Abilities(POWER.options, POWER.actions - {"reboot"}), "leaves it on"),
        (FenceAgent("fence_a", "7", {"pasword": "x"}), POWER, "no option pasword, and would ignore it"),
        (FenceAgent("fence_a", "7"), Abilities(frozenset({"ip"}), POWER.actions), "has no plug"),
        (
            FenceAgent("fence_a", "7"),
            Abilities(POWER.options | {"port_as_ip"}, POWER.actions),
            "would ignore plug 7",
        ),
    ],
)
def test_an_agent_that_proves_nothing(agent, abilities, words):
    with pytest.raises(InvalidInput, match=words):
        rules.check_abilities(agent, abilities)


def test_an_agent_that_fits():
    rules.check_abilities(FenceAgent("fence_a", "7", {"ip": "a", "ssl-insecure": "1"}), POWER)
    as_address = Abilities(POWER.options | {"port_as_ip"}, POWER.actions)
    rules.check_abilities(FenceAgent("fence_a", "7", {"port_as_ip": "1"}), as_address)
    rules.check_abilities(FenceAgent("fence_a"), as_address)


@pytest.mark.parametrize(
    ("status", "output", "state"),
    [
        (0, "", "on"),
        (0, "Status: ON", "on"),
        # 2 is also the exit status of an agent that can't use its options.
        (2, "", ""),
        (2, "Success: OFF", ""),
        (2, "Status: OFF\n", "off"),
        (2, "warning\nstatus: off", "off"),
        # It contradicts itself.
        (2, "Status: ON", ""),
        (0, "Status: OFF", ""),
        (2, "Status: OFF\nStatus: ON", ""),
        (1, "Status: OFF", ""),
        (None, "Status: OFF", ""),
        (127, "", ""),
    ],
)
def test_the_power_state(status, output, state):
    assert rules.state(status, output) == state


def test_the_plugs_of_a_device():
    printed = "1,node-1\n 2 , \n3,node-3, rear\nNOTICE: no list\nN/A\n,x\n"
    assert rules.plugs_of(printed) == {"1": "node-1", "2": "", "3": "node-3, rear"}


@pytest.mark.parametrize("output", ["N/A\n", "NOTICE: List option is not working on this device yet\n"])
def test_a_device_without_a_list(output):
    assert rules.plugs_of(output) is None


@pytest.mark.parametrize("output", ["", "worker-1      6d0f7f5e-6a0c-4d0e-9a6e-2f1c6f0b7a11 on\n"])
def test_a_list_that_can_not_be_read(output):
    plugs = rules.plugs_of(output)
    assert plugs == {}
    with pytest.raises(Refused, match="prints no plug that can be read") as caught:
        rules.check_listed(FenceAgent("fence_a", "worker-1"), plugs, "node-1", ["node-1"])
    assert caught.value.fields["why"] == "other_host"


@pytest.mark.parametrize(
    ("plug", "plugs", "words"),
    [
        ("9", {"1": "", "2": ""}, "has no plug 9, only 1, 2"),
        ("1,9", {"1": "", "2": ""}, "has no plug 9"),
        ("1", {"1": "node-2"}, "its plug 1 is the one of node node-2"),
        ("node-2", {"node-2": "uuid"}, "is the one of node node-2"),
        ("node-2", {"uuid": "node-2"}, "is the one of node node-2"),
    ],
)
def test_a_plug_that_is_not_the_nodes(plug, plugs, words):
    with pytest.raises(Refused, match=words) as caught:
        rules.check_listed(FenceAgent("fence_a", plug), plugs, "node-1", ["node-1", "node-2"])
    assert caught.value.fields["why"] == "other_host"


@pytest.mark.parametrize(
    ("plug", "plugs"),
    [
        ("1", {"1": "node-1"}),
        ("1,2", {"1": "psu-a", "2": ""}),
        ("node-1", {"uuid": "node-1"}),
    ],
)
def test_a_plug_that_may_be_the_nodes(plug, plugs):
    rules.check_listed(FenceAgent("fence_a", plug), plugs, "node-1", ["node-1", "node-2"])


def test_secrets_are_hidden():
    agent = FenceAgent(
        "fence_a", "1", {"password": "zet", "snmp_priv_passwd": "let-zet-in", "ip": "bmc", "community": ""}
    )
    assert rules.hidden(agent, "bmc: let-zet-in as zet") == "bmc: *** as ***"
