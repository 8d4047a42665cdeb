# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.settings_rules import (
    check_node,
    check_nodes,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.agent_rules import FenceAgent

SETTINGS = {
    "fence": "metal3",
    "fence_timeout": 300,
    "confirm_seconds": 30,
    "bare_metal_host": "",
    "attestation_by": "",
    "attestation_statement": "",
    "attestation_at": "",
    "redfish_insecure_http": False,
}
VOUCHED = {
    "fence": "attestation",
    "attestation_by": "Ada",
    "attestation_statement": "a is off",
    "attestation_at": "now",
}
PDU = FenceAgent("fence_pdu", "7", {"ip": "pdu-1", "password": "hunter2"})
URI = "https://bmc/redfish/v1/Systems/1"


def check(name="a", *, uri="", given=(), node_name=None, direction="failover", agent=None, **settings):
    return check_node(
        direction,
        name,
        {**SETTINGS, **settings},
        uri=uri,
        given=given,
        node_name=name if node_name is None else node_name,
        agent=agent,
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fence_timeout": 0}, "must be above 0"),
        ({"power_on_timeout": 0, "direction": "recover"}, "must be above 0"),
        ({"node_name": "b"}, "it is always b"),
        ({"fence": "redfish"}, "needs failover_redfish_uri"),
        ({"fence": "command", "given": ["fence_command"]}, "failover_verify_command"),
        ({**VOUCHED, "attestation_at": ""}, "failover_attestation_at"),
        ({"confirm_seconds": -1}, "failover_confirm_seconds is -1, but must be 0 or more"),
        ({"fence": "redfish", "uri": "https://ada:hunter2@bmc/1"}, "failover_redfish_password instead"),
        ({"fence": "redfish", "uri": "http://bmc/1"}, "failover_redfish_insecure_http"),
        ({"fence": "fence_agent"}, "needs failover_fence_agent"),
        ({"fence": ["metal3", "redfish"]}, "needs failover_redfish_uri"),
        ({"fence": ["metal3", "redfish"], "uri": "http://bmc/1"}, "failover_redfish_insecure_http"),
        ({**VOUCHED, "fence": ["metal3", "attestation"]}, "can't be in a list with other ways"),
    ],
)
def test_what_does_not_fit(options, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        check(**options)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"direction": "recover", "power_on_timeout": 1, "fence": None},
        {"fence": "command", "given": ["fence_command", "verify_command"]},
        {"fence": "redfish", "uri": URI},
        {"fence": ["metal3", "redfish"], "uri": URI},
        {"fence": "fence_agent", "agent": PDU},
        {**VOUCHED, "fence": ["attestation"]},
        {"fence": "redfish", "uri": "http://bmc/1", "redfish_insecure_http": True},
        VOUCHED,
        {"confirm_seconds": 0},
    ],
)
def test_what_fits(options):
    assert "://" not in str(check(**options))


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ({"fence": "redfish", "uri": URI}, {"fence": "redfish", "uri": f"{URI.upper()}/"}, "failover_redfish_uri"),
        (VOUCHED, VOUCHED, "failover_attestation_statement"),
        ({"bare_metal_host": "h"}, {"bare_metal_host": "h"}, "failover_bare_metal_host"),
        (
            {"fence": "fence_agent", "agent": PDU},
            {"fence": ["metal3", "fence_agent"], "agent": PDU},
            "failover_fence_agent",
        ),
        ({"fence": ["metal3", "redfish"], "uri": URI}, {"fence": "redfish", "uri": URI}, "failover_redfish_uri"),
    ],
)
def test_no_machine_belongs_to_two_nodes(one, other, what):
    checked = [{"name": "a", "machines": check("a", **one)}, {"name": "b", "machines": check("b", **other)}]
    with pytest.raises(InvalidInput, match=f"Two of the nodes a, b have the same {what}"):
        check_nodes(checked)


def test_the_machine_that_belongs_to_two_nodes_is_named():
    host, vouched = check(bare_metal_host="h"), check(**VOUCHED)
    checked = [
        {"name": name, "machines": machines} for name, machines in zip("abc", (host, vouched, vouched), strict=True)
    ]
    with pytest.raises(InvalidInput, match="have the same failover_attestation_statement"):
        check_nodes(checked)


def test_machines_that_are_found_by_the_node_are_its_own():
    check_nodes([{"name": name, "machines": check(name)} for name in "ab"])


def test_there_has_to_be_a_node():
    with pytest.raises(InvalidInput, match="Set failover_node"):
        check_nodes([])
