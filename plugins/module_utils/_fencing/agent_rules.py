# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about fence agents of ClusterLabs: what an agent is told, and what its answers mean.

Source: https://github.com/ClusterLabs/fence-agents/blob/main/doc/FenceAgentAPI.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._api.errors import InvalidInput
from .._shared.bounds import some
from .evidence_rules import not_confirmed

ON, OFF = "on", "off"
# Exit statuses of the action ``status``. Any other status means that the state is unknown.
_STATES: Mapping[int | None, str] = {0: ON, 2: OFF}
# What ``list`` prints if the device has no list, or the agent can't ask for it.
_NO_LIST = ("N/A", "NOTICE: List option is not working on this device yet")

# Agents of which "off" does not mean that the machine has no power, each with what it does mean.
_NO_PROOF: Mapping[str, str] = {
    "fence_ack_manual": "it takes the word of a person; use the way attestation",
    "fence_aws_vpc_net": "it cuts the machine off from its network, and leaves it on; use fence_aws",
    **dict.fromkeys(
        ("fence_compute", "fence_evacuate"), "it reports whether OpenStack uses the host, not whether the host is on"
    ),
    "fence_crosslink": "it reports a machine off that does not answer a ping",
    "fence_dummy": "it is for tests, and switches nothing off",
    "fence_heuristics_ping": "it switches nothing off",
    "fence_kdump": "it waits for the crash dump of the machine, and switches nothing off",
    **dict.fromkeys(("fence_mpath", "fence_scsi"), "it cuts the machine off from its storage, and leaves it on"),
    "fence_sbd": "it reports a machine off as soon as a message to it is written, before the machine has read it",
    "fence_skalar": "it reports machines off that start, or whose hypervisor does not answer",
    **dict.fromkeys(
        ("fence_virt", "fence_xvm"),
        "it reports a machine off that the answering host does not know; use fence_virsh",
    ),
}

_PROGRAM = re.compile(r"(?:/[\w.+-]+)*/?fence_[\w.+-]+")
_OPTION = re.compile(r"[A-Za-z_][\w-]*")
# The options that name the machine. Only ``plug`` may, so that the record and the checks have it.
_PLUG = "plug"
_PLUGS = (_PLUG, "port", "nodename", "domain", "uuid")
# Options that would make a check or the power-off something else than what this collection asks for.
_FORBIDDEN: Mapping[str, str] = {
    "action": "the role sets the action",
    "option": "the role sets the action",
    "help": "the agent would do nothing",
    "version": "the agent would do nothing",
    "delay": "the last check of the node counts for 10 s only",
    "missing_as_off": "a plug that does not exist would count as off",
    "network_fencing": "a machine that is cut off from its network would count as off",
    "plug_separator": "the plugs are separated by commas",
    "separator": "the plugs are separated by commas",
    **dict.fromkeys(_PLUGS, "set plug next to name instead"),
}
_AS_ADDRESS = "port_as_ip"
_SECRET = re.compile(r"passw|passphrase|secret|token|key|community|credential", re.IGNORECASE)
_HIDDEN = "***"


@dataclass(frozen=True)
class FenceAgent:
    """A fence agent and the machine that it is for.

    Attributes:
        name: Its program: a name, or an absolute path.
        plug: What names the machine at the device; empty if the device is one machine.
        options: Its other options. They may contain secrets.
    """

    name: str
    plug: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The agent in a sentence, without its options."""
        return f"{self.name} (plug {self.plug})" if self.plug else self.name

    @property
    def program(self) -> str:
        return self.name.rpartition("/")[2]


@dataclass(frozen=True)
class Abilities:
    """What the metadata of an agent say."""

    options: frozenset[str] = frozenset()
    actions: frozenset[str] = frozenset()


def read(text: str) -> FenceAgent:
    """Return the agent that a JSON text describes.

    Args:
        text: JSON with ``name``, ``plug`` and ``options``.

    Raises:
        InvalidInput: It describes none. The message has no value of an option.
    """
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given.keys() <= {"name", _PLUG, "options"}:
        raise InvalidInput(
            "The fence agent must be a dictionary (as JSON text in evidence.agent) with name and, if needed, plug and "
            "options: failover_fence_agent: {name: fence_redfish, options: {ip: bmc-7, username: operator}}."
        )
    name, plug, options = _text(given.get("name")), _text(given.get(_PLUG)), given.get("options") or {}
    if not _PROGRAM.fullmatch(name) or ".." in name:
        raise InvalidInput(
            f'The fence agent "{name}" must be the name of a program: fence_ipmilan, or an absolute path whose '
            "last part begins with fence_."
        )
    if why := _NO_PROOF.get(name.rpartition("/")[2]):
        raise InvalidInput(f"Fence agent {name} can't prove that a machine is off: {why}. Use another agent.")
    if not isinstance(options, dict) or not all(isinstance(option, str) for option in options):
        raise InvalidInput(f"The options of fence agent {name} must be a dictionary.")
    options = {option: value for option, value in options.items() if value is not None}
    for option, value in options.items():
        if why := _FORBIDDEN.get(option.replace("-", "_").lower()):
            raise InvalidInput(f"The option {option} of fence agent {name} is not allowed: {why}. Leave it out.")
        if not _OPTION.fullmatch(option) or not _fits(value):
            raise InvalidInput(f"The option {option} of fence agent {name} must be one line of text, or a number.")
    if not plug.isprintable():
        raise InvalidInput(f"The plug of fence agent {name} must be one line of text.")
    return FenceAgent(name, plug, {option: _text(value) for option, value in options.items()})


def _fits(value: Any) -> bool:
    if isinstance(value, str):
        # An agent reads one option for each line.
        return value.isprintable()
    return isinstance(value, (bool, int, float))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return "" if value is None else str(value).strip()


def stdin(agent: FenceAgent, action: str) -> str:
    """Return what the agent reads: no option is on its command line, where other users could see it."""
    named = {_PLUG: agent.plug} if agent.plug else {}
    lines = {**agent.options, **named, "action": action}
    return "".join(f"{option}={value}\n" for option, value in lines.items())


def check_abilities(agent: FenceAgent, abilities: Abilities) -> None:
    """Refuse an agent that can't prove that a machine is off, and options that it would ignore.

    Raises:
        InvalidInput: It is one of these.
    """
    missing = {OFF, "status"} - abilities.actions
    if missing:
        raise InvalidInput(
            f"Fence agent {agent.name} has no action {' and '.join(sorted(missing))}, so it can't prove that a machine "
            "is off. Use another agent."
        )
    if "reboot" not in abilities.actions:
        # "Fabric fencing must never have a reboot operation."
        raise InvalidInput(
            f"Fence agent {agent.name} cuts a machine off from its storage or network, and leaves it on: it has no "
            "action reboot. The out-of-service taint needs a machine that is off. Use another agent."
        )
    unknown = sorted(option for option in agent.options if option.replace("-", "_") not in abilities.options)
    if unknown:
        raise InvalidInput(
            f"Fence agent {agent.name} has no option {', '.join(unknown)}, and would ignore it. Its options are: "
            f"{some(sorted(abilities.options - {'action', *_PLUGS}), 60)}."
        )
    if agent.plug and not abilities.options & {_PLUG, "port"}:
        raise InvalidInput(
            f"Fence agent {agent.name} has no plug, and would ignore it: name the machine in its options."
        )
    if agent.plug and _AS_ADDRESS in abilities.options and agent.options.get(_AS_ADDRESS) != "1":
        raise InvalidInput(
            f"Fence agent {agent.name} would ignore plug {agent.plug}: one of its devices is one machine. Leave plug "
            f"out and name the device with the option ip, or set the option {_AS_ADDRESS} if the plug is its address."
        )


def state(status: int | None, output: str) -> str:
    """Return the power state that the action ``status`` reports: on, off, or empty if it is unknown.

    Args:
        status: The exit status; ``None`` if the agent was killed.
        output: The standard output, which must not contradict the exit status. For off, it must say so too: 2 is also
            the exit status of an agent that can't use its options.
    """
    found = _STATES.get(status, "")
    said = {word.lower() for word in re.findall(r"^Status:\s*(\w+)\s*$", output, re.IGNORECASE | re.MULTILINE)}
    return found if said == {found} or (found == ON and not said) else ""


def why_unknown(status: int | None) -> str:
    """Return what to do if the action ``status`` ended with this exit status and its output gave no state."""
    said = (
        f'It did not print "Status: {_STATES[status].upper()}", so the state is unknown. ' if status in _STATES else ""
    )
    return f"{said}Check its plug and its options."


def plugs_of(output: str) -> dict[str, str] | None:
    """Return the plugs that the action ``list`` printed, each with its alias; ``None`` if the device has no list."""
    found = {}
    lines = [line.strip() for line in output.splitlines()]
    for line in lines:
        plug, comma, alias = line.partition(",")
        if comma and plug:
            found[plug.strip()] = alias.strip()
    return None if not found and set(lines) & set(_NO_LIST) else found


def check_listed(agent: FenceAgent, plugs: Mapping[str, str], node: str, others: Collection[str]) -> None:
    """Refuse a plug that the device does not have, or that it calls by the name of another Node.

    Args:
        plugs: The plugs of the device, each with its alias.
        node: The node that is to be switched off.
        others: The names of the cluster's Nodes.

    Raises:
        Refused: It is not the node's plug.
    """
    if not plugs:
        raise not_confirmed(
            node,
            f"fence agent {agent.shown}: its action list prints no plug that can be read, so nothing proves that the "
            "device has this one",
            "other_host",
            "Check the options of the agent and the rights of its user, or use another agent.",
        )
    for plug in agent.plug.split(","):
        alias = plugs.get(plug.strip())
        if alias is None and plug.strip() not in plugs.values():
            raise _wrong(node, agent, f"it has no plug {plug}, only {some(sorted(plugs), 20)}")
        named = {name for name in (plug.strip(), alias or "") if name != node and name in others}
        if named:
            raise _wrong(node, agent, f"its plug {plug} is the one of node {min(named)}")


def _wrong(node: str, agent: FenceAgent, why: str) -> Exception:
    return not_confirmed(node, f"fence agent {agent.shown}: {why}", "other_host", "Give the plug of this node.")


def hidden(agent: FenceAgent, text: str) -> str:
    """Return a text without the secrets among the agent's options."""
    secrets: Iterable[str] = (value for option, value in agent.options.items() if value and _SECRET.search(option))
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text
