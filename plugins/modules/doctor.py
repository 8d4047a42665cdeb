#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: doctor
short_description: Report what runs left in a cluster, and clear what belongs to no live run
version_added: 0.1.0
description:
  - Lists slots, claims, cordons, opt-outs, unfinished operations, pauses of NodeHealthChecks and runs, each with its owner, its start and the run's
    last sign of life.
  - Clears what belongs to a dead run, if that breaks nothing. It does not change a node that is not Ready or has
    failed, except for the maintenance conditions and the waiting taint that a dead run has set. It also keeps the
    operation that the slot of such a node belongs to. RV(findings[].todo) says what a person has to do.
  - Keeps what belongs to a live run, what names no run, and the cordons of others.
  - Also reports what failovers left, and Machines whose deletion waits for work that has started. A person has to
    resolve these. They are never cleared.
  - Checks each object again directly before it clears it, so that a run that is live again loses nothing.
  - To resume a dead run, start the same playbook again instead; a run cannot resume what was cleared.
options:
  state:
    description:
      - V(reported) only reports. V(cleared) clears what is stale.
    type: str
    choices: [reported, cleared]
    default: reported
  release:
    description:
      - On these Nodes, the module clears what dead runs left, and failed slots, even if the nodes have not come back.
        Their cordons still stay until they are Ready.
    type: list
    elements: str
    default: []
  nodes:
    description:
      - Check only these nodes, their slots, and the runs that these name, and no operations.
      - With an empty list, check nothing.
    type: list
    elements: str
  group:
    description:
      - Check only the ledger of this group, its nodes, and the runs that these name. Its nodes are the nodes of the
        selector with which its last slot was taken.
      - With O(nodes), check only the nodes of the group that are in O(nodes).
    type: str
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
seealso:
  - module: holdfast.kubernetes.reboot_operation_info
  - module: holdfast.kubernetes.node_opt_outs
"""

EXAMPLES = r"""
---
- name: Report what runs left
  holdfast.kubernetes.doctor:
  register: result

- name: Clear what belongs to no live run
  holdfast.kubernetes.doctor:
    state: cleared

- name: Clear what belongs to no live run in one group, on two clusters
  holdfast.kubernetes.doctor:
    state: cleared
    group: workers
    management:
      kubeconfig: ~/.kube/management
"""

RETURN = r"""
findings:
  description: All objects of this collection that were checked, in the order in which it is safe to clear them.
  type: list
  elements: dict
  returned: success, and where not everything could be cleared
  contains:
    kind:
      description: V(cordon), V(opt_outs), V(claim), V(record) of an operation on a Node, V(conditions) of
        maintenance that a run has set on a Node, V(slot), V(operation), V(pause) of a NodeHealthCheck,
        V(failover) of a Node, V(taint) out-of-service on a Node that is Ready, V(key) that keeps a BareMetalHost off,
        V(attachment) of a volume to a Node that no longer exists, V(machine) whose deletion waits for a hook that a run
        of this collection has worked on, or V(run).
      type: str
      sample: slot
    node:
      description: The Node; empty for operations and runs.
      type: str
      sample: node-1
    group:
      description: The group whose ledger contains it; empty for what is recorded on a Node.
      type: str
      sample: default
    operation:
      description: Id of the operation that it belongs to; for a Machine, its namespace and name; for a pause,
        the name of the NodeHealthCheck.
      type: str
      sample: kernel-2026-11
    run:
      description: Id of the run that it belongs to.
      type: str
      sample: "4711"
    holder:
      description: Who that run is, for people; empty if it left no sign of life. For a cordon of others, its owner.
      type: str
      sample: root@bastion
    since:
      description: When it was recorded.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
    last_sign:
      description: The run's last sign of life; empty if it left none.
      type: str
      sample: "2026-11-21T09:12:00.000000Z"
    silent_seconds:
      description: Seconds since the last sign of life; null without one.
      type: int
      sample: 312
    alive:
      description: Whether the run is live.
      type: bool
    stale:
      description: Whether it belongs to no live run and may be cleared.
      type: bool
    cleared:
      description: Whether it was cleared; in check mode, whether it would be. If a stale object was not cleared, its
        run is live again, unless the task failed because of the object.
      type: bool
    why:
      description: What it is and, if it stays although no live run has it, why.
      type: str
      sample: in phase drain of operation kernel-2026-11
    todo:
      description: What a person has to do about it; empty if nothing.
      type: str
report:
  description: The findings for people, one line each, and then the manual steps.
  type: list
  elements: str
  returned: success, and where not everything could be cleared
stale:
  description: Number of findings that are stale.
  type: int
  returned: success, and where not everything could be cleared
  sample: 3
error:
  description: What kind of failure it was, for example V(api) or V(api_unreachable); V(refused) if opt-outs could not
    be restored, for example because the management cluster does not answer. Everything else is cleared then.
  type: str
  returned: failure
  sample: api
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.doctor import doctor

OPERATION = doctor
SPEC: dict[str, Any] = {
    "argument_spec": {
        "state": {"type": "str", "choices": ["reported", "cleared"], "default": "reported"},
        "release": {"type": "list", "elements": "str", "default": []},
        "nodes": {"type": "list", "elements": "str"},
        "group": {"type": "str"},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
