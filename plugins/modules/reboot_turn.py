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
  - Looks at the node, its holds and what else blocks it, the maintenance windows, the canaries and etcd; waits for each as
    the user asked; takes the slot and the claim; and looks again. It answers what is next for the node, why, and which
    steps of the role are left.
  - Nothing of the node is touched before its claim is taken.
options:
  operation:
    description:
      - Id of the rolling reboot.
    type: str
    required: true
  inventory_host:
    description:
      - Name of the host in the inventory, for messages.
    type: str
  play:
    description:
      - In which pass of the playbook this is. V(first) puts a node off that is held. V(canary) are the nodes that go first.
        V(last) and V(own) wait for the holders. V(only) is the role without the playbook.
    type: str
    choices: [only, canary, first, last, own]
    default: only
  user_steps:
    description:
      - The user's own steps for which there are tasks, for example V(before_drain).
    type: list
    elements: str
    default: []
  answer:
    description:
      - What the node said to the question whether it needs a reboot.
      - C(needed) is why it does, and empty where it does not; C(trouble) is why it did not say; C(boot_id) is the boot in
        which it said so. A node that has booted since is asked again.
    type: dict
  shutdown:
    description:
      - The result of M(holdfast.kubernetes.graceful_shutdown_info) on the node, also of one that failed.
    type: dict
  slot_tasks_run:
    description:
      - The user's tasks before the slot were run since the last attempt.
    type: bool
    default: false
  attempts:
    description:
      - How often the node's turn has come before, from the last answer.
    type: int
    default: 0
  left:
    description:
      - Why the last attempt ended, from the last answer.
    type: str
  waited:
    description:
      - Seconds that the node has waited for its slot, from the last answer.
    type: float
    default: 0
  idle:
    description:
      - Seconds of these in which nothing happened in the group, from the last answer.
    type: float
    default: 0
  hosts:
    description:
      - Hosts of the run that left the play, each with C(node), C(group), C(claimed), C(result) and C(reason). Those with a
        claim and without a result have failed, and are counted first.
    type: list
    elements: dict
    default: []
  uncounted:
    description:
      - Failures that could not be counted when they happened, as M(holdfast.kubernetes.reboot_finish) returns them.
    type: list
    elements: dict
    default: []
  restart:
    description:
      - Takes the claim of a dead run of another operation, too.
    type: bool
    default: false
  claim_timeout:
    description:
      - Seconds to wait for the claim.
    type: int
    default: 900
  when:
    description:
      - Who says that a reboot is needed.
    type: str
    choices: [required, always, command]
    default: required
  method:
    description:
      - How the node is rebooted.
    type: str
    choices: [systemd, metal3, command]
    default: systemd
  window_time_zone:
    description:
      - Name of the IANA time zone of O(windows).
    type: str
    default: UTC
  window_margin:
    description:
      - Seconds of a window that have to be left for it to count as open.
    type: int
    default: 0
  window_wait:
    description:
      - Seconds to wait for a window to open.
    type: int
    default: 0
  canaries:
    description:
      - Names of the Nodes that go first. Without any, none is waited for.
    type: list
    elements: str
    default: []
  canary_results:
    description:
      - The result of each canary of this run, as it is in the report; an empty one of a host that dropped out.
    type: list
    elements: dict
    default: []
  soak:
    description:
      - Seconds for which the canaries have to stay healthy.
    type: int
    default: 0
  canary_timeout:
    description:
      - Seconds to wait for canaries.
    type: int
    default: 14400
  single_node:
    description:
      - The cluster's only node, or its only control-plane node, may be rebooted.
    type: bool
    default: false
  etcd_selector:
    description:
      - Label selector of etcd's pods in C(kube-system).
    type: str
    default: component=etcd
  quorum_command:
    description:
      - The user has a command that says whether one member of etcd may go.
    type: bool
    default: false
  quorum_timeout:
    description:
      - Seconds to wait for etcd's other members.
    type: int
    default: 600
  graceful_shutdown:
    description:
      - What to do where the node's graceful shutdown is not in effect.
    type: str
    choices: [ignore, warn, require]
    default: warn
  override_holds:
    description:
      - Holds do not count.
    type: bool
    default: false
  hold_timeout:
    description:
      - Seconds to wait for the holders and for what else blocks the node.
    type: int
    default: 14400
  hold_attempts:
    description:
      - How many times to try a node that is held again each time its turn comes.
    type: int
    default: 5
  group:
    description:
      - Name of the group of nodes that share the budget. Failures of the operation are counted there.
    type: str
    default: default
  control_plane_group:
    description:
      - Group of the control-plane nodes. V(none) gives them no group of their own.
    type: str
    default: control-plane
  slot_timeout:
    description:
      - Seconds to wait for a slot while nothing happens in the group.
    type: int
    default: 3600
  force:
    description:
      - For a plan, whether the drain deletes pods without a controller.
    type: bool
    default: false
  delete_emptydir:
    description:
      - For a plan, whether the drain deletes pods with an emptyDir volume.
    type: bool
    default: false
  disable_eviction:
    description:
      - For a plan, whether the drain ignores disruption budgets.
    type: bool
    default: false
  opt_outs:
    description:
      - The autoscaler and health checks are told to leave the node alone while it is worked on.
    type: bool
    default: true
  ready_timeout:
    description:
      - Seconds to wait for a node that an earlier run sent into its reboot.
    type: int
    default: 900
  resume_timeout:
    description:
      - The same where O(method=command). After it the user's tasks are run again.
    type: int
    default: 300
seealso:
  - module: holdfast.kubernetes.reboot_finish
  - module: holdfast.kubernetes.reboot_slot
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.shared.budget
  - holdfast.kubernetes.shared.windows
  - holdfast.kubernetes.shared.blockers
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
    when: always
    max_unavailable: 10%
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
    - What is next. V(go), the node is claimed and O(ignore:steps) are left. V(ask), ask the node. V(before_slot), run the
      user's tasks before the slot. V(wait), see what became of the other hosts of the run. After these three, ask for the
      turn again.
    - V(put_off), the node waits for the last pass. V(skipped) and V(postponed) are results. V(planned), in check mode.
  type: str
  returned: success
  sample: go
why:
  description: Why, in words.
  type: str
  returned: success
steps:
  description: The steps of the role that are left, in their order.
  type: list
  elements: str
  returned: success
  sample: [cordon, drain, reboot, ready, finish]
result:
  description: The node's entry in the report, where its journey ends here.
  type: dict
  returned: success
stage:
  description: How far this run has come with the node. While it is V(waiting), nothing of the node is touched.
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
needed:
  description: Why the reboot is needed.
  type: str
  returned: always
boot_id:
  description: The boot in which the node is to be rebooted.
  type: str
  returned: always
attempts:
  description: How often the node's turn had come, and nothing could be begun.
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
  description: Seconds of these in which nothing happened in the group.
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
    BLOCKERS,
    BUDGET,
    HOLDER,
    NODE,
    RUN,
    WINDOWS,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.admit import reboot_turn

OPERATION = reboot_turn
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        **RUN,
        **HOLDER,
        "operation": {"type": "str", "required": True},
        "inventory_host": {"type": "str"},
        "play": {"type": "str", "choices": ["only", "canary", "first", "last", "own"], "default": "only"},
        "user_steps": {"type": "list", "elements": "str", "default": []},
        "answer": {"type": "dict"},
        "shutdown": {"type": "dict"},
        "slot_tasks_run": {"type": "bool", "default": False},
        "attempts": {"type": "int", "default": 0},
        "left": {"type": "str"},
        "waited": {"type": "float", "default": 0},
        "idle": {"type": "float", "default": 0},
        "hosts": {"type": "list", "elements": "dict", "default": []},
        "uncounted": {"type": "list", "elements": "dict", "default": []},
        "restart": {"type": "bool", "default": False},
        "claim_timeout": {"type": "int", "default": 900},
        "when": {"type": "str", "choices": ["required", "always", "command"], "default": "required"},
        "method": {"type": "str", "choices": ["systemd", "metal3", "command"], "default": "systemd"},
        **WINDOWS,
        "window_time_zone": {"type": "str", "default": "UTC"},
        "window_margin": {"type": "int", "default": 0},
        "window_wait": {"type": "int", "default": 0},
        "canaries": {"type": "list", "elements": "str", "default": []},
        "canary_results": {"type": "list", "elements": "dict", "default": []},
        "soak": {"type": "int", "default": 0},
        "canary_timeout": {"type": "int", "default": 14400},
        "single_node": {"type": "bool", "default": False},
        "etcd_selector": {"type": "str", "default": "component=etcd"},
        "quorum_command": {"type": "bool", "default": False},
        "quorum_timeout": {"type": "int", "default": 600},
        "graceful_shutdown": {"type": "str", "choices": ["ignore", "warn", "require"], "default": "warn"},
        "override_holds": {"type": "bool", "default": False},
        "hold_timeout": {"type": "int", "default": 14400},
        "hold_attempts": {"type": "int", "default": 5},
        **BLOCKERS,
        "group": {"type": "str", "default": "default"},
        "control_plane_group": {"type": "str", "default": "control-plane"},
        **BUDGET,
        "slot_timeout": {"type": "int", "default": 3600},
        "force": {"type": "bool", "default": False},
        "delete_emptydir": {"type": "bool", "default": False},
        "disable_eviction": {"type": "bool", "default": False},
        "opt_outs": {"type": "bool", "default": True},
        "ready_timeout": {"type": "int", "default": 900},
        "resume_timeout": {"type": "int", "default": 300},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
