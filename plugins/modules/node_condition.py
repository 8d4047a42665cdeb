#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_condition
short_description: Remove a condition of a node that no agent maintains any longer
version_added: 0.1.0
description:
  - A removed agent leaves its conditions on the Node. This module removes such a condition from C(status.conditions).
  - The module needs the right to patch C(nodes/status), but only if the condition exists.
  - If the Node does not exist, the module succeeds and changes nothing.
options:
  condition:
    description:
      - Type of the condition. The module refuses C(Ready), C(MemoryPressure), C(DiskPressure), C(PIDPressure) and
        C(NetworkUnavailable).
    type: str
    required: true
  state:
    description:
      - V(absent) removes it. There is no other state, because only the agents that maintain conditions should write
        them.
    type: str
    choices: [absent]
    default: absent
seealso:
  - module: holdfast.kubernetes.node_condition_info
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
- name: Remove a condition that a removed node-problem-detector left
  holdfast.kubernetes.node_condition:
    name: node-1
    condition: KernelDeadlock
"""

RETURN = r"""
condition:
  description: The condition as it was; null if there was none, or no such Node.
  type: dict
  returned: success
error:
  description: What kind of failure it was, for example V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: api
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.condition import node_condition

OPERATION = node_condition
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "condition": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["absent"], "default": "absent"},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
