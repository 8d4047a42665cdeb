#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: failover_record
short_description: Record the progress of a node's failover
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Maintains the annotation C(holdfast.dev/failover) of a Node, so that another run can resume the failover if this one
    dies. Also maintains the failover's entry in the ConfigMap C(failovers) in the namespace C(holdfast), which keeps
    the last 50 failovers for later questions.
  - The run must have the claim on the node; see M(holdfast.kubernetes.failover_step), which creates the record.
  - With O(look), checks the node directly before a step that can't be undone.
options:
  operation:
    description:
      - Id of the failover.
    type: str
    required: true
  phase:
    description:
      - The phase that begins.
    type: str
  result:
    description:
      - How the failover ended for this run. The same write returns the claim, and the run ends.
      - With V(moved), and with V(failed) after a power-off was requested, the record stays on the Node until it is
        recovered.
    type: str
    choices: [moved, failed, stopped, recovered]
  detail:
    description:
      - More about the result, for people.
    type: str
  facts:
    description:
      - What later steps, another run, or people need to know. The module adds it to the recorded facts.
    type: dict
  host_version:
    description:
      - Resource version of the BareMetalHost, for people.
    type: str
  look:
    description:
      - Fails with RV(error=came_back) if the node is Ready or has booted since the failover began.
      - Waits for a node that reports its shutdown, because this report is the last one of a host that was asked to
        power off.
    type: bool
    default: false
  gate:
    description:
      - Fails if someone holds the node.
    type: bool
    default: false
  override_holds:
    description:
      - Makes O(gate) pass in spite of holds. The holds stay on record.
    type: bool
    default: false
  wait_timeout:
    description:
      - Maximum number of seconds to wait for the end of a shutdown.
    type: int
    default: 120
  delete_node:
    description:
      - Deletes the Node after everything is recorded, if it is still the Node that was checked.
    type: bool
    default: false
  deleted:
    description:
      - Says that the Node was deleted after its failover, together with the record. The module then records only
        O(result), in the ConfigMap.
    type: bool
    default: false
seealso:
  - module: holdfast.kubernetes.failover_step
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.run
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Check the node again, and record that it is being switched off
  holdfast.kubernetes.failover_record:
    name: worker-3
    operation: worker-3.20261121T090000Z
    run: "4711"
    phase: fence
    look: true
    gate: true
"""

RETURN = r"""
record:
  description: The record; null with O(deleted).
  type: dict
  returned: success
  contains:
    id:
      description: Id of the failover.
      type: str
      sample: worker-3.20261121T090000Z
    run:
      description: Id of the run that wrote it last.
      type: str
      sample: "4711"
    holder:
      description: Who started it.
      type: str
      sample: ada@bastion
    reason:
      description: Why.
      type: str
      sample: its disk has failed
    started:
      description: When it began, by the API server's clock.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
    since:
      description: When this phase began.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
    phase:
      description: The current phase.
      type: str
      sample: fence
    phases:
      description: Seconds spent in each phase that ended.
      type: dict
      sample: {confirm: 30.0, claim: 1.2, fence: 14.8}
    boot_id:
      description: The Node's boot ID when it began.
      type: str
      sample: 0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53
    facts:
      description: What is known for later steps.
      type: dict
      sample: {fence: metal3, host: rack-3-unit-7, namespace: metal, key: holdfast-failover}
    result:
      description: How it ended; empty while it is in progress.
      type: str
      sample: moved
    detail:
      description: More about the result.
      type: str
entry:
  description: The entry of the failover in the ConfigMap C(failovers), with all runs, and each step with its time and
    resource versions.
  type: dict
  returned: success
  sample: {operation: worker-3.20261121T090000Z, node: worker-3, by: ada@bastion, result: moved}
error:
  description: What kind of failure it was, for example V(came_back), V(held), V(claim_lost), V(refused), V(timed_out),
    V(not_found), V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: came_back
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE, RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.record import failover_record

OPERATION = failover_record
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "operation": {"type": "str", "required": True},
        **RUN,
        "phase": {"type": "str"},
        "result": {"type": "str", "choices": ["moved", "failed", "stopped", "recovered"]},
        "detail": {"type": "str"},
        "facts": {"type": "dict"},
        "host_version": {"type": "str"},
        "look": {"type": "bool", "default": False},
        "gate": {"type": "bool", "default": False},
        "override_holds": {"type": "bool", "default": False},
        "wait_timeout": {"type": "int", "default": 120},
        "delete_node": {"type": "bool", "default": False},
        "deleted": {"type": "bool", "default": False},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
