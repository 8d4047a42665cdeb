#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_slot
short_description: Take one unit of a group's budget for a node, or return it
version_added: 0.1.0
description:
  - Gives a node a slot of its group, so that all runs, controllers and job slices together never take down more nodes
    than the group's budget allows. The slots are in the ConfigMap C(group.GROUP) in the namespace C(holdfast); each
    change of it is a compare-and-swap.
  - Waits for slots that a run works on. If no run works on the nodes that fill the budget, and these nodes have not
    changed for O(unhealthy_grace), the task fails and names them.
  - In check mode, it does not wait. A warning says what it would wait for, and the result is that of the wait's end.
  - The policy (O(selector), O(max_unavailable) and the domains) belongs to the group. The task refuses a different
    policy while slots are taken. Otherwise the new policy replaces the old one.
options:
  group:
    description:
      - Name of the group of nodes that share the budget.
    type: str
    default: default
  operation_group:
    description:
      - Group in whose ledger the failures of the operation are counted, if it is another group. Control-plane nodes
        have a budget of their own, and stop with the rest of their operation.
    type: str
  operation:
    description:
      - Id of the operation, one rolling reboot or failover, that needs the slot.
    type: str
    required: true
  run:
    description:
      - Id of the run, one process or job, that works on the node.
    type: str
  state:
    description:
      - V(present) takes the slot, V(absent) returns it.
      - V(failed) counts the node as failed in its operation. A Ready node returns its slot. A node that is not Ready
        keeps its slot, as failed, until it is Ready with a new boot ID.
    type: str
    choices: [present, absent, failed]
    default: present
  reason:
    description:
      - With O(state=failed), what went wrong.
    type: str
  healthy:
    description:
      - With O(state=failed), whether the node is healthy. By default, a Ready node counts as healthy, but this may be
        outdated for a node that was just switched off.
    type: bool
  pause:
    description:
      - Seconds from the end of a node of the operation until its next node gets a slot, in all runs; see O(ended).
    type: int
    default: 0
  ended:
    description:
      - With O(state=absent) or O(state=failed), records that the work on the node ended now, from which O(pause) counts.
    type: bool
    default: false
  wait_timeout:
    description:
      - Seconds to wait for a slot.
    type: int
    default: 3600
seealso:
  - module: holdfast.kubernetes.node_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.budget
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Take a slot, one rack at a time and two nodes in it
  holdfast.kubernetes.reboot_slot:
    name: node-1
    group: workers
    selector: node-role.kubernetes.io/worker
    max_unavailable: 10%
    topology_key: example.com/rack
    max_unavailable_per_domain: 2
    max_domains: 1
    operation: kernel-2026-11

- name: Give it back
  holdfast.kubernetes.reboot_slot:
    name: node-1
    group: workers
    operation: kernel-2026-11
    state: absent
"""

RETURN = r"""
slot:
  description: The node's slot; null if it has none.
  type: dict
  returned: success, or if a slot was refused
  contains:
    group:
      description: The group.
      type: str
      sample: default
    node:
      description: The node.
      type: str
      sample: node-1
    operation:
      description: The operation that has it.
      type: str
      sample: "2026-11-21-kernel"
    run:
      description: The run that has it.
      type: str
      sample: "4711"
    since:
      description: When it was taken, by the API server's clock.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
    domain:
      description: The node's domain.
      type: str
      sample: zone-a
    state:
      description: V(active), or V(failed) for a node that did not come back.
      type: str
      sample: active
    reason:
      description: Why it failed.
      type: str
      sample: ""
    boot_id:
      description: Boot ID of the node when it got the slot.
      type: str
      sample: 0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53
    claims:
      description: How often a run has claimed the node under this slot.
      type: int
      sample: 1
waited:
  description: Seconds waited.
  type: float
  returned: success, or if a slot was refused
  sample: 41.3
idle:
  description: Seconds of the wait since a slot of the group was last taken or returned.
  type: float
  returned: with O(state=present)
  sample: 12.1
in_flight:
  description: Nodes of the group that have a slot.
  type: list
  elements: str
  returned: success, or if a slot was refused
  sample: [node-1]
unavailable:
  description: Nodes that fill the budget, with a slot or without.
  type: list
  elements: str
  returned: success, or if a slot was refused
  sample: [node-1, node-7]
budget:
  description: How many nodes may be unavailable; null if no slot was asked for.
  type: int
  returned: success, or if a slot was refused
  sample: 3
error:
  description: What kind of failure it was, for example V(refused), V(held), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: timed_out
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import BUDGET, NODE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.slots import reboot_slot

OPERATION = reboot_slot
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "group": {"type": "str", "default": "default"},
        **BUDGET,
        "operation_group": {"type": "str"},
        "operation": {"type": "str", "required": True},
        "run": {"type": "str"},
        "state": {"type": "str", "choices": ["present", "absent", "failed"], "default": "present"},
        "reason": {"type": "str"},
        "healthy": {"type": "bool"},
        "pause": {"type": "int", "default": 0},
        "ended": {"type": "bool", "default": False},
        "wait_timeout": {"type": "int", "default": 3600},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
