#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_claim
short_description: Take a run's exclusive right to work on a node, or return it
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - A claim is an annotation on the Node, taken by compare-and-swap. Only one run has it at a time, for any purpose, so
    that a failover can't interrupt a planned reboot.
  - The claim of a dead run passes to a run of the same operation. A live run keeps its claim, and the module waits for
    it. In check mode, a warning says so, and the result is that of the wait's end.
options:
  operation:
    description:
      - Id of the operation that the run works for.
    type: str
    required: true
  group:
    description:
      - Group whose ledger contains the node's slot. The slot then counts the claim, so that no other run removes the
        slot because of an older view of the Node.
    type: str
  purpose:
    description:
      - The purpose, for people.
    type: str
    default: rolling_reboot
  restart:
    description:
      - Whether to take also the claim of a dead run of another operation.
    type: bool
    default: false
  lifecycle_conditions:
    description:
      - Whether to show the work in the conditions of the Node; see the guide docs/other_controllers.md. The claim's
        return removes them.
    type: bool
    default: false
  state:
    description:
      - V(present) takes the claim, V(absent) returns it. The module never returns the claim of another run.
    type: str
    choices: [present, absent]
    default: present
  wait_timeout:
    description:
      - Seconds to wait for a live run.
    type: int
    default: 0
  keep:
    description:
      - With O(state=present), renews the run's sign of life until the run or ansible-playbook ends. With
        O(state=absent), ends the run. Use it for a run that M(holdfast.kubernetes.reboot_begin) did not begin.
    type: bool
    default: false
seealso:
  - module: holdfast.kubernetes.reboot_begin
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Claim the node
  holdfast.kubernetes.node_claim:
    name: node-1
    run: "4711"
    operation: kernel-2026-11
    wait_timeout: 3600
"""

RETURN = r"""
claim:
  description: The claim as it is now; null if nobody has one.
  type: dict
  returned: success, or if another run has it
  contains:
    run:
      description: Id of the run.
      type: str
      sample: "4711"
    operation:
      description: Id of its operation.
      type: str
      sample: kernel-2026-11
    purpose:
      description: The purpose.
      type: str
      sample: rolling_reboot
    since:
      description: When it was taken, by the API server's clock.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
taken_from:
  description: The dead run that had it before; null if there was none.
  type: str
  returned: success
waited:
  description: Seconds waited.
  type: float
  returned: success
run_alive:
  description: Whether the run that has the claim is live.
  type: bool
  returned: failure because of it
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import HOLDER, NODE, RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_claim import node_claim

OPERATION = node_claim
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        **RUN,
        **HOLDER,
        "operation": {"type": "str", "required": True},
        "group": {"type": "str"},
        "purpose": {"type": "str", "default": "rolling_reboot"},
        "restart": {"type": "bool", "default": False},
        "lifecycle_conditions": {"type": "bool", "default": False},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "wait_timeout": {"type": "int", "default": 0},
        "keep": {"type": "bool", "default": False},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def kept_run(params: dict[str, Any], result: dict[str, Any]) -> str:
    """The run whose Lease is renewed after this task, until the controller ends; empty for none."""
    return params["run"] if params["keep"] and params["state"] == "present" and result.get("claim") else ""


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
