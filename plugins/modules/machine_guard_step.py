#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_guard_step
short_description: Do the work for Machines whose deletion waits, up to the next step that only the role does
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Without work, follows Machines of Cluster API until the deletion of one waits for a hook of this guard, and claims this
    Machine. While the run is live, no other run works on the Machine for that hook. If a run was killed and counts as
    dead, the next run takes over its Machine.
  - With work, records the outcome of the last step, and does everything up to the next step of the role. It claims the Node,
    waits for the replacement, for holders and until volumes are gone, and removes the hook. Before each act, the record
    on the Machine names the phase, and the Node is looked at.
  - The hook is removed only after a last look. The task refuses this while the Node gives no sign of life and nothing
    proves that it is off, while someone holds the Node, and if another run has its claim. It also refuses if nothing
    proves that the Machine belongs to this cluster.
  - With O(failed), the hook stays, and an Event C(MachineGuardFailed) of the Machine says why.
options:
  begun:
    description:
      - RV(holdfast.kubernetes.machine_guard_begin#module:begun) of the start of the run.
    type: dict
    required: true
  worker:
    description:
      - Id that distinguishes this worker from others of the same run, without a slash. A worker works on one Machine after
        the other.
    type: str
    required: true
  last:
    description:
      - RV(kept) of the last task of this worker. By default the worker begins.
    type: dict
  failed:
    description:
      - What failed since then. The task records it and returns V(continue), or V(done) if the worker gives up.
    type: dict
    suboptions:
      where:
        description:
          - Name of the task.
        type: str
      msg:
        description:
          - What it said.
        type: str
      error:
        description:
          - Kind of the error, if a module of this collection failed.
        type: str
      status:
        description:
          - HTTP status, if the API server answered.
        type: str
  dropped:
    description:
      - RV(kept) of workers that have dropped out of the play, so that their Machines are recorded as failed.
    type: list
    elements: dict
    default: []
seealso:
  - module: holdfast.kubernetes.machine_guard_begin
  - module: holdfast.kubernetes.machine_guard_finish
  - module: holdfast.kubernetes.deletion_hook
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Take the next step
  holdfast.kubernetes.machine_guard_step:
    begun: "{{ begin.begun }}"
    worker: "1"
    last: "{{ turn.kept | default({}) }}"
  register: turn
"""

RETURN = r"""
step:
  description: What the role does next. V(fence), V(tasks), V(drain); V(continue) if it only asks again; V(done) if there is
    nothing more to do.
  type: str
  returned: always
  sample: tasks
why:
  description: Why there is nothing more to do. V(deadline) if the time has passed, V(idle) if no Machine with one of these
    hooks is being deleted, V(gone) if the named Machines are gone, V(failed) if it could not look for Machines.
  type: str
  returned: success
  sample: idle
file:
  description: Path of the file that V(tasks) runs.
  type: str
  returned: success
file_name:
  description: The name of the file in the record.
  type: str
  returned: success
run:
  description: Id of the work on this Machine.
  type: str
  returned: success
  sample: 4711/1.1
machine:
  description: Name of the Machine.
  type: str
  returned: success
namespace:
  description: Its namespace.
  type: str
  returned: success
cluster:
  description: Its Cluster.
  type: str
  returned: success
node:
  description: Its Node; empty if it has none.
  type: str
  returned: success
node_state:
  description: State of its Node. V(ready); V(not_ready), if the kubelet itself reports it; V(unreachable), if the Node
    gives no sign of life; V(off), if a failover has proven it; V(gone); V(none), if the Machine never had a Node;
    V(foreign), if the cluster has a Node of that name that is not the Machine's, or if nothing proves that the Machine
    belongs to this cluster.
  type: str
  returned: success
  sample: ready
point:
  description: The point at which the Machine waits.
  type: str
  returned: success
  sample: pre-drain
resumed:
  description: Whether an earlier run has started work on the Machine at this point and did not finish it.
  type: bool
  returned: success
renew:
  description: Id of the work whose Lease is renewed after this task; empty for none.
  type: str
  returned: success
kept:
  description: What the next task of this worker has to know. C(results) has the outcome for each Machine.
  type: dict
  returned: always
error:
  description: What kind of failure it was, for example V(refused), V(unfenced), V(held), V(wrong_cluster), V(claim_lost),
    V(claimed), V(timed_out), V(not_found), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: unfenced
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.journey import machine_guard_step

OPERATION = machine_guard_step
SPEC: dict[str, Any] = {
    "argument_spec": {
        "begun": {"type": "dict", "required": True},
        "worker": {"type": "str", "required": True},
        "last": {"type": "dict"},
        "failed": {
            "type": "dict",
            "options": {
                "where": {"type": "str"},
                "msg": {"type": "str"},
                "error": {"type": "str"},
                "status": {"type": "str"},
            },
        },
        "dropped": {"type": "list", "elements": "dict", "default": []},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def kept_run(params: dict[str, Any], result: dict[str, Any]) -> str:
    """The run whose Lease is renewed after this task, until the controller ends; empty for none."""
    return str(result["renew"])


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
