#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_guard_record
short_description: Record the work for a Machine that waits for its deletion, and release the Machine
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Writes into the annotation C(holdfast.dev/machine-guard) of a Machine that M(holdfast.kubernetes.machine_guard_step)
    has taken, so that a run that resumes after this one was killed knows what was done.
  - With O(result=released), the same write removes the hook at the point at which the Machine waits. The task refuses
    this while the Node gives no sign of life and nothing proves that it is off, while someone holds the Node, and if
    another run has its claim.
  - With O(result=released) and with O(look), the task also refuses if nothing proves that the Machine belongs to this
    cluster. The proof is a Node of that name with the annotations C(cluster.x-k8s.io/machine) and
    C(cluster.x-k8s.io/cluster-namespace) of this Machine or, if it has none of them, with its C(spec.providerID). If
    there is no such Node, the proof is another Node of the same Cluster.
  - With O(result=failed) the hook stays, and an Event C(MachineGuardFailed) of the Machine says why.
  - Both results return the claim on the Node.
options:
  machine:
    description:
      - Name of the Machine.
    type: str
    required: true
    aliases: [name]
  namespace:
    description:
      - Its namespace.
    type: str
    required: true
  node:
    description:
      - Its Node, so that the module can return the claim on it if the Machine is gone.
    type: str
  hook:
    description:
      - Name of the hook.
    type: str
    required: true
  owner:
    description:
      - Owner of the hook.
    type: str
    required: true
  run:
    description:
      - Id of this work, from M(holdfast.kubernetes.machine_guard_step).
    type: str
    required: true
  phase:
    description:
      - The phase that begins. V(not_begun) says that no phase begins, and that the next run has nothing to resume.
    type: str
  done:
    description:
      - A file of the user's tasks that has completed.
    type: str
  done_at:
    description:
      - The point that the file belongs to. By default the point at which the Machine waits.
    type: str
    choices: [pre-drain, pre-terminate]
  result:
    description:
      - How the work at this point ended.
    type: str
    choices: [released, failed]
  detail:
    description:
      - More about the result, for people.
    type: str
  look:
    description:
      - Whether to return RV(node_state). O(result=released) always returns it.
    type: bool
    default: false
  override_holds:
    description:
      - Releases the Machine although someone holds its Node. The holds are recorded.
    type: bool
    default: false
seealso:
  - module: holdfast.kubernetes.machine_guard_step
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
- name: Let the deletion continue
  holdfast.kubernetes.machine_guard_record:
    machine: "{{ next.machine.name }}"
    namespace: "{{ next.machine.namespace }}"
    hook: backup
    owner: backup-team
    run: "{{ next.run }}"
    result: released
"""

RETURN = r"""
record:
  description: The record on the Machine now. RV(record.result) is V(removed) if someone else has removed the hook, or
    the Machine is gone.
  type: dict
  returned: success
  contains:
    result:
      description: How the work at the point ended; empty while it is in progress.
      type: str
      sample: released
    phase:
      description: The last phase.
      type: str
      sample: drain
    phases:
      description: Seconds that each phase took.
      type: dict
      sample: {claim: 0.4, tasks: 12.3}
    done:
      description: The files of the user's tasks that were done, by point.
      type: dict
      sample: {pre-drain: [backup.yml]}
    facts:
      description: What else is on record, such as holds that were overridden.
      type: dict
node_state:
  description: State of its Node, as in M(holdfast.kubernetes.machine_guard_step); V(none) if it was not checked.
  type: str
  returned: success
  sample: ready
error:
  description: What kind of failure it was, for example V(unfenced), V(held), V(wrong_cluster), V(claim_lost), V(claimed), V(not_found),
    V(api) or V(api_unreachable).
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.rules import POINTS
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.record import machine_guard_record
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.rules import RESULTS

OPERATION = machine_guard_record
SPEC: dict[str, Any] = {
    "argument_spec": {
        "machine": {"type": "str", "required": True, "aliases": ["name"]},
        "namespace": {"type": "str", "required": True},
        "node": {"type": "str"},
        "hook": {"type": "str", "required": True},
        "owner": {"type": "str", "required": True},
        "run": {"type": "str", "required": True},
        "phase": {"type": "str"},
        "done": {"type": "str"},
        "done_at": {"type": "str", "choices": list(POINTS)},
        "result": {"type": "str", "choices": list(RESULTS)},
        "detail": {"type": "str"},
        "look": {"type": "bool", "default": False},
        "override_holds": {"type": "bool", "default": False},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
