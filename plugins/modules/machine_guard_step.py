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
  - Follows Machines of Cluster API until the deletion of one waits for the hook O(hook) of O(owner), at either point, and makes it
    this run's. No other run works on it at the same time, for that hook, as long as this one lives. What is done for the Machine
    is then recorded with M(holdfast.kubernetes.machine_guard_record), and that module removes the hook, too.
  - A Machine that a run has left that is dead, because it was killed, passes to the next that looks.
  - A Machine that has failed is not taken again by the same run, unless O(retry_seconds) says so.
  - The role P(holdfast.kubernetes.machine_guard#role) is made of it.
options:
  hook:
    description:
      - Name of the hooks.
    type: str
    required: true
  owner:
    description:
      - Whose hooks they are. Those of the same name with another owner are left alone.
    type: str
    required: true
  worker:
    description:
      - What tells this work from others of the same run, with no slash in it. It must not be used twice.
      - Is it a name, a dot and a number, such as V(3.17), then the name is that of a worker who works on one Machine after the
        other. What is left of its works before, such as signs of life that could not be taken away, is ended.
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
      - Machines that are made of these, besides O(machines). O(selector) and O(cluster) narrow them.
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
      - Points at which Machines that are seen, and that nobody deletes, are given the hook where they have none of that name.
        With O(templates) only those that O(machines) names are; the others have it from their template.
    type: list
    elements: str
    choices: [pre-drain, pre-terminate]
    default: []
  stop:
    description:
      - When there is nothing more to do. With V(idle) as soon as no Machine is being deleted that has a hook of ours; with
        V(deadline) and V(never) when O(wait_timeout) has passed. Where only names of Machines are given, also when none of them
        has a hook of ours any more.
    type: str
    choices: [deadline, idle, never]
    default: deadline
  retry_seconds:
    description:
      - Seconds after which this run tries a Machine again that has failed. V(0) is never.
    type: int
    default: 0
  wait_timeout:
    description:
      - Seconds to wait. By default for ever; V(0) looks once.
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
- name: Which Machine is to be worked on?
  holdfast.kubernetes.machine_guard_step:
    hook: backup
    owner: backup-team
    run: "4711"
    worker: "1.1"
    namespace: clusters
    wait_timeout: 3600
  register: next

- name: Do what must be done
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
  description: Why there is none. V(deadline) where the time is over, V(idle) and V(gone) as O(stop) has it.
  type: str
  returned: success
  sample: idle
run:
  description: Id of this work, for M(holdfast.kubernetes.machine_guard_record).
  type: str
  returned: success
  sample: 4711/1.1
machine:
  description: The Machine, as M(holdfast.kubernetes.deletion_hook_info) has it; null if there is none.
  type: dict
  returned: success
node_state:
  description: What is known of its Node. V(ready); V(not_ready), where the kubelet says so itself; V(unreachable), where it is not
    heard of; V(off), if that is proven by a failover; V(gone); V(none), where the Machine never had one; V(foreign), where the
    cluster that was asked has a Node of that name that is not the Machine's, or is not shown to be its cluster. Nothing is to be
    done in that cluster then, and M(holdfast.kubernetes.machine_guard_record) refuses to go on.
  type: str
  returned: success
  sample: ready
boot_id:
  description: The Node's boot ID.
  type: str
  returned: success
record:
  description: What stands on the Machine. C(done) has the files of the user's tasks that were done, by point, C(phases) the seconds
    that each phase took.
  type: dict
  returned: success
resumed:
  description: Whether a run before has begun with the Machine at this point and did not end it.
  type: bool
  returned: success
taken_from:
  description: The dead run that had the Machine before; null if there was none.
  type: str
  returned: success
skipped:
  description: Whether Cluster API has gone past our pre-drain hook without waiting for it.
  type: bool
  returned: success
left:
  description: The Machines that have a hook of ours still, those that nobody deletes included.
  type: list
  elements: dict
  returned: success
refused:
  description: The Machines that could not be changed, because a webhook or a role of the API server forbids it, with namespace and
    name. They were left, and the others were resumed.
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
