#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cordon
short_description: Cordon a node and record who did it, or undo only that cordon
version_added: 0.1.0
description:
  - Marks a node unschedulable, and records in an annotation who did it, why, when, and whether it was unschedulable before.
  - O(state=uncordoned) restores the earlier state. A node that someone else had cordoned stays cordoned. A node that has
    received the annotation C(holdfast.dev/keep-cordoned) in the meantime also stays cordoned, and so does a node that
    another client has uncordoned and cordoned again. The managed fields of the Node say which client that was.
options:
  state:
    description:
      - V(cordoned) cordons the node for O(owner). V(uncordoned) undoes the cordon of O(owner).
    type: str
    choices: [cordoned, uncordoned]
    default: cordoned
  owner:
    description:
      - Name of the owner of the cordon, for example of a team or a program. By default V(holdfast).
    type: str
  reason:
    description:
      - Why the node is cordoned, for people who read the annotation.
    type: str
  force:
    description:
      - With O(state=cordoned), takes over the cordon of another owner.
      - With O(state=uncordoned), makes the node schedulable, no matter who cordoned it.
    type: bool
    default: false
  run:
    description:
      - Id of the run that has claimed the node, see M(holdfast.kubernetes.node_claim). The task fails if another run has
        taken over the claim.
    type: str
seealso:
  - module: holdfast.kubernetes.drain
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.phase
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Cordon
  holdfast.kubernetes.cordon:
    name: node-1
    owner: storage-team
    reason: replacing a disk

- name: Uncordon, unless someone else cordoned the node too
  holdfast.kubernetes.cordon:
    name: node-1
    owner: storage-team
    state: uncordoned
"""

RETURN = r"""
unschedulable:
  description: Whether the node is unschedulable now.
  type: bool
  returned: success
owner:
  description: Owner of the cordon; on failure, the other owner. Null if the node was not cordoned with this module.
  type: str
  returned: success, and failure because of another owner
  sample: storage-team
operation:
  description: The record of the operation, from the annotation C(holdfast.dev/operation).
  type: dict
  returned: success with O(operation), otherwise null
  sample: {id: kernel, run: "4711", phase: cordon}
since:
  description: When the other owner cordoned it.
  type: str
  returned: failure because of another owner
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE, PHASE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.cordon import cordon

OPERATION = cordon
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "state": {"type": "str", "choices": ["cordoned", "uncordoned"], "default": "cordoned"},
        "owner": {"type": "str"},
        "reason": {"type": "str"},
        "run": {"type": "str"},
        **PHASE,
        "force": {"type": "bool", "default": False},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
