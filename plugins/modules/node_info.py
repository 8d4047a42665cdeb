#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: Show the holds, slot, cordon, operation and drain verdict of nodes
version_added: 0.1.0
description:
  - Describes nodes with their holds, slots, cordons and operations, and says whether each node could be drained now,
    later or never, and what prevents it.
options:
  name:
    description:
      - Name of one Node. If the Node does not exist, the list is empty. Mutually exclusive with O(selector).
    type: str
  selector:
    description:
      - Label selector of the Nodes. By default all.
    type: str
  force:
    description:
      - Judge a drain as with the option of the same name of M(holdfast.kubernetes.drain).
    type: bool
    default: false
  delete_emptydir:
    description:
      - Judge a drain as with the option of the same name of M(holdfast.kubernetes.drain).
    type: bool
    default: false
seealso:
  - module: holdfast.kubernetes.drain
  - module: holdfast.kubernetes.lease_hold_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Look at the workers
  holdfast.kubernetes.node_info:
    selector: node-role.kubernetes.io/worker
  register: result

- name: Name those that could not be drained now
  ansible.builtin.debug:
    msg: "{{ result.nodes | rejectattr('drain.verdict', 'eq', 'now') | map(attribute='name') }}"
"""

RETURN = r"""
nodes:
  description: The nodes.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the Node.
      type: str
      sample: node-1
    ready:
      description: Whether it is Ready.
      type: bool
    boot_id:
      description: Its boot ID as the kubelet reported it.
      type: str
      sample: 0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53
    unschedulable:
      description: Whether it is cordoned.
      type: bool
    cordoned_by:
      description: The owner of the cordon; null if it was not cordoned with this collection.
      type: str
    holds:
      description: Who holds the node, oldest first; see M(holdfast.kubernetes.lease_hold_info).
      type: list
      elements: dict
    shutdown_inhibited:
      description: Whether the condition C(ShutdownInhibited) is True.
      type: bool
    inhibited_by:
      description: The holders, as V(namespace/holder), that the condition names.
      type: list
      elements: str
    maintenance:
      description: Kubernetes' own conditions of the node's maintenance that are True, of the types C(MaintenancePlanned),
        C(MaintenanceInProgress), C(DrainInProgress) and C(Drained). C(ours) says whether this collection set it. No rolling
        reboot starts while another writer maintains or drains the node.
      type: list
      elements: dict
    slot:
      description: Its slot; see M(holdfast.kubernetes.reboot_slot). Null if it has none.
      type: dict
    claim:
      description: Which run has the exclusive right to work on it; null if none has.
      type: dict
    operation:
      description: The record of its last operation, and of the run and the phase; null if it has none.
      type: dict
    excluded:
      description: Whether it is labelled C(holdfast.dev/exclude).
      type: bool
    labels:
      description: Its labels.
      type: dict
    taints:
      description: Its taints, each with key, value and effect.
      type: list
      elements: dict
    drain:
      description: Whether it could be drained.
      type: dict
      contains:
        verdict:
          description: V(now), V(later) or V(never).
          type: str
          sample: now
        blockers:
          description: What prevents it; see C(blocked) of M(holdfast.kubernetes.drain).
          type: list
          elements: dict
    leftovers:
      description: Finished pods that a shutdown of the node left; see M(holdfast.kubernetes.leftover_pods).
      type: list
      elements: dict
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.info import node_info

OPERATION = node_info
SPEC: dict[str, Any] = {
    "argument_spec": {
        "name": {"type": "str"},
        "selector": {"type": "str"},
        "force": {"type": "bool", "default": False},
        "delete_emptydir": {"type": "bool", "default": False},
        **auth_options(),
    },
    "mutually_exclusive": [["name", "selector"]],
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
