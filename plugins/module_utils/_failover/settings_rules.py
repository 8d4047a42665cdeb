# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the variables of a failover that an argument spec can't express."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .._api.errors import InvalidInput
from .._fencing.agent_rules import FenceAgent, stdin
from .facts_rules import ATTESTATION, COMMAND, FENCE_AGENT, METAL3, REDFISH, ways_of
from .rules import RECOVER

_WHAT = {
    REDFISH: "failover_redfish_uri",
    FENCE_AGENT: "failover_fence_agent",
    ATTESTATION: "failover_attestation_statement",
}


def check_node(
    direction: str,
    name: str,
    settings: Mapping[str, Any],
    *,
    uri: str,
    given: Collection[str],
    node_name: str,
    agent: FenceAgent | None = None,
) -> list[str]:
    """Check the variables of one node; return what stands for its machine, one text for each way to fence.

    Args:
        agent: The fence agent.
        uri: The URL of the machine at its BMC.
        given: The names of the secrets that are set.
        node_name: What ``failover_node_name`` is in the variables of this node.

    Raises:
        InvalidInput: They do not fit.
    """
    if any(settings.get(option, 1) <= 0 for option in ("fence_timeout", "power_on_timeout")):
        raise InvalidInput(
            "failover_fence_timeout and failover_power_on_timeout must be above 0: a command without a deadline "
            "could switch off a node that is back in service. Nothing was changed."
        )
    if node_name != name:
        raise InvalidInput(
            f"The role sets failover_node_name for one node after the other, but it is always {node_name}. Nothing was "
            "changed. Set failover_node instead."
        )
    if direction == RECOVER:
        return []
    ways, uri = ways_of(settings), uri.strip()
    if ATTESTATION in ways and len(ways) > 1:
        raise InvalidInput(
            "failover_fence: attestation can't be in a list with other ways: a person vouches for what this person has "
            "seen, after all else has failed. Nothing was changed."
        )
    if settings["confirm_seconds"] < 0:
        raise InvalidInput(
            f"failover_confirm_seconds is {settings['confirm_seconds']}, but must be 0 or more. Nothing was changed."
        )
    if not all(_is_complete(way, settings, uri, given, agent) for way in ways):
        raise InvalidInput(
            "failover_fence: redfish needs failover_redfish_uri, failover_fence: fence_agent needs "
            "failover_fence_agent, failover_fence: command needs both "
            "failover_fence_command and failover_verify_command, and failover_fence: attestation needs "
            "failover_attestation_by, failover_attestation_statement and failover_attestation_at. A command that "
            "switches a node off does not prove that it is off."
        )
    if re.match(r"[^/]*//[^/]*@", uri):
        raise InvalidInput(
            "failover_redfish_uri contains a user or a password, but is recorded where others can read it. Nothing was "
            "changed. Set failover_redfish_username and failover_redfish_password instead."
        )
    insecure = uri and not uri.lower().startswith("https://") and not settings["redfish_insecure_http"]
    if REDFISH in ways and insecure:
        raise InvalidInput(
            "failover_redfish_uri is not https, so user and password would cross the network as plain text. Nothing "
            "was changed. Give an https URL, or set failover_redfish_insecure_http."
        )
    machine = {
        REDFISH: uri.rstrip("/").lower(),
        ATTESTATION: settings["attestation_statement"].strip(),
        FENCE_AGENT: f"{agent.program} {stdin(agent, '')}" if agent else "",
        METAL3: settings["bare_metal_host"],
    }
    # No result of a task shows the URL of a BMC.
    return [f"{way}:{hashlib.sha256(machine[way].encode()).hexdigest()}" for way in ways if machine.get(way)]


def _is_complete(
    fence: str, settings: Mapping[str, Any], uri: str, given: Collection[str], agent: FenceAgent | None
) -> bool:
    if fence == REDFISH:
        return bool(uri)
    if fence == FENCE_AGENT:
        return agent is not None
    if fence == COMMAND:
        return {"fence_command", "verify_command"} <= set(given)
    names = ("attestation_by", "attestation_statement", "attestation_at")
    return fence != ATTESTATION or all(settings[name] for name in names)


def check_nodes(checked: Sequence[Mapping[str, Any]]) -> None:
    """Check that there are nodes, and that no machine stands for two of them.

    Raises:
        InvalidInput: They do not fit.
    """
    if not checked:
        raise InvalidInput("Set failover_node to the name of a Node, or to a list of names: -e failover_node=worker-3")
    machines = [machine for item in checked for machine in item["machines"]]
    if len(machines) == len(set(machines)):
        return
    twice = next(machine for machine in machines if machines.count(machine) > 1)
    what = _WHAT.get(twice.partition(":")[0], "failover_bare_metal_host")
    raise InvalidInput(
        f"Two of the nodes {', '.join(item['name'] for item in checked)} have the same {what}, but each has its own "
        "machine. Nothing was changed. Use failover_node_name in it, or start one run for each node."
    )
