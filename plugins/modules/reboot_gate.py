#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_gate
short_description: Check a last time whether a node may go down
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Runs directly before the user's own tasks reboot a node. This run must have the claim, no hold may protect the node, and
    the node must still be in the boot in which its reboot began.
  - Records the phase C(reboot), or returns O(ignore:step) V(held) if a hold refuses the reboot.
options:
  operation:
    description:
      - Id of the rolling reboot.
    type: str
    required: true
  boot_id:
    description:
      - The boot ID that the Node must still have.
    type: str
    required: true
  override_holds:
    description:
      - Whether to interrupt holders.
    type: bool
    default: false
  etcd_selector:
    description:
      - Label selector of etcd's pods in the namespace C(kube-system). With it, the module also checks that etcd keeps its
        quorum without the node, and fails if it does not.
    type: str
seealso:
  - module: holdfast.kubernetes.reboot_turn
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.run
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Check a last time
  holdfast.kubernetes.reboot_gate:
    name: node-1
    operation: kernel
    run: bastion/20261121T030000Z
    boot_id: 3f0f3c9e-0000-4000-8000-000000000000
  register: rebooted
"""

RETURN = r"""
step:
  description: V(go), or V(held).
  type: str
  returned: success
  sample: go
why:
  description: Why the node is held.
  type: str
  returned: success
overridden_holds:
  description: Holds that were overridden.
  type: list
  elements: dict
  returned: success
error:
  description: What kind of failure it was, for example V(refused), V(held), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: refused
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE, RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.permit import reboot_gate

OPERATION = reboot_gate
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        **RUN,
        "operation": {"type": "str", "required": True},
        "boot_id": {"type": "str", "required": True},
        "override_holds": {"type": "bool", "default": False},
        "etcd_selector": {"type": "str"},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()
