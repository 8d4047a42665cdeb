# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fence agents of ClusterLabs: programs that switch a machine off or on, and report its power state."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

# The agent is a program of this machine's administrator, not an unknown source of XML.
from xml.etree import ElementTree

from .._api.errors import InvalidInput
from . import agent_rules as rules
from . import command
from .agent_rules import Abilities, FenceAgent
from .command import CommandFailed, CommandResult
from .evidence_rules import not_confirmed

# Debian and the RHEL family install agents here, which is not in the PATH of every user.
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def run(agent: FenceAgent, action: str, seconds: float) -> CommandResult:
    """Carry out one action. If it takes too long, kill the agent and all processes that it started.

    Raises:
        InvalidInput: The agent is not installed here.
    """
    ended = command.run_bounded([_program(agent)], {}, seconds, stdin=rules.stdin(agent, action))
    return CommandResult(ended.status, rules.hidden(agent, ended.output), rules.hidden(agent, ended.error_output))


def look(agent: FenceAgent, node: str, seconds: float, names: Callable[[], Collection[str]]) -> str:
    """Return the power state of the machine, after all checks of :func:`check_machine`."""
    check_machine(agent, node, seconds, names)
    return state(agent, seconds)


def check_machine(agent: FenceAgent, node: str, seconds: float, names: Callable[[], Collection[str]]) -> None:
    """Check that the agent can prove that a machine is off, and that this machine is the node's.

    Args:
        names: Returns the names of the cluster's Nodes, which a device may give to its plugs.

    Raises:
        InvalidInput: The agent can't prove that a machine is off, or would ignore an option.
        Refused: It is another node's machine, or the device does not have it.
        CommandFailed: The agent does not list the plugs of its device.
    """
    abilities = _abilities(agent, seconds)
    rules.check_abilities(agent, abilities)
    if agent.plug and "list" in abilities.actions:
        listed = run(agent, "list", seconds)
        if listed.status != 0:
            raise failed(agent, "list", listed, seconds, "Check its options, and the rights of its user.")
        plugs = rules.plugs_of(listed.output)
        if plugs is not None:
            rules.check_listed(agent, plugs, node, names())


def state(agent: FenceAgent, seconds: float) -> str:
    """Return the power state that the agent reports.

    Raises:
        CommandFailed: It reports none.
    """
    ended = run(agent, "status", seconds)
    found = rules.state(ended.status, ended.output)
    if not found:
        raise failed(agent, "status", ended, seconds, rules.why_unknown(ended.status))
    return found


@contextmanager
def confirms(node: str) -> Iterator[None]:
    """Turn a failure of an agent into the refusal that it does not confirm that the node is off.

    Raises:
        Refused: The agent has failed.
    """
    try:
        yield
    except CommandFailed as error:
        # pylint does not follow the import of its base class.
        raise not_confirmed(node, error.message, **error.fields) from error  # pylint: disable=bad-exception-cause


def check_off(agent: FenceAgent, node: str, seconds: float) -> None:
    """Check that the agent reports the machine off.

    Raises:
        Refused: It does not.
    """
    with confirms(node):
        found = state(agent, seconds)
    if found != rules.OFF:
        raise not_confirmed(node, f"fence agent {agent.shown} reports that it is {found}")


def failed(agent: FenceAgent, action: str, ended: CommandResult, seconds: float, advice: str) -> CommandFailed:
    """Return the error for an action that did not succeed."""
    how = (
        f"did not end its action {action} within {seconds:.0f} s, and was killed"
        if ended.status is None
        else f"ended its action {action} with {ended.status}"
    )
    return CommandFailed(
        f"Fence agent {agent.shown} {how}. {advice}",
        rc=ended.status,
        output=ended.last_lines or "no output",
    )


def _program(agent: FenceAgent) -> str:
    found = shutil.which(agent.name, path=f"{os.environ.get('PATH', '')}:{_SBIN}")
    if found is None:
        raise InvalidInput(
            f"Fence agent {agent.name} is not installed on the host where this task runs. Nothing was changed. Install "
            f"the package that has it: fence-agents, or {agent.program.replace('fence_', 'fence-agents-')}."
        )
    return found


def _abilities(agent: FenceAgent, seconds: float) -> Abilities:
    # Without the options of the machine: nothing is asked of the device.
    ended = run(FenceAgent(agent.name), "metadata", seconds)
    try:
        tree = ElementTree.fromstring(ended.output) if ended.status == 0 else None  # noqa: S314
    except ElementTree.ParseError:
        tree = None
    if tree is None:
        raise failed(agent, "metadata", ended, seconds, "It must be a fence agent of ClusterLabs.")
    return Abilities(
        frozenset(item.get("name", "") for item in tree.iter("parameter")),
        frozenset(item.get("name", "") for item in tree.iter("action")),
    )
