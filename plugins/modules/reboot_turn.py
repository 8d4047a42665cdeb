#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_turn
short_description: Wait until a node may be rebooted, and take its slot and its claim
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Checks the node, its holds, pods and alerts that block it, the maintenance windows, the canaries and etcd. Waits for each
    as the user's settings say, takes the slot and the claim, and checks again. It returns the next step of the node, the
    reason, and the remaining steps of the role.
  - The module does not change the node before it has the claim.
options:
  settings:
    description:
      - The variables of the role, as M(holdfast.kubernetes.role_settings) returns them.
    type: dict
    required: true
  operation:
    description:
      - Id of the rolling reboot.
    type: str
    required: true
  own:
    description:
      - Whether the controller runs on the node.
    type: bool
    default: false
  inventory_host:
    description:
      - Name of the host in the inventory, for messages.
    type: str
  play:
    description:
      - The pass of the playbook. V(resume) only does nodes that an earlier run left in the middle of their reboot.
      - V(first) puts a held node off. V(canary) is the pass of the nodes that go first. V(last) and
        V(own) wait for the holders. V(only) is the role without the playbook. With V(plan), the action plugin only asks
        the node; M(holdfast.kubernetes.reboot_plan) does the rest.
    type: str
    choices: [only, resume, canary, first, last, own, plan]
    default: only
  last:
    description:
      - The last result of this module, or of M(holdfast.kubernetes.reboot_finish), for the node. It counts if its C(steps)
        has C(again).
    type: dict
  operation_group:
    description:
      - The group of the operation. Failures are also counted there, so that they stop all nodes of the operation.
      - By default, the group in O(settings).
    type: str
  answer:
    description:
      - The node's answer to the question whether it needs a reboot. In the controller, the action plugin asks the node.
      - C(needed) says why it needs a reboot, and is empty if it needs none. C(trouble) says why it did not answer. C(boot_id)
        is the boot in which it answered. A node that has booted since is asked again.
    type: dict
  shutdown:
    description:
      - The result of M(holdfast.kubernetes.graceful_shutdown_info) on the node, also if it failed.
    type: dict
  shutdown_options:
    description:
      - Options of M(holdfast.kubernetes.graceful_shutdown_info). Blank options are omitted.
    type: dict
    default: {}
  hosts:
    description:
      - The last result of this module for each host of the run that left the play. A host with a claim and without a result
        has failed, and is counted first. In the controller, the action plugin adds them.
    type: list
    elements: dict
    default: []
  uncounted:
    description:
      - Failures that could not be counted when they happened, as M(holdfast.kubernetes.reboot_finish) returns them.
    type: list
    elements: dict
    default: []
  canaries:
    description:
      - Names of the Nodes that go first. Without canaries, the task waits for none.
    type: list
    elements: str
    default: []
  canary_hosts:
    description:
      - The canaries that are hosts of this run.
    type: list
    elements: str
    default: []
  canary_results:
    description:
      - The result of each canary of this run; an empty one for a host that dropped out.
    type: list
    elements: dict
    default: []
seealso:
  - module: holdfast.kubernetes.reboot_finish
  - module: holdfast.kubernetes.reboot_slot
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.shared.blockers
  - holdfast.kubernetes.shared.alertmanager
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Wait for this node's turn
  holdfast.kubernetes.reboot_turn:
    name: node-1
    operation: kernel
    run: bastion/20261121T030000Z
    settings: "{{ read.settings }}"
  register: turn

- name: Cordon
  holdfast.kubernetes.cordon:
    name: node-1
    operation: kernel
    run: bastion/20261121T030000Z
  when: "'cordon' in turn.steps"
"""

RETURN = r"""
step:
  description:
    - The next step. V(go), the node is claimed, and O(ignore:steps) remain. V(ask), ask the node. V(before_slot), run the
      user's tasks before the slot. V(wait), check the other hosts of the run. After the last three, ask for the turn again.
    - V(put_off), the node waits for the last pass. V(skipped) and V(postponed) are results. V(planned), in check mode.
  type: str
  returned: success
  sample: go
why:
  description: The reason, as text.
  type: str
  returned: success
steps:
  description: The remaining steps of the role, in order.
  type: list
  elements: str
  returned: success
  sample: [cordon, drain, reboot, ready, finish]
files:
  description: The files of notifications and of the user's tasks, for each of the user's steps among O(ignore:steps).
  type: dict
  returned: success
result:
  description: The node's entry in the report, if its journey ends here.
  type: dict
  returned: success
stage:
  description: This run's progress with the node. While it is V(waiting), the run does not change the node.
  type: str
  returned: always
  sample: working
claimed:
  description: Whether this run has the claim.
  type: bool
  returned: always
node:
  description: Name of the Node.
  type: str
  returned: always
operation:
  description: Id of the operation.
  type: str
  returned: always
run:
  description: Id of the run.
  type: str
  returned: always
group:
  description: The group whose ledger has the node's slot.
  type: str
  returned: always
counted_in:
  description: The group of the operation, in whose ledger a failure of the node is also counted.
  type: str
  returned: always
needed:
  description: Why the reboot is needed.
  type: str
  returned: always
method:
  description: How the role reboots the node. This selects the task file that the role includes.
  type: str
  returned: always
  sample: systemd
etcd_selector:
  description: Label selector of etcd's pods, whose quorum is checked directly before the reboot; empty for no check.
  type: str
  returned: always
answer:
  description: The node's answer, and the boot in which it answered.
  type: dict
  returned: always
shutdown:
  description: The node's answer about its graceful shutdown.
  type: dict
  returned: always
slot_tasks_run:
  description: Whether the user's tasks before the slot have run in this attempt.
  type: bool
  returned: always
asked:
  description: The questions that the node was asked over its connection, V(needed) or V(shutdown).
  type: list
  elements: str
  returned: success
boot_id:
  description: ID of the boot that the reboot is to end.
  type: str
  returned: always
attempts:
  description: Number of turns of the node that ended before work on it started.
  type: int
  returned: always
left:
  description: Why the last attempt ended.
  type: str
  returned: always
waited:
  description: Seconds that the node has waited for its slot.
  type: float
  returned: always
idle:
  description: Seconds since something last happened in the group.
  type: float
  returned: always
error:
  description: What kind of failure it was, for example V(refused), V(held), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: refused
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import (
    ALERTMANAGER,
    BLOCKERS,
    HOLDER,
    NODE,
    RUN,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.turn import reboot_turn

OPERATION = reboot_turn
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        **RUN,
        **HOLDER,
        "settings": {"type": "dict", "required": True},
        "operation": {"type": "str", "required": True},
        "operation_group": {"type": "str"},
        "own": {"type": "bool", "default": False},
        "inventory_host": {"type": "str"},
        "play": {
            "type": "str",
            "choices": ["only", "resume", "canary", "first", "last", "own", "plan"],
            "default": "only",
        },
        "last": {"type": "dict"},
        "answer": {"type": "dict"},
        "shutdown": {"type": "dict"},
        "shutdown_options": {"type": "dict", "default": {}},
        "hosts": {"type": "list", "elements": "dict", "default": []},
        "uncounted": {"type": "list", "elements": "dict", "default": []},
        "canaries": {"type": "list", "elements": "str", "default": []},
        "canary_hosts": {"type": "list", "elements": "str", "default": []},
        "canary_results": {"type": "list", "elements": "dict", "default": []},
        **BLOCKERS,
        **ALERTMANAGER,
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
