#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_rbac
short_description: Give node agents the right to read Leases
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - A node agent uses the identity of its kubelet. This identity lacks one right that the agent needs, to read the
    Leases of any namespace. This module writes the ClusterRole C(holdfast-node-agent), which grants only this right,
    and binds it to the group C(system:nodes).
  - The role C(holdfast.kubernetes.node_agent) uses it.
options:
  state:
    description:
      - V(present) writes both objects, with exactly these rights.
      - V(absent) removes them, unless a Node still has the condition C(ShutdownInhibited), which an agent sets.
    type: str
    choices: [present, absent]
    default: present
  without:
    description:
      - With O(state=absent), Nodes to ignore, because their agents are about to be removed.
    type: list
    elements: str
    default: []
seealso:
  - module: holdfast.kubernetes.node_condition_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Let agents read Leases
  holdfast.kubernetes.agent_rbac:

- name: Remove that right after the last agent
  holdfast.kubernetes.agent_rbac:
    state: absent
"""

RETURN = r"""
needed_by:
  description: The Nodes that still have an agent and need the rights; empty with O(state=present).
  type: list
  elements: str
  returned: success
  sample: [node-1]
error:
  description: What kind of failure it was, for example V(error) if the credentials do not allow it, V(api) or
    V(api_unreachable).
  type: str
  returned: failure
  sample: error
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.agent_rbac import agent_rbac

OPERATION = agent_rbac
SPEC: dict[str, Any] = {
    "argument_spec": {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "without": {"type": "list", "elements": "str", "default": []},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
