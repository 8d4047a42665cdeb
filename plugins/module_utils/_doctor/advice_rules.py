# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor advises a person to do where it cannot help. Words only."""

from __future__ import annotations

import json
import re
import shlex

from .._api import node_rules
from .._api.names import CORDON, OPERATION
from .._api.objects import Object
from .._budget.ledger_rules import Slot

# Neither a shell nor Ansible gives these characters a meaning.
_PLAIN = re.compile(r"[\w.:/@+-]+", re.ASCII)


def repair_node(node: Object) -> str:
    """Advise on a node that is down."""
    return (
        f"{_down(node)} Bring it back, and start the same playbook again: it continues. If it is gone for good, "
        f"{_release(node_rules.name(node))}."
    )


def run_again(node: Object) -> str:
    """Advise on a node that was released while it is down: its cordon is left."""
    return f"{_down(node)} Run the doctor again when it is back."


def check_failed_node(name: str, slot: Slot) -> str:
    """Advise on a node that has failed and is Ready with its old boot ID."""
    return (
        f"Node {name} has failed ({slot.reason}). It is Ready, but has not rebooted since. Find the cause, then reboot "
        f"it, or {_release(name)}."
    )


def resume_reboot(name: str) -> str:
    """Advise on a node whose reboot was requested by a run that died, and did not come yet."""
    return (
        f"A run that died was about to reboot node {name}, or has asked for it. Start the same playbook again: it "
        f"continues. If nothing will reboot the node any more, {_release(name)}."
    )


def check_unhealthy_node(name: str, result: str, detail: str) -> str:
    """Advise on a node that was rebooted, and is not known to be healthy since."""
    why = f" ({detail})" if detail else ""
    return f"Node {name} was rebooted, but {result}{why}. Find the cause; when the node is healthy, {_release(name)}."


def finish_reboot(name: str) -> str:
    """Advise on a node that was rebooted by a run that died before the node had passed its check."""
    return (
        f"A run that died has rebooted node {name} and not checked it. Start the same playbook again: it checks the "
        f"node and finishes it. If you have checked the node yourself, {_release(name)}."
    )


def release_deleted_node(name: str, slot: Slot) -> str:
    """Advise on a failed node that no longer exists."""
    return f"Node {name} has failed ({slot.reason}) and no longer exists. If it is gone for good, {_release(name)}."


def release_slot(group: str, slot: Slot) -> str:
    command = module_command("reboot_slot", name=slot.node, group=group, operation=slot.operation, state="absent")
    return _unused(f"The slot of node {slot.node} in group {group}", command)


def restore_opt_outs(name: str) -> str:
    return _unused(f"The opt-outs of node {name}", module_command("node_opt_outs", name=name, state="absent"))


def remove_record(name: str, operation: str) -> str:
    command = f"kubectl annotate node {shlex.quote(name)} {OPERATION}-"
    return _unused(f"The record of operation {operation} on node {name}", command)


def remove_conditions(node: Object) -> str:
    name, cordon = node_rules.name(node), node_rules.record(node, CORDON)
    owner = {"owner": str(cordon["owner"])} if cordon and cordon.get("owner") else {}
    command = module_command("cordon", name=name, **owner, state="uncordoned")
    return _unused(f"The lifecycle conditions of node {name}", command, "to uncordon it, ")


def module_command(module: str, **options: str) -> str:
    """Return the shell command of a task. A node may have written the values, so no shell and no Jinja reads them."""
    if all(map(_PLAIN.fullmatch, options.values())):
        arguments = " ".join(f"{name}={value}" for name, value in options.items())
    else:
        arguments = json.dumps({name: value.replace("{", "{{ '{' }}") for name, value in options.items()})
    return f"ansible localhost -m holdfast.kubernetes.{module} -a {shlex.quote(arguments)}"


def _unused(what: str, command: str, also: str = "") -> str:
    return f"{what} names no run. If it is no longer used, {also}run: {command}"


def _release(name: str) -> str:
    # Without doctor_nodes, the doctor also clears what is left on other nodes, and ends operations.
    quoted = shlex.quote(name)
    return f"run the doctor again with -e doctor_nodes={quoted} -e doctor_release={quoted}"


def _down(node: Object) -> str:
    return f"Node {node_rules.name(node)} is down: {node_rules.not_ready_why(node)}."
