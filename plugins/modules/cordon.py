#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cordon
short_description: Cordon a node with an owner on record, or undo only that cordon
version_added: 0.1.0
description:
  - Marks a node unschedulable and records who did it, why, since when, and whether it was unschedulable before.
  - Undoing restores what was before. A node that somebody else had cordoned stays cordoned, and so does one that was
    annotated C(holdfast.dev/keep-cordoned) meanwhile.
options:
  state:
    description:
      - Whether the node is to be cordoned in O(owner)'s name or given back.
    type: str
    choices: [cordoned, uncordoned]
    default: cordoned
  owner:
    description:
      - In whose name. By default V(holdfast).
    type: str
  reason:
    description:
      - Why, for people who look.
    type: str
  force:
    description:
      - With O(state=cordoned), takes over the cordon of another owner.
      - With O(state=uncordoned), makes the node schedulable whoever cordoned it.
    type: bool
    default: false
  run:
    description:
      - Id of the run that works on the node. With it the task fails where the run's claim passed to another one; see
        M(holdfast.kubernetes.node_claim).
    type: str
seealso:
  - module: holdfast.kubernetes.drain
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
- name: Cordon
  holdfast.kubernetes.cordon:
    name: node-1
    owner: storage-team
    reason: replacing a disk

- name: Undo it, unless somebody else wants it cordoned
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
  description: In whose name the node is cordoned; of the other owner where that is why the task failed. Null where nobody
    used this module.
  type: str
  returned: success, and failure because of another owner
  sample: storage-team
since:
  description: Since when another owner has it cordoned.
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.cordon import cordon

OPERATION = cordon
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "state": {"type": "str", "choices": ["cordoned", "uncordoned"], "default": "cordoned"},
        "owner": {"type": "str"},
        "reason": {"type": "str"},
        "run": {"type": "str"},
        "force": {"type": "bool", "default": False},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
