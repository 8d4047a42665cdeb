# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Confirm evidence directly before the node is declared out of service: is the node still off?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import NotFound
from .._api.objects import Object
from .._api.read_node import node_names
from .._capi import machine_rules
from . import agent, agent_rules, evidence_rules, find_host, redfish, redfish_rules
from . import command as commands
from . import host_rules as hosts

_COMMAND_TIMEOUT = 60


def check_source(cluster: Cluster, node: Object, evidence: Mapping[str, Any]) -> None:
    """Check what does not change with the state of the machine, and may take long.

    Raises:
        Refused: The fence agent can't prove that a machine is off, plug or system are not the node's, or another Node
            is the same machine.
        InvalidInput: The fence agent is not installed.
    """
    name = str(node["metadata"]["name"])
    if evidence["kind"] != evidence_rules.ATTESTATION:
        evidence_rules.check_one_node(node, cluster.items(paths.NODES), _uuid_of_system(node, evidence))
    if evidence["kind"] == evidence_rules.FENCE_AGENT:
        found = agent_rules.read(str(evidence["agent"]))
        with agent.confirms(name):
            agent.check_machine(found, name, _command_timeout(evidence), lambda: node_names(cluster))


def _uuid_of_system(node: Object, evidence: Mapping[str, Any]) -> str:
    """The only UUID that the system may have; empty if the evidence is not about one."""
    if evidence["kind"] != evidence_rules.REDFISH:
        return ""
    return str(evidence.get("uuid") or "") or node_rules.system_uuid(node)


def confirm(management: Cluster, node: Object, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Check at the source of the evidence that the node is off. Return what this shows, to record it.

    Raises:
        Refused: The source does not show, or no longer shows, that the node is off.
        NotFound: The BareMetalHost is gone.
        BmcFailure: The BMC does not return the power state.
    """
    kind, name = evidence["kind"], str(node["metadata"]["name"])
    if kind == evidence_rules.BARE_METAL_HOST:
        return _confirm_host(management, node, evidence)
    if kind == evidence_rules.REDFISH:
        return _confirm_redfish(node, evidence)
    if kind == evidence_rules.FENCE_AGENT:
        return _confirm_fence_agent(name, evidence)
    if kind == evidence_rules.COMMAND:
        return _confirm_command(name, evidence)
    # A person states that the machine is off: there is nothing else to ask.
    return {}


def max_seconds(evidence: Mapping[str, Any]) -> float:
    """Return the seconds that :func:`confirm` may take: the timeout of the BMC or of the command; 0 for the API."""
    if evidence["kind"] in (evidence_rules.COMMAND, evidence_rules.FENCE_AGENT):
        return _command_timeout(evidence)
    return sum(redfish.TIMEOUT) if evidence["kind"] == evidence_rules.REDFISH else 0.0


def _command_timeout(evidence: Mapping[str, Any]) -> float:
    return evidence.get("timeout") or _COMMAND_TIMEOUT


def _confirm_host(management: Cluster, node: Object, evidence: Mapping[str, Any]) -> dict[str, Any]:
    name = str(node["metadata"]["name"])
    host = find_host.find(management, evidence["host"], evidence["namespace"])
    uid, full_name = host["metadata"]["uid"], hosts.full_name(host)
    if evidence.get("uid") and evidence["uid"] != uid:
        raise evidence_rules.not_confirmed(
            name, f"BareMetalHost {full_name} was deleted and created again since", "other_host"
        )
    _check_node_of_host(management, node, host, evidence)
    written = hosts.written_of(host, evidence["key"])
    if written and written.node not in ("", name):
        raise evidence_rules.not_confirmed(
            name, f"its key on BareMetalHost {full_name} is for node {written.node}", "other_host"
        )
    if written and written.boot_id and written.boot_id != node_rules.boot_id(node):
        # A Node keeps the boot ID of its last boot while its machine is off.
        raise evidence_rules.not_confirmed(
            name, f"the key on BareMetalHost {full_name} was written for another boot ({written.boot_id})", "new_boot"
        )
    off = hosts.off(host, evidence["key"])
    if not off.proven:
        code = "not_off" if off.datable else "not_datable"
        raise evidence_rules.not_confirmed(name, f"BareMetalHost {full_name}: {off.why}", code)
    since = written.since if written else ""
    overridden = {"overridden_holds": list(written.overridden)} if written and written.overridden else {}
    return {"seen": off.why, "uid": uid, "since": since, **overridden}


def _check_node_of_host(management: Cluster, node: Object, host: Object, evidence: Mapping[str, Any]) -> None:
    """Check that the host is the machine of this Node, by the objects, or else by the node that the evidence names."""
    name = str(node["metadata"]["name"])
    try:
        found = find_host.host_of(management, node)
    except NotFound as error:
        if evidence.get("node") != name:
            raise evidence_rules.not_confirmed(
                name, f"it does not name its node, and {error.message}", "other_host"
            ) from error
        _node_name, machine = find_host.claimed_by(management, host)
        if machine and machine_rules.relation(node, machine) == machine_rules.FOREIGN:
            raise evidence_rules.not_confirmed(
                name,
                f"it is about BareMetalHost {hosts.full_name(host)}, which belongs to another Node of the same name",
                "other_host",
            ) from error
        return
    if found["metadata"]["uid"] != host["metadata"]["uid"]:
        raise evidence_rules.not_confirmed(
            name,
            f"it is about BareMetalHost {hosts.full_name(host)}, but the node is {hosts.full_name(found)}",
            "other_host",
        )


def _confirm_redfish(node: Object, evidence: Mapping[str, Any]) -> dict[str, Any]:
    name, uri = str(node["metadata"]["name"]), str(evidence["uri"])
    system = redfish.Bmc(evidence).read()
    # The power state of another machine says nothing about this node.
    evidence_rules.check_system(
        name, system.uuid, uri=uri, expected=str(evidence.get("uuid") or ""), of_node=node_rules.system_uuid(node)
    )
    if system.power_state != redfish_rules.OFF:
        raise evidence_rules.not_confirmed(name, f"{uri} reports PowerState {system.power_state}")
    return {"power_state": system.power_state, "uuid": system.uuid}


def _confirm_fence_agent(name: str, evidence: Mapping[str, Any]) -> dict[str, Any]:
    found = agent_rules.read(str(evidence["agent"]))
    agent.check_off(found, name, _command_timeout(evidence))
    return {"agent": found.program, "plug": found.plug, "power_state": agent_rules.OFF}


def _confirm_command(name: str, evidence: Mapping[str, Any]) -> dict[str, Any]:
    environment, seconds = {"HOLDFAST_NODE": name}, _command_timeout(evidence)
    argv = list(evidence.get("argv") or ()) or commands.expand(
        commands.split(str(evidence["command"]), "evidence.command"), environment
    )
    ended = commands.run(argv, environment, seconds)
    if ended.status is None:
        raise evidence_rules.not_confirmed(name, f"the verify command {argv[0]} did not end within {seconds} s")
    if not evidence_rules.off_by_command(ended.status, ended.output):
        printed = "\n".join(text for text in (ended.output.strip(), ended.error_output.strip()) if text)
        raise evidence_rules.not_confirmed(
            name,
            f"the verify command {argv[0]} ended with {ended.status} and did not report that; it must end with 0, and "
            'its last line must be "off", or "SUBJECT is off", "SUBJECT: off" or "SUBJECT=off" with a plain '
            "subject",
            output=evidence_rules.kept_output(printed),
        )
    return {"program": argv[0], "output": evidence_rules.kept_output(ended.output)}
