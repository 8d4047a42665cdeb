#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_operation
short_description: Record on a node what an operation does with it
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Maintains the annotation C(holdfast.dev/operation) of a Node, so that another run can resume if this one dies, and
    people see what happens. With the first phase of an operation, it records the boot ID and whether the node is
    schedulable.
options:
  operation:
    description:
      - Id of the operation. An id that differs from the recorded one starts a new record.
    type: str
    required: true
  run:
    description:
      - Id of the run.
    type: str
  phase:
    description:
      - The phase that begins.
    type: str
  result:
    description:
      - How the node's part of the operation ended. The same write returns a claim of O(run) on the node. The task fails
        if another run has the claim.
    type: str
    choices: [rebooted, skipped, failed]
  detail:
    description:
      - More about the result, for people.
    type: str
  lifecycle_conditions:
    description:
      - Whether the phases V(hold) and V(slot) set the condition C(MaintenancePlanned) of the Node. A result always removes
        the conditions of O(run).
    type: bool
    default: false
  prefer_no_schedule:
    description:
      - Whether the phases V(hold) and V(slot) set the taint C(holdfast.dev/reboot-planned:PreferNoSchedule). A result
        always removes that taint of O(run).
    type: bool
    default: false
  claimed:
    description:
      - Whether O(run) must have the claim on the node; see M(holdfast.kubernetes.node_claim).
    type: bool
    default: false
seealso:
  - module: holdfast.kubernetes.node_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Record that the drain begins
  holdfast.kubernetes.node_operation:
    name: node-1
    operation: kernel-2026-11
    phase: drain
"""

RETURN = r"""
operation:
  description: The record.
  type: dict
  returned: success
  contains:
    id:
      description: Id of the operation.
      type: str
      sample: kernel-2026-11
    run:
      description: Id of the run.
      type: str
      sample: "4711"
    phase:
      description: The current phase.
      type: str
      sample: drain
    since:
      description: When the phase began.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
    started:
      description: When the node's part of the operation began.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
    phases:
      description: Seconds spent in each phase that ended.
      type: dict
      sample: {cordon: 0.2, drain: 4.1}
    boot_id_before:
      description: Boot ID at the beginning.
      type: str
    boot_id_after:
      description: Boot ID at the end.
      type: str
    versions_before:
      description: Versions of C(container_runtime_version), C(kernel_version), C(kubelet_version) and C(os_image) that
        the kubelet reported at the beginning.
      type: dict
      sample: {kernel_version: 6.1.0-25-amd64, kubelet_version: v1.34.1}
    versions_after:
      description: The same versions at the end.
      type: dict
      sample: {kernel_version: 6.1.0-27-amd64, kubelet_version: v1.34.1}
    unschedulable_before:
      description: Whether someone had cordoned the node before.
      type: bool
    result:
      description: V(rebooted), V(skipped), V(failed), or empty while it is in progress.
      type: str
    detail:
      description: More about the result.
      type: str
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation import node_operation

OPERATION = node_operation
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "operation": {"type": "str", "required": True},
        "run": {"type": "str"},
        "phase": {"type": "str"},
        "result": {"type": "str", "choices": ["rebooted", "skipped", "failed"]},
        "detail": {"type": "str"},
        "lifecycle_conditions": {"type": "bool", "default": False},
        "prefer_no_schedule": {"type": "bool", "default": False},
        "claimed": {"type": "bool", "default": False},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
