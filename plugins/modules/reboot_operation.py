#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_operation
short_description: Enter or leave an operation of a group of nodes
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - An operation is one rolling reboot or failover. It may take several runs, one after the other or at the same time; a run
    is one process of ansible-playbook or one AWX job.
  - Entering returns the operation's id. The module resumes an operation that a dead run left, or that ended with nodes
    left over; its slots of the nodes in O(nodes) pass to this run.
  - A live run gives a sign of life, the Lease C(run.ID) in the namespace C(holdfast). A run without a sign of life for
    90 seconds counts as dead.
options:
  group:
    description:
      - Name of the group of nodes.
    type: str
    default: default
  operation:
    description:
      - Id of the operation. Without it, the module resumes an operation that was left, or else starts a new one.
      - Needed to leave it.
    type: str
  fresh:
    description:
      - Id of the new operation, if one starts.
    type: str
  nodes:
    description:
      - Names of the Nodes that the run will work on.
    type: list
    elements: str
    default: []
  restart:
    description:
      - Whether to ignore operations that others left, and to start a new one.
    type: bool
    default: false
  adopt_within:
    description:
      - Seconds since its last sign of life within which an operation that was left is resumed.
    type: int
    default: 93600
  forks:
    description:
      - How many hosts the run works on at the same time. The module warns if more of its nodes are held, because each
        node that waits for its holders takes a fork.
    type: int
  state:
    description:
      - Whether the run enters or leaves the operation.
    type: str
    choices: [begun, ended]
    default: begun
  complete:
    description:
      - With O(state=ended), whether no node was left over.
    type: bool
    default: true
seealso:
  - module: holdfast.kubernetes.node_claim
  - module: holdfast.kubernetes.reboot_slot
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.shared.left
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Enter an operation
  holdfast.kubernetes.reboot_operation:
    group: workers
    fresh: kernel-2026-11
    run: "4711"
    nodes: [node-1, node-2]
  register: begun

- name: Leave it
  holdfast.kubernetes.reboot_operation:
    group: workers
    operation: "{{ begun.operation }}"
    run: "4711"
    state: ended
"""

RETURN = r"""
operation:
  description: Id of the operation.
  type: str
  returned: success
  sample: kernel-2026-11
adopted:
  description: Whether another run started it.
  type: bool
  returned: success
taken:
  description: Which of the nodes have a slot of the operation, in any group. An earlier run may have left them in the
    middle of their reboot.
  type: list
  elements: str
  returned: success
takes_over:
  description: Nodes whose slots passed from dead runs to this one.
  type: list
  elements: str
  returned: success
  sample: [node-2]
error:
  description: What kind of failure it was, for example V(refused), V(claimed), V(timed_out), V(invalid_input), V(api) or
    V(api_unreachable).
  type: str
  returned: failure
  sample: claimed
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import HOLDER, LEFT, RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.operation_rules import ADOPT_WITHIN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.operations import reboot_operation

OPERATION = reboot_operation
SPEC: dict[str, Any] = {
    "argument_spec": {
        "group": {"type": "str", "default": "default"},
        "operation": {"type": "str"},
        "fresh": {"type": "str"},
        **RUN,
        **HOLDER,
        "nodes": {"type": "list", "elements": "str", "default": []},
        "restart": {"type": "bool", "default": False},
        "adopt_within": {"type": "int", "default": ADOPT_WITHIN},
        "forks": {"type": "int"},
        "state": {"type": "str", "choices": ["begun", "ended"], "default": "begun"},
        "complete": {"type": "bool", "default": True},
        **LEFT,
        **auth_options(),
    },
    "supports_check_mode": True,
}
RUN_LASTS = True


def kept_run(params: dict[str, Any], result: dict[str, Any]) -> str:
    """The run whose Lease is renewed after this task, until the controller ends; empty for none."""
    return params["run"] if params["state"] == "begun" else ""


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
