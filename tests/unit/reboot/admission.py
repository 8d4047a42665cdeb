# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request for a turn, and what an earlier run may have left."""

from __future__ import annotations

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from unit.reboot.memory_cluster import AT, MemoryCluster
from unit.reboot.variables import settings, split

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger, Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.turn import reboot_turn
from ansible_collections.holdfast.kubernetes.plugins.modules import reboot_turn as module

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
GIVEN = {"name": "node-1", "operation": "kernel", "run": "me", "when": "always", "method": "metal3"}
CORDON = {"owner": "rolling_reboot", "reason": "kernel", "since": AT, "unschedulable_before": False}
DEAD_CLAIM = {"run": "dead", "operation": "kernel", "purpose": "rolling_reboot", "since": AT}


def two_nodes():
    found = MemoryCluster()
    found.node()
    found.node("node-2")
    return found


def turn(cluster, *, check_mode=False, said=None, warned=None, **options):
    ours, others = split({**GIVEN, **options})
    found = ArgumentSpecValidator(module.SPEC["argument_spec"]).validate({"settings": settings(**ours), **others})
    assert not found.error_messages
    context = Context(found.validated_parameters, check_mode)
    if said is not None:
        context.say = said.append
    if warned is not None:
        context.warn = warned.append
    cluster.dry_run = check_mode
    context.cluster = cluster
    return reboot_turn(context, found.validated_parameters)


def slot(run="dead", *, operation="kernel", node="node-1", **more):
    return Ledger(slots={node: Slot(node, operation, run, AT, boot_id="boot-1", **more)})


def record(phase, result="", **more):
    return {
        "id": "kernel",
        "run": "dead",
        "started": AT,
        "since": AT,
        "phase": phase,
        "phases": {},
        "boot_id_before": "boot-1",
        "unschedulable_before": False,
        "result": result,
        "detail": "",
        **more,
    }
