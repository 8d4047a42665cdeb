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
  - Writes into the annotation C(holdfast.dev/machine-guard) of a Machine that
    M(holdfast.kubernetes.machine_guard_step) has taken, so that a run that goes on after this one was killed knows what was done.
  - With O(result=released) the hook at the point that the Machine waits at is removed, in the same write. Refused is that while the
    Node is not heard of and nothing proves that it is off, while someone holds the Node, and where its claim is not this run's.
  - Refused is that, and what has O(look), as well where the cluster that was asked is not shown to be the one that the Machine
    belongs to. It is where the Node of that name carries the annotations C(cluster.x-k8s.io/machine) and
    C(cluster.x-k8s.io/cluster-namespace) of this Machine, or, without any, its C(spec.providerID); if there is no such Node,
    another one must be of the same Cluster.
  - With O(result=failed) the hook stays, and an Event C(MachineGuardFailed) of the Machine says why.
  - After either, the claim on the Node is given back.
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
      - Its Node, so that the claim on it is given back where the Machine is gone.
    type: str
  hook:
    description:
      - Name of the hook.
    type: str
    required: true
  owner:
    description:
      - Whose it is.
    type: str
    required: true
  run:
    description:
      - Id of this work, from M(holdfast.kubernetes.machine_guard_step).
    type: str
    required: true
  phase:
    description:
      - The phase that begins. V(not_begun) says that none does, and that the next run has nothing to resume.
    type: str
  done:
    description:
      - A file of the user's tasks that was done.
    type: str
  done_at:
    description:
      - The point whose file it is. By default the one at which the Machine waits.
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
      - Whether RV(node_state) is to be told. It always is with O(result=released).
    type: bool
    default: false
  override_holds:
    description:
      - Lets the Machine go although someone holds its Node. The holds are recorded.
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
- name: Let the deletion go on
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
  description: What stands on the Machine now. RV(record.result) is V(removed) where someone else has removed the hook, or the
    Machine is gone.
  type: dict
  returned: success
  contains:
    result:
      description: How the work at the point ended; empty while it goes on.
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
  description: What is known of its Node, as in M(holdfast.kubernetes.machine_guard_step); V(none) where it was not looked at.
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
