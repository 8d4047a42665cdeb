#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_guard_step
short_description: Wait for a Machine whose deletion waits for one of your hooks, and claim it
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Follows Machines of Cluster API until the deletion of one waits for the hook O(hook) of O(owner), at either point,
    and claims this Machine for the run. While this run is live, no other run works on the Machine for that hook.
    M(holdfast.kubernetes.machine_guard_record) then records what is done for the Machine, and removes the hook.
  - If a run was killed and counts as dead, the next run takes over its Machine.
  - The same run does not take a failed Machine again, unless O(retry_seconds) allows it.
  - The role P(holdfast.kubernetes.machine_guard#role) uses this module.
options:
  hook:
    description:
      - Name of the hooks.
    type: str
    required: true
  owner:
    description:
      - Owner of the hooks. The module ignores hooks of the same name with another owner.
    type: str
    required: true
  worker:
    description:
      - Id that distinguishes this work from other work of the same run, without a slash. Never use it twice.
      - If it is a name, a dot and a number, such as V(3.17), the name is that of a worker that works on one Machine
        after the other. The module ends what is left of the worker's earlier work, such as signs of life that could not
        be removed.
    type: str
    required: true
  namespace:
    description:
      - Namespace of the Machines. By default all.
    type: str
  machines:
    description:
      - Names of Machines. By default any.
    type: list
    elements: str
    default: []
  selector:
    description:
      - Only Machines with these labels, as a label selector.
    type: str
    default: ""
  cluster:
    description:
      - Only Machines of this Cluster.
    type: str
    default: ""
  templates:
    description:
      - Machines that are created from these objects, in addition to O(machines). O(selector) and O(cluster) narrow
        them.
    type: list
    elements: dict
    default: []
    suboptions:
      kind:
        description:
          - Its kind.
        type: str
        choices: [MachineDeployment, MachineSet, KubeadmControlPlane]
        default: MachineDeployment
      name:
        description:
          - Its name.
        type: str
        required: true
  set_points:
    description:
      - Points at which the module sets the hook on the Machines that it finds, if they are not being deleted and have
        no hook of that name. With O(templates), this applies only to the Machines in O(machines); the others get the
        hook from their template.
    type: list
    elements: str
    choices: [pre-drain, pre-terminate]
    default: []
  stop:
    description:
      - When to return V(done). With V(idle), as soon as no Machine with one of these hooks is being deleted. With
        V(deadline) and V(never), when O(wait_timeout) has passed. If only names of Machines are given, also when none
        of them has one of these hooks any more.
    type: str
    choices: [deadline, idle, never]
    default: deadline
  retry_seconds:
    description:
      - Seconds after which this run tries a failed Machine again. With V(0), it never does.
    type: int
    default: 0
  wait_timeout:
    description:
      - Seconds to wait. By default without a limit; V(0) checks once.
    type: int
seealso:
  - module: holdfast.kubernetes.machine_guard_record
  - module: holdfast.kubernetes.machine_guard_wait
  - module: holdfast.kubernetes.deletion_hook
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Wait for the next Machine
  holdfast.kubernetes.machine_guard_step:
    hook: backup
    owner: backup-team
    run: "4711"
    worker: "1.1"
    namespace: clusters
    wait_timeout: 3600
  register: next

- name: Run the tasks before the drain
  ansible.builtin.include_tasks: backup.yml
  when: next.step == 'pre-drain'
"""

RETURN = r"""
step:
  description: The point at which the Machine waits, or V(done) if there is none to work on.
  type: str
  returned: success
  sample: pre-drain
why:
  description: Why there is no Machine. V(deadline) if the time is over, V(idle) and V(gone) as described in O(stop).
  type: str
  returned: success
  sample: idle
run:
  description: Id of this work, for M(holdfast.kubernetes.machine_guard_record).
  type: str
  returned: success
  sample: 4711/1.1
machine:
  description: The Machine, as M(holdfast.kubernetes.deletion_hook_info) returns it; null if there is none.
  type: dict
  returned: success
node_state:
  description: State of its Node. V(ready); V(not_ready), if the kubelet itself reports it; V(unreachable), if the Node
    gives no sign of life; V(off), if a failover has proven it; V(gone); V(none), if the Machine never had a Node;
    V(foreign), if the cluster has a Node of that name that is not the Machine's, or if nothing proves that the Machine
    belongs to this cluster. With V(foreign), do nothing in that cluster; M(holdfast.kubernetes.machine_guard_record)
    then refuses to continue.
  type: str
  returned: success
  sample: ready
boot_id:
  description: The Node's boot ID.
  type: str
  returned: success
record:
  description: The record on the Machine. C(done) has the completed files of the user's tasks, by point. C(phases) has
    the seconds that each phase took.
  type: dict
  returned: success
resumed:
  description: Whether an earlier run has started work on the Machine at this point and did not finish it.
  type: bool
  returned: success
taken_from:
  description: The dead run that had the Machine before; null if there was none.
  type: str
  returned: success
skipped:
  description: Whether Cluster API has passed the pre-drain hook without waiting for it.
  type: bool
  returned: success
left:
  description: The Machines that still have one of these hooks, including those that are not being deleted.
  type: list
  elements: dict
  returned: success
refused:
  description: The Machines that could not be changed, because a webhook or an RBAC role forbids it, with namespace and
    name. The run skips them and continues with the others.
  type: list
  elements: dict
  returned: success
  contains:
    machine:
      description: Namespace and name.
      type: str
      sample: clusters/workers-7c9-x2x8k
    detail:
      description: What the API server said.
      type: str
waited:
  description: Seconds waited.
  type: float
  returned: success
error:
  description: What kind of failure it was, for example V(not_found), V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: api_unreachable
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import HOLDER, RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.rules import POINTS
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.rules import DEADLINE, IDLE, NEVER
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.steps import machine_guard_step

OPERATION = machine_guard_step
_KINDS = ["MachineDeployment", "MachineSet", "KubeadmControlPlane"]
SPEC: dict[str, Any] = {
    "argument_spec": {
        "hook": {"type": "str", "required": True},
        "owner": {"type": "str", "required": True},
        **RUN,
        "worker": {"type": "str", "required": True},
        **HOLDER,
        "namespace": {"type": "str"},
        "machines": {"type": "list", "elements": "str", "default": []},
        "selector": {"type": "str", "default": ""},
        "cluster": {"type": "str", "default": ""},
        "templates": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "kind": {"type": "str", "choices": _KINDS, "default": "MachineDeployment"},
                "name": {"type": "str", "required": True},
            },
        },
        "set_points": {"type": "list", "elements": "str", "choices": list(POINTS), "default": []},
        "stop": {"type": "str", "choices": [DEADLINE, IDLE, NEVER], "default": DEADLINE},
        "retry_seconds": {"type": "int", "default": 0},
        "wait_timeout": {"type": "int"},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def kept_run(params: dict[str, Any], result: dict[str, Any]) -> str:
    """The run whose Lease is renewed after this task, until the controller ends; empty for none."""
    return result["run"] if result.get("changed") else ""


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
