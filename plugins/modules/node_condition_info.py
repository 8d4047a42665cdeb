#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_condition_info
short_description: Read one condition of a node, and wait for it to come or go
version_added: 0.1.0
description:
  - Reads one entry of C(status.conditions) of a Node, such as C(Ready) or the node agent's C(ShutdownInhibited).
  - Can wait, by a watch, until the Node has such a condition, with any status, or no longer has it.
options:
  condition:
    description:
      - Type of the condition.
    type: str
    required: true
  wait_for:
    description:
      - V(present) waits until the condition exists, V(absent) until it does not.
      - In check mode, the task does not wait.
    type: str
    choices: [none, present, absent]
    default: none
  wait_timeout:
    description:
      - Seconds to wait. After that, the task fails.
    type: int
    default: 60
seealso:
  - module: holdfast.kubernetes.node_condition
  - module: holdfast.kubernetes.node_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Check whether an agent reports for this node
  holdfast.kubernetes.node_condition_info:
    name: node-1
    condition: ShutdownInhibited
  register: result

- name: Wait until it does
  holdfast.kubernetes.node_condition_info:
    name: node-1
    condition: ShutdownInhibited
    wait_for: present
"""

RETURN = r"""
condition:
  description: The condition as the API returns it; null if there is none, or no such Node.
  type: dict
  returned: success, and failure of a wait
  sample:
    type: ShutdownInhibited
    status: "False"
    reason: KubeletShutdownAllowed
boot_id:
  description: The Node's boot ID; null if there is no such Node.
  type: str
  returned: success
  sample: 137c4838-5e9e-49be-b621-0ebc9239e0f0
waited:
  description: Seconds waited.
  type: float
  returned: success
  sample: 0.04
error:
  description: What kind of failure it was, for example V(timed_out), V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: timed_out
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.condition import node_condition_info

OPERATION = node_condition_info
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "condition": {"type": "str", "required": True},
        "wait_for": {"type": "str", "choices": ["none", "present", "absent"], "default": "none"},
        "wait_timeout": {"type": "int", "default": 60},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
