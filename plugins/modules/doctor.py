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
  - Lists slots, claims, cordons, opt-outs, half-done operations and runs; whose each is, since when, and the run's last sign
    of life.
  - Clears what belongs to a dead run, where that breaks nothing. A node that is not Ready, or that has failed, is left as it
    is, and so is the operation that its slot belongs to; RV(findings[].todo) says what a person has to do.
  - Leaves what belongs to a live run, what names no run, and the cordons of others.
  - Reports what failovers left too, and Machines whose deletion waits for work that was begun, which is for a person to see
    to. That is never cleared.
  - Each thing is looked at again directly before it is cleared, so that a run that has come to life is not robbed.
  - Where a dead run is to be gone on with, start the same playbook again instead; what was cleared is forgotten.
options:
  state:
    description:
      - Whether to report only, or to clear what is stale.
    type: str
    choices: [reported, cleared]
    default: reported
  release:
    description:
      - Nodes that are cleared of what dead runs left, and of failed slots, although they have not come back. Their cordons
        still stay until they are Ready.
    type: list
    elements: str
    default: []
  nodes:
    description:
      - Look at what is on these nodes, their slots, and the runs that these name; at nothing else, and at no operations.
      - With an empty list at nothing at all.
    type: list
    elements: str
  group:
    description:
      - Look at the ledger of this group, at what is on its nodes, and at the runs that these name; at nothing else. Its nodes
        are those of the selector that its last slot was taken with.
      - Together with O(nodes) only at those of them that are given.
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
  - module: holdfast.kubernetes.reboot_operation
  - module: holdfast.kubernetes.node_opt_outs
"""

EXAMPLES = r"""
---
- name: What is there?
  holdfast.kubernetes.doctor:
  register: result

- name: Clear what belongs to nobody
  holdfast.kubernetes.doctor:
    state: cleared

- name: Clear what belongs to nobody in one group, on two clusters
  holdfast.kubernetes.doctor:
    state: cleared
    group: workers
    management:
      kubeconfig: ~/.kube/management
"""

RETURN = r"""
findings:
  description: Everything of ours that was looked at, in the order in which it is safe to clear.
  type: list
  elements: dict
  returned: success, and where not everything could be cleared
  contains:
    kind:
      description: V(cordon), V(opt_outs), V(claim), V(record) of an operation on a Node, V(slot), V(operation), V(failover) of a
        Node, V(taint) out-of-service on a Node that is Ready, V(key) that keeps a BareMetalHost off, V(attachment) of a volume to
        a Node that is no more, V(machine) whose deletion waits for a hook that a run of ours has worked at, or V(run).
      type: str
      sample: slot
    node:
      description: The Node; empty for operations and runs.
      type: str
      sample: node-1
    group:
      description: The group whose ledger it stands in; empty for what stands on a Node.
      type: str
      sample: default
    operation:
      description: Id of the operation that it belongs to; of a Machine, its namespace and name.
      type: str
      sample: kernel-2026-11
    run:
      description: Id of the run that it belongs to.
      type: str
      sample: "4711"
    holder:
      description: Who that run is, for people; empty where it left no sign of life. Of a cordon of others, its owner.
      type: str
      sample: root@bastion
    since:
      description: Since when it stands.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
    last_sign:
      description: The run's last sign of life; empty where it left none.
      type: str
      sample: "2026-11-21T09:12:00.000000Z"
    silent_seconds:
      description: Seconds since then; null without one.
      type: int
      sample: 312
    alive:
      description: Whether the run lives.
      type: bool
    stale:
      description: Whether it belongs to no live run and may be cleared.
      type: bool
    cleared:
      description: Whether it was cleared; in check mode, whether it would be. What is stale and was not has come to life
        meanwhile, unless the task failed because of it.
      type: bool
    why:
      description: What it is and, where it stays although no live run has it, why.
      type: str
      sample: in phase drain of operation kernel-2026-11
    todo:
      description: What a person has to do about it; empty where nothing.
      type: str
report:
  description: The same for people, one line for each, and then what there is to do by hand.
  type: list
  elements: str
  returned: success, and where not everything could be cleared
stale:
  description: How many of them are stale.
  type: int
  returned: success, and where not everything could be cleared
  sample: 3
error:
  description: What kind of failure it was, for example V(api) or V(api_unreachable); V(refused) where opt-outs could not be
    put back, for example because the management cluster does not answer. All else is cleared then.
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
